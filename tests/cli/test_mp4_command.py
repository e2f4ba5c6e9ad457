"""MP4 by the commands: encode, decode and info without PyAV, on files and pipes, whole and cut off."""

import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from h264lite.cli.cli import main

from ..support import round_trip
from ..support.waiting import wait_for_bytes
from .test_cli import one_error

WIDTH, HEIGHT, FRAMES = 64, 48, 20
OPTIONS = ["--fps", "30000/1001", "--keyint", "5", "--quiet"]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("clip") / f"clip_{WIDTH}x{HEIGHT}.yuv"
    frames = round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 3)
    path.write_bytes(b"".join(plane.tobytes() for planes in frames for plane in planes))
    return path


@pytest.fixture(scope="module")
def reconstruction(clip):
    out = clip.parent / "rec.yuv"
    assert main(["encode", str(clip), str(clip.parent / "o.264"), "--dump-yuv", str(out), *OPTIONS]) == 0
    return out.read_bytes()


@pytest.mark.parametrize("words", ([], ["--fragment", "0.3"]))
def test_decode_and_info_read_what_encode_writes_without_pyav(clip, reconstruction, tmp_path, capsys, monkeypatch, words):
    monkeypatch.setitem(sys.modules, "av", None)  # its import fails
    movie, out = tmp_path / "o.mp4", tmp_path / "o.yuv"
    assert main(["encode", str(clip), str(movie), *OPTIONS, *words]) == 0
    assert main(["decode", str(movie), str(out), "--quiet"]) == 0
    assert out.read_bytes() == reconstruction
    capsys.readouterr()
    assert main(["info", str(movie)]) == 0
    said = capsys.readouterr().out
    assert "avc1 track of 20 frames, 0.667 s, 29.970 frames/s" in said and "IDR      4 pictures" in said
    assert ("2 fragments" if words else "moov in front") in said
    assert main(["decode", str(movie), str(tmp_path / "o.y4m"), "--quiet", "--frames", "3"]) == 0
    assert (tmp_path / "o.y4m").read_bytes().startswith(b"YUV4MPEG2 W64 H48 F30000:1001 ")


@pytest.mark.parametrize("words", ("--muxer mp4", pytest.param("--fragment 0.3", marks=pytest.mark.slow)))
def test_through_pipes(clip, reconstruction, words):
    command = f"{sys.executable} -m h264lite"
    line = f"{command} encode {clip} - {words} {' '.join(OPTIONS)} | {command} decode - - --quiet"
    done = subprocess.run(["sh", "-c", line], capture_output=True, timeout=300)
    assert done.stdout == reconstruction and done.returncode == 0 and not done.stderr


def test_a_pipe_that_waits_is_told(clip, capfdbinary):
    for words, told in ((["--muxer", "mp4"], True), (["--fragment", "1"], False)):
        assert main(["encode", str(clip), "-", "--frames", "2", *words]) == 0
        captured = capfdbinary.readouterr()
        assert captured.out[4:8] == b"ftyp" and (b"temporary file" in captured.err) == told


def test_fragments_are_as_short_as_asked(clip, tmp_path, capfd):
    """keyint follows --fragment, unless it is said."""
    for words, expected in (([], "2 fragments"), (["--keyint", "20"], "1 fragment,")):
        assert main(["encode", str(clip), str(tmp_path / "o.mp4"), "--fps", "10", "--fragment", "1", *words]) == 0
        assert main(["info", str(tmp_path / "o.mp4")]) == 0
        assert expected in capfd.readouterr().out


def test_usage(clip, tmp_path, capfd):
    for words in (["o.264", "--fragment", "1"], ["o.mkv", "--fragment", "1"], ["o.mp4", "--muxer", "raw", "--fragment", "1"],
                  ["o.mp4", "--fragment", "0"], ["o.mp4", "--muxer", "avi"]):
        assert main(["encode", str(clip), str(tmp_path / words[0]), *words[1:]]) == 2
        one_error(capfd.readouterr().err, words[-2])
    assert not list(tmp_path.iterdir())


def test_an_mp4_that_is_cut_off(clip, tmp_path, capfd):
    movie, out = tmp_path / "o.mp4", tmp_path / "o.yuv"
    # without B frames the last sample is the last frame
    assert main(["encode", str(clip), str(movie), *OPTIONS, "--bframes", "0", "--dump-yuv", str(tmp_path / "whole.yuv")]) == 0
    data, reconstruction = movie.read_bytes(), (tmp_path / "whole.yuv").read_bytes()
    movie.write_bytes(data[:-100])
    assert main(["decode", str(movie), str(out)]) == 1
    one_error(capfd.readouterr().err, "o.mp4: sample 19", "is not in the file")
    assert out.read_bytes() == reconstruction[: len(out.read_bytes())] and out.stat().st_size >= 18 * WIDTH * HEIGHT * 3 // 2
    movie.write_bytes(data[:500])
    assert main(["info", str(movie)]) == 1
    one_error(capfd.readouterr().err, "o.mp4: ")


# Cut short -----------------------------------------------------------------------------------------------------------


def frames_of(movie, tmp_path):
    """The number of frames that decode, which must be all that the file has."""
    assert main(["decode", str(movie), str(tmp_path / "d.yuv"), "--quiet"]) == 0
    return (tmp_path / "d.yuv").stat().st_size // (WIDTH * HEIGHT * 3 // 2)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL])
@pytest.mark.parametrize("words", ([], pytest.param(["--fragment", "0.2"], marks=pytest.mark.slow)))
def test_an_interrupted_encode_decodes(tmp_path, number, words):
    rng = np.random.default_rng(4)
    source, out, rec = tmp_path / f"x_{WIDTH}x{HEIGHT}.yuv", tmp_path / "o.mp4", tmp_path / "r.yuv"
    source.write_bytes(rng.integers(0, 256, WIDTH * HEIGHT * 3 // 2 * 4000, np.uint8).tobytes())
    command = [sys.executable, "-m", "h264lite", "encode", str(source), str(out), "--dump-yuv", str(rec), "--qp", "40",
               "--bframes", "0"]  # a killed process leaves P frames behind whose B frames are missing
    process = subprocess.Popen([*command, *words], stderr=subprocess.PIPE)
    wait_for_bytes(out, 50_000, process)
    process.send_signal(number)
    said = process.stderr.read().decode()
    held = frames_of(out, tmp_path)
    assert (tmp_path / "d.yuv").read_bytes() == rec.read_bytes()[: held * WIDTH * HEIGHT * 3 // 2] and held
    if number == signal.SIGKILL:
        assert process.wait(30) == -number and b"moof" in out.read_bytes()
    else:
        assert process.wait(30) == 130 and int(re.search(r"the output holds (\d+) frames", said)[1]) == held
        assert (b"moof" in out.read_bytes()) == bool(words)


@pytest.mark.parametrize(("limit", "held"), [pytest.param(15000, 10, marks=pytest.mark.slow), (3000, 0)])
def test_a_full_disk_leaves_whole_seconds(clip, tmp_path, limit, held):
    resource = pytest.importorskip("resource")
    out = tmp_path / "o.mp4"
    command = [sys.executable, "-m", "h264lite", "encode", str(clip), str(out), "--fps", "5", "--keyint", "5", "--qp", "26",
               "--bframes", "0"]
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 1 and f"file too large; the output holds {held} frames" in done.stderr.decode()
    assert frames_of(out, tmp_path) == held if held else not out.exists()
