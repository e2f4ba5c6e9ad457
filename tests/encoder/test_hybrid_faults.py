"""A GPU that is lost, or hangs, while the processor does other rows: the same bytes, one warning; and who hangs is named."""

import threading
import time
import warnings

import h264lite
import pytest
from h264lite.cuda_src.runtime.device import Device
from h264lite.encoder.errors import Error
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.hybrid.executor import HybridExecutor
from h264lite.scheduler.stages import STAGES
from h264lite.scheduler.threads import watchdog
from h264lite.scheduler.threads.watchdog import Watchdog

from ..cuda_emulator.fixtures import check_that_nothing_grows, driver, launches_by_frame, on_gpus  # noqa: F401
from ..inside import changed
from ..scheduler.test_hybrid_executor import encode_with, two_processors
from ..support import round_trip
from .test_cuda_frames import Array
from .test_hybrid_streams import config, encode

WIDTH, HEIGHT, FRAMES = 18, 66, 8
QUICK = {"subme": 1, "merange": 4, "partitions": "none"}  # few stages: a fault does not ask which


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 5)


@on_gpus
@pytest.mark.parametrize("silent", (False, True))
@pytest.mark.parametrize(
    ("split", "options"), ((("half", 1), {"threads": 1, **QUICK}), (("one", 1), {"threads": 3, "ref": 3}),
                           (("half", 0), {"threads": 2, "keyint": 3, "ref": 2, **QUICK})), ids=str,
)  # fmt: skip
def test_it_goes_on_with_the_same_bytes(driver, clip, split, options, silent):  # noqa: F811
    expected, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu", **options))
    settings = config(WIDTH, HEIGHT, split, device="hybrid", **options)
    counts = launches_by_frame(driver, clip, lambda: h264lite.Encoder.from_config(settings))
    for n, frame in enumerate((0, 1, 4, FRAMES - 1)):
        places = counts[frame], (counts[frame] + counts[frame + 1]) // 2
        at = places[(n + silent) % 2]  # the other one with the other kind of loss
        driver.launches, driver.fail_after, driver.silent = counts[0], at, silent
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with h264lite.Encoder.from_config(settings, True) as encoder:
                packets = round_trip.packets_of(encoder, clip)
        driver.fail_after = None
        texts = [str(w.message) for w in said if w.category is RuntimeWarning]
        assert len(texts) == 1 and "continuing on the CPU from frame" in texts[0], texts
        assert b"".join(packet.data for packet in packets) == expected, (frame, at)


def test_a_gpu_that_hangs_counts_as_lost(driver, clip, monkeypatch):  # noqa: F811
    """Its events never complete: the waiting thread gives up and names what it waits for, and the CPU continues."""
    monkeypatch.setenv(watchdog.VARIABLE, "0.3")
    expected, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu"))
    with h264lite.Encoder.from_config(config(WIDTH, HEIGHT, ("half", 1), device="hybrid"), True) as encoder:
        packets = [packet for planes in clip[:4] for packet in encoder.encode(tuple(planes))]
        driver.stuck = True
        with pytest.warns(RuntimeWarning, match=r"cuda:0.*: not done after 0.3 s .*continuing on the CPU"):
            packets += round_trip.packets_of(encoder, clip[4:])
    assert b"".join(packet.data for packet in packets) == expected


def test_a_full_gpu(driver, clip):  # noqa: F811
    expected, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu"))
    settings = config(WIDTH, HEIGHT, ("half", 1), device="hybrid")
    encode(clip, settings)
    for memory in (driver.most // 8, driver.most * 9 // 10, driver.most - 100):
        driver.memory, driver.allocated = memory, 0
        with pytest.warns(RuntimeWarning, match=r"MiB left.*the CPU"), h264lite.Encoder.from_config(settings) as encoder:
            packets = round_trip.packets_of(encoder, clip)
        assert b"".join(packet.data for packet in packets) == expected
        assert not driver.allocations


def test_nothing_is_allocated_for_later_frames(driver):  # noqa: F811
    settings = config(WIDTH, HEIGHT, ("half", 1), device="hybrid", ref=3, keyint=20, **QUICK)
    still = round_trip.noise_clip(WIDTH, HEIGHT, 4, 2)
    check_that_nothing_grows(driver, still, lambda: h264lite.Encoder.from_config(settings))


def test_nothing_is_allocated_for_frames_on_the_gpu(driver):  # noqa: F811
    settings, other = config(WIDTH, HEIGHT, ("half", 1), device="hybrid", ref=1, **QUICK), Device()
    with other:
        clip = round_trip.noise_clip(WIDTH, HEIGHT, 2, 2)
        still = [tuple(Array(other.upload(plane)) for plane in planes) for planes in clip]
        with h264lite.Encoder.from_config(settings) as encoder:
            for n in range(40):
                encoder.encode(still[n % 2])
                if n == 20:
                    events = driver.events
            assert driver.events <= events + 4


def test_a_stuck_processor_is_named(clip, monkeypatch):
    """A side that does not come back ends the encode with its name, the stage and the frame."""
    encode_with(two_processors(WIDTH, HEIGHT, 2), clip[:2], WIDTH, HEIGHT, monkeypatch)  # loads the kernels
    release, here = threading.Event(), threading.current_thread()
    real = STAGES["full_search"].cpu_function

    def stuck(*arguments):
        if threading.current_thread() is not here:
            release.wait(60)
        real(*arguments)

    monkeypatch.setitem(vars(STAGES["full_search"]), "cpu_function", stuck)
    try:
        with pytest.raises(Error, match=r"search_centre, full_search.* on cpu:slow, frame 1: not done after 6 s"):
            encode_with(two_processors(WIDTH, HEIGHT, 2, limit=6.0), clip, WIDTH, HEIGHT, monkeypatch)
    finally:
        release.set()


def test_the_watchdog_says_what_nobody_can_stop():
    said, over = [], threading.Event()
    dog = Watchdog(0.1, lambda text: (said.append(text), over.set()))
    with dog.on("intra on cpu, frame 7"):
        assert over.wait(10)
    dog.close()
    assert said == ["intra on cpu, frame 7: not done after 0.1 s (H264LITE_WATCHDOG)"]


def test_time_in_which_the_process_was_stopped_does_not_count(monkeypatch):
    """By a signal or with its machine: work that had no time to end is not late."""
    clock, said, looks = [0.0], [], iter((False, False, False, True))
    monkeypatch.setattr(watchdog.time, "monotonic", lambda: clock.append(clock[-1] + 1000) or clock[-1])
    dog = Watchdog(4.0, said.append)
    dog.wait(lambda: next(looks), lambda: "work")  # three looks at work that has not ended
    dog.limit = 0.4
    with dog.on("work"):
        time.sleep(0.25)
    dog.close()
    assert not said and clock[-1] > 4000


@pytest.mark.parametrize("text", ("soon", "-1", "nan"))
def test_a_limit_that_is_none(driver, monkeypatch, text):  # noqa: F811
    monkeypatch.setenv(watchdog.VARIABLE, text)
    with pytest.raises(ValueError, match=f"{watchdog.VARIABLE}={text}: must be seconds"):
        watchdog.limit_from_environment()
    with pytest.raises(Error, match=f"{watchdog.VARIABLE}={text}: must be seconds"):
        h264lite.Encoder.from_config(config(WIDTH, HEIGHT, ("half", 1), device="hybrid"))


def test_what_is_refused():
    with pytest.raises(ValueError, match="at least one CPU and at most one GPU"):
        HybridExecutor(None, [], Watchdog(0))
    assert changed(Config.from_options(width=16, height=16), split=(0, 1)).machine.split == (0, 1)
