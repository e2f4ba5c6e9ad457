"""The pipeline of one device: frames enter the loop one at a time; their entropy coding overlaps the loop of later frames."""

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..cpu_simd.ssd import totals
from ..scheduler.arrays import Size
from ..scheduler.check import TwinDiffers
from ..scheduler.devices import (
    CudaExecutor,
    DeviceMemoryError,
    DeviceUnavailable,
    GpuLost,
    Hybrid,
    HybridExecutor,
    make_executor,
)
from ..scheduler.executor import bands
from ..scheduler.planning.route import Picture
from ..scheduler.threads.copiers import Copiers
from ..scheduler.threads.copy_kernels import READY
from ..scheduler.threads.lazy_task import Task
from ..scheduler.threads.watchdog import LimitError, Stuck
from ..scheduler.trace import HOST, Trace
from ..standard.macroblock import MB_TYPE_NAMES
from ..start_threads import start_threads
from .errors import DeviceError, DeviceLost, Error, InputError
from .files.read_ahead import READ_AHEAD_FRAMES
from .picture.device_frame import DevicePicture, check_place
from .picture.frame import HELPERS, Frame, HostFrame
from .picture.hybrid_loop import HybridLoop
from .picture.loop import Loop
from .picture.slice_writer import SliceWriter
from .settings.config import Config
from .warm_up import compile_beside, load_for_gpu, will_compile

DOWNLOAD_CYCLE = 6  # frames: the last `ref` reconstructions of each cycle are downloaded, for use if the GPU is lost
IN_FLIGHT_ON_GPU = 4  # frames in flight when a GPU writes the bits: little work is left for the host
Planes = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class EncodedFrame:
    """One access unit and its statistics."""

    index: int
    frame_type: str  # "I" or "P"
    is_idr: bool
    qp: int
    avg_qp: float
    data: bytes  # Annex B
    mb_counts: np.ndarray  # int64[8], by mb_type
    ssd: tuple[int, int, int]  # squared error over the display area of Y, Cb, Cr
    bits: int
    stage_seconds: dict[str, float]
    reconstruction: Planes | None  # cropped, as a decoder returns it


class Pipeline:
    """Encodes frames in order. One frame at a time is in the loop; the entropy coding of earlier frames runs in parallel.

    warn: called with a sentence when an encode that chose its device itself continues without it. trace: for the timeline.
    """

    def __init__(
        self,
        config: Config,
        keep_reconstruction: bool = False,
        warn: Callable[[str], None] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.config = config
        self.trace = trace
        self.keep_reconstruction = keep_reconstruction
        self.warn = warn or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=4))
        self.slice_rows = bands(config.mb_height, config.slices)
        self.writer = SliceWriter(config, self.slice_rows)
        self.in_flight = 0  # frames that may be in entropy coding during the loop
        self._loading = threading.Thread(target=load_for_gpu, args=(config.device == "hybrid",), daemon=True)
        if config.device != "cpu":
            start_threads([self._loading], [])  # if no thread starts, loading happens at first use
        self.count = self.since_idr = self.idr_count = self.number = 0
        self._reads_ahead = False  # frames are read into ring buffers while earlier frames are encoded
        self.loop, self.ring = self._start()
        self.pending: deque[tuple[Frame, Callable[[], None], Task]] = deque()
        self.done: list[EncodedFrame] = []  # not fetched yet; an interrupt may duplicate the last one
        self.taken: list[EncodedFrame] = []  # the last batch fetched: kept for a caller that was interrupted
        self._copying = Copiers(min(HELPERS, config.threads - 1)) if self.next_buffer() is not None else None
        if will_compile():
            compile_beside()

    def headers(self) -> bytes:
        """Sequence and picture parameter sets as an Annex B byte stream."""
        return self.writer.parameter_sets

    def encode(self, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[EncodedFrame]:
        """Encode one frame, uint8 planes of display size. Return the finished frames, in order."""
        frame = self._next_frame()
        start = time.perf_counter()
        try:
            frame.load(y, u, v, self._copying)
            if self.trace is not None:
                self.trace.add(HOST, "loop", "load", start, time.perf_counter() - start, self.number)
            return self._encode(frame)
        finally:
            frame.complete()  # also after an interrupt: the caller's planes are no longer read

    def encode_in_place(self) -> list[EncodedFrame]:
        """`encode` for a frame that is already in `next_buffer()`."""
        frame = self._next_frame()
        assert isinstance(frame, HostFrame)
        frame.loaded()
        return self._encode(frame)

    def encode_on_gpu(self, picture: DevicePicture) -> list[EncodedFrame]:
        """`encode` for a frame on the GPU."""
        frame = self._next_frame()
        for name, pointer in picture.pointers.items():
            try:
                found, mine = self.loop.executor.ordinal_of(pointer)
            except GpuLost as lost:
                raise DeviceLost(f"{lost}; frames that lie there are lost with it") from None
            check_place(name.removeprefix("given_"), found, mine)
        if picture.is_rgb:
            self._say_bt709()
        assert isinstance(frame, HostFrame)
        frame.load_from_gpu(picture)
        return self._encode(frame)

    def _next_frame(self) -> Frame:
        """The next frame of the ring. If an interrupt left too many in flight, some are finished first."""
        if len(self.pending) > self.in_flight:
            self._finish(self.in_flight)
        return self.ring[self.count % len(self.ring)]

    def begin_gop(self, gop: int, number: int) -> None:
        """The next frame is frame `number` of the stream and begins GOP `gop`; both count from 0."""
        self.since_idr = self.config.keyint
        self.idr_count, self.number = gop, number

    def next_buffer(self, ahead: int = 0) -> np.ndarray | None:
        """uint8[n]: buffer for the next frame as I420, which saves a copy; None: no preferred place.

        ahead: for the frame that many later, at most READ_AHEAD_FRAMES, and only after `read_ahead`. The ring has room for
        it, since at most `in_flight` frames wait for their bits.
        """
        frame = self.ring[(self.count + ahead) % len(self.ring)]
        return frame.source if isinstance(frame, HostFrame) else None

    def read_ahead(self) -> bool:
        """Called before the first frame: extend the ring for frames that are read ahead; False if impossible."""
        if not self._reads_ahead and isinstance(self.ring[0], HostFrame):
            assert not self.count, "pictures have places already"
            try:
                self.ring += self._places(self.loop, READ_AHEAD_FRAMES)
                self._reads_ahead = True
            except (DeviceMemoryError, GpuLost):  # a lost GPU is reported with the first frame
                return False
        return self._reads_ahead

    def _encode(self, frame: Frame) -> list[EncodedFrame]:
        self._choose_type(frame)
        self.count += 1
        try:
            self._enter(frame)
            return self._finished(self.in_flight)
        except (GpuLost, DeviceMemoryError) as lost:
            self._go_on_without_the_gpu(lost, frame)
            return self._finished(self.in_flight)
        except TwinDiffers as error:
            raise Error(f"H264LITE_CHECK: frame {frame.number}: {error}") from None
        except Stuck as error:
            raise Error(str(error)) from None

    def flush(self) -> list[EncodedFrame]:
        """Finish and return all frames in flight."""
        try:
            return self._finished(0)
        except GpuLost as lost:
            self._go_on_without_the_gpu(lost)
            return self._finished(0)
        except Stuck as error:
            raise Error(str(error)) from None
        except TwinDiffers as error:
            raise Error(f"H264LITE_CHECK: {error}") from None

    def close(self) -> None:
        """Stop the threads."""
        if self._loading.ident is not None:
            self._loading.join()
        for frame in self.ring:
            frame.complete()
        if self._copying is not None:
            self._copying.close()
        self.loop.executor.close()

    def compile(self, stages: Sequence[str]) -> None:
        """Run stages on an empty frame to compile their kernels."""
        assert isinstance(self.loop, Loop)
        self.loop.compile(self.ring[0], stages)

    def _choose_type(self, frame: Frame) -> None:
        """IDR every `keyint` frames, P between; every frame is a reference, so frame_num counts them (7.4.3)."""
        if self.count == 0 or self.since_idr >= self.config.keyint:
            self.since_idr = 0
            self.idr_count += 1
        frame.index, frame.number = self.count, self.number
        self.number += 1
        frame.is_idr = self.since_idr == 0
        frame.idr_pic_id = self.idr_count % 2  # 7.4.3: consecutive IDR pictures differ
        frame.frame_num = self.since_idr
        frame.n_ref = min(self.since_idr, self.config.ref)
        frame.slice_qp = self.config.i_qp if frame.is_idr else self.config.qp
        frame.header_bits = self.writer.header_bits(frame)
        frame.kept = not self._keeps_some or frame.index % DOWNLOAD_CYCLE >= DOWNLOAD_CYCLE - self.config.ref
        self.since_idr += 1

    def _say_bt709(self) -> None:
        """Write BT.709, limited range (of RGB input) to the VUI; InputError if options or earlier frames contradict."""
        wanted = {"colorprim": 1, "transfer": 1, "colormatrix": 1, "range": 0}
        said = {name: getattr(self.config, name) for name in wanted}
        for name in ("colormatrix", "range"):
            if said[name] not in (None, wanted[name]):
                raise InputError(f"RGB becomes BT.709 in limited range, which contradicts {name}")
        if said["colormatrix"] is None or said["range"] is None:
            if self.count:
                raise InputError("RGB behind other frames: say colormatrix='bt709', range='tv' from the start")
            values: dict[str, Any] = {name: value for name, value in wanted.items() if said[name] is None}
            self.config = replace(self.config, **values)
            self.writer = SliceWriter(self.config, self.slice_rows)

    def _enter(self, frame: Frame) -> None:
        """Run the loop of a frame; a thread writes its bits when the results are on the host."""
        frame.stage_seconds = {}
        start = time.perf_counter()
        try:
            ready = self.loop.run(frame)
        finally:
            frame.complete()  # end of the threads' copy of the source: the caller may change it now
        if self.trace is not None:
            self.trace.add(HOST, "loop", "loop", start, time.perf_counter() - start, frame.number)
        self.pending.append((frame, ready, self.loop.executor.submit(self._write, frame, ready)))

    def _write(self, frame: Frame, ready: Callable[[], None]) -> EncodedFrame:
        """Write the bits of a frame after its loop."""
        ready()
        frame.unpack_levels()
        start = time.perf_counter()
        frame.write_slices()
        data = self.writer.access_unit(frame)
        spent = frame.stage_seconds["entropy"] = time.perf_counter() - start
        if self.trace is not None:
            self.trace.add(HOST, threading.current_thread().name, "entropy", start, spent, frame.number)
        found = np.empty(3 + len(MB_TYPE_NAMES), np.int64)
        totals(frame.mb_type, frame.ssd_y, frame.ssd_u, frame.ssd_v, found)
        return EncodedFrame(
            index=frame.number,
            frame_type="P" if frame.n_ref else "I",
            is_idr=frame.is_idr,
            qp=frame.slice_qp,
            avg_qp=float(frame.slice_qp),  # of all macroblocks: no stage changes qp
            data=data,
            mb_counts=found[3:],
            ssd=tuple(found[:3].tolist()),
            bits=8 * len(data),
            stage_seconds=frame.stage_seconds,
            reconstruction=self._reconstruction(frame) if self.keep_reconstruction else None,
        )

    def _finished(self, limit: int) -> list[EncodedFrame]:
        """Frames whose bits are written, in order; blocks until at most `limit` are in flight."""
        self._finish(limit)
        self.taken, self.done = self.done, []
        return self.taken

    def _finish(self, limit: int) -> None:
        """Move those frames to `done`."""
        while self.pending and (len(self.pending) > limit or self.pending[0][-1].done()):
            start = time.perf_counter()
            frame, ready, task = self.pending[0]
            try:
                self.done.append(self.loop.executor.result(task))
            except (GpuLost, TwinDiffers, Stuck):
                raise
            except Exception:  # possibly transient, such as a timeout of a signal handler
                self.pending[0] = frame, ready, self.loop.executor.submit(self._write, frame, ready)
                raise
            if self.trace is not None:
                self.trace.add(HOST, "loop", "wait", start, time.perf_counter() - start, self.done[-1].index)
            self.pending.popleft()

    def _reconstruction(self, frame: Frame) -> Planes:
        """A copy of the decoded frame, cropped as in the SPS."""
        assert frame.decoded is not None
        pad, width, height = self.config.pad, self.config.output_width, self.config.output_height
        luma, chroma = frame.decoded
        cb, cr = chroma[:, pad // 2 :, pad // 2 :][:, : height // 2, : width // 2].copy()
        return luma[pad : pad + height, pad : pad + width].copy(), cb, cr

    # ---- devices that are missing or lost
    def _make_loop(self, device: str) -> Loop | HybridLoop:
        width = self.config.mb_width
        slices = [(width * row0, width * row1) for row0, row1 in self.slice_rows]
        config = self.config
        picture = Picture(Size(width, config.mb_height, config.pad), config.ref, config.ref, config.me)
        tuning = config.tuning
        models, pins = (tuning.models, tuning.pins) if tuning is not None else (None, {})
        hybrid = Hybrid(picture, config.split, self.warn, models, pins)
        choices = tuning.choices if tuning is not None and config.gpu_choices is None else config.gpu_choices
        threads = config.stage_threads if device == "cpu" else config.threads
        executor = make_executor(device, threads, config.mb_height, slices, self.trace, config.ordinal, hybrid, choices)
        try:
            if isinstance(executor, HybridExecutor):
                return HybridLoop(config, self.slice_rows, executor)
            return Loop(config, self.slice_rows, executor)
        except BaseException:
            executor.close()
            raise

    def _start(self) -> tuple[Loop | HybridLoop, list[Frame]]:
        """The loop on the configured device, or on the CPU if that device fails and was not named by the user."""
        loop = None
        try:
            loop = self._make_loop(self.config.device)
            return loop, self._make_ring(loop)
        except (DeviceUnavailable, DeviceMemoryError, GpuLost) as error:
            if loop is not None:
                loop.executor.close()
            if not self.config.may_change_device:
                kind = DeviceError if isinstance(error, DeviceUnavailable) else Error
                raise kind(f"device {self.config.device}: {error}") from None
            self.warn(f"{error}; encoding on the CPU")
        except LimitError as error:
            raise Error(str(error)) from None
        loop = self._make_loop("cpu")
        return loop, self._make_ring(loop)

    def _make_ring(self, loop: Loop | HybridLoop) -> list[Frame]:
        """The frames in flight, the one in the loop, and those read ahead, if any (`_ring_length`)."""
        config, executor = self.config, loop.executor
        self.in_flight = config.stage_threads if config.device == "cpu" else config.threads
        if isinstance(executor, CudaExecutor):
            self.in_flight = min(config.threads, IN_FLIGHT_ON_GPU)
        self._replaceable = config.may_change_device and executor.frames_on_device > 0
        by_rows = isinstance(executor, HybridExecutor)
        self._keeps_some = self._replaceable and not by_rows and not self.keep_reconstruction
        return self._places(loop, self._ring_length())

    def _ring_length(self) -> int:
        """In flight + 1 + read ahead; + `ref` if the CPU replaces a lost GPU; + DOWNLOAD_CYCLE - 1 if reconstructions are
        downloaded only for the last `ref` of every DOWNLOAD_CYCLE frames. Shortly before the first lost frame the ring then
        holds a frame whose references are on the host, and all sources from it on.
        """
        length = self.in_flight + 1 + self._reads_ahead * READ_AHEAD_FRAMES + self._replaceable * self.config.ref
        return length + self._keeps_some * (DOWNLOAD_CYCLE - 1)

    def _places(self, loop: Loop | HybridLoop, count: int) -> list[Frame]:
        """`count` frames for the ring."""
        config, executor = self.config, loop.executor
        size, by_rows = (config.mb_width, config.mb_height), isinstance(executor, HybridExecutor)
        on_host = not executor.frames_on_device
        places = [Frame(*size) if on_host else HostFrame(*size, executor.host_zeros, config.display, by_rows)
                  for _ in range(count)]
        if isinstance(executor, CudaExecutor) and executor.upload_fences:
            for frame in places:
                assert isinstance(frame, HostFrame)
                frame.upload_fence = executor.host_zeros((1,), np.int64)
                frame.upload_fence[0] = READY
        if self._replaceable or self.keep_reconstruction:
            luma = (config.coded_height + 2 * config.pad, config.coded_width + 2 * config.pad)
            chroma = (2, config.coded_height // 2 + config.pad, config.coded_width // 2 + config.pad)
            for frame in places:
                frame.decoded = executor.host_zeros(luma, np.uint8), executor.host_zeros(chroma, np.uint8)
        return places

    def _go_on_without_the_gpu(self, lost: Exception, entering: Frame | None = None) -> None:
        """Redo on the CPU the first frame whose results were not downloaded, and all later ones.

        DeviceLost, once, if the GPU was named by the user: finished frames can still be fetched.
        """
        whole = [isinstance(future.exception(), GpuLost) for _, _, future in self.pending]
        first = whole.index(True) if True in whole else len(whole)
        again = [frame for frame, _, _ in list(self.pending)[first:]]
        if entering is not None and entering not in again:
            again.append(entering)
        while len(self.pending) > first:
            self.pending.pop()
        if not self.config.may_change_device:
            raise DeviceLost(str(lost)) from None
        at = self._references_home(again[0])
        redone = [self._in_ring(index) for index in range(at.index, again[0].index)]  # for their reconstructions
        if any(isinstance(frame, HostFrame) and frame.picture is not None for frame in (*redone, *again)):
            raise DeviceLost(f"{lost}; frames that lay there are lost with it") from None
        self.warn(f"{lost}; going on with the CPU from frame {again[0].number}")
        self.loop.executor.close(keep_host=True)  # the frames of the ring stay in use
        self.loop = loop = self._make_loop("cpu")
        assert isinstance(loop, Loop)
        loop.restore([self._in_ring(at.index - n - 1) for n in range(at.n_ref)])
        for frame in redone:
            frame.stage_seconds = {}
            loop.run(frame)
        for frame in again:
            self._enter(frame)

    def _in_ring(self, index: int) -> Frame:
        return self.ring[index % len(self.ring)]

    def _references_home(self, frame: Frame) -> Frame:
        """The last frame, up to `frame`, whose references were downloaded."""
        while not all(self._in_ring(frame.index - n - 1).kept for n in range(frame.n_ref)):
            frame = self._in_ring(frame.index - 1)
        return frame
