"""The frames in flight: host arrays, used again in turn, and the threads that copy sources into them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ...standard.sample_format import Sample
from ..arrays import ARRAYS
from ..coding_settings import CodingSettings
from ..devices import DeviceMemoryError, GpuLost
from ..executor import Executor
from ..machine_settings import MachineSettings
from ..threads.copiers import Copiers, Target
from ..threads.copy_kernels import READY
from .frame import HELPERS, LEAST_SHARED_BYTES, Frame, HostFrame, SourceBuffer, nothing
from .host_rgb import RgbFrame
from .loop import FrameDevice, FrameLoop

if TYPE_CHECKING:
    from ..cuda_executor import CudaExecutor

READ_AHEAD_FRAMES = 7  # frames that are read into the ring while earlier ones are encoded
DOWNLOAD_CYCLE = 6  # frames: the last references of each cycle are downloaded, for use if the GPU is lost
IN_FLIGHT_ON_GPU = 4  # frames in flight when a GPU writes the bits: little work is left for the host


class FrameRing:
    """Frames by the order in which they enter, coding order; their arrays fit the first loop."""

    def __init__(
        self, settings: CodingSettings, machine: MachineSettings, loop: FrameLoop, keep_decoded: bool, most_in_flight: int
    ) -> None:
        """keep_decoded: reconstructions are downloaded; most_in_flight: limit of `in_flight`."""
        self._settings, self._loop, self._threads = settings, loop, machine.threads
        executor = loop.executor
        self.count = 0  # frames entered
        self.in_flight = machine.stage_threads(settings) if machine.device == "cpu" else machine.threads
        if _is_gpu(executor):
            self.in_flight = in_main_stream(machine) + executor.parallel_b_frames + executor.run_ahead
        elif executor.parallel_b_frames:
            self.in_flight = executor.parallel_b_frames
        self.in_flight = min(self.in_flight, most_in_flight)
        self._replaceable = machine.may_change_device and executor.frames_on_device > 0
        self._keeps_some = self._replaceable and not executor.by_rows and not keep_decoded
        self._decoded, self._keep_decoded = self._replaceable or keep_decoded, keep_decoded
        self._reads_ahead = False
        self._kept_from = DOWNLOAD_CYCLE - settings.frames_back  # the first frame of each cycle whose reference is downloaded
        self.frames: list[Frame] = []
        self._buffers: list[SourceBuffer] = []  # all that were made for exchanges
        self._free_buffers: list[SourceBuffer] = []  # of an earlier encoder
        self._add(self._length())
        self._copiers = self._start_copiers()

    def next(self) -> Frame:
        """The frame that enters next."""
        return self.frames[self.count % len(self.frames)]

    def at(self, index: int) -> Frame:
        """The frame that entered as number `index`, while it is not used again."""
        return self.frames[index % len(self.frames)]

    def load(self, frame: Frame, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
        """Copy in the source, uint8 planes of display size; see Frame.load."""
        frame.load(y, u, v, self._copiers)

    @property
    def exchanges(self) -> bool:
        """Whether frames take buffers (HostFrame.exchange) instead of copies."""
        return _is_gpu(self._loop.executor)

    def source_buffer(self) -> SourceBuffer:
        """A new buffer for an exchange: page-locked as long as the GPU gives such memory."""
        if self._free_buffers:
            return self._free_buffers.pop()
        size = self._settings.mb_height, self._settings.display
        try:
            buffer = SourceBuffer(*size, self._loop.executor.host_zeros)
        except (DeviceMemoryError, GpuLost):
            buffer = SourceBuffer(*size, np.zeros)
        self._buffers.append(buffer)
        return buffer

    def begin_copy(self, target: Target, planes: Sequence[np.ndarray]) -> Callable[[], None]:
        """Copy planes, uint8, to others of their shapes; by threads if they are large. Returns what ends the copy: until then
        they must not change.
        """
        if self._copiers is not None and 3 * planes[0].size // 2 >= LEAST_SHARED_BYTES:
            self._copiers.begin(target, planes)
            return self._copiers.end
        for to, plane in zip(target.planes, planes):
            np.copyto(to, plane)
        return nothing

    def load_rgb(self, frame: Frame, source: RgbFrame) -> bool:
        """Convert an RGB source into the frame; whether samples are far outside of their range. See Frame.load_rgb."""
        executor = self._loop.executor
        if isinstance(executor, Executor):
            return frame.load_rgb(source, executor.run_parts, executor.threads)
        return frame.load_rgb(source)

    def enter(self, frame: Frame) -> None:
        """The loaded frame enters; it has its spec."""
        frame.index = self.count
        needed = frame.index % DOWNLOAD_CYCLE >= self._kept_from or not self._keeps_some
        frame.keep_reconstruction = self._keep_decoded or (frame.spec.is_reference and needed)
        self.count += 1

    def next_buffer(self, ahead: int) -> np.ndarray | None:
        """uint8[n]: buffer for the source of the frame that enters `ahead` frames after the next; None: none."""
        frame = self.frames[(self.count + ahead) % len(self.frames)]
        return frame.source if isinstance(frame, HostFrame) else None

    def read_ahead(self) -> bool:
        """Extend the ring for frames that are read ahead, before the first frame enters; False if that is not possible."""
        if not self._reads_ahead and isinstance(self.frames[0], HostFrame):
            assert not self.count, "frames have entered already"
            self._add(READ_AHEAD_FRAMES)
            self._reads_ahead = True
        return self._reads_ahead

    def close(self) -> None:
        """Stop the threads."""
        for frame in self.frames:
            frame.complete()
            frame.release_source()
        if self._copiers is not None:
            self._copiers.close()

    def renew(self) -> None:
        """After `close`, be as new for a later encoder: all frames and buffers are free."""
        self.count = 0
        in_frames = [frame.buffer for frame in self.frames if isinstance(frame, HostFrame)]
        self._buffers += [buffer for buffer in in_frames if buffer not in self._buffers]
        self._free_buffers = [buffer for buffer in self._buffers if buffer not in in_frames]
        for buffer in self._buffers:
            buffer.number = -1  # else it waits for that frame of the later encoder, which makes others meanwhile
        self._copiers = self._start_copiers()

    def _start_copiers(self) -> Copiers | None:
        copies = isinstance(self.frames[0], HostFrame)
        return Copiers(min(HELPERS, self._threads - 1)) if copies else None

    def _length(self) -> int:
        """In flight + 1; + `frames_back` if the CPU replaces a lost GPU; + DOWNLOAD_CYCLE - 1 if references are downloaded
        only among that many last frames of every DOWNLOAD_CYCLE. Shortly before the first lost frame the ring then holds a
        frame whose references are on the host, and all sources from it on.
        """
        back = self._settings.frames_back
        length = self.in_flight + 1 + self._replaceable * back
        return length + (self._keeps_some and back < DOWNLOAD_CYCLE) * (DOWNLOAD_CYCLE - 1)

    def _add(self, count: int) -> None:
        """Add `count` frames."""
        settings, executor = self._settings, self._loop.executor
        frames = [self._make(executor) for _ in range(count)]
        if _is_gpu(executor) and cast("CudaExecutor", executor).upload_fences:
            for frame in frames:
                assert isinstance(frame, HostFrame)
                frame.upload_fence = executor.host_zeros((1,), np.int64)
                frame.upload_fence[0] = READY
        if self._decoded:
            luma, chroma = ARRAYS["luma"].shape(settings.size), (2, *ARRAYS["cb"].shape(settings.size))
            for frame in frames:
                frame.decoded = executor.host_zeros(luma, Sample), executor.host_zeros(chroma, Sample)
        self.frames += frames
        for ring_slot, frame in enumerate(self.frames):
            frame.ring_slot = ring_slot

    def _make(self, executor: FrameDevice) -> Frame:
        settings = self._settings
        size = settings.mb_width, settings.mb_height
        if not executor.frames_on_device:
            return Frame(*size, has_b_frames=settings.has_b_frames)
        by_rows, with_levels = executor.by_rows, settings.bits_by_kind or settings.slice_max_size > 0
        return HostFrame(*size, executor.host_zeros, settings.display, by_rows, with_levels, settings.has_b_frames)


def in_main_stream(machine: MachineSettings) -> int:
    """Frames in flight on a GPU that are no B frames and do not run ahead."""
    return min(machine.threads, IN_FLIGHT_ON_GPU)


def _is_gpu(executor: FrameDevice) -> bool:
    """Whether a GPU does all stages."""
    return executor.frames_on_device > 0 and not executor.by_rows
