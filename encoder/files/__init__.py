"""Input and output files: raw, Y4M, Annex B, containers."""
