"""Stands in for `pycuda.driver`: the calls that cuda_src/runtime/device.py makes, over kernels compiled with g++.

    device.use_driver(driver.EmulatedDriver())

Device memory is host memory between canaries that are checked whenever the host waits: a kernel that writes outside its
arrays is found. Work is done at once, in the order of the calls. After `fail_after` launches the device is lost: the
next launch fails, or with `silent` it and what follows do nothing, and waiting callers are told, as after a faulting kernel.

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
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from h264lite.cuda_src.runtime import compiler

HERE = Path(__file__).parent
BUILT = compiler.cache_folder()  # whatever tests set H264LITE_CACHE to: g++ takes a minute for all kernels
CANARY = 1024  # bytes before and after each allocation
POISON = 0xCB
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
        if not ((before == POISON).all() and (after == POISON).all()):
            raise Error(f"a kernel wrote outside an array of {self.nbytes} bytes")

    def free(self) -> None:
        self.driver.allocations.remove(self)


class Function:
    def __init__(self, driver: "EmulatedDriver", shared_object: ctypes.CDLL, name: str) -> None:
        self.driver, self.name = driver, name
        try:
            self.address = ctypes.cast(getattr(shared_object, name), ctypes.c_void_p).value
        except AttributeError:
            raise Error(f"no kernel {name}") from None
        self.start = shared_object.emulated_launch
        sizes = [ctypes.c_uint] * 6
        self.start.argtypes = [ctypes.c_void_p, *sizes, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        self.formats = ""
        self.dynamic_limit = 48 << 10

    def prepare(self, formats: str) -> "Function":
        self.formats = formats
        return self

    def set_attribute(self, attribute: int, value: int) -> None:
        self.dynamic_limit = value

    def prepared_async_call(self, grid: Any, block: Any, stream: Any, *arguments: int, shared_size: int = 0) -> None:
        if len(arguments) != len(self.formats):
            raise TypeError(f"{self.name}: {len(arguments)} arguments for '{self.formats}'")
        for kind, value in zip(self.formats, arguments):
            if kind == "i" and not -(1 << 31) <= value < 1 << 31:
                raise OverflowError(f"{self.name}: {value} is no int32")
        if shared_size > self.dynamic_limit:
            raise Error(f"{self.name}: {shared_size} bytes of shared memory, {self.dynamic_limit} allowed")
        values = np.array([int(v) for v in arguments], np.int64)
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
            for kind, value in zip(self.formats, arguments):
                gpu.owns(int(value) if kind == "P" else 0)
            code = self.start(self.address, *grid, *block, shared_size, values.ctypes.data, len(values), driver.seed)
        if code:
            raise Error(f"emulated launch of {self.name} ended with {code}")


class Module:
    def __init__(self, driver: "EmulatedDriver", shared_object: ctypes.CDLL) -> None:
        self.driver, self.shared_object = driver, shared_object

    def get_function(self, name: str) -> Function:
        return Function(self.driver, self.shared_object, name)


class Stream:
    handle = 77

    def __init__(self, driver: "EmulatedDriver") -> None:
        self.driver, self.gpu = driver, driver.current()

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

    def time_since(self, other: Any) -> float:
        return self.time_till(other)

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


class EmulatedLibcuda:
    """The functions of libcuda that cuda_src/runtime/foreign.py calls; `ordered` records which stream is ordered after which.

    And those of papers/kernels/texture.py: `textures` are the objects that were made and not destroyed.
    """

    def __init__(self, driver: "EmulatedDriver") -> None:
        self.driver, self.ordered, self.last = driver, [], 0
        self.ordinal: int | None = None  # said of all pointers, if it is not None
        self.textures: dict[int, EmulatedTexture] = {}

    def cuTexObjectCreate(self, handle: Any, resource: Any, texture: Any, view: Any) -> int:
        plane, how = resource._obj.res.pitch2D, texture._obj
        as_asked = resource._obj.kind == 3 and list(how.address_mode) == [1] * 3 and (how.filter_mode, how.flags) == (0, 1)
        if not as_asked or plane.pitch % 32 or plane.pointer % 256 or (plane.format, plane.channels) != (1, 1):
            return 1
        kept = EmulatedTexture(plane.pointer, plane.width, plane.height, plane.pitch)
        handle._obj.value = ctypes.addressof(kept)
        self.textures[handle._obj.value] = kept
        return 0

    def cuTexObjectDestroy(self, handle: Any) -> int:
        del self.textures[handle.value]
        return 0

    def cuEventCreate(self, event: Any, flags: Any) -> int:
        return 0

    def cuEventDestroy_v2(self, event: Any) -> int:
        return 0

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        self.last = stream.value
        return 0

    def cuStreamWaitEvent(self, stream: Any, event: Any, flags: Any) -> int:
        self.ordered.append((self.last, stream.value))
        return 0

    def cuPointerGetAttribute(self, value: Any, attribute: Any, pointer: Any) -> int:
        allocations = list(self.driver.allocations)
        ordinal = next((a.gpu.ordinal for a in allocations if 0 <= pointer.value - int(a) < a.nbytes), None)
        if ordinal is None:
            return 1
        value._obj.value = 2 if attribute.value == 2 else ordinal if self.ordinal is None else self.ordinal
        return 0


class EmulatedDriver:
    """seed: order of the threads (0 ascending, 1 descending, else random); memory: bytes of the GPU."""

    Error = Error
    MemoryError = OutOfMemory
    Context = Context

    class device_attribute:
        MULTIPROCESSOR_COUNT = "multiprocessors"
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = "shared"

    class function_attribute:
        MAX_DYNAMIC_SHARED_SIZE_BYTES = 8

    class event_flags:
        BLOCKING_SYNC = 1
        DISABLE_TIMING = 2

    def __init__(
        self, seed: int = 0, memory: int = 4 << 30, capability: tuple[int, int] = (9, 0), devices: int = 1
    ) -> None:
        self.seed, self.memory, self.capability, self.devices = seed, memory, capability, devices
        self.allocations: list[Allocation] = []
        self.lock = threading.RLock()
        self.launches = self.events = self.allocated = self.most = 0
        self.fail_after: int | None = None
        self.silent = self.stuck = False  # stuck: no event ever comes for who looks
        self.log: list[tuple] = []
        self.libcuda = EmulatedLibcuda(self)
        Context.driver = self
        self.gpus = [Gpu(self, ordinal) for ordinal in range(devices)]
        self.Device = lambda ordinal: self.gpus[ordinal]
        self.Device.count = lambda: devices  # type: ignore[attr-defined]

    def init(self) -> None:
        pass

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

    def memcpy_dtod_async(self, target: int, source: int, nbytes: int, stream: Any = None) -> None:
        self._on(stream, target).owns(source)
        ctypes.memmove(target, source, nbytes)

    def memset_d8_async(self, target: int, byte: int, count: int, stream: Any = None) -> None:
        self._on(stream, target)
        ctypes.memset(target, byte, count)

    def _on(self, stream: Any, pointer: int) -> Gpu:
        gpu = self.current(stream)
        gpu.owns(pointer)
        return gpu
