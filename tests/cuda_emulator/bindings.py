"""Stands in for `cuda.bindings.driver`: its functions over the emulated GPUs, for tests over both ways to the driver.

    device.use_driver(ThroughBindings(driver.EmulatedDriver()))

Functions return (CUresult, results...) as those of the package; handles are numbers. libcuda.py leads to the same functions
through the package itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from h264lite.cuda_src.runtime.bindings import Bindings
from h264lite.cuda_src.runtime.driver_calls import OUT_OF_MEMORY, DriverCalls

from .driver import FAILED, POISON, Context, EmulatedDriver, Error, OutOfMemory


class EmulatedBindings:
    """cuda.bindings.driver of these emulated GPUs."""

    CUdevice_attribute = staticmethod(int)

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
                return (OUT_OF_MEMORY if isinstance(error, OutOfMemory) else FAILED,)
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

    # ---- streams
    def cuStreamCreate(self, flags: int) -> int:
        return self._keep(self.driver.Stream())

    def cuStreamCreateWithPriority(self, flags: int, priority: int) -> int:
        return self._keep(self.driver.Stream())

    def cuCtxGetStreamPriorityRange(self) -> tuple[int, int]:
        return 0, -5

    def cuStreamSynchronize(self, stream: int) -> None:
        self._of(stream).synchronize()

    cuStreamDestroy = _forget

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


class ThroughBindings(Bindings):
    """The way through a cuda.bindings.driver that leads to emulated GPUs, with their own attributes beside."""

    def __init__(self, driver: EmulatedDriver, package: Any = None) -> None:
        """package: EmulatedBindings or the package itself."""
        super().__init__(EmulatedBindings(driver) if package is None else package)
        self.stand_in, self.kernel_code = driver, driver.kernel_code

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stand_in, name)

    def calls(self) -> DriverCalls:
        return DriverCalls(self.stand_in.libcuda, self.stand_in.libcuda, self.Error, self.MemoryError)  # type: ignore[arg-type]
