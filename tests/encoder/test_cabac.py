"""Streams by CABAC: two decoders return the reconstruction, which is that of CAVLC; limits of bins (7.4.2.10)."""

import h264lite
import numpy as np
import pytest
from h264lite.encoder.slice_writer import cabac_zero_words

from .. import round_trip, sequences
from .test_streams import planes

TOOLS = ({"ref": 3}, {"slices": 8, "keyint": 4}, {"keyint": 1}, {"slices": 3, "subme": 6, "ref": 2, "no_deblock": True})


def same_as_cavlc(clip, width, height, **options):
    """The two streams, after decoders have returned the same frames of both."""
    stream, expected = round_trip.encode(clip, width, height, profile="baseline", **options)
    found, frames = round_trip.encode(clip, width, height, profile="main", **options)
    round_trip.assert_same(frames, expected, "CABAC")
    round_trip.assert_same(round_trip.ffmpeg_frames(found), expected, "FFmpeg")
    round_trip.assert_same(round_trip.own_frames(found), expected, "own decoder")
    return found, stream


@pytest.mark.parametrize("qp", (0, 20, 34, 51))
@pytest.mark.parametrize("tools", TOOLS, ids=str)
def test_real_clips(qp, tools):
    clip = sequences.clip("foreman_176x144_30")
    found, stream = same_as_cavlc(planes(clip, 4), clip.width, clip.height, qp=qp, **tools)
    assert len(found) < len(stream)


@pytest.mark.slow
@pytest.mark.parametrize("qp", range(52))
def test_every_qp(qp):
    for name in ("BasketballPass_416x240_50", "mobile_352x288_30"):
        clip = sequences.clip(name)
        for slices in (1, 5):
            same_as_cavlc(planes(clip, 3, start=10), clip.width, clip.height, qp=qp, slices=slices, ref=2)


@pytest.mark.parametrize("size", ((1, 1), (17, 33), (63, 65), (16, 16)))
def test_sizes(size):
    clip = round_trip.noise_clip(*size, 3, seed=1)
    same_as_cavlc(clip, *size, qp=24)


@pytest.mark.parametrize("qp", (0, 6, 30))
def test_noise(qp):
    """Most macroblocks are I_PCM at low QP, between others; flat areas between them."""
    rng = np.random.default_rng(qp)
    clip = []
    for _ in range(3):
        frame = [rng.integers(0, 256, (side, side), np.uint8) for side in (96, 48, 48)]
        frame[0][32:, 16:60] = 90
        frame[0][64:] = frame[0][64:] // 16 + 100
        clip.append(frame)
    found, _ = same_as_cavlc(clip, 96, 96, qp=qp, slices=2)
    decoder = h264lite.Decoder(macroblocks=True)
    frames = [*decoder.decode(found), *decoder.flush()]
    kinds = {kind for frame in frames for kind in frame.macroblocks.mb_type.tolist()}
    assert max(int(frame.macroblocks.bits.max()) for frame in frames) <= 3200  # A.3.1, with mb_skip_flag
    assert len(kinds) > 2 and (qp > 0 or h264lite.standard.macroblock.I_PCM in kinds)


def test_flat():
    chroma = [np.full((32, 40), 128, np.uint8), np.full((32, 40), 7, np.uint8)]
    clip = [[np.full((64, 80), 60 + n, np.uint8), *chroma] for n in range(3)]
    for qp in (0, 27, 51):
        same_as_cavlc(clip, 80, 64, qp=qp)


def periodic(qp):
    """The stream of a frame whose blocks are all alike."""
    x = np.arange(4)
    wave = 128 + 60 * np.cos((2 * x + 1) * np.pi / 8) * np.cos((2 * x[:, None] + 1) * np.pi / 4)
    frame = [np.tile(wave, (18, 22)).round().astype(np.uint8), *[np.full((36, 44), 128, np.uint8)] * 2]
    return round_trip.check([frame], 88, 72, qp=qp, profile="main", slices=2)


def test_zero_words():
    """A frame whose bins cost little ends in cabac_zero_words, which decoders skip; another has none."""
    word = b"\0\0\3"
    stream = periodic(16)
    assert stream.endswith(10 * word) and stream.count(word) > 50
    clip = sequences.clip("foreman_176x144_30")
    found, _ = round_trip.encode(planes(clip, 2), clip.width, clip.height, qp=16, profile="main")
    assert 2 * word not in found


def test_bins_of_a_frame():
    """7.4.2.10: BinCountsInNALunits <= 32 / 3 NumBytesInVclNALunits + RawMbBits PicSizeInMbs / 32, with the fewest words."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        bins, size, n_mb = (int(n) for n in rng.integers(1, (20000, 2000, 40)))
        words = len(cabac_zero_words(bins, size, n_mb)) // 3

        def fits(count, bins=bins, size=size, n_mb=n_mb):
            return 3 * 32 * bins <= 32 * 32 * (size + 3 * count) + 3 * 3072 * n_mb

        assert fits(words) and (words == 0 or not fits(words - 1))


PROFILES = (("baseline", 66, (1, 1)), ("main", 77, (0, 1)), ("high", 100, (0, 0)))


@pytest.mark.parametrize(("profile", "idc", "flags"), PROFILES)
def test_profiles(profile, idc, flags):
    """What the parameter sets say; CABAC can be left out, and the profile is then the lowest with the other tools."""
    from h264lite.standard.bits import NAL_PPS, NAL_SPS, split_byte_stream, unescape
    from h264lite.standard.syntax import parse_pps, parse_sps

    clip = round_trip.noise_clip(32, 32, 1, seed=1)
    for off in (False, True):
        stream, _ = round_trip.encode(clip, 32, 32, profile=profile, no_cabac=off)
        units = {unit.nal_unit_type: unescape(unit.data[1:]) for unit in split_byte_stream(stream)}
        sps, pps = parse_sps(units[NAL_SPS]), parse_pps(units[NAL_PPS])
        expected = PROFILES[0][1:] if off and profile == "main" else (idc, flags)
        assert (sps.profile_idc, (sps.constraint_set0_flag, sps.constraint_set1_flag)) == expected
        assert pps.entropy_coding_mode_flag == (profile != "baseline" and not off)
        assert pps.transform_8x8_mode_flag == (profile == "high")
