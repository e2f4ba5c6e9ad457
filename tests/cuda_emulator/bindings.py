"""Stands in for `cuda.bindings.driver`: its functions over the emulated GPUs, for tests over both ways to the driver.

    device.use_driver(through_bindings(driver.EmulatedDriver()))

Functions return (CUresult, results...) as those of the package; handles are numbers. A module's code is its name. libcuda.py
leads to the same functions through the package itself.
"""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from h264lite.cuda_src.runtime import bindings

from .driver import POISON, Context, EmulatedDriver, Error, OutOfMemory


class NotReady(Error):
    """The work before an event has not ended."""


FAILED = 719  # CUresult of other errors
CODES = {OutOfMemory: 2, NotReady: 600}


class EmulatedBindings:
    """cuda.bindings.driver of these emulated GPUs."""

    CUdevice_attribute = CUfunction_attribute = staticmethod(int)

    def __init__(self, driver: EmulatedDriver) -> None:
        self.driver, self.error = driver, ""
        self._objects: dict[int, Any] = {}  # by handle
        self._contexts: dict[int, Context] = {}  # by ordinal
        self._allocations: dict[int, Any] = {}  # by address
        self._page_locked: dict[int, np.ndarray] = {}

    def __getattribute__(self, name: str) -> Any:
        attribute = super().__getattribute__(name)
        return self._guarded(attribute) if name.startswith("cu") else attribute

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., tuple]:
        """The function with a CUresult before its results, for an exception of the emulator too."""

        def call(*arguments: Any) -> tuple:
            try:
                result = function(*arguments)
            except Error as error:
                self.error = str(error)
                return (CODES.get(type(error), FAILED),)
            return (0, *result) if isinstance(result, tuple) else (0,) if result is None else (0, result)

        return call

    def _keep(self, thing: Any) -> int:
        self._objects[id(thing)] = thing
        return id(thing)

    def _of(self, handle: int) -> Any:
        return self._objects[int(handle)] if int(handle) else None

    def _forget(self, handle: int) -> None:
        del self._objects[int(handle)]

    def cuInit(self, flags: int) -> None:
        self.driver.init()

    def cuGetErrorString(self, code: int) -> bytes:
        return self.error.encode()

    def cuDriverGetVersion(self) -> int:
        return 13000

    # ---- GPUs and contexts
    def cuDeviceGetCount(self) -> int:
        return self.driver.devices

    def cuDeviceGet(self, ordinal: int) -> int:
        return ordinal

    def cuDeviceGetName(self, size: int, gpu: int) -> bytes:
        return self.driver.gpus[int(gpu)].name().encode().ljust(size, b"\0")

    def cuDeviceGetAttribute(self, attribute: int, gpu: int) -> int:
        major, minor = self.driver.gpus[int(gpu)].compute_capability()
        known = {75: major, 76: minor, 16: "multiprocessors", 97: "shared"}[int(attribute)]
        return known if isinstance(known, int) else self.driver.gpus[int(gpu)].get_attribute(known)

    def cuDeviceTotalMem(self, gpu: int) -> int:
        return self.driver.memory

    def cuDevicePrimaryCtxRetain(self, gpu: int) -> int:
        emulated = self.driver.gpus[int(gpu)]
        if emulated.holders:
            emulated.holders += 1
        else:
            self._contexts[emulated.ordinal] = Context(emulated)
        return emulated.ordinal + 1

    def cuDevicePrimaryCtxRelease(self, gpu: int) -> None:
        self.driver.gpus[int(gpu)].given_back()

    def cuCtxPushCurrent(self, context: int) -> None:
        self._contexts[int(context) - 1].push()

    def cuCtxPopCurrent(self) -> int:
        gpu = Context.stack()[-1]
        Context.pop()
        return gpu.ordinal + 1

    def cuCtxSynchronize(self) -> None:
        Context.synchronize()

    # ---- streams and events
    def cuStreamCreate(self, flags: int) -> int:
        return self._keep(self.driver.Stream())

    def cuStreamCreateWithPriority(self, flags: int, priority: int) -> int:
        return self._keep(self.driver.Stream())

    def cuCtxGetStreamPriorityRange(self) -> tuple[int, int]:
        return 0, -5

    def cuStreamSynchronize(self, stream: int) -> None:
        self._of(stream).synchronize()

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        self._of(stream).wait_for_event(self._of(event))

    def cuEventCreate(self, flags: int) -> int:
        return self._keep(self.driver.Event(flags))

    def cuEventRecord(self, event: int, stream: int) -> None:
        self._of(event).record(self._of(stream))

    def cuEventSynchronize(self, event: int) -> None:
        self._of(event).synchronize()

    def cuEventElapsedTime(self, before: int, after: int) -> float:
        return self._of(before).time_till(self._of(after))

    def cuEventQuery(self, event: int) -> None:
        if not self._of(event).query():
            raise NotReady("not ready")

    cuStreamDestroy = cuEventDestroy = cuModuleUnload = _forget

    # ---- memory
    def cuMemAlloc(self, nbytes: int) -> int:
        allocation = self.driver.mem_alloc(nbytes)
        self._allocations[int(allocation)] = allocation
        return int(allocation)

    def cuMemFree(self, pointer: int) -> None:
        self._allocations.pop(int(pointer)).free()

    def cuMemGetInfo(self) -> tuple[int, int]:
        return self.driver.mem_get_info()

    def cuMemHostAlloc(self, nbytes: int, flags: int) -> int:
        array = self.driver.pagelocked_empty((nbytes,), np.uint8)
        self._page_locked[array.ctypes.data] = array
        return array.ctypes.data

    def cuMemFreeHost(self, address: int) -> None:
        self._page_locked[int(address)][:] = POISON

    def cuMemcpyHtoDAsync(self, target: int, host: int, nbytes: int, stream: int) -> None:
        self.driver.memcpy_htod_async(int(target), memory(host, nbytes), self._of(stream))

    def cuMemcpyDtoHAsync(self, host: int, source: int, nbytes: int, stream: int) -> None:
        self.driver.memcpy_dtoh_async(memory(host, nbytes), int(source), self._of(stream))

    def cuMemcpyDtoDAsync(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self.driver.memcpy_dtod_async(int(target), int(source), nbytes, self._of(stream))

    def cuMemsetD8Async(self, target: int, byte: int, count: int, stream: int) -> None:
        self.driver.memset_d8_async(int(target), byte, count, self._of(stream))

    # ---- kernels
    def cuModuleLoadData(self, code: bytes) -> int:
        return self._keep(self.driver.load_emulated(code.decode()))

    def cuModuleGetFunction(self, module: int, name: bytes) -> int:
        return self._keep(self._of(module).get_function(name.decode()))

    def cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> None:
        self._of(function).set_attribute(int(attribute), value)

    def cuLaunchKernel(self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int,
                       pointers: int, extra: int) -> None:  # fmt: skip
        """As bindings.py calls it, with the arguments of 8 bytes just before their addresses."""
        first = ctypes.c_uint64.from_address(int(pointers)).value
        values = memory(first, int(pointers) - first).view(np.int64).tolist()
        kernel = self._of(function).prepare("".join("i" if abs(value) < 1 << 31 else "P" for value in values))
        kernel.prepared_async_call((gx, gy, gz), (bx, by, bz), self._of(stream), *values, shared_size=shared)


def memory(address: int, nbytes: int) -> np.ndarray:
    """uint8[nbytes] of the host at an address."""
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(int(address)), np.uint8)


class Face(SimpleNamespace):
    """bindings.py, with the emulated driver's own attributes beside."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stand_in, name)


def face(driver: EmulatedDriver) -> Any:
    """bindings.py over what it uses at present, which leads to these emulated GPUs."""
    return Face(**vars(bindings), stand_in=driver, load_emulated=lambda name: bindings.Module(name.encode()))


def through_bindings(driver: EmulatedDriver) -> Any:
    """The face of bindings.py over these emulated GPUs, for `use_driver`."""
    bindings.use(EmulatedBindings(driver))
    return face(driver)
