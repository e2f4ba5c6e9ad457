"""Stands in for `pycuda.driver`: the calls that cuda_src/device.py makes, over kernels compiled with g++.

    device.use_driver(driver.EmulatedDriver())

Device memory is host memory between canaries that are checked whenever the host waits: a kernel that writes outside its
arrays is found. Work is done at once, in the order of the calls. After `fail_after` launches the device is lost: the
next launch fails, or with `silent` it and what follows do nothing, and whoever waits is told, as of a faulting kernel.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from h264lite.cuda_src import compiler

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
            command += ["-I", str(compiler.write_tables(folder)), "-I", str(compiler.HERE), "-x", "c++"]
            command += [str(compiler.HERE / f"{name}.cu"), "-o", str(output)]
            result = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if result.returncode:
                raise compiler.CompileError(f"g++ refused {name}.cu:\n{result.stderr[-6000:]}")
            compiler.write_whole(target, output.read_bytes())
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
            driver.launches += 1
            driver.log.append((self.name, tuple(grid), tuple(block)))
            if driver.dead():
                if driver.silent:
                    return
                raise Error("cuLaunchKernel failed: an injected fault")
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
        self.driver = driver

    def synchronize(self) -> None:
        self.driver.check_memory()

    def wait_for_event(self, event: Any) -> None:
        assert event.recorded, "waits for an event that was not recorded yet"

    def is_done(self) -> bool:
        return True


class Event:
    def __init__(self, driver: "EmulatedDriver") -> None:
        self.driver, self.recorded = driver, False

    def record(self, stream: Any = None) -> "Event":
        self.recorded = True
        return self

    def synchronize(self) -> "Event":
        self.driver.check_memory()
        return self

    def query(self) -> bool:
        if self.driver.dead():
            raise Error("an injected fault: an illegal memory access was encountered")
        return not self.driver.stuck

    def time_since(self, other: Any) -> float:
        return 0.001

    def time_till(self, other: Any) -> float:
        return 0.001


class Context:
    depth: ClassVar[threading.local] = threading.local()
    driver: ClassVar["EmulatedDriver"]

    def push(self) -> None:
        self.depth.n = getattr(self.depth, "n", 0) + 1

    @classmethod
    def pop(cls) -> None:
        cls.depth.n -= 1
        assert cls.depth.n >= 0, "a context is popped that this thread did not push"

    @classmethod
    def synchronize(cls) -> None:
        cls.driver.check_memory()

    def detach(self) -> None:
        pass


class Card:
    def __init__(self, driver: "EmulatedDriver") -> None:
        self.driver = driver

    def name(self) -> str:
        return "emulated device"

    def compute_capability(self) -> tuple[int, int]:
        return self.driver.capability

    def get_attribute(self, attribute: str) -> int:
        return {"multiprocessors": 4, "shared": 227 << 10}[attribute]

    def retain_primary_context(self) -> Context:
        return Context()


class EmulatedTexture(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ("samples", "width", "height", "pitch"))


class EmulatedLibcuda:
    """The functions of libcuda that cuda_src/foreign.py calls; `ordered` notes which stream was ordered behind which.

    And those of cuda_src/papers/texture.py: `textures` are the objects that were made and not destroyed.
    """

    def __init__(self, driver: "EmulatedDriver") -> None:
        self.driver, self.ordered, self.last, self.ordinal = driver, [], 0, 0
        self.textures: dict[int, EmulatedTexture] = {}

    def cuTexObjectCreate(self, made: Any, resource: Any, texture: Any, view: Any) -> int:
        plane, how = resource._obj.res.pitch2D, texture._obj
        as_asked = resource._obj.kind == 3 and list(how.address_mode) == [1] * 3 and (how.filter_mode, how.flags) == (0, 1)
        if not as_asked or plane.pitch % 32 or plane.pointer % 256 or (plane.format, plane.channels) != (1, 1):
            return 1
        kept = EmulatedTexture(plane.pointer, plane.width, plane.height, plane.pitch)
        made._obj.value = ctypes.addressof(kept)
        self.textures[made._obj.value] = kept
        return 0

    def cuTexObjectDestroy(self, handle: Any) -> int:
        del self.textures[handle.value]
        return 0

    def cuEventCreate(self, event: Any, flags: Any) -> int:
        return 0

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        self.last = stream.value
        return 0

    def cuStreamWaitEvent(self, stream: Any, event: Any, flags: Any) -> int:
        self.ordered.append((self.last, stream.value))
        return 0

    def cuPointerGetAttribute(self, value: Any, attribute: Any, pointer: Any) -> int:
        inside = any(0 <= pointer.value - int(a) < a.nbytes for a in self.driver.allocations)
        value._obj.value = 2 if attribute.value == 2 else self.ordinal
        return 0 if inside else 1


class EmulatedDriver:
    """seed: order of the threads (0 ascending, 1 descending, else random); memory: bytes of the card."""

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
        self.Device = lambda ordinal: Card(self)
        self.Device.count = lambda: devices  # type: ignore[attr-defined]

    def init(self) -> None:
        pass

    def load_emulated(self, name: str) -> Module:
        return Module(self, library(str(build(name))))

    def dead(self) -> bool:
        return self.fail_after is not None and self.launches > self.fail_after

    def check_memory(self) -> None:
        if self.dead():
            raise Error("an injected fault: an illegal memory access was encountered")
        for allocation in self.allocations:
            allocation.check()

    def Stream(self) -> Stream:
        return Stream(self)

    def Event(self, flags: int = 0) -> Event:
        self.events += 1
        return Event(self)

    def mem_alloc(self, nbytes: int) -> Allocation:
        used = sum(a.nbytes for a in self.allocations) + nbytes
        if used > self.memory:
            raise OutOfMemory("cuMemAlloc failed: out of memory")
        self.allocated += 1
        self.most = max(self.most, used)
        return Allocation(self, nbytes)

    def mem_get_info(self) -> tuple[int, int]:
        return self.memory - sum(a.nbytes for a in self.allocations), self.memory

    def pagelocked_empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)

    def memcpy_htod_async(self, target: int, host: np.ndarray, stream: Any = None) -> None:
        if not self.dead():
            ctypes.memmove(target, host.ctypes.data, host.nbytes)

    def memcpy_dtoh_async(self, host: np.ndarray, source: int, stream: Any = None) -> None:
        if self.dead():
            return
        self.check_memory()
        ctypes.memmove(host.ctypes.data, source, host.nbytes)

    def memcpy_dtod_async(self, target: int, source: int, nbytes: int, stream: Any = None) -> None:
        ctypes.memmove(target, source, nbytes)

    def memset_d8_async(self, target: int, byte: int, count: int, stream: Any = None) -> None:
        ctypes.memset(target, byte, count)
