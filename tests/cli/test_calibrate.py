"""Calibration of a GPU's time models: predictions equal encodes, whichever side is the limit; curves do not fall."""

import random

import pytest
from h264lite.cli.measuring.calibrate import calibrated, host_seconds, loop_seconds
from h264lite.cli.measuring.measure import Samples, TimedEncode, _waited
from h264lite.encoder.settings.device_prediction import predict_single_device
from h264lite.scheduler.arrays import Size
from h264lite.scheduler.hybrid.plan import SPLITS
from h264lite.scheduler.hybrid.planner import make_plan
from h264lite.scheduler.hybrid.route import FrameTraits
from h264lite.scheduler.hybrid.tuning.models import CPU, ISSUE, LOAD, Curve, Link, Models, guess
from h264lite.scheduler.trace import HOST, Trace

GPU = "cuda:0"
SIZES = ((176, 144), (352, 288), (1280, 720), (1920, 1080))
LINKS = {(CPU, GPU): Link(1e-5, 5e10), (GPU, CPU): Link(1e-5, 5e10)}


def watched(size, frame, wait=0.3):
    """An encode whose thread waits this share of the time, while clocks see 0.8 of what it does itself."""
    encode = TimedEncode(GPU, *size, 8, 100, frame, wait=wait * frame)
    encode.load, encode.loop, encode.entropy = (share * 0.8 * frame * (1 - wait) for share in (0.3, 0.5, 0.2))
    return encode


def measured(encodes, events, streams=4):
    """Models of a GPU of the guess with stages `events` times too slow, by macroblocks, and of what clocks see."""
    known, samples = guess([GPU], 1), Samples()
    for encode in encodes:
        timed = TimedEncode(GPU, encode.width, encode.height, 8, 9, 0.0)
        timed.stages = {name: curve.at(encode.macroblocks) * events(encode.macroblocks)
                        for (name, _), curve in known.stages.items() if name not in (LOAD, ISSUE, "entropy")}  # fmt: skip
        samples.add_gpu(encode, timed)
    stages = {key: Curve.measured([(n, t) for n, t, _ in points]) for key, points in samples.points.items()}
    return Models(stages, LINKS, 8, streams)


def picture(encode, ref=1):
    return FrameTraits(Size(encode.mb_width, encode.mb_height, 48), ref, ref)


def too_slow_then_too_fast(n):
    return 1.5 if n < 1000 else 0.8


@pytest.mark.parametrize("streams", [4, 1])
def test_where_the_gpu_binds_its_loop_takes_what_a_frame_took(streams):
    encodes = [watched(size, frame) for size, frame in zip(SIZES, (200e-6, 260e-6, 600e-6, 1100e-6))]
    before = measured(encodes, too_slow_then_too_fast, streams)
    models = calibrated(before, GPU, encodes)
    for encode in encodes:
        prediction = predict_single_device(models, GPU, picture(encode))
        assert abs(predict_single_device(before, GPU, picture(encode)).seconds / encode.frame - 1) > 0.05
        assert prediction.bound == "loop" and prediction.seconds == pytest.approx(encode.frame, rel=0.003)
        assert prediction.times["host thread"] == pytest.approx(0.7 * encode.frame, rel=0.003)  # all but what it waits
        changed = [models.stages[name, GPU].at(encode.macroblocks) / before.stages[name, GPU].at(encode.macroblocks)
                   for name in ("full_search", "mode_decision", "inter_residual")]
        assert changed == pytest.approx([changed[0]] * 3, rel=1e-3)  # as they are beside each other
        assert predict_single_device(models, GPU, picture(encode, 3)).seconds > 1.1 * prediction.seconds  # models are for one


@pytest.mark.parametrize("streams", [4, 1])
def test_where_the_host_binds_the_gpu_takes_no_longer(streams):
    frames = (120e-6, 130e-6, 900e-6, 1600e-6)  # the GPU is believed slower than that at the first two
    encodes = [watched(size, frame, 0.01) for size, frame in zip(SIZES, frames)]
    before = measured(encodes, too_slow_then_too_fast, streams)
    models = calibrated(before, GPU, encodes)
    for encode in encodes:
        loop = loop_seconds(before, GPU, encode)
        assert loop_seconds(models, GPU, encode) == pytest.approx(min(loop, encode.frame), rel=0.007)
        prediction = predict_single_device(models, GPU, picture(encode))
        assert prediction.seconds == pytest.approx(encode.frame, rel=0.003)
        assert prediction.bound == "host thread"
    assert loop_seconds(before, GPU, encodes[0]) > 1.2 * frames[0] and loop_seconds(before, GPU, encodes[3]) < frames[3]


def test_who_binds_may_change_from_size_to_size():
    encodes = [watched(size, frame, wait) for size, frame, wait in zip(
        SIZES, (200e-6, 300e-6, 700e-6, 900e-6), (0.02, 0.3, 0.01, 0.2))]
    models = calibrated(measured(encodes, too_slow_then_too_fast), GPU, encodes)
    for encode in encodes:
        assert predict_single_device(models, GPU, picture(encode)).seconds == pytest.approx(encode.frame, rel=0.003)


def test_curves_never_fall_and_agree_nevertheless():
    for seed in range(60):
        rng = random.Random(seed)
        gpu, thread, encodes = 150e-6, 150e-6, []
        for size in SIZES:
            gpu, thread = gpu * rng.uniform(1.02, 2.5), thread * rng.uniform(1.02, 2.5)
            encodes.append(watched(size, max(gpu, thread), max(0.0, 1 - thread / gpu)))
        slower = {encode.macroblocks: 10 ** rng.uniform(-0.3, 0.5) for encode in encodes}
        models = calibrated(measured(encodes, slower.get, rng.choice([1, 4])), GPU, encodes)
        for curve in models.stages.values():
            seconds = [t for _, t in curve.points]
            assert seconds == sorted(seconds), f"seed {seed}"
        for encode in encodes:
            off = predict_single_device(models, GPU, picture(encode)).seconds / encode.frame - 1
            assert abs(off) < 0.01, f"seed {seed}: {encode.width}x{encode.height} {100 * off:+.1f} %"


def test_a_smaller_picture_that_took_longer_shares_the_mean():
    encodes = [watched(size, frame) for size, frame in zip(SIZES, (240e-6, 200e-6, 600e-6, 1100e-6))]
    models = calibrated(measured(encodes, too_slow_then_too_fast), GPU, encodes)
    for encode in encodes[:2]:
        assert loop_seconds(models, GPU, encode) == pytest.approx(220e-6, rel=0.06)
        assert 0.8 < host_seconds(models, GPU, encode) / (0.7 * 220e-6) < 1.2


def test_copies_that_are_believed_too_slow_leave_the_stages_something():
    encodes = [watched(SIZES[3], 500e-6)]
    models = measured(encodes, too_slow_then_too_fast, 1)
    models.links[CPU, GPU] = Link(1e-5, 4e9)  # 0.8 ms a frame
    models = calibrated(models, GPU, encodes)
    assert 1e-6 < models.stages["full_search", GPU].at(8160) < 100e-6


def test_plans_that_share_a_picture_are_compared_by_the_same_times():
    encodes = [watched(size, frame) for size, frame in zip(SIZES, (200e-6, 260e-6, 600e-6, 1100e-6))]
    models = calibrated(measured(encodes, too_slow_then_too_fast), GPU, encodes)
    models.stages |= {key: curve for key, curve in guess([CPU], 8).stages.items() if key[1] == CPU}
    before = models.stages["full_search", CPU]
    planned = make_plan((CPU, GPU), picture(encodes[1]), models, tries=10)
    assert planned.single_device_seconds[GPU] == pytest.approx(260e-6, rel=0.003)
    half = dict.fromkeys(SPLITS, (9, 9)) | {"mode_decision": (0, 18), "intra": (0, 18)}
    both = make_plan((CPU, GPU), picture(encodes[1]), models, {"rows_cpu": 9})
    assert both.plan.rows["full_search"] == half["full_search"]
    assert both.timeline.stage_seconds()["full_search", GPU] == pytest.approx(models.seconds("full_search", GPU, 9, 22))
    assert calibrated(models, GPU, encodes).stages["full_search", CPU] is before  # the processor's stay


def test_waiting_ends_where_writing_begins():
    trace = Trace()
    for n in range(6):
        trace.add(HOST, "loop", "wait", 1.0 + n, 0.5, n)
        trace.add(HOST, "MainThread", "entropy", 1.4 + n, 0.1, n)
        trace.add(HOST, "loop", "loop", 1.6 + n, 0.2, n)
    trace.add(HOST, "loop", "wait", 9.0, 0.5, 7)  # interrupted
    assert _waited(trace, 2) == pytest.approx(4 * 0.4)
    assert watched(SIZES[0], 1e-3, 0.04).host_binds and not watched(SIZES[0], 1e-3, 0.06).host_binds
    assert watched(SIZES[0], 1e-3, 0.04).host_time == 1e-3
    assert watched(SIZES[0], 1e-3, 0.25).host_time == pytest.approx(0.75e-3)
