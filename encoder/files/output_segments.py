"""Output for HLS and DASH: an initialisation segment, media segments, and a playlist that grows with them."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

from ...files import check_replaceable, replace_file
from ...mp4.layouts import Fragments
from ...mp4.movie import FILE_TYPE, UPRIGHT, Track, initial_movie
from ...mp4.muxer import Muxer
from ...mp4.playlists import Presentation, init_name, segment_name
from ...mp4.samples import Sample
from ...mp4.tags import FileTags
from ...uninterrupted import Uninterrupted
from .output import SEGMENT_SECONDS, ByteSink
from .output_mp4 import MuxedSink


class _Segments(Fragments):
    """Each group is a file, and then in the playlist. begin: writes the initialisation segment; write: a file by its name;
    publish: the playlist.
    """

    can_flush = False  # a segment begins with a keyframe

    def __init__(
        self, seconds: float, fps: Fraction, begin: Callable[[bytes], None], write: Callable[[str, bytes], None],
        publish: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__(lambda *_: None, seconds, 1 / (2 * fps))
        self._segment_seconds, self._begin, self._file, self._publish = seconds, begin, write, publish
        self.presentation: Presentation
        self.stem = ""
        self.segments = 0  # in the playlist
        self.fps: Fraction | None = fps
        self._following: Sample | None = None

    def begin(self, track: Track) -> None:
        """See Layout."""
        self._track = track
        self.presentation = Presentation(self.stem, track.sets, track.timescale, self._segment_seconds, self.fps)
        self._begin(FILE_TYPE + initial_movie(track))

    def add(self, data: bytes, sample: Sample) -> None:
        """See Layout."""
        self._following = sample
        super().add(data, sample)

    def finish(self) -> None:
        """See Layout."""
        self._following = None
        super().finish()

    def _lasts(self, samples: list[Sample]) -> int:
        """How long a segment is shown: from its first frame to that of the next segment, or to its own end."""
        begin = samples[0].offset
        if self._following is not None:
            return sum(sample.duration for sample in samples) + self._following.offset - begin
        time = end = 0
        for sample in samples:
            end = max(end, time + sample.offset + (sample.shown or sample.duration))
            time += sample.duration
        return end - begin

    def _put(self, *chunks: bytes) -> None:
        self._file(segment_name(self.stem, self._number + 1), b"".join(chunks))

    def _write_group(self, samples: list[Sample], data: list[bytes]) -> None:
        def work() -> None:
            write(samples, data)
            self.presentation.segments.append((self._lasts(samples), sum(map(len, data))))
            self.segments += 1
            self._publish()

        write = super()._write_group
        Uninterrupted().run(work)  # a segment is in the playlist, or there is none


class SegmentSink(MuxedSink):
    """target: the name of the playlist, STEM.m3u8 or STEM.mpd; the segments lie beside it, STEM_init.mp4 and
    STEM_00001.m4s.

    muxer: hls or dash. fragment: seconds of a segment, at least; it ends before a keyframe. A playlist names whole segments
    only, so that a server may give out the folder while it grows. The other arguments: see Mp4Sink.
    """

    _layout: _Segments

    def __init__(
        self,
        target: str,
        muxer: str,
        *,
        fps: Fraction,
        fragment: float | None = None,
        time_base: Fraction | None = None,
        matrix: tuple[int, ...] | None = None,
        tags: FileTags | None = None,
    ):
        super().__init__(os.fspath(target))
        self._is_dash = muxer == "dash"
        self._folder, file = os.path.split(self.name)
        self._begun = ""
        self._written: dict[str, None] = {}  # the names of whole files, beside the initialisation segment
        stem = os.path.splitext(file)[0]
        self._first = ByteSink(os.path.join(self._folder, init_name(stem)))  # no other writer takes it, and so none the rest
        try:
            self._layout = _Segments(fragment or SEGMENT_SECONDS, fps, self._first.write, self._replace, self._publish)
            self._layout.stem = stem
            self._layout.fps = fps if time_base is None else None
            boxes = self._named((tags or FileTags()).boxes)
            self._named(lambda: Uninterrupted().run(lambda: check_replaceable(self.name)))  # which makes a file for a moment
            self._muxer = self._named(lambda: Muxer(self._layout, time_base or 1 / fps, matrix or UPRIGHT, boxes))
        except BaseException:
            self._first.close()  # and a new one goes
            raise

    def _end(self) -> None:
        """The playlist says that it is complete."""
        try:
            self._muxer.finish()
        finally:
            self._complete()

    def _complete(self) -> None:
        """Say in the playlist that nothing follows, whatever has ended it."""
        try:
            if self._layout.segments:
                self._layout.presentation.is_complete = True
                self._publish()
        finally:
            self._first.close()

    def _drop(self) -> None:
        """The playlist goes first, then what it names."""
        try:
            for name in reversed(self._written):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.realpath(name))
        finally:
            self._first.discard()

    def _replace(self, name: str, data: bytes) -> None:
        path = os.path.join(self._folder, name)
        replace_file(path, data)
        self._written[path] = None

    def _publish(self) -> None:
        """Write the playlist of the segments so far, whole."""
        if self._is_dash:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._begun = self._begun or now
            text = self._layout.presentation.dash(self._begun, now)
        else:
            text = self._layout.presentation.hls()
        replace_file(self.name, text.encode())
        self._written.pop(self.name, None)  # it is the last one: it names the others
        self._written[self.name] = None

    def _where(self, error: OSError | ValueError) -> str:
        return getattr(error, "filename", None) or self.name
