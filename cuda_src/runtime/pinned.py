"""Page-locked arrays of the host, cut from blocks of large pages that the driver is told of.

Large pages are got, registered and given back faster than the driver's own page-locked memory, of which nobody promises that
it is zeros (docs/performance.md).
"""

import ctypes
import math
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

LARGE_PAGE = 2 << 20  # bytes; what blocks begin at and consist of
LARGEST_BLOCK = 8 << 20
ALIGNED = SMALL_PAGE = 4096  # arrays share no page
PORTABLE, DEVICE_MAP = 1, 2  # CU_MEMHOSTREGISTER flags: for all contexts, and kernels reach it
_registered: dict[int, np.ndarray] = {}  # by address; stay mapped: a driver that has what is not fails in what comes next


class PinnedMemory:
    """Makes arrays for the context that is current, as long as the driver takes blocks. They live as long as somebody has
    them, page-locked until `close`; for ever if there is none, since a GPU that is lost gives nothing back.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        """AttributeError: the driver has no such functions."""
        self._register, self._unregister = library.cuMemHostRegister_v2, library.cuMemHostUnregister
        self._address_there = library.cuMemHostGetDevicePointer_v2
        self._blocks: list[np.ndarray] = []
        self._left = np.empty(0, np.uint8)
        self._usable = hasattr(mmap, "MADV_HUGEPAGE")

    def zeros(self, shape: Sequence[int], dtype: Any) -> np.ndarray | None:
        """As np.zeros; None: not from here."""
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        size = -(-nbytes // ALIGNED) * ALIGNED
        if self._left.size < size:
            last = self._blocks[-1].size if self._blocks else LARGE_PAGE // 2
            block = self._block(max(size, min(2 * last, LARGEST_BLOCK))) if self._usable else None
            if block is None:
                self._usable = False
                return None
            self._blocks.append(block)
            self._left = block
        array, self._left = self._left[:nbytes], self._left[size:]
        return array.view(dtype).reshape(shape)

    def _block(self, size: int) -> np.ndarray | None:
        """uint8[size or a little more], zeros; None if the driver does not take it, or would have another address for it."""
        size = -(-size // LARGE_PAGE) * LARGE_PAGE
        try:
            memory = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # not shared: small pages
            memory.madvise(mmap.MADV_HUGEPAGE)
            memory.madvise(mmap.MADV_DONTFORK)  # what is written behind a fork might go to pages that the GPU does not read
        except (OSError, ValueError):
            return None
        whole = np.frombuffer(memory, np.uint8)
        skipped = -whole.ctypes.data % LARGE_PAGE
        block, there = whole[skipped : skipped + size], ctypes.c_void_p()
        block[::SMALL_PAGE] = 0  # as measured: the driver found all pages there
        address = ctypes.c_void_p(block.ctypes.data)
        if self._register(address, ctypes.c_size_t(size), ctypes.c_uint(PORTABLE | DEVICE_MAP)):
            return None
        if self._address_there(ctypes.byref(there), address, ctypes.c_uint(0)) or there.value != address.value:
            self._unregister(address)
            return None
        _registered[block.ctypes.data] = block
        return block

    def close(self) -> None:
        """Nothing is copied to or from the arrays any more; they stay what they are."""
        for block in self._blocks:
            if not self._unregister(ctypes.c_void_p(block.ctypes.data)):
                del _registered[block.ctypes.data]
        self._blocks.clear()
        self._left = self._left[:0]
