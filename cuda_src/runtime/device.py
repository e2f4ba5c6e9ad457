"""One GPU: context, streams, events, memory, modules. All calls of PyCUDA (or bindings.py) are made here.

It uses the primary context of the device, so that arrays of PyTorch and CuPy on the same GPU can be read. Each thread pushes
and pops the context around its work (`with device:`). Importing this file imports no CUDA. Arrays and page-locked buffers
come from pools: after the first frames of an encoder nothing is allocated.
"""

import math
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, ClassVar

import numpy as np

from . import turns
from .array import DeviceArray, DType, Event, Stream
from .compiler import is_kept, load_code, load_codes
from .driver import (
    OLDEST,
    DeviceMemoryError,
    DeviceUnavailable,
    GpuLost,
    available,
    count,
    count_gpus,
    first_gpu,
    load_driver,
    too_old,
    use_driver,
)  # fmt: skip
from .pool import MemoryPool, Pool, allocation_bytes
from .recording import KERNEL, NO_BUFFERS, HostBuffers, Recording, handle, numbers

__all__ = [
    "Device", "DeviceArray", "DeviceMemoryError", "DeviceUnavailable", "GpuLost", "available", "count", "first_gpu",
    "held_bytes", "load_driver", "use_driver",
]  # fmt: skip

SYNCHRONIZE = "synchronize"  # in messages
_NO_PAUSE = nullcontext()
OFTEN = 5  # replays of a recording before its kernel launches become graphs, which cost as much as some replays

_in_use: "weakref.WeakSet[Device]" = weakref.WeakSet()
_of_parents: list["Device"] = []  # in a fork: no driver call succeeds for them, and none may be made when they are dropped
if hasattr(os, "register_at_fork"):  # absent on Windows
    os.register_at_fork(after_in_child=lambda: _of_parents.extend(_in_use))


def _driver_calls(driver: Any) -> Any:
    """DriverCalls: driver functions by address; None if they are not available."""
    from .driver_calls import DriverCalls

    try:
        return DriverCalls(driver.LogicError, driver.MemoryError)
    except (OSError, AttributeError):
        return None


def held_bytes() -> tuple[int, int]:
    """(bytes of GPU memory, bytes of page-locked memory) that this process has allocated, on all GPUs together."""
    held = [gpu.held_bytes for gpu in list(_in_use)]
    return sum(memory for memory, _ in held), sum(host for _, host in held)


def _record(event: Event, stream: Stream | None) -> None:
    event.record(stream)


def _wait(stream: Stream, event: Event) -> None:
    stream.wait_for_event(event)


class Device:
    """One GPU in use. Enter it (`with device:`) in every thread that works with it."""

    tile_rows = 4  # maximum macroblock rows of a tile of mode decision; fewer may be faster on another GPU
    free_idle: ClassVar[Callable[[], bool]] = staticmethod(lambda: False)  # frees memory of closed encoders: idle.py

    def __init__(self, ordinal: int = 0) -> None:
        self.driver = load_driver()
        count = count_gpus(self.driver)
        if ordinal >= count:
            raise DeviceUnavailable(f"device {ordinal} was asked for, and the driver reports {count}")
        gpu = self.driver.Device(ordinal)
        self.ordinal = ordinal
        self.name = str(gpu.name()) + (f" (cuda:{ordinal})" if count > 1 else "")
        self.capability: tuple[int, int] = tuple(gpu.compute_capability())
        if self.capability < OLDEST:
            raise DeviceUnavailable(too_old(gpu))
        self.multiprocessors = int(gpu.get_attribute(self.driver.device_attribute.MULTIPROCESSOR_COUNT))
        self.shared_limit = int(gpu.get_attribute(self.driver.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
        try:
            self.context = gpu.retain_primary_context()
        except self.driver.Error as error:
            raise DeviceUnavailable(f"{self.name} gives no context ({error})") from None
        self.lost: str | None = None
        self._recording: Recording | None = None
        self._driver_calls: Any = None if hasattr(self.driver, "load_emulated") else _driver_calls(self.driver)
        self._code: dict[str, bytes] = {}
        self._lock = threading.RLock()
        self._modules: dict[str, Any] = {}
        self._functions: dict[tuple[str, str], Any] = {}
        self._shared: dict[tuple[str, str], int] = {}
        self._memory = MemoryPool()
        self._pinned: list[np.ndarray] = []
        self._streams: Pool[Stream] = Pool()
        self._events: dict[bool, Pool[Event]] = {False: Pool(), True: Pool()}  # by timing
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
            self.driver.Context.pop()
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

    def call(self, name: str, *arguments: object) -> Any:
        """Call the driver, or record the call; see `_failure`."""
        noted = name.startswith("mem")
        call_record = None
        if noted and self._recording is not None and self._driver_calls is not None:
            call_record = self._driver_calls.call_record(name, *numbers(arguments))
        return self._do(name, getattr(self.driver, name), *arguments, noted=noted, call_record=call_record)

    def _do(self, what: str, function: Callable[..., Any], *arguments: object, noted: bool = True, **more: Any) -> Any:
        """more: see Recording.add."""
        self.check()
        if noted and self._recording is not None:
            self._recording.add(what, function, arguments, **more)
            return None  # `record_calls` does the calls at its end
        try:
            return function(*arguments)
        except self.driver.Error as error:
            raise self._failure(what, error) from error

    # ---- recordings
    def _event_record(self, name: str, *objects: Stream | Event | None) -> list[int] | None:
        """The call record of a driver call for events and streams; None unless a recording is made."""
        if self._recording is None or self._driver_calls is None:
            return None
        return list(self._driver_calls.call_record(name, *map(handle, objects)))

    @contextmanager
    def record_calls(self, buffers: HostBuffers = NO_BUFFERS, addresses: Sequence[int] = ()) -> Iterator[Recording]:
        """Record launches, copies and event calls into the yielded recording, and do them at the end.

        addresses: of the arrays that stand-ins are for.
        """
        recording = Recording(buffers, addresses)
        self._recording = recording
        try:
            yield recording
        finally:
            self._recording = None
        self.replay(recording)

    def replay(self, recording: Recording) -> None:
        """Do the calls of a recording, from some replay on with graphs for runs of kernel launches."""
        self.check()
        recording.replays += 1
        if recording.replays == OFTEN and self._driver_calls is not None:
            recording.set_commands(self._driver_calls.joined(recording.commands))
        what = ""
        try:
            for part, names in recording.parts():
                what = names[0]
                if callable(part):
                    part()
                elif (failed := self._driver_calls.replay(part)) >= 0:
                    what = names[failed >> 32]
                    raise self._driver_calls.error(failed & 0xFFFFFFFF)
        except self.driver.Error as error:
            raise self._failure(what, error) from error

    # ---- streams and events
    def stream(self) -> Stream:
        return self._streams.take(lambda: self.call("Stream"))

    def urgent_stream(self) -> Stream:
        """A stream before whose kernels those of others wait, where the binding offers it; not taken over by a later user."""
        return self.call("urgent_stream") if hasattr(self.driver, "urgent_stream") else self.stream()

    def event(self, timing: bool = False) -> Event:
        """An event. A host thread that waits for it sleeps and does not spin."""
        return self._events[timing].take(lambda: self._make_event(timing))

    def _make_event(self, timing: bool) -> Event:
        flags = self.driver.event_flags
        if self._driver_calls is not None and not timing:
            kind = int(flags.BLOCKING_SYNC) | int(flags.DISABLE_TIMING)
            return self._do("an event", self._driver_calls.event, kind, noted=False)
        return self.call("Event", flags.BLOCKING_SYNC | (0 if timing else flags.DISABLE_TIMING))

    def record(self, event: Event, stream: Stream | None = None) -> Any:
        self._do("an event", _record, event, stream, call_record=self._event_record("record", event, stream))
        return event

    def wait(self, stream: Stream, event: Event) -> None:
        """Order later work of `stream` after `event`."""
        wait = _wait if self._driver_calls is None else self._driver_calls.wait
        self._do("an event", wait, stream, event, call_record=self._event_record("wait", stream, event))

    @property
    def upload_fences(self) -> bool:
        """Whether streams can wait for a value (`wait_value`). The context must be current."""
        return self._driver_calls is not None and self._driver_calls.can_wait_for_value()

    def wait_value(self, stream: Stream | None, flag: np.ndarray, value: int) -> None:
        """Let later work of `stream` wait until the host has set flag[0] to `value`. flag: int64[1], page-locked.

        Another thread must be able to set it: the calling thread may block in its next driver call until the GPU continues.
        """
        calls = self._driver_calls
        call_record = calls.wait_value_record(handle(stream), flag, value) if self._recording is not None else None
        self._do("a wait for the host", calls.wait_value, stream, flag, value, call_record=call_record)

    def synchronize(self, what: Stream | Event | None = None) -> None:
        """Wait on the host for a stream, an event or (None) the whole GPU; other threads have their turns meanwhile."""
        with turns.pause if turns.is_mine() else _NO_PAUSE:
            self._do(SYNCHRONIZE, (what or self.driver.Context).synchronize, noted=False)

    def done(self, event: Event) -> bool:
        """Whether an event has completed; does not wait."""
        return bool(self._do("an event", event.query, noted=False))

    def seconds(self, before: Event, after: Event) -> float:
        """Seconds between two completed timing events."""
        return float(self._do("an event", before.time_till, after, noted=False)) / 1000

    # ---- memory
    def array(self, shape: Sequence[int], dtype: DType, what: str = "") -> DeviceArray:
        """An array with undefined contents, from the pool. `what` names it in the message when memory runs out."""
        self.check()
        nbytes = allocation_bytes(math.prod(shape) * np.dtype(dtype).itemsize)
        with self._lock:
            allocation = self._memory.take(nbytes, lambda: self._allocate(nbytes, what))
        return DeviceArray(self, int(allocation), shape, dtype)

    def _allocate(self, nbytes: int, what: str) -> Any:
        try:
            return self.driver.mem_alloc(nbytes)
        except self.driver.MemoryError:
            if self._memory.free_unused() or Device.free_idle():  # of other sizes, as from an earlier user
                return self._allocate(nbytes, what)
            left, total = self.driver.mem_get_info()
            raise DeviceMemoryError(
                f"{self.name} has {left >> 20} of {total >> 20} MiB left, "
                f"and {what or 'an array'} needs {-(-nbytes >> 20)} MiB: "
                "use fewer references, a smaller frame or --device cpu"
            ) from None
        except self.driver.Error as error:
            raise self.failed("mem_alloc", error) from error

    def zeros(self, shape: Sequence[int], dtype: DType) -> DeviceArray:
        """As np.zeros; complete on return."""
        array = self.array(shape, dtype, f"an array of {'x'.join(map(str, shape))} {np.dtype(dtype)}").fill(0)
        self.synchronize()
        return array

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

    def release(self, *arrays: DeviceArray) -> None:
        """Return whole arrays (not slices) to the pool; their work must be done."""
        with self._lock:
            for array in arrays:
                self._memory.give(array.nbytes, array.ptr)

    def pinned(self, shape: Sequence[int], dtype: DType) -> np.ndarray:
        """A page-locked host array of zeros, for copies without a staging buffer."""
        if self._driver_calls is not None and (array := self._driver_calls.pinned.zeros(shape, dtype)) is not None:
            return array
        try:
            array = self.driver.pagelocked_empty(tuple(shape), np.dtype(dtype))
            array.fill(0)
            self._pinned.append(array)
            return array
        except self.driver.Error as error:
            raise DeviceMemoryError(f"no page-locked memory for {tuple(shape)} {np.dtype(dtype)} ({error})") from None

    # ---- kernels
    def load(self, modules: Iterable[str]) -> None:
        """Compile kernel files that must be compiled, concurrently.

        All are read, and the GPU gets their code, when their first kernel is launched: most encodes need a part of the files.
        """
        if hasattr(self.driver, "load_emulated"):
            self._modules |= {module: self.driver.load_emulated(module) for module in modules if module not in self._modules}
        elif missing := [module for module in modules if module not in self._code and not is_kept(module, self.capability)]:
            self._code |= dict(zip(missing, load_codes(missing, self.capability)))

    def _code_of(self, module: str) -> bytes:
        if module not in self._code:
            self._code[module] = load_code(module, self.capability)
        return self._code[module]

    def function(self, module: str, name: str, formats: str) -> Any:
        """The kernel `name` of `module`.cu, prepared for arguments P (pointer), i (int32), I (uint32)."""
        key = (module, name)
        with self._lock:
            if key not in self._functions:
                self.load([module])
                if module not in self._modules:
                    self._modules[module] = self.call("module_from_buffer", self._code_of(module))
                try:
                    function = self._modules[module].get_function(name)
                except self.driver.Error as error:
                    raise self._failure(f"{KERNEL}{name} of {module}.cu", error) from error
                self._functions[key] = function.prepare(formats) or function
            return self._functions[key]

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
        values = [a.ptr if type(a) is DeviceArray else 0 if a is None else a for a in arguments]
        function = self._functions.get((module, name))
        if function is None:
            function = self.function(module, name, "".join("i" if isinstance(a, int) else "P" for a in arguments))
        if shared > 48 << 10 and self._shared.get((module, name), 0) < shared:
            function.set_attribute(self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
            self._shared[(module, name)] = shared
        sizes = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]
        more: dict[str, Any] = {}
        if self._recording is not None:
            arrays = ((k, a.base) for k, a in enumerate(arguments) if type(a) is DeviceArray)
            more["host_arguments"] = [(k, base) for k, base in arrays if type(base) is np.ndarray]
            kernel = self._driver_calls and self._driver_calls.function(module, name, self._code_of(module), shared)
            if kernel is not None:
                waits = self._driver_calls.waits(module, kernel)
                record = self._driver_calls.launch_record(kernel, *sizes, shared, stream, values, waits)
                more["call_record"], more["launch"] = record
        start = partial(function.prepared_async_call, *sizes, stream, shared_size=shared)
        self._do(KERNEL + name, start, *values, **more)

    def intact(self) -> bool:
        """Whether the context still has the memory: another library of the process may have destroyed it meanwhile."""
        try:
            with self:
                if self._driver_calls is not None:
                    return all(map(self._driver_calls.knows, self._memory.sample()))
                self.synchronize()
        except GpuLost:
            return False
        return True

    @property
    def held_bytes(self) -> tuple[int, int]:
        """(bytes of GPU memory, bytes of page-locked memory) that are allocated, in use or not."""
        host = self._driver_calls.pinned.nbytes if self._driver_calls is not None else 0
        return self._memory.nbytes, host

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
            if self._driver_calls is not None:
                self._driver_calls.reset()
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
        with suppress(GpuLost), self:
            self.synchronize()  # detects a lost GPU
        if self.lost:
            self._abandon()
        self._functions.clear()
        self._modules.clear()
        if not self.lost:
            with self:
                self._kept.clear()  # its keys hold streams
                self._streams.clear()
                if self._driver_calls is not None:
                    self._driver_calls.unload()
                if hasattr(self.context, "free"):  # with PyCUDA, streams and modules are freed by their last references
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
        if self.lost or host_stays:
            return
        if self._driver_calls is None:
            self.context.detach()
        else:
            self._driver_calls.detach(self.context)

    def _abandon(self) -> None:
        """Let go of a lost context, for which no driver call succeeds, without calls that free anything of it.

        PyCUDA, which reports each failed free, makes none for a context that was detached in another thread than the one that
        retained it.
        """
        if hasattr(self.context, "abandon"):
            self.context.abandon()
            return

        def detach() -> None:
            with suppress(self.driver.Error):  # closed before
                self.context.detach()

        thread = threading.Thread(target=detach, name="h264lite lost GPU")
        with suppress(RuntimeError):  # no thread can be started: the context ends with the process
            thread.start()
            thread.join()
