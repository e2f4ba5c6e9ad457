"""The Python API: frames in, packets out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ..process import gc_paused
from ..scheduler.frames.host_rgb import RgbFrame
from .errors import InputError
from .files.read_ahead import Read
from .frames.device_frame import DeviceFrame
from .frames.layouts import Known
from .frames.reader import Chunk, FrameReader, Source, plain_planes
from .session import FAILED, FLUSHED, FLUSHING, OPEN, Session
from .settings.config import Config
from .settings.frame_requests import Request, request_of
from .settings.keywords import EncoderOptions, Rate
from .settings.options import ALL, API, OPTIONS, read_options
from .settings.pass_file import WRITING, PassFile
from .statistics import FrameRow, Statistics

if TYPE_CHECKING:
    from .pipeline import EncodedFrame

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]
_API_OPTIONS = tuple(row for row in OPTIONS if row.scope in (ALL, API))


@dataclass(frozen=True)
class Packet:
    """One access unit, Annex B. Times count frames: seconds = pts / fps; dts <= pts, and the first dts may be negative."""

    data: bytes
    pts: int
    dts: int
    duration: int
    is_keyframe: bool
    frame_type: str  # "I", "P" or "B"
    qp: float  # mean over the macroblocks
    reconstruction: Planes | None = None  # the decoder's output, if requested


class Encoder:
    """Encodes frames one after another: `encode(frame)` for each, then `flush()`.

    Options are those of the command line, with underscores (docs/options.md). Usable in a `with` statement, which
    closes it; `flush` must still be called for the last packets. One thread at a time may feed it, in the process that made
    it: else Error. Several encoders may run at once.

    An exception out of `encode` that is no InputError (an interrupt, a timeout raised by a signal handler, MemoryError) ends
    the stream: further frames are refused, and `flush` returns the packets of the frames before. With B frames an exception
    out of `flush` ends the stream too, and frames that waited for a later one may be missing.
    """

    def __init__(
        self,
        width: int,
        height: int,
        fps: Rate = 25,
        *,
        keep_reconstruction: bool = False,
        layout: str | None = None,
        format: str | None = None,
        value_range: tuple[float, float] | None = None,
        **options: Unpack[EncoderOptions],
    ):
        """layout, format, value_range: of frames that may be read in several ways (docs/python.md)."""
        reader = FrameReader(layout, format, value_range)
        read_options({"width": width, "height": height, "fps": fps, **options}, _API_OPTIONS)
        self._start(Config.from_options(width=width, height=height, fps=fps, **options), keep_reconstruction, reader=reader)

    @classmethod
    def from_config(
        cls,
        config: Config,
        keep_reconstruction: bool = False,
        warn: Callable[[str], None] | None = None,
        trace: Any = None,
        frames: int | None = None,
        length: int | None = None,
        make: Callable[[Config, bool], Any] | None = None,
    ) -> "Encoder":
        """An encoder from checked settings.

        warn: called instead of a RuntimeWarning; trace: a scheduler.trace.Trace for the timeline. frames: their number if
        they are read in any order, length: in any case; None = unknown. make: makes the pipeline by settings, and whether
        reconstructions are kept, in place of make_pipeline.
        """
        encoder = cls.__new__(cls)
        encoder._start(config, keep_reconstruction, warn, trace, frames, length, make=make)
        return encoder

    def _start(
        self,
        config: Config,
        keep_reconstruction: bool,
        warn: Callable[[str], None] | None = None,
        trace: Any = None,
        frames: int | None = None,
        length: int | None = None,
        reader: FrameReader | None = None,
        make: Callable[[Config, bool], Any] | None = None,
    ) -> None:
        self.config = config
        pass_file = PassFile(config) if config.pass_ in WRITING else None
        self._keep = keep_reconstruction
        with gc_paused():
            from .make_pipeline import make_pipeline  # compiles nothing

            keep = keep_reconstruction or config.ssim
            self._pipeline: Any = make(config, keep) if make else make_pipeline(config, keep, warn, trace, frames, length)
        self.stats = Statistics(config.width, config.height, config.fps, config.psnr, config.ssim)
        self._session = Session(self._pipeline, self.stats, pass_file)
        self._reader = reader or FrameReader()
        self._reader.known = Known("", config.width, config.height)
        self._plain = self._reader.layout is None and self._reader.format in (None, "i420")

    @property
    def headers(self) -> bytes:
        """Sequence and picture parameter set, Annex B; every keyframe's packet also begins with them."""
        self._session.require(OPEN, FAILED, FLUSHING, FLUSHED)
        return self._pipeline.headers()

    def encode(
        self, frame: Any, stream: Any = None, *, keyframe: bool = False, qp: int | None = None, frame_type: str | None = None
    ) -> list[Packet]:  # fmt: skip
        """Encode one frame; return the finished packets, in coding order (rising dts). They may be those of earlier frames:
        with B frames none for some calls, then several at once.

        frame: an array of NumPy, PyTorch, CuPy or JAX, of any library with DLPack or an array interface, or an image of PIL:
        RGB (H, W, 3) or (3, H, W), with alpha, which is dropped, or grey (H, W), uint8 or floating-point in 0..1; uint8
        I420 (H * 3 // 2, W) for even sizes; or planes (y, u, v), uint8[H, W] and twice uint8[(H+1)//2, (W+1)//2], or (y, uv)
        of NV12 (docs/python.md). RGB becomes BT.709 in limited range, which the stream says.

        With device cuda also arrays on its GPU. The read is ordered after the earlier work of `stream` (a number or any
        library's object; default: the stream that the array names, or its library's current one: frames/producer.py); later
        work of that stream may overwrite the frame. Of such floating-point frames values far outside of 0..1 are found
        only when the frame is encoded: a later call then raises InputError, and the stream ends before that frame.

        keyframe: an IDR frame, which begins a closed GOP. qp: of all macroblocks, 0..51, within qpmin and qpmax. frame_type:
        "IDR", "I", "P" or "B"; a type that is not possible is replaced with a RuntimeWarning: more B frames one after another
        than `bframes`, one before an I frame or at the end, any but IDR at the start or where `keyint` asks for it. The frame
        counts as the user's, whatever scenecut, b_adapt and qpfile say.
        """
        request = request_of(keyframe, qp, frame_type)
        if self.feed_plain(frame, request):
            return self.packets()
        chunk = self._reader.chunk(tuple(frame) if isinstance(frame, list) else frame, stream)
        if chunk.frames != 1:
            raise InputError(f"an array of {chunk.frames} frames: encode takes one; write_video and VideoWriter take many")
        self.feed(chunk.source(0), chunk, request)
        return self.packets()

    def feed_plain(self, frame: Any, request: Request | None = None) -> bool:
        """Encode a frame that needs no reading; False if it needs it. request: what is asked of it."""
        planes = plain_planes(frame, self.config.width, self.config.height) if self._plain else None
        if planes is not None:
            self._feed(request, self._encode, planes)
        return planes is not None

    def feed(self, source: Source, chunk: Chunk, request: Request | None = None) -> None:
        """Encode a frame of a chunk; InputError if it does not fit this encoder. request: what is asked of it."""
        self._session.require(OPEN)
        config = self.config
        if (chunk.width, chunk.height) != (config.width, config.height):
            raise InputError(self._other_size(chunk))
        if isinstance(source, DeviceFrame):
            if config.device == "cpu":
                raise InputError(f"a frame on a GPU, and this encoder runs on the CPU ({config.device_reason}): copy it "
                                 "to the host, or take device='cuda'")
            if config.needs_host_frames:
                name = config.needs_host_frames
                raise InputError(f"{name} needs the frames on the host: copy them there, or do without {name}")
            self._feed(request, self._pipeline.encode_on_gpu, source)
        elif isinstance(source, RgbFrame) and not config.ssim:
            self._feed(request, self._pipeline.encode_rgb, source, chunk.checked)
        elif isinstance(source, RgbFrame):
            self._feed(request, self._encode_planes_of, source, chunk.checked)
        else:
            self._feed(request, self._encode, source)

    def _feed(self, request: Request | None, step: Callable[..., Any], *arguments: Any) -> None:
        if request is None:
            self._session.feed(step, *arguments)
        else:
            self._session.feed(self._requested, request, step, *arguments)

    def _requested(self, request: Request, step: Callable[..., Any], *arguments: Any) -> Any:
        """A step with a request for its frame, which is gone if the frame is refused."""
        self._pipeline.request(request)
        try:
            return step(*arguments)
        finally:
            self._pipeline.request(None)

    def _other_size(self, chunk: Chunk) -> str:
        """The message for a frame of another size."""
        width, height = self.config.width, self.config.height
        text = f"a frame of shape {chunk.samples[0].shape} is {chunk.layout.format} of {chunk.width}x{chunk.height}: "
        if width % 2 or height % 2:
            chroma = (height + 1) // 2, (width + 1) // 2
            return f"{text}{width}x{height} is odd: give planes (y, u, v), chroma {chroma}, or RGB"
        return f"{text}{width}x{height} in I420 is ({height * 3 // 2}, {width})"

    def flush(self) -> list[Packet]:
        """The remaining packets; no frame can follow. After an exception it may be called again."""
        self._session.drain()
        return self.packets()

    def push(self, planes: Planes) -> list[tuple["EncodedFrame", FrameRow]]:
        """`encode` for checked planes; returns the finished frames with their statistics."""
        self._session.feed(self._encode, planes)
        return self._session.hand_out()

    def push_later(self, read: Read) -> list[tuple["EncodedFrame", FrameRow]]:
        """`push` for a frame that its lane reads; only for several GOPs at once (`lanes`)."""
        self._session.feed(self._pipeline.encode_later, read)
        return self._session.hand_out()

    def poll(self) -> list[tuple["EncodedFrame", FrameRow]]:
        """Finished frames; blocks up to 0.1 s if there are few or none."""
        self._session.poll()
        return self._session.hand_out()

    @property
    def takes_gpu_frames(self) -> bool:
        """Whether frames may lie on the GPU: it has one, there is one GOP at a time, and no option needs them on the host."""
        config = self.config
        return config.device != "cpu" and self.lanes is None and not config.needs_host_frames and bool(self._pipeline.on_gpu)

    @property
    def lanes(self) -> Any:
        """The encoder.gops.Gops of several GOPs at once; None if GOPs are encoded one at a time."""
        return self._pipeline if hasattr(self._pipeline, "poll") else None

    def next_buffer(self, ahead: int = 0) -> np.ndarray | None:
        """See Pipeline.next_buffer."""
        return self._pipeline.next_buffer(ahead)

    def read_ahead(self) -> bool:
        """See Pipeline.read_ahead."""
        return self._pipeline.read_ahead()

    def drain(self) -> list[tuple["EncodedFrame", FrameRow]]:
        """`flush` with the results of `push`."""
        self._session.drain()
        return self._session.hand_out()

    def close(self) -> None:
        """Release threads and memory; packets not fetched are lost. A second call does nothing."""
        self._session.close()

    def __enter__(self) -> "Encoder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _encode(self, planes: Planes) -> "Sequence[EncodedFrame]":
        self.stats.expect(planes[0])
        return self._pipeline.encode(*planes)

    def _encode_planes_of(self, source: RgbFrame, checked: bool) -> "Sequence[EncodedFrame]":
        """Through planes of our own, whose luma SSIM is measured by."""
        planes, outside = source.planes()
        if outside and checked:
            from .pipeline import outside_text

            raise InputError(outside_text(self.stats.frames))
        self._pipeline.set_bt709()
        return self._encode(planes)

    def packets(self) -> list[Packet]:
        """Finished frames as packets; made before `hand_out`, so that an interrupt loses none."""
        packets = [self._packet(frame) for frame, _ in self._session.ready]
        self._session.hand_out()
        return packets

    def _packet(self, frame: "EncodedFrame") -> Packet:
        return Packet(frame.data, frame.pts, frame.dts, 1, frame.is_idr, frame.frame_type, float(frame.avg_qp),
                      frame.reconstruction if self._keep else None)
