"""The deblocking filter, on a GPU."""
