"""Times of frames from a file (--tcfile-in): both formats, what is refused, and the times of the output."""

import wave
from fractions import Fraction

import pytest
from h264lite import VideoReader
from h264lite.cli.cli import main
from h264lite.encoder.errors import OptionError
from h264lite.encoder.files.timecodes import TimesOfFile, read_timecodes

av = pytest.importorskip("av")

MILLISECONDS = [0, 40, 80, 200, 233.5, 266, 300, 1300]


@pytest.fixture
def raw(tmp_path):
    """Eight raw frames."""
    path = tmp_path / "in.yuv"
    path.write_bytes(bytes(range(48)) * (32 * 32 * 3 // 2 * 8 // 48))
    return path


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def encode(raw, out, timecodes, *words):
    return main(["encode", str(raw), str(out), "--input-res", "32x32", "--device", "cpu", "--tcfile-in", timecodes, *words])


def times_of(path):
    with VideoReader(str(path)) as reader:
        return [float(time) for time in reader.timestamps]


@pytest.mark.parametrize("ending", ("mp4", "mov"))
def test_times_of_each_frame(raw, tmp_path, ending, capfd):
    timecodes = write(tmp_path / "t.txt", ["# timecode format v2", *MILLISECONDS, "# an end"])
    assert encode(raw, tmp_path / f"o.{ending}", timecodes) == 0
    assert times_of(tmp_path / f"o.{ending}") == pytest.approx([time / 1000 for time in MILLISECONDS])
    assert "5.38462 fps on average by --tcfile-in" in (said := capfd.readouterr().err) and "warning" not in said
    assert encode(raw, tmp_path / f"o.{ending}", timecodes, "--seek", "3", "--fps", "25") == 0
    assert times_of(tmp_path / f"o.{ending}") == pytest.approx([time / 1000 - 0.2 for time in MILLISECONDS[3:]])


def test_sound_begins_with_the_first_frame(raw, tmp_path):
    """By its time in the file, not by the frame rate: the sound lasts as long as before, less what is skipped."""
    sound = tmp_path / "s.wav"
    with wave.open(str(sound), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(8000)
        file.writeframes(bytes(2 * 8000))
    timecodes = write(tmp_path / "t.txt", ["# timecode format v2", *MILLISECONDS])
    lengths = []
    for words in ((), ("--seek", "3")):
        assert encode(raw, tmp_path / "o.mp4", timecodes, "--audio", str(sound), "--quiet", *words) == 0
        with av.open(str(tmp_path / "o.mp4")) as container:
            lengths.append(sum(frame.samples for frame in container.decode(audio=0)))
    assert lengths == [8000, 8000 - 1600]


def test_rates_of_ranges(raw, tmp_path):
    timecodes = write(tmp_path / "t.txt", ["# timestamp format v1", "assume 29.97", "", "1,2,10", "4, 4, 2  # slow"])
    read = read_timecodes(timecodes)
    frame = Fraction(1001, 30000)
    assert read.fps == 1 / frame and read.count is None
    steps = [frame, Fraction(1, 10), Fraction(1, 10), frame, Fraction(1, 2), frame, frame]
    assert [read.seconds(n + 1) - read.seconds(n) for n in range(7)] == steps and read.seconds(0) == 0
    assert encode(raw, tmp_path / "o.mp4", timecodes, "--quiet") == 0
    assert times_of(tmp_path / "o.mp4") == pytest.approx([float(sum(steps[:n])) for n in range(8)], abs=2e-6)


def test_a_constant_rate_in_milliseconds_is_exact(tmp_path):
    """Times of 24000 / 1001 frames a second, rounded to milliseconds."""
    lines = ["# timecode format v2", *(round(n * 1001 / 24) for n in range(100))]
    read = read_timecodes(write(tmp_path / "t.txt", lines))
    times = TimesOfFile(read, Fraction(24000, 1001), 10)
    assert [times.of(n) * times.base for n in range(-1, 90)] == [n * Fraction(1001, 24000) for n in range(-1, 90)]
    assert not times.is_variable and times.without_times(90) == 0 and times.without_times(95) == 5


def test_frames_without_a_time_and_a_plain_stream_are_told(raw, tmp_path, capfd):
    timecodes = write(tmp_path / "t.txt", ["# timecode format v2", *MILLISECONDS[:4]])
    assert encode(raw, tmp_path / "o.mp4", timecodes, "--quiet") == 0
    assert "the last 4 of 8 frames have no time" in capfd.readouterr().err
    assert times_of(tmp_path / "o.mp4") == pytest.approx([0, 0.04, 0.08, 0.2, 0.32, 0.44, 0.56, 0.68])
    assert encode(raw, tmp_path / "o.264", timecodes, "--quiet", "--frames", "4") == 0
    assert "variable frame rate, which a plain stream cannot say" in capfd.readouterr().err


@pytest.mark.parametrize("lines, words", [
    ([], "first line"), (["0", "40"], "first line"), (["# timecode format v3", "0"], "first line"),
    (["# timecode format v2", "0"], "fewer than two"), (["# timecode format v2", "0", "40", "40"], "line 4.*not later"),
    (["# timecode format v2", "0", "-4"], "line 3.*no time"), (["# timecode format v2", "0", "x" * 99], "line 3.*no time"),
    (["# timecode format v1"], "assume"), (["# timecode format v1", "0,1,25"], "assume"),
    (["# timecode format v1", "assume 0"], "fps|rate|0"), (["# timecode format v1", "assume 25", "5,4,25"], "line 3.*rise"),
    (["# timecode format v1", "assume 25", "0,4,25", "4,5,10"], "line 4.*rise"),
    (["# timecode format v1", "assume 25", "0,4"], "line 3.*FIRST,LAST,RATE"),
    (["# timecode format v1", "assume 25", "0,4,1e9"], "line 3"),
])  # fmt: skip
def test_what_is_refused(tmp_path, lines, words):
    with pytest.raises(OptionError, match=words) as error:
        read_timecodes(write(tmp_path / "t.txt", lines))
    assert error.value.option == "tcfile-in"


def test_refused_on_the_command_line(raw, tmp_path, capfd):
    assert encode(raw, tmp_path / "o.mp4", str(tmp_path / "none.txt")) == 2
    assert "--tcfile-in" in capfd.readouterr().err and not (tmp_path / "o.mp4").exists()
    timecodes = write(tmp_path / "t.txt", ["# timecode format v2", *MILLISECONDS])
    words = "--vbv-maxrate", "2000", "--vbv-bufsize", "1000", "--nal-hrd", "vbr"
    assert encode(raw, tmp_path / "o.mp4", timecodes, *words) == 2
    assert "leave out --tcfile-in" in capfd.readouterr().err
