"""GPU contexts are created during imports: which GPUs, for how long, and a silent failure."""

import ctypes
import gc
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from h264lite.cli import cli
from h264lite.cli import encode as encode_command
from h264lite.cuda_src.runtime import context_warmup as waking
from h264lite.cuda_src.runtime.driver import use_driver
from h264lite.process import gc_paused

from ..support.waiting import wait_for


class Library:
    """The driver with so many GPUs: notes what is asked of it."""

    def __init__(self, gpus, works=True):
        self.calls, self.held = [], []
        self.gpus, self.works = gpus, works

    def cuInit(self, flags):
        self.calls.append("init")
        return 0 if self.works else 100

    def cuDeviceGet(self, device, ordinal):
        device._obj.value = 10 + ordinal
        return 0 if ordinal < self.gpus else 101

    def cuDevicePrimaryCtxRetain(self, context, device):
        self.held.append(device.value)
        return 0

    def cuDevicePrimaryCtxRelease_v2(self, device):
        self.held.remove(device.value)
        return 0


@pytest.fixture
def library(monkeypatch):
    """A way to choose the driver."""

    def there(answer):
        def load(name):
            if isinstance(answer, Exception):
                raise answer
            assert name == "libcuda.so.1"
            return answer

        monkeypatch.setattr(ctypes, "CDLL", load)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "pycuda")
        return answer

    use_driver(None)
    return there


@pytest.mark.parametrize(("ordinals", "gpus"), [((0,), 1), ((1, 0), 2), ((0, 7), 1)])
def test_contexts_are_held_until_they_are_let_go(library, ordinals, gpus):
    """And a missing GPU is skipped."""
    driver = library(Library(gpus))
    woken = waking.ContextWarmup(ordinals)
    expected = [10 + n for n in ordinals if n < gpus]
    wait_for(lambda: driver.held == expected, 10)
    woken.release()
    woken.close()
    assert driver.calls == ["init"] and not driver.held
    woken.close()


def test_what_fails_is_left_to_others(library):
    for driver in (OSError("no such file"), Library(1, works=False), object()):
        library(driver)
        woken = waking.ContextWarmup([0])
        woken.close()
        assert not getattr(driver, "held", None)


def test_nothing_is_woken_for_nobody(library, monkeypatch):
    driver = library(Library(1))
    waking.ContextWarmup([]).close()
    use_driver(object())
    waking.ContextWarmup([0]).close()
    use_driver(None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # no PyCUDA
    waking.ContextWarmup([0]).close()
    assert not driver.calls


@pytest.mark.parametrize(("device", "devices", "gpus"), [
    (None, None, [0]), ("auto", None, [0]), ("cuda", None, [0]), ("hybrid", None, [0]), ("cpu", None, []),
    (None, "cuda:1", [1]), (None, "cuda,cuda:3", [0, 3]), (None, "cpu", []), (None, "gpu", []), ("cuda", "", []),
])  # fmt: skip
def test_which_gpus(device, devices, gpus):
    assert cli.gpus_of(device, devices) == gpus


def test_the_command_lets_go_when_it_has_its_own(monkeypatch, tmp_path):
    """Before the first frame; in the end in any case, and waits for it."""
    seen = []

    class ContextWarmup:
        def __init__(self, gpus):
            seen.append(gpus)

        def release(self):
            seen.append("let go")

        def close(self):
            seen.append("closed")

    encode = encode_command.encode_frames
    monkeypatch.setattr(waking, "ContextWarmup", ContextWarmup)
    monkeypatch.setattr(encode_command, "encode_frames", lambda *given: (seen.append("encodes"), encode(*given))[1])
    source, out = tmp_path / "a_16x16.yuv", str(tmp_path / "a.264")
    source.write_bytes(np.zeros(2 * 384, np.uint8).tobytes())
    assert cli.main(["encode", str(source), out, "--quiet"]) == 0
    assert seen == [[0], "let go", "encodes", "closed"]
    seen.clear()
    assert cli.main(["encode", str(source), out, "--qp", "99", "--device", "cpu"]) == 2
    assert seen == [[], "closed"]


def test_nobody_looks_for_garbage_of_imports():
    """Neither while they run nor when the process ends."""
    for before in (True, False):
        (gc.enable if before else gc.disable)()
        try:
            with gc_paused():
                assert not gc.isenabled()
            assert gc.isenabled() == before
        finally:
            gc.enable()
    code = ("import gc, sys; sys.argv = ['h264lite', '--version']; import h264lite.__main__ as command; command.main(); "
            "print(gc.get_freeze_count())")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) > 1000
