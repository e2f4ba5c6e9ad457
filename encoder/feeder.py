"""Feeds frames of any form to a session that is opened for the first one: arrays, chunks, lists, generators, images."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isinf

from ..standard.sample_format import chroma_shape
from .encoder import config_of
from .errors import InputError, OptionError, RefusedFrame
from .frames.reader import Chunk, FrameReader
from .frames.samples import host_copy, is_array
from .given_times import GivenTimes
from .packet import Packet, take_packets
from .session import Session, open_session
from .settings.config import Config
from .settings.device import why_no_cuda
from .settings.fragments import FragmentTimes, with_keyframes
from .settings.frame_requests import Request, request_of
from .settings.keywords import Rate


class Feeder:
    """Reads frames by a FrameReader and encodes them; `session` exists after the first frame. Options: those of Encoder.

    times: those that frames are given. fragment: seconds of fragments, infinite where `flush` ends them; keyframes come where
    they begin.
    """

    def __init__(
        self, reader: FrameReader, fps: Rate, options: Mapping[str, object], times: GivenTimes | None = None,
        fragment: float | None = None,
    ) -> None:  # fmt: skip
        self._reader, self._fps, self._options = reader, fps, options
        self._times = times
        self._fragment = None if fragment is None or isinf(fragment) else fragment
        self._keyframes: FragmentTimes | None = None
        self._requested: tuple[bool, object] = False, None  # keyframe of the next frame, QP offsets of all of the call
        self._begin = self._out = 0  # the number of the session's first frame; packets of all
        self._keyframes_out = 0  # packets of the session that are keyframes
        self._is_ended = False  # the session has no more frames: the next one begins another
        self._is_aborted = False
        self.session: Session | None = None
        self.process = os.getpid()  # with a session: the one that opened it
        self.count = 0  # frames fed
        self.total: int | None = None  # frames of a video that is one array
        self.allowed_devices: Sequence[str] = ()  # taken in place of the named one, if the first frame lies there

    def feed_all(self, frames: object, stream: object = None) -> Iterator[list[Packet]]:
        """Feed a whole video: one array, or an iterable of frames and chunks. Yields finished packets after each frame."""
        if is_array(frames):
            yield from self.feed(frames, stream, whole=True)
        else:
            for frame in checked_frames(frames):
                yield from self.feed(frame, stream)

    def feed(self, value: object, stream: object = None, whole: bool = False) -> Iterator[list[Packet]]:
        """Feed a frame, the planes of one as a tuple, a chunk of frames, or a list of these. Yields as `feed_all`."""
        if self._is_ended:
            self._begin_again()
        plain = self._reader.plain(value) if isinstance(value, tuple) and self.session is not None else None
        if plain is not None and self.session is not None:
            yield self._encode(lambda request: self._of_session.encode(plain, request))
            return
        if isinstance(value, list) and _are_planes(value):
            value = tuple(value)
        if isinstance(value, list):
            for frame in value:
                yield from self.feed(frame, stream)
            return
        chunk = self._reader.chunk(value, stream, whole, f"frame {self.count}")
        if self._times is not None:
            self._times.require(chunk.frames)
        if self.session is None:
            self.process = os.getpid()
            self._open(lambda: self._start(chunk))
            assert self.session is not None
        self._reader.remember(chunk)
        self.total = chunk.frames if whole else None
        if chunk.on_gpu and not self.session.takes_gpu_frames:
            yield from self._through_host(value, chunk)
            return
        for k in range(chunk.frames):
            yield self._encode(lambda request, k=k: self._of_session.encode_from(chunk, k, request))  # type: ignore[misc]

    @property
    def _of_session(self) -> Session:
        assert self.session is not None
        return self.session

    def _encode(self, encode: Callable[[Request | None], None]) -> list[Packet]:
        """Encode a frame with its time, and what follows from that; the finished packets."""
        request = self._next_request()
        time = None if self._times is None else self._times.enter()
        if time is not None and self._keyframes is not None:
            request = self._keyframes.request(time, request)
        try:
            encode(request)
        except InputError as error:
            if self._times is not None and not isinstance(error, RefusedFrame):
                self._times.take_back()
            raise
        self.count += 1
        return self._packets()

    def request(self, keyframe: bool, qp_offsets: object) -> None:
        """For the frames of the next call: an IDR frame at the first one, and QP offsets of all (`Encoder.encode`)."""
        self._requested = keyframe, qp_offsets

    def _next_request(self) -> Request | None:
        """What the caller asks of the next frame; OptionError."""
        keyframe, qp_offsets = self._requested
        if keyframe is False and qp_offsets is None:
            return None
        coding = self._of_session.config.coding
        request = request_of(keyframe, None, None, qp_offsets, (coding.mb_height, coding.mb_width))
        self._requested = False, qp_offsets
        return request

    def _packets(self) -> list[Packet]:
        """Finished packets; their times count from the first frame of all."""
        packets, begin = take_packets(self._of_session), self._begin
        self._out += len(packets)
        self._keyframes_out += sum(packet.is_keyframe for packet in packets)
        return [replace(packet, pts=packet.pts + begin, dts=packet.dts + begin) for packet in packets] if begin else packets

    def flush(self) -> list[Packet]:
        """The packets of all frames so far. If some wait for later frames, another session begins with the next one."""
        session = self._of_session
        if self._out == self.count:
            return []
        options = session.config
        by_stream = {
            "pass_": options.rate.pass_, "zones": options.rate.zones, "qpfile": options.types.qpfile,
            "vbv_maxrate": options.hrd.vbv_maxrate,
        }  # fmt: skip
        for name in (name for name, value in by_stream.items() if value):
            text = "counts over the whole stream, so that frames that wait cannot be flushed: use tune='zerolatency'"
            raise OptionError(text, name.rstrip("_"))
        session.drain()
        self._is_ended = True
        return self._packets()

    def reconfigure(self, changes: Mapping[str, object]) -> None:
        """See Session."""
        if self._is_ended:
            self._begin_again()
        self._of_session.reconfigure(changes)

    def _begin_again(self) -> None:
        """A session with the same parameter sets, for the frames after a flush."""
        config, self._is_ended = self._of_session.config, False
        self._of_session.close()
        # 7.4.3: IDR frames one after another have different numbers
        types = config.types._replace(first_idr_pic_id=(config.types.first_idr_pic_id + self._keyframes_out) % 2)
        self._begin, self._keyframes_out = self.count, 0
        again = config._replace(types=types, stream=config.stream._replace(info_sei=False))
        self._open(lambda: open_session(again))

    def _open(self, make: Callable[[], Session]) -> None:
        """Make the session; another thread may abort it meanwhile."""
        self.session = make()
        if self._is_aborted:
            self.abort()
            self.session.require()

    def abort(self) -> bool:
        """See Session. No lock: a handler of a signal may call it in a thread whose call another one waits for."""
        self._is_aborted = True
        return self.session is None or self.session.abort()

    def finish(self) -> list[Packet]:
        """The remaining packets; InputError if there were no frames."""
        if self.session is None:
            raise InputError("no frames to encode")
        self.session.drain()
        return self._packets()

    def close(self) -> None:
        """Release the encoder."""
        if self.session is not None:
            self.session.close()

    def __enter__(self) -> "Feeder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, chunk: Chunk) -> Session:
        """An encode for the size of the first frame, on its GPU if no device was said."""
        known = self._reader.known
        width, height = (chunk.width, chunk.height) if known is None else (known.width, known.height)
        options = self._options
        if chunk.on_gpu and (there := f"cuda:{chunk.samples[0].ordinal}") in self.allowed_devices:
            options = {**options, "devices": (there,)}
        if not chunk.on_gpu or options.get("device") is not None or options.get("devices") is not None:
            return open_session(self._config(width, height, options))
        missing = why_no_cuda()
        if missing is None:
            try:
                devices = (f"cuda:{chunk.samples[0].ordinal}",)
                return open_session(self._config(width, height, {**options, "devices": devices}))
            except OptionError as error:
                if error.option not in ("me", "subme"):
                    raise
                missing = str(error)
        warnings.warn(f"frames on a GPU are copied to the host and encoded there: {missing}", RuntimeWarning, stacklevel=5)
        return open_session(self._config(width, height, {**options, "device": "cpu"}))

    def _config(self, width: int, height: int, options: Mapping[str, object]) -> Config:
        """The settings; with given times the stream says that its frame rate is not fixed."""
        has_times = self._times is not None and self._times.are_given
        if self._fragment is not None:
            options = with_keyframes(options, self._fragment, self._fps, has_times)
        config = config_of(width, height, self._fps, options)
        if not has_times:
            return config
        if self._fragment is not None:
            self._keyframes = FragmentTimes(self._fragment, config.video.fps)
        if config.hrd.nal_hrd != "none":
            raise OptionError("is for a constant frame rate, and frames are given times", "nal-hrd")
        return config._replace(video=config.video._replace(fixed_frame_rate=False))

    def _through_host(self, value: object, chunk: Chunk) -> Iterator[list[Packet]]:
        """Copy frame by frame to the host, and encode there."""
        assert self.session is not None
        for k in range(chunk.frames):
            if isinstance(value, tuple):
                copied = self._reader.chunk(tuple(map(host_copy, value)))
            else:
                copied = self._reader.chunk(host_copy(value, chunk.layout.axes.find("T"), k))
            yield self._encode(lambda request, copied=copied: self._of_session.encode_from(copied, 0, request))  # type: ignore[misc]


def checked_frames(frames: object) -> Iterable[object]:
    """A video that is no array, as an iterable of frames and chunks; InputError."""
    if isinstance(frames, str | bytes | dict) or not isinstance(frames, Iterable):
        raise InputError(f"frames: {type(frames).__name__} is neither an array nor a list or generator of frames")
    return frames


def _are_planes(arrays: Sequence[object]) -> bool:
    """Whether the arrays of a list are the planes of one frame: those of chroma are smaller."""
    shapes = [tuple(getattr(array, "shape", ())) for array in arrays]
    if len(arrays) not in (2, 3) or len(shapes[0]) != 2:
        return False
    chroma = chroma_shape(*shapes[0])
    nv12 = (chroma[0], 2 * chroma[1]), (*chroma, 2)
    return shapes[1:] == [chroma, chroma] or (len(arrays) == 2 and shapes[1] in nv12)
