"""Charts of encodes, drawn by matplotlib: rates over time, curves of rate and quality, presets, the timeline."""
