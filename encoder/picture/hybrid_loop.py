"""The coding loop on several devices: the state in each memory, and the arrays and copies of a frame for its route."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...scheduler.arrays import NEW, Key, Size, byte_span
from ...scheduler.devices import DeviceMemoryError
from ...scheduler.hybrid_executor import HybridExecutor, InFlightFrame
from ...scheduler.planning.plan import HOST, is_gpu, memory_of
from ...scheduler.planning.route import Copy, Picture
from ...scheduler.workers import FRAMES_ON_DEVICE
from ..settings.config import Config
from .frame import Frame, HostFrame
from .loop import Arrays, Loop

_PLANES = {"luma": slice(0, 1), "half": slice(1, 4), "cb": slice(0, 1), "cr": slice(1, 2)}  # in the arrays of a reference


class HybridLoop:
    """See Loop; the executor holds plans and devices."""

    def __init__(self, config: Config, slice_rows: list[tuple[int, int]], executor: HybridExecutor) -> None:
        self.config, self.slice_rows, self.executor = config, slice_rows, executor
        self.alone: dict[str, Loop] = {}  # loops of devices that encoded whole frames
        self.arrays: dict[str, Arrays] = {HOST: Arrays(config, slice_rows, executor)}
        self.frames_on_device: list[Frame] = []
        side = executor.side
        if side is not None:
            self.arrays[side.device] = Arrays(config, slice_rows, side)
            self.frames_on_device = [Frame(config.mb_width, config.mb_height, side.zeros) for _ in range(FRAMES_ON_DEVICE)]
            for arrays in self.arrays.values():  # all memories share one list of slots
                arrays.references.held = self.arrays[HOST].references.held
        executor.adaptation.mb_width = config.mb_width
        self.size = Size(config.mb_width, config.mb_height, config.pad)
        self.references = self.arrays[HOST].references
        self.previous: dict[str, Frame] = {}
        self._unsettled: Callable[[], None] | None = None  # completes the download of the previous decoded frame

    def run(self, frame: Frame) -> Callable[[], None]:
        """See Loop."""
        executor, config = self.executor, self.config
        if self._unsettled is not None:
            self._unsettled()
            self._unsettled = None
        executor.adaptation.learn(frame.n_ref)
        loop = self._loop_alone(frame)
        if loop is not None:
            return self._run_alone(loop, frame)
        if frame.is_idr:
            self.references.clear()
        slot = self.references.free_slot()
        frame.write_params()
        picture = frame.picture if isinstance(frame, HostFrame) else None
        executor.begin(frame.index)
        there = self._there(frame)
        work = _Picture(self, frame, there, slot)
        if picture is None:
            frame.samples()
        for memory, arrays in self.arrays.items():
            with executor.at_work(memory):
                arrays.fill(frame, there[memory], memory == HOST or picture is None)
        source = HOST
        if picture is not None and executor.side is not None:
            source = executor.side.device
            with executor.at_work(source):
                params = {"frame_params": executor.side.constant(frame.frame_params[:1])}  # read for QP only
                state = self.arrays[source].constants | there[source].arrays | picture.numbers | params
                executor.side.load(picture.stage, picture.pointers, picture.producer, state)
        wanted = frame.decoded is not None
        asked = Picture(self.size, frame.n_ref, config.ref, config.me, source, wanted)
        under_way, home = executor.picture(frame.index, asked, work, frame.stage_seconds)
        if isinstance(frame, HostFrame):
            frame.levels_packed = under_way.program.compacts
            for rows in under_way.program.levels if frame.levels_packed else [(0, config.mb_height)]:
                frame.mark_levels_dirty(*rows)
        frame.write_slices = self.arrays[HOST].deferred_write(frame)
        self.references.push(slot, config.ref)
        self.previous = there
        if not wanted:
            return home
        self._unsettled = settle = _Once(lambda: self._decoded(under_way, frame, slot))

        def ready() -> None:
            home()
            settle()

        return ready

    def _there(self, frame: Frame) -> dict[str, Frame]:
        """The arrays of a frame in each memory."""
        side = self.executor.side
        if side is None:
            return {HOST: frame}
        return {HOST: frame, side.device: self.frames_on_device[frame.index % FRAMES_ON_DEVICE]}

    def _loop_alone(self, frame: Frame) -> Loop | None:
        """The loop of the device that encodes this frame alone; None if several do."""
        executor = self.executor
        device = executor.single_device_for(frame.n_ref)
        if device is None or (not is_gpu(device) and isinstance(frame, HostFrame) and frame.picture is not None):
            return None
        if device not in self.alone:
            own, arrays = executor.own(device), self.arrays[memory_of(device)]
            frames_on_device = self.frames_on_device if is_gpu(device) else []
            try:
                self.alone[device] = Loop(self.config, self.slice_rows, own, arrays.on(own), frames_on_device)
            except DeviceMemoryError:  # no memory for its own loop: keep the hybrid one
                executor.hands_over = False
                return None
        loop = self.alone[device]
        if executor.alone is not loop.executor:
            loop.previous = self.previous.get(memory_of(device))
            executor.switch_to(device)
        return loop

    def _run_alone(self, loop: Loop, frame: Frame) -> Callable[[], None]:
        """Encode a frame on one device."""
        ready = loop.run(frame)
        self.previous = self._there(frame)
        self.executor.did_alone(len(self.references.held))
        return ready

    def _decoded(self, under_way: InFlightFrame, frame: Frame, slot: int) -> None:
        """Copy the decoded frame to `frame.decoded`, before `slot` is reused."""
        self.executor.settle(under_way)
        assert frame.decoded is not None
        luma, chroma = frame.decoded
        luma[...], chroma[...] = self.references.luma[slot][0], self.references.chroma[slot]


class _Once:
    """Calls a function once, in the first thread that asks; other threads wait for it."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function, self._lock, self._over = function, threading.Lock(), False

    def __call__(self) -> None:
        with self._lock:
            if not self._over:
                self._function()
                self._over = True


class _Picture:
    """A Work of the executor: the arrays of one frame in each memory."""

    def __init__(self, loop: HybridLoop, frame: Frame, there: Mapping[str, Frame], slot: int) -> None:
        self.loop, self.frame, self.there, self.slot = loop, frame, there, slot
        self.held = list(loop.references.held)
        self.previous = dict(loop.previous)
        self._states: dict[tuple[str, int], dict[str, Any]] = {}

    def state(self, device: str, reference: int) -> Mapping[str, Any]:
        """See Work."""
        if (device, reference) not in self._states:
            arrays = self.loop.arrays[device]
            if reference >= 0:
                made = {**self.state(device, -1), **arrays.reference_state(reference)}
            else:
                made = arrays.state(self.frame, self.there[device], self.slot, self.previous.get(device))
                side = self.loop.executor.side
                if side is not None and device == side.device and isinstance(self.frame, HostFrame):
                    made["level_blocks"] = side.across(self.frame.level_blocks)
            self._states[device, reference] = made
        return self._states[device, reference]

    def pairs(self, gpu: str, op: Copy) -> list[tuple[Any, np.ndarray]]:
        """See Work."""
        begin, end = byte_span(op.array[0], op.row0, op.row1, self.loop.size)
        found = zip(self._planes(gpu, op.array), self._planes(HOST, op.array))
        return [(there[begin:end], host[begin:end]) for there, host in found]

    def _planes(self, memory: str, key: Key) -> list[Any]:
        """The planes of an array as uint8[n]."""
        (name, number), arrays = key, self.loop.arrays[memory]
        if name in _PLANES:
            slot = self.slot if number == NEW else self.held[number]
            whole = (arrays.references.luma if name in ("luma", "half") else arrays.references.chroma)[slot]
            return [_flat(whole[k]) for k in range(4)[_PLANES[name]]]
        if number >= 0 and name in ("ref_idx", "mv"):
            return [_flat(self.previous[memory].results[name])]
        if number >= 0:
            return [_flat(self.state(memory, number)[name])]
        return [_flat(self.state(memory, -1)[name])]


def _flat(array: Any) -> Any:
    """The bytes of an array, uint8[n]."""
    return array.reshape(array.size).view(np.uint8)


