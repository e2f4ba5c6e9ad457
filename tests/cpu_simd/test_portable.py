"""Every kernel equals its portable twin: 64 offsets, many strides, 16 extreme patterns, a thousand random macroblocks.

The kernels run as an encode runs them, with H264LITE_CHECK=1; that each is also what its scalar definition says is for the
tests of its stage, which the last test here repeats with the portable kernels.
"""

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from h264lite.scheduler.check import portable_environment
from h264lite.scheduler.executor import Executor
from h264lite.scheduler.frames.frame import Frame

from ..support import round_trip

SEED = 20261123
SIDES = (16, 32, 48, 64, 80, 96, 112, 144)
FEW = set(range(0, 64, 9))


@pytest.fixture(autouse=True)
def beside_the_twins(monkeypatch):
    monkeypatch.setenv("H264LITE_CHECK", "1")


def options(rng):
    """Tools of one encode."""
    search = {"me": "step", "step_grid": str(rng.choice(["3", "7", "13"]))} if rng.integers(2) else {"me": "esa"}
    chosen = search | {
        "qp": int(rng.choice([4, 16, 24, 30, 40])), "subme": int(rng.integers(7)), "trellis": int(rng.integers(2)),
        "ref": int(rng.integers(1, 3)), "merange": int(rng.choice([4, 7, 16, 24])),
        "chroma_qp_offset": int(rng.integers(-4, 5)),
        "partitions": str(rng.choice(["all", "all", "p8x8,i4x4", "none"])),
        "deblock": (int(rng.integers(-6, 7)), int(rng.integers(-6, 7))),
        "profile": str(rng.choice(["baseline", "main", "high"])),
    }  # fmt: skip
    return chosen | {"cqm": "jvt" if chosen["profile"] == "high" and rng.integers(2) else "flat"}


def shifted(offset):
    """np.zeros whose arrays begin a multiple of `offset` elements (eights of bytes where views follow) after a boundary."""
    numbers = count(1)

    def zeros(shape, dtype):
        unit = np.dtype(dtype).itemsize if len(shape) > 1 else 8
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        base = np.zeros(size + 192, np.uint8)
        first = -base.ctypes.data % 64 + offset * next(numbers) % 64 * unit % 128
        array = base[first : first + size].view(dtype).reshape(shape)
        assert array.flags.aligned
        return array

    return zeros


@pytest.mark.parametrize("offset", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in range(64)])
def test_offsets_and_strides(offset, monkeypatch):
    print("seed", SEED, offset)
    rng = np.random.default_rng([SEED, offset])
    zeros = shifted(offset)
    monkeypatch.setattr(Frame.__init__, "__defaults__", (zeros, *Frame.__init__.__defaults__[1:]))
    monkeypatch.setattr(Executor, "zeros", lambda self, shape, dtype: zeros(shape, dtype))
    width, height = SIDES[offset % 8], SIDES[offset // 8 % 4]
    chosen = options(rng)
    print(width, height, chosen)
    clip = round_trip.noise_clip(width, height, 3, offset)
    round_trip.encode(clip, width, height, device="cpu", threads=1 + offset % 2, **chosen)


Y, X = np.mgrid[:48, :64]
EXTREMES = {
    "black": 0 * X, "white": 0 * X + 255, "grey": 0 * X + 128, "samples": (X + Y) % 2 * 255,
    "blocks": (X // 4 + Y // 4) % 2 * 255, "macroblocks": (X // 16 + Y // 16) % 2 * 255, "columns": X % 2 * 255,
    "rows": Y % 2 * 255, "wide columns": X // 4 % 2 * 255, "wide rows": Y // 4 % 2 * 255, "ramp right": X * 4,
    "ramp down": Y * 5, "ramp both": (X * 16 + Y * 16) % 256, "dots": (X % 16 == 5) * (Y % 16 == 9) * 255,
    "halves": (X > 31) * 255, "two levels": (X * 7 + Y * Y * 5 + X * X * Y) % 3 // 2 * 255,
}  # fmt: skip


@pytest.mark.parametrize("qp", [27, *(pytest.param(qp, marks=pytest.mark.slow) for qp in (0, 1, 12, 40, 51))])
@pytest.mark.parametrize("kind", EXTREMES)
def test_extreme_patterns(kind, qp):
    luma = EXTREMES[kind].astype(np.uint8)
    clip = []
    for n, y in enumerate((luma, 255 - luma, np.roll(luma, (3, 5), (0, 1)))):
        clip.append([np.ascontiguousarray(plane) for plane in (y, y[::2, ::2], 255 - y[n % 2 :: 2, ::2])])
    round_trip.encode(clip, 64, 48, device="cpu", qp=qp, subme=5, ref=2)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 16))])
def test_random_macroblocks(part):
    """64 macroblocks a frame: noise, and noise moved with errors of all sizes."""
    print("seed", SEED, part)
    rng = np.random.default_rng([SEED, 99, part])
    chosen = options(rng) | {"qp": int(rng.integers(52))}
    print(chosen)
    luma = rng.integers(0, 256, (128, 128))
    clip = []
    for _ in range(3):
        luma = np.roll(luma, rng.integers(-5, 6, 2), (0, 1))
        error = rng.normal(0, 1, luma.shape) * np.kron(rng.choice([0, 1, 5, 40, 255], (8, 8)), np.ones((16, 16)))
        luma = np.clip(luma + error, 0, 255).astype(np.uint8)
        clip.append((luma, luma[::2, ::2].copy(), rng.integers(0, 256, (64, 64)).astype(np.uint8)))
    round_trip.encode(clip, 128, 128, device="cpu", **chosen)


@pytest.mark.slow
def test_portable_kernels_are_what_their_definitions_say():
    names = ("full_search", "step_search", "subpel_refine", "neighbour_vectors", "search_centre", "intra_estimate",
             "mode_decision", "interpolate", "rd_decision", "rd_candidates", "rd_candidates_b",
             "transform", "rdo_quant", "inter_residual", "inter_residual_qp",
             "intra", "deblock", "ssd", "entropy", "cabac", "mv_prediction", "transform_8x8", "transform_choice",
             "intra_prediction_8x8")  # fmt: skip
    here = Path(__file__).resolve().parent
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow"]
    files = [str(here / f"test_{name}.py") for name in names]
    done = subprocess.run([*command, *files], cwd=here.parent.parent, capture_output=True, text=True, timeout=1800,
                          env=os.environ | portable_environment())  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
