"""Compilation, linking and caching of kernels; atomic operations for the threads inside them."""
