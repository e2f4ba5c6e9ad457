"""The driver's library, one for every package: modules, launches, copies, events; and recordings without the interpreter.

Driver calls of a recording are rows of an array, called by address in a compiled loop.

A frame makes about sixty driver calls. From Python each call releases and takes the interpreter's lock, for which the threads
that write bits also wait.

A kernel is started while the kernel before it on its stream ends (programmatic dependent launch), if it first waits until
that kernel has ended and its writes are visible. So the order of a stream does not change; a test checks for this wait.
"""

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from ...jit.intrinsics import intrinsic, ir, types
from ...jit.kernel import kernel
from . import array
from .array import Stream, address_of, handle
from .compiler import OTHERS
from .graph import FEWEST, NODE, Graphs, node_parameters
from .pinned import PinnedMemory
from .recording import KERNEL, Command, Launch

ARGUMENTS = 11  # arguments of cuLaunchKernel, the largest number
PTX_VERSION, MAX_DYNAMIC_SHARED_SIZE_BYTES = 5, 8  # CUfunction_attribute
USUAL_SHARED = 48 << 10  # bytes of dynamic shared memory that need no attribute
PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CUlaunchAttributeID
CAN_USE_64_BIT_STREAM_MEM_OPS = 122  # CUdevice_attribute
STREAM_WAIT_VALUE_EQ = 1  # CUstreamWaitValue_flags
BLOCKING_SYNC, DISABLE_TIMING = 1, 2  # CUevent_flags
OUT_OF_MEMORY, NOT_READY = 2, 600  # CUresult
POINTER_MEMORY_TYPE = 2  # CUpointer_attribute
# what is called by address: (function, types of arguments: I, L numbers of 32, 64 bits, B a byte)
FUNCTIONS = {
    "launch": ("cuLaunchKernel", "LIIIIIIILLL"), "memcpy_htod_async": ("cuMemcpyHtoDAsync_v2", "LLLL"),
    "memcpy_dtoh_async": ("cuMemcpyDtoHAsync_v2", "LLLL"), "memset_d8_async": ("cuMemsetD8Async", "LBLL"),
    "record": ("cuEventRecord", "LL"), "wait": ("cuStreamWaitEvent", "LLI"),
    "load_module": ("cuModuleLoadData", "LL"),
}  # fmt: skip
LATER_FUNCTIONS = {  # since CUDA 11.8, 11.7
    "launch_ex": ("cuLaunchKernelEx", "LLLL"), "wait_value": ("cuStreamWaitValue64_v2", "LLLI"),
}  # fmt: skip
C_TYPES = {"I": ctypes.c_uint, "L": ctypes.c_uint64, "B": ctypes.c_ubyte}

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
            self._chunk, self._used = np.zeros(CHUNK, np.uint8), 0
            self._address = self._chunk.ctypes.data
        at = self._used
        self._used += -(-size // 8) * 8
        return self._chunk, at, self._address + at


class DriverCalls:
    """Functions of the driver's library in the current context; what is made by them, until `unload`."""

    early = True  # programmatic dependent launch; False to measure its gain

    def __init__(
        self, library: ctypes.CDLL, quick: ctypes.CDLL, error: type[Exception], memory_error: type[Exception]
    ) -> None:
        """quick: the library as ctypes.PyDLL, for calls shorter than a release of the interpreter's lock. error,
        memory_error: raised if the driver fails, or has no memory. AttributeError: the driver lacks functions.
        """
        self.library, self._quick = library, quick
        self._error, self._memory_error = error, memory_error
        later = {key: row for key, row in LATER_FUNCTIONS.items() if hasattr(library, row[0])}
        self._calls = {key: _declared(library, *row) for key, row in (FUNCTIONS | later).items()}
        self._address = {key: ctypes.cast(call, ctypes.c_void_p).value or 0 for key, call in self._calls.items()}
        self._start = _declared(quick, *FUNCTIONS["launch"])
        self._calls["memset_d8_async"] = _declared(quick, *FUNCTIONS["memset_d8_async"])
        self.pinned = PinnedMemory(library)
        self._graphs: Graphs | None = None
        with suppress(AttributeError):
            self._graphs = Graphs(library)
            self._address |= {"launch_graph": self._graphs.launch, "set_parameters": self._graphs.set_parameters}
        self._events: list[Event] = []
        self._memory = Memory()
        self._replay = replay_rows.chosen(np.zeros((0, 1 + ARGUMENTS), np.int64))  # loaded now, not during the first frame
        self._modules: dict[str, ctypes.c_void_p] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._shared: dict[int, int] = {}  # dynamic shared memory that is set, by kernel
        self._versions: dict[int, int] = {}  # PTX version of the code of functions; 0 if unknown

    # ---- one call
    def do(self, name: str, *arguments: int) -> None:
        """A call by its name in FUNCTIONS, now."""
        if code := self._calls[name](*arguments):
            raise self.error(code)

    def start(
        self, function: int, grid: Sequence[int], block: Sequence[int], shared: int, stream: Stream | None,
        values: Sequence[int],
    ) -> None:  # fmt: skip
        """Start a kernel now. struct.error for arguments that are no numbers."""
        memory, pack_into = _arguments(len(values))
        chunk = memory()  # arguments of 8 bytes, then their addresses: read during the call
        address = ctypes.addressof(chunk)
        pointers = address + 8 * len(values)
        pack_into(chunk, 0, *values, *range(address, pointers, 8))
        if code := self._start(function, *grid, *block, shared, handle(stream), pointers, 0):
            raise self.error(code)

    def synchronize(self) -> None:
        """Wait on the host for the GPU."""
        self._check("cuCtxSynchronize", self.library.cuCtxSynchronize())

    def event(self, timing: bool, wakes_host: bool) -> "Event":
        """See Device.event."""
        event, flags = ctypes.c_void_p(), (BLOCKING_SYNC if wakes_host else 0) | (0 if timing else DISABLE_TIMING)
        self._check("cuEventCreate", self.library.cuEventCreate(ctypes.byref(event), ctypes.c_uint(flags)))
        self._events.append(Event(self.library, self._quick, self._check, event))
        return self._events[-1]

    def can_wait_for_value(self) -> bool:
        """Whether streams of the GPU of the current context can wait for a value in memory."""
        if "wait_value" not in self._address:
            return False
        gpu, able = ctypes.c_int(), ctypes.c_int()
        if self.library.cuCtxGetDevice(ctypes.byref(gpu)):
            return False
        arguments = ctypes.byref(able), ctypes.c_int(CAN_USE_64_BIT_STREAM_MEM_OPS), gpu
        return not self.library.cuDeviceGetAttribute(*arguments) and bool(able.value)

    def pointer_attribute(self, pointer: int, attribute: int, value: ctypes.c_int | ctypes.c_uint) -> int:
        """CUresult of reading a CUpointer_attribute of an address into `value`."""
        where = ctypes.c_uint64(pointer)
        code: int = self.library.cuPointerGetAttribute(ctypes.byref(value), ctypes.c_int(attribute), where)
        return code

    def knows(self, pointer: int) -> bool:
        """Whether an address belongs to memory of the driver."""
        return not self.pointer_attribute(pointer, POINTER_MEMORY_TYPE, ctypes.c_uint())

    def _check(self, name: str, code: int) -> None:
        if code:
            raise self.error(code, f"{name} failed: ")

    def error(self, code: int, before: str = "") -> Exception:
        """The driver's error with this code; before: begins its text."""
        error_class = self._memory_error if code == OUT_OF_MEMORY else self._error
        return error_class(f"{before}{self._text(code)}")

    def _text(self, code: int) -> str:
        """What the driver says about a CUresult."""
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
        return (text.value or b"").decode() or f"CUDA error {code}"

    # ---- kernels
    def known(self, module: str, name: str, shared: int) -> int | None:
        """What `function` returned; None before it was called for so much shared memory."""
        function = self._functions.get((module, name))
        return function if function and (shared <= USUAL_SHARED or shared <= self._shared.get(function, 0)) else None

    def is_loaded(self, module: str) -> bool:
        """Whether `load` was called for a module."""
        return module in self._modules

    def load(self, modules: Mapping[str, bytes]) -> None:
        """Load modules by their code, without the interpreter's lock: launches, recordings and graphs take kernels of these.

        An error is that of the first one that cannot be loaded; those after it are not loaded.
        """
        handles = np.zeros(len(modules), np.int64)
        codes = [np.frombuffer(code, np.uint8) for code in modules.values()]
        targets = range(address_of(handles), address_of(handles) + handles.nbytes, handles.itemsize)
        rows = [self.call_record("load_module", target, address_of(code)) for target, code in zip(targets, codes)]
        failed = self.replay(np.array(rows, np.int64))
        count = len(modules) if failed < 0 else failed >> 32
        self._modules |= zip(list(modules)[:count], map(ctypes.c_void_p, handles.tolist()))
        if failed >= 0:
            raise self.error(failed & 0xFFFFFFFF, "cuModuleLoadData failed: ")

    def function(self, module: str, name: str, shared: int) -> int:
        """Handle of a kernel of a loaded module, for launches with `shared` bytes of dynamic shared memory."""
        handle = ctypes.c_void_p()
        code = self.library.cuModuleGetFunction(ctypes.byref(handle), self._modules[module], name.encode())
        self._check("cuModuleGetFunction", code)
        function = handle.value or 0
        if shared > max(USUAL_SHARED, self._shared.get(function, 0)):  # never reduced: recordings still need it
            code = self.library.cuFuncSetAttribute(handle, ctypes.c_int(MAX_DYNAMIC_SHARED_SIZE_BYTES), ctypes.c_int(shared))
            self._check("cuFuncSetAttribute", code)
            self._shared[function] = shared
        self._functions[module, name] = function
        return function

    def waits(self, module: str, function: int) -> bool:
        """Whether a kernel itself waits for the kernel before (simd.cuh): the encoder's do, in code for 9.0 and later."""
        if function not in self._versions:
            version = ctypes.c_int()
            self.library.cuFuncGetAttribute(ctypes.byref(version), ctypes.c_int(PTX_VERSION), ctypes.c_void_p(function))
            self._versions[function] = version.value
        return self._versions[function] >= 90 and module.partition("/")[0] not in OTHERS

    # ---- recordings
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
        n, queue = len(values), handle(stream)
        chunk, at, address = self._memory.take(16 * n + LAUNCH.size)
        struct.pack_into(f"{2 * n}Q", chunk, at, *[v & ALL_BITS for v in values], *range(address, address + 8 * n, 8))
        pointers, config = address + 8 * n, address + 16 * n
        launch = Launch(function, grid, block, shared, queue, pointers, early, chunk[at : at + 8 * n].view(np.int64))
        if early:
            sizes = (*grid, *block, shared, 0, queue, config + CONFIG_BYTES, 1)
            LAUNCH.pack_into(chunk, at + 16 * n, *sizes, PROGRAMMATIC_STREAM_SERIALIZATION, 0, 1)
            return self.call_record("launch_ex", config, function, pointers, 0), launch
        return self.call_record("launch", function, *grid, *block, shared, queue, pointers, 0), launch

    def joined(self, commands: Sequence[Command]) -> list[Command]:
        """The same commands in fewer calls: consecutive kernels of a stream become one graph, if the driver can make it."""
        joined: list[Command] = []

        def graph_stream(command: Command) -> int | None:
            return None if command.launch is None else command.launch.stream

        for stream, subset in groupby(commands, graph_stream):
            neighbours = list(subset)
            joined += neighbours if stream is None else self._as_graph(neighbours)
        return joined

    def _as_graph(self, commands: list[Command]) -> list[Command]:
        """A launch of their graph, behind a call for each kernel whose arguments differ between replays."""
        launches = [command.launch for command in commands if command.launch is not None]
        graph = self._graphs.chain(launches) if self._graphs is not None and len(commands) >= FEWEST else None
        if graph is None:
            return commands
        nodes = []
        for command, launch, node in zip(commands, launches, graph.nodes):
            if command.patches:
                chunk, at, address = self._memory.take(NODE.size)
                chunk[at : at + NODE.size] = np.frombuffer(node_parameters(launch), np.uint8)
                call_record = self.call_record("set_parameters", graph.executable, node, address)
                nodes.append(command._replace(call_record=call_record))
        names = KERNEL + ", ".join(command.name.removeprefix(KERNEL) for command in commands)
        return [*nodes, Command(names, self.call_record("launch_graph", graph.executable, launches[0].stream))]

    def replay(self, rows: np.ndarray) -> int:
        """See replay_rows."""
        return int(self._replay(rows))

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
            self.library.cuEventDestroy_v2(ctypes.c_void_p(event.handle))
        self._events.clear()
        for module in self._modules.values():
            self.library.cuModuleUnload(module)
        for kept in (self._modules, self._functions, self._shared, self._versions):
            kept.clear()


@cache
def _arguments(count: int) -> tuple[type[ctypes.Array], Callable[..., None]]:
    """(type of the memory of the arguments of a kernel and of their addresses, what writes both)."""
    return ctypes.c_uint64 * (2 * count + 1), struct.Struct(f"{count}q{count}Q").pack_into


def _declared(library: ctypes.CDLL, name: str, argument_types: str) -> Any:
    """A function of a library, which takes Python numbers from now on."""
    function = getattr(library, name)
    function.argtypes = [C_TYPES[letter] for letter in argument_types]
    return function


class Event:
    """See array.Event."""

    def __init__(
        self, library: ctypes.CDLL, quick: ctypes.CDLL, check: Callable[[str, int], None], event: ctypes.c_void_p
    ) -> None:
        """library, quick: see DriverCalls; check: raises if a CUresult is an error, given the function's name."""
        self._library, self._quick, self._check, self._event = library, quick, check, event
        self.handle = event.value or 0

    def query(self) -> bool:
        """See array.Event."""
        code = self._quick.cuEventQuery(self._event)
        if code != NOT_READY:
            self._check("cuEventQuery", code)
        return not code

    def synchronize(self) -> None:
        """See array.Event. Without the interpreter's lock if the event has not completed."""
        if not self.query():
            self._check("cuEventSynchronize", self._library.cuEventSynchronize(self._event))

    def time_till(self, after: "array.Event") -> float:
        """See array.Event."""
        time = ctypes.c_float()
        code = self._library.cuEventElapsedTime(ctypes.byref(time), self._event, ctypes.c_void_p(after.handle))
        self._check("cuEventElapsedTime", code)
        return time.value
