"""A plan that leaves everything to one device hands the pictures over to its own executor, and back: the same bytes."""

import warnings

import h264lite
import pytest
from h264lite.scheduler.arrays import Size
from h264lite.scheduler.cuda_executor import CudaExecutor
from h264lite.scheduler.hybrid.plan import Plan
from h264lite.scheduler.hybrid.residency import NOTHING, resident_in
from h264lite.scheduler.hybrid.route import FrameTraits, all_resident_in, route
from h264lite.scheduler.hybrid.workers import CpuWorker

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..inside import switching_executor_of
from ..support import round_trip
from .test_cuda_frames import upload
from .test_hybrid_streams import config, encode

WIDTH, HEIGHT, ROWS, FRAMES = 18, 66, 5, 14
QUICK = {"subme": 1, "merange": 4, "partitions": "none"}
DEVICES = ("cpu", "cuda:0")
PLANS = {"split": (2, 1), "other split": (4, 0), "cpu": (ROWS, 0), "gpu": (0, 1)}
OWN = {"c": CpuWorker, "g": CudaExecutor, "-": type(None)}


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 5)


def encode_by(changes, clip, keep=True, **options):
    """(stream, who did each picture alone: c, g or -, packets). changes: {picture: the plan from it on}."""
    settings = config(WIDTH, HEIGHT, ("half", 1), device="hybrid", **options)
    alone, packets = "", []
    with h264lite.Encoder.from_config(settings, keep) as encoder:
        executor = switching_executor_of(encoder)
        for n, planes in enumerate(clip):
            if n in changes:
                executor.adaptation.change(Plan.split(DEVICES, ROWS, *PLANS[changes[n]]))
            packets += encoder.encode(tuple(planes))
            alone += next(letter for letter, kind in OWN.items() if isinstance(executor.single_device_executor, kind))
        packets += encoder.flush()
    return b"".join(packet.data for packet in packets), alone, packets


@on_gpus
@pytest.mark.parametrize(
    "options", ({"threads": 1, **QUICK}, {"threads": 2, "ref": 3, "slices": 2}, {"threads": 3, "ref": 3, "qp": 3, **QUICK},
                {"threads": 4, "ref": 2, "no_deblock": True, **QUICK}), ids=str,
)  # fmt: skip
def test_to_one_device_and_back(driver, clip, options):  # noqa: F811
    """The first picture of a plan still gathers what the device lacks; from the next on it works alone."""
    expected, decoded = encode(clip, config(WIDTH, HEIGHT, device="cpu", **options))
    for changes, who in (
        ({2: "gpu", 6: "split", 8: "cpu", 11: "other split"}, "---ggg---cc---"),
        ({1: "cpu", 4: "gpu", 7: "cpu", 9: "split", 10: "gpu"}, "--cc-gg-c--ggg"),
        ({0: "gpu", 9: "split"}, "ggggggggg-----"),
        ({0: "cpu", 5: "other split", 6: "split"}, "ccccc---------"),
    ):
        stream, alone, packets = encode_by(changes, clip, **options)
        assert alone == who, changes
        round_trip.assert_same([packet.reconstruction for packet in packets], decoded, f"{changes}")
        assert stream == expected, changes


@pytest.mark.parametrize("threads", (1, 2, 3, 4))
def test_where_a_group_of_pictures_begins(driver, clip, threads):  # noqa: F811
    """An IDR frame reads nothing of earlier ones: the device that does everything begins with it, at once."""
    options = {"threads": threads, "ref": 3, "keyint": 4, **QUICK}
    expected, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu", **options))
    changes = {3: "gpu", 4: "cpu", 7: "split", 8: "gpu", 12: "cpu", 13: "gpu"}
    stream, alone, _ = encode_by(changes, clip, **options)
    assert alone == "----ccc-ggggc-" and stream == expected


def test_every_picture_of_a_change(driver, clip):  # noqa: F811
    """Wherever the plan changes, to the other device and back after one frame or three."""
    expected, _ = encode(clip[:8], config(WIDTH, HEIGHT, device="cpu", ref=3, **QUICK))
    for at in (1, 2, 4):
        for device in ("cpu", "gpu"):
            for back in (1, 3):
                stream, _, _ = encode_by({at: device, at + back: "split"}, clip[:8], ref=3, **QUICK)
                assert stream == expected, (at, device, back)


def test_pictures_that_lie_on_the_gpu(driver, clip):  # noqa: F811
    """The GPU takes them as they are; for the processor alone they come down as before, whatever the plan."""
    from h264lite.cuda_src.runtime.device import Device

    expected, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu", qp=3))
    device = Device()
    with device:
        frames = [tuple(upload(device, plane) for plane in planes) if n % 3 else planes for n, planes in enumerate(clip)]
        stream, alone, _ = encode_by({2: "gpu", 7: "cpu", 11: "split"}, frames, qp=3)
    assert stream == expected and alone == "---gggg--c----"
    device.close()


LOSSES = ({"threads": 1, **QUICK}, {"threads": 3, "ref": 3, **QUICK}, {"threads": 2, "ref": 2, "keyint": 5})


@on_gpus
@pytest.mark.parametrize("silent", (False, pytest.param(True, marks=pytest.mark.slow)))
@pytest.mark.parametrize("options", LOSSES, ids=str)
def test_the_gpu_is_lost_after_it_took_over(driver, clip, options, silent):  # noqa: F811
    expected, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu", **options))
    changes = {2: "gpu", 10: "split"}
    counts, real = [], h264lite.Encoder.encode
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h264lite.Encoder, "encode", lambda self, *a: (counts.append(driver.launches), real(self, *a))[1])
        encode_by(changes, clip, **options)
    for frame in (2, 3, 4, 9, 10, 12):
        driver.launches, driver.fail_after, driver.silent = counts[0], counts[frame] + 3, silent
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            stream, *_ = encode_by(changes, clip, **options)
        driver.fail_after = None
        texts = [str(w.message) for w in said if w.category is RuntimeWarning]
        assert len(texts) == 1 and "continuing on the CPU from frame" in texts[0], texts
        assert stream == expected, frame


@on_gpus
def test_a_gpu_that_is_idle_may_be_lost(driver, clip):  # noqa: F811
    """No effect while the CPU works alone; the next divided frame detects it, and the encode continues."""
    expected, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu", ref=2))
    settings = config(WIDTH, HEIGHT, ("half", 1), device="hybrid", ref=2)
    packets = []
    with h264lite.Encoder.from_config(settings) as encoder:
        executor = switching_executor_of(encoder)
        for n, planes in enumerate(clip):
            if n == 3:
                executor.adaptation.change(Plan.split(DEVICES, ROWS, *PLANS["cpu"]))
            if n == 6:
                assert isinstance(executor.single_device_executor, CpuWorker)
                driver.fail_after = driver.launches
            if n == 9:
                executor.adaptation.change(Plan.split(DEVICES, ROWS, *PLANS["split"]))
                with pytest.warns(RuntimeWarning, match="continuing on the CPU from frame 9"):
                    packets += encoder.encode(tuple(planes))
                continue
            packets += encoder.encode(tuple(planes))
        packets += encoder.flush()
    driver.fail_after = None
    assert b"".join(packet.data for packet in packets) == expected


def test_no_room_for_it(driver, clip):  # noqa: F811
    """Where the GPU has no memory left for pictures as they come, the general way goes on."""
    expected, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu"))
    settings = config(WIDTH, HEIGHT, ("half", 1), device="hybrid")
    with h264lite.Encoder.from_config(settings) as encoder:
        executor = switching_executor_of(encoder)
        packets = [packet for planes in clip[:3] for packet in encoder.encode(tuple(planes))]
        driver.memory = sum(allocation.nbytes for allocation in driver.allocations)
        executor.adaptation.change(Plan.split(DEVICES, ROWS, *PLANS["gpu"]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            packets += round_trip.packets_of(encoder, clip[3:])
        assert executor.single_device_executor is None and not executor.may_switch
    assert b"".join(packet.data for packet in packets) == expected


def test_nothing_is_allocated_once_both_ways_were_gone(driver, clip):  # noqa: F811
    settings = config(WIDTH, HEIGHT, ("half", 1), device="hybrid", ref=2, **QUICK)
    plans = [Plan.split(DEVICES, ROWS, *PLANS[name]) for name in ("split", "gpu", "split", "cpu")]
    with h264lite.Encoder.from_config(settings) as encoder:
        executor = switching_executor_of(encoder)
        for n in range(80):
            executor.adaptation.change(plans[n // 5 % 4])
            encoder.encode(tuple(clip[n % FRAMES]))
            if n == 39:
                before, events = len(driver.allocations), driver.events
        assert len(driver.allocations) == before
        assert driver.events <= events + 8  # of pictures under way, as many as threads are late; 40 would be one a frame
        encoder.flush()
    assert not driver.allocations


@pytest.mark.parametrize(("n_ref", "single"), ((0, 0), (1, 0), (3, 1), (2, 1)))
def test_what_one_device_leaves_is_what_a_route_leaves(n_ref, single):
    """`resident_in` equals a route of all frames to that device, so routes repeat; a divided frame is not whole."""
    size = Size(3, ROWS, 48)
    whole, divided = Plan.split(DEVICES, ROWS, ROWS * (not single), single), Plan.split(DEVICES, ROWS, 2, 1)
    valid, memory = NOTHING, DEVICES[single]
    for n in range(4):
        _, valid = route(divided, FrameTraits(size, min(n, n_ref), max(1, n_ref)), valid)
    assert not all_resident_in(valid, memory, ROWS)
    for n in range(5):
        _, valid = route(whole, FrameTraits(size, min(n, n_ref), max(1, n_ref)), valid)
        assert all_resident_in(valid, memory, ROWS)
    only = tuple((key, tuple(pair for pair in held if pair[0] == memory)) for key, held in valid)
    assert only == resident_in(memory, max(1, n_ref), ROWS)
