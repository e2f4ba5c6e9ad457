"""The driver through PyCUDA."""

import ctypes
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from .array import DType, Stream
from .driver_table import Driver, GpuProperties
from .pool import Allocation


class PyCuda(Driver):
    """See Driver."""

    def __init__(self, cuda: Any) -> None:
        """cuda: the module pycuda.driver, which has no types."""
        self._cuda, self.Error, self.MemoryError = cuda, cuda.Error, cuda.MemoryError

    def count(self) -> int:
        """See Driver."""
        self._cuda.init()
        return int(self._cuda.Device.count())

    def properties(self, ordinal: int) -> GpuProperties:
        """See Driver."""
        gpu, attribute = self._cuda.Device(ordinal), self._cuda.device_attribute
        attributes = attribute.MULTIPROCESSOR_COUNT, attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        major, minor = gpu.compute_capability()
        numbers = [int(number) for number in (gpu.total_memory(), *map(gpu.get_attribute, attributes))]
        return GpuProperties(str(gpu.name()), (major, minor), *numbers)

    def retain(self, ordinal: int) -> "PyCudaContext":
        """See Driver."""
        return PyCudaContext(self._cuda, self.library, self._cuda.Device(ordinal).retain_primary_context())

    def allocate(self, nbytes: int) -> Allocation:
        """See Driver."""
        allocation: Allocation = self._cuda.mem_alloc(nbytes)
        return allocation

    def memory_left(self) -> tuple[int, int]:
        """See Driver."""
        free, total = self._cuda.mem_get_info()
        return int(free), int(total)

    def page_locked(self, shape: Sequence[int], dtype: DType) -> np.ndarray:
        """See Driver."""
        array: np.ndarray = self._cuda.pagelocked_empty(tuple(shape), np.dtype(dtype))
        return array


class PyCudaContext:
    """See Context."""

    def __init__(self, cuda: Any, library: ctypes.CDLL, context: Any) -> None:
        self._cuda, self._library, self._context = cuda, library, context

    def push(self) -> None:
        """See Context."""
        self._context.push()

    def pop(self) -> None:
        """See Context."""
        self._cuda.Context.pop()

    def stream(self) -> Stream:
        """See Context."""
        stream: Stream = self._cuda.Stream()
        return stream

    def urgent_stream(self) -> None:
        """See Context. PyCUDA makes no streams with a priority."""

    def free(self) -> None:
        """See Context. PyCUDA frees streams with their last references."""

    def detach(self) -> None:
        """See Context. To detach one that is not current, PyCUDA makes it current and leaves the rest to the driver, for
        which the end of a primary context changes nothing.
        """
        before, popped = self._current(), ctypes.c_void_p()
        self._context.detach()
        if self._current() != before:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(popped))

    def _current(self) -> int | None:
        context = ctypes.c_void_p()
        self._library.cuCtxGetCurrent(ctypes.byref(context))
        return context.value

    def abandon(self) -> None:
        """See Context. PyCUDA, which reports each failed free, makes none for a context that was detached in another thread
        than the one that retained it.
        """

        def detach() -> None:
            with suppress(self._cuda.Error):  # closed before
                self._context.detach()

        thread = threading.Thread(target=detach, name="h264lite lost GPU")
        with suppress(RuntimeError):  # no thread can be started: the context ends with the process
            thread.start()
            thread.join()
