"""Stands in for `pycuda.driver` and for the driver's library, over kernels compiled with g++.

    device.use_driver(driver.EmulatedDriver())

PyCuda (cuda_src/runtime/pycuda_driver.py) takes an `EmulatedDriver` for that module; `EmulatedLibcuda` has the functions
of the library. A module's code is its name. Device memory is host memory between canaries that are checked whenever the host
waits: a kernel that writes outside its arrays is found. Work is done at once, in the order of the calls. After `fail_after`
launches the device is lost: the next launch fails, or with `silent` it and what follows do nothing, and waiting callers are
told, as after a faulting kernel.

Of several GPUs (`devices`) each has its own memory, context and faults (`GPUs[1].fail_after`); work for one in the context
of another, with its streams, events or arrays, is an error as it is on real ones.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from h264lite.cuda_src.runtime import compiler
from h264lite.cuda_src.runtime.driver_calls import C_TYPES, FUNCTIONS, LATER_FUNCTIONS, NOT_READY, OUT_OF_MEMORY, DriverCalls
from h264lite.cuda_src.runtime.graph import NODE
from h264lite.cuda_src.runtime.pycuda_driver import PyCuda

HERE = Path(__file__).parent
BUILT = compiler.cache_folder()  # whatever tests set H264LITE_CACHE to: g++ takes a minute for all kernels
FAILED = 719  # CUresult of errors for which the emulator has no other
CANARY = 1024  # bytes before and after each allocation
POISON = 0xCB
UNTOUCHED = bytes([POISON]) * 2 * CANARY  # compared as bytes: ten times as fast as arrays
FLAGS = ("-O2", "-std=c++17", "-shared", "-fPIC", "-fno-strict-aliasing", "-w", "-DH264LITE_EMULATED")


def build(name: str) -> Path:
    """The shared object of one kernel file, compiled once for its contents."""
    header = b"".join((HERE / name).read_bytes() for name in ("cuda_emulator.h", "cuda_intrinsics.h"))
    key = hashlib.sha256(header + compiler.module_key(name).encode() + " ".join(FLAGS).encode()).hexdigest()[:24]
    folder = BUILT
    target = folder / f"{name.replace('/', '-')}-emulated-{key}.so"
    if not target.exists():
        with tempfile.TemporaryDirectory() as scratch:
            output = Path(scratch) / "kernel.so"
            command = [os.environ.get("CXX", "g++"), *FLAGS, "-include", str(HERE / "cuda_emulator.h")]
            command += ["-I", str(compiler.write_headers(folder)), "-I", str(compiler.HERE), "-x", "c++"]
            command += [str(compiler.source_path(name)), "-o", str(output)]
            result = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if result.returncode:
                raise compiler.CompileError(f"g++ refused {name}.cu:\n{result.stderr[-6000:]}")
            compiler.write_atomically(target, output.read_bytes())
    return target


@cache
def library(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


class Error(Exception):
    pass


class OutOfMemory(Error):
    pass


class Allocation:
    def __init__(self, driver: "EmulatedDriver", nbytes: int) -> None:
        self.memory = np.full(nbytes + 2 * CANARY, POISON, np.uint8)
        self.nbytes = nbytes
        self.driver = driver
        self.gpu = driver.current()
        skew = -self.memory.ctypes.data % 256 + 256  # 256-byte alignment, as cudaMalloc gives
        self.start = skew
        driver.allocations.append(self)

    def __int__(self) -> int:
        return self.memory.ctypes.data + self.start

    def check(self) -> None:
        before, after = self.memory[: self.start], self.memory[self.start + self.nbytes :]
        if not (UNTOUCHED.startswith(before.tobytes()) and UNTOUCHED.startswith(after.tobytes())):
            raise Error(f"a kernel wrote outside an array of {self.nbytes} bytes")

    def free(self) -> None:
        self.driver.allocations.remove(self)


class Function:
    def __init__(self, module: "Module", name: str) -> None:
        self.driver, self.module, self.name = module.driver, module, name
        shared_object = module.shared_object
        try:
            self.address = ctypes.cast(getattr(shared_object, name), ctypes.c_void_p).value
        except AttributeError:
            raise Error(f"no kernel {name}") from None
        self.start = shared_object.emulated_launch
        sizes = [ctypes.c_uint] * 6
        self.start.argtypes = [ctypes.c_void_p, *sizes, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        self.count: int | None = None  # of arguments
        self.dynamic_limit = 48 << 10

    def launch(self, grid: Any, block: Any, stream: Any, values: np.ndarray, shared: int) -> None:
        """values: int64[n], the arguments."""
        if self.count not in (None, len(values)):
            raise TypeError(f"{self.name}: {len(values)} arguments, and {self.count} before")
        self.count = len(values)
        if shared > self.dynamic_limit:
            raise Error(f"{self.name}: {shared} bytes of shared memory, {self.dynamic_limit} allowed")
        driver = self.driver
        with driver.lock:
            gpu = driver.current(stream)
            driver.launches += 1
            gpu.launches += 1
            driver.log.append((self.name, tuple(grid), tuple(block)))
            if gpu.dead():
                if gpu.silent or driver.silent:
                    return
                raise Error("cuLaunchKernel failed: an injected fault")
            for value in values.tolist():
                gpu.owns(value if abs(value) >= 1 << 31 else 0)
            code = self.start(self.address, *grid, *block, shared, values.ctypes.data, len(values), driver.seed)
        if code:
            raise Error(f"emulated launch of {self.name} ended with {code}")


class Module:
    def __init__(self, driver: "EmulatedDriver", shared_object: ctypes.CDLL) -> None:
        self.driver, self.shared_object = driver, shared_object

    def get_function(self, name: str) -> Function:
        return Function(self, name)


class Stream:
    def __init__(self, driver: "EmulatedDriver") -> None:
        self.driver, self.gpu, self.handle = driver, driver.current(), id(self)
        driver.streams[self.handle] = self

    def synchronize(self) -> None:
        self.gpu.check_memory()

    def wait_for_event(self, event: Any) -> None:
        assert event.recorded, "waits for an event that was not recorded yet"
        self.driver.current(self)

    def is_done(self) -> bool:
        return True


class Event:
    def __init__(self, driver: "EmulatedDriver") -> None:
        self.driver, self.recorded, self.gpu = driver, False, driver.current()

    def record(self, stream: Any = None) -> "Event":
        if self.driver.current(stream) is not self.gpu:
            raise Error("cuEventRecord failed: invalid resource handle")
        self.recorded = True
        return self

    def synchronize(self) -> None:
        self.gpu.check_memory()

    def query(self) -> bool:
        if self.gpu.dead():
            raise Error("an injected fault: an illegal memory access was encountered")
        return not (self.driver.stuck or self.gpu.stuck)

    def time_till(self, other: Any) -> float:
        self.gpu.check_memory()
        return 0.001


class Context:
    """Each thread has a stack of them. The primary context of a GPU lives as long as somebody has it, and page-locked memory
    as long as the context; as with PyCUDA, a thread that did not get it does not give it back either.
    """

    threads: ClassVar[threading.local] = threading.local()
    driver: ClassVar["EmulatedDriver"]

    def __init__(self, gpu: "Gpu") -> None:
        self.gpu, self.thread, self.valid = gpu, threading.get_ident(), True
        gpu.holders += 1

    @classmethod
    def stack(cls) -> list["Gpu"]:
        return vars(cls.threads).setdefault("gpus", [])

    def push(self) -> None:
        self.stack().append(self.gpu)

    @classmethod
    def pop(cls) -> None:
        assert cls.stack(), "a context is popped that this thread did not push"
        cls.stack().pop()

    @classmethod
    def synchronize(cls) -> None:
        cls.driver.check_memory()

    def detach(self) -> None:
        if not self.valid:
            raise Error("context::detach failed: invalid device context - cannot detach from invalid context")
        self.valid = False
        if threading.get_ident() == self.thread:
            self.gpu.given_back()


class Gpu:
    """One of the driver's; its faults are its own, those of the driver are everybody's."""

    def __init__(self, driver: "EmulatedDriver", ordinal: int) -> None:
        self.driver, self.ordinal = driver, ordinal
        self.launches = self.allocated = self.holders = 0
        self.page_locked: list[weakref.ref[np.ndarray]] = []
        self.fail_after: int | None = None
        self.silent = self.stuck = False

    def name(self) -> str:
        return "emulated device"

    def compute_capability(self) -> tuple[int, int]:
        return self.driver.capability

    def get_attribute(self, attribute: str) -> int:
        return {"multiprocessors": 4, "shared": 227 << 10}[attribute]

    def total_memory(self) -> int:
        return self.driver.memory

    def retain_primary_context(self) -> Context:
        return Context(self)

    def dead(self) -> bool:
        driver = self.driver
        mine = self.fail_after is not None and self.launches > self.fail_after
        return mine or (driver.fail_after is not None and driver.launches > driver.fail_after)

    def given_back(self) -> None:
        """Called by an owner of the context; after the last one page-locked memory must not be read."""
        self.holders -= 1
        if not self.holders:
            for reference in self.page_locked:
                if (array := reference()) is not None:
                    array.reshape(-1).view(np.uint8)[:] = POISON
            self.page_locked.clear()

    def check_memory(self) -> None:
        if self.dead():
            raise Error("an injected fault: an illegal memory access was encountered")
        for allocation in list(self.driver.allocations):
            if allocation.gpu is self:
                allocation.check()

    def owns(self, pointer: int) -> None:
        """Error if the pointer is another GPU's."""
        if len(self.driver.gpus) > 1 and pointer:
            for allocation in list(self.driver.allocations):
                if allocation.gpu is not self and 0 <= pointer - int(allocation) < allocation.nbytes:
                    raise Error(f"an array of GPU {allocation.gpu.ordinal} is used on GPU {self.ordinal}")


class EmulatedTexture(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ("samples", "width", "height", "pitch"))


def number(argument: Any) -> int:
    """Of a number, or of one of ctypes."""
    return int(getattr(argument, "value", argument) or 0)


class InLibrary(threading.local):
    """Whether a thread is within a function of the library: C on a real machine, where no handler of a signal runs."""

    now = False


in_library = InLibrary()


def guarded(function: Callable[..., Any], texts: threading.local) -> Callable[..., int]:
    """The function with a CUresult in place of None or an exception, whose text is kept."""

    def call(*arguments: Any) -> int:
        before, in_library.now = in_library.now, True
        try:
            return function(*arguments) or 0
        except OutOfMemory as error:
            texts.last = str(error)
            return OUT_OF_MEMORY
        except Exception as error:
            texts.last = str(error) if isinstance(error, Error) else repr(error)
            return FAILED
        finally:
            in_library.now = before

    return call


class EmulatedLibcuda:
    """The driver's library: the functions that cuda_src/runtime calls, and those of papers/kernels/texture.py.

    What can be recorded is called by address. `ordered` records which stream is ordered after which, if one of them is
    another library's; `textures` are the objects that were made and not destroyed.
    """

    def __init__(self, driver: "EmulatedDriver") -> None:
        self.driver, self.ordered, self.last = driver, [], 0
        self.ordinal: int | None = None  # said of all pointers, if it is not None
        self.textures: dict[int, EmulatedTexture] = {}
        self.objects: dict[int, Any] = {}  # events, modules and kernels by handle
        self.texts = threading.local()
        self.graphs: list[list[tuple[bytes, np.ndarray]]] = []  # kernels: parameters and arguments
        for key in (*FUNCTIONS, "wait_value"):
            self._by_address(*(FUNCTIONS | LATER_FUNCTIONS)[key], lambda *given, key=key: getattr(self, f"_{key}")(*given))
        self._by_address("cuGraphLaunch", "LL", self._launch_graph)
        self._by_address("cuGraphExecKernelNodeSetParams_v2", "LLL", self._set_parameters)
        for name in dir(type(self)):
            if name.startswith("cu"):
                setattr(self, name, guarded(getattr(self, name), self.texts))

    def _by_address(self, name: str, kinds: str, function: Callable[..., None]) -> None:
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[C_TYPES[kind] for kind in kinds])
        setattr(self, name, prototype(guarded(function, self.texts)))

    def _keep(self, pointer: Any, thing: Any) -> None:
        """`thing`, whose handle is written to a pointer."""
        self.objects[id(thing)] = thing
        pointer._obj.value = id(thing)

    def _is_foreign(self, stream: int) -> bool:
        return stream != 0 and stream not in self.driver.streams

    def cuGetErrorString(self, code: Any, text: Any) -> None:
        text._obj.value = getattr(self.texts, "last", "").encode()

    # ---- contexts
    def cuCtxGetCurrent(self, context: Any) -> None:
        context._obj.value = id(Context.stack()[-1]) if Context.stack() else None

    def cuCtxPopCurrent_v2(self, context: Any) -> None:
        Context.pop()

    def cuCtxGetDevice(self, gpu: Any) -> None:
        gpu._obj.value = self.driver.current().ordinal

    def cuDeviceGetAttribute(self, value: Any, attribute: Any, gpu: Any) -> None:
        value._obj.value = self.driver.can_wait

    def cuCtxSynchronize(self) -> None:
        Context.synchronize()

    # ---- events
    def cuEventCreate(self, event: Any, flags: Any) -> None:
        self._keep(event, self.driver.Event(number(flags)))

    def cuEventDestroy_v2(self, event: Any) -> None:
        del self.objects[number(event)]

    def cuEventQuery(self, event: Any) -> int:
        return 0 if self.objects[number(event)].query() else NOT_READY

    def cuEventSynchronize(self, event: Any) -> None:
        self.objects[number(event)].synchronize()

    def cuEventElapsedTime(self, time: Any, before: Any, after: Any) -> None:
        time._obj.value = self.objects[number(before)].time_till(self.objects[number(after)])

    def _record(self, event: int, stream: int) -> None:
        self.last = self.objects[event].last = stream
        self.objects[event].record(self.driver.streams.get(stream))

    def _wait(self, stream: int, event: int, flags: int) -> None:
        first = self.objects[event]
        assert first.recorded, "waits for an event that was not recorded yet"
        if self._is_foreign(stream) or self._is_foreign(first.last):
            self.ordered.append((first.last, stream))
        if stream in self.driver.streams:
            self.driver.streams[stream].wait_for_event(first)

    def _wait_value(self, stream: int, address: int, value: int, flags: int) -> None:
        assert flags == 1
        self.driver.wait_value(host_memory(address, 8).view(np.int64), value)

    # ---- memory
    def cuMemHostRegister_v2(self, address: Any, size: Any, flags: Any) -> int:
        return FAILED  # page-locked memory is PyCUDA's

    cuMemHostUnregister = cuMemHostGetDevicePointer_v2 = cuMemHostRegister_v2

    def cuPointerGetAttribute(self, value: Any, attribute: Any, pointer: Any) -> int:
        allocations = list(self.driver.allocations)
        ordinal = next((a.gpu.ordinal for a in allocations if 0 <= pointer.value - int(a) < a.nbytes), None)
        if ordinal is None:
            return 1
        value._obj.value = 2 if attribute.value == 2 else ordinal if self.ordinal is None else self.ordinal
        return 0

    def _memcpy_htod_async(self, target: int, host: int, nbytes: int, stream: int) -> None:
        self.driver.memcpy_htod_async(target, host_memory(host, nbytes), self.driver.streams.get(stream))

    def _memcpy_dtoh_async(self, host: int, source: int, nbytes: int, stream: int) -> None:
        self.driver.memcpy_dtoh_async(host_memory(host, nbytes), source, self.driver.streams.get(stream))

    def _memset_d8_async(self, target: int, byte: int, count: int, stream: int) -> None:
        self.driver.memset_d8_async(target, byte, count, self.driver.streams.get(stream))

    # ---- kernels
    def _load_module(self, module: int, code: int) -> None:
        loaded = self.driver.load_emulated(ctypes.string_at(code).decode())
        self.objects[id(loaded)] = loaded
        ctypes.c_uint64.from_address(module).value = id(loaded)

    def cuModuleUnload(self, module: Any) -> None:
        gone = self.objects.pop(number(module))
        for handle in [handle for handle, thing in self.objects.items() if getattr(thing, "module", None) is gone]:
            del self.objects[handle]

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> None:
        self._keep(function, self.objects[number(module)].get_function(name.decode()))

    def cuFuncSetAttribute(self, function: Any, attribute: Any, value: Any) -> None:
        assert number(attribute) == 8
        self.objects[number(function)].dynamic_limit = number(value)

    def cuFuncGetAttribute(self, value: Any, attribute: Any, function: Any) -> None:
        value._obj.value = 0

    def _launch(self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int,
                pointers: int, extra: int) -> None:  # fmt: skip
        queue, values = self.driver.streams.get(stream), arguments_at(pointers)
        self.objects[function].launch((gx, gy, gz), (bx, by, bz), queue, values, shared)

    # ---- graphs: each has a copy of the arguments that its kernels had when they were added, until a call replaces them
    def cuGraphCreate(self, graph: Any, flags: Any) -> None:
        self.graphs.append([])
        graph._obj.value = len(self.graphs)

    def cuGraphAddKernelNode_v2(self, node: Any, graph: Any, before: Any, count: Any, parameters: bytes) -> None:
        kernels = self.graphs[graph.value - 1]
        kernels.append((parameters, arguments_at(NODE.unpack(parameters)[8])))
        node._obj.value = len(kernels)

    def cuGraphAddDependencies_v2(self, graph: Any, before: Any, after: Any, edge: bytes, count: Any) -> None:
        assert after._obj.value == before._obj.value + 1

    def cuGraphInstantiateWithFlags(self, executable: Any, graph: Any, flags: Any) -> None:
        executable._obj.value = graph.value

    def cuGraphDestroy(self, graph: Any) -> None:
        self.graphs[graph.value - 1].clear()

    def cuGraphExecDestroy(self, graph: Any) -> None:
        pass

    def _set_parameters(self, graph: int, node: int, parameters: int) -> None:
        new, (before, _) = ctypes.string_at(parameters, NODE.size), self.graphs[graph - 1][node - 1]
        assert NODE.unpack(new)[:8] == NODE.unpack(before)[:8], "another kernel, or other sizes"
        self.graphs[graph - 1][node - 1] = before, arguments_at(NODE.unpack(new)[8])

    def _launch_graph(self, graph: int, stream: int) -> None:
        self.driver.graph_launches += 1
        for parameters, values in self.graphs[graph - 1]:
            function, *sizes, shared = NODE.unpack(parameters)[:8]
            self.objects[function].launch(sizes[:3], sizes[3:], self.driver.streams.get(stream), values, shared)

    # ---- textures
    def cuTexObjectCreate(self, handle: Any, resource: Any, texture: Any, view: Any) -> int:
        plane, how = resource._obj.res.pitch2D, texture._obj
        as_asked = resource._obj.kind == 3 and list(how.address_mode) == [1] * 3 and (how.filter_mode, how.flags) == (0, 1)
        if not as_asked or plane.pitch % 32 or plane.pointer % 256 or (plane.format, plane.channels) != (1, 1):
            return 1
        kept = EmulatedTexture(plane.pointer, plane.width, plane.height, plane.pitch)
        handle._obj.value = ctypes.addressof(kept)
        self.textures[handle._obj.value] = kept
        return 0

    def cuTexObjectDestroy(self, handle: Any) -> None:
        del self.textures[handle.value]


def host_memory(address: int, nbytes: int) -> np.ndarray:
    """uint8[nbytes] of the host at an address."""
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), np.uint8)


def arguments_at(pointers: int) -> np.ndarray:
    """int64[n]: a copy of a kernel's arguments of 8 bytes, which lie just before their addresses."""
    first = ctypes.c_uint64.from_address(pointers).value
    return host_memory(first, pointers - first).view(np.int64).copy()


class EmulatedDriver(PyCuda):
    """seed: order of the threads (0 ascending, 1 descending, else random); memory: bytes of the GPU."""

    Error = Error
    MemoryError = OutOfMemory
    Context = Context

    class device_attribute:
        MULTIPROCESSOR_COUNT = "multiprocessors"
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = "shared"

    def __init__(
        self, seed: int = 0, memory: int = 4 << 30, capability: tuple[int, int] = (9, 0), devices: int = 1
    ) -> None:
        super().__init__(self)
        self.seed, self.memory, self.capability, self.devices = seed, memory, capability, devices
        self.streams: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()  # by handle
        self.allocations: list[Allocation] = []
        self.lock = threading.RLock()
        self.launches = self.graph_launches = self.events = self.allocated = self.most = 0
        self.fail_after: int | None = None
        self.silent = self.stuck = False  # stuck: no event ever comes for who looks
        self.can_wait = False  # whether streams can wait for a value: a test says what `wait_value` does
        self.log: list[tuple] = []
        self.library = self.libcuda = EmulatedLibcuda(self)
        Context.driver = self
        self.gpus = [Gpu(self, ordinal) for ordinal in range(devices)]
        self.Device = lambda ordinal: self.gpus[ordinal]
        self.Device.count = lambda: devices  # type: ignore[attr-defined]

    def init(self) -> None:
        pass

    def calls(self) -> DriverCalls:
        return DriverCalls(self.libcuda, self.libcuda, Error, OutOfMemory)  # type: ignore[arg-type]

    def kernel_code(self, modules: Sequence[str], capability: tuple[int, int]) -> list[bytes]:
        return [module.encode() for module in modules]

    def wait_value(self, word: np.ndarray, value: int) -> None:
        raise Error("no test said how a stream waits")

    def load_emulated(self, name: str) -> Module:
        return Module(self, library(str(build(name))))

    def current(self, of: Any = None) -> Gpu:
        """The GPU of this thread's context; Error if there is none, or a stream is another GPU's."""
        stack = [gpu for gpu in Context.stack() if gpu.driver is self]
        if not stack and len(self.gpus) > 1:
            raise Error("no context is current to this thread")
        gpu = stack[-1] if stack else self.gpus[0]
        if of is not None and of.gpu is not gpu:
            raise Error("invalid resource handle: a stream of another GPU")
        return gpu

    def check_memory(self) -> None:
        self.current().check_memory()

    def Stream(self) -> Stream:
        return Stream(self)

    def Event(self, flags: int = 0) -> Event:
        self.events += 1
        return Event(self)

    def mem_alloc(self, nbytes: int) -> Allocation:
        if (used := self._used() + nbytes) > self.memory:
            raise OutOfMemory("cuMemAlloc failed: out of memory")
        self.allocated += 1
        self.current().allocated += 1
        self.most = max(self.most, used)
        return Allocation(self, nbytes)

    def mem_get_info(self) -> tuple[int, int]:
        return self.memory - self._used(), self.memory

    def _used(self) -> int:
        gpu = self.current()
        return sum(a.nbytes for a in list(self.allocations) if a.gpu is gpu)

    def pagelocked_empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        array = np.empty(shape, dtype)
        self.current().page_locked.append(weakref.ref(array))
        return array

    def memcpy_htod_async(self, target: int, host: np.ndarray, stream: Any = None) -> None:
        if not self._on(stream, target).dead():
            ctypes.memmove(target, host.ctypes.data, host.nbytes)

    def memcpy_dtoh_async(self, host: np.ndarray, source: int, stream: Any = None) -> None:
        if not (gpu := self._on(stream, source)).dead():
            gpu.check_memory()
            ctypes.memmove(host.ctypes.data, source, host.nbytes)

    def memset_d8_async(self, target: int, byte: int, count: int, stream: Any = None) -> None:
        self._on(stream, target)
        ctypes.memset(target, byte, count)

    def _on(self, stream: Any, pointer: int) -> Gpu:
        gpu = self.current(stream)
        gpu.owns(pointer)
        return gpu
