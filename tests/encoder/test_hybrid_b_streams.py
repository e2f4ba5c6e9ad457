"""Streams with B frames, rows of each frame on both devices: the bytes of the CPU, also if the GPU is lost on the way."""

import warnings

import h264lite
import pytest
from h264lite.scheduler.planning.plan import Plan

from .. import round_trip
from ..cuda_emulator.fixtures import driver, gpu, launches_by_frame, on_gpus  # noqa: F401
from .test_hybrid_streams import compare, config, encode

FIXED = {"b_adapt": 0, "no_scenecut": True, "threads": 1}
TOOLS = (
    (4, {"bframes": 1, "subme": 5, "no_weightb": True}),
    (6, {"bframes": 3, "subme": 6, "ref": 3}),
    (6, {"bframes": 3, "subme": 7, "psy_rd": 1, "b_pyramid": "none", "no_deblock": True}),
    (10, {"bframes": 7, "b_pyramid": "dyadic", "ref": 3, "subme": 2}),
    (5, {"bframes": 2, "no_cabac": True, "slices": 2, "subme": 5, "no_8x8dct": True}),
    (5, {"bframes": 2, "no_cabac": True, "subme": 6, "me": "step", "ref": 2}),
    (5, {"bframes": 2, "subme": 6, "slices": 3, "cqm": "jvt", "profile": "high", "qp": 20}),
    (6, {"bframes": 2, "weightp": 1, "subme": 2, "trellis": 0}),
    (4, {"bframes": 2, "qp": 1, "subme": 2}),  # I_PCM
    (8, {"bframes": 3, "b_adapt": 1, "no_scenecut": False, "scenecut": 90, "min_keyint": 2, "threads": 2}),
)


@pytest.mark.parametrize(("frames", "tools"), TOOLS, ids=str)
def test_tools(gpu, frames, tools):  # noqa: F811
    splits = [("half", 1), ("one", 0)]
    compare(round_trip.noise_clip(34, 50, frames, 5), 34, 50, splits, **{**FIXED, **tools})
