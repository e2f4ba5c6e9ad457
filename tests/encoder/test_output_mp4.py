"""MP4 of our own, read by FFmpeg: frames, times, colours, and what is left where writing ends too early."""

import _thread
import io
import os
import subprocess
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from h264lite import Encoder
from h264lite.encoder.errors import OutputError
from h264lite.encoder.files.output_mp4 import Mp4Sink
from h264lite.mp4 import layouts

from ..support import round_trip
from ..support.steady import steady

av = pytest.importorskip("av", reason="PyAV reads the files")
WIDTH, HEIGHT, FRAMES, KEYINT = 50, 34, 24, 8
RATE = Fraction(30000, 1001)


@cache
def packets():
    """Packets of a clip with their reconstruction."""
    options = {"colorprim": "bt709", "transfer": "bt709", "colormatrix": "bt709", "range": "tv", "sar": "4:3"}
    with Encoder(WIDTH, HEIGHT, RATE, keyint=KEYINT, threads=1, keep_reconstruction=True, **steady(options)) as encoder:
        coded = [p for planes in round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 3) for p in encoder.encode(planes)]
        return coded + encoder.flush()


def write(target, count=FRAMES, **options):
    sink = Mp4Sink(target, **{"fps": RATE, **options})
    for packet in packets()[:count]:
        sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
    sink.close()
    return target


def decoded(source):
    """(y, u, v) of each frame, as FFmpeg decodes it."""
    source = io.BytesIO(source) if isinstance(source, bytes) else str(source)
    with av.open(source) as container:
        for frame in container.decode(video=0):
            yield tuple(np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
                        for plane in frame.planes)  # fmt: skip


def assert_frames(source, count=FRAMES):
    """FFmpeg decodes the first `count` frames as the encoder has reconstructed them."""
    frames = list(decoded(source))
    assert len(frames) == count
    for planes, packet in zip(frames, packets()):
        assert all(np.array_equal(a, b) for a, b in zip(planes, packet.reconstruction))


def in_every_way(path):
    """The clip in all layouts: (name, bytes)."""
    pieces, plain, fragments = [], io.BytesIO(), io.BytesIO()
    pipe = type("Pipe", (), {"write": lambda self, data: pieces.append(bytes(data))})()
    yield "file", write(path).read_bytes()
    yield "object", write(plain).getvalue()
    write(pipe)
    yield "pipe", b"".join(pieces)
    yield "fragments", write(fragments, fragment=0.1).getvalue()
    yield "fragments in a file", write(path, fragment=0.1).read_bytes()


def test_ffmpeg_reads_frames_times_and_colours(tmp_path):
    written = dict(in_every_way(tmp_path / "o.mp4"))
    assert written["file"] == written["object"] == written["pipe"]
    assert written["fragments"] == written["fragments in a file"]
    for name, data in written.items():
        assert_frames(data)
        with av.open(io.BytesIO(data)) as container:
            stream = container.streams.video[0]
            demuxed = [p for p in container.demux(stream) if p.size]
            assert [p.pts * p.time_base for p in demuxed] == [n / RATE for n in range(FRAMES)], name
            assert all(p.duration * p.time_base == 1 / RATE and p.dts == p.pts for p in demuxed), name
            assert [p.is_keyframe for p in demuxed] == [n % KEYINT == 0 for n in range(FRAMES)], name
            assert stream.average_rate == stream.base_rate == RATE
            assert stream.duration * stream.time_base == FRAMES / RATE
            assert stream.sample_aspect_ratio == Fraction(4, 3) and stream.codec_context.extradata[:1] == b"\1"
            context = stream.codec_context
            assert (context.color_primaries, context.color_trc, context.colorspace, context.color_range) == (1, 1, 1, 1)


def test_moov_is_in_front_and_parameter_sets_are_there_alone(tmp_path):
    for name, data in in_every_way(tmp_path / "o.mp4"):
        assert data[4:8] == b"ftyp" and data.index(b"moov") < data.index(b"mdat")
        units = [unit for p in packets() for unit in p.data.split(b"\0\0\1") if unit[:1] and unit[0] & 31 in (7, 8)]
        assert len(units) == 2 * FRAMES // KEYINT
        assert all(data.count(unit.rstrip(b"\0")) == 1 for unit in units), name
        assert b"\0\0\0\1" + units[0] not in data


@pytest.mark.parametrize("count", (1, 2))
def test_a_few_frames(tmp_path, count):
    for options in ({}, {"fragment": 1.0}):
        path = write(tmp_path / "o.mp4", count, **options)
        assert_frames(path, count)
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            assert stream.duration is None or stream.duration * stream.time_base == count / RATE


def test_fragments_begin_at_keyframes_and_each_is_one_write():
    pieces = []
    write(type("Pipe", (), {"write": lambda self, data: pieces.append(bytes(data))})(), fragment=2 * KEYINT / RATE)
    assert [piece[4:8] for piece in pieces] == [b"ftyp", b"moof", b"moof"]  # 16 frames and 8
    assert_frames(pieces[0] + pieces[1], 2 * KEYINT)


class Small(io.RawIOBase):
    """An unbuffered file that takes a few bytes at a time, or none."""

    def __init__(self, full=False):
        self.data, self.full = b"", full

    def write(self, data):
        self.data += data[: 0 if self.full else 777]
        return None if self.full else min(777, len(data))


def test_unbuffered_objects():
    expected = write(io.BytesIO()).getvalue()
    assert write(Small()).data == expected
    with pytest.raises(OutputError, match="the Small: it takes nothing now"):
        write(Small(full=True))
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(OutputError, match="closed file"):
        write(closed)


class Answers:
    """An object whose `write` takes all and gives an answer of its own."""

    def __init__(self, answer):
        self.answer, self.calls = answer, 0

    def write(self, data):
        self.calls += 1
        return self.answer(len(data)) if callable(self.answer) else self.answer


class RawAnswers(Answers, io.RawIOBase):
    """The same of an unbuffered file."""


@pytest.mark.parametrize("kind", (Answers, RawAnswers))
@pytest.mark.parametrize("fragment", (None, 0.1))
@pytest.mark.parametrize("answer", (True, False, -1, 0, "3", b"3", 3.0, [3], 10**9, 10**5000, lambda n: n + 1, np.int64(5)),
                         ids=lambda answer: type(answer).__name__)  # fmt: skip
def test_an_answer_that_is_no_number_of_bytes_ends_it(kind, fragment, answer):
    """One that was taken for a number wrote the same bytes again and again."""
    target = kind(answer)
    with pytest.raises(OutputError, match=rf"the {kind.__name__}: its write returned .*, neither None nor how many of \d+ b"):
        write(target, fragment=fragment)
    assert target.calls <= 2


def test_answers_of_all_and_of_none():
    for answer in (None, lambda n: n):
        write(target := Answers(answer))
        assert target.calls <= 3


def test_variable_frame_rate_and_a_rate_of_few_units(tmp_path):
    times = [0, 40, 41, 1000, 1001, 7777]
    sink = Mp4Sink(tmp_path / "o.mp4", fps=Fraction(25), time_base=Fraction(1, 90000))
    for time, packet in zip(times, packets()):
        sink.write_packet(packet.data, time, time, packet.is_keyframe, 55)
    sink.close()
    with av.open(str(tmp_path / "o.mp4")) as container:
        demuxed = [p for p in container.demux(video=0) if p.size]
        assert [p.pts * p.time_base for p in demuxed] == [Fraction(time, 90000) for time in times]
        assert demuxed[-1].duration * demuxed[-1].time_base == Fraction(55, 90000)
    with av.open(str(write(tmp_path / "o.mp4", fps=Fraction(1, 3)))) as container:
        assert container.streams.video[0].duration * container.streams.video[0].time_base == 3 * FRAMES


@pytest.mark.parametrize("fragment", (None, 0.1))
@pytest.mark.parametrize("signed", (False, True))
def test_reordered_frames(fragment, signed):
    """Times of I P B B: the packets are not of B frames, but their times are. The first frame is at 0."""
    output_order = [0, 3, 1, 2, 6, 4, 5]
    delay = 0 if signed else 1
    target = io.BytesIO()
    sink = Mp4Sink(target, fps=RATE, fragment=fragment)
    for dts, (pts, packet) in enumerate(zip(output_order, packets())):
        sink.write_packet(packet.data, pts, dts - delay, packet.is_keyframe)
    sink.close()
    assert (b"elst" in target.getvalue()) == (not signed)
    with av.open(io.BytesIO(target.getvalue())) as container:
        units = [p for p in container.demux(video=0) if p.size]
        late = (signed and fragment is not None) / RATE  # FFmpeg puts such a first frame at its shift
        assert [p.pts * p.time_base - late for p in units] == [pts / RATE for pts in output_order]
        assert [p.dts * p.time_base - late for p in units] == [(n - 1) / RATE for n in range(7)]  # <= pts: FFmpeg sees to it


# Where writing ends too early ----------------------------------------------------------------------------------------


def test_a_file_whose_process_dies_plays_but_for_the_last_second(tmp_path):
    path = tmp_path / "o.mp4"
    sink = Mp4Sink(path, fps=Fraction(5))
    for packet in packets():
        sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
    assert_frames(path.read_bytes(), 20)  # of 24: the last group is not complete
    assert sink.frames == 20
    sink.close()
    assert_frames(path)


def test_a_full_disk_leaves_what_was_whole(tmp_path, monkeypatch):
    path, real = tmp_path / "o.mp4", os.write
    sink = Mp4Sink(path, fps=Fraction(5))
    room = [3]

    def writes(fd, data):
        room[0] -= b"moof" in bytes(data)
        if room[0] < 0:
            raise OSError(28, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr(os, "write", writes)
    with pytest.raises(OutputError, match=r"o\.mp4: no space left on device"):
        for packet in packets():
            sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
    assert sink.frames == 15
    with pytest.raises(OutputError, match="an earlier write has failed"):
        sink.write_packet(packets()[-1].data, 99, 99, False)
    sink.close()
    assert_frames(path, 15)
    assert b"moof" not in path.read_bytes()


@pytest.mark.parametrize("held", [1, 1 << 22])
def test_a_full_temporary_disk_leaves_what_was_whole(monkeypatch, held):
    """Whether groups come to the temporary file one by one or together, at the end."""
    target, room = io.BytesIO(), [2]
    monkeypatch.setattr(layouts, "_MOST_HELD_BYTES", held)
    sink = Mp4Sink(target, fps=Fraction(5))
    real = sink._waiting.writelines

    def writes(data):
        room[0] -= 1
        if room[0] < 0:
            sink._waiting.write(data[0])
            raise OSError(28, "No space left on device")
        real(data)

    monkeypatch.setattr(sink._waiting, "writelines", writes)
    with pytest.raises(OutputError, match="no space left on device"):
        for packet in packets():
            sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
        sink.close()
    sink.close()
    assert sink.frames == 10
    assert_frames(target.getvalue(), 10)


def test_a_disk_too_full_for_the_movie_leaves_fragments(tmp_path, monkeypatch):
    path = tmp_path / "o.mp4"
    sink = Mp4Sink(path, fps=RATE, time_base=Fraction(1, 90000))
    for n, packet in enumerate(packets()):  # durations and offsets change: moov needs more than moof
        sink.write_packet(packet.data, n * n + n, n * n, packet.is_keyframe)

    def full(file, data):
        file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(layouts, "_write_all", full)
    with pytest.raises(OutputError, match="no space left on device"):
        sink.close()
    sink.close()
    assert_frames(path)
    assert b"moof" in path.read_bytes()


def test_an_interrupt_while_the_file_is_moved_comes_after_it(tmp_path, monkeypatch):
    moved = layouts._move
    monkeypatch.setattr(layouts, "_move", lambda *args: (_thread.interrupt_main(), moved(*args)))
    sink = Mp4Sink(tmp_path / "o.mp4", fps=RATE)
    for packet in packets():
        sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
    with pytest.raises(KeyboardInterrupt):
        sink.close()
    assert_frames(tmp_path / "o.mp4")


def test_an_old_file_and_a_pipe_with_a_name(tmp_path):
    path, pipe = tmp_path / "o.mp4", tmp_path / "pipe.mp4"
    path.write_bytes(b"longer than the new one" * 10000)
    expected = write(path).read_bytes()
    assert len(expected) < 230000
    assert_frames(path)
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    sink = Mp4Sink(pipe, fps=RATE)
    assert sink.waits
    for packet in packets():
        sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
    sink.close()
    assert reader.communicate(timeout=30)[0] == expected


def test_without_packets_nothing_is_written(tmp_path):
    for options in ({}, {"fragment": 1.0}):
        Mp4Sink(tmp_path / "o.mp4", fps=RATE, **options).close()
        assert not list(tmp_path.iterdir())
        target = io.BytesIO()
        Mp4Sink(target, fps=RATE, **options).close()
        assert not target.getvalue()


def test_refusals(tmp_path):
    first, second = packets()[:2]
    with pytest.raises(OutputError, match=r"o\.mp4: there is no folder"):
        Mp4Sink(tmp_path / "no" / "o.mp4", fps=RATE)
    with pytest.raises(OutputError, match=r"int is no output"):
        Mp4Sink(5, fps=RATE)
    with pytest.raises(OutputError, match=r"TextIOWrapper is no output"), open(tmp_path / "text", "w") as file:
        Mp4Sink(file, fps=RATE)
    with pytest.raises(OutputError, match=r"time base"):
        Mp4Sink(io.BytesIO(), fps=Fraction(1 << 33))
    with pytest.raises(OutputError, match=r"o\.mp4: a time base of 2147483646/2147483647 s is too exact for MP4"):
        Mp4Sink(tmp_path / "o.mp4", fps=Fraction(2147483647, 2147483646))
    assert not (tmp_path / "o.mp4").exists()
    sink = Mp4Sink(io.BytesIO(), fps=RATE)
    for data, times, reason in ((second.data, (0, 0), "no parameter sets"), (b"junk" * 9, (0, 0), "no start code"),
                                (first.data[:10], (0, 0), "without slices"), (first.data, (0, 1), "before it is decoded")):
        with pytest.raises(OutputError, match=reason):
            sink.write_packet(data, *times, True)
    sink.write_packet(first.data, 0, 0, True)
    with pytest.raises(OutputError, match="must rise"):
        sink.write_packet(second.data, 1, 0, False)
    with Encoder(WIDTH, HEIGHT, 25, threads=1, qp=26, bframes=0) as encoder:
        other = (encoder.encode(tuple(np.zeros_like(plane) for plane in first.reconstruction)) + encoder.flush())[0]
    with pytest.raises(OutputError, match="parameter sets change"):
        sink.write_packet(other.data, 1, 1, True)
