"""`h264lite encode --batch`: each video as by a command of its own, errors by video, signals, processes that die."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from h264lite.cli import batch as batch_command
from h264lite.cli.batch import read_jobs
from h264lite.cli.cli import main
from h264lite.encoder.errors import InputError, OptionError

from ..support import fake_pipeline
from ..support.waiting import wait_for

OPTIONS = ("--device", "cpu", "--preset", "ultrafast")
FRAME = 384  # bytes of 16x16


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def raw(name, frames=3):
    data = np.random.default_rng(len(name)).integers(0, 256, FRAME * frames, np.uint8)
    Path(name).write_bytes(data.tobytes())
    return name


def batch(*lines, words=OPTIONS, program=(sys.executable, "-m", "h264lite"), **environment):
    Path("LIST").write_text("\n".join(lines))
    command = [*program, "encode", "--batch", "LIST", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})


def said(process):
    err = process.communicate(timeout=120)[1].splitlines()
    return process.returncode, err


def test_each_video_is_that_of_a_command(capfd):
    names = [raw("a_16x16.yuv"), raw("b b_16x16.yuv", 5), raw("c_16x16.yuv", 2)]
    outs = ["a.264", "b b.mp4", "c.264"]
    lines = (f"'{name}' '{out}'" for name, out in zip(names, outs))
    code, err = said(batch("# all", *lines, "", words=(*OPTIONS, "--no-psnr")))
    assert code == 0 and len(err) == 3 and all(any(line.endswith(f": {out}") for line in err) for out in outs)
    assert sorted(line.split(",")[0] for line in err) == [f"h264lite [info]: {k} of 3" for k in (1, 2, 3)]
    for name, out in zip(names, outs):
        one = f"one{Path(out).suffix}"
        assert main(["encode", name, one, *OPTIONS, "--quiet"]) == 0
        assert Path(out).read_bytes() == Path(one).read_bytes()


@pytest.mark.parametrize("workers", ("1", "3"))
def test_a_video_that_fails_ends_no_other(workers):
    raw("a_16x16.yuv"), raw("b_16x16.yuv"), Path("empty_16x16.yuv").write_bytes(b"")
    lines = ("none_16x16.yuv n.264", "a_16x16.yuv a.264", "empty_16x16.yuv e.264", "b_16x16.yuv b.264",
             "a_16x16.yuv no/x.264")  # fmt: skip
    code, err = said(batch(*lines, words=(*OPTIONS, "--quiet", "--workers", workers)))
    assert code == 1 and len(err) == 4 and err[-1] == "h264lite encode: error: finished 2 of 5 videos"
    assert all(sum(name in line for line in err) == 1 for name in ("none_16x16", "empty_16x16", "no/x.264"))
    assert sorted(path.name for path in Path().glob("*.264")) == ["a.264", "b.264"]


@pytest.mark.parametrize(("level", "count"), (("none", 0), ("error", 2), ("warning", 2), ("info", 3), ("debug", 3)))
def test_levels_of_messages(level, count):
    """The processes keep that of the batch."""
    raw("a_16x16.yuv")
    lines = ("none_16x16.yuv n.264", "a_16x16.yuv a.264")
    code, err = said(batch(*lines, words=(*OPTIONS, "--log-level", level)))
    assert code == 1 and len(err) == count and sorted(path.name for path in Path().glob("*.264")) == ["a.264"]


def test_the_list():
    Path("LIST").write_bytes(b"  a.y4m 'b\xc2\x85c.mp4' # one\r\n\n# a b c\n\"x\\\"y\" \xff.264")
    assert read_jobs("LIST") == [("a.y4m", "b\x85c.mp4"), ('x"y', os.fsdecode(b"\xff.264"))]
    for text, why in (("a", "line 1: not INPUT OUTPUT"), ("a b\na b c", "line 2: not"), ("- b.264", "line 1: not"),
                      ("a 'b", "line 1: no closing"), ("# a b", "no videos")):  # fmt: skip
        Path("LIST").write_text(text)
        with pytest.raises(InputError, match=why):
            read_jobs("LIST")
    for text in ("a.y4m x.mp4\nb.y4m ./x.mp4", "a.y4m x.y4m\nx.y4m b.mp4"):
        Path("LIST").write_text(text)
        with pytest.raises(OptionError, match="are the same"):
            read_jobs("LIST")


@pytest.mark.parametrize(("words", "why"), (
    (["--csv", "x"], "--csv with --batch"), (["--pass", "1"], "--pass with --batch"), (["--stats", "x"], "--stats with"),
    (["--qpfile", "x"], "--qpfile with"), (["--trace", "x"], "--trace with"), (["--crf", "99"], "--crf 99"),
    (["in", "out"], "takes the place of IN and OUT, and there is in"), (["--workers", "0"], "--workers 0"),
))  # fmt: skip
def test_what_is_refused(words, why, capfd):
    Path("LIST").write_text("a_16x16.yuv a.264")
    assert main(["encode", "--batch", "LIST", *words]) == 2
    assert why in capfd.readouterr().err


def test_options_of_the_list_need_it(capfd):
    assert main(["encode", "a_16x16.yuv", "a.264", "--workers", "2"]) == 2
    assert main(["encode", "--batch", "none"]) == 1
    assert main(["encode", "--batch"]) == 2
    err = capfd.readouterr().err
    assert "--workers is for --batch" in err and "none: no such file" in err and "--batch needs a value" in err


FAKE = (sys.executable, fake_pipeline.__file__)


def children(process):
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM))
def test_a_signal_finishes_the_files_that_are_begun(number):
    names = [raw(f"{k}_16x16.yuv", 2000) for k in range(4)]
    process = batch(*(f"{name} {name[0]}.264" for name in names), words=["--workers", "2"], program=FAKE, FAKE_DELAY="0.02")
    outs = [Path(f"{k}.264") for k in range(4)]
    wait_for(lambda: all(out.exists() and out.stat().st_size > 100 for out in outs[:2]))
    begin = time.monotonic()
    process.send_signal(number)
    code, err = said(process)
    assert code == 130 and time.monotonic() - begin < 10 and err[-1].endswith("interrupted; finished 0 of 4 videos")
    assert [out.exists() for out in outs] == [True, True, False, False]
    assert all(out.read_bytes().endswith(b"\n") for out in outs[:2])


def test_a_process_that_dies_is_told():
    names = [raw(f"{k}_16x16.yuv", 30 if k else 600) for k in range(3)]
    process = batch(*(f"{name} {name[0]}.264" for name in names), words=["--workers", "2"], program=FAKE, FAKE_DELAY="0.02")
    wait_for(lambda: Path("0.264").exists() and Path("0.264").stat().st_size > 100)
    os.kill(int(children(process)[0]), signal.SIGKILL)
    code, err = said(process)
    assert code == 1 and "h264lite encode: error: 0.264: its process has ended" in err
    assert err[-1] == "h264lite encode: error: finished 2 of 3 videos"


def test_processes_end_with_the_first_one():
    names = [raw(f"{k}_16x16.yuv", 150) for k in range(3)]
    process = batch(*(f"{name} {name[0]}.264" for name in names), words=["--workers", "2"], program=FAKE, FAKE_DELAY="0.02")
    wait_for(lambda: len(children(process)) == 2 and Path("1.264").exists())
    others = children(process)
    process.kill()
    process.communicate(timeout=20)
    wait_for(lambda: not any(Path(f"/proc/{other}/cmdline").exists() and Path(f"/proc/{other}/cmdline").read_bytes()
                             for other in others))
    assert not Path("2.264").exists()


def test_devices_and_processes(monkeypatch):
    """Two videos for each GPU at once; with the CPU as many as there are cores, at most 8."""

    def chosen(devices=None, device="auto", gpus=0, cores=3):
        monkeypatch.setattr(batch_command, "count_gpus", lambda: gpus)
        monkeypatch.setattr(batch_command, "cores", lambda: cores)
        names = tuple(batch_command._devices({"devices": devices, "device": device}))
        return names, batch_command._pays(names)

    assert chosen(("cuda:3", "cuda:1")) == (("cuda:3", "cuda:1"), 4)
    assert chosen(("all",), gpus=2) == (("cuda:0", "cuda:1"), 4)
    assert chosen(("all",))[0] == ("all",)  # whose error says what is missing
    assert chosen(gpus=2) == (("cuda:0",), 2) and chosen(device="cuda") == (("cuda:0",), 2)
    assert chosen() == (("cpu",), 3) and chosen(device="cpu", gpus=1, cores=99) == (("cpu",), 8)
    assert chosen(("cpu", "cpu", "cpu", "cpu")) == (("cpu",) * 4, 4)


def test_videos_on_named_devices():
    """The device is no part of the bytes."""
    names = [raw("a_16x16.yuv"), raw("bb_16x16.yuv", 5), raw("ccc_16x16.yuv", 2)]
    for words, suffix in ((("--devices", "cpu,cpu", "--workers", "2"), "d"), (("--device", "cpu"), "o")):
        code, err = said(batch(*(f"{name} {name}.{suffix}.264" for name in names), words=("--preset", "ultrafast", *words)))
        assert code == 0 and len(err) == 3, err
    for name in names:
        assert Path(f"{name}.d.264").read_bytes() == Path(f"{name}.o.264").read_bytes()
