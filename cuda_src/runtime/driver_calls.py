"""Replays recordings without the interpreter: driver calls are rows of an array, called by address in a compiled loop.

A frame makes about sixty driver calls. From Python each call releases and takes the interpreter's lock, for which the threads
that write bits also wait.

A kernel is started while the kernel before it on its stream ends (programmatic dependent launch), if it first waits until
that kernel has ended and its writes are visible. So the order of a stream does not change; a test checks for this wait.
"""

import ctypes
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

import numpy as np

from ...jit.intrinsics import intrinsic, ir, types
from ...jit.kernel import kernel
from .array import Stream
from .compiler import OTHERS
from .driver import LIBRARY
from .graph import FEWEST, NODE, Graphs, Launch, node_parameters
from .pinned import PinnedMemory
from .recording import KERNEL, Command, handle

ARGUMENTS = 11  # arguments of cuLaunchKernel, the largest number
PTX_VERSION, MAX_DYNAMIC_SHARED_SIZE_BYTES = 5, 8  # CUfunction_attribute
PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CUlaunchAttributeID
CAN_USE_64_BIT_STREAM_MEM_OPS = 122  # CUdevice_attribute
STREAM_WAIT_VALUE_EQ = 1  # CUstreamWaitValue_flags
OUT_OF_MEMORY, NOT_READY = 2, 600  # CUresult
POINTER_MEMORY_TYPE = 2  # CUpointer_attribute
_NAMES = {
    "launch": "cuLaunchKernel", "memcpy_htod_async": "cuMemcpyHtoDAsync_v2", "memcpy_dtoh_async": "cuMemcpyDtoHAsync_v2",
    "memcpy_dtod_async": "cuMemcpyDtoDAsync_v2", "memset_d8_async": "cuMemsetD8Async", "record": "cuEventRecord",
    "wait": "cuStreamWaitEvent",
}  # fmt: skip

# CUlaunchConfig: grid, block, shared memory, gap, stream, attributes, their number; CUlaunchAttribute: id, gap, 64 bytes
LAUNCH, CONFIG_BYTES = struct.Struct("8I3Q2Ii60x"), 56
ALL_BITS = (1 << 64) - 1
CHUNK = 1 << 16  # bytes


@intrinsic
def _call(typingctx, row):  # type: ignore[no-untyped-def]
    """row int64[1 + ARGUMENTS]: calls the function at address row[0]; CUresult.

    All arguments are passed as 64-bit numbers: calling conventions of 64-bit machines give each argument its own register or
    stack slot, of which the callee reads its part.
    """
    word, code = ir.IntType(64), ir.IntType(32)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        words = [builder.extract_value(arguments[0], k) for k in range(1 + ARGUMENTS)]
        function = builder.inttoptr(words[0], ir.FunctionType(code, [word] * ARGUMENTS).as_pointer())
        return builder.call(function, words[1:])

    return types.int32(types.UniTuple(types.int64, 1 + ARGUMENTS)), generate


@kernel
def replay_rows(rows):
    """rows int64[n, 1 + ARGUMENTS]: calls in order up to the first failure. Returns its index << 32 | CUresult, or -1."""
    for k in range(rows.shape[0]):
        r = rows[k]
        code = _call((r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11]))
        if code != 0:
            return np.int64(k) << 32 | np.int64(code)
    return np.int64(-1)


class Memory:
    """Memory for data that launches point to: parts of arrays that live as long as references to them."""

    def __init__(self) -> None:
        self._used = CHUNK

    def take(self, size: int) -> tuple[Any, int, int]:
        """(uint8[CHUNK], offset of a part of `size` bytes in it, a multiple of 8, address of the part)."""
        if self._used + size > CHUNK:
            self._held, self._used = np.zeros(CHUNK, np.uint8), 0
            self._address = self._held.ctypes.data
        at = self._used
        self._used += -(-size // 8) * 8
        return self._held, at, self._address + at


class DriverCalls:
    """Driver functions by address, and handles of kernels, in the current context."""

    early = True  # programmatic dependent launch; False to measure its gain

    def __init__(self, error: type[Exception], memory_error: type[Exception]) -> None:
        """error, memory_error: raised if the driver fails, or has no memory. OSError, AttributeError: its library is missing
        or lacks functions.
        """
        self._library = ctypes.CDLL(LIBRARY)
        self._quick = ctypes.PyDLL(LIBRARY)  # for calls shorter than a release of the interpreter's lock
        self._address = {
            key: ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0 for key, name in _NAMES.items()
        }
        if hasattr(self._library, "cuLaunchKernelEx"):  # since CUDA 11.8
            self._address["launch_ex"] = ctypes.cast(self._library.cuLaunchKernelEx, ctypes.c_void_p).value or 0
        if hasattr(self._library, "cuStreamWaitValue64_v2"):  # since CUDA 11.7
            self._address["wait_value"] = ctypes.cast(self._library.cuStreamWaitValue64_v2, ctypes.c_void_p).value or 0
        self.pinned = PinnedMemory(self._library)
        self._graphs: Graphs | None = None
        with suppress(AttributeError):
            self._graphs = Graphs(self._library)
            self._address |= {"launch_graph": self._graphs.launch, "set_parameters": self._graphs.set_parameters}
        self._error, self._memory_error = error, memory_error
        self._events: list[Event] = []
        self._memory = Memory()
        self._replay = replay_rows.chosen(np.zeros((0, 1 + ARGUMENTS), np.int64))  # loaded now, not during the first frame
        self._modules: dict[str, ctypes.c_void_p] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._shared: dict[tuple[str, str], int] = {}  # dynamic shared memory that is set, by kernel
        self._versions: dict[int, int] = {}  # PTX version of the code of functions; 0 if unknown

    def event(self, flags: int) -> "Event":
        """An event with a handle; PyCUDA's events do not give theirs."""
        event = Event(self._library, self._quick, self.error)
        self._check("cuEventCreate", self._library.cuEventCreate(ctypes.byref(event.handle_), ctypes.c_uint(flags)))
        self._events.append(event)
        return event

    def wait(self, stream: Stream | None, event: "Event") -> None:
        """As Stream.wait_for_event."""
        code = self._library.cuStreamWaitEvent(ctypes.c_void_p(handle(stream)), event.handle_, ctypes.c_uint(0))
        self._check("cuStreamWaitEvent", code)

    def can_wait_for_value(self) -> bool:
        """Whether streams of the GPU of the current context can wait for a value in memory."""
        if "wait_value" not in self._address:
            return False
        gpu, able = ctypes.c_int(), ctypes.c_int()
        if self._library.cuCtxGetDevice(ctypes.byref(gpu)):
            return False
        arguments = ctypes.byref(able), ctypes.c_int(CAN_USE_64_BIT_STREAM_MEM_OPS), gpu
        return not self._library.cuDeviceGetAttribute(*arguments) and bool(able.value)

    def detach(self, context: Any) -> None:
        """Release a context of PyCUDA, and leave the same context current as before: to detach one that is not, PyCUDA makes
        it current and leaves the rest to the driver, for which the end of a primary context changes nothing.
        """
        before, after, popped = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self._library.cuCtxGetCurrent(ctypes.byref(before))
        context.detach()
        self._library.cuCtxGetCurrent(ctypes.byref(after))
        if after.value != before.value:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(popped))

    def wait_value_record(self, stream: int, flag: np.ndarray, value: int) -> list[int]:
        """`wait_value` as a call record."""
        return self.call_record("wait_value", stream, flag.ctypes.data, value, STREAM_WAIT_VALUE_EQ)

    def wait_value(self, stream: Stream | None, flag: np.ndarray, value: int) -> None:
        """See Device.wait_value."""
        arguments = ctypes.c_void_p(handle(stream)), ctypes.c_uint64(flag.ctypes.data), ctypes.c_uint64(value)
        code = self._library.cuStreamWaitValue64_v2(*arguments, ctypes.c_uint(STREAM_WAIT_VALUE_EQ))
        self._check("cuStreamWaitValue64", code)

    def _check(self, name: str, code: int) -> None:
        if code:
            raise self.error(code, f"{name} failed: ")

    def error(self, code: int, before: str = "") -> Exception:
        """The driver's error with this code; before: begins its text."""
        kind = self._memory_error if code == OUT_OF_MEMORY else self._error
        return kind(f"{before}{self._text(code)}")

    def _text(self, code: int) -> str:
        """What the driver says about a CUresult."""
        text = ctypes.c_char_p()
        self._library.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
        return (text.value or b"").decode() or f"CUDA error {code}"

    def function(self, module: str, name: str, code: bytes, shared: int) -> int | None:
        """Handle of a kernel, from an own module of the same code; None if the driver fails."""
        key = (module, name)
        if key not in self._functions:
            library = self._library
            if module not in self._modules:
                handle = ctypes.c_void_p()
                if library.cuModuleLoadData(ctypes.byref(handle), code):
                    return None
                self._modules[module] = handle
            kernel = ctypes.c_void_p()
            if library.cuModuleGetFunction(ctypes.byref(kernel), self._modules[module], name.encode()):
                return None
            self._functions[key] = kernel.value or 0
        handle_of = ctypes.c_void_p(self._functions[key])
        if shared > self._shared.get(key, 48 << 10):  # never reduced: earlier recordings still need it
            if self._library.cuFuncSetAttribute(handle_of, MAX_DYNAMIC_SHARED_SIZE_BYTES, shared):
                return None
            self._shared[key] = shared
        return self._functions[key]

    def waits(self, module: str, function: int) -> bool:
        """Whether a kernel itself waits for the kernel before (simd.cuh): the encoder's do, in code for 9.0 and later."""
        if function not in self._versions:
            version = ctypes.c_int()
            self._library.cuFuncGetAttribute(ctypes.byref(version), ctypes.c_int(PTX_VERSION), ctypes.c_void_p(function))
            self._versions[function] = version.value
        return self._versions[function] >= 90 and module.partition("/")[0] not in OTHERS

    def call_record(self, name: str, *arguments: int) -> list[int]:
        """A call as a row of replay_rows: address of the function, arguments, zeros."""
        return [self._address[name], *arguments, *[0] * (ARGUMENTS - len(arguments))]

    def launch_record(
        self, function: int, grid: Sequence[int], block: Sequence[int], shared: int, stream: Stream | None,
        values: Sequence[int], waits: bool = False,
    ) -> tuple[list[int], Launch]:  # fmt: skip
        """A launch as a call record and as a Launch. Data in memory: arguments of 8 bytes, their addresses, CUlaunchConfig.

        waits: the kernel itself waits for the kernel before it, and may be started while that ends.
        """
        early = waits and self.early and "launch_ex" in self._address
        return self._launch(Launch(function, grid, block, shared, handle(stream), 0, early, None), values)

    def _launch(self, launch: Launch, values: Sequence[int]) -> tuple[list[int], Launch]:
        """The launch with memory of its own, which holds these arguments."""
        function, grid, block, shared, stream, *_ = launch
        n = len(values)
        held, at, address = self._memory.take(16 * n + LAUNCH.size)
        struct.pack_into(f"{2 * n}Q", held, at, *[v & ALL_BITS for v in values], *range(address, address + 8 * n, 8))
        pointers, config = address + 8 * n, address + 16 * n
        launch = launch._replace(pointers=pointers, arguments=held[at : at + 8 * n].view(np.int64))
        if launch.early:
            sizes = (*grid, *block, shared, 0, stream, config + CONFIG_BYTES, 1)
            LAUNCH.pack_into(held, at + 16 * n, *sizes, PROGRAMMATIC_STREAM_SERIALIZATION, 0, 1)
            return self.call_record("launch_ex", config, function, pointers, 0), launch
        return self.call_record("launch", function, *grid, *block, shared, stream, pointers, 0), launch

    def joined(self, commands: Sequence[Command]) -> list[Command]:
        """The same commands in fewer calls: consecutive kernels of a stream become one graph, if the driver can make it."""
        joined: list[Command] = []

        def graph_stream(command: Command) -> int | None:
            return None if command.launch is None else int(command.launch.stream)

        for stream, subset in groupby(commands, graph_stream):
            neighbours = list(subset)
            joined += neighbours if stream is None else self._as_graph(neighbours)
        return joined

    def _as_graph(self, commands: list[Command]) -> list[Command]:
        """A launch of their graph, behind a call for each kernel whose arguments differ between replays."""
        launches = [command.launch for command in commands]
        graph = self._graphs.chain(launches) if self._graphs is not None and len(commands) >= FEWEST else None
        if graph is None:
            return commands
        nodes = []
        for command, node in zip(commands, graph.nodes):
            if command.patches:
                held, at, address = self._memory.take(NODE.size)
                held[at : at + NODE.size] = np.frombuffer(node_parameters(command.launch), np.uint8)
                call_record = self.call_record("set_parameters", graph.made, node, address)
                nodes.append(command._replace(call=None, call_record=call_record))
        names = KERNEL + ", ".join(command.name.removeprefix(KERNEL) for command in commands)
        return [*nodes, Command(names, None, call_record=self.call_record("launch_graph", graph.made, launches[0].stream))]

    def replay(self, rows: np.ndarray) -> int:
        """See replay_rows."""
        return int(self._replay(rows))

    def knows(self, pointer: int) -> bool:
        """Whether an address belongs to memory of the driver."""
        kind = ctypes.c_uint()
        arguments = ctypes.byref(kind), ctypes.c_int(POINTER_MEMORY_TYPE), ctypes.c_uint64(pointer)
        return not self._library.cuPointerGetAttribute(*arguments)

    def reset(self) -> None:
        """Free the graphs and the page-locked memory. The context must be current, and the work done."""
        if self._graphs is not None:
            self._graphs.close()
        self.pinned.close()

    def unload(self) -> None:
        """Free graphs, page-locked memory, events and modules. The context must be current."""
        if self._graphs is not None:
            self._graphs.close()
        self.pinned.close()
        for event in self._events:
            self._library.cuEventDestroy_v2(event.handle_)
        self._events.clear()
        for module in self._modules.values():
            self._library.cuModuleUnload(module)
        self._modules.clear()
        self._functions.clear()
        self._versions.clear()


class Event:
    """As PyCUDA's Event, with a handle, without times."""

    def __init__(self, library: ctypes.CDLL, quick: ctypes.PyDLL, error: Callable[[int, str], Exception]) -> None:
        """error: see DriverCalls."""
        self._library, self._quick, self._error = library, quick, error
        self.handle_ = ctypes.c_void_p()

    @property
    def handle(self) -> int:
        """The driver's CUevent."""
        return self.handle_.value or 0

    def record(self, stream: Stream | None = None) -> "Event":
        """Record after the work issued to `stream` so far."""
        if code := self._library.cuEventRecord(self.handle_, ctypes.c_void_p(handle(stream))):
            raise self._error(code, "cuEventRecord failed: ")
        return self

    def query(self) -> bool:
        """Whether the work before the event has ended."""
        code = self._quick.cuEventQuery(self.handle_)
        if code not in (0, NOT_READY):
            raise self._error(code, "cuEventQuery failed: ")
        return not code

    def synchronize(self) -> "Event":
        """Wait on the host; without the interpreter's lock if the event has not completed."""
        if self.query():
            return self
        if code := self._library.cuEventSynchronize(self.handle_):
            raise self._error(code, "cuEventSynchronize failed: ")
        return self
