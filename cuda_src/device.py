"""The card: context, streams, events, memory, modules; the only file that touches PyCUDA.

The device's primary context is used, so that arrays of PyTorch and CuPy on the same card can be read. It is pushed and
popped around each piece of work (`with device:`), per thread. Importing this file imports no CUDA. Arrays and pinned
buffers come from pools: once an encoder runs, no frame allocates anything.
"""

import importlib
import math
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np

from .compiler import load_code

OLDEST = (8, 0)  # compute capability


class DeviceUnavailable(Exception):
    """There is no card to use: no driver, no PyCUDA, no device, too old a device."""


class DeviceMemoryError(Exception):
    """The card's memory does not hold what was asked for."""


class GpuLost(Exception):
    """The card failed while it worked: its context is unusable for the rest of the process."""


_driver: Any = None


def use_driver(driver: Any) -> None:
    """Takes `driver` in place of pycuda.driver (the tests' stand-in; None: back to PyCUDA)."""
    global _driver
    _driver = driver


def load_driver() -> Any:
    if _driver is not None:
        return _driver
    try:
        driver: ModuleType = importlib.import_module("pycuda.driver")
    except ImportError as error:
        if "libcuda" in str(error):
            raise DeviceUnavailable(f"no NVIDIA driver on this machine ({error})") from None
        raise DeviceUnavailable(f"PyCUDA is not usable ({error}): pip install pycuda") from None
    return driver


def _count(driver: Any) -> int:
    try:
        driver.init()
        return int(driver.Device.count())
    except driver.Error as error:
        raise DeviceUnavailable(f"the NVIDIA driver reports no usable device ({error})") from None


def available() -> str | None:
    """None if a card can be used, else why not. Takes no context."""
    try:
        driver = load_driver()
        if not _count(driver):
            return "the NVIDIA driver reports no device"
        card = driver.Device(0)
        if tuple(card.compute_capability()) < OLDEST:
            return _too_old(card)
    except DeviceUnavailable as error:
        return str(error)
    return None


def _too_old(card: Any) -> str:
    major, minor = card.compute_capability()
    return f"{card.name()} has compute capability {major}.{minor}; {OLDEST[0]}.{OLDEST[1]} or later is needed"


class DeviceArray:
    """A C-contiguous array on the card. Slices along the first axis share its memory."""

    __slots__ = ("base", "device", "dtype", "ptr", "shape")

    def __init__(self, device: "Device", ptr: int, shape: Sequence[int], dtype: Any, base: Any = None) -> None:
        self.device, self.ptr, self.base = device, ptr, base
        self.shape, self.dtype = tuple(int(n) for n in shape), np.dtype(dtype)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.ptr, False),
            "version": 3,
            "strides": None,
            "stream": None,
        }

    def __getitem__(self, index: int | slice) -> "DeviceArray":
        step = self.nbytes // self.shape[0]
        if isinstance(index, slice):
            first, last, stride = index.indices(self.shape[0])
            if stride != 1:
                raise IndexError("a slice on the card has step 1")
            shape: tuple[int, ...] = (max(0, last - first), *self.shape[1:])
        else:
            first = range(self.shape[0])[index]
            shape = self.shape[1:]
        return DeviceArray(self.device, self.ptr + first * step, shape, self.dtype, self.base or self)

    def reshape(self, *shape: int) -> "DeviceArray":
        if math.prod(shape) != self.size:
            raise ValueError(f"cannot see {self.shape} as {shape}")
        return DeviceArray(self.device, self.ptr, shape, self.dtype, self.base or self)

    def view(self, dtype: Any) -> "DeviceArray":
        """The same bytes as elements of `dtype`, along the last axis."""
        kind = np.dtype(dtype)
        last = self.shape[-1] * self.dtype.itemsize // kind.itemsize
        return DeviceArray(self.device, self.ptr, (*self.shape[:-1], last), kind, self.base or self)

    def put(self, host: np.ndarray, stream: Any = None) -> "DeviceArray":
        """Host to card; asynchronous if `host` is pinned."""
        if host.shape != self.shape or host.dtype != self.dtype or not host.flags.c_contiguous:
            raise ValueError(f"array {host.shape} {host.dtype} does not match {self.shape} {self.dtype} on the card")
        self.device.call("memcpy_htod_async", self.ptr, host, stream)
        return self

    def get(self, host: np.ndarray | None = None, stream: Any = None) -> np.ndarray:
        """Card to host. Without `host`: into a new array, and waits; with a pinned `host` the caller waits."""
        target = np.empty(self.shape, self.dtype) if host is None else host
        if target.shape != self.shape or target.dtype != self.dtype or not target.flags.c_contiguous:
            raise ValueError(f"array {target.shape} {target.dtype} does not match {self.shape} {self.dtype}")
        self.device.call("memcpy_dtoh_async", target, self.ptr, stream)
        if host is None:
            self.device.synchronize(stream)
        return target

    def copy_from(self, other: "DeviceArray", stream: Any = None) -> None:
        if other.nbytes != self.nbytes:
            raise ValueError(f"{other.nbytes} bytes do not fit {self.nbytes}")
        self.device.call("memcpy_dtod_async", self.ptr, other.ptr, self.nbytes, stream)

    def fill(self, byte: int, stream: Any = None) -> "DeviceArray":
        self.device.call("memset_d8_async", self.ptr, byte, self.nbytes, stream)
        return self


class Device:
    """One card in use. Enter it (`with device:`) in every thread that works with it."""

    def __init__(self, ordinal: int = 0) -> None:
        self.driver = load_driver()
        count = _count(self.driver)
        if ordinal >= count:
            raise DeviceUnavailable(f"device {ordinal} was asked for, and the driver reports {count}")
        card = self.driver.Device(ordinal)
        self.name = str(card.name())
        self.capability: tuple[int, int] = tuple(card.compute_capability())
        if self.capability < OLDEST:
            raise DeviceUnavailable(_too_old(card))
        self.multiprocessors = int(card.get_attribute(self.driver.device_attribute.MULTIPROCESSOR_COUNT))
        self.shared_limit = int(card.get_attribute(self.driver.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
        try:
            self.context = card.retain_primary_context()
        except self.driver.Error as error:
            raise DeviceUnavailable(f"{self.name} gives no context ({error})") from None
        self.lost: str | None = None
        self._lock = threading.RLock()
        self._modules: dict[str, Any] = {}
        self._functions: dict[tuple[str, str], Any] = {}
        self._shared: dict[tuple[str, str], int] = {}
        self._free: dict[int, list[Any]] = {}
        self._pinned: list[np.ndarray] = []
        self._allocations: list[Any] = []
        self._kept: dict[tuple, DeviceArray] = {}

    # ---- context
    def __enter__(self) -> "Device":
        if self.lost:
            raise GpuLost(self.lost)
        self.context.push()
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.Context.pop()

    def check(self) -> None:
        if self.lost:
            raise GpuLost(self.lost)

    def _fail(self, what: str, error: Exception) -> GpuLost:
        self.lost = f"{self.name} failed in {what}: {error}"
        return GpuLost(self.lost)

    def call(self, name: str, *arguments: Any) -> Any:
        """A call of the driver; whatever fails loses the card."""
        self.check()
        try:
            return getattr(self.driver, name)(*arguments)
        except self.driver.Error as error:
            raise self._fail(name, error) from error

    # ---- streams and events
    def stream(self) -> Any:
        return self.call("Stream")

    def event(self, timing: bool = False) -> Any:
        """An event; who waits for it on the host sleeps instead of turning in circles."""
        flags = self.driver.event_flags
        return self.call("Event", flags.BLOCKING_SYNC | (0 if timing else flags.DISABLE_TIMING))

    def record(self, event: Any, stream: Any = None) -> Any:
        try:
            event.record(stream)
        except self.driver.Error as error:
            raise self._fail("an event", error) from error
        return event

    def wait(self, stream: Any, event: Any) -> None:
        """Work that `stream` gets from now on starts after `event`."""
        try:
            stream.wait_for_event(event)
        except self.driver.Error as error:
            raise self._fail("an event", error) from error

    def synchronize(self, what: Any = None) -> None:
        """The host waits for a stream, an event or (None) the whole card."""
        self.check()
        try:
            (what or self.driver.Context).synchronize()
        except self.driver.Error as error:
            raise self._fail("synchronize", error) from error

    # ---- memory
    def array(self, shape: Sequence[int], dtype: Any, what: str = "") -> DeviceArray:
        """An array with undefined contents, from the pool. `what` names it in the message when memory runs out."""
        self.check()
        nbytes = max(256, -(-math.prod(shape) * np.dtype(dtype).itemsize // 256) * 256)
        with self._lock:
            free = self._free.get(nbytes)
            allocation = free.pop() if free else self._allocate(nbytes, what)
        return DeviceArray(self, int(allocation), shape, dtype)

    def _allocate(self, nbytes: int, what: str) -> Any:
        try:
            allocation = self.driver.mem_alloc(nbytes)
        except self.driver.MemoryError:
            left, total = self.driver.mem_get_info()
            raise DeviceMemoryError(
                f"{self.name} has {left >> 20} of {total >> 20} MiB left, "
                f"and {what or 'an array'} needs {-(-nbytes >> 20)} MiB: "
                "use fewer references, a smaller frame or --device cpu"
            ) from None
        except self.driver.Error as error:
            raise self._fail("mem_alloc", error) from error
        self._allocations.append(allocation)
        return allocation

    def zeros(self, shape: Sequence[int], dtype: Any) -> DeviceArray:
        """As np.zeros; done when it returns."""
        array = self.array(shape, dtype, f"an array of {'x'.join(map(str, shape))} {np.dtype(dtype)}").fill(0)
        self.synchronize()
        return array

    def upload(self, host: np.ndarray, stream: Any = None) -> DeviceArray:
        host = np.ascontiguousarray(host)
        array = self.array(host.shape, host.dtype).put(host, stream)
        if stream is not None:
            self.synchronize(stream)
        return array

    def scratch(self, name: str, shape: Sequence[int], dtype: Any) -> DeviceArray:
        """A stage's own intermediate array, kept for the next frame; one stream at a time may use it."""
        key = (name, tuple(shape))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self.array(shape, dtype, name)
            return self._kept[key]

    def constant(self, name: str, values: np.ndarray) -> DeviceArray:
        """A table on the card, uploaded once."""
        key = (name, values.shape)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self.upload(values)
                self.synchronize()
            return self._kept[key]

    def release(self, *arrays: DeviceArray) -> None:
        """Gives whole arrays (not slices) back to the pool; their work must be done."""
        with self._lock:
            for array in arrays:
                nbytes = max(256, -(-array.nbytes // 256) * 256)
                self._free.setdefault(nbytes, []).append(array.ptr)

    def pinned(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """A page-locked host array, which transfers reach without a copy."""
        try:
            array = self.driver.pagelocked_empty(tuple(shape), np.dtype(dtype))
            self._pinned.append(array)
            return array
        except self.driver.Error as error:
            raise DeviceMemoryError(f"no page-locked memory for {tuple(shape)} {np.dtype(dtype)} ({error})") from None

    # ---- kernels
    def load(self, modules: Iterable[str]) -> None:
        """Loads kernel files; those that have to be compiled are compiled side by side."""
        wanted = [module for module in modules if module not in self._modules]
        if hasattr(self.driver, "load_emulated"):
            self._modules |= {module: self.driver.load_emulated(module) for module in wanted}
            return
        with ThreadPoolExecutor() as pool:
            codes = list(pool.map(lambda module: load_code(module, self.capability), wanted))
        self._modules |= {m: self.call("module_from_buffer", code) for m, code in zip(wanted, codes)}

    def function(self, module: str, name: str, formats: str) -> Any:
        """The kernel `name` of `module`.cu, prepared for arguments P (pointer), i (int32), I (uint32)."""
        key = (module, name)
        with self._lock:
            if key not in self._functions:
                if module not in self._modules:
                    self.load([module])
                try:
                    function = self._modules[module].get_function(name)
                except self.driver.Error as error:
                    raise self._fail(f"the kernel {name} of {module}.cu", error) from error
                self._functions[key] = function.prepare(formats) or function
            return self._functions[key]

    def launch(
        self,
        module: str,
        name: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: Sequence[Any],
        stream: Any = None,
        shared: int = 0,
    ) -> None:
        """Starts a kernel. Arguments are arrays (their pointer), NumPy-free ints (int32) or None (null)."""
        self.check()
        values = [a.ptr if type(a) is DeviceArray else 0 if a is None else a for a in arguments]
        function = self._functions.get((module, name))
        if function is None:
            function = self.function(module, name, "".join("i" if isinstance(a, int) else "P" for a in arguments))
        if shared > 48 << 10 and self._shared.get((module, name), 0) < shared:
            function.set_attribute(self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
            self._shared[(module, name)] = shared
        try:
            function.prepared_async_call((*grid, 1, 1)[:3], (*block, 1, 1)[:3], stream, *values, shared_size=shared)
        except self.driver.Error as error:
            raise self._fail(f"the kernel {name}", error) from error

    def close(self, keep_host: bool = False) -> None:
        """Frees the memory and lets go of the primary context; page-locked arrays stay valid with `keep_host`."""
        self._functions.clear()
        self._modules.clear()
        if not self.lost:
            with self:
                for allocation in self._allocations:
                    allocation.free()
                for memory in [] if keep_host else [array.base for array in self._pinned]:
                    getattr(memory, "free", lambda: None)()
        self._allocations.clear()
        self._free.clear()
        self._pinned.clear()
        self._kept.clear()
        try:
            self.context.detach()
        except self.driver.Error:
            if not self.lost:  # a context that is lost cannot be given back
                raise
