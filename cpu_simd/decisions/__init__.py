"""Numbers of the encoder's decisions that the kernels of the CPU and of the GPU share, by stage. Not part of the standard.

cuda_src/runtime/headers.py writes each file to a header. A kernel is compiled again when a file changes that it imports.
"""
