"""Compilation, linking and caching of kernels; atomic operations for the threads inside them."""

import time

IMPORTED = time.time()  # at the latest when the first kernel was imported
