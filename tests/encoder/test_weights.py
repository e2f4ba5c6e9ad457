"""Weighted prediction of P frames: weights from the source, streams of fades and flashes by two decoders, on all devices."""

import numpy as np
import pytest
from h264lite import Encoder
from h264lite.decoder.info import StreamInfo
from h264lite.encoder.decisions.weights import plane_sums, plane_weight, weights
from h264lite.encoder.errors import OptionError
from h264lite.scheduler.frame_spec import UNWEIGHTED, Weights

from .. import round_trip
from ..cuda_emulator.fixtures import gpu  # noqa: F401
from .test_cuda_streams import compare


def texture(height, width, seed=1):
    """A smooth plane of the whole range."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(16, 236, (height // 8 + 2, width // 8 + 2)).astype(float)
    y, x = np.mgrid[:height, :width] / 8
    i, j, fy, fx = y.astype(int), x.astype(int), y % 1, x % 1
    rows = [coarse[i + k, j] * (1 - fx) + coarse[i + k, j + 1] * fx for k in (0, 1)]
    return rows[0] * (1 - fy) + rows[1] * fy


def faded(planes, share, to=16):
    """Planes mixed with a colour: 1 is the planes, 0 the colour."""
    return tuple(np.clip(share * p + (1 - share) * c + 0.5, 0, 255).astype(np.uint8) for p, c in zip(planes, (to, 128, 128)))


def fade_clip(width, height, shares, to=16):
    """A moving texture, frame k with the share shares[k]."""
    base = [
        texture(h + 16, w + 16, k) for k, (h, w) in enumerate(((height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]))
    ]
    sizes = (height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]
    return [
        faded([p[k // 2 : k // 2 + h, k : k + w] for p, (h, w) in zip(base, sizes)], share, to)
        for k, share in enumerate(shares)
    ]


@pytest.mark.parametrize(("share", "to"), [(0.8, 16), (0.5, 235), (0.93, 16), (0.2, 128), (0.0, 16)])
def test_weights_of_a_fade(share, to):
    planes = [texture(144, 176, k) for k in range(3)]
    before, after = faded(planes, 1), faded(planes, share, to)
    sums = [tuple(map(plane_sums, frame)) for frame in (before, after)]
    found = weights(sums[1], sums[0])
    assert found.flags == 3
    colours = (to, 128, 128)
    terms = found[1:4], (found.chroma_log2, *found[5:7]), (found.chroma_log2, *found[7:9])
    for (log2, weight, offset), colour in zip(terms, colours):
        assert abs(weight / 2**log2 - share) < 0.02 and -128 <= weight <= 127 and 0 <= log2 <= 7
        assert abs(offset - max(-128, min(127, round((1 - share) * colour)))) <= 3


def test_no_weights_without_a_fade():
    still = texture(144, 176)
    for other in (still, np.roll(still, 7, 1), np.roll(still, -5, 0)):
        current, reference = (plane_sums(np.clip(plane, 0, 255).astype(np.uint8)) for plane in (other, still))
        assert plane_weight(current, reference) is None
    flat = plane_sums(np.full((16, 16), 90, np.uint8))
    assert plane_weight(flat, flat) is None
    brighter = plane_weight(plane_sums(np.full((16, 16), 120, np.uint8)), flat)
    assert brighter is not None and (brighter.log2, brighter.weight, brighter.offset) == (0, 1, 30)


def test_chroma_has_one_denominator():
    """A weight of one beside a finer one is said at a denominator that holds both."""
    luma = plane_sums(np.full((32, 32), 90, np.uint8))
    cb, other = texture(16, 16), texture(16, 16, 3)

    def sums(plane):
        return plane_sums(np.clip(plane, 0, 255).astype(np.uint8))

    found = weights((luma, sums(0.6 * cb + 50), sums(other)), (luma, sums(cb), sums(other)))
    assert found.flags == 2 and found.chroma_log2 == 6
    assert abs(found.cb_weight - 0.6 * 64) <= 1 and (found.cr_weight, found.cr_offset) == (64, 0)
    assert weights((luma,) * 3, (luma,) * 3) == UNWEIGHTED == Weights()


SHARES = {"fade": [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.2, 0.0, 0.3, 0.6, 1], "flash": [0.6, 0.6, 1, 0.6, 0.6]}


@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize(
    "options", [{}, {"ref": 3, "slices": 2, "subme": 6}, {"keyint": 4, "gops": 2}, {"no_cabac": True}], ids=str
)
def test_streams(kind, options):
    clip = fade_clip(66, 50, SHARES[kind])
    sizes = []
    for weightp in (0, 1):
        options = {**options, "qp": 24, "profile": "high", "weightp": weightp, "device": "cpu"}
        stream, expected = round_trip.encode(clip, 66, 50, **options)
        round_trip.assert_same(round_trip.ffmpeg_frames(stream), expected, "FFmpeg")
        round_trip.assert_same(round_trip.own_frames(stream), expected, "own decoder")
        sizes.append(len(stream))
    assert sizes[1] < 0.9 * sizes[0]
    info = StreamInfo()
    lines = [*info.feed(stream), *info.flush(), *info.summary()]
    assert any("weighted prediction in " in line for line in lines)


@pytest.mark.parametrize("options", [{}, {"ref": 2, "slices": 2, "gops": 2, "keyint": 5}], ids=str)
def test_the_gpu_gives_the_same_bytes(gpu, options):  # noqa: F811
    compare(fade_clip(34, 34, SHARES["fade"][:7]), 34, 34, qp=24, profile="high", weightp=1, **options)


def test_refusals():
    with pytest.raises(OptionError, match="tool of Main and High profile"):
        Encoder(32, 32, weightp=1)
    with pytest.raises(OptionError, match="not built for device hybrid"):
        Encoder(32, 32, weightp=1, profile="main", device="hybrid")
    Encoder(32, 32, weightp=0, device="cpu").close()
