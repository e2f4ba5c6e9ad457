"""Ctrl-C, SIGTERM and SIGHUP: the file is finished, the message says what it holds, and the end comes soon."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from h264lite.cli.interrupt import Interrupted, StopSignals

from ..support import fake_pipeline, round_trip
from ..support.waiting import wait_for

FAKE = Path(fake_pipeline.__file__)
FRAME = re.compile(rb"frame (\d{6}):.{5}\n", re.S)


def start(*words, delay="0.05", pass_fds=(), stdin=None, preexec_fn=None, **environment):
    return subprocess.Popen([sys.executable, str(FAKE), *map(str, words)], stderr=subprocess.PIPE, stdin=stdin,
                            preexec_fn=preexec_fn, pass_fds=pass_fds, env={**os.environ, "FAKE_DELAY": delay, **environment})


def start_until(name, *words, seconds=0):
    """A command that has called a function of encode_command.py which now waits, or is made to, for so long."""
    ready, child = os.pipe()
    code = _READY.format(fd=child, fake=str(FAKE), name=name, seconds=seconds)
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, words)], stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE, pass_fds=[child])
    os.close(child)
    os.read(ready, 1)
    os.close(ready)
    time.sleep(0.3)
    return process


@pytest.fixture
def clip(tmp_path):
    path = tmp_path / "clip_16x16.yuv"
    path.write_bytes(np.random.default_rng(1).integers(0, 256, 384 * 2000, np.uint8).tobytes())
    return path


def frames_in(path):
    return len(FRAME.findall(path.read_bytes())) if path.exists() else 0


@pytest.mark.half
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("after", [1, 2, 5, 10, 20])
def test_a_signal_finishes_the_file(clip, tmp_path, number, after):
    out = tmp_path / "out.264"
    process = start("encode", clip, out, delay="0.02")
    wait_for(lambda: frames_in(out) >= after)
    begin = time.monotonic()
    process.send_signal(number)
    said = process.stderr.read().decode()
    assert process.wait(30) == 130 and time.monotonic() - begin < 15, "the whole clip takes 40 s"
    held = frames_in(out)
    assert held >= after and f"interrupted; the output holds {held} frame" in said
    assert f"encoded {held} frames" in said and "Traceback" not in said
    assert len(out.read_bytes()) == held * 19, "only whole access units"


def test_a_signal_while_waiting_for_input(tmp_path):
    out = tmp_path / "out.264"
    process = start("encode", "-", out, "--input-res", "16x16", delay="0", stdin=subprocess.PIPE)
    process.stdin.write(bytes(384 * 4 + 100))
    process.stdin.flush()
    wait_for(lambda: frames_in(out) == 2)
    process.send_signal(signal.SIGINT)
    said = process.stderr.read().decode()
    assert process.wait(30) == 130
    assert frames_in(out) == 4 and "the output holds 4 frames" in said and "left over" not in said
    process.stdin.close()


def test_a_signal_before_any_input(tmp_path):
    out = tmp_path / "out.264"
    process = start_until("open_inputs", "encode", "-", out)
    process.send_signal(signal.SIGTERM)
    said = process.stderr.read().decode()
    assert process.wait(30) == 130 and "interrupted before the first frame" in said and not out.exists()
    process.stdin.close()


def test_before_the_first_frame_no_file_is_written(tmp_path):
    """The stream and reports: what was there stays as it was."""
    out, summary, timeline = tmp_path / "out.264", tmp_path / "k.json", tmp_path / "t.json"
    out.write_bytes(b"a stream")
    summary.write_text("of another encode")
    process = start("encode", "-", out, "--json", summary, "--trace", timeline, stdin=subprocess.PIPE)
    process.stdin.write(b"YUV4MPEG2 W16 H16 F25:1\n")
    process.stdin.flush()
    assert b"16x16, y4m" in process.stderr.readline()
    time.sleep(1)  # now it waits for a frame
    process.send_signal(signal.SIGINT)
    said = process.stderr.read().decode()
    assert process.wait(30) == 130 and said == "h264lite encode: interrupted before the first frame; nothing was written\n"
    assert out.read_bytes() == b"a stream" and summary.read_text() == "of another encode" and not timeline.exists()
    process.stdin.close()


@pytest.mark.parametrize("option", ((), ("--csv",)))
def test_a_signal_while_a_pipe_has_no_reader(clip, tmp_path, option):
    pipe = tmp_path / "pipe.264"
    os.mkfifo(pipe)
    process = start_until("open_sinks", "encode", clip, *([tmp_path / "out.264"] if option else []), *option, pipe)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 130 and "before the first frame; nothing was written" in said
    assert sorted(os.listdir(tmp_path)) == [clip.name, pipe.name]


def test_a_signal_during_imports_is_quiet():
    """Those of the command line itself."""
    code = "import os, runpy, signal, sys\n" \
           "class Finder:\n" \
           "    def find_spec(name, *_):\n" \
           "        if name == 'h264lite.cli.cli': os.kill(os.getpid(), signal.SIGINT)\n" \
           "sys.meta_path.insert(0, Finder)\n" \
           "sys.argv = ['h264lite', 'encode', '--help']\n" \
           "runpy.run_module('h264lite', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_the_package_needs_no_module_that_python_has_not_loaded():
    """Before the command line can be quiet, the package itself is imported: an interrupt should hardly meet that."""
    code = "import pkgutil, runpy, sys\n" \
           "loaded = set(sys.modules)\n" \
           "import h264lite\n" \
           "print(*sorted(name for name in set(sys.modules) - loaded if not name.startswith('h264lite')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True, text=True)
    assert set(done.stdout.split()) <= {"_interpreters", "_xxsubinterpreters"}


_READY = """
import os, runpy, sys, time
import h264lite.cli.encode as command
real = command.{name}
def opens(*words):
    os.write({fd}, b"x")
    time.sleep({seconds})
    return real(*words)
command.{name} = opens
sys.argv[0] = {fake!r}
runpy.run_path({fake!r}, run_name="__main__")
"""


def test_the_second_signal_leaves_at_once(clip, tmp_path):
    out = tmp_path / "out.264"
    ready, child = os.pipe()
    process = start("encode", clip, out, delay="60", pass_fds=[child], FAKE_READY=str(child))
    os.read(ready, 1)  # a frame is under way
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    while process.poll() is None:  # two that come together may count as one
        assert time.monotonic() - begin < 30, "waits for the frame"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130 and not frames_in(out)
    process.stderr.close()


def test_a_terminal_that_closes_may_say_it_twice_or_be_ignored(clip, tmp_path):
    """Not as two times Ctrl-C; and under nohup the encode goes on."""
    out = tmp_path / "out.264"
    process = start("encode", clip, out, delay="0.2")
    wait_for(lambda: frames_in(out) >= 2)
    for _ in range(3):
        process.send_signal(signal.SIGHUP)
        time.sleep(0.02)
    said = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 130 and f"interrupted; the output holds {frames_in(out)} frames" in said
    process = start("encode", clip, out, "--frames", 20, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for(lambda: 2 <= frames_in(out) < 10)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=30)
    assert process.returncode == 0 and frames_in(out) == 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_decode_that_ends_by_a_signal_holds_whole_frames(tmp_path, number):
    """Of a pipe that goes on and on."""
    planes = round_trip.noise_clip(64, 48, 3, 1)
    stream, out, size = round_trip.encode(planes, 64, 48, threads=1)[0], tmp_path / "o.yuv", 64 * 48 * 3 // 2
    reads, writes = os.pipe()
    words = [sys.executable, "-m", "h264lite", "decode", "-", str(out)]
    process = subprocess.Popen(words, stdin=reads, stderr=subprocess.PIPE)
    os.close(reads)
    os.write(writes, stream)
    feeder = threading.Thread(target=lambda: feed(writes, stream))
    feeder.start()
    wait_for(lambda: out.exists() and out.stat().st_size > 20 * size)
    process.send_signal(number)
    said = process.communicate(timeout=30)[1].decode()
    feeder.join()
    frames, left = divmod(out.stat().st_size, size)
    assert process.returncode == 130 and said == f"h264lite: error: interrupted after {frames} frames\n" and not left


def feed(end, data):
    """Until the reader is gone."""
    try:
        while True:
            os.write(end, data)
    except BrokenPipeError:
        os.close(end)


def test_a_signal_while_a_tuning_file_is_looked_at(clip, tmp_path):
    """Whatever takes long then: a file system that does not answer."""
    process = start_until("make_config", "encode", clip, tmp_path / "out.264", seconds=60)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 130 and "before the first frame; nothing was written" in said


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGINT)
    with StopSignals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.is_requested
        with pytest.raises(Interrupted), stop.waiting():
            pytest.fail("must not be reached")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_while_kernels_are_compiled(clip, tmp_path):
    """The first run compiles for minutes: the command ends after the kernel at work, and the next one compiles the rest."""
    out = tmp_path / "out.264"
    out.write_bytes(b"a stream")
    words = [sys.executable, "-m", "h264lite", "encode", str(clip), str(out), "--device", "cpu", "--threads", "1"]
    environment = {**os.environ, "H264LITE_CACHE": str(tmp_path / "cache"), "H264LITE_CACHE_ALONE": "1"}
    process = subprocess.Popen(words, stderr=subprocess.PIPE, env=environment)
    while b"compiling" not in (line := process.stderr.readline()):
        assert line, "the command ended"
    time.sleep(2)
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    told = process.stderr.read().decode()
    assert process.wait(60) == 130 and time.monotonic() - begin < 40, "all kernels take longer"
    assert "interrupted before the first frame; nothing was written" in told and "Traceback" not in told
    assert out.read_bytes() == b"a stream"


def test_a_signal_in_a_callback_prints_nothing(capsys, monkeypatch):
    """Python cannot raise there: it would print a traceback, and go on."""
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)  # not pytest's

    class Object:
        pass

    awaited = Object()
    with StopSignals() as stop, stop.waiting():
        watched = weakref.ref(awaited, lambda _: signal.raise_signal(signal.SIGINT))
        del awaited
    assert watched() is None and stop.is_requested and capsys.readouterr().err == ""


def test_the_hook_of_others_hears_what_is_not_a_signal(monkeypatch):
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)

    class Object:
        def __del__(self):
            raise ValueError("theirs")

    with StopSignals():
        Object()
        assert [str(about.exc_value) for about in heard] == ["theirs"]
    assert sys.unraisablehook == heard.append
