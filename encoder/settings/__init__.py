"""The settings of one encode: options, presets, level, device."""
