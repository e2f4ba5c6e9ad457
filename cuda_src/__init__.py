"""The stages of the loop as CUDA kernels and the launchers beside them."""
