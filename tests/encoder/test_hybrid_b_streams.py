"""Streams with B frames, rows of each frame on both devices: the bytes of the CPU, also if the GPU is lost on the way."""

import itertools
import random
import warnings

import h264lite
import numpy as np
import pytest
from h264lite.scheduler.cuda_executor import CudaExecutor
from h264lite.scheduler.hybrid.plan import Plan
from h264lite.scheduler.hybrid.tuning.models import Curve, Models
from h264lite.scheduler.hybrid.workers import CpuWorker
from h264lite.scheduler.stages import STAGES

from ..cuda_emulator.fixtures import check_that_nothing_grows, driver, gpu, launches_by_frame, on_gpus  # noqa: F401
from ..fuzz.encoder_cases import Case
from ..fuzz.encoder_cases import clip as synthetic_clip
from ..inside import executor_of, switching_executor_of
from ..scheduler.test_route import HEIGHT as OF_ROUTES
from ..scheduler.test_route import random_plan
from ..support import round_trip
from .test_hybrid_streams import SPLITS, compare, config, encode

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
    (5, {"bframes": 2, "qp": 24, "subme": 10, "aq_mode": 1, "ref": 2}),
    (8, {"bframes": 3, "b_adapt": 1, "no_scenecut": False, "scenecut": 90, "min_keyint": 2, "threads": 2}),
)


@pytest.mark.parametrize(("frames", "tools"), TOOLS, ids=str)
def test_tools(gpu, frames, tools):  # noqa: F811
    splits = [("half", 1), ("one", 0)]
    compare(round_trip.noise_clip(34, 50, frames, 5), 34, 50, splits, **{**FIXED, **tools})


@pytest.mark.parametrize("whole", (0, 1), ids=("whole stages on the processor", "whole stages on the GPU"))
@pytest.mark.parametrize("pyramid", ("none", "normal", "dyadic"))
@pytest.mark.parametrize("ref", (1, 3))
def test_pyramids(gpu, pyramid, ref, whole):  # noqa: F811
    splits = [(rows, whole) for rows in SPLITS[(ref // 2 + whole) % 2 :: 2]]
    options = {**FIXED, "bframes": 4, "b_pyramid": pyramid, "ref": ref, "subme": 2, "merange": 4, "keyint": 8}
    compare(round_trip.noise_clip(18, 50, 11, 4), 18, 50, splits, **options)


@pytest.mark.parametrize("frames", (1, 2, 3))
def test_short_clips(gpu, frames):  # noqa: F811
    compare(round_trip.noise_clip(33, 33, frames, 5), 33, 33, [("one", 1), ("half", 0)], bframes=3)


@pytest.mark.parametrize("threads", (1, 2, 4, 8))
def test_frames_in_flight(gpu, threads):  # noqa: F811
    clip = round_trip.noise_clip(34, 50, 12, 4)
    options = {**FIXED, "bframes": 3, "ref": 2, "subme": 2, "keyint": 9, "threads": threads}
    compare(clip, 34, 50, [("half", threads // 2 % 2)], **options)


@pytest.mark.parametrize("gops", (2, 4))
def test_gops_at_once(gpu, gops):  # noqa: F811
    clip = round_trip.noise_clip(18, 50, 10, 5)
    options = {**FIXED, "bframes": 2, "ref": 2, "subme": 2, "keyint": 4, "gops": gops, "threads": gops}
    compare(clip, 18, 50, [("half", 1), ("all but one", 0)], **options)


def test_derived_motion_beside_i_pcm(gpu):  # noqa: F811
    """See tests/encoder/test_cuda_b_streams.py: explicit motion where rows of both devices meet."""
    clip = synthetic_clip(Case(52, 42, 6, "checkers", 2944697576, {}, True))
    compare(clip, 52, 42, [("half", 1), ("one", 0)], **{**FIXED, "qp": 10, "pbratio": 0.25, "bframes": 5, "subme": 4})


ROWS, DEVICES = 4, ("cpu", "cuda:0")
PLANS = {"split": (2, 1), "other split": (3, 0), "cpu": (ROWS, 0), "gpu": (0, 1)}


@pytest.mark.parametrize("pyramid", ("none", "dyadic"))
def test_to_one_device_and_back(gpu, pyramid):  # noqa: F811
    """The executor of one device goes on with motion, distances and slots of the other's frames."""
    options = {**FIXED, "bframes": 3, "b_pyramid": pyramid, "ref": 2, "subme": 2, "threads": 2, "keyint": 17}
    clip = round_trip.noise_clip(34, 18 + 16 * (ROWS - 2), 26, 5)
    expected, _ = encode(clip, config(34, 50, device="cpu", **options))
    for changes in ({2: "gpu", 9: "split", 13: "cpu", 22: "other split"}, {0: "gpu", 8: "cpu", 14: "gpu", 20: "split"}):
        alone, packets = set(), []
        with h264lite.Encoder.from_config(config(34, 50, ("half", 1), device="hybrid", **options)) as encoder:
            executor = switching_executor_of(encoder)
            for n, planes in enumerate(clip):
                if n in changes:
                    plan = Plan.split(DEVICES, ROWS, *PLANS[changes[n]], "fsbm", 2, True, 2)
                    executor.adaptation.change(plan)
                packets += encoder.encode(tuple(planes))
                alone.add(type(executor.single_device_executor))
            packets += encoder.flush()
        assert b"".join(packet.data for packet in packets) == expected, changes
        assert alone == {CpuWorker, CudaExecutor, type(None)}, changes


@on_gpus
@pytest.mark.parametrize("silent", (False, pytest.param(True, marks=pytest.mark.slow)))
@pytest.mark.parametrize(
    ("split", "options"), ((("half", 1), {"bframes": 1, "ref": 2}), (("one", 0), {"bframes": 3, "threads": 3}),
                           (("half", 0), {"bframes": 3, "keyint": 5, "b_pyramid": "none", "threads": 2})), ids=str,
)  # fmt: skip
def test_it_goes_on_with_the_same_bytes(driver, split, options, silent):  # noqa: F811
    """A GPU that is lost in the middle of any frame, or at the beginning of some."""
    options = {**FIXED, "subme": 1, "merange": 4, "partitions": "none", **options}
    clip = round_trip.noise_clip(18, 34, 9, 5)
    expected, _ = encode(clip, config(18, 34, device="cpu", **options))
    settings = config(18, 34, split, device="hybrid", **options)
    counts = launches_by_frame(driver, clip, lambda: h264lite.Encoder.from_config(settings))
    counts.append(driver.launches)  # frames wait until the end
    halves = [(before + after) // 2 for before, after in itertools.pairwise(counts)]
    places = {at for at in (*counts[::4], *halves) if at < counts[-1]}
    for at in sorted(places):
        driver.launches, driver.fail_after, driver.silent = counts[0], at, silent
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with h264lite.Encoder.from_config(settings, silent) as encoder:  # with reconstructions, or those of references
                packets = round_trip.packets_of(encoder, clip)
        driver.fail_after = None
        texts = [str(w.message) for w in said if w.category is RuntimeWarning]
        assert len(texts) == 1 and "continuing on the CPU from frame" in texts[0], texts
        assert b"".join(packet.data for packet in packets) == expected, at


def test_nothing_is_allocated_for_later_frames(driver):  # noqa: F811
    still = round_trip.noise_clip(18, 50, 4, 2)
    settings = config(18, 50, ("half", 1), device="hybrid", **{**FIXED, "bframes": 2, "subme": 1, "keyint": 20})
    check_that_nothing_grows(driver, still, lambda: h264lite.Encoder.from_config(settings))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "tools", ({"subme": 7, "ref": 2, "b_pyramid": "normal"}, {"no_cabac": True, "subme": 5, "slices": 2}), ids=str
)
def test_any_plan(gpu, tools, seed):  # noqa: F811
    """Every stage with a cut of its own, whole ones anywhere, and another plan after each few frames."""
    rng, options = random.Random(seed), {**FIXED, "bframes": 3, **tools}
    clip = round_trip.noise_clip(34, 16 * OF_ROUTES, 9, 4)
    expected, _ = encode(clip, config(34, 16 * OF_ROUTES, device="cpu", **options))
    packets = []
    with h264lite.Encoder.from_config(config(34, 16 * OF_ROUTES, ("half", 1), device="hybrid", **options)) as encoder:
        adaptation = executor_of(encoder).adaptation
        adaptation.models = None
        for n, planes in enumerate(clip):
            if not n % 3:
                adaptation.change(random_plan(rng, DEVICES))
            packets += encoder.encode(tuple(planes))
        packets += encoder.flush()
    assert b"".join(packet.data for packet in packets) == expected


def test_the_camera_goes_further_than_the_rows_beside(gpu):  # noqa: F811
    """Search centres look around the motion of the whole frame, wherever the other device has its rows."""
    clip = round_trip.noise_clip(34, 130, 5, 5)
    tall = np.concatenate([clip[0][0]] * 3)
    panned = [(tall[60 * n : 60 * n + 130], *planes[1:]) for n, planes in enumerate(clip)]
    for frames in (clip, panned):
        compare(frames, 34, 130, [("half", 0), ("half", 1), ("one", 1)], **{**FIXED, "bframes": 1, "subme": 2})


def test_a_plan_of_the_planner(gpu, monkeypatch):  # noqa: F811
    """Without a forced split: rows on both devices by a guess, corrected by the times of B frames too."""
    both = dict.fromkeys(STAGES, Curve.line(1e-7, 1e-6))
    models = Models({(stage, device): curve for stage, curve in both.items() for device in DEVICES}, {}, 2)
    monkeypatch.setattr("h264lite.scheduler.hybrid.start.guess", lambda *_: models)
    options = {**FIXED, "bframes": 2, "subme": 2, "threads": 2}
    clip = round_trip.noise_clip(34, 130, 9, 5)
    stream, _ = encode(clip, config(34, 130, device="hybrid", **options))
    assert stream == encode(clip, config(34, 130, device="cpu", **options))[0]
