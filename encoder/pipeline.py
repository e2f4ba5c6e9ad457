"""The pipeline of one device: sends each frame through the executor, as its FrameSpec says, and writes its NAL units.

source, spec -> CodingDecider -> executor.encode(spec, frame) -> slice writer -> EncodedFrame
"""

import threading
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from ..cpu_simd.bundles import CodingTools, Entries, Macroblocks
from ..cpu_simd.source.ssd import totals
from ..jit.compiling import clock
from ..process import start_threads
from ..scheduler.check import TwinDiffers
from ..scheduler.devices import DeviceMemoryError, DeviceUnavailable, GpuLost
from ..scheduler.frame_spec import FrameSpec, P
from ..scheduler.frames.device_frame import DeviceFrame
from ..scheduler.frames.frame import Frame, HostFrame, SourceBuffer
from ..scheduler.frames.frame_executor import FrameExecutor
from ..scheduler.frames.host_rgb import RgbFrame
from ..scheduler.threads.watchdog import LimitError, Stuck
from ..scheduler.trace import HOST, Trace
from ..standard.macroblock import MB_TYPE_NAMES
from ..standard.sample_format import chroma_shape
from .decisions.coding_decider import CodingDecider
from .decisions.frame_order import FrameOrder
from .decisions.slice_cutter import SliceCutter
from .encoded_frame import EncodedFrame
from .errors import DeviceError, DeviceLost, Error, InputError, RefusedFrame
from .files.read_ahead import Read
from .frame_pipeline import FramePipeline
from .frames.source import HostSource, Planes, Source, check_range, outside_text, planes_of
from .hrd_syntax import filler_data
from .prepare_kernels import prepare
from .settings.config import Config, with_bt709
from .settings.frame_requests import IDR, Request
from .slice_writer import SliceWriter
from .statistics import SUMMED
from .warm_up import load_for_gpu, loaded_for_gpu

FAILURES = (GpuLost, DeviceMemoryError, DeviceUnavailable, LimitError, Stuck, TwinDiffers)  # of a device, see `public_error`

_N_TOTALS = 7 + len(MB_TYPE_NAMES)  # of `totals`
_ARRAYS = tuple, np.ndarray  # types of sources that are planes or I420


class Pipeline(FramePipeline):
    """Encodes frames in coding order. One frame at a time is in the loop; entropy coding of earlier ones runs in parallel.

    warn: called with a sentence when an encode that chose its device itself continues without it. trace: for the timeline.
    """

    def __init__(
        self,
        config: Config,
        keep_reconstruction: bool = False,
        warn: Callable[[str], None] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.config, self._display = config, config.coding.display
        self.trace = trace
        self.keep_reconstruction = keep_reconstruction
        self.writer = SliceWriter(config)
        self._loading = threading.Thread(target=load_for_gpu, args=(config.machine.device == "hybrid",), daemon=True)
        if config.machine.device != "cpu" and not loaded_for_gpu(config.machine.device == "hybrid"):
            start_threads([self._loading], [])  # if no thread starts, loading happens at first use
        warn = warn or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=4))
        self.decider = CodingDecider(config, warn)
        self._cutter = SliceCutter.of(config, warn)
        try:
            self.executor: FrameExecutor[EncodedFrame] = FrameExecutor(
                config.coding, config.machine, keep_reconstruction, self.decider.most_in_flight, warn, trace
            )
        except FAILURES as error:
            error_type = DeviceError if isinstance(error, DeviceUnavailable) else Error
            raise (
                Error(str(error)) if isinstance(error, LimitError) else error_type(f"device {config.machine.device}: {error}")
            ) from None
        self._totals: Callable[..., None] | None = None  # the kernel's function for these arrays, chosen once
        self.done: list[EncodedFrame] = []  # not fetched yet; an interrupt may duplicate the last one
        self._taken: list[EncodedFrame] = []
        self._read_buffer: np.ndarray | None = None  # where Reads are read if frames have none
        if config.machine.device != "cuda":
            prepare(config)

    @property
    def taken(self) -> list[EncodedFrame]:
        return self._taken

    @property
    def on_gpu(self) -> bool:
        return self.executor.on_gpu

    def headers(self) -> bytes:
        return self.writer.parameter_sets

    def reconfigure(self, config: Config, first: int | None = None) -> None:
        """first: the next frame in display order, if not by the frames of this pipeline. Constant QPs change in nothing."""
        self.decider.reconfigure(self.executor.ring.count if first is None else first, config)

    def request(self, request: Request | None) -> None:
        self.decider.request(request)

    def encode(
        self, source: Source, spec: FrameSpec | None = None, ahead: Sequence[FrameSpec] = ()
    ) -> list[EncodedFrame]:  # fmt: skip
        """spec: of a caller that decides about waiting frames (Gops, ReorderingPipeline), and ahead: those that follow it."""
        frame = self._next_frame()
        try:
            if isinstance(source, DeviceFrame):
                return self._encode_on_gpu(frame, source, spec, ahead)
            return self._encode(frame, spec, self._load(frame, source), ahead)
        finally:
            frame.complete()  # also after an interrupt: the caller's planes are no longer read

    def _load(self, frame: Frame, source: HostSource | Read) -> Sequence[np.ndarray]:
        """Put a source into the frame; its planes, uint8 of display size."""
        ring, display = self.executor.ring, self._display
        if not isinstance(source, _ARRAYS):
            source = self._read(source)
        elif isinstance(source, RgbFrame):
            check_range(source, ring.load_rgb(frame, source), ring.count)
            self.set_bt709()
            return frame.display_planes(display)
        start = time.perf_counter()
        planes: Sequence[np.ndarray]
        if isinstance(frame, HostFrame) and source is frame.source:  # it was read into the frame
            frame.loaded()
            planes = frame.input_planes
        else:
            y, u, v = planes = planes_of(source, display)
            ring.load(frame, y, u, v)
        if self.trace is not None:
            self.trace.add(HOST, "loop", "load", start, time.perf_counter() - start, ring.count)
        return planes

    def _read(self, read: Read) -> np.ndarray:
        """A frame that is read now."""
        buffer = self.next_buffer()
        if buffer is None:
            if self._read_buffer is None:
                self._read_buffer = np.empty(sum(height * width for height, width in self._display), np.uint8)
            buffer = self._read_buffer
        read(buffer)
        return buffer

    def exchange(self, buffer: SourceBuffer) -> SourceBuffer:
        """Give the next frame a loaded buffer of the ring (FrameRing.exchanges), whose `source` `encode` then gets; returns
        the one that it had.
        """
        frame = self._next_frame()
        assert isinstance(frame, HostFrame)
        return frame.exchange(buffer)

    def _encode_on_gpu(
        self, frame: Frame, source: DeviceFrame, spec: FrameSpec | None, ahead: Sequence[FrameSpec]
    ) -> list[EncodedFrame]:  # fmt: skip
        """A frame in the memory of the executor's device, or one that `enter_on_gpu` has copied to a buffer there."""
        if source.buffered is None:
            source = self.enter_on_gpu(source, self.config.coding.weightp > 0 or self.config.coding.aq_mode > 0)
        elif not self.executor.on_gpu:
            raise DeviceLost("the GPU is lost; source frames on it are lost too")
        assert isinstance(frame, HostFrame)
        frame.load_from_gpu(source)
        done = self._encode(frame, spec, (), ahead)
        if source.buffered is not None:
            self.executor.release(source)
        return done

    def enter_on_gpu(self, source: DeviceFrame, hold: bool, begun: bool = False) -> DeviceFrame:
        """Check a frame on the GPU that comes in; hold: copy it to a buffer there, which is returned in its place.

        begun: see set_bt709.
        """
        if self._cutter is not None:
            raise InputError("frames on a GPU cannot have slices of a size, which the host writes; copy them to it first")
        from .frames.device_frame import check_device

        try:
            self.executor.check_device(source, check_device)
        except GpuLost as lost:
            raise DeviceLost(f"{lost}; source frames on it are lost too") from None
        if source.is_rgb:
            self.set_bt709(begun)
        try:
            return self.executor.hold(source) if hold else source
        except FAILURES as error:
            raise public_error(error) from None

    def next_buffer(self, ahead: int = 0) -> np.ndarray | None:
        return self.executor.ring.next_buffer(ahead)

    def read_ahead(self, later: Callable[[int], Read] | None = None) -> bool:
        return self.executor.read_ahead()

    def flush(self) -> list[EncodedFrame]:
        try:
            return self._finished(0)
        except FAILURES as error:
            raise public_error(error) from None

    def close(self) -> None:
        if self._loading.ident is not None:
            self._loading.join()
        self.executor.close()

    def compile(self, stages: Sequence[str]) -> None:
        """Run stages on an empty frame to compile their kernels."""
        order = FrameOrder(self.config)
        order.add(IDR)
        self.executor.compile(order.add(P)[0], stages)

    def _next_frame(self) -> Frame:
        """The frame to load. If an interrupt left too many in flight, some are finished first."""
        executor = self.executor
        if len(executor.in_flight) > executor.ring.in_flight:
            self._finish(executor.ring.in_flight)
        return executor.ring.next()

    def _encode(
        self, frame: Frame, spec: FrameSpec | None, planes: Sequence[np.ndarray], ahead: Sequence[FrameSpec]
    ) -> list[EncodedFrame]:
        """planes: the source, uint8 of display size; empty if it is on the GPU. spec, ahead: see `encode`."""
        decider = self.decider
        try:
            spec = decider.next() if spec is None else spec
            if (lag := decider.lag(spec)) is not None:
                self._finish(lag - 1)
            spec = decider.complete(spec, ahead, frame, planes)
            if decider.has_buffer or self._cutter is not None:
                self._code_to_fit(frame, spec)
            else:
                self._code(frame, spec)
            return self._finished(0 if self.config.machine.waits_for_packets else self.executor.ring.in_flight)
        except FAILURES as error:
            raise public_error(error) from None

    def _code(self, frame: Frame, spec: FrameSpec) -> None:
        """Start a frame."""
        frame.headers, frame.sei = self.writer.headers(spec), self.writer.sei(self.decider.times())
        self.executor.encode(spec, frame, self._write)

    def _code_to_fit(self, frame: Frame, spec: FrameSpec) -> None:
        """Code a frame until its slices are small enough (SliceCutter) and it fits the buffer (BufferControl), where there
        are such limits. It is then finished, and with its filler data.
        """
        executor, decider, cutter = self.executor, self.decider, self._cutter
        spec = spec if cutter is None else cutter.first(spec)
        try:
            while True:
                self._code(frame, spec)
                coded: EncodedFrame = executor.in_flight[-1].result()
                other = None if cutter is None else cutter.again(frame)
                if other is None and decider.has_buffer and (higher := decider.again(coded.bits)) is not None:
                    other = higher.changed(slices=spec.slices)
                if other is None:
                    break
                executor.take_back()
                spec = other
        except BaseException:
            executor.in_flight.clear()  # a frame that may not fit leaves; the stream ends before it
            raise
        if not decider.has_buffer:
            return
        coded.in_buffer = in_buffer = decider.take(spec, coded.bits)
        coded.data += filler_data(in_buffer.filler)
        if coded.bits_by_kind is not None and in_buffer.filler:
            coded.bits_by_kind = coded.bits_by_kind[0] + 8 * in_buffer.filler, *coded.bits_by_kind[1:]

    def set_bt709(self, begun: bool = False) -> None:
        """begun: frames of the stream were entered, if not in this pipeline."""
        config = with_bt709(self.config, begun or self.executor.ring.count > 0)
        if config is not self.config:
            self.config, self.writer = config, SliceWriter(config)

    def _write(self, frame: Frame) -> EncodedFrame:
        """Write the NAL units of a frame after its loop."""
        start, begin = time.perf_counter(), clock()
        frame.write_slices()
        data = self.writer.access_unit(frame)
        frame.release_source()
        spent = frame.stage_seconds["entropy"] = clock() - begin
        if self.trace is not None:
            self.trace.add(HOST, threading.current_thread().name, "entropy", start, spent, frame.spec.display_index)
        frame_totals = np.empty(_N_TOTALS, np.int64)
        results = frame.mb_type, frame.qp, frame.transform_8x8, frame.ssd_y, frame.ssd_u, frame.ssd_v, frame_totals
        if self._totals is None:
            self._totals = totals.chosen(*results)
        self._totals(*results)
        ssd_y, ssd_u, ssd_v, total_qp, least_qp, most_qp, transform_8x8 = frame_totals[:7].tolist()
        spec = frame.spec
        config, bits, qp = self.config, 8 * len(data), spec.qp
        return EncodedFrame(  # positional: by keywords it takes three times as long
            spec.display_index,
            spec.coding_index,
            spec.pts,
            spec.dts,
            spec.frame_type,
            spec.is_idr,
            qp,
            total_qp / frame.qp.size if spec.mb_qp else float(qp),
            (least_qp, most_qp) if spec.mb_qp else (qp, qp),
            spec.qp_by,
            spec.is_reference,
            spec.is_qp_requested,
            spec.over_factor,
            spec.predicted,
            _mean_qp(spec) if config.rate.pass_ else 0,
            data,
            frame_totals[7:],
            transform_8x8 if config.coding.transform_8x8_mode else 0,
            (ssd_y, ssd_u, ssd_v),
            [int(frame.results[name].sum()) for name in SUMMED],
            bits,
            self._bits_by_kind(frame, bits) if config.coding.bits_by_kind else None,
            frame.stage_seconds,
            self._reconstruction(frame) if self.keep_reconstruction else None,
            refused=frame.refused,
        )

    def _bits_by_kind(self, frame: Frame, bits: int) -> tuple[int, ...]:
        """Headers, which are all but the others; vectors, luma levels, chroma levels. bits: of the access unit."""
        from ..cpu_simd.entropy.bits_by_kind import CHROMA, LUMA, N_KINDS, UNIT, VECTORS, bits_by_kind  # few encodes need it

        spec, config, kinds = frame.spec, self.config, np.empty(N_KINDS, np.int64)
        starts = np.array([*(first_mb for first_mb, _ in spec.slices), config.coding.n_mb], np.int32)
        macroblocks = Macroblocks(*(frame.results[name] for name in Macroblocks._fields))
        tools = CodingTools(config.coding.trellis, int(config.coding.transform_8x8_mode), int(config.coding.cabac))
        n_ref1 = spec.n_ref1 if config.coding.has_b_frames else None
        entries = Entries(spec.n_ref, n_ref1)
        bits_by_kind(starts, frame.frame_params, entries, config.coding.mb_width, macroblocks, tools, kinds)
        vectors, luma, chroma = ((kinds[[VECTORS, LUMA, CHROMA]] + UNIT // 2) // UNIT).tolist()
        return bits - vectors - luma - chroma, vectors, luma, chroma

    def _finished(self, limit: int) -> list[EncodedFrame]:
        """Frames whose bits are written, in order; blocks until at most `limit` are in flight."""
        self._finish(limit)
        self._taken, self.done = self.done, []
        return self._taken

    def _finish(self, limit: int) -> None:
        """Move those frames to `done`. RefusedFrame for a refused one, which is dropped with those after it."""
        in_flight = self.executor.in_flight
        while in_flight and (len(in_flight) > limit or in_flight[0].done()):
            start = time.perf_counter()
            coded = in_flight[0].result()
            if coded.refused:
                in_flight.clear()
                raise RefusedFrame(outside_text(coded.index))
            self.decider.learn(coded.coding_index, coded.bits)
            self.done.append(coded)
            if self.trace is not None:
                self.trace.add(HOST, "loop", "wait", start, time.perf_counter() - start, coded.index)
            in_flight.popleft()

    def _reconstruction(self, frame: Frame) -> Planes:
        """A copy of the decoded frame, cropped as in the SPS."""
        assert frame.decoded is not None
        pad, width, height = self.config.coding.pad, self.config.coding.output_width, self.config.coding.output_height
        luma, chroma = frame.decoded
        (top, left), (rows, columns) = chroma_shape(pad, pad), chroma_shape(height, width)
        cb, cr = chroma[:, top : top + rows, left : left + columns].copy()
        return luma[pad : pad + height, pad : pad + width].copy(), cb, cr


def _mean_qp(spec: FrameSpec) -> int:
    """See adaptive_quantisation.mean_qp."""
    from .decisions.adaptive_quantisation import mean_qp

    return mean_qp(spec)


def public_error(error: BaseException) -> Error:
    """A failure of a device as an exception of the public interface."""
    if isinstance(error, TwinDiffers):
        return Error(f"H264LITE_CHECK: {error}")
    return Error(str(error)) if isinstance(error, Stuck) else DeviceLost(str(error))
