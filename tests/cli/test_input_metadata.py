"""What of an input that PyAV reads is in the output: times, colours, rotation, sound; what is warned of, what refused."""

import io
import shlex
import shutil
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.files.times import FrameTimes
from h264lite.standard.bits import unescape
from h264lite.standard.syntax import parse_sps
from hypothesis import given
from hypothesis import strategies as st

from ..support import sounds
from .test_cli import one_error

av = pytest.importorskip("av")
WIDTH, HEIGHT = 48, 32
VARIABLE = [0, 40, 80, 200, 233, 250, 700, 740]  # ms


def make(path, times=range(0, 400, 40), codec="ffv1", sound=None, matrix=None, pix_fmt="yuv420p", colours=(), flags=0,
         rate=25, chapters=()):  # fmt: skip
    """A clip with frames at `times`, in ms, and what else is asked for. chapters: when they begin, in ms."""
    rng = np.random.default_rng(1)
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pix_fmt
        context = stream.codec_context
        context.time_base, context.flags = Fraction(1, 25 if flags else 1000), context.flags | flags
        if colours:
            context.color_primaries, context.color_trc, context.colorspace, context.color_range = colours
        if matrix is not None:
            stream.set_display_matrix(matrix)
        if sound is not None:
            track = out.add_stream(sound, rate=48000)
        if chapters:
            out.set_chapters([{"id": n, "start": begin, "end": begin + 1, "time_base": Fraction(1, 1000),
                               "metadata": {"title": str(begin)}} for n, begin in enumerate(chapters)])  # fmt: skip
        for time in times:
            frame = av.VideoFrame.from_ndarray(rng.integers(0, 256, (HEIGHT * 3 // 2, WIDTH), np.uint8), format="yuv420p")
            frame = frame if pix_fmt == "yuv420p" else frame.reformat(format=pix_fmt)
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if sound is not None:
            for n in range(25):
                samples = np.float32(1024 * n > 9600) * np.sin(np.arange(1024) / 9)[None].astype(np.float32)  # from 0.2 s on
                frame = av.AudioFrame.from_ndarray(samples, format="flt", layout="mono")
                frame.sample_rate, frame.pts, frame.time_base = 48000, 1024 * n, Fraction(1, 48000)
                out.mux(track.encode(frame))
            out.mux(track.encode(None))
    return path


def times_of(path, kind="video"):
    """Times of the packets of a file in ms, in coding order."""
    with av.open(str(path)) as container:
        stream = (container.streams.video if kind == "video" else container.streams.audio)[0]
        return [float(1000 * packet.pts * packet.time_base) for packet in container.demux(stream) if packet.size]


def chapters_of(path):
    """(ms, title) of the chapters of a file."""
    with av.open(str(path)) as container:
        return [(float(1000 * c["start"] * c["time_base"]), c["metadata"]["title"]) for c in container.chapters()]


def promises_a_fixed_rate(path):
    """fixed_frame_rate_flag of the first SPS."""
    with av.open(str(path)) as container:
        record = container.streams.video[0].codec_context.extradata
    return bool(parse_sps(unescape(record[9 : 8 + int.from_bytes(record[6:8], "big")])).vui.fixed_frame_rate_flag)


def encode(source, out, *words):
    return main(["encode", str(source), str(out), "--quiet", *words])


def one_warning(text, *words):
    """The only line, a warning that has all `words`."""
    assert text.count("\n") == 1 and text.startswith("h264lite [warning]: "), text
    assert all(word in text for word in words), text


# Times ---------------------------------------------------------------------------------------------------------------


def test_times_of_a_buffer_need_a_constant_frame_rate(tmp_path, capfd):
    source = make(tmp_path / "in.mkv", VARIABLE)
    words = "--crf", "30", "--vbv-maxrate", "2000", "--vbv-bufsize", "1000", "--device", "cpu"
    assert encode(source, tmp_path / "o.mp4", *words, "--nal-hrd", "vbr") == 2
    assert "nal-hrd is for a constant frame rate" in capfd.readouterr().err
    for more, name in (((), "o.mp4"), (("--nal-hrd", "vbr", "--fps", "50"), "o.mp4"), (("--nal-hrd", "cbr"), "o.264")):
        assert encode(source, tmp_path / name, *words, *more) == 0


@pytest.mark.parametrize("ending", ("mp4", "mkv", "mov"))
def test_a_variable_frame_rate_stays(tmp_path, ending, capfd):
    source = make(tmp_path / "in.mkv", VARIABLE)
    assert encode(source, tmp_path / f"o.{ending}") == 0
    assert sorted(times_of(tmp_path / f"o.{ending}")) == pytest.approx(VARIABLE, abs=1)
    assert not capfd.readouterr().err
    assert not promises_a_fixed_rate(tmp_path / f"o.{ending}")
    assert encode(source, tmp_path / f"o.{ending}", "--seek", "3", "--frames", "4") == 0
    assert sorted(times_of(tmp_path / f"o.{ending}")) == pytest.approx([time - 200 for time in VARIABLE[3:7]], abs=1)
    assert encode(source, tmp_path / f"o.{ending}", "--fps", "50") == 0
    assert sorted(times_of(tmp_path / f"o.{ending}")) == pytest.approx(range(0, 160, 20), abs=1)
    assert promises_a_fixed_rate(tmp_path / f"o.{ending}")


# First frame encoded, words, and its time in ms: the source's, that of the file with times, or by the rate that is said
BEGINS = ((0, (), 0), (3, (), 200), (6, (), 700), (3, ("--tcfile-in", "in.times"), 900), (3, ("--fps", "10"), 300),
          (4, ("--fps", "10", "--tcfile-in", "in.times"), 950))  # fmt: skip


@pytest.mark.parametrize(("ending", "fragment"), (("mp4", ()), ("mp4", ("--fragment", "0.2")), ("mkv", ()), ("m3u8", ())))
@pytest.mark.parametrize(("seek", "words", "begin"), BEGINS)
def test_chapters_begin_earlier_by_the_time_of_the_first_frame(tmp_path, monkeypatch, ending, fragment, seek, words, begin):
    """As their frames do: what --seek leaves out ends before 0, but the chapter that goes on there."""
    monkeypatch.chdir(tmp_path)
    source = make(tmp_path / "in.mkv", VARIABLE, chapters=(0, 200, 250, 700, 1000, 2000))
    (tmp_path / "in.times").write_text("# timecode format v2\n0\n10\n500\n900\n950\n1400\n1500\n1600\n")
    assert encode(source, tmp_path / f"o.{ending}", "--seek", str(seek), "--device", "cpu", *words, *fragment) == 0
    expected = [(max(0, at - begin), str(at)) for at in (0, 200, 250, 700, 1000, 2000)]
    out = tmp_path / f"o.{ending}"
    if ending == "m3u8":
        (tmp_path / "o.mp4").write_bytes(b"".join((tmp_path / f"o{end}").read_bytes() for end in ("_init.mp4", "_00001.m4s")))
        out = tmp_path / "o.mp4"
    assert chapters_of(out) == expected[max(0, sum(at <= begin for at in (0, 200, 250, 700, 1000, 2000)) - 1) :]


def test_a_plain_stream_loses_it_with_a_warning(tmp_path, capfd):
    assert encode(make(tmp_path / "in.mkv", VARIABLE), tmp_path / "o.264") == 0
    one_warning(capfd.readouterr().err, "in.mkv has a variable frame rate", ".mp4")
    assert encode(make(tmp_path / "in.mkv"), tmp_path / "o.264") == 0
    assert not capfd.readouterr().err


def test_a_constant_rate_in_milliseconds_is_exact(tmp_path):
    """Matroska rounds 29.97 frames/s to 0, 33, 67, ...; the MP4 has 1001 / 30000 each."""
    source = tmp_path / "in.mkv"
    make(source, [round(n * 1001 / 30) for n in range(60)], rate=Fraction(30000, 1001))
    with av.open(str(source)) as container:
        assert container.streams.video[0].time_base == Fraction(1, 1000)
    assert encode(source, tmp_path / "o.mp4") == 0
    with av.open(str(tmp_path / "o.mp4")) as container:
        rate = container.streams.video[0].average_rate
        durations = {packet.duration * packet.time_base for packet in container.demux(video=0) if packet.size}
    assert len(durations) == 1 and abs(rate - Fraction(30000, 1001)) < Fraction(1, 10)


RATES = st.sampled_from([Fraction(25), Fraction(30000, 1001), Fraction(24000, 1001), Fraction(60), Fraction(55, 3)])
BASES = st.sampled_from([Fraction(1, 1000), Fraction(1, 90000), Fraction(1, 15360), Fraction(1001, 30000)])


@given(RATES, BASES, st.integers(1, 300), st.integers(-50, 1 << 40))
def test_rounded_constant_times_are_multiples_of_the_frame(rate, base, count, start):
    if base > 1 / rate / 2 and base != 1 / rate:
        return
    times = FrameTimes(rate, base)
    for n in range(count):
        times.add(start + round(n / rate / base), None)
    assert [times.of(n) * times.base for n in range(count)] == [n / rate for n in range(count)]
    assert not times.is_variable and times.duration(count - 1) * times.base == 1 / rate
    assert times.of(-1) * times.base == -1 / rate and times.start == start * base


@given(RATES, BASES, st.lists(st.one_of(st.none(), st.integers(-99, 1 << 40)), min_size=1, max_size=50))
def test_any_times_rise(rate, base, given_times):
    times = FrameTimes(rate, base)
    for time in given_times:
        times.add(time, 1)
    rising = [times.of(n) for n in range(len(given_times))]
    assert rising[0] == 0 and all(a < b for a, b in zip(rising, rising[1:]))
    assert times.base.denominator < 1 << 32


def test_times_that_vary_stay():
    times = FrameTimes(Fraction(25), Fraction(1, 1000))
    for time in VARIABLE:
        times.add(time + 77, 10)
    assert [times.of(n) * times.base * 1000 for n in range(len(VARIABLE))] == pytest.approx(VARIABLE, abs=1)
    assert times.is_variable and times.duration(7) * times.base == Fraction(1, 100)
    assert times.duration(2) * times.base == Fraction(120, 1000)


# Colours, rotation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colours", [(1, 1, 1, 1), (9, 16, 9, 2), (6, 6, 6, 1)])
@pytest.mark.parametrize("ending", ("264", "mp4", "mkv"))
def test_colours_stay(tmp_path, colours, ending):
    source = make(tmp_path / "in.mkv", colours=colours)
    assert encode(source, tmp_path / f"o.{ending}") == 0
    with av.open(str(tmp_path / f"o.{ending}")) as container:
        frame = next(container.decode(video=0))
        assert (frame.color_primaries, frame.color_trc, frame.colorspace, frame.color_range) == colours
    assert encode(source, tmp_path / "o.264", "--colormatrix", "bt470bg", "--range", "pc") == 0
    with av.open(str(tmp_path / "o.264")) as container:
        frame = next(container.decode(video=0))
        assert (frame.color_primaries, frame.colorspace, frame.color_range) == (colours[0], 5, 2)


ONE = 1 << 16


@pytest.mark.parametrize("matrix", [(0, ONE, 0, -ONE, 0, 0, 0, 0, 1 << 30), (-ONE, 0, 0, 0, ONE, 0, 0, 0, 1 << 30)])
def test_rotation_and_mirroring_stay_or_are_told(tmp_path, matrix, capfd):
    source = make(tmp_path / "in.mp4", codec="mpeg4", matrix=matrix)
    for ending in ("mp4", "mov"):
        assert encode(source, tmp_path / f"o.{ending}") == 0
        with av.open(str(tmp_path / f"o.{ending}")) as container:
            data = next(container.decode(video=0)).side_data.get("DISPLAYMATRIX")
            assert tuple(np.frombuffer(bytes(data), np.int32)) == matrix
    assert main(["info", str(tmp_path / "o.mp4")]) == 0
    captured = capfd.readouterr()
    assert "rotated" in captured.out and not captured.err
    assert encode(source, tmp_path / "o.264") == 0
    one_warning(capfd.readouterr().err, "in.mp4 is rotated")


# Sound ---------------------------------------------------------------------------------------------------------------


def test_sound_is_left_out_with_a_warning_or_copied(tmp_path, capfd):
    source = make(tmp_path / "in.mkv", sound="aac")
    assert encode(source, tmp_path / "o.mp4") == 0
    one_warning(capfd.readouterr().err, "in.mkv has sound", f"--audio {shlex.quote(str(source))}")
    for ending in ("mp4", "mkv", "mov"):
        out = tmp_path / f"o.{ending}"
        assert encode(source, out, "--audio", str(source)) == 0
        assert sorted(times_of(out)) == pytest.approx(range(0, 400, 40), abs=1)
        assert len(times_of(out, "audio")) in (19, 20)  # of 26: they end with the video, 0.4 s
        data = out.read_bytes()
        assert data.count(b"\x67\x64\x00") == 1, "the SPS is in no sample"
        if ending != "mkv":
            assert data.index(b"moov") < data.index(b"mdat")
    assert not capfd.readouterr().err


@pytest.mark.parametrize(("codec", "ending", "expected"), [("pcm_s16le", "wav", "flac"), ("flac", "flac", "flac")])
def test_sound_of_another_file(tmp_path, codec, ending, expected):
    source, sound = make(tmp_path / "in.mkv"), tmp_path / f"s.{ending}"
    with av.open(str(sound), "w") as out:
        track = out.add_stream(codec, rate=48000)
        frame = av.AudioFrame.from_ndarray((1000 * np.sin(np.arange(48000) / 9)).astype(np.int16)[None], "s16", "mono")
        frame.sample_rate = 48000
        out.mux(track.encode(frame))
        out.mux(track.encode(None))
    assert encode(source, tmp_path / "o.mp4", "--audio", str(sound), "--seek", "2") == 0
    with av.open(str(tmp_path / "o.mp4")) as container:
        audio = container.streams.audio[0]
        assert audio.codec_context.codec.canonical_name == expected
        assert audio.duration * audio.time_base == Fraction(8, 25)
        assert len([packet for packet in container.demux(video=0) if packet.size]) == 8


@pytest.mark.parametrize("seek", (0, 3))
@pytest.mark.parametrize("sound", ("aac", "pcm_f32le"))
def test_sound_is_in_time(tmp_path, sound, seek):
    source, out = make(tmp_path / "in.mkv", sound=sound), tmp_path / "o.mp4"
    assert encode(source, out, "--audio", str(source), "--seek", str(seek)) == 0
    with av.open(str(out)) as container:
        loud = [frame.pts * frame.time_base for frame in container.decode(audio=0) if np.abs(frame.to_ndarray()).max() > 0.2]
    assert float(loud[0]) == pytest.approx(10240 / 48000 - seek / 25, abs=0.025)  # a packet is 0.021 s


def test_sound_is_refused_where_it_cannot_be(tmp_path, capfd):
    source = make(tmp_path / "in.mkv", sound="aac")
    assert encode(source, tmp_path / "o.264", "--audio", str(source)) == 2
    one_error(capfd.readouterr().err, "--audio", "is for .mp4")
    assert encode(source, tmp_path / "o.mp4", "--fragment", "1", "--audio", str(source)) == 1
    one_error(capfd.readouterr().err, "in.mkv", "no MP4, M4A, ADTS, Ogg Opus, FLAC or WAV file")
    for name, said in (("no.wav", "no such file"), (make(tmp_path / "silent.mkv").name, "holds no sound")):
        assert encode(source, tmp_path / "o.mp4", "--audio", str(tmp_path / name)) == 1
        one_error(capfd.readouterr().err, name, said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.mkv", "silent.mkv"]


# Refused, with the line that converts --------------------------------------------------------------------------------

INTERLACED = 0x40000 | 0x20000000  # AV_CODEC_FLAG_INTERLACED_DCT and _ME


@pytest.mark.parametrize(("words", "said"), [
    ({"pix_fmt": "yuv420p10le"}, "yuv420p10le is not supported"), ({"pix_fmt": "yuv422p"}, "yuv422p is not supported"),
    ({"pix_fmt": "bgr0"}, "bgr0 is not supported"), ({"codec": "mpeg2video", "flags": INTERLACED}, "frame 0 is interlaced"),
])  # fmt: skip
def test_a_refusal_gives_the_line_that_converts(tmp_path, capfd, words, said):
    source = make(tmp_path / "in put.mkv", **words)
    assert encode(source, tmp_path / "o.mp4") == 1
    text = capfd.readouterr().err
    one_error(text, "in put.mkv", said, "convert it: ffmpeg -i ")
    line = shlex.split(text.partition("convert it: ")[2])
    assert line[2] == str(source) and not (tmp_path / "o.mp4").exists()
    if shutil.which("ffmpeg") is None:
        pytest.skip("no ffmpeg to run the line with")
    subprocess.run([*line, "-v", "error"], check=True, stdin=subprocess.DEVNULL, timeout=60)
    assert encode(line[-1], tmp_path / "o.mp4") == 0
    assert len(times_of(tmp_path / "o.mp4")) == 10
    if "bgr0" in said:
        with av.open(io.BytesIO((tmp_path / "o.mp4").read_bytes())) as container:
            assert next(container.decode(video=0)).colorspace == 1


KINDS = (("m4a", "aac"), ("aac", "aac"), ("ogg", "libopus"), ("flac", "flac"), ("wav", "pcm_s16le"))


@pytest.mark.parametrize("ending, codec", KINDS)
def test_sound_without_pyav_in_files_fragments_and_pipes(tmp_path, ending, codec, monkeypatch):
    """Cut at frame 7 to the sample, from files of all kinds; raw video needs no PyAV either."""
    clip = tmp_path / "c_48x32_25.yuv"
    clip.write_bytes(np.random.default_rng(2).integers(0, 256, 25 * WIDTH * HEIGHT * 3 // 2, np.uint8))
    source = sounds.write(tmp_path / f"s.{ending}", codec, sounds.pcm(sounds.RATE))
    _, whole = sounds.decoded(source)
    most = 0 if whole.dtype == np.int16 else 0.05  # AAC has random noise of the decoder
    script = "import sys; sys.modules['av'] = None; from h264lite.cli.cli import main; sys.exit(main(sys.argv[1:]))"
    for out, more in (("o.mp4", ()), ("f.mp4", ("--fragment", "0.2")), ("-", ("--muxer", "mp4"))):
        name = out if out == "-" else str(tmp_path / out)
        words = ["encode", str(clip), name, "--quiet", "--audio", str(source), "--seek", "7", "--qp", "40", *more]
        if out == "-":
            done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, timeout=300)
            assert done.returncode == 0 and not done.stderr, done.stderr
        else:
            with monkeypatch.context() as without:
                without.setitem(sys.modules, "av", None)
                assert main(words) == 0
        begin, heard = sounds.decoded(done.stdout if out == "-" else tmp_path / out)
        assert begin <= 0 and (begin == 0 or (ending, out) == ("flac", "f.mp4")), "FFmpeg cuts no FLAC in fragments"
        heard = heard[:, -int(begin) :]
        count = min(heard.shape[1], 18 * 1920)
        expected = whole[:, 7 * 1920 : 7 * 1920 + count].astype(float)
        assert count > 18 * 1920 - 1100 and np.abs(heard[:, :count] - expected).max() <= most
