"""Kernels of the papers, for comparison; the encoder does not use them."""
