"""QPs of rate control, macroblock by macroblock, with rows of each frame on both devices: the bytes of the CPU."""

import itertools
import random
import warnings

import h264lite
import pytest
from h264lite.cuda_src.runtime.device import Device
from h264lite.scheduler.cuda_executor import CudaExecutor
from h264lite.scheduler.hybrid.plan import Plan
from h264lite.scheduler.hybrid.workers import CpuWorker
from hypothesis import HealthCheck, given, seed, settings

from ..cuda_emulator.fixtures import check_that_nothing_grows, driver, gpu, launches_by_frame, on_gpus  # noqa: F401
from ..fuzz import rate_cases
from ..inside import changed, switching_executor_of
from ..scheduler.test_route import HEIGHT as OF_ROUTES
from ..scheduler.test_route import random_plan
from ..support import round_trip
from .test_buffer import too_small  # noqa: F401
from .test_cuda_frames import upload
from .test_hybrid_b_streams import DEVICES, PLANS, ROWS
from .test_hybrid_streams import SPLITS, compare, config, encode
from .test_mb_qp import MAPS, ON_GPU, set_mb_qps

CHEAP = {"preset": "superfast", "qp": None, "threads": 1, "rc_lookahead": 3, "subme": 2, "merange": 4}
BUFFER = {"crf": 12, "vbv_maxrate": 120, "vbv_bufsize": 9, "rc_lookahead": 0}  # where predictions are `too_small`
RATES = (
    {"crf": 23, "aq_mode": 0}, {"crf": 23, "no_mbtree": True}, {"crf": 20, "bframes": 2, "ref": 2},
    {"crf": 20, "bframes": 3, "b_pyramid": "dyadic", "scenecut": 40, "slices": 2}, {"bitrate": 80},
    {"bitrate": 60, "bframes": 1}, {"crf": 20, "vbv_maxrate": 90, "vbv_bufsize": 40, "nal_hrd": "cbr"},
    {"bitrate": 90, "vbv_maxrate": 90, "vbv_bufsize": 40},
    {"crf": 25, "zones": "2,4,q=18/5,6,b=2"}, {"crf": 22, "no_deblock": True, "weightp": 2}, {"crf": 3, "ipratio": 1.0},
    {"crf": 24, "subme": 10, "qpmin": 20, "qpmax": 26}, {"bitrate": 80, "subme": 10, "bframes": 1},
)  # fmt: skip


def scenes(width, height):
    """Two clips, one after the other."""
    return round_trip.noise_clip(width, height, 4, 3) + round_trip.noise_clip(width, height, 3, 4)


@pytest.mark.parametrize(("tools", "qp_map"), [*zip(ON_GPU, itertools.cycle(MAPS))], ids=str)
def test_any_qps(gpu, tools, qp_map, monkeypatch):  # noqa: F811
    set_mb_qps(monkeypatch, qp_map)
    compare(round_trip.noise_clip(34, 66, 3, 5), 34, 66, [("half", len(tools) % 2)], aq_mode=1, **tools)


@pytest.mark.parametrize("whole", (0, 1), ids=("whole stages on the processor", "whole stages on the GPU"))
def test_every_split(gpu, whole):  # noqa: F811
    options = {**CHEAP, "crf": 20, "bframes": 2, "slices": 2}
    compare(scenes(34, 66), 34, 66, [(rows, whole) for rows in SPLITS], **options)


@pytest.mark.parametrize("options", RATES, ids=str)
def test_rates(gpu, options):  # noqa: F811
    compare(scenes(34, 50), 34, 50, [("half", 1), ("one", 0)], **{**CHEAP, **options})


def test_default_options(gpu):  # noqa: F811
    compare(scenes(34, 50)[2:6], 34, 50, [("half", 0)], qp=None, crf=23, threads=2)


def test_asked_types_and_qps(gpu, tmp_path):  # noqa: F811
    qpfile = tmp_path / "asked"
    qpfile.write_text("1 P 30\n3 I\n5 b 12\n")
    compare(scenes(34, 50), 34, 50, [("half", 1), ("all but one", 0)], **CHEAP, crf=24, bframes=2, qpfile=str(qpfile))


@pytest.mark.parametrize("threads", (1, 3, 4))
def test_frames_in_flight(gpu, threads):  # noqa: F811
    options = {**CHEAP, "crf": 22, "bframes": 2, "keyint": 5, "threads": threads}
    compare(scenes(34, 34), 34, 34, [("half", threads % 2)], **options)


def test_gops_at_once(gpu):  # noqa: F811
    compare(scenes(18, 50), 18, 50, [("half", 1)], **{**CHEAP, "crf": 22, "keyint": 3, "gops": 2, "threads": 2})


def test_some_frames_with_one_qp(gpu, monkeypatch):  # noqa: F811
    """Routes of frames with one QP and with many are not mistaken for one another."""
    set_mb_qps(monkeypatch, "some")
    clip = round_trip.noise_clip(18, 50, 5, 4)
    compare([clip[n % 5] for n in range(14)], 18, 50, [("half", 1), ("one", 0)], aq_mode=1, **{**CHEAP, "qp": 24})


@pytest.mark.parametrize("bframes", (0, 2))
def test_frames_that_lie_on_the_gpu(gpu, bframes):  # noqa: F811
    clip, options = scenes(34, 50), {**CHEAP, "crf": 20, "bframes": bframes}
    expected, _ = encode(clip, config(34, 50, device="cpu", **options))
    device = Device()
    with device:
        frames = [tuple(upload(device, plane) for plane in planes) for planes in clip]
        for split in (("half", 1), ("all but one", 0)):
            assert encode(frames, config(34, 50, split, device="hybrid", **options))[0] == expected, split
    device.close()


@pytest.mark.parametrize("split", (("half", 1), ("one", 0), ("none", 1)), ids=str)
@pytest.mark.parametrize("options", [{"keyint": 4, "ref": 2}, {"bframes": 2, "nal_hrd": "cbr"}], ids=str)
def test_frames_are_coded_again(gpu, options, split, too_small):  # noqa: F811
    settings = {**CHEAP, **BUFFER, **options}
    pairs = round_trip.rows(scenes(34, 34), 34, 34, device="cpu", **settings)
    assert any(frame.in_buffer.tries > 1 for frame, _ in pairs)
    compare(scenes(34, 34), 34, 34, [split], **settings)


def changing(clip, size, changes, options):
    """The stream where plans change, (rows, device of whole stages) by frame, and executors of single devices may take over;
    the types of those that did.
    """
    alone = set()
    with h264lite.Encoder.from_config(config(*size, ("half", 1), device="hybrid", **options)) as encoder:
        executor = switching_executor_of(encoder)
        run = executor.adaptation.learn
        tries = itertools.count()

        def learn(n_ref=1):
            alone.add(type(executor.single_device_executor))
            n = next(tries)  # a frame that is coded again counts again
            if n in changes:
                executor.adaptation.change(changes[n])
            run(n_ref)

        executor.adaptation.learn = learn
        packets = round_trip.packets_of(encoder, clip)
    return b"".join(packet.data for packet in packets), alone


@on_gpus
@pytest.mark.parametrize(
    "options", [{"crf": 20, "bframes": 2}, {"bitrate": 90}, {**BUFFER, "keyint": 11}, {**BUFFER, "bframes": 2}], ids=str
)
def test_to_one_device_and_back(driver, options, too_small):  # noqa: F811
    """Also between the tries of a frame."""
    options, size = {**CHEAP, "ref": 2, **options}, (34, 18 + 16 * (ROWS - 2))
    clip = scenes(*size) * 2
    expected, _ = encode(clip, config(*size, device="cpu", **options))
    has_b_frames, seen = bool(options.get("bframes")), set()
    for order, every in (
        (("gpu", "split", "cpu", "other split"), 5),
        (("cpu", "gpu", "other split"), 4),
        (("gpu", "cpu"), 1),
    ):
        plans = [Plan.split(DEVICES, ROWS, *PLANS[name], "fsbm", 2, True, has_b_frames) for name in order]
        changes = {every * n: plans[n % len(plans)] for n in range(60)}
        stream, alone = changing(clip, size, changes, options)
        assert stream == expected, (order, every)
        seen |= alone
    assert seen == {CpuWorker, CudaExecutor, type(None)}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("options", [{"crf": 20, "bframes": 3, "subme": 7}, {"bitrate": 80, "no_cabac": True, "slices": 2},
                                     {**BUFFER, "bframes": 1, "subme": 6}], ids=str)  # fmt: skip
def test_any_plan(gpu, options, seed, too_small):  # noqa: F811
    """Every stage with a cut of its own, whole ones anywhere, another plan for every frame and every second try."""
    rng, options, size = random.Random(seed), {**CHEAP, **options}, (34, 16 * OF_ROUTES)
    clip = scenes(*size)
    expected, _ = encode(clip, config(*size, device="cpu", **options))
    changes = {n: random_plan(rng, DEVICES) for n in range(0, 40, 2)}
    assert changing(clip, size, changes, options)[0] == expected


@pytest.mark.parametrize("number", (0, pytest.param(1, marks=pytest.mark.slow)))
def test_random_settings(gpu, number):  # noqa: F811
    """Those of tests/fuzz/rate_cases.py, with frames a bit smaller and any split."""
    count = []

    @seed(number)
    @settings(max_examples=200 if number else 15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(rate_cases.cases())
    def one(case):
        case = case._replace(width=min(case.width, 48), height=min(case.height, 48), frames=min(case.frames, 6))
        case.options.pop("gops", None)
        try:
            cpu, hybrid = (rate_cases.settings_of(case, device) for device in ("cpu", "hybrid"))
        except h264lite.OptionError:
            return
        rng, clip = random.Random(case.seed), rate_cases.clip_of(case)
        split = rng.randrange(cpu.coding.mb_height + 1), rng.randrange(2)
        assert encode(clip, changed(hybrid, split=split))[0] == encode(clip, cpu)[0]
        count.append(cpu.hrd.buffer is not None)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # frames that do not fit, types that are not possible
        one()
    assert len(count) > 5 and any(count)


@on_gpus
@pytest.mark.parametrize("options", [{"crf": 22, "bframes": 2}, {**BUFFER, "keyint": 4, "ref": 2}], ids=str)
def test_a_gpu_that_is_lost(driver, options, too_small):  # noqa: F811
    """In the middle of a frame, and between tries."""
    clip, options = scenes(34, 34), {**CHEAP, **options}
    expected, _ = encode(clip, config(34, 34, device="cpu", **options))
    settings = config(34, 34, ("half", 1), device="hybrid", **options)
    counts = launches_by_frame(driver, clip, lambda: h264lite.Encoder.from_config(settings))
    first, last = counts[0], driver.launches
    for part in (2, 5, 8, 10):
        driver.launches, driver.fail_after = first, first + (last - first) * part // 12
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            stream, _ = encode(clip, settings)
        driver.fail_after = None
        assert any("on the CPU" in str(one.message) for one in said)
        assert stream == expected, part


def test_nothing_is_allocated_for_later_frames(driver):  # noqa: F811
    still = round_trip.noise_clip(18, 50, 4, 2)
    settings = config(18, 50, ("half", 1), device="hybrid", **{**CHEAP, "crf": 22, "keyint": 20, "scenecut": 0})
    check_that_nothing_grows(driver, still, lambda: h264lite.Encoder.from_config(settings))
