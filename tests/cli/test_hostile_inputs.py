"""No input ends in a traceback: every command that reads a file says in one line what is wrong, with the file's name."""

import contextlib
import io
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from h264lite.cli.cli import main
from h264lite.console import one_line

from ..fuzz import seeds
from . import hostile_inputs

FAST = ["--preset", "ultrafast", "--threads", "1", "--quiet"]
RAW = "x_16x16.yuv"
SHORT = ["--devices", "cpu", "--seconds", "0.1", "--rounds", "1"]
# The words of a command by the folder and the hostile file's name.
COMMANDS: dict[str, Callable[[Path, str], list[str]]] = {
    "encode": lambda at, name: ["encode", name, str(at / "o.264"), "--frames", "9", *FAST],
    "encode raw": lambda at, name: ["encode", name, str(at / "o.264"), "--input-res", "16x16", "--frames", "9", *FAST],
    "decode": lambda at, name: ["decode", name, str(at / "o.yuv")],
    "decode resilient": lambda at, name: ["decode", "--resilient", name, str(at / "o.y4m")],
    "info": lambda at, name: ["info", "--nal", name],
    "info json": lambda at, name: ["info", "--json", "--nal", name],
    "report": lambda at, name: ["report", name, "-o", str(at / "o.html"), "--quiet"],
    "report compare": lambda at, name: ["report", str(at / "good"), "--compare", name, "-o", str(at / "o.html")],
    "report source": lambda at, name: ["report", str(at / "good"), "--source", name, "-o", str(at / "o.html")],
    **{f"plot {chart}": lambda at, name, chart=chart: ["plot", chart, name, "-o", str(at / "o.svg")]
       for chart in ("rd", "presets", "rate")},
    "plot ssim": lambda at, name: ["plot", "rd", "--by", "ssim", name, "-o", str(at / "o.svg")],
    **{option: lambda at, name, option=option: ["encode", str(at / RAW), str(at / "o.mp4"), f"--{option}", name, *FAST]
       for option in ("cqm", "qpfile", "tuning", "audio")},
    "stats": lambda at, name: ["encode", str(at / RAW), str(at / "o.264"), "--pass", "2", "--bitrate", "50", "--stats", name,
                               *FAST],
    "bench tuning": lambda at, name: ["bench", "--tuning", name, "--sizes", "16x16", *SHORT],
}  # fmt: skip
SLOW = {"doctor": lambda at, name: ["doctor", "--tuning", name],
        "tune": lambda at, name: ["tune", "--clip", name, "--seconds", "5", "--out", str(at / "t.toml")],
        "bench clip": lambda at, name: ["bench", "--clip", name, *SHORT]}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / RAW).write_bytes(bytes(16 * 24 * 2))
    (folder / "good").write_bytes(seeds.own(16, 16, 2, qp=34))
    names = []
    for name, data in hostile_inputs.all_files():
        (folder / name).write_bytes(data)
        names.append(folder / name)
    return [*names, folder, folder / "missing", Path("/dev/null"), folder / "\udcff"]


def check(words: list[str], name: str) -> None:
    """The command ends with an exit code, and its own words."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main(words)
    text = said.getvalue()
    assert code in (0, 1, 2), (words, code)
    assert "a fault of h264lite" not in text and "Traceback" not in text, (words, text)
    if code and "error:" in text and words[0] in ("decode", "info"):
        assert one_line(name) in text, (words, text)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_input_ends_in_a_traceback(files, command):
    """A fifth of the files a command, those of texts for commands that read texts: a file meets a fifth of the commands."""
    kind = {"plot r": (".json", ".csv"), "plot presets": (".json",), "tuning": (".toml",), "stats": (".txt", ".csv")}
    wanted = next((ends for name, ends in kind.items() if name in command), ())
    for n, name in enumerate(files):
        if name.suffix in wanted or (n - list(COMMANDS).index(command)) % 5 == 0:
            check(COMMANDS[command](files[0].parent, str(name)), str(name))


@pytest.mark.slow
@pytest.mark.parametrize("command", [*COMMANDS, *SLOW])
def test_no_input_of_all_ends_in_a_traceback(files, command):
    for name in files:
        check({**COMMANDS, **SLOW}[command](files[0].parent, str(name)), str(name))


# The guard --------------------------------------------------------------------------------------------------------------


def test_a_fault_is_one_line_with_the_file(files, monkeypatch, capfd):
    """Exit code 1, the command, the file, the exception, and how its place is shown."""

    def fails(*arguments: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.delenv("H264LITE_TRACEBACK", raising=False)
    monkeypatch.setattr("h264lite.cli.report.opened", fails)
    assert main(["report", "a\nb.264", "-o", str(files[0].parent / "o.html")]) == 1
    said = capfd.readouterr().err
    assert said == ("h264lite report: error: a\\nb.264: a fault of h264lite: ZeroDivisionError: by nothing"
                    " (H264LITE_TRACEBACK=1 shows where)\n")  # fmt: skip
    monkeypatch.setenv("H264LITE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["report", "a.264", "-o", str(files[0].parent / "o.html")])


@pytest.mark.parametrize("command", ["encode", "decode", "info", "report"])
@pytest.mark.parametrize(("name", "words"), [
    ("init.mp4", "no frames"), ("sound.mp4", "holds no video"), ("656e.mp4", "encrypted"), ("6d70.mp4", "mp4v, not H.264"),
])  # fmt: skip
def test_movies_without_video_for_us(files, command, name, words, capfd):
    """What is wrong is said, not what no conversion mends."""
    if command == "encode" and (pytest.importorskip("av") is None or name not in ("init.mp4", "sound.mp4")):
        pytest.skip("FFmpeg decides about other codecs")
    path = next(path for path in files if path.name == name)
    out = {"encode": ["o.264"], "decode": ["o.yuv"], "info": [], "report": ["-o", "o.html"]}[command]
    out = [word if word == "-o" else str(path.parent / word) for word in out]
    assert main([command, str(path), *out]) == 1
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1 and f"error: {path}: " in said[0] and words in said[0] and "ffmpeg" not in said[0]


@pytest.mark.parametrize("size", ["48x32", "8x8", "16x18"])
def test_a_source_of_another_size_is_refused(files, size, capfd):
    """A smaller one would give figures that mean nothing, a larger one a traceback."""
    source = files[0].parent / f"y_{size}.yuv"
    source.write_bytes(bytes(5000))
    words = ["report", str(files[0].parent / "good"), "--source", str(source), "-o", str(files[0].parent / "o.html")]
    assert main(words) == 2
    assert capfd.readouterr().err.startswith(f"h264lite report: error: --source is {size}, and the stream 16x16")


# Side data --------------------------------------------------------------------------------------------------------------


def test_side_data_that_pyav_does_not_know(tmp_path, capfd):
    """EXIF in a JPEG, of type 31: the video needs none of it."""
    av = pytest.importorskip("av")
    coder = av.CodecContext.create("mjpeg", "w")
    coder.width, coder.height, coder.pix_fmt, coder.time_base = 32, 16, "yuvj420p", Fraction(1, 25)
    jpeg = b"".join(bytes(p) for p in [*coder.encode(av.VideoFrame(32, 16, "yuvj420p")), *coder.encode(None)])
    tiff = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x01\0\0\0\0\0\0\0"
    exif = b"\xff\xe1" + (8 + len(tiff)).to_bytes(2, "big") + b"Exif\0\0" + tiff
    (tmp_path / "x.mjpeg").write_bytes((jpeg[:2] + exif + jpeg[2:]) * 3)
    with av.open(str(tmp_path / "x.mjpeg")) as file, pytest.raises(ValueError):  # else the test shows nothing
        next(file.decode(video=0)).side_data.get("DISPLAYMATRIX")
    assert main(["encode", str(tmp_path / "x.mjpeg"), str(tmp_path / "o.264"), *FAST]) == 0, capfd.readouterr().err


class Frame:
    """A decoded frame whose side data PyAV cannot name."""

    def __init__(self, rotation: int) -> None:
        self.rotation = rotation  # counterclockwise, as PyAV has it

    @property
    def side_data(self) -> object:
        raise ValueError("29 is not a valid Type")


@pytest.mark.parametrize(("rotation", "first"), [(0, None), (-90, (0, 65536, 0, -65536, 0)), (90, (0, -65536, 0, 65536, 0)),
                                                 (180, (-65536, 0, 0, 0, -65536))])  # fmt: skip
def test_rotation_stays_beside_unknown_side_data(rotation, first):
    from h264lite.encoder.files.video_av import _matrix

    matrix = _matrix(Frame(rotation))
    assert (matrix and matrix[:5]) == first
