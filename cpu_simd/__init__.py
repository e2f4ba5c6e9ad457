"""The encoder's stages as Numba kernels on the CPU: arrays in, arrays out."""
