"""Whole videos from Python: frames of any form to a file, a file object or bytes."""

import io
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Any, Self, Unpack

from ..files import is_special
from .errors import Error, OptionError, RefusedFrame
from .feeder import Feeder, checked_frames
from .file_options import take_file_options
from .frames.layouts import Known
from .frames.reader import FrameReader
from .frames.samples import is_array
from .given_times import GivenTimes
from .packet import Packet
from .settings.keywords import EncoderOptions, Rate, VideoOptions, WriterOptions
from .settings.option_types import OptionValues
from .settings.options import BY_NAME
from .settings.user_options import check_keywords
from .targets import Target, check_target, is_byte_stream, segment_seconds, sound_of
from .unclosed import finish_at_exit
from .writing_progress import Reported, progress_of

if TYPE_CHECKING:
    from .files.output import PacketSink
    from .files.sound import Audio


class VideoWriter:
    """Writes a video chunk by chunk.

    target: the name of a file (.mp4; .264 and .h264 for a byte stream; .mkv and .mov through PyAV; .m3u8 and .mpd for the
    playlist of HLS or DASH, with segments beside it; others are refused), None for bytes of an MP4 (`getvalue`), or an object
    with `write`, which stays open. fps: 30, 12.5, "30000/1001" or a Fraction; 29.97 and 23.976 mean 30000/1001, 24000/1001.

    layout, format and value_range say what frames are where they may be read in several ways (docs/python.md), as do width
    and height. fragment: seconds of a fragment of an MP4, which plays while it is made: keyframes come where one ends;
    "chunk": what each call of `write` gets is one, and out when it returns. audio: sound beside the video: the name of a
    file, (samples, rate) or AudioPackets (docs/python.md). progress: a progress bar on standard error, or a function that is
    called with frames written, frames in all or None if that is unknown, and bytes of the packets. Options: those of Encoder;
    time_base: seconds of a unit of `pts`; metadata: {"title": "A clip"}, of .mp4, .mkv and .mov; chapters:
    [(seconds, title), ...].

    Nothing is opened before the first frame. It holds no more than a few frames: `write` blocks while the encoder is behind.
    In a fork of the process that wrote the first frame `write` is refused, and `close` does nothing to the file.
    Close it, or use it in a `with` statement: after an exception inside, also an interrupt, the file ends with the frames
    before and plays; an error in the first frame leaves no file, and an existing one unchanged. One that is not closed is
    finished when it is collected or the process ends, by the process that made it.
    """

    def __init__(
        self,
        target: Target,
        fps: Rate = 25,
        *,
        layout: str | None = None,
        format: str | None = None,
        value_range: tuple[float, float] | None = None,
        fragment: float | str | None = None,
        audio: "Audio | None" = None,
        progress: "bool | Reported" = False,
        width: int | None = None,
        height: int | None = None,
        **options: Unpack[WriterOptions],
    ) -> None:
        values: OptionValues = dict(options)
        self._fps = BY_NAME["fps"].value(fps)
        self._target: Any = io.BytesIO() if target is None else check_target(target)
        self._of_file = take_file_options(segment_seconds(self._target) if fragment is None else fragment, values)
        check_keywords(values)
        self._bytes = self._target if target is None else None
        self._keeps_times = self._of_file.fragment is not None or not is_byte_stream(self._target)
        if self._of_file.tags and not self._keeps_times:
            name = "metadata" if self._of_file.tags.metadata else "chapters"
            raise OptionError("a byte stream has none: .mp4, .mkv and .mov have", name)
        reader = FrameReader(layout, format, value_range, _size(width, height))
        self._times = GivenTimes(self._fps, self._of_file.time_base)
        self._feeder = Feeder(reader, self._fps, values, self._times, self._of_file.fragment)
        self._sound = None if audio is None else sound_of(self._target, self._of_file.fragment, audio)
        self._progress = progress_of(progress)
        self._sink: PacketSink | None = None
        self._sink_lock, self._is_in_sink = threading.RLock(), False  # whether packets are being written
        self._next_dts: int | None = None  # of the packet that follows those in the sink
        self._frames_out = self._bytes_out = 0  # packets in the sink, and their bytes
        self._is_writing = False  # a call of `write` or `write_all` is under way
        self._closed = self._is_aborted = False

    @property
    def frames(self) -> int:
        """The number of frames written so far."""
        return self._feeder.count

    @property
    def headers(self) -> bytes:
        """Sequence and picture parameter set, Annex B; Error before the first frame."""
        if self._feeder.session is None:
            raise Error("no frame was written yet")
        return self._feeder.session.headers()

    def write(
        self, frames: object, stream: object = None, *, timestamps: Any = None, pts: Any = None, keyframe: bool = False,
        qp_offsets: object = None,
    ) -> None:  # fmt: skip
        """Encode a frame, a chunk of frames, the planes of a frame as a tuple, or a list of these; InputError.

        stream: of the producer of GPU arrays, if it is not the one that they name or their library's current one.
        timestamps: when frames are shown, in seconds, a number for each; without them each lasts 1 / fps. They must rise, and
        count from that of the first frame, at which the file begins. pts: the same in whole units of time_base. keyframe: an
        IDR frame at the first of them. qp_offsets: of each macroblock, for all frames of the call (Encoder.encode).
        """
        self._give(timestamps, pts)
        self._feeder.request(keyframe, qp_offsets)
        self._write(lambda: self._feeder.feed(frames, stream))
        self._times.end_call()

    def write_all(self, frames: object, stream: object = None, *, timestamps: object = None, pts: object = None) -> None:
        """Encode one array that is a whole video, or an iterable of frames and chunks. Other arguments: those of `write`."""
        if self._progress is not None:
            self._progress.total = _count(frames)
        self._give(timestamps, pts)
        self._feeder.request(False, None)
        if self._of_file.fragment == inf and not is_array(frames):
            for chunk in checked_frames(frames):
                self._write(lambda chunk=chunk: self._feeder.feed(chunk, stream))  # type: ignore[misc]
        else:
            self._write(lambda: self._feeder.feed_all(frames, stream))
        self._times.end_call()

    def reconfigure(
        self, *, bitrate: int | None = None, vbv_maxrate: int | None = None, vbv_bufsize: int | None = None,
        crf: float | None = None,
    ) -> None:  # fmt: skip
        """Change numbers of rate control for the frames that are written after it: see Encoder.reconfigure. Error before the
        first frame, whose numbers are options.
        """
        if self._feeder.session is None:
            raise Error("no frame was written yet: give these numbers to the writer")
        changes = {"bitrate": bitrate, "vbv_maxrate": vbv_maxrate, "vbv_bufsize": vbv_bufsize, "crf": crf}
        self._feeder.reconfigure(changes)

    def flush(self) -> None:
        """Encode the frames that wait, and write all of them: in fragments the last one ends here.

        Where frames wait for later ones (docs/python.md), the next frame is a keyframe; else it goes on as without a flush.
        OptionError if frames wait and options count over the whole stream: pass_, zones, qpfile, vbv_maxrate.
        """
        if self._feeder.session is not None or self._closed:
            self._put_all(lambda: [self._feeder.flush()])
        self._use_sink(self._flush_sink)

    def _flush_sink(self) -> None:
        if self._sink is not None and self._next_dts is not None and not self._is_aborted:
            self._sink.flush(self._times.known(self._next_dts))

    def _give(self, timestamps: object, pts: object) -> None:
        """Times for the frames of a call."""
        if not self._keeps_times and (timestamps is not None or pts is not None):
            name = "pts" if timestamps is None else "timestamps"
            raise OptionError("a byte stream has no times: .mp4, .mkv and .mov have", name)
        self._times.give(timestamps, pts)

    def _write(self, feed: Callable[[], Iterable[list[Packet]]]) -> None:
        self._put_all(feed)
        if self._of_file.fragment == inf:
            self.flush()

    def close(self) -> None:
        """Encode what is in flight, finish the file and release the encoder; InputError without any frame. A second call
        does nothing.
        """
        if self._is_aborted:
            self._release()
        elif not self._closed and not self._is_of_parent():
            try:
                self._finish()
            finally:
                self._release()

    def abort(self) -> None:
        """End the encode and leave no file: none of the target's name, and no segments beside it; what devices, pipes and
        objects have got stays there. Threads and memory are released.

        Any thread may call it. One that writes, or waits for frames, gets an Error out of its call, as do later calls. It is
        waited for while it encodes a frame, but not while a pipe or object takes bytes. Where the call comes in the midst of
        one of the same thread (a handler of a signal), it takes effect when that one ends. After `close` it does nothing. A
        file that existed before stays as long as no frame was written.
        """
        if not self._closed and not self._is_of_parent():
            self._is_aborted = True
            self._release()

    def getvalue(self) -> bytes:
        """The bytes of a closed writer without a target."""
        if self._bytes is None or not self._closed or self._is_aborted:
            raise Error("bytes exist of a closed writer with target None")
        return self._bytes.getvalue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_class: type[BaseException] | None, *_: object) -> None:
        try:
            if error_class is None:
                self.close()
            elif not self._closed and not self._is_of_parent():
                try:
                    if self._feeder.session is not None:
                        self._finish()
                except Exception:  # the exception inside says more
                    pass
                finally:
                    self._release()
        except BaseException:  # before or after what is protected above
            if not self._is_of_parent():
                self._release()
            raise

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and self._feeder.session is not None and not self._is_of_parent():
            warnings.warn("a VideoWriter was not closed: its file is finished only now", ResourceWarning, stacklevel=2)
            self.finish_unclosed()

    def finish_unclosed(self) -> None:
        """Close a writer that the program dropped; a warning says what is wrong."""
        if self._closed or self._is_writing or self._is_of_parent() or sys.is_finalizing():
            return  # at the very end of the interpreter no thread runs that could do it
        try:
            self.close()
        except Exception as error:  # no caller can catch it
            warnings.warn(f"a VideoWriter that was not closed: {error}", RuntimeWarning, stacklevel=2)

    def _put_all(self, feed: Callable[[], Iterable[list[Packet]]]) -> None:
        """Write the packets of frames that are fed."""
        if self._closed or self._is_aborted:
            raise self._ended()
        if self._is_of_parent():
            raise Error(f"process {self._feeder.process} began the file, and this is its fork: make a writer in each process")
        self._is_writing = True
        try:
            for packets in feed():
                self._put(packets)
        finally:
            self._is_writing = False
            if self._is_aborted:
                self._release()
            elif self._feeder.session is not None:
                finish_at_exit(self)

    def _ended(self) -> Error:
        return Error("the writer was aborted" if self._is_aborted else "the writer is closed")

    def _is_of_parent(self) -> bool:
        """Whether this process was forked from the one that has begun the file, and that will finish it."""
        return self._feeder.session is not None and self._feeder.process != os.getpid()

    def _put(self, packets: list[Packet]) -> None:
        """Write packets; the first one opens the target."""
        self._use_sink(lambda: self._put_each(packets))
        if self._is_aborted:
            raise self._ended()
        if self._progress is not None:
            self._progress.total = self._progress.total or self._feeder.total
            self._progress.show(self._feeder.count, self._frames_out, self._bytes_out)

    def _use_sink(self, call: Callable[[], object]) -> None:
        """Call with the sink to itself: `abort` of another thread waits, or leaves it to this one."""
        with self._sink_lock:
            self._is_in_sink = True
            try:
                call()
            finally:
                self._is_in_sink = False

    def _put_each(self, packets: list[Packet]) -> None:
        for packet in packets:
            if self._is_aborted:
                raise self._ended()
            if self._sink is None:
                self._sink = self._open()
            if packet.pts if self._next_dts is None else packet.dts != self._next_dts:  # the first one is shown at 0
                raise Error("an interrupt has lost a frame: the file ends before it")
            times, duration = self._times, self._times.duration(packet.pts)
            self._sink.write_packet(packet.data, times.of(packet.pts), times.of(packet.dts), packet.is_keyframe, duration)
            self._next_dts = packet.dts + 1
            self._frames_out, self._bytes_out = self._frames_out + 1, self._bytes_out + len(packet.data)

    def _finish(self) -> None:
        """Write what is in flight; if a frame of it is refused, the frames before."""
        try:
            self._put(self._feeder.finish())
        except RefusedFrame:
            self._put(self._feeder.finish())
            raise

    def _open(self) -> "PacketSink":
        nal_hrd = self._feeder.session.config.hrd.nal_hrd if self._feeder.session is not None else "none"
        of_file = self._of_file
        time_base = self._times.base if self._times.used else None
        of_frames: dict[str, Any] = {"tags": lambda: of_file.tags, "time_base": time_base}
        if isinstance(self._target, str | os.PathLike):
            from .files.opening import open_packets  # all containers, which bytes do without

            return open_packets(
                os.fspath(self._target), self._fps, "auto", of_file.fragment, self._sound, nal_hrd, **of_frames
            )
        if nal_hrd == "cbr":
            raise OptionError("cbr is for byte streams: MP4 holds no filler data; vbr is for all", "nal-hrd")
        from .files.output_mp4 import Mp4Sink

        sound: Any = self._sound  # of a file object: never through PyAV
        stream = sound.stream if sound else None
        return Mp4Sink(self._target, fps=self._fps, fragment=of_file.fragment, sound=stream, **of_frames)

    def _release(self) -> None:
        """Finish the file and release the encoder. An interrupt cannot cut it: what is left is done then."""
        try:
            self._release_all()
        except Error:
            raise
        except BaseException:
            self._release_all()
            raise

    def _release_all(self) -> None:
        if self._is_aborted:
            self._drop()
            return
        self._closed = True
        try:
            if self._sink is not None:
                self._use_sink(self._sink.close)
        finally:
            self._feeder.close()
            self._release_rest()

    def _release_rest(self) -> None:
        if self._sound is not None:
            self._sound.finish()
        if self._progress is not None:
            self._progress.close()

    def _drop(self) -> None:
        """What `abort` does, as far as it can be done now: the call that is under way does the rest as it ends."""
        if not self._feeder.abort():
            return
        is_file = isinstance(self._target, str) and not is_special(self._target)
        if self._sink_lock.acquire(blocking=is_file):
            try:
                if self._is_in_sink:  # in the midst of a write of this thread
                    return
                if self._sink is not None:
                    self._sink.discard()
            finally:
                self._sink_lock.release()
            self._release_rest()
            self._closed = True


def write_video(
    target: Target,
    frames: Iterable[object] | object,
    fps: Rate = 25,
    *,
    layout: str | None = None,
    format: str | None = None,
    value_range: tuple[float, float] | None = None,
    fragment: float | str | None = None,
    audio: "Audio | None" = None,
    progress: "bool | Reported" = False,
    width: int | None = None,
    height: int | None = None,
    **options: Unpack[VideoOptions],
) -> bytes | None:
    """Encode frames into a file or file object, or, for target None, into the bytes of an MP4, which are returned.

    frames: one array or tensor that is a whole video, or a list or generator of frames, chunks, images of PIL or planes
    (y, u, v); consumed one after another. timestamps, pts: one number for each frame, see `VideoWriter.write`. The other
    arguments and what an exception leaves behind: see VideoWriter.
    """
    values: Any = dict(options)
    timestamps, pts = values.pop("timestamps", None), values.pop("pts", None)
    with VideoWriter(
        target,
        fps,
        layout=layout,
        format=format,
        value_range=value_range,
        fragment=fragment,
        audio=audio,
        progress=progress,
        width=width,
        height=height,
        **values,
    ) as writer:
        writer.write_all(frames, timestamps=timestamps, pts=pts)
    return writer.getvalue() if target is None else None


def encode(
    frames: Iterable[object] | object,
    fps: Rate = 25,
    *,
    layout: str | None = None,
    format: str | None = None,
    value_range: tuple[float, float] | None = None,
    width: int | None = None,
    height: int | None = None,
    **options: Unpack[EncoderOptions],
) -> bytes:
    """Encode `frames` into one Annex B stream. The size is the first frame's. Frames and arguments: see write_video."""
    check_keywords(options)
    reader = FrameReader(layout, format, value_range, _size(width, height))
    with Feeder(reader, fps, dict(options)) as feeder:
        packets = [packet for some in feeder.feed_all(frames) for packet in some]
        packets += feeder.finish()
    return b"".join(packet.data for packet in packets)


def _size(width: int | None, height: int | None) -> Known | None:
    """The size of the frames, if it is said."""
    if (width is None) != (height is None):
        raise OptionError("width and height belong together: give both, or none")
    return None if width is None else Known("", BY_NAME["width"].value(width), BY_NAME["height"].value(height))


def _count(frames: object) -> int | None:
    """The number of frames of a list of these; None for others."""
    if isinstance(frames, list | tuple) and all(not hasattr(frame, "shape") or len(frame.shape) < 4 for frame in frames):
        return len(frames)
    return None
