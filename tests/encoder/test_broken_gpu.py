"""A GPU whose context is broken for good, in a process of its own: the same bytes and a warning, or whole frames and an end.

Emulated at one frame, on a real GPU at the first, the second, one in the middle and the last.
"""

import os
import re
import subprocess
import sys

import pytest
from h264lite.cli.cli import main

from ..cuda_emulator.fixtures import REAL
from ..cuda_emulator.real import skip_without
from ..support import broken_gpu, round_trip

WIDTH, HEIGHT, FRAMES = 50, 66, 8
OPTIONS = ("--ref", "2", "--qp", "26", "--bframes", "0", "--threads", "2", "--quiet")
PLACES = (0, 1, 4, FRAMES - 1)
everywhere = pytest.mark.parametrize(
    ("kind", "at"), (("emulated", 4), *(pytest.param("gpu", at, marks=pytest.mark.gpu) for at in PLACES))
)
somewhere = pytest.mark.parametrize("kind", ("emulated", REAL))


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    return round_trip.write_raw(round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 5), tmp_path_factory.mktemp("broken"))


def expected(raw, *words):
    """What the processor makes of it."""
    out = raw.with_name("-".join(("cpu", *words)) + ".264")
    if not out.exists():
        assert main(["encode", str(raw), str(out), "--device", "cpu", *OPTIONS, *words]) == 0
    return out.read_bytes()


def encode(kind, at, raw, out, *words, **environment):
    """(exit code, what was written, lines on standard error) of the command whose GPU breaks before frame `at`."""
    if kind == "gpu":
        skip_without(2 if environment else 1)
    program = [sys.executable, "-X", "faulthandler", broken_gpu.__file__, str(at)]
    done = subprocess.run(
        [*program, "encode", str(raw), str(out), *OPTIONS, *words], stderr=subprocess.PIPE, text=True, timeout=300,
        env={**os.environ, "BROKEN_GPU": kind, **environment},
    )  # fmt: skip
    assert "Traceback" not in done.stderr and done.returncode in (0, 1), done.stderr
    return done.returncode, *round_trip.written(out), done.stderr.splitlines()


def check_that_it_went_on(outcome, wanted, at):
    code, data, _, lines = outcome
    warnings = [line for line in lines if "[warning]" in line]
    assert code == 0, lines
    assert len(warnings) == 1, lines
    first = re.search(r" failed in .*; continuing on the CPU from frame (\d+)$", warnings[0])
    assert first and int(first[1]) <= at, warnings
    assert data == wanted


def check_that_it_ended(outcome, wanted, at):
    code, data, held, lines = outcome
    errors = [line for line in lines if line.startswith("h264lite encode: error")]
    assert code == 1 and wanted.startswith(data), lines
    assert len(errors) == 1 and " failed in " in errors[0] and f"the output holds {held} frame" in errors[0], lines
    assert held <= at


@everywhere
@pytest.mark.parametrize("device", ("hybrid", "auto"))
def test_the_processor_goes_on(kind, at, raw, tmp_path, device):
    check_that_it_went_on(encode(kind, at, raw, tmp_path / "out.264", "--device", device), expected(raw), at)


@everywhere
def test_cuda_by_name_ends(kind, at, raw, tmp_path):
    check_that_it_ended(encode(kind, at, raw, tmp_path / "out.264", "--device", "cuda"), expected(raw), at)


@somewhere
@pytest.mark.parametrize("device", ("hybrid", "auto"))
def test_lanes_lose_the_same_gpu(kind, raw, tmp_path, device):
    """One warning for all of them; the current GOP of each, and later ones, are the CPU's."""
    words = ("--keyint", "2", "--gops", "3")
    code, data, _, lines = encode(kind, 3, raw, tmp_path / "out.264", "--device", device, *words)
    assert code == 0 and sum("continuing on the CPU" in line for line in lines) == 1, lines
    assert data == expected(raw, *words[:2])


@pytest.mark.gpu
@pytest.mark.parametrize("words", ("--device auto", "--device hybrid", "--device cuda", "--device auto --keyint 2 --gops 2"))
def test_one_line_is_said(raw, tmp_path, words):
    """Nothing by PyCUDA of clean-ups that failed."""
    *_, lines = encode("gpu", 2, raw, tmp_path / "out.264", *words.split())
    assert len(lines) == 1 and lines[0].startswith("h264lite"), lines


@somewhere
@pytest.mark.parametrize("ordinal", (0, 1))
def test_one_of_two_gpus(kind, raw, tmp_path, ordinal):
    """In one process: the encode ends with the name of the one that broke, and with whole frames of GOPs that were done."""
    words = ("--keyint", "4", "--devices", "cuda:0,cuda:1")
    outcome = encode(kind, 1, raw, tmp_path / "out.264", *words, BROKEN_ORDINAL=str(ordinal))
    check_that_it_ended(outcome, expected(raw, *words[:2]), FRAMES - 1)
    # of two real GPUs in one process the other one may be named: calls for it failed too in 3 of 10 runs on two H100s
    named = (ordinal,) if kind == "emulated" else (0, 1)
    assert any(f" (cuda:{number}) failed in " in line for number in named for line in outcome[-1]), outcome[-1]
