"""Page-locked host arrays, cut from blocks of large pages that are registered with the driver.

Large pages are allocated, registered and freed faster than page-locked memory of the driver, which need not be zero
(benchmarks/results/2026-11/speed.csv).
"""

import ctypes
import math
import mmap
from collections import deque
from collections.abc import Sequence
from threading import Thread

import numpy as np

from ...process import start_threads
from .array import DType

LARGE_PAGE = 2 << 20  # bytes; alignment and unit of blocks
LARGEST_BLOCK = 16 << 20
PREPARED = 3  # blocks that threads prepare while memory is asked for: an encode begins with some hundred megabytes
ALIGNED = SMALL_PAGE = 4096  # arrays share no page
PORTABLE, DEVICE_MAP = 1, 2  # CU_MEMHOSTREGISTER flags: for all contexts; mapped for kernels
_registered: dict[int, np.ndarray] = {}  # by address; unmapping a registered block breaks later driver calls


class _PreparedBlock:
    """A block of LARGEST_BLOCK bytes that a thread prepares; None if it cannot be had."""

    def __init__(self, memory: "PinnedMemory", context: ctypes.c_void_p) -> None:
        self._memory, self._context = memory, context
        self._block: np.ndarray | None = None
        self.thread = Thread(target=self._prepare, name="h264lite page-locks", daemon=True)

    def _prepare(self) -> None:
        if not self._memory.library.cuCtxSetCurrent(self._context):
            self._block = self._memory.block(LARGEST_BLOCK)

    def take(self) -> np.ndarray | None:
        """The block, when it is there."""
        self.thread.join()
        return self._block


class PinnedMemory:
    """Makes arrays for the current context, as long as the driver accepts blocks.

    Arrays live as long as references to them, page-locked until `close`. Without `close`, as for a lost GPU, blocks stay
    allocated.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        """AttributeError if the driver has no such functions."""
        self._register, self._unregister = library.cuMemHostRegister_v2, library.cuMemHostUnregister
        self._device_address = library.cuMemHostGetDevicePointer_v2
        self.library, self._has_contexts = library, hasattr(library, "cuCtxSetCurrent")
        self._blocks: list[np.ndarray] = []
        self._prepared: deque[_PreparedBlock] = deque()
        self._free = np.empty(0, np.uint8)
        self._usable = hasattr(mmap, "MADV_HUGEPAGE")

    def zeros(self, shape: Sequence[int], dtype: DType) -> np.ndarray | None:
        """As np.zeros; None if no block can be had."""
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        size = -(-nbytes // ALIGNED) * ALIGNED
        if self._free.size < size:
            last = self._blocks[-1].size if self._blocks else LARGE_PAGE // 2
            block = self._next(max(size, min(2 * last, LARGEST_BLOCK))) if self._usable else None
            if block is None:
                self._usable = False
                return None
            self._blocks.append(block)
            self._free = block
        array, self._free = self._free[:nbytes], self._free[size:]
        return array.view(dtype).reshape(shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks, prepared ones too."""
        return sum(block.size for block in self._blocks) + LARGEST_BLOCK * len(self._prepared)

    def expect(self, nbytes: int) -> None:
        """So much will be asked for: from LARGEST_BLOCK on threads prepare blocks now."""
        if nbytes >= LARGEST_BLOCK and self._usable:
            self._prepare()

    def _next(self, size: int) -> np.ndarray | None:
        """As `block`, or one that is prepared; from LARGEST_BLOCK on others are prepared for those who ask next."""
        if size > LARGEST_BLOCK or (size < LARGEST_BLOCK and not self._prepared):
            return self.block(size)
        block = self._prepared.popleft().take() if self._prepared else self.block(LARGEST_BLOCK)
        if block is not None:
            self._prepare()
        return block

    def _prepare(self) -> None:
        """Begin blocks up to PREPARED."""
        context = ctypes.c_void_p()
        if not self._has_contexts or self.library.cuCtxGetCurrent(ctypes.byref(context)):
            return
        while len(self._prepared) < PREPARED:
            prepared = _PreparedBlock(self, context)
            if not start_threads([prepared.thread], []):
                break
            self._prepared.append(prepared)

    def block(self, size: int) -> np.ndarray | None:
        """uint8[>= size], zeros; None if the driver refuses it, or maps it at another address."""
        size = -(-size // LARGE_PAGE) * LARGE_PAGE
        try:
            memory = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # shared: small pages
            memory.madvise(mmap.MADV_HUGEPAGE)
            memory.madvise(mmap.MADV_DONTFORK)  # after a fork, writes could go to other pages
        except (OSError, ValueError):
            return None
        memory_bytes = np.frombuffer(memory, np.uint8)
        skipped = -memory_bytes.ctypes.data % LARGE_PAGE
        block, mapped = memory_bytes[skipped : skipped + size], ctypes.c_void_p()
        block[::SMALL_PAGE] = 0  # touch all pages, as when this was measured
        address = ctypes.c_void_p(block.ctypes.data)
        if self._register(address, ctypes.c_size_t(size), ctypes.c_uint(PORTABLE | DEVICE_MAP)):
            return None
        if self._device_address(ctypes.byref(mapped), address, ctypes.c_uint(0)) or mapped.value != address.value:
            self._unregister(address)
            return None
        _registered[block.ctypes.data] = block
        return block

    def close(self) -> None:
        """Unregister the blocks. Copies must have ended; the arrays keep their contents."""
        unused = [block for prepared in self._prepared if (block := prepared.take()) is not None]
        self._prepared.clear()
        for block in [*self._blocks, *unused]:
            self._drop(block)
        self._blocks.clear()
        self._free = self._free[:0]

    def _drop(self, block: np.ndarray) -> None:
        """Unregister a block; if the driver refuses, it stays allocated."""
        if not self._unregister(ctypes.c_void_p(block.ctypes.data)):
            del _registered[block.ctypes.data]
