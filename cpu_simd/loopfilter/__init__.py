"""The deblocking filter, on a CPU."""
