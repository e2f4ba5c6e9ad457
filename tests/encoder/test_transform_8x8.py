"""Streams with the 8x8 transform and Intra 8x8, by CAVLC and CABAC: two decoders return the reconstruction."""

import h264lite
import numpy as np
import pytest
from h264lite.standard.macroblock import I_8x8, I_16x16, P_8x8, P_16x16

from ..support import round_trip, sequences
from .test_streams import planes

TOOLS = (
    {"ref": 3, "slices": 2}, {"keyint": 2, "slices": 8, "trellis": 0}, {"keyint": 1, "no_deblock": True},
    {"subme": 6, "chroma_qp_offset": 3}, {"partitions": "none", "deblock": "2:-3"},
)  # fmt: skip


def check(clip, width, height, **options):
    """The streams by CAVLC and by CABAC, after both decoders have returned the reconstruction of each."""
    return [round_trip.check(clip, width, height, profile="high", no_cabac=off, **options) for off in (True, False)]


def macroblocks(stream):
    """mb_type and transform_8x8 of all frames."""
    decoder = h264lite.Decoder(macroblocks=True)
    frames = [frame.macroblocks for frame in (*decoder.decode(stream), *decoder.flush())]
    return np.concatenate([f.mb_type for f in frames]), np.concatenate([f.transform_8x8 for f in frames])


@pytest.mark.parametrize("qp", (0, 22, 37, 51))
@pytest.mark.parametrize("tools", TOOLS, ids=str)
def test_real_clips(qp, tools):
    clip = sequences.clip("foreman_176x144_30")
    streams = check(planes(clip, 4), clip.width, clip.height, qp=qp, **tools)
    if qp == 22:
        types, flags = zip(*(macroblocks(stream) for stream in streams))
        types, flags = np.concatenate(types), np.concatenate(flags)
        assert (I_8x8 in types) == (tools.get("partitions") != "none")
        assert (flags[types == I_8x8] == 1).all() and not flags[types == I_16x16].any()
        if tools.get("keyint") != 1:
            assert set(flags[(types >= P_16x16) & (types <= P_8x8)].tolist()) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("qp", range(52))
def test_every_qp(qp):
    for name in ("BasketballPass_416x240_50", "mobile_352x288_30"):
        clip = sequences.clip(name)
        for slices in (1, 5):
            check(planes(clip, 3, start=10), clip.width, clip.height, qp=qp, slices=slices, ref=2)


@pytest.mark.slow
@pytest.mark.parametrize("width", (2, 14, 16, 18, 34, 62, 66))
def test_every_size(width):
    for height in (2, 16, 18, 30, 64, 66):
        clip, slices = round_trip.noise_clip(width, height, 3, seed=width), min(2, -(-height // 16))
        check(clip, width, height, qp=26, ref=2, slices=slices)


@pytest.mark.parametrize("size", ((1, 1), (17, 33), (63, 65), (16, 16)))
def test_sizes(size):
    check(round_trip.noise_clip(*size, 3, seed=1), *size, qp=24)


@pytest.mark.parametrize("qp", (0, 3, 6, 30))
def test_noise(qp):
    """Levels up to the largest, I_PCM between 8x8 blocks, flat areas, full contrast."""
    rng = np.random.default_rng(qp)
    clip = []
    for _ in range(3):
        frame = [rng.integers(0, 256, (side, side), np.uint8) for side in (96, 48, 48)]
        frame[0][32:, 16:60] = 90
        frame[0][64:, :48] = frame[0][64:, :48] // 16 + 100
        frame[0][48:, 64:] = np.kron(rng.integers(0, 2, (6, 4)), np.full((8, 8), 255))
        clip.append(frame)
    check(clip, 96, 96, qp=qp, slices=2)


def test_flat():
    chroma = [np.full((32, 40), 128, np.uint8), np.full((32, 40), 7, np.uint8)]
    clip = [[np.full((64, 80), 60 + n, np.uint8), *chroma] for n in range(3)]
    for qp in (0, 27, 51):
        check(clip, 80, 64, qp=qp)


def test_left_out():
    """--no-8x8dct: High profile with the macroblocks of Main."""
    clip = sequences.clip("foreman_176x144_30")
    stream = round_trip.check(planes(clip, 3), clip.width, clip.height, profile="high", no_8x8dct=True, qp=22)
    types, flags = macroblocks(stream)
    assert I_8x8 not in types and not flags.any()
