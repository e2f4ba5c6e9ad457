"""Input and output: raw, Y4M, Annex B, containers."""
