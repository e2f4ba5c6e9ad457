"""One GPU: context, streams, events, memory, kernels; failures of driver calls become GpuLost or DeviceMemoryError here.

It uses the primary context of the device, so that arrays of PyTorch and CuPy on the same GPU can be read. Each thread pushes
and pops the context around its work (`with device:`). Importing this file imports no CUDA. Arrays and page-locked buffers
come from pools: after the first frames of an encoder nothing is allocated.
"""

import math
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, TypeVar

import numpy as np

from .array import DeviceArray, DType, Event, Stream, address_of, handle
from .driver import OLDEST, available, count, count_gpus, load_driver, too_old, use_driver
from .driver_calls import STREAM_WAIT_VALUE_EQ
from .library import DeviceMemoryError, DeviceUnavailable, GpuLost
from .modules import Modules
from .pool import Allocation, MemoryPool, Pool, allocation_bytes
from .recording import KERNEL, NO_BUFFERS, HostBuffers, Recording

__all__ = [
    "Device", "DeviceArray", "DeviceMemoryError", "DeviceUnavailable", "GpuLost", "allocated_bytes", "available",
    "count", "load_driver", "use_driver",
]  # fmt: skip

Result = TypeVar("Result")
SYNCHRONIZE, EVENT = "synchronize", "an event"  # in messages
OFTEN = 5  # replays of a recording before its kernel launches become graphs, which cost as much as some replays

_in_use: "weakref.WeakSet[Device]" = weakref.WeakSet()
_of_parents: list["Device"] = []  # in a fork: no driver call succeeds for them, and none may be made when they are dropped
if hasattr(os, "register_at_fork"):  # absent on Windows
    os.register_at_fork(after_in_child=lambda: _of_parents.extend(_in_use))


def allocated_bytes() -> tuple[int, int]:
    """(bytes of GPU memory, bytes of page-locked memory) that this process has allocated, on all GPUs together."""
    allocated = [gpu.allocated_bytes for gpu in list(_in_use)]
    return sum(memory for memory, _ in allocated), sum(host for _, host in allocated)


class Device:
    """One GPU in use. Enter it (`with device:`) in every thread that works with it."""

    tile_rows = 4  # maximum macroblock rows of a tile of mode decision; fewer may be faster on another GPU
    free_idle: ClassVar[Callable[[], bool]] = staticmethod(lambda: False)  # frees memory of closed encoders: idle.py

    def __init__(self, ordinal: int = 0) -> None:
        self.driver = load_driver()
        count = count_gpus(self.driver)
        if ordinal >= count:
            raise DeviceUnavailable(f"device {ordinal} was asked for, and the driver reports {count}")
        gpu = self.driver.properties(ordinal)
        self.ordinal = ordinal
        self.name = gpu.name + (f" (cuda:{ordinal})" if count > 1 else "")
        self.capability, self.multiprocessors, self.shared_limit = gpu.capability, gpu.multiprocessors, gpu.shared_limit
        if self.capability < OLDEST:
            raise DeviceUnavailable(too_old(gpu))
        try:
            self.calls = self.driver.calls()
            self.context = self.driver.retain(ordinal)
        except AttributeError as error:
            raise DeviceUnavailable(f"the NVIDIA driver is too old ({error})") from None
        except self.driver.Error as error:
            raise DeviceUnavailable(f"{self.name} gives no context ({error})") from None
        self.lost: str | None = None
        self._recording: Recording | None = None
        self._modules = Modules(self.calls, self.capability, self.driver.kernel_code, self._do, self)
        self._lock = threading.RLock()
        self._memory = MemoryPool()
        self._pinned: list[np.ndarray] = []
        self._streams: Pool[Stream] = Pool()
        self._events: defaultdict[tuple[bool, bool], Pool[Event]] = defaultdict(Pool)  # by the arguments of `event`
        self._kept: dict[tuple, DeviceArray] = {}
        _in_use.add(self)

    # ---- context
    def __enter__(self) -> "Device":
        self.check()
        try:
            self.context.push()
        except self.driver.Error as error:  # any call may report an earlier kernel failure
            raise self.failed("a push of its context", error) from error
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.context.pop()
        except self.driver.Error as error:
            if not self.lost:
                raise self.failed("a pop of its context", error) from error

    def check(self) -> None:
        if self.lost:
            raise GpuLost(self.lost)

    def failed(self, what: str, error: object) -> GpuLost:
        """Mark the GPU as lost, and return the error to raise."""
        self.lost = f"{self.name} failed in {what}: {error}"
        return GpuLost(self.lost)

    def _failure(self, what: str, error: Exception) -> Exception:
        """The error to raise for a driver call that failed. The GPU counts as lost, unless the call found no memory for what
        it makes: a stream, an event, a kernel's code. Then all that is there can still be freed.
        """
        if isinstance(error, self.driver.MemoryError) and what != SYNCHRONIZE:
            return DeviceMemoryError(f"{self.name} has no memory left for {what} ({error})")
        return self.failed(what, error)

    def call(self, name: str, values: Sequence[int], arguments: Sequence[object]) -> None:
        """A call by its name in driver_calls.FUNCTIONS, now or recorded; see `_run` and `_failure`."""
        self._run(name, name, values, arguments)

    def order(self, first: int, event: Event, then: int) -> None:
        """Order later work of the stream `then` after that of `first`, by handle, of any library."""
        self._run(EVENT, "record", (event.handle, first), (event, first))
        self._run(EVENT, "wait", (then, event.handle, 0), (then, event))

    def _run(self, what: str, name: str, values: Sequence[int], arguments: Sequence[object]) -> None:
        """A driver call, or its record. arguments: those that `values` are the numbers of, as far as they may be replaced."""
        if self._recording is None:
            self._do(what, self.calls.do, name, *values)
        else:
            self.check()
            self._recording.add(what, self.calls.call_record(name, *values), arguments)  # done at the end of `record_calls`

    def _do(self, what: str, function: Callable[..., Result], *arguments: object) -> Result:
        """A driver call that is not recorded."""
        self.check()
        try:
            return function(*arguments)
        except self.driver.Error as error:
            raise self._failure(what, error) from error

    # ---- recordings
    @contextmanager
    def record_calls(self, buffers: HostBuffers = NO_BUFFERS, addresses: Sequence[int] = ()) -> Iterator[Recording]:
        """Record launches, copies and event calls into the yielded recording, and do them at the end. Not within another.

        addresses: of the arrays that placeholders are for.
        """
        recording = Recording(buffers, addresses)
        self._recording = recording
        try:
            yield recording
        finally:
            self._recording = None
        self.replay(recording)

    def replay(self, recording: Recording, with_graphs: bool = True) -> None:
        """Do the calls of a recording. with_graphs: from some replay on with graphs for runs of kernel launches."""
        self.check()
        recording.replays += 1
        if recording.replays == OFTEN and with_graphs:
            recording.set_commands(self.calls.joined(recording.commands))
        failed = self.calls.replay(recording.rows)
        if failed >= 0:
            error = self.calls.error(failed & 0xFFFFFFFF)
            raise self._failure(recording.names[failed >> 32], error) from error

    # ---- streams and events
    def stream(self) -> Stream:
        return self._streams.take(lambda: self._do("a stream", self.context.stream))

    def urgent_stream(self) -> Stream:
        """A stream before whose kernels those of others wait, where the package offers it; not taken over by a later user."""
        return self._do("a stream", self.context.urgent_stream) or self.stream()

    def event(self, timing: bool = False, wakes_host: bool = True) -> Event:
        """An event, with or without a time. wakes_host: a host thread that waits for it sleeps until an interrupt, which each
        record costs; else it spins.
        """
        return self._events[timing, wakes_host].take(lambda: self._do(EVENT, self.calls.event, timing, wakes_host))

    def record(self, event: Event, stream: Stream | None = None) -> Event:
        self._run(EVENT, "record", (event.handle, handle(stream)), (event,))
        return event

    def wait(self, stream: Stream, event: Event) -> None:
        """Order later work of `stream` after `event`."""
        self._run(EVENT, "wait", (handle(stream), event.handle, 0), (None, event))

    @property
    def upload_fences(self) -> bool:
        """Whether streams can wait for a value (`wait_value`). The context must be current."""
        return self.calls.can_wait_for_value()

    def wait_value(self, stream: Stream | None, flag: np.ndarray, value: int) -> None:
        """Let later work of `stream` wait until the host has set flag[0] to `value`. flag: int64[1], page-locked.

        Another thread must be able to set it: the calling thread may block in its next driver call until the GPU continues.
        """
        values = handle(stream), address_of(flag), value, STREAM_WAIT_VALUE_EQ
        self._run("a wait for the host", "wait_value", values, (None, flag))

    def synchronize(self, what: Stream | Event | None = None) -> None:
        """Wait on the host for a stream, an event or (None) the whole GPU."""
        self._do(SYNCHRONIZE, (what or self.calls).synchronize)

    def done(self, event: Event) -> bool:
        """Whether an event has completed; does not wait. The context need not be current: two driver calls fewer."""
        self.check()
        try:
            return event.query()
        except self.driver.Error:  # again, in the context, so that its error counts
            with self:
                return self._do(EVENT, event.query)

    def seconds(self, before: Event, after: Event) -> float:
        """Seconds between two completed timing events."""
        return self._do(EVENT, before.time_till, after) / 1000

    # ---- memory
    def array(self, shape: Sequence[int], dtype: DType, what: str = "") -> DeviceArray:
        """An array with undefined contents, from the pool. `what` names it in the message when memory runs out."""
        self.check()
        nbytes = allocation_bytes(math.prod(shape) * np.dtype(dtype).itemsize)
        with self._lock:
            allocation = self._memory.take(nbytes, lambda: self._allocate(nbytes, what))
        return DeviceArray(self, int(allocation), shape, dtype)

    def _allocate(self, nbytes: int, what: str) -> Allocation:
        try:
            return self.driver.allocate(nbytes)
        except self.driver.MemoryError:
            if self._memory.free_unused() or Device.free_idle():  # of other sizes, as from an earlier user
                return self._allocate(nbytes, what)
            left, total = self.driver.memory_left()
            raise DeviceMemoryError(
                f"{self.name} has {left >> 20} of {total >> 20} MiB left, "
                f"and {what or 'an array'} needs {-(-nbytes >> 20)} MiB: "
                "use fewer references, a smaller frame or --device cpu"
            ) from None
        except self.driver.Error as error:
            raise self.failed("mem_alloc", error) from error

    def zeros(self, shape: Sequence[int], dtype: DType) -> DeviceArray:
        """As np.zeros for work that is issued later: all streams, none of them non-blocking, wait for the default stream."""
        return self.array(shape, dtype, f"an array of {'x'.join(map(str, shape))} {np.dtype(dtype)}").fill(0)

    def upload(self, host: np.ndarray, stream: Stream | None = None) -> DeviceArray:
        """A new array with these contents; complete on return. Not recorded."""
        host = np.ascontiguousarray(host)
        recording, self._recording = self._recording, None
        array = self.array(host.shape, host.dtype).put(host, stream)
        self.synchronize(stream)
        self._recording = recording
        return array

    def scratch(
        self, name: str, shape: Sequence[int], dtype: DType, stream: Stream | None, zeros: bool = False
    ) -> DeviceArray:
        """An intermediate array of a stage, kept for later frames on the same stream. zeros: filled once, not recorded."""
        key = (name, tuple(shape), stream)
        with self._lock:
            if key not in self._kept:
                recording, self._recording = self._recording, None
                array = self.array(shape, dtype, name)
                self._kept[key] = array.fill(0, stream) if zeros else array
                self._recording = recording
            return self._kept[key]

    def constant(self, name: str, values: np.ndarray) -> DeviceArray:
        """A table on the GPU, uploaded once."""
        key = (name, values.shape)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self.upload(values)
            return self._kept[key]

    def free_bytes(self) -> int:
        """Bytes of the GPU's memory that no process has taken; GpuLost."""
        with self:
            return self._do("a question for its memory", self.driver.memory_left)[0]

    def release(self, *arrays: DeviceArray) -> None:
        """Return whole arrays (not slices) to the pool; their work must be done."""
        with self._lock:
            for array in arrays:
                self._memory.give(array.nbytes, array.ptr)

    def expect_pinned(self, nbytes: int) -> None:
        """`pinned` will be asked for so many bytes soon. The context must be current."""
        with self._lock:
            self.calls.pinned.expect(nbytes)

    def pinned(self, shape: Sequence[int], dtype: DType) -> np.ndarray:
        """A page-locked host array of zeros, for copies without a staging buffer."""
        with self._lock:  # the thread of a lane and that which decides may both ask
            array = self.calls.pinned.zeros(shape, dtype)
        if array is not None:
            return array
        try:
            array = self.driver.page_locked(shape, dtype)
            array.fill(0)
            self._pinned.append(array)
            return array
        except self.driver.Error as error:
            raise DeviceMemoryError(f"no page-locked memory for {tuple(shape)} {np.dtype(dtype)} ({error})") from None

    # ---- kernels
    def load(self, modules: Iterable[str]) -> None:
        """See Modules."""
        self._modules.load(modules)

    def launch(
        self,
        module: str,
        name: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: Sequence[object],
        stream: Stream | None = None,
        shared: int = 0,
    ) -> None:
        """Starts a kernel. Arguments are arrays (their pointer), NumPy-free ints (int32) or None (null)."""
        values: list[Any] = [a.ptr if type(a) is DeviceArray else 0 if a is None else a for a in arguments]
        function = self.calls.known(module, name, shared) or self._modules.kernel(module, name, shared)
        sizes = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]
        if self._recording is None:
            self._do(KERNEL + name, self.calls.start, function, *sizes, shared, stream, values)
            return
        self.check()
        replaced = [a.base if type(a) is DeviceArray and type(a.base) is np.ndarray else v for a, v in zip(arguments, values)]
        waits = self.calls.waits(module, function)
        record, launch = self.calls.launch_record(function, *sizes, shared, stream, values, waits)
        self._recording.add(KERNEL + name, record, replaced, launch)

    def intact(self) -> bool:
        """Whether the context still has the memory: another library of the process may have destroyed it meanwhile."""
        try:
            with self:
                return all(map(self.calls.knows, self._memory.sample()))
        except GpuLost:
            return False

    @property
    def allocated_bytes(self) -> tuple[int, int]:
        """(bytes of GPU memory, bytes of page-locked memory) that are allocated, in use or not."""
        return self._memory.nbytes, self.calls.pinned.nbytes

    def reset(self) -> None:
        """Free the memory and the graphs of the last user, whose work must be issued, and take back streams and events;
        GpuLost.
        """
        self._recording = None
        self._kept.clear()
        with self:
            self.synchronize()
            self._memory.free_all()
            self._free_pinned()
            self.calls.reset()
            self.release(self.array((1,), np.uint8))  # a sample for `intact`
        self._streams.reset()
        for events in self._events.values():
            events.reset()

    def _free_pinned(self) -> None:
        """Free the page-locked arrays that are not in blocks."""
        for array in self._pinned:
            getattr(array.base, "free", lambda: None)()
        self._pinned.clear()

    def close(self, keep_host: bool = False) -> None:
        """Free the memory and release the primary context.

        keep_host: page-locked arrays stay valid; those that are not in blocks belong to the context, which therefore is not
        released.
        """
        host_stays = keep_host and bool(self._pinned)
        self._modules.close()
        with suppress(GpuLost), self:
            self.synchronize()  # detects a lost GPU
        if self.lost:
            self.context.abandon()
        else:
            with self:
                self._kept.clear()  # its keys hold streams
                self._streams.clear()
                self.calls.unload()
                self.context.free()
                self._memory.free_all()
                if not keep_host:
                    self._free_pinned()
        self._streams.clear()
        for events in self._events.values():
            events.clear()
        self._memory.clear()
        self._pinned.clear()
        self._kept.clear()
        if not self.lost and not host_stays:
            self.context.detach()
