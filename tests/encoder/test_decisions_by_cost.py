"""Streams whose P frames are decided by cost (from subme 6 on with CABAC): two decoders agree, and the bits become fewer."""

import numpy as np
import pytest

from ..cpu_simd.test_psy import differences
from ..support import round_trip, sequences
from .test_streams import planes


def content(kind, rng):
    """Four frames of 66x50: noise, flat areas, or both in motion."""
    luma = rng.integers(0, 256, (50, 66)) if kind == "noise" else np.full((50, 66), 90)
    clip = []
    for n in range(4):
        luma = np.roll(luma, (1, 2), (0, 1))
        if kind == "both":
            luma[10:30, 20 + n : 50 + n] = rng.integers(0, 256, (20, 30))
        chroma = np.full((25, 33), 100 + 9 * n, np.uint8)
        clip.append((luma.astype(np.uint8), chroma, chroma + 7))
    return clip


@pytest.mark.parametrize("kind", ["noise", "flat", "both"])
@pytest.mark.parametrize(("qp", "options"), [
    (0, {"subme": 6}), (3, {"subme": 7, "ref": 2}), (27, {"subme": 7, "slices": 3, "threads": 3}),
    (51, {"subme": 6, "trellis": 0}), (30, {"subme": 8, "ref": 2, "slices": 2, "threads": 3}),
    (32, {"subme": 7, "psy_rd": 1.5, "ref": 2}),
])  # fmt: skip
def test_decoders_agree(kind, qp, options):
    clip = content(kind, np.random.default_rng(qp))
    round_trip.check(
        clip, 66, 50, qp=qp, profile="high" if qp % 2 else "main", chroma_qp_offset=qp % 5 - 2, device="cpu", **options
    )


def test_psy_rd_keeps_energy():
    """Less difference in AC energy to the source; nothing changes without decisions by cost."""
    clip = sequences.clip("foreman_176x144_30")
    frames, measured = planes(clip, 6), []
    for psy_rd in (0, "2:0"):
        options = {"qp": 32, "profile": "high", "device": "cpu"}
        _, decoded = round_trip.encode(frames, clip.width, clip.height, subme=6, psy_rd=psy_rd, **options)
        plain, _ = round_trip.encode(frames, clip.width, clip.height, subme=5, psy_rd=psy_rd, **options)
        energy = sum(differences(a[0][y : y + 16, x : x + 16], b[0][y : y + 16, x : x + 16])
                     for a, b in zip(frames, decoded) for y in range(0, 144, 16) for x in range(0, 176, 16))  # fmt: skip
        measured.append((energy, plain))
    (energy, plain), (other_energy, other_plain) = measured
    assert other_energy < 0.95 * energy and plain == other_plain


def test_fewer_bits_for_the_same_error():
    """Costs a frame: squared error and bits, weighed as in decisions."""
    clip = sequences.clip("foreman_176x144_30")
    frames, costs = planes(clip, 8), []
    for subme in (5, 6, 7, 8):
        options = {"qp": 27, "profile": "high", "subme": subme, "device": "cpu"}
        stream, decoded = round_trip.encode(frames, clip.width, clip.height, **options)
        error = sum(int(((a[0].astype(int) - b[0]) ** 2).sum()) for a, b in zip(frames, decoded))
        costs.append(error + 0.1 * 2 ** ((27 - 4) / 3) * 8 * len(stream))
    assert costs[1] < 0.995 * costs[0] and costs[2] < 1.002 * costs[1] and costs[3] < 1.001 * costs[2], costs
