"""The driver through NVIDIA's `cuda-bindings`: functions and classes under the names of `pycuda.driver` that are used here.

`Device` takes this module in place of `pycuda.driver`. Errors are raised as there; arrays on the host are NumPy's; streams,
events and modules are freed with their context.
"""

import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

cuda: Any = None  # cuda.bindings.driver, set by `use`
_OUT_OF_MEMORY, _NOT_READY = 2, 600  # CUresult
_MAJOR, _MINOR = 75, 76  # CUdevice_attribute: compute capability
_KINDS = {"i": "i4x", "I": "I4x", "P": "Q"}  # kernel arguments in memory, by format letter


class device_attribute:
    """CUdevice_attribute."""

    MULTIPROCESSOR_COUNT, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 16, 97


class function_attribute:
    """CUfunction_attribute."""

    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class event_flags:
    """CUevent_flags."""

    BLOCKING_SYNC, DISABLE_TIMING = 1, 2


class Error(Exception):
    """A driver call failed."""


class MemoryError(Error):
    """The GPU's memory is too small for a request."""


LogicError = Error


def use(module: Any) -> None:
    """Use this cuda.bindings.driver."""
    global cuda
    cuda = module


def _call(name: str, *arguments: Any) -> Any:
    """The result of a driver function, a tuple if there are several. Error if it fails or the driver lacks it."""
    try:
        result = getattr(cuda, name)(*arguments)
    except RuntimeError as error:
        raise Error(f"{name}: {error}") from None
    if code := result[0]:
        _, text = cuda.cuGetErrorString(code)
        kind = MemoryError if int(code) == _OUT_OF_MEMORY else Error
        raise kind(f"{name} failed: {text.decode() if text else f'CUDA error {int(code)}'}")
    return result[1] if len(result) == 2 else result[1:]


def _handle(stream: Any) -> int:
    return 0 if stream is None else int(stream.handle)


class _Contexts(threading.local):
    """The contexts that each thread has pushed."""

    def __init__(self) -> None:
        self.stack: list[Context] = []


_contexts = _Contexts()


def init() -> None:
    _call("cuInit", 0)


def get_driver_version() -> int:
    """1000 * major + 10 * minor of the latest CUDA that the driver supports."""
    return int(_call("cuDriverGetVersion"))


# ---- GPUs and contexts
class Device:
    """A GPU, by its number."""

    def __init__(self, ordinal: int) -> None:
        self.handle = _call("cuDeviceGet", ordinal)

    @staticmethod
    def count() -> int:
        return int(_call("cuDeviceGetCount"))

    def name(self) -> str:
        return str(_call("cuDeviceGetName", 256, self.handle).partition(b"\0")[0].decode())

    def get_attribute(self, attribute: int) -> int:
        return int(_call("cuDeviceGetAttribute", cuda.CUdevice_attribute(attribute), self.handle))

    def compute_capability(self) -> tuple[int, int]:
        return self.get_attribute(_MAJOR), self.get_attribute(_MINOR)

    def total_memory(self) -> int:
        return int(_call("cuDeviceTotalMem", self.handle))

    def retain_primary_context(self) -> "Context":
        return Context(self)


class Context:
    """The primary context of a GPU, retained; owns what is made while it is current."""

    def __init__(self, gpu: Device) -> None:
        self._gpu, self._handle = gpu, _call("cuDevicePrimaryCtxRetain", gpu.handle)
        self._owned: list[tuple[str, Any]] = []  # (function that frees, its argument)
        self.valid = True

    def push(self) -> None:
        _call("cuCtxPushCurrent", self._handle)
        _contexts.stack.append(self)

    @staticmethod
    def pop() -> None:
        _contexts.stack.pop()
        _call("cuCtxPopCurrent")

    @staticmethod
    def synchronize() -> None:
        _call("cuCtxSynchronize")

    @staticmethod
    def own(free: str, handle: Any) -> Any:
        """`handle`, which the current context frees in the end by the driver function `free`."""
        if _contexts.stack:
            _contexts.stack[-1]._owned.append((free, handle))
        return handle

    def detach(self) -> None:
        """Free what the context owns, and release it. Error if it was released or abandoned before."""
        if not self.valid:
            raise Error("the context was released before")
        self.push()
        self.free()
        self.pop()
        self.valid = False
        _call("cuDevicePrimaryCtxRelease", self._gpu.handle)

    def free(self) -> None:
        """Free what the context owns. It must be current."""
        for free, handle in reversed(self._owned):
            with suppress(Error):
                _call(free, handle)
        self._owned.clear()

    def abandon(self) -> None:
        """Forget the context of a lost GPU without a driver call, since none succeeds."""
        self._owned.clear()
        self.valid = False


# ---- streams and events
class Stream:
    """A stream of the current context."""

    def __init__(self, flags: int = 0, priority: int | None = None) -> None:
        """priority: the lower the number, the earlier its kernels run."""
        given = ("cuStreamCreate", flags) if priority is None else ("cuStreamCreateWithPriority", flags, priority)
        self.handle = int(Context.own("cuStreamDestroy", _call(*given)))

    def synchronize(self) -> None:
        _call("cuStreamSynchronize", self.handle)

    def wait_for_event(self, event: "Event") -> None:
        """Order later work of the stream after `event`."""
        _call("cuStreamWaitEvent", self.handle, event.handle, 0)


def urgent_stream() -> Stream:
    """A stream of the highest priority of the current context."""
    _, highest = _call("cuCtxGetStreamPriorityRange")
    return Stream(0, highest)


class Event:
    """An event of the current context."""

    def __init__(self, flags: int = 0) -> None:
        self.handle = int(Context.own("cuEventDestroy", _call("cuEventCreate", flags)))

    def record(self, stream: Stream | None = None) -> "Event":
        """Record after the work issued to `stream` so far."""
        _call("cuEventRecord", self.handle, _handle(stream))
        return self

    def synchronize(self) -> "Event":
        _call("cuEventSynchronize", self.handle)
        return self

    def query(self) -> bool:
        """Whether the work before the event has ended."""
        (code,) = cuda.cuEventQuery(self.handle)
        if int(code) not in (0, _NOT_READY):
            raise Error(f"cuEventQuery failed: CUDA error {int(code)}")
        return not int(code)

    def time_till(self, other: "Event") -> float:
        """Milliseconds from this event to `other`."""
        return float(_call("cuEventElapsedTime", self.handle, other.handle))


# ---- memory
class Allocation:
    """Memory of the GPU; int() gives its address."""

    def __init__(self, nbytes: int) -> None:
        self._handle = _call("cuMemAlloc", nbytes)

    def __int__(self) -> int:
        return int(self._handle)

    def free(self) -> None:
        _call("cuMemFree", self._handle)


class HostMemory:
    """Page-locked host memory, as NumPy sees it; valid until `free`."""

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        kind = np.dtype(dtype)
        self._address = int(_call("cuMemHostAlloc", max(1, int(np.prod(shape)) * kind.itemsize), 0))
        self.__array_interface__ = {
            "shape": tuple(shape), "typestr": kind.str, "data": (self._address, False), "version": 3,
        }  # fmt: skip

    def free(self) -> None:
        _call("cuMemFreeHost", self._address)


mem_alloc = Allocation


def mem_get_info() -> tuple[int, int]:
    """(free bytes, all bytes) of the GPU."""
    free, total = _call("cuMemGetInfo")
    return int(free), int(total)


def pagelocked_empty(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Its `base` is a HostMemory."""
    return np.asarray(HostMemory(shape, dtype))


def memcpy_htod_async(target: int, host: np.ndarray, stream: Stream | None = None) -> None:
    _call("cuMemcpyHtoDAsync", int(target), host.ctypes.data, host.nbytes, _handle(stream))


def memcpy_dtoh_async(host: np.ndarray, source: int, stream: Stream | None = None) -> None:
    _call("cuMemcpyDtoHAsync", host.ctypes.data, int(source), host.nbytes, _handle(stream))


def memcpy_dtod_async(target: int, source: int, nbytes: int, stream: Stream | None = None) -> None:
    _call("cuMemcpyDtoDAsync", int(target), int(source), nbytes, _handle(stream))


def memset_d8_async(target: int, byte: int, count: int, stream: Stream | None = None) -> None:
    _call("cuMemsetD8Async", int(target), byte, count, _handle(stream))


# ---- kernels
class Module:
    """Kernels of a cubin or fatbin, or of PTX that ends with a zero, in the current context."""

    def __init__(self, code: bytes) -> None:
        self._handle = Context.own("cuModuleUnload", _call("cuModuleLoadData", code))

    def get_function(self, name: str) -> "Function":
        return Function(_call("cuModuleGetFunction", self._handle, name.encode()))


module_from_buffer = Module


class Function:
    """A kernel."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def prepare(self, formats: str) -> "Function":
        """The kinds of its arguments: P (pointer), i (int32), I (uint32)."""
        self._count = len(formats)
        self._layout = struct.Struct("<" + "".join(_KINDS[kind] for kind in formats) + f"{self._count}Q")
        return self

    def set_attribute(self, attribute: int, value: int) -> None:
        _call("cuFuncSetAttribute", self._handle, cuda.CUfunction_attribute(attribute), value)

    def prepared_async_call(
        self, grid: Sequence[int], block: Sequence[int], stream: Stream | None, *arguments: int, shared_size: int = 0
    ) -> None:
        """Start it with sizes of three numbers each. struct.error for arguments that are not of their kinds."""
        held = np.empty(self._layout.size, np.uint8)  # arguments of 8 bytes, then their addresses: read during the call
        at, end = held.ctypes.data, held.ctypes.data + 8 * self._count
        self._layout.pack_into(held.data, 0, *arguments, *range(at, end, 8))
        _call("cuLaunchKernel", self._handle, *grid, *block, shared_size, _handle(stream), end, 0)
