"""Costs of source frames for the decisions about frame types: on a GPU, or on the host."""
