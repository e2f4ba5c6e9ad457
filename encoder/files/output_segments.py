"""Output for HLS and DASH: an initialisation segment, media segments, and a playlist that grows with them."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ...files import check_replaceable, replace_file
from ...mp4.dash import manifest
from ...mp4.fragments import sound_header
from ...mp4.layouts import Fragments
from ...mp4.movie import FILE_TYPE, SOUND_FILE_TYPE, UPRIGHT, Track, initial_movie, initial_sound
from ...mp4.muxer import Muxer
from ...mp4.playlists import Presentation, Segments, init_name, segment_name, sound_stem
from ...mp4.samples import Sample
from ...mp4.tags import FileTags
from ...uninterrupted import Uninterrupted
from .output import SEGMENT_SECONDS, ByteSink
from .output_mp4 import MuxedSink

if TYPE_CHECKING:
    from ...sound.stream import SoundStream


class _Segments(Fragments):
    """Each group is a file, and then in the playlist. begin: writes the initialisation segment; write: a file by its name;
    publish: the playlist. begin_sound: writes the initialisation segment of the sound, which has files of its own then; None:
    it is in those of the video.
    """

    can_flush = False  # a segment begins with a keyframe
    sound_throughout = True  # players wait for sound in segments that have none, and begin where it begins

    def __init__(
        self, seconds: float, fps: Fraction, begin: Callable[[bytes], None], write: Callable[[str, bytes], None],
        publish: Callable[[], None], begin_sound: Callable[[bytes], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(lambda *_: None, seconds, 1 / (2 * fps))
        self._segment_seconds, self._begin, self._file, self._publish = seconds, begin, write, publish
        self._begin_sound, self.sound_apart = begin_sound, begin_sound is not None
        self.presentation: Presentation
        self.stem = ""
        self.segments = 0  # in the playlist
        self.fps: Fraction | None = fps
        self._following: Sample | None = None
        self._bytes = 0  # of the last file

    def begin(self, track: Track) -> None:
        """See Layout."""
        self._track = track
        video = Segments(self.stem, track.timescale)
        self.presentation = Presentation(track.sets, self._segment_seconds, self.fps, video)
        if self._begin_sound is not None and track.sound is not None:
            self.presentation.sound = Segments(sound_stem(self.stem), track.sound.format.rate)
            self.presentation.sound_format = track.sound.format
            self._begin_sound(SOUND_FILE_TYPE + initial_sound(track.sound))
            track = replace(track, sound=None)
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
        data = b"".join(chunks)
        self._file(segment_name(self.stem, self._number + 1), data)
        self._bytes = len(data)

    def _put_sound(self) -> None:
        """The sound of a group as a file of its own, if any of it is heard."""
        segments, sound = self.presentation.sound, self._track.sound
        if segments is None or sound is None:
            return
        begin, end = sound.heard
        if begin < end:
            number = len(segments.entries) + 1
            data = b"".join((sound_header(number, sound), *sound.run[1]))
            self._file(segment_name(segments.stem, number), data)
            segments.begin = segments.begin if segments.entries else begin
            segments.entries.append((end - begin, len(data)))

    def _write_group(self, samples: list[Sample], data: list[bytes]) -> None:
        def work() -> None:
            write(samples, data)
            self._put_sound()
            self.presentation.video.entries.append((self._lasts(samples), self._bytes))
            self.segments += 1
            self._publish()

        write = super()._write_group
        Uninterrupted().run(work)  # a segment is in the playlist, or there is none


class SegmentSink(MuxedSink):
    """target: the name of the playlist, STEM.m3u8 or STEM.mpd; the segments lie beside it, STEM_init.mp4 and
    STEM_00001.m4s; of DASH the sound in STEM_sound_init.mp4 and so on, of HLS in those.

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
        tags: Callable[[], FileTags] = FileTags,
        sound: "Callable[[], SoundStream] | None" = None,
    ):
        super().__init__(os.fspath(target))
        self._is_dash = muxer == "dash"
        self._folder, file = os.path.split(self.name)
        self._begun = ""
        self._written: dict[str, None] = {}  # the names of whole files, beside the initialisation segment
        stem = os.path.splitext(file)[0]
        self._first = ByteSink(os.path.join(self._folder, init_name(stem)))  # no other writer takes it, and so none the rest
        self._first_of_sound: ByteSink | None = None
        try:
            if self._is_dash and sound is not None:
                self._first_of_sound = ByteSink(os.path.join(self._folder, init_name(sound_stem(stem))))
            begin_sound = None if self._first_of_sound is None else self._first_of_sound.write
            seconds = fragment or SEGMENT_SECONDS
            self._layout = _Segments(seconds, fps, self._first.write, self._replace, self._publish, begin_sound)
            self._layout.stem = stem
            self._layout.fps = fps if time_base is None else None
            self._named(lambda: Uninterrupted().run(lambda: check_replaceable(self.name)))  # which makes a file for a moment
            self._muxer = self._named(lambda: Muxer(self._layout, time_base or 1 / fps, matrix or UPRIGHT, tags, sound))
        except BaseException:
            self._close_firsts()  # and new ones go
            raise

    def _close_firsts(self) -> None:
        """Close the initialisation segments."""
        try:
            self._first.close()
        finally:
            if self._first_of_sound is not None:
                self._first_of_sound.close()

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
            self._close_firsts()

    def _drop(self) -> None:
        """The playlist goes first, then what it names."""
        try:
            for name in reversed(self._written):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.realpath(name))
        finally:
            try:
                self._first.discard()
            finally:
                if self._first_of_sound is not None:
                    self._first_of_sound.discard()

    def _replace(self, name: str, data: bytes) -> None:
        path = os.path.join(self._folder, name)
        replace_file(path, data)
        self._written[path] = None

    def _publish(self) -> None:
        """Write the playlist of the segments so far, whole."""
        if self._is_dash:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._begun = self._begun or now
            text = manifest(self._layout.presentation, self._begun, now)
        else:
            text = self._layout.presentation.hls()
        replace_file(self.name, text.encode())
        self._written.pop(self.name, None)  # it is the last one: it names the others
        self._written[self.name] = None

    def _where(self, error: OSError | ValueError) -> str:
        return getattr(error, "filename", None) or self.name
