"""Extreme content at coarse quantisers: no transform leaves 16 bits (8.5.12.2, 8.5.13), so that all decoders agree."""

import hashlib

import h264lite
import numpy as np
import pytest
from h264lite.cpu_simd.decisions.quantise import MOST_RESIDUAL

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..fuzz import encoder_cases
from ..support import round_trip

TOOLS = (
    {"profile": "baseline"},
    {"profile": "baseline", "trellis": 0, "subme": 1},
    {"trellis": 0, "ref": 2},
    {"trellis": 0, "no_8x8dct": True, "bframes": 2},
    {"subme": 2, "slices": 2},
    {"subme": 7, "chroma_qp_offset": 12},
    {"subme": 7, "no_8x8dct": True, "keyint": 1},
    {"no_cabac": True, "bframes": 1},
    {"bframes": 2, "subme": 7},
    {"cqm": "jvt", "ref": 2},
    {"cqm": "jvt", "no_cabac": True, "trellis": 0},
    {"cqm4": ",".join(16 * ["200"]), "cqm8": ",".join(64 * ["255"])},
    {"cqm4": ",".join(16 * ["3"]), "trellis": 0, "no_8x8dct": True},
)


def clip_of(content: str, width: int, height: int, frames: int, seed: int) -> list:
    return encoder_cases.clip(encoder_cases.Case(width, height, frames, content, seed, {}, True))


def one_transform_4(x: list) -> list:
    """8.5.12.2: every value that the one-dimensional transform passes, without rounding; the last four are its results."""
    e = x[0] + x[2], x[0] - x[2], x[1] / 2 - x[3], x[1] + x[3] / 2
    return [*x, *e, e[0] + e[3], e[1] + e[2], e[1] - e[2], e[0] - e[3]]


def one_transform_8(x: list) -> list:
    """8.5.13.2: as one_transform_4; the last eight are its results."""
    a = (
        x[0] + x[4], -x[3] + x[5] - x[7] - x[7] / 2, x[0] - x[4], x[1] + x[7] - x[3] - x[3] / 2,
        x[2] / 2 - x[6], -x[1] + x[7] + x[5] + x[5] / 2, x[2] + x[6] / 2, x[3] + x[5] + x[1] + x[1] / 2,
    )  # fmt: skip
    b = (
        a[0] + a[6], a[1] + a[7] / 4, a[2] + a[4], a[3] + a[5] / 4,
        a[2] - a[4], a[3] / 4 - a[5], a[0] - a[6], a[7] - a[1] / 4,
    )  # fmt: skip
    return [*x, *a, *b, *(b[i] + b[7 - i] for i in (0, 2, 4, 6)), *(b[i] - b[7 - i] for i in (6, 4, 2, 0))]


@pytest.mark.parametrize("transform", (one_transform_4, one_transform_8))
def test_all_values_follow_from_the_residual(transform) -> None:
    """The factor of cpu_simd/residual/residual_range.py: the largest value of two directions by the largest residual
    sample.
    """
    n = 4 if transform is one_transform_4 else 8
    values = np.array(transform(list(np.eye(n))))
    of_samples = values @ np.linalg.inv(values[-n:])
    most = np.abs(of_samples).sum(1).max()
    assert most**2 * (64 * MOST_RESIDUAL + 32) + 64 < 2**15 - 33


@pytest.mark.parametrize("tools", TOOLS, ids=str)
@pytest.mark.parametrize("qp", (51, 46))
def test_decoders_agree(tools: dict, qp: int) -> None:
    for seed, content in enumerate(("two_values", "chroma", "extremes", "black_and_white")):
        with h264lite.Encoder(70, 56, 30, keep_reconstruction=True, qp=qp, ipratio=1, **tools) as encoder:
            packets = [packet for planes in clip_of(content, 70, 56, 3, seed) for packet in encoder.encode(planes)]
            packets += encoder.flush()
        stream = b"".join(packet.data for packet in packets)
        shown = [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]
        round_trip.assert_same(round_trip.ffmpeg_frames(stream), shown, "FFmpeg")
        round_trip.assert_same(round_trip.own_frames(stream), shown, "own decoder")


@pytest.mark.parametrize("tools", TOOLS, ids=str)
def test_on_gpus(gpu, tools: dict) -> None:  # noqa: F811
    for seed, content in enumerate(("two_values", "chroma")):
        clip = clip_of(content, 34, 34, 2 + ("bframes" in tools), seed)
        stream, decoded = round_trip.encode(clip, 34, 34, device="cuda", qp=51, ipratio=1, **tools)
        wanted, expected = round_trip.encode(clip, 34, 34, device="cpu", qp=51, ipratio=1, **tools)
        round_trip.assert_same(decoded, expected, "the GPU's reconstruction")
        assert hashlib.sha256(stream).digest() == hashlib.sha256(wanted).digest()
