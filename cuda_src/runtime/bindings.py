"""The driver through NVIDIA's `cuda-bindings`. Streams are freed with their context; arrays on the host are NumPy's."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from .array import DType, Stream
from .driver_calls import OUT_OF_MEMORY
from .driver_table import Driver, GpuProperties
from .pool import Allocation

# CUdevice_attribute: compute capability, multiprocessors, shared memory of a block
_MAJOR, _MINOR, _MULTIPROCESSORS, _SHARED_OPTIN = 75, 76, 16, 97


class Error(Exception):
    """A driver call failed."""


class MemoryError(Error):
    """The GPU's memory is too small for a request."""


class Bindings(Driver):
    """See Driver."""

    Error, MemoryError = Error, MemoryError

    def __init__(self, cuda: Any) -> None:
        """cuda: the module cuda.bindings.driver, of any version."""
        self._cuda = cuda

    def call(self, name: str, *arguments: object) -> Any:
        """The result of a driver function, a tuple if there are several. Error if it fails or the driver lacks it."""
        try:
            result = getattr(self._cuda, name)(*arguments)
        except RuntimeError as error:
            raise Error(f"{name}: {error}") from None
        if code := result[0]:
            _, text = self._cuda.cuGetErrorString(code)
            error_class = MemoryError if int(code) == OUT_OF_MEMORY else Error
            raise error_class(f"{name} failed: {text.decode() if text else f'CUDA error {int(code)}'}")
        return result[1] if len(result) == 2 else result[1:]

    def count(self) -> int:
        """See Driver."""
        self.call("cuInit", 0)
        return int(self.call("cuDeviceGetCount"))

    def properties(self, ordinal: int) -> GpuProperties:
        """See Driver."""
        gpu = self.call("cuDeviceGet", ordinal)

        def attribute(number: int) -> int:
            return int(self.call("cuDeviceGetAttribute", self._cuda.CUdevice_attribute(number), gpu))

        name = self.call("cuDeviceGetName", 256, gpu).partition(b"\0")[0].decode()
        capability, memory = (attribute(_MAJOR), attribute(_MINOR)), int(self.call("cuDeviceTotalMem", gpu))
        return GpuProperties(name, capability, memory, attribute(_MULTIPROCESSORS), attribute(_SHARED_OPTIN))

    def retain(self, ordinal: int) -> "BindingsContext":
        """See Driver."""
        return BindingsContext(self, ordinal)

    def allocate(self, nbytes: int) -> Allocation:
        """See Driver."""
        return BindingsMemory(self, nbytes)

    def memory_left(self) -> tuple[int, int]:
        """See Driver."""
        free, total = self.call("cuMemGetInfo")
        return int(free), int(total)

    def page_locked(self, shape: Sequence[int], dtype: DType) -> np.ndarray:
        """See Driver."""
        return np.asarray(HostMemory(self, shape, dtype))


class BindingsContext:
    """See Context."""

    def __init__(self, driver: Bindings, ordinal: int) -> None:
        self._call, self._gpu = driver.call, driver.call("cuDeviceGet", ordinal)
        self._handle = self._call("cuDevicePrimaryCtxRetain", self._gpu)
        self._streams: list[BindingsStream] = []
        self.valid = True

    def push(self) -> None:
        """See Context."""
        self._call("cuCtxPushCurrent", self._handle)

    def pop(self) -> None:
        """See Context."""
        self._call("cuCtxPopCurrent")

    def stream(self) -> Stream:
        """See Context."""
        return self._kept("cuStreamCreate", 0)

    def urgent_stream(self) -> Stream:
        """See Context."""
        _, highest = self._call("cuCtxGetStreamPriorityRange")
        return self._kept("cuStreamCreateWithPriority", 0, highest)

    def _kept(self, name: str, *arguments: int) -> Stream:
        self._streams.append(BindingsStream(self._call, int(self._call(name, *arguments))))
        return self._streams[-1]

    def free(self) -> None:
        """See Context."""
        for stream in self._streams:
            with suppress(Error):
                self._call("cuStreamDestroy", stream.handle)
        self._streams.clear()

    def detach(self) -> None:
        """See Context."""
        if not self.valid:
            raise Error("the context was released before")
        self.push()
        self.free()
        self.pop()
        self.valid = False
        self._call("cuDevicePrimaryCtxRelease", self._gpu)

    def abandon(self) -> None:
        """See Context."""
        self._streams.clear()
        self.valid = False


class BindingsStream:
    """See Stream."""

    def __init__(self, call: Callable[..., Any], handle: int) -> None:
        self._call, self.handle = call, handle

    def synchronize(self) -> None:
        """See Stream."""
        self._call("cuStreamSynchronize", self.handle)


class BindingsMemory:
    """See Allocation."""

    def __init__(self, driver: Bindings, nbytes: int) -> None:
        self._call, self._handle = driver.call, driver.call("cuMemAlloc", nbytes)

    def __int__(self) -> int:
        return int(self._handle)

    def free(self) -> None:
        """See Allocation."""
        self._call("cuMemFree", self._handle)


class HostMemory:
    """Page-locked host memory, as NumPy sees it; valid until `free`."""

    def __init__(self, driver: Bindings, shape: Sequence[int], dtype: DType) -> None:
        data_type = np.dtype(dtype)
        self._call = driver.call
        self._address = int(self._call("cuMemHostAlloc", max(1, int(np.prod(shape)) * data_type.itemsize), 0))
        self.__array_interface__ = {
            "shape": tuple(shape), "typestr": data_type.str, "data": (self._address, False), "version": 3,
        }  # fmt: skip

    def free(self) -> None:
        """Give it back to the driver."""
        self._call("cuMemFreeHost", self._address)
