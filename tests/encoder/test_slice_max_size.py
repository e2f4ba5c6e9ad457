"""--slice-max-size: no slice is larger, decoders agree, each slice is decoded without the others, one stream for any threads."""

import numpy as np
import pytest
from h264lite.standard.bits import NAL_IDR, NAL_SLICE

from ..support import round_trip, sequences
from ..support.broken import units_of
from ..cuda_emulator.fixtures import gpu  # noqa: F401
from .test_cuda_streams import compare
from .test_streams import QUICK, planes

TOOLS = (
    {"keyint": 1, "qp": 24}, {"preset": "ultrafast", "qp": 22}, {"preset": "superfast", "crf": 20}, {"crf": 26, "bframes": 3},
    {"profile": "baseline", "qp": 24, "ref": 3}, {"profile": "baseline", "qp": 30, "subme": 7}, {"no_cabac": True, "bframes": 2, "crf": 24},
    {"bframes": 0, "tune": "zerolatency", "crf": 24}, {"preset": "slow", "crf": 24, "bframes": 5, "b_pyramid": "dyadic"},
    {"no_8x8dct": True, "subme": 7, "qp": 28, "bframes": 2}, {"deblock_within_slices": True, "bframes": 2, "qp": 26}, {"qp": 4, "subme": 2},
    {"no_deblock": True, "weightp": 2, "qp": 30}, {"bitrate": 400}, {"vbv_maxrate": 300, "vbv_bufsize": 100, "crf": 20},
    {"keyint": 4, "intra_refresh": True, "crf": 24}, {"aq_mode": 1, "subme": 5, "crf": 30, "trellis": 0},
)  # fmt: skip


def slices_of(stream):
    """The NAL units of slices, without start codes."""
    units = [unit.lstrip(b"\0")[1:] for unit in units_of(stream)]
    return [unit for unit in units if unit[0] & 31 in (NAL_SLICE, NAL_IDR)]


@pytest.mark.half
@pytest.mark.parametrize("most", (150, 600, 1200))
@pytest.mark.parametrize("tools", TOOLS, ids=str)
@pytest.mark.parametrize("name", QUICK)
def test_decoders_agree(name, tools, most):
    clip = sequences.clip(name)
    stream = round_trip.check(planes(clip, 7), clip.width, clip.height, slice_max_size=most, threads=1, **tools)
    sizes = [len(unit) for unit in slices_of(stream)]
    assert max(sizes) <= most and len(sizes) > 7, sizes


ON_GPU = (
    {"qp": 24, "keyint": 1}, {"qp": 26, "ref": 2, "preset": "superfast"}, {"qp": 26, "bframes": 2, "keyint": 5},
    {"qp": 24, "no_cabac": True, "subme": 5, "bframes": 2}, {"qp": 22, "profile": "baseline", "deblock_within_slices": True},
    {"qp": 1, "keyint": 3}, {"crf": 24, "bframes": 3, "subme": 7, "slice_max_size": 300},
    {"qp": 24, "bframes": 0, "subme": 7, "slice_max_size": 300, "deblock_within_slices": False, "keyint": 9},
    {"qp": 24, "bframes": 0, "subme": 7, "slice_max_size": 300, "no_8x8dct": True},
    {"qp": 24, "bframes": 3, "subme": 5, "slice_max_size": 300},
    {"qp": 24, "bframes": 3, "subme": 7, "b_adapt": 0, "no_8x8dct": True, "slice_max_size": 300, "scenecut": 0},
)  # fmt: skip


@pytest.mark.parametrize("tools", ON_GPU, ids=str)
def test_cuda_gives_the_same_bytes(gpu, tools):  # noqa: F811
    options = {"slice_max_size": 150, **tools}
    compare(round_trip.noise_clip(82, 66, 5, 3), 82, 66, **options)
