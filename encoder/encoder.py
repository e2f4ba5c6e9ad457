"""The Python API: frames in, packets out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Unpack

from .errors import InputError, RefusedFrame
from .frame_pipeline import FramePipeline
from .frames.layouts import Known
from .frames.reader import FrameReader
from .given_times import GivenTimes
from .packet import Packet, take_packets
from .session import open_session
from .settings.config import Config
from .settings.frame_requests import Request, request_of
from .settings.keywords import EncoderOptions, Rate
from .settings.options import ALL, API, OPTIONS
from .settings.user_options import read_options

_API_OPTIONS = tuple(row for row in OPTIONS if row.scope in (ALL, API))


def config_of(width: int, height: int, fps: Rate, options: Mapping[str, object]) -> Config:
    """The settings of keyword arguments, checked; OptionError."""
    read_options({"width": width, "height": height, "fps": fps, **options}, _API_OPTIONS)
    return Config.from_options(width=width, height=height, fps=fps, **options)


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
        self._start(config_of(width, height, fps, options), keep_reconstruction, reader)

    @classmethod
    def from_config(
        cls, config: Config, keep_reconstruction: bool = False, make: Callable[[Config, bool], FramePipeline] | None = None
    ) -> "Encoder":
        """An encoder from checked settings. make: see open_session."""
        encoder = cls.__new__(cls)
        encoder._start(config, keep_reconstruction, FrameReader(), make)
        return encoder

    def _start(
        self, config: Config, keep_reconstruction: bool, reader: FrameReader,
        make: Callable[[Config, bool], FramePipeline] | None = None,
    ) -> None:  # fmt: skip
        self.config, self._keep, self._reader = config, keep_reconstruction, reader
        self._session = open_session(config, keep_reconstruction, make=make)
        self._times = GivenTimes(config.video.fps, from_zero=False)
        self._pipeline: FramePipeline = self._session.pipeline
        self.stats = self._session.stats
        reader.known = Known("", config.coding.width, config.coding.height)

    @property
    def headers(self) -> bytes:
        """Sequence and picture parameter set, Annex B; every keyframe's packet also begins with them."""
        return self._session.headers()

    def encode(
        self, frame: object, stream: object = None, *, keyframe: bool = False, qp: int | None = None,
        frame_type: str | None = None, qp_offsets: object = None, pts: int | None = None,
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
        counts as the user's, whatever scenecut, b_adapt and qpfile say. qp_offsets: numbers[rows, columns], -51..51, rounded:
        what is added to the QP of each macroblock, whatever has decided that, within qpmin and qpmax. pts: a time in any
        unit, for all frames or none; they must rise. Packets then have pts, dts and duration in that unit.
        """
        request = None
        if keyframe or qp is not None or frame_type is not None or qp_offsets is not None:
            coding = self.config.coding
            request = request_of(keyframe, qp, frame_type, qp_offsets, (coding.mb_height, coding.mb_width))
        if pts is not None or self._times.used is not False:
            self._times.give(None, pts)
            self._times.enter()
        try:
            self._encode(frame, stream, request)
        except InputError as error:
            if not isinstance(error, RefusedFrame):
                self._times.take_back()
            raise
        return self._packets()

    def _encode(self, frame: object, stream: object, request: Request | None) -> None:
        planes = self._reader.plain(frame)
        if planes is not None:
            self._session.encode(planes, request)
        else:
            chunk = self._reader.chunk(tuple(frame) if isinstance(frame, list) else frame, stream)
            if chunk.frames != 1:
                many = "write_video and VideoWriter take many"
                raise InputError(f"an array of {chunk.frames} frames: encode takes one; {many}")
            self._session.encode_from(chunk, 0, request)

    def reconfigure(
        self, *, bitrate: int | None = None, vbv_maxrate: int | None = None, vbv_bufsize: int | None = None,
        crf: float | None = None,
    ) -> None:  # fmt: skip
        """Change numbers of rate control between two frames; None: as before. Units: those of the options (kbit/s, kbit).

        It counts from the first frame in coding order on that is given after the call: with B frames, those of the frames
        before that wait for it have the new numbers too, and all others that wait keep the old ones. When a packet has come
        makes no difference: the bytes follow from the frames between which it is called, on every device.

        OptionError, and nothing changes, for another mode (crf in place of bitrate), a buffer that was not there, one that
        the stream says (nal_hrd), two passes, and rates beyond the level of the stream: begin with a higher `level`.
        """
        changes = {"bitrate": bitrate, "vbv_maxrate": vbv_maxrate, "vbv_bufsize": vbv_bufsize, "crf": crf}
        self._session.reconfigure(changes)
        self.config = self._session.config

    def flush(self) -> list[Packet]:
        """The remaining packets; no frame can follow. After an exception it may be called again."""
        self._session.drain()
        return self._packets()

    def close(self) -> None:
        """Release threads and memory; packets not fetched are lost. A second call does nothing."""
        self._session.close()

    def __enter__(self) -> "Encoder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _packets(self) -> list[Packet]:
        packets, times = take_packets(self._session, self._keep), self._times
        if not times.used:
            return packets
        return [
            replace(p, pts=times.of(p.pts), dts=times.of(p.dts), duration=times.duration(p.pts) or p.duration)
            for p in packets
        ]
