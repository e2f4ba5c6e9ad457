"""Measurements of `tune` and `bench`."""
