"""Tuning files: time models of this machine, measured and kept."""
