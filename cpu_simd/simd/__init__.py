"""SIMD vectors as Numba types, and their operations."""
