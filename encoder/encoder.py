"""The Python API: frames in, packets out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InputError, OptionError
from .files.device_frame import INTERFACE, describe, is_on_gpu
from .files.read_ahead import Read
from .session import FAILED, FLUSHED, FLUSHING, OPEN, Session
from .settings.config import Config
from .settings.options import ALL, API, OPTIONS, read_options
from .statistics import FrameRow, Statistics

if TYPE_CHECKING:
    from .pipeline import EncodedFrame

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]
_API_OPTIONS = tuple(row for row in OPTIONS if row.scope in (ALL, API))


@dataclass(frozen=True)
class Packet:
    """One access unit, Annex B. Times count frames: seconds = pts / fps."""

    data: bytes
    pts: int
    dts: int
    duration: int
    is_keyframe: bool
    frame_type: str  # "I" or "P"
    qp: float  # mean over the macroblocks
    reconstruction: Planes | None = None  # the decoder's output, if requested


class Encoder:
    """Encodes frames one after another: `encode(frame)` for each, then `flush()`.

    Options are those of the command line, with underscores (docs/options.md). Usable in a `with` statement, which
    closes it; `flush` must still be called for the last packets. One thread at a time may feed it, in the process that made
    it: else Error. Several encoders may run at once.

    An exception out of `encode` that is no InputError (an interrupt, a timeout raised by a signal handler, MemoryError) ends
    the stream: further frames are refused, and `flush` returns the packets of the frames before.
    """

    def __init__(self, width: int, height: int, fps: Any = 25, *, keep_reconstruction: bool = False, **options: Any):
        read_options({"width": width, "height": height, "fps": fps, **options}, _API_OPTIONS)
        self._start(Config.from_options(width=width, height=height, fps=fps, **options), keep_reconstruction)

    @classmethod
    def from_config(
        cls,
        config: Config,
        keep_reconstruction: bool = False,
        warn: Callable[[str], None] | None = None,
        trace: Any = None,
        frames: int | None = None,
    ) -> "Encoder":
        """An encoder from checked settings.

        warn: called instead of a RuntimeWarning; trace: a scheduler.trace.Trace for the timeline. frames: their number,
        None = unknown.
        """
        encoder = cls.__new__(cls)
        encoder._start(config, keep_reconstruction, warn, trace, frames)
        return encoder

    def _start(
        self,
        config: Config,
        keep_reconstruction: bool,
        warn: Callable[[str], None] | None = None,
        trace: Any = None,
        frames: int | None = None,
    ) -> None:
        from .gops.gops import make_pipeline  # compiles nothing, but imports Numba

        self.config = config
        self._keep = keep_reconstruction
        self._pipeline: Any = make_pipeline(config, keep_reconstruction or config.ssim, warn, trace, frames)
        self.stats = Statistics(config.width, config.height, config.fps, config.psnr, config.ssim)
        self._session = Session(self._pipeline, self.stats)

    @property
    def headers(self) -> bytes:
        """Sequence and picture parameter set, Annex B; every keyframe's packet also begins with them."""
        self._session.require(OPEN, FAILED, FLUSHING, FLUSHED)
        return self._pipeline.headers()

    def encode(self, frame: Any, stream: Any = None) -> list[Packet]:
        """Encode one frame; return the finished packets, in order. They may be those of earlier frames.

        frame: uint8[H * 3 // 2, W] I420 for even sizes, or (y, u, v), uint8[H, W] and twice uint8[(H+1)//2, (W+1)//2].
        With device cuda also GPU arrays of any library (`__cuda_array_interface__`): those, NV12 as (y, uv), or RGB (H, W, 3)
        or (3, H, W). The read is ordered after the earlier work of `stream` (a number or any library's object; default: the
        stream that the array names, or its library's current one: encoder/files/producer.py); later work of that stream
        may overwrite the frame.
        """
        if is_on_gpu(frame):
            self._session.require(OPEN)
            if self.config.device == "cpu":
                raise InputError(f"a frame on a GPU, and this encoder runs on the CPU ({self.config.device_reason}): copy it "
                                 "to the host, or take device='cuda'")
            if self.config.ssim:
                raise InputError("ssim needs the frames on the host: copy them there, or do without ssim")
            source = replace(describe(frame, self.config.width, self.config.height, stream), frame=frame)
            self._session.feed(self._pipeline.encode_on_gpu, source)
        else:
            self._session.feed(self._encode, check_frame(frame, self.config.width, self.config.height))
        return self._packets()

    def flush(self) -> list[Packet]:
        """The remaining packets; no frame can follow. After an exception it may be called again."""
        self._session.drain()
        return self._packets()

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

    def _packets(self) -> list[Packet]:
        """Finished frames as packets; made before `hand_out`, so that an interrupt loses none."""
        packets = [self._packet(frame) for frame, _ in self._session.ready]
        self._session.hand_out()
        return packets

    def _packet(self, frame: "EncodedFrame") -> Packet:
        return Packet(frame.data, frame.pts, frame.dts, 1, frame.is_idr, frame.frame_type, float(frame.avg_qp),
                      frame.reconstruction if self._keep else None)


def check_frame(frame: Any, width: int, height: int) -> Planes:
    """(y, u, v) of a frame, each C-contiguous; InputError if type, shape or dtype is wrong."""
    chroma = ((height + 1) // 2, (width + 1) // 2)
    if isinstance(frame, tuple | list):
        if len(frame) != 3:
            raise InputError(f"a frame of {len(frame)} planes: there must be three, (y, u, v)")
        y, u, v = (_array(plane, name) for plane, name in zip(frame, ("y", "u", "v")))
        for plane, name, shape in ((y, "y", (height, width)), (u, "u", chroma), (v, "v", chroma)):
            if plane.shape != shape:
                raise InputError(f"plane {name} of shape {plane.shape}: {width}x{height} needs {shape}")
        return tuple(np.ascontiguousarray(plane) for plane in (y, u, v))  # type: ignore[return-value]
    packed = _array(frame, "frame")
    if packed.ndim == 3:
        raise InputError(f"a frame of shape {packed.shape} looks like RGB, which is not supported yet: give I420, "
                         f"uint8 ({height * 3 // 2}, {width}), or planes (y, u, v)")
    if width % 2 or height % 2:
        raise InputError(f"{width}x{height} is odd: give planes (y, u, v), chroma {chroma}")
    if packed.shape != (height * 3 // 2, width):
        raise InputError(f"a frame of shape {packed.shape}: {width}x{height} in I420 is ({height * 3 // 2}, {width})")
    packed = np.ascontiguousarray(packed)
    flat = packed.reshape(-1)
    luma, part = width * height, chroma[0] * chroma[1]
    return packed[:height], flat[luma : luma + part].reshape(chroma), flat[luma + part :].reshape(chroma)


def _array(value: Any, name: str) -> np.ndarray:
    if hasattr(value, "__cuda_array_interface__"):
        raise InputError(f"{name} is on the GPU, and other planes are not")
    if not isinstance(value, np.ndarray):
        if not (hasattr(value, "__array__") or hasattr(value, "__array_interface__")):
            raise InputError(f"{name}: {type(value).__name__} is not an array")
        try:
            value = np.asarray(value)
        except ValueError as error:
            raise InputError(f"{name}: {type(value).__name__} gives no array ({error})") from None
    if value.dtype != np.uint8:
        raise InputError(f"{name} of dtype {value.dtype}: only uint8 is supported")
    return np.asarray(value)


def encode(frames: Iterable[Any], fps: Any = 25, **options: Any) -> bytes:
    """Encode `frames` into one Annex B stream. The size is the first frame's."""
    read_options({"fps": fps, **options}, _API_OPTIONS)
    iterator = iter(frames)
    first = next(iterator, None)
    if first is None:
        raise InputError("no frames to encode")
    if "width" not in options and "height" not in options:
        options["width"], options["height"] = _size_of(first)
    elif "width" not in options or "height" not in options:
        raise OptionError("width and height belong together: give both, or none")
    with Encoder(fps=fps, **options) as encoder:
        packets = encoder.encode(first)
        for frame in iterator:
            packets += encoder.encode(frame)
        packets += encoder.flush()
    return b"".join(packet.data for packet in packets)


def _size_of(frame: Any) -> tuple[int, int]:
    """(width, height) of a frame that is not checked yet."""
    part = frame[0] if isinstance(frame, tuple | list) and frame else frame
    if is_on_gpu(frame) and hasattr(part, INTERFACE):
        shape = tuple(getattr(part, INTERFACE)["shape"])
        if len(shape) == 3 and 3 in (shape[0], shape[2]):
            return (shape[1], shape[0]) if shape[2] == 3 else (shape[2], shape[1])
        if len(shape) == 2 and (part is not frame or shape[0] % 3 == 0):
            return shape[1], shape[0] if part is not frame else shape[0] * 2 // 3
        raise InputError(f"a frame of shape {shape}: I420 is uint8 (H * 3 // 2, W); or RGB, or planes (y, u, v)")
    if isinstance(frame, tuple | list):
        y = _array(frame[0], "y") if frame else np.empty(0, np.uint8)
        if y.ndim != 2:
            raise InputError(f"plane y of shape {y.shape}: a plane has two dimensions")
        return y.shape[1], y.shape[0]
    packed = _array(frame, "frame")
    if packed.ndim != 2 or packed.shape[0] % 3:
        raise InputError(f"a frame of shape {packed.shape}: I420 is uint8 (H * 3 // 2, W); or give planes (y, u, v)")
    return packed.shape[1], packed.shape[0] * 2 // 3

