"""Arrays that begin at a cache line: a vector of 512 bits in one that does not touches two lines."""

import numpy as np

from ...jit.kernel import kernel

LINE = 64


@kernel
def aligned(size):
    """np.empty(size, np.uint8) from the start of a cache line on; `view` and `reshape` make others of it."""
    array = np.empty(size + LINE, np.uint8)
    first = -array.ctypes.data % LINE
    return array[first : first + size]
