"""--deadzone-inter and --deadzone-intra: fewer levels with larger ones, the default as without, the same on the GPU."""

import pytest
from h264lite.cpu_simd.decisions.quantise import DEAD_ZONE_INTER, DEAD_ZONE_INTRA, ROUNDING
from h264lite.scheduler.frames import constants

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..support import round_trip
from .test_cuda_streams import compare

CLIP = round_trip.noise_clip(50, 34, 3, 9)


def size(**options):
    stream, expected = round_trip.encode(CLIP, 50, 34, qp=24, trellis=0, device="cpu", **options)
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), expected, "FFmpeg")
    return len(stream)


@pytest.mark.parametrize("profile", ["baseline", "high"])
@pytest.mark.parametrize(("name", "default"), [("deadzone_inter", 21), ("deadzone_intra", 11)])
def test_streams(profile, name, default):
    small, medium, large = (size(profile=profile, **{name: value}) for value in (0, default, 32))
    assert small > medium > large and medium == size(profile=profile)


def test_numbers_of_kernels():
    assert constants._dead_zone(21, 21, DEAD_ZONE_INTER) * 6 == constants._dead_zone(11, 11, DEAD_ZONE_INTRA) * 3 == ROUNDING
    values = [constants._dead_zone(option, 21, DEAD_ZONE_INTER) for option in range(33)]
    assert values == sorted(values, reverse=True) and values[0] * 2 == ROUNDING and values[32] == 0


def test_the_gpu_gives_the_same_bytes(gpu):  # noqa: F811
    options = {"qp": 24, "trellis": 0, "no_cabac": True, "profile": "high"}
    compare(CLIP, 50, 34, deadzone_inter=6, deadzone_intra=25, **options)
