"""Benchmark programs; `papers` is also installed with the package."""
