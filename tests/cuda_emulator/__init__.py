"""A stand-in for the CUDA device: the kernels as C++ (cuda_emulator.h) and the PyCUDA calls (driver.py)."""
