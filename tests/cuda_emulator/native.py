"""The driver's functions by address over an emulated GPU: whole encodes by rows of calls and graphs, as on a real one.

A graph has a copy of the arguments that its kernels had when it was made, until a call replaces them.
"""

import ctypes
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from h264lite.cuda_src.runtime.device import Device
from h264lite.cuda_src.runtime.driver_calls import OUT_OF_MEMORY, DriverCalls, Memory
from h264lite.cuda_src.runtime.graph import NODE, Graph

from .driver import Error, Event, OutOfMemory

WORD = ctypes.c_uint64
FAILED = 719  # CUresult


def values_at(pointers: int, count: int) -> list[int]:
    """The arguments of a kernel whose addresses are at an address."""
    return [ctypes.c_int64.from_address(address).value for address in (WORD * count).from_address(pointers)]


class NativeEvent(Event):
    """An event with a handle."""

    @property
    def handle(self) -> int:
        return id(self)


class Pinned:
    """There is no page-locked memory in blocks."""

    nbytes = 0

    def zeros(self, shape: Any, dtype: Any) -> None:
        return None

    def reset(self) -> None:
        pass

    close = reset


class KernelGraphs:
    """In place of Graphs."""

    def __init__(self) -> None:
        self.made: dict[int, list[list[Any]]] = {}  # by handle: kernels with their arguments

    def chain(self, launches: Any) -> Graph:
        handle = 1 + len(self.made)
        self.made[handle] = [[launch, launch.arguments.tolist()] for launch in launches]
        return Graph(handle, list(range(len(launches))))

    def set(self, handle: int, node: int, parameters: int) -> None:
        """CUDA_KERNEL_NODE_PARAMS of another launch of a kernel, at an address."""
        function, *sizes, pointers, _, _, _ = NODE.unpack(ctypes.string_at(parameters, NODE.size))
        launch, values = self.made[handle][node]
        assert [function, *sizes] == [launch.function, *launch.grid, *launch.block, launch.shared]
        self.made[handle][node][1] = values_at(pointers, len(values))

    def close(self) -> None:
        self.made.clear()


class EmulatedCalls(DriverCalls):
    """DriverCalls of an emulated GPU."""

    def __init__(self, gpu: Device) -> None:
        self.gpu, self.driver = gpu, gpu.driver
        self._error, self._memory_error = gpu.driver.Error, gpu.driver.MemoryError
        self._memory, self._graphs, self.pinned = Memory(), KernelGraphs(), Pinned()  # type: ignore[assignment]
        self.objects: dict[int, Any] = {}  # events and kernels by handle
        self.replayed = 0
        self._kept: list[Any] = []
        self._address = {
            "launch": self._callback(self._launch_kernel, 11), "launch_graph": self._callback(self._launch_graph, 2),
            "set_parameters": self._callback(self._graphs.set, 3),
            "memcpy_htod_async": self._callback(lambda target, host, size, stream: self._copy(target, host, size), 4),
            "memcpy_dtoh_async": self._callback(lambda host, source, size, stream: self._copy(host, source, size), 4),
            "memset_d8_async": self._callback(lambda target, byte, size, stream: ctypes.memset(target, byte & 255, size), 4),
            "record": self._callback(lambda event, stream: self.objects[event].record(), 2),
            "wait": self._callback(lambda stream, event, flags: self._check_recorded(event), 3),
        }  # fmt: skip

    def detach(self, context: Any) -> None:
        """See DriverCalls."""
        context.detach()

    def _callback(self, function: Callable[..., Any], count: int) -> int:
        @ctypes.CFUNCTYPE(ctypes.c_int, *[WORD] * count)
        def call(*arguments: int) -> int:
            try:
                function(*arguments)
            except OutOfMemory:
                return OUT_OF_MEMORY
            except Error:
                return FAILED
            return 0

        self._kept.append(call)
        return ctypes.cast(call, ctypes.c_void_p).value or 0

    def _copy(self, target: int, source: int, size: int) -> None:
        if not self.driver.current().dead():
            ctypes.memmove(target, source, size)

    def _check_recorded(self, event: int) -> None:
        assert self.objects[event].recorded

    def _start(self, function: int, sizes: tuple[int, ...], shared: int, values: list[int]) -> None:
        kernel = self.objects[function]
        kernel.prepared_async_call(sizes[:3], sizes[3:], None, *values, shared_size=shared)

    def _launch_kernel(self, function: int, *rest: int) -> None:
        sizes, (shared, _, pointers, _) = rest[:6], rest[6:]
        count = len(self.objects[function].formats)
        self._start(function, sizes, shared, values_at(pointers, count))

    def _launch_graph(self, graph: int, stream: int) -> None:
        for launch, values in self._graphs.made[graph]:  # type: ignore[union-attr]
            self._start(launch.function, (*launch.grid, *launch.block), launch.shared, values)

    def _text(self, code: int) -> str:
        return f"CUDA error {code}"

    def event(self, flags: int) -> Any:
        self.driver.events += 1
        event = NativeEvent(self.driver)
        self.objects[event.handle] = event
        return event

    def wait(self, stream: Any, event: Any) -> None:
        stream.wait_for_event(event)

    def can_wait_for_value(self) -> bool:
        return False

    def function(self, module: str, name: str, code: bytes, shared: int) -> int:
        kernel = self.gpu._functions[module, name]
        self.objects[id(kernel)] = kernel
        return id(kernel)

    def waits(self, module: str, function: int) -> bool:
        return False

    def replay(self, rows: np.ndarray) -> int:
        self.replayed += 1
        return super().replay(rows)

    def unload(self) -> None:
        self._graphs.close()  # type: ignore[union-attr]


def use_native_calls(monkeypatch: pytest.MonkeyPatch) -> list[EmulatedCalls]:
    """GPUs that are opened from now on have native calls; a list that grows by those of each."""
    drivers: list[EmulatedCalls] = []
    begin = Device.__init__

    def opened(self: Device, ordinal: int = 0) -> None:
        begin(self, ordinal)
        self._code = defaultdict(bytes)
        self._driver_calls = EmulatedCalls(self)
        drivers.append(self._driver_calls)

    monkeypatch.setattr(Device, "__init__", opened)
    return drivers
