"""Encodes on many machines through Ray, an optional dependency: clips of a dataset, and one long file."""
