"""The coding loop on several devices: the state in each memory, and the arrays and copies of a frame for its route."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...cuda_src.runtime.device import DeviceMemoryError
from ..arrays import CURRENT, PREVIOUS_FRAME_ARRAYS, REFERENCE_ARRAYS, Key, Size, byte_span, pool_planes
from ..cuda_executor import CudaExecutor
from ..hybrid_executor import HybridExecutor, InFlightFrame
from ..planning.plan import HOST, is_gpu, memory_of
from ..planning.route import Copy, Picture
from ..workers import FRAMES_ON_DEVICE
from .cuda_loop import CudaLoop
from .dpb import DecodedPictureBuffer
from .frame import Frame, HostFrame
from .loop import Arrays, Loop, LoopSettings


class HybridLoop:
    """See FrameLoop; the executor holds plans and devices."""

    def __init__(self, settings: LoopSettings, executor: HybridExecutor) -> None:
        config = settings.config
        self.settings, self.config, self.executor = settings, config, executor
        self.alone: dict[str, Loop] = {}  # loops of devices that encoded whole frames
        self.arrays: dict[str, Arrays] = {HOST: Arrays(settings, executor)}
        self.frames_on_device: list[Frame] = []
        side = executor.side
        if side is not None:
            self.arrays[side.device] = Arrays(settings, side)
            self.frames_on_device = [Frame(config.mb_width, config.mb_height, side.zeros) for _ in range(FRAMES_ON_DEVICE)]
        executor.adaptation.mb_width = config.mb_width
        self.size = Size(config.mb_width, config.mb_height, config.pad)
        self.references = self.arrays[HOST].references
        self.dpb = DecodedPictureBuffer(config.ref + 1)  # of all loops: all memories use the same slots
        self.previous: dict[str, Frame] = {}
        self._unsettled: Callable[[], None] | None = None  # completes the download of the previous decoded frame

    def run(self, frame: Frame) -> Callable[[], None]:
        """See FrameLoop."""
        executor, config = self.executor, self.config
        if self._unsettled is not None:
            self._unsettled()
            self._unsettled = None
        executor.adaptation.learn(frame.spec.n_ref)
        loop = self._loop_alone(frame)
        if loop is not None:
            return self._run_alone(loop, frame)
        slot, list0 = self.dpb.begin(frame.spec)
        frame.write_params()
        picture = frame.picture if isinstance(frame, HostFrame) else None
        executor.begin(frame.index)
        there = self._there(frame)
        work = _Picture(self, frame, there, slot, list0)
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
        asked = Picture(self.size, frame.spec.n_ref, config.ref, config.me, source, wanted, frame.spec.is_idr)
        under_way, home = executor.picture(frame.index, asked, work, frame.stage_seconds)
        if isinstance(frame, HostFrame):
            frame.levels_packed = under_way.program.compacts
            for rows in under_way.program.levels if frame.levels_packed else [(0, config.mb_height)]:
                frame.mark_levels_dirty(*rows)
        frame.write_slices = self.arrays[HOST].deferred_write(frame)
        self.dpb.end(frame.spec, slot)
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
        device = executor.single_device_for(frame.spec.is_idr)
        if device is None or (not is_gpu(device) and isinstance(frame, HostFrame) and frame.picture is not None):
            return None
        if device not in self.alone:
            try:
                self.alone[device] = self._make_loop_alone(device)
            except DeviceMemoryError:  # no memory for its own loop: keep the hybrid one
                executor.hands_over = False
                return None
        loop = self.alone[device]
        if executor.alone is not loop.executor:
            loop.previous = self.previous.get(memory_of(device))
            executor.switch_to(device)
        return loop

    def _make_loop_alone(self, device: str) -> Loop:
        own, arrays = self.executor.own(device), self.arrays[memory_of(device)]
        if isinstance(own, CudaExecutor):
            return CudaLoop(self.settings, own, arrays.on(own), self.dpb, self.frames_on_device)
        return Loop(self.settings, own, arrays.on(own), self.dpb)

    def _run_alone(self, loop: Loop, frame: Frame) -> Callable[[], None]:
        """Encode a frame on one device."""
        ready = loop.run(frame)
        self.previous = self._there(frame)
        self.executor.did_alone(len(frame.spec.references_after))
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

    def __init__(self, loop: HybridLoop, frame: Frame, there: Mapping[str, Frame], slot: int, list0: tuple[int, ...]) -> None:
        self.loop, self.frame, self.there, self.slot = loop, frame, there, slot
        self.list0 = list0
        self.previous = dict(loop.previous)
        self._states: dict[tuple[str, int], dict[str, Any]] = {}

    def state(self, device: str, reference: int) -> Mapping[str, Any]:
        """See Work."""
        if (device, reference) not in self._states:
            arrays = self.loop.arrays[device]
            if reference >= 0:
                made = {**self.state(device, -1), **arrays.reference_state(reference, self.list0[reference])}
            else:
                made = arrays.state(self.frame, self.there[device], self.slot, self.list0, self.previous.get(device))
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
        if name in REFERENCE_ARRAYS:
            pool, planes = pool_planes(name)
            slot = self.slot if number == CURRENT else self.list0[number]
            return [_flat(getattr(arrays.references, pool)[slot][k]) for k in planes]
        if number >= 0 and name in PREVIOUS_FRAME_ARRAYS:
            return [_flat(self.previous[memory].results[name])]
        if number >= 0:
            return [_flat(self.state(memory, number)[name])]
        return [_flat(self.state(memory, -1)[name])]


def _flat(array: Any) -> Any:
    """The bytes of an array, uint8[n]."""
    return array.reshape(array.size).view(np.uint8)


