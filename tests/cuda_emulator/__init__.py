"""A stand-in for the CUDA device: the kernels as C++ (cuda_emulator.h), PyCUDA and the driver's library (driver.py)."""
