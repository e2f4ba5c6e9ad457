"""Sound beside the video: packets, times, edit lists and file_boxes in all layouts, as our reader and FFmpeg see them."""

import io
import os
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from h264lite.encoder.errors import InputError, OutputError
from h264lite.encoder.files.output_mp4 import Mp4Sink
from h264lite.mp4.muxer import Muxer
from h264lite.mp4.parsing import contents, file_boxes, length
from h264lite.mp4.reader import Mp4Reader
from h264lite.mp4.sound_reader import open_sound
from h264lite.sound.aac import config_of
from h264lite.sound.aac import format_of as aac_format
from h264lite.sound.flac import format_of as flac_format
from h264lite.sound.flac_encoder import FlacEncoder
from h264lite.sound.opus import format_of as opus_format
from h264lite.sound.opus import header_of
from h264lite.sound.stream import SoundPacket, SoundStream
from h264lite.standard.bits import BitstreamError
from hypothesis import given, settings
from hypothesis import strategies as st

from .test_mp4 import BASES, access_unit, in_layout

FORMATS = {
    "aac": aac_format(config_of(44100, 2)),
    "opus": opus_format(header_of(2, 312))[0],
    "flac": flac_format(FlacEncoder(8000, 1, 16).stream_info()),
    "fast flac": flac_format(FlacEncoder(192000, 6, 24).stream_info()),
}
KINDS = ("in place", "fragments", "at end")


def stream_of(kind, packets, skip=0, delay=0):
    return SoundStream(FORMATS[kind], iter([SoundPacket(data, duration) for data, duration in packets]), skip, delay)


def video(muxer, steps, delay=0):
    """Frames of these durations, in units of the time base, the first one shown `delay` after it is decoded."""
    dts = 0
    for n, step in enumerate(steps):
        muxer.add(access_unit(bytes((n % 255 + 1, 0x80)), n % 7 == 0), dts + delay, dts, n % 7 == 0, step)
        dts += step
    return dts


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=60),
    BASES,
    st.sampled_from(KINDS),
    st.sampled_from(sorted(FORMATS)),
    st.integers(0, 20000),
    st.integers(0, 5000),
    st.booleans(),
    st.integers(0, 30),
    st.integers(0, 1 << 20),
)
def test_what_is_written_is_read(tmp_path_factory, steps, base, kind, codec, count, skip, is_late, delay, seed):
    """Every packet that begins before the video ends, with its bytes, at its time; both tracks begin and end together."""
    rng = random.Random(seed)
    rate, late = FORMATS[codec].rate, rng.randrange(5000) if is_late else 0
    skip = 0 if is_late and kind == "fragments" else skip
    each = rng.choice((960, 1024, 4096))
    packets = [
        (rng.randbytes(rng.randrange(1, 9)), each if rng.random() < 0.9 else rng.randrange(1, each))
        for _ in range(count // 40)
    ]
    if packets:  # else a reader leaves out packets that are neither heard nor needed
        skip %= packets[0][1] + FORMATS[codec].lead(packets[0][1])
        skip = min(skip, sum(duration for _, duration in packets) - 1)
    layout, result = in_layout(kind, tmp_path_factory.mktemp("x") / "o.mp4", 0.3)
    muxer = Muxer(layout, base, sound=lambda: stream_of(codec, packets, skip, late))
    lasts = video(muxer, steps, delay) * base
    muxer.finish()
    data = result()
    assert sum(1 for _ in Mp4Reader(io.BytesIO(data)).samples()) == len(steps)
    expected, at = [], 0
    for packet, duration in packets:
        begin = Fraction(at - skip + late, rate)
        if begin + Fraction(1, 2 * rate) < lasts:
            expected.append((packet, begin, min(duration, round(lasts * rate) + skip - late - at)))
        at += duration
    if not packets:
        assert b"soun" not in data
    if not expected or lasts * rate < late + 1:
        return
    stream = open_sound(io.BytesIO(data))
    packets, at = [], 0
    for packet in stream.packets:
        packets.append((packet.data, Fraction(at - stream.skip + stream.delay, rate), packet.duration))
        at += packet.duration
    assert [packet for packet, _, _ in packets] == [packet for packet, _, _ in expected]
    tick = Fraction(1, rate) if kind == "fragments" else max(Fraction(1, rate), Fraction(1, movie_timescale(data)))
    assert all(abs(a[1] - b[1]) <= tick / 2 for a, b in zip(packets, expected))
    assert [d for _, _, d in packets[:-1]] == [d for _, _, d in expected[:-1]]
    assert stream.format == (replace(FORMATS[codec], setup=stream.format.setup) if codec == "opus" else FORMATS[codec])


def movie_timescale(data):
    return int.from_bytes(data[data.index(b"mvhd") + 16 :][:4], "big")


def chunks_in_order(data):
    """(whether it is sound, seconds) of each chunk or run, in the file's order."""
    file = io.BytesIO(data)
    runs = []
    for video_or_sound, samples, scale in (
        (False, list(Mp4Reader(file).samples()), Mp4Reader(file).timescale),
        (True, list(sound_samples(file)), open_sound(file).format.rate),
    ):
        runs += [(sample.position, video_or_sound, Fraction(sample.duration, scale)) for sample in samples]
    chunks = []
    for _, is_sound, seconds in sorted(runs):
        if chunks and chunks[-1][0] == is_sound:
            chunks[-1][1] += seconds
        else:
            chunks.append([is_sound, seconds])
    return chunks


def sound_samples(file):
    from h264lite.mp4 import sound_reader

    movie = next(contents(file, box) for box in file_boxes(file, length(file)) if box.box_type == "moov")
    track = sound_reader._sound_track(movie)
    return sound_reader._samples(file, movie, track, track.only("mdia").only("minf").only("stbl"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("codec", sorted(FORMATS))
def test_both_tracks_interleave(tmp_path, kind, codec):
    """Never more than a second of one without the other, a frame or packet more at most."""
    rate = FORMATS[codec].rate
    layout, result = in_layout(kind, tmp_path / "o.mp4", 1.0)
    packets = ((bytes((1, n & 255)), 512) for n in range(rate * 31 // 512))
    muxer = Muxer(layout, Fraction(1001, 30000), sound=lambda: stream_of(codec, packets))
    video(muxer, [1] * 900)
    muxer.finish()
    chunks = chunks_in_order(result())
    assert len(chunks) >= 50 and not chunks[0][0]
    longest = (
        Fraction(1) + (Fraction(7 * 1001, 30000) if kind == "fragments" else Fraction(1001, 30000)) + Fraction(512, rate)
    )
    assert max(seconds for _, seconds in chunks) <= longest
    total = [sum(seconds for which, seconds in chunks if which == is_sound) for is_sound in (False, True)]
    assert total[0] == Fraction(900 * 1001, 30000) and abs(total[1] - total[0]) <= Fraction(1, rate)


@pytest.mark.parametrize("kind", KINDS)
def test_ffmpeg_sees_the_times(tmp_path, kind):
    """Movie, tracks and packets: an early start that is cut, a late one, frames that are shown later than decoded."""
    av = pytest.importorskip("av")
    for codec, skip, late in (("aac", 2112, 0), ("opus", 312, 0), ("flac", 100, 0), ("flac", 0, 4001), ("aac", 0, 20000)):
        rate = FORMATS[codec].rate
        layout, result = in_layout(kind, tmp_path / "o.mp4", 0.3)
        packets = [(b"\1\2\3\4", 1024)] * (4 * rate // 1024)
        muxer = Muxer(layout, Fraction(1, 25), sound=lambda: stream_of(codec, packets, skip, late))  # noqa: B023
        video(muxer, [1] * 50, delay=2)
        muxer.finish()
        data = result()
        with av.open(io.BytesIO(data)) as container:
            sound, moving = container.streams.audio[0], container.streams.video[0]
            assert sound.codec_context.codec.canonical_name == codec and sound.codec_context.sample_rate == rate
            times = [packet.pts * packet.time_base for packet in container.demux(sound) if packet.size]
            assert times[0] == Fraction(late - skip, rate) and times[1] - times[0] == Fraction(1024, rate)
            assert 2 - Fraction(1024, rate) <= times[-1] < 2
            if kind != "fragments":
                assert container.duration == 2_000_000
                heard = sound.duration * sound.time_base
                assert abs(heard - (2 - Fraction(late, rate) * (late > 0))) <= Fraction(1, rate) or late
        with av.open(io.BytesIO(data)) as container:
            first = next(packet for packet in container.demux(video=0))
            assert (first.pts, first.dts * first.time_base) == (0, Fraction(-2, 25)) and moving.codec_context.name == "h264"


def boxes_of(data, *path):
    """The contents of the last box of a path in moov, in the track of sound."""
    file = io.BytesIO(data)
    movie = next(contents(file, box) for box in file_boxes(file, length(file)) if box.box_type == "moov")
    box = list(movie.boxes("trak"))[1]
    for name in path:
        box = box.only(name)
    return box


@pytest.mark.parametrize(("codec", "roll"), [("aac", -1), ("opus", -4), ("flac", None)])
@pytest.mark.parametrize("kind", KINDS)
def test_where_a_decoder_begins(tmp_path, codec, roll, kind):
    """Roll distances: 14496-12, 10.1; 80 ms of Opus are 4 packets of 20 ms. All samples belong to the group."""
    layout, result = in_layout(kind, tmp_path / "o.mp4", 0.3)
    muxer = Muxer(layout, Fraction(1, 25), sound=lambda: stream_of(codec, [(b"\1", 960)] * 80))
    video(muxer, [1] * 30)
    muxer.finish()
    data = result()
    assert data.count(b"sgpd") == (roll is not None)
    if roll is not None:
        table = boxes_of(data, "mdia", "minf", "stbl")
        assert table.only("sgpd").at(0, "I4sIIh") == (1 << 24, b"roll", 2, 1, roll)
        if kind == "fragments":
            assert data.count(b"sbgp") == data.count(b"moof") > 2
        else:
            count = boxes_of(data, "mdia", "minf", "stbl", "stsz").at(8, "I")[0]
            assert table.only("sbgp").at(0, "I4sIII") == (0, b"roll", 1, count, 1)


def test_sample_entries():
    """By the bytes that other readers look at."""
    from h264lite.mp4.sound_entry import sample_entry

    entry = sample_entry(FORMATS["aac"], 0)
    assert entry[16:36].hex() == "00000000000000000002001000000000ac440000" and entry[40:44] == b"esds"
    assert entry[48:].hex() == "0380808022000000" + "0480808014" + "4015" + "00" * 11 + "0580808002" + "1210" + "068080800102"
    entry = sample_entry(FORMATS["opus"], 500)
    assert entry[36:].hex() == "00000013" + b"dOps".hex() + "0002" + "01f4" + "0000bb80" + "0000" + "00"
    entry = sample_entry(FORMATS["fast flac"], 0)
    assert (
        entry[24:36].hex() == "0006001800000000" + "bb800000"
        and entry[36:52].hex() == "00000032" + b"dfLa".hex() + "0000000080000022"
    )
    assert int.from_bytes(entry[62:65], "big") >> 4 == 192000


# Failures ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", (0, 1, 30, 70))
def test_sound_that_fails(tmp_path, kind, at):
    """The error comes out, and the file has all frames before and the sound before."""

    def packets():
        for n in range(at):
            yield SoundPacket(bytes((n + 1,)), 960)
        raise ValueError("no more")

    layout, result = in_layout(kind, tmp_path / "o.mp4", 0.2)
    muxer, added = Muxer(layout, Fraction(1, 25), sound=lambda: SoundStream(FORMATS["opus"], packets())), 0
    with pytest.raises(ValueError, match="no more"):
        for n in range(40):
            muxer.add(access_unit(bytes((n + 1, 0x80)), n % 5 == 0), n, n, n % 5 == 0)
            added = n
        muxer.finish()
    muxer.finish()
    data = result()
    if not at:
        assert not data
        return
    assert sum(1 for _ in Mp4Reader(io.BytesIO(data)).samples()) in (added, added + 1)
    assert [packet.data[0] for packet in open_sound(io.BytesIO(data)).packets] == list(range(1, at + 1))


def test_errors_of_the_sound_are_of_the_input(tmp_path):
    """And not of the output; the output's own stay."""

    def stream():
        raise InputError("s.wav: damaged")

    for sound, error, words in (
        (stream, InputError, "^s.wav: damaged$"),
        (lambda: stream_of("aac", [(b"", 3)]), OutputError, "a packet of sound of 0 bytes"),
    ):
        sink = Mp4Sink(tmp_path / "o.mp4", fps=Fraction(25), sound=sound)
        with pytest.raises(error, match=words):
            for n in range(3):
                sink.write_packet(access_unit(b"\1\x80", n == 0), n, n, n == 0)
            sink.close()
        sink.close()
        assert error is OutputError or not os.path.exists(tmp_path / "o.mp4")


def test_damaged_files_end_in_an_error_or_in_packets(tmp_path):
    """Movies and fragments of all codecs, with bytes changed in moov and moof."""
    rng, raised = random.Random(8), 0
    for kind in ("at end", "fragments"):
        for codec in sorted(FORMATS):
            layout, result = in_layout(kind, tmp_path / "o.mp4", 0.3)
            muxer = Muxer(layout, Fraction(1, 25), sound=lambda: stream_of(codec, [(b"\1\2", 960)] * 60, 300))  # noqa: B023
            video(muxer, [1] * 30)
            muxer.finish()
            data = result()
            begin, end = data.index(b"soun") - 250, min(data.index(b"mdat") + 100, len(data))
            for _ in range(300):
                bad = bytearray(data)
                for _ in range(rng.choice((1, 1, 2, 8))):
                    bad[rng.randrange(begin, end)] = rng.choice((0, 255, rng.randrange(256)))
                try:
                    total = sum(len(packet.data) + 1 for packet in open_sound(io.BytesIO(bytes(bad))).packets)
                    assert total <= 17 * len(bad)
                except BitstreamError as error:
                    raised += 1
                    assert "\n" not in str(error) and len(str(error)) < 250
    assert raised > 200


def test_a_movie_of_a_long_sound_is_written_once(tmp_path):
    """An hour of both: tables of 4 bytes a packet, and no more memory than the chunks."""
    layout, result = in_layout("in place", tmp_path / "o.mp4")
    packets = ((b"\1\2\3", 1024) for _ in range(3600 * 44100 // 1024 + 9))
    muxer = Muxer(layout, Fraction(1, 25), sound=lambda: stream_of("aac", packets, 1024))
    video(muxer, [1] * 90_000)
    muxer.finish()
    data = result()
    samples = list(sound_samples(io.BytesIO(data)))
    assert len(samples) == 155_041 and all(data[s.position : s.position + 3] == b"\1\2\3" for s in samples[::1000])
    assert len(chunks_in_order(data)) == 7200
    assert np.diff([s.position for s in samples]).min() == 3


def test_a_file_whose_writer_is_killed_has_both(tmp_path):
    """In place: what lies on the disk before `finish` plays as fragments, to the same second in both tracks."""
    layout, _ = in_layout("in place", tmp_path / "o.mp4")
    packets = ((bytes((n % 255 + 1,)), 1024) for n in range(300))
    muxer = Muxer(layout, Fraction(1, 25), sound=lambda: stream_of("aac", packets, 1024))
    video(muxer, [1] * 80)
    data = (tmp_path / "o.mp4").read_bytes()
    assert sum(1 for _ in Mp4Reader(io.BytesIO(data)).samples()) == 75
    stream = open_sound(io.BytesIO(data))
    first_bytes = [packet.data[0] for packet in stream.packets]
    assert first_bytes == list(range(1, len(first_bytes) + 1)) and stream.skip == 1024
    assert 0 <= len(first_bytes) * 1024 - 1024 - 3 * 44100 < 1024
