"""Ctrl-C and SIGTERM: the file is finished, the message says what it holds, and nobody waits long."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from h264lite.encoder.interrupt import Interrupted, StopSignals

from . import fake_pipeline

FAKE = Path(fake_pipeline.__file__)
FRAME = re.compile(rb"frame (\d{6}):.{5}\n", re.S)


def start(*words, delay="0.05", pass_fds=(), stdin=None, **environment):
    return subprocess.Popen([sys.executable, str(FAKE), *map(str, words)], stderr=subprocess.PIPE, stdin=stdin,
                            pass_fds=pass_fds, env={**os.environ, "FAKE_DELAY": delay, **environment})


def wait_for(condition, seconds=60):
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def clip(tmp_path):
    path = tmp_path / "clip_16x16.yuv"
    path.write_bytes(np.random.default_rng(1).integers(0, 256, 384 * 2000, np.uint8).tobytes())
    return path


def frames_in(path):
    return len(FRAME.findall(path.read_bytes())) if path.exists() else 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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
    ready, child = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", _READY.format(fd=child, fake=str(FAKE)), "encode", "-", str(out)],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[child])
    os.read(ready, 1)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    said = process.stderr.read().decode()
    assert process.wait(30) == 130 and "interrupted before the first frame" in said and not out.exists()
    process.stdin.close()


_READY = """
import os, runpy, sys
import h264lite.encoder.encode_command as command
real = command.open_source
def open_source(*words):
    os.write({fd}, b"x")
    return real(*words)
command.open_source = open_source
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


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGINT)
    with StopSignals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked
        with pytest.raises(Interrupted), stop.waiting():
            pytest.fail("must not be reached")
    assert signal.getsignal(signal.SIGINT) is before
