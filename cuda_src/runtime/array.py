"""Arrays on a GPU: a pointer with shape and dtype; what its users need of a stream and of an event."""

import ctypes
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike

DType = DTypeLike
_HEAD = object.__basicsize__  # of every object: the address of its elements follows in that of an array
_word_at = ctypes.c_size_t.from_address


class Stream(Protocol):
    """A stream of the driver in use; None in its place is the default stream."""

    @property
    def handle(self) -> int:
        """The driver's."""

    def synchronize(self) -> None:
        """Wait on the host until its work is done."""


class Event(Protocol):
    """An event of the driver in use."""

    @property
    def handle(self) -> int:
        """The driver's."""

    def synchronize(self) -> None:
        """Wait on the host until it has completed."""

    def query(self) -> bool:
        """Whether it has completed."""

    def time_till(self, after: "Event") -> float:
        """Milliseconds to another one."""


class Gpu(Protocol):
    """What arrays and their launchers ask of their GPU: see Device."""

    tile_rows: int
    shared_limit: int

    def call(self, name: str, values: Sequence[int], arguments: Sequence[object]) -> None:
        """A driver call by its name, such as a copy or a fill."""

    def synchronize(self, what: "Stream | Event | None" = None) -> None:
        """Wait on the host."""

    def scratch(
        self, name: str, shape: Sequence[int], dtype: DType, stream: Stream | None, zeros: bool = False
    ) -> "DeviceArray":
        """An intermediate array of a stage."""

    def event(self) -> Event:
        """An event."""

    def record(self, event: Event, stream: Stream | None = None) -> Event:
        """Record the event behind the stream's work."""

    def wait(self, stream: Stream, event: Event) -> None:
        """Order later work of the stream after the event."""

    def launch(
        self, module: str, name: str, grid: tuple[int, ...], block: tuple[int, ...], arguments: Sequence[object],
        stream: Stream | None = None, shared: int = 0,
    ) -> None:  # fmt: skip
        """Start a kernel."""


def handle(owner: Stream | Event | None) -> int:
    """The driver's of a stream or an event; None: the default stream."""
    return 0 if owner is None else owner.handle


def address_of(array: np.ndarray) -> int:
    """Where an array of the host begins. By the fields of CPython's object, since NumPy's ways make objects."""
    return _word_at(id(array) + _HEAD).value


class DeviceArray:
    """A C-contiguous array on the GPU. Slices along the first axis share its memory."""

    __slots__ = ("base", "device", "dtype", "ptr", "shape")

    def __init__(self, device: Gpu, ptr: int, shape: Sequence[int], dtype: DType, base: object = None) -> None:
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
                raise IndexError("a slice on the GPU has step 1")
            shape: tuple[int, ...] = (max(0, last - first), *self.shape[1:])
        else:
            first = range(self.shape[0])[index]
            shape = self.shape[1:]
        return DeviceArray(self.device, self.ptr + first * step, shape, self.dtype, self.base or self)

    def reshape(self, *shape: int) -> "DeviceArray":
        if math.prod(shape) != self.size:
            raise ValueError(f"cannot see {self.shape} as {shape}")
        return DeviceArray(self.device, self.ptr, shape, self.dtype, self.base or self)

    def view(self, dtype: DType) -> "DeviceArray":
        """The same bytes as elements of `dtype`, along the last axis."""
        new_dtype = np.dtype(dtype)
        last = self.shape[-1] * self.dtype.itemsize // new_dtype.itemsize
        return DeviceArray(self.device, self.ptr, (*self.shape[:-1], last), new_dtype, self.base or self)

    def put(self, host: np.ndarray, stream: Stream | None = None) -> "DeviceArray":
        """Upload; asynchronous if `host` is page-locked."""
        if host.shape != self.shape or host.dtype != self.dtype or not host.flags.c_contiguous:
            raise ValueError(f"array {host.shape} {host.dtype} does not match {self.shape} {self.dtype} on the GPU")
        values = self.ptr, address_of(host), host.nbytes, handle(stream)
        self.device.call("memcpy_htod_async", values, (self.ptr, host))
        return self

    def get(self, host: np.ndarray | None = None, stream: Stream | None = None) -> np.ndarray:
        """Download. Without `host` into a new array, and waits; with a page-locked `host` the caller must wait."""
        target = np.empty(self.shape, self.dtype) if host is None else host
        if target.shape != self.shape or target.dtype != self.dtype or not target.flags.c_contiguous:
            raise ValueError(f"array {target.shape} {target.dtype} does not match {self.shape} {self.dtype}")
        values = address_of(target), self.ptr, target.nbytes, handle(stream)
        self.device.call("memcpy_dtoh_async", values, (target, self.ptr))
        if host is None:
            self.device.synchronize(stream)
        return target

    def fill(self, byte: int, stream: Stream | None = None) -> "DeviceArray":
        self.device.call("memset_d8_async", (self.ptr, byte, self.nbytes, handle(stream)), (self.ptr,))
        return self
