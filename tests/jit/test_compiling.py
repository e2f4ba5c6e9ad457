"""Compilations are said once and not counted, and two processes may compile at once."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from h264lite.cli.progress import Progress
from h264lite.jit import compiling, kernel

from .test_kernel_cache import KERNEL


@pytest.fixture
def now(monkeypatch):
    """A clock that the test moves; no compilation so far."""
    moved = [100.0]
    monkeypatch.setattr(compiling, "_now", compiling._Compilations())
    monkeypatch.setattr(time, "perf_counter", lambda: moved[0])
    return moved


def test_the_clock_stands_still_during_compilations(now):
    line = Progress("none", 10, 25)
    now[0] += 2
    with compiling.messages_to(lambda text: None):
        compiling.begins()
        now[0] += 30
        assert line.seconds == 2
        compiling.begins()  # another kernel, which the first one calls
        now[0] += 10
        compiling.ends()
        compiling.ends()
    now[0] += 1
    assert line.seconds == 3 and compiling.count() == 2


def test_the_first_compilation_is_said_once(now, capsys):
    said = []
    with compiling.messages_to(said.append):
        for _ in range(3):
            compiling.begins()
            compiling.ends()
    assert said == [compiling.TEXT]
    compiling.begins()  # said before
    compiling.ends()
    assert not capsys.readouterr().err


def test_without_a_listener_it_is_a_line_on_standard_error(now, capsys, monkeypatch):
    monkeypatch.setattr(logging.Logger, "hasHandlers", lambda self: False)  # pytest has set up logging
    compiling.begins()
    compiling.ends()
    assert capsys.readouterr().err == f"h264lite [info]: {compiling.TEXT}\n"


def test_a_program_hears_it_by_logging_and_may_silence_it(now, capsys, caplog):
    caplog.set_level(logging.INFO, compiling.LOGGER)
    compiling.begins()
    compiling.ends()
    assert caplog.record_tuples == [("h264lite", logging.INFO, compiling.TEXT)]
    caplog.set_level(logging.WARNING, compiling.LOGGER)
    with compiling.by_other_processes() as say:
        say("not heard")
    assert len(caplog.records) == 1 and not capsys.readouterr().err


def test_what_was_not_foreseen_is_said_by_name(now):
    """After other processes have compiled what the frames need; a hundred small kernels are not a hundred lines."""
    said = []
    with compiling.messages_to(said.append):
        compiling.have_compiled(40)
        for name in ("convert", "other"):
            compiling.begins(name)
            compiling.ends()
    assert said == ["compiling one more kernel, once: convert"] and compiling.count() == 42


def test_the_clock_stands_still_while_other_processes_compile(now):
    line = Progress("none", 10, 25)
    with compiling.by_other_processes():
        now[0] += 30
    now[0] += 1
    assert line.seconds == 1 and compiling.count() == 0


def test_kernels_that_fail_to_compile_end_their_compilation():
    broken = kernel.kernel(lambda n: undefined(n))  # noqa: F821
    before = compiling.clock()
    with compiling.messages_to(lambda text: None), pytest.raises(Exception, match="undefined"):
        broken(1)
    assert not compiling._now.depth and compiling.clock() >= before


def test_processes_that_compile_at_once(tmp_path):
    """Each has its kernel; what they leave is whole."""
    (tmp_path / "k.py").write_text(KERNEL)
    root = str(Path(kernel.__file__).parents[2])
    environment = os.environ | {"H264LITE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": root}
    command = [sys.executable, str(tmp_path / "k.py")]

    def start():
        return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    running = [start() for _ in range(4)]
    assert {process.communicate()[0].split()[0] for process in running} == {"30"}
    assert start().communicate()[0].split() == ["30", "1"]
    assert not list((tmp_path / "cache").rglob("*.tmp.*"))
