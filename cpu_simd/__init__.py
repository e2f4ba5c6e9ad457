"""The stages of the loop as Numba kernels: arrays in, arrays out."""
