"""The stages of the loop as CUDA kernels (.cu) and their launchers (.py)."""
