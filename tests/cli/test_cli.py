"""The command line: every error in one line with its exit code, reports, pipes, no files left.

The pipeline is the fake one, so that nothing is compiled; tests/cli/test_command.py runs the real one.
"""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from h264lite.cli import cli
from h264lite.cli.progress import Progress
from h264lite.encoder.files.video import frame_bytes
from h264lite.encoder.settings.options import API, OPTIONS
from h264lite.encoder.settings.x264_options import UNBUILT

from ..inside import say_no_gpu
from ..support import fake_pipeline
from ..support.steady import steady_words

FAKE = Path(fake_pipeline.__file__)
FRAME = re.compile(rb"frame (\d{6}):.{4,5}\n", re.S)


@pytest.fixture
def fake(monkeypatch):
    """Within this process: cli.main with the fake pipeline."""
    fake_pipeline.take_place(monkeypatch)
    monkeypatch.setattr("h264lite.cli.encode.will_compile", lambda *_: False)
    return lambda *words: cli.main(["encode", *steady_words(words)])


@pytest.fixture
def no_gpu(monkeypatch):
    """As on a machine without PyCUDA."""
    say_no_gpu(monkeypatch.setattr, "PyCUDA is not usable: pip install pycuda")


def run(*words, **keywords):
    """In a process of its own; returns (exit code, stdout, stderr)."""
    done = subprocess.run([sys.executable, str(FAKE), *map(str, words)], capture_output=True, timeout=60, **keywords)
    return done.returncode, done.stdout, done.stderr.decode()


def make_clip(folder, frames=5, width=18, height=16, extra=b"", name="clip"):
    path = folder / f"{name}_{width}x{height}.yuv"
    data = np.random.default_rng(1).integers(0, 256, frames * frame_bytes(width, height), np.uint8)
    path.write_bytes(data.tobytes() + extra)
    return path


@pytest.fixture
def clip(tmp_path):
    return make_clip(tmp_path)


def one_error(text, *words):
    """The only error line of stderr, which has all `words` and no traceback."""
    lines = [line for line in text.splitlines() if "error" in line]
    assert len(lines) == 1 and "Traceback" not in text, text
    for word in words:
        assert word in lines[0], lines[0]


def test_an_encode_from_start_to_end(fake, clip, tmp_path, capfd):
    out = tmp_path / "out.264"
    assert fake(clip, out, "--keyint", 3, "--fps", "30000/1001", "--ssim") == 0
    assert [int(n) for n in FRAME.findall(out.read_bytes())] == list(range(5))
    said = capfd.readouterr()
    assert not said.out
    start, *rest = said.err.splitlines()
    assert start.startswith("h264lite [info]: 18x16, raw, 30000/1001 fps; device cpu: ")
    assert "profile High, level 1.0" in start
    text = "\n".join(rest)
    assert re.search(r"frame I:2 +Avg QP:23\.00 +size: +19 +PSNR Mean Y:\d+\.\d+ U:\S+ V:\S+ Avg:\S+ Global:\S+", text)
    assert re.search(r"frame P:3 +Avg QP:26\.00 +size: +19 ", text)
    assert "mb I  I16..4:  0.0% 100.0%" in text
    assert "mb P  I16..4:  0.0%  0.0%  P16..8: 100.0%  0.0%  0.0%  skip: 0.0%" in text
    assert "SSIM Mean Y:1.0000000" in text and "8x8 windows" in text
    assert re.search(r"PSNR Mean Y:\S+ U:\S+ V:\S+ Avg:\S+ Global:\S+ kb/s:4\.56", text)
    assert re.search(r"^encoded 5 frames, \d+\.\d+ fps, 4\.56 kb/s$", text, re.M)


def test_quiet_says_nothing_and_progress_none_only_the_summary(fake, clip, tmp_path, capfd):
    assert fake(clip, tmp_path / "a.264", "--quiet") == 0
    assert capfd.readouterr() == ("", "")
    assert fake(clip, tmp_path / "a.264", "--progress", "none", "--no-psnr") == 0
    said = capfd.readouterr().err
    assert "encoded 5 frames" in said and "PSNR" not in said and "eta" not in said


def test_odd_sizes_say_how_they_are_coded(fake, tmp_path, capfd):
    path, out, rec = make_clip(tmp_path, 2, 17, 33), tmp_path / "o.264", tmp_path / "rec.yuv"
    assert fake(path, out, "--dump-yuv", rec) == 0
    assert "17x33, coded as 18x34" in capfd.readouterr().err
    assert rec.stat().st_size == 2 * frame_bytes(18, 34)


@pytest.mark.parametrize(("name", "words", "fps", "line"), [
    ("x_18x16_30.yuv", "", "30", "30 fps by the file's name; --fps overrides it"),
    ("x_18x16_30000_1001.yuv", "", "30000/1001", "30000/1001 fps by the file's name"),
    ("x_18x16.yuv", "", "25", "25 fps are assumed: raw video has no frame rate; see --fps"),
    ("x_18x16_30.yuv", "--fps 50", "50", "--fps 50 overrides 30 of the name"), ("x_18x16_30.yuv", "--fps 30", "30", None),
    ("x.y4m", "--fps 50", "50", "--fps 50 overrides 24 of the input"), ("x.y4m", "", "24", None),
    ("x_352x288.yuv", "--input-res 18x16 --fps 5", "5", "--input-res 18x16 overrides 352x288 of the file's name"),
])
def test_rates_and_sizes_of_names(fake, clip, tmp_path, capfd, name, words, fps, line):
    data = clip.read_bytes()
    (tmp_path / name).write_bytes(data if name.endswith("yuv") else b"YUV4MPEG2 W18 H16 F24:1\nFRAME\n" + data[:432])
    assert fake(tmp_path / name, tmp_path / "o.264", *words.split(), "--progress", "none") == 0
    start, second, *_ = capfd.readouterr().err.splitlines()
    assert f", {fps} fps; " in start
    assert (line is None) == second.startswith("h264lite [info]: frame ") and (line or "") in second


def test_reports(fake, clip, tmp_path):
    rows, summary, rec = tmp_path / "r.csv", tmp_path / "s.json", tmp_path / "rec.yuv"
    words = ("--csv", rows, "--json", summary, "--dump-yuv", rec, "--quiet", "--keyint", 2)
    assert fake(clip, tmp_path / "a.264", *words) == 0
    table = list(csv.DictReader(rows.open()))
    assert [row["type"] for row in table] == ["I", "P", "I", "P", "I"]
    assert [int(row["frame"]) for row in table] == list(range(5))
    assert {int(row["bytes"]) for row in table} == {19} and table[0]["I_4x4"] == "2" and not table[0]["ssim"]
    told = json.loads(summary.read_text())
    assert told["frames"] == told["all"]["frames"] == 5 and told["I"]["frames"] == 3 and told["bytes"] == 95
    assert told["kbps"] == pytest.approx(95 * 8 * 25 / 5 / 1000)
    assert told["P"]["macroblocks"]["P_16x16"] == 4
    assert rec.read_bytes() == clip.read_bytes()


def keys(value):
    """All names in a JSON value, but for those of stages, which are named elsewhere."""
    if isinstance(value, dict):
        return {name for one, part in value.items() for name in {one, *(keys(part) if one != "stage_seconds" else ())}}
    return {name for part in value for name in keys(part)} if isinstance(value, list) else set()


def test_every_key_is_documented_and_fps_is_the_rate_of_the_video(fake, clip, tmp_path, capfd):
    rows, summary = tmp_path / "r.csv", tmp_path / "s.json"
    words = ("--csv", rows, "--json", summary, "--ssim", "--fps", "30000/1001", "--progress", "json")
    assert fake(clip, tmp_path / "a.264", *words) == 0
    events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    progress = Progress("json", 5, 25)._values(1, 1)
    written = json.loads(summary.read_text())
    page = set(re.findall(r"`(\w+)`", (Path(__file__).parents[2] / "docs" / "json.md").read_text()))
    assert keys(events) | keys(progress) | keys(written) | {*rows.read_text().splitlines()[0].split(",")} <= page
    assert written["fps"] == events[0]["fps"] == events[-1]["fps"] == "30000/1001"
    assert written["encode_fps"] == events[-1]["encode_fps"] > 0 and "fps" not in progress and "encode_fps" in progress


def test_progress_for_programs(clip, tmp_path):
    slow = {**os.environ, "FAKE_DELAY": "0.15"}
    code, _, said = run("encode", clip, tmp_path / "a.264", "--progress", "json", env=slow)
    events = [json.loads(line) for line in said.splitlines()]
    assert code == 0 and events[0]["event"] == "start" and events[-1]["event"] == "end"
    assert events[-1]["frames"] == 5 and any(e["event"] == "progress" and e["total"] == 5 for e in events)


def test_frames_and_seek(fake, clip, tmp_path):
    out = tmp_path / "a.264"
    for words, count, first in (((), 5, 0), (("--frames", 2), 2, 0), (("--seek", 3), 2, 3),
                                (("--seek=1", "--frames=9"), 4, 1)):
        assert fake(clip, out, "--quiet", *words) == 0
        data = out.read_bytes()
        assert len(FRAME.findall(data)) == count
        start = first * frame_bytes(18, 16)
        assert data[13:18] == clip.read_bytes()[start : start + 5]


def test_pipes_both_ways(clip):
    data = clip.read_bytes()
    for words in (("--seek", 2), ("--frames", 3)):
        code, out, said = run("encode", "-", "-", "--input-res", "18x16", *words, input=data)
        assert code == 0 and len(FRAME.findall(out)) == 3 and "encoded 3 frames" in said
    y4m = b"YUV4MPEG2 W18 H16 F50:1\n" + b"".join(b"FRAME\n" + data[n : n + 432] for n in range(0, len(data), 432))
    code, out, said = run("encode", "-", "-", input=y4m)
    assert code == 0 and len(FRAME.findall(out)) == 5 and "50 fps" in said


def test_input_says_rate_range_and_aspect_and_options_win(fake, clip, tmp_path, capfd, monkeypatch):
    path = tmp_path / "x.y4m"
    path.write_bytes(b"YUV4MPEG2 W18 H16 F24:1 A4:3 XCOLORRANGE=FULL\nFRAME\n" + bytes(432))
    seen = []
    monkeypatch.setattr(fake_pipeline.Pipeline, "close", lambda self: seen.append(self.config))
    assert fake(path, tmp_path / "a.264") == 0
    assert fake(path, tmp_path / "a.264", "--fps", 30, "--sar", "1:1", "--range", "tv") == 0
    assert [(c.video.fps, c.video.sar, c.video.range) for c in seen] == [(24, (4, 3), 1), (30, (1, 1), 0)]


USAGE = [
    ((), "command"), (("encode",), "required"), (("encode", "{clip}"), "required"),
    (("encode", "{clip}", "o", "x"), "{clip}: with several inputs all are images (.png, "),
    (("frobnicate",), "frobnicate"), (("tune", "--seconds", "1"), "--seconds 1: not in 5..3600"),
    (("bench", "--devices", "gpu"), "--devices gpu: not one of cpu, cuda, hybrid"), (("doctor", "--x"), "--x"),
    (("bench", "--sizes", "wide"), "--sizes wide"), (("bench", "--rounds", "0"), "--rounds 0: not in 1..1024"),
    (("tune", "--seconds", "3601"), "--seconds 3601: not in 5..3600"),
    (("tune", "--seconds", "abc"), "h264lite tune: error: --seconds abc: not a number (see h264lite tune --help)"),
    (("tune", "--input-res", "5x5"), "--input-res has no effect without --clip"),
    (("bench", "--foo"), "h264lite bench: error: unrecognized arguments: --foo (see h264lite bench --help)"),
    (("decode", "{clip}", "o", "--frames", "x"), "--frames: x: not a whole number, 1 or more"),
    (("decode", "{clip}", "o", "--frames", "0"), "--frames: 0: not a whole number, 1 or more"),
    (("bench", "--rounds", "x"), "--rounds x: not a whole number"),
    (("bench", "--seconds", "0"), "--seconds 0: not in 0.1..3600"),
    (("bench", "--threads", "300"), "--threads 300: not in 0..256"),
    (("bench", "--sizes", "64x48,"), "--sizes 64x48,: not a size"), (("bench", "--sizes", ""), "--sizes '': not a size"),
    (("bench", "--sizes", "64x48,99999x99999"), "size 99999x99999: beyond level 6.2"),
    (("bench", "--devices", ""), "--devices '': not one of"),
    (("bench", "--devices", "hybrid,cpu,hybrid"), "--devices hybrid,cpu,hybrid: a device is named twice"),
    (("bench", "--input-res", "5x5"), "--input-res has no effect without --clip"),
    (("bench", "--devices", "cpu", "--clip", "{y4m}", "--input-res", "32x32"), "--input-res 32x32 contradicts the input"),
    (("bench", "--clip", "{clip}", "--json", "{clip}"), "json and clip are the same: {clip}"),
    (("bench", "--json", ""), "--json '': not a file name"),
    (("encode", "{clip}", "o", "--tuning", "nowhere.toml"), "--tuning nowhere.toml: No such file"),
    (("encode", "{clip}", "o", "--tuning", "{clip}"), "--tuning {clip}: damaged"),
    (("encode", "{clip}", "o", "--trace-png", "o"), "trace-png and output are the same"),
    (("encode", "{clip}", "o", "--qp", "52"), "--qp 52: not in 0..51"),
    (("encode", "{clip}", "o", "--qp"), "--qp"), (("encode", "{clip}", "o", "-q"), "--qp"),
    (("encode", "{clip}", "o", "--mernge", "9"), "'--merange'"), (("encode", "{clip}", "o", "-z"), "-z"),
    (("encode", "{clip}", "o", "--crf", "23", "--qp", "23"), "--crf contradicts --qp"),
    (("encode", "{clip}", "o", "-B1000", "--qp", "20"), "--bitrate contradicts --qp"),
    (("encode", "{clip}", "o", "--cabac", "--profile", "baseline"), "--cabac is not available"),
    (("encode", "{clip}", "o", "--me", "tesa"), "--me tesa is not available: choose dia, hex, umh, fsbm (esa)"),
    (("encode", "-o", "o", "--qblur", "2", "{clip}", "-b3", "--weightp=2", "-8", "--qq", "5", "--b-adapt", "2",
      "--profile=main"),
     "not available: --qblur (rate control has no such setting; --lenient leaves it out); --8x8dct (the 8x8 transform is a "
     "tool of High profile, see --profile and --no-8x8dct; --lenient leaves it out); unknown option '--qq' (see"),
    (("encode", "{clip}", "o", "--open-gop"), "--open-gop is not available: GOPs are closed; --lenient leaves it out (see"),
    (("encode", "{clip}", "o", "--subme", "12"), "--subme 12: not in 0..10 (--lenient takes 10) (see"),
    (("encode", "-o", "o"), "--output o: IN is missing"), (("encode", "{clip}", "-o"), "--output needs a value"),
    (("encode", "-o", "o", "--batch", "l"), "takes the place of IN and OUT, and there is o"),
    (("encode", "{clip}", "o", "--log-level"), "--log-level needs a value"),
    (("encode", "{clip}", "-o", "out"), "out: no ending, so no output format"),
    (("encode", "{clip}", "o", "--annexb"), "--annexb is not available: the ending of the output's name decides"),
    (("encode", "{clip}", "o", "--angle"), "error: unknown option '--angle' (see"),
    (("encode", "{clip}", "o", "--deblock", "-7:1"), "--deblock -7:1: not in -6..6"),
    (("encode", "{clip}", "o", "--no-deblock", "--deblock", "1:1"), "contradicts"),
    (("encode", "{clip}", "o", "--slices", "2"), "--slices 2: not in 1..1"),
    (("encode", "{clip}", "o", "--input-res", "0x16"), "--input-res 0x16"),
    (("encode", "{clip}", "o", "--input-res", "big"), "--input-res big"),
    (("encode", "{clip}", "o", "--input-res", "99999x99999"), "size 99999x99999: beyond level 6.2"),
    (("encode", "{clip}", "o", "--preset", "slowest"), "ultrafast"),
    (("encode", "{clip}", "o", "--fps", "0"), "--fps 0"), (("encode", "{clip}", "o", "--device", "1:2:3"), "--device 1:2:3"),
    (("encode", "{clip}", "o", "--fps", "1e999"), "--fps 1e999: not a frame rate"),
    (("encode", "{clip}", "o", "--seek", "9" * 99), "..: not in 0..2147483647"),
    (("decode", "{clip}", "o", "--frames", "9" * 9999), "not a whole number, 1 or more"),
    (("encode", "{clip}", "o", "--tuning", "/dev/zero"), "--tuning /dev/zero: not a regular file"),
    (("encode", "{clip}", "o.avi"), ".avi is no output format"), (("encode", "{nosize}", "o"), "--input-res"),
    (("encode", "{clip}", "{clip}"), "output and input are the same"),
    (("encode", "{clip}", "{link}"), "output and input are the same"),
    (("encode", "{clip}", "o", "--dump-yuv", "o"), "dump-yuv and output are the same"),
    (("encode", "{clip}", "-", "--csv", "-"), "csv and output are the same: standard output"),
    (("encode", "{clip}", "o", "--json", "{clip}"), "json and input are the same"),
    (("encode", "{clip}", "o", "--threads", "many"), "--threads many: not a whole number"),
    (("encode", "{y4m}", "o", "--input-res", "32x32"), "--input-res 32x32 contradicts the input, which is 18x16"),
]


@pytest.mark.parametrize(("words", "expected"), USAGE, ids=lambda v: " ".join(v) if isinstance(v, tuple) else None)
def test_wrong_usage(monkeypatch, clip, tmp_path, capfd, words, expected):
    fake_pipeline.take_place(monkeypatch)
    before = clip.read_bytes()
    names = {"clip": clip, "nosize": tmp_path / "raw.yuv", "link": tmp_path / "link.yuv", "y4m": tmp_path / "x.y4m"}
    names["nosize"].write_bytes(before)
    names["link"].symlink_to(clip)
    names["y4m"].write_bytes(b"YUV4MPEG2 W18 H16\nFRAME\n" + bytes(432))
    monkeypatch.chdir(tmp_path)
    assert cli.main([word.format(**names) for word in words]) == 2
    said = capfd.readouterr()
    one_error(said.err, expected.format(**names), "--help")
    assert not said.out and len(said.err.splitlines()) == 1
    assert clip.read_bytes() == before
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("o")], "something was written"


@pytest.mark.parametrize(("device", "words"), [("cuda", "pip install pycuda"), ("hybrid", "pip install pycuda")])
def test_an_absent_device_is_exit_code_3(fake, clip, tmp_path, capfd, device, words, no_gpu):
    assert fake(clip, tmp_path / "o.264", "--device", device) == 3
    one_error(capfd.readouterr().err, f"device {device}", words)
    assert not (tmp_path / "o.264").exists()


def test_bad_inputs(fake, tmp_path, capfd):
    def file(name, data):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    unreadable = file("locked_2x2.yuv", bytes(6))
    unreadable.chmod(0)
    cases = [
        (tmp_path / "absent_2x2.yuv", "no such file"), (tmp_path, "is a directory"), (file("e_2x2.yuv", b""), "empty"),
        (file("w.y4m", b"RIFF"), "not a Y4M file"), (file("c.y4m", b"YUV4MPEG2 W2 H2 C422\n"), "C422 is not supported"),
        (file("h.y4m", b"YUV4MPEG2 W2 H2\n"), "no frames"),
        (file("big.y4m", b"YUV4MPEG2 W999999 H9\n"), "beyond level 6.2"),
        (file("short_2x2.yuv", b"12345"), "5 bytes left over"), ("/dev/null", "empty"),
        (file("d.y4m", b"YUV4MPEG2 W2 H2\nFRAME\n123456XXXXX\n123456"), "frame 1 has no FRAME header"),
    ]
    if os.geteuid():
        cases.append((unreadable, "permission denied"))
    for source, expected in cases:
        out = tmp_path / "out.264"
        code = fake(source, out)
        said = capfd.readouterr().err
        assert code == 1, source
        one_error(said, expected, str(source))
        kept = "frame 1" in expected
        assert out.exists() == kept
        if kept:
            assert len(FRAME.findall(out.read_bytes())) == 1 and "holds 1 frame" in said
            out.unlink()


def test_a_cut_off_last_frame(fake, tmp_path, capfd):
    path, out = make_clip(tmp_path, 3, extra=b"12345"), tmp_path / "out.264"
    assert fake(path, out) == 1
    one_error(capfd.readouterr().err, "5 bytes left over", "3 frames encoded")
    assert len(FRAME.findall(out.read_bytes())) == 3
    assert fake(path, out, "--frames", 3) == 0


def test_seek_beyond_the_end(fake, clip, tmp_path, capfd):
    assert fake(clip, tmp_path / "o.264", "--seek", 5) == 1
    one_error(capfd.readouterr().err, "--seek 5", "has 5")
    assert not (tmp_path / "o.264").exists()


def test_bad_outputs(fake, clip, tmp_path, capfd):
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    cases = [(tmp_path, "is a directory"), (tmp_path / "no" / "where.264", "there is no folder"),
             ("/dev/full", "no space left")]
    if os.geteuid():
        cases.append((locked / "o.264", "permission denied"))
    for out, expected in cases:
        assert fake(clip, out) == 1
        one_error(capfd.readouterr().err, str(out), expected)
    for option in ("--dump-yuv", "--csv", "--json"):
        out = tmp_path / "out.264"
        assert fake(clip, out, option, "/dev/full") == 1
        one_error(capfd.readouterr().err, "/dev/full", "no space left")
        out.unlink(missing_ok=True)


def test_a_failed_start_leaves_files_as_they_were(fake, clip, tmp_path, capfd):
    precious, empty = tmp_path / "precious.264", tmp_path / "e_2x2.yuv"
    precious.write_bytes(b"do not touch")
    empty.write_bytes(b"123")
    assert fake(empty, precious) == 1
    assert precious.read_bytes() == b"do not touch"
    assert fake(clip, precious, "--quiet") == 0
    assert len(precious.read_bytes()) == 95


def test_a_full_disk_leaves_whole_access_units(tmp_path):
    resource = pytest.importorskip("resource")
    path, out = make_clip(tmp_path, 50), tmp_path / "out.264"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    code, _, said = run("encode", path, out, preexec_fn=limit)
    assert code == 1
    one_error(said, "file too large", "holds 5 frames")
    assert out.stat().st_size == 95 and len(FRAME.findall(out.read_bytes())) == 5


def test_a_closed_pipe(tmp_path):
    path = make_clip(tmp_path, 5000, 2, 2)
    process = subprocess.Popen([sys.executable, str(FAKE), "encode", str(path), "-"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdout.read(1)
    process.stdout.close()
    said = process.stderr.read().decode()
    assert process.wait(30) == 1
    one_error(said, "standard output: closed by its reader")


@pytest.mark.parametrize("unbuffered", ("", "1"))
@pytest.mark.parametrize("words, code", (([], 0), (["--qp", "99"], 2), (["--seek", "5"], 1)))
def test_nobody_reads_the_log(clip, tmp_path, words, code, unbuffered):
    """A pipe that was closed at its other end, and no standard error at all."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, str(FAKE), "encode", str(clip), str(tmp_path / "o.264"), *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    assert subprocess.run(command, stderr=write, timeout=60, env=environment).returncode == code
    os.close(write)
    assert code or len(FRAME.findall((tmp_path / "o.264").read_bytes())) == 5
    closed = shlex.join([*command[:4], "-", *words]) + " 2>&-"
    done = subprocess.run(["sh", "-c", closed], stdout=subprocess.PIPE, timeout=60, env=environment)
    assert done.returncode == code
    assert code or done.stdout == (tmp_path / "o.264").read_bytes()


def test_out_of_memory_is_one_line(fake, clip, tmp_path, capfd, monkeypatch):
    def encode(self, *_):
        raise MemoryError("no room for a frame")

    monkeypatch.setattr(fake_pipeline.Pipeline, "encode", encode)
    assert fake(clip, tmp_path / "o.264") == 1
    one_error(capfd.readouterr().err, "no room for a frame")
    assert not (tmp_path / "o.264").exists()


def test_values_may_begin_with_a_dash_and_stand_in_any_form():
    def joined(text):
        return cli.join_values(text.split())

    assert joined("a b --deblock -1:1 -q 25 -q26 --qp=27 -f -2:-2") == ["--deblock=-2:-2", "--qp=27", "a", "b"]
    assert joined("-q27 a b") == joined("a -q 27 b") == joined("a b --qp=27") == ["--qp=27", "a", "b"]
    assert joined("- - --psnr --no-psnr --quiet --help -h") == "--psnr --no-psnr --quiet --help -h - -".split()
    assert joined("--dump-yuv -") == ["--dump-yuv=-"]


def test_neutral_settings_of_x264_are_accepted(fake, clip, tmp_path):
    """As typed, with their values in any form; they change nothing."""
    plain, out = tmp_path / "plain.264", tmp_path / "out.264"
    baseline = ("--quiet", "--profile", "baseline")
    assert fake(clip, plain, *baseline) == 0
    for words in ("--bframes 0 --no-cabac --weightp 0 --no-scenecut --no-8x8dct --aq-mode 0",
                  "--no-mbtree --no-psy --no-mixed-refs --no-weightb --b-pyramid none --rc-lookahead 0",
                  "-b 0 -b0 --psy-rd=0:0 --min-keyint 25 -i25 --no-chroma-me --tune psnr --nal-hrd none --threads auto"):
        assert fake(*words.split(), clip, out, *baseline) == 0, words
        assert out.read_bytes() == plain.read_bytes()
        out.unlink()


def test_help_lists_every_option_and_starts_at_once():
    begin = time.monotonic()
    code, out, said = run("encode", "--help")
    seconds = time.monotonic() - begin
    out = out.decode()
    assert code == 0 and not said
    for row in OPTIONS:
        assert (row.flag + " " in out or row.flag + "\n" in out) == (row.scope != API), row.name
    assert not any(f"--{name.replace('_', '-')} " in out for name in UNBUILT)
    assert seconds < 5, "far more than the half second it may take on an idle machine"


def test_the_command_line_imports_no_compiler():
    code = "import sys; from h264lite.cli.cli import main; main(['encode', '--help']); " \
           "sys.exit(any(name in sys.modules for name in ('numba', 'numpy', 'av', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


def test_help_waits_for_no_compiler():
    code = "import sys\nfrom h264lite.cli import cli\n" \
           "try: cli.main(['--help'])\n" \
           "finally: print({'numba', 'numpy', 'inspect', 'ctypes'} & {*sys.modules}, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == "set()\n"


@pytest.mark.parametrize(("header", "says"), (
    ("F1000000:1", "Y4M frame rate 1000000:1: not in 1/100..10000"), ("F1:200", "Y4M frame rate 1:200: not in"),
    ("F25:1 A70000:1", "Y4M sample aspect ratio 70000:1: not in 1..65535"),
))  # fmt: skip
def test_what_is_wrong_with_the_rate_of_an_input_is_said_of_the_input(tmp_path, capfd, header, says):
    """Not of an option that nobody gave, nor as a value of Python."""
    path = tmp_path / "x.y4m"
    path.write_bytes(f"YUV4MPEG2 W16 H16 {header}\nFRAME\n".encode() + bytes(384))
    assert cli.main(["encode", str(path), str(tmp_path / "o.264")]) == 1
    said = capfd.readouterr().err
    assert f"x.y4m: {says}" in said and "Fraction" not in said and "fps" not in said, said
    assert cli.main(["encode", str(path), str(tmp_path / "o.264"), "--fps", "1e9", "--sar", "1:1"]) == 2
    assert "--fps 1e9: not in" in capfd.readouterr().err


def test_version():
    code, out, _ = run("--version")
    assert code == 0 and re.match(r"h264lite \d", out.decode())
