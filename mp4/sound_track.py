"""The track of sound beside the video: its samples in step with the video's, and its boxes."""

import math
import struct
from dataclasses import replace
from fractions import Fraction
from itertools import chain, repeat

from ..sound.silence import silence
from ..sound.stream import SoundFormat, SoundPacket, SoundStream
from .boxes import LARGEST_32, SOUND_TRACK, UPRIGHT, box, full_box, header_times, this_file
from .samples import Sample, SampleTable, empty_table
from .sound_entry import sample_entry

_EVERY_SAMPLE = 2 << 24  # 8.8.3.1: each depends on no other
_LARGEST_MOVIE_SCALE = (1 << 31) - 1  # some players read it with a sign
_FOUR_BYTES = 1 << 31  # of a sound packet's size and duration


class SoundTrack:
    """Sound that `follow`s the video's samples and is taken in pieces as long as theirs.

    stream: of one packet at least. timescale: of the video. start: composition time of the video's first frame. lasts:
    whether silence follows where the packets end before the video.
    """

    def __init__(self, stream: SoundStream, first: SoundPacket, timescale: int, start: int, lasts: bool = False) -> None:
        self._stream, self._first, self._lasts = stream, first, lasts
        self._last: SoundPacket | None = None  # that was taken
        self._rate, self._scale, self._start = stream.format.rate, timescale, start
        self._waiting: SoundPacket | None = first
        self._ended = False
        self._video = self._video_end = 0  # decoding time behind the last frame; composition time of the end of those shown
        self._pulled = 0  # units of the packets so far
        self._run_time = 0  # units before the run
        self._run: list[tuple[bytes, Sample]] = []
        self.table = SampleTable()

    @property
    def format(self) -> SoundFormat:
        """Of its packets."""
        return self._stream.format

    # Samples ----------------------------------------------------------------------------------------------------------

    def follow(self, sample: Sample) -> None:
        """A sample of the video, in coding order."""
        self._video_end = max(self._video_end, self._video + sample.offset + (sample.shown or sample.duration))
        self._video += sample.duration

    def shift(self, units: int) -> None:
        """The next frame of the video is decoded later, or earlier, than the ones before have said."""
        self._video += units

    def collect(self, last: bool) -> Exception | None:
        """Add to the run the packets that begin before the video so far ends. last: no video follows: cut the last packet.

        An exception of the packets ends the sound and is returned; what was collected stays.
        """
        try:
            self._collect(last)
        except Exception as error:
            return error
        return None

    def _collect(self, last: bool) -> None:
        end = self._media_time(Fraction(self._video_end - self._start if last else self._video, self._scale))
        while (packet := self._peek()) is not None and self._pulled < end:
            duration = min(packet.duration, end - self._pulled) if last else packet.duration
            data = packet.cut(duration) if packet.cut is not None and duration < packet.duration else packet.data
            entry = data, Sample(len(data), duration, 0, True)
            self._run += [entry]  # no call until the next line ends: an interrupt leaves the packet in the run, or waiting
            self._pulled, self._last, self._waiting = self._pulled + duration, packet, None

    def _media_time(self, seconds: Fraction) -> int:
        """Units from the first packet on, of a time of the presentation."""
        return round(seconds * self._rate) + self._stream.skip - self._stream.delay

    def _peek(self) -> SoundPacket | None:
        if self._waiting is None and not self._ended:
            self._ended = True  # if anything cuts this
            packet = _next(self._stream)
            if packet is not None:
                self._waiting, self._ended = packet, False
        if self._waiting is None and self._lasts:
            self._waiting = silence(self._stream.format, self._last)
        return self._waiting

    @property
    def run(self) -> tuple[list[Sample], list[bytes]]:
        """What was collected and not yet taken away."""
        return [sample for _, sample in self._run], [data for data, _ in self._run]

    @property
    def heard(self) -> tuple[int, int]:
        """Begin and end of the run in the presentation, in units of the sound; equal ones if nothing of it is heard."""
        begin = self._run_time + self._stream.delay - self._stream.skip
        return max(0, begin), max(0, begin + sum(sample.duration for _, sample in self._run))

    def take_away(self) -> None:
        """The run is in the file, or waits for it."""
        self._run_time += sum(sample.duration for _, sample in self._run)
        self._run = []

    # Boxes ------------------------------------------------------------------------------------------------------------

    @property
    def movie_timescale(self) -> int:
        """Units a second in which durations of both tracks are whole, if 31 bits hold them; else the video's."""
        common = math.lcm(self._scale, self._rate)
        return common if common <= _LARGEST_MOVIE_SCALE else self._scale

    def movie_boxes(self, positions: list[int], lasts: int) -> bytes:
        """8.3.1: trak, with chunks at `positions`; nothing without samples. lasts: the movie, in its own units."""
        if not self.table.count:
            return b""
        delay = round(Fraction(self._stream.delay * self.movie_timescale, self._rate))
        heard = round(Fraction((self.table.duration - self._stream.skip) * self.movie_timescale, self._rate))
        heard = max(0, min(heard, lasts - delay))
        table = self.table.boxes(self._entry(), positions)
        table = box(b"stbl", table[8:], self._roll_distance(), self._roll_group(self.table.count))
        edits = ([(delay, -1)] if delay else []) + ([(heard, self._stream.skip)] if delay or self._stream.skip else [])
        return self._track(delay + heard, self.table.duration, edits, table)

    def initial_boxes(self) -> bytes:
        """8.3.1: trak of a file of fragments, whose decoding times hold the delay."""
        edits = [(0, self._stream.skip)] if self._stream.skip else []
        return self._track(0, 0, edits, box(b"stbl", empty_table(self._entry())[8:], self._roll_distance()))

    def fragment_boxes(self, offset: int) -> bytes:
        """8.8.6: traf of the run, whose data begin `offset` bytes behind the beginning of moof; nothing without samples."""
        samples, _ = self.run
        if not samples:
            return b""
        same = all(sample.duration == samples[0].duration for sample in samples)
        head = struct.pack(">II", SOUND_TRACK, samples[0].duration) if same else struct.pack(">I", SOUND_TRACK)
        rows = [struct.pack(">I", s.size) if same else struct.pack(">II", s.duration, s.size) for s in samples]
        return box(
            b"traf",
            full_box(b"tfhd", 0, 0x20020 | 8 * same, head, struct.pack(">I", _EVERY_SAMPLE)),
            full_box(b"tfdt", 1, 0, struct.pack(">Q", self._run_time + self._stream.delay)),
            full_box(b"trun", 0, 0x201 | 0x100 * (not same), struct.pack(">Ii", len(samples), offset), *rows),
            self._roll_group(len(samples)),
        )

    def _entry(self) -> bytes:
        return sample_entry(self._stream.format, self._stream.skip)

    def _roll_distance(self) -> bytes:
        """8.9.3, 10.1: sgpd: how many packets before one a decoder has to begin; nothing if at the packet itself."""
        roll = self._stream.format.roll(self._first.duration)
        return full_box(b"sgpd", 1, 0, b"roll", struct.pack(">IIh", 2, 1, -roll)) if roll else b""

    def _roll_group(self, count: int) -> bytes:
        """8.9.2: sbgp: that holds for all `count` samples."""
        roll = self._stream.format.roll(self._first.duration)
        return full_box(b"sbgp", 0, 0, b"roll", struct.pack(">III", 1, count, 1)) if roll else b""

    def _track(self, lasts: int, media: int, edits: list[tuple[int, int]], table: bytes) -> bytes:
        """8.3.1: trak. lasts: in units of the movie; media: in those of the sound. edits: (duration, media time or -1)."""
        head_after = struct.pack(">8xhhHH9iII", 0, 0, 1 << 8, 0, *UPRIGHT, 0, 0)
        head_version, head = header_times(lasts, struct.pack(">II", SOUND_TRACK, 0), head_after)
        version, contents = header_times(media, struct.pack(">I", self._rate), struct.pack(">HH", 0x55C4, 0))
        return box(
            b"trak",
            full_box(b"tkhd", head_version, 7, head),
            _edit_list(edits),
            box(
                b"mdia",
                full_box(b"mdhd", version, 0, contents),  # language "und"
                full_box(b"hdlr", 0, 0, struct.pack(">I4s12x", 0, b"soun"), b"h264lite\0"),
                box(b"minf", full_box(b"smhd", 0, 0, bytes(4)), this_file(), table),
            ),
        )


def _edit_list(edits: list[tuple[int, int]]) -> bytes:
    """8.6.6: edts; nothing without edits."""
    if not edits:
        return b""
    large = any(max(edit) > LARGEST_32 >> 1 for edit in edits)
    rows = [struct.pack(">Qqhh" if large else ">Iihh", *edit, 1, 0) for edit in edits]
    return box(b"edts", full_box(b"elst", int(large), 0, struct.pack(">I", len(rows)), *rows))


def _next(stream: SoundStream) -> SoundPacket | None:
    """The next packet; ValueError for one that a sample cannot be."""
    packet = next(stream.packets, None)
    if packet is not None and not (0 < len(packet.data) < _FOUR_BYTES and 0 < packet.duration < _FOUR_BYTES):
        raise ValueError(f"a packet of sound of {len(packet.data)} bytes, {packet.duration} units")
    return packet


def _led_in(stream: SoundStream, first: SoundPacket) -> tuple[SoundStream, SoundPacket]:
    """A stream that begins late, begun by silence, and its first packet. first: the one that was taken already."""
    late = stream.delay - stream.skip
    packet = silence(stream.format) if late > 0 else None
    if packet is None:
        return stream, first
    count = -(-late // packet.duration)
    packets = chain(repeat(packet, count - 1), (first,), stream.packets)
    return replace(stream, packets=packets, skip=count * packet.duration - late, delay=0), packet


def sound_track(stream: SoundStream, timescale: int, start: int, throughout: bool = False) -> SoundTrack | None:
    """The track of a stream; None if it has no packets. Its errors are those of the packets.

    throughout: silence stands where it begins later, or ends before the video, if the format has any.
    """
    first = _next(stream)
    if first is None:
        return None
    if throughout:
        stream, first = _led_in(stream, first)
    return SoundTrack(stream, first, timescale, start, throughout)
