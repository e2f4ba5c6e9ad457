"""SIMD vectors as Numba types, and operations on them."""
