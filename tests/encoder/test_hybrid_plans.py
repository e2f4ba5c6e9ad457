"""Device hybrid as it is planned: from measured models or a guess, with pins; the bytes are those of one device."""

import itertools

import h264lite
import pytest
from h264lite.encoder.settings import tuning_lookup
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.cuda_executor import CudaExecutor
from h264lite.scheduler.executor import Executor
from h264lite.scheduler.hybrid.executor import HybridExecutor
from h264lite.scheduler.hybrid.plan import Plan
from h264lite.scheduler.hybrid.probing import Probing
from h264lite.scheduler.hybrid.tuning.models import CPU, ENTROPY, ISSUE, LOAD, Curve, Link, guess
from h264lite.scheduler.hybrid.tuning.tuning_file import Machine, Tuning, cache_file, now, save

from ..cuda_emulator.driver import BUILT
from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..inside import executor_of
from ..support import round_trip
from ..support.steady import steady


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("h264lite.cuda_src.runtime.compiler.cache_folder", lambda: BUILT)  # kernels take nvcc a minute
    monkeypatch.setattr(tuning_lookup, "this_machine", Machine)
    yield


def tune(pins=None, slower=1.0, link=None):
    """A file that says: the GPU takes `slower` times what the processor takes, and copies what `link` says."""
    models = guess([CPU, "cuda:0"], 2)
    fast = ("mode_decision", "intra", "extend_luma", "extend_cb", "extend_cr", ENTROPY, LOAD, ISSUE, "compact", "load_i420")
    for stage, device in list(models.stages):
        each = 1e-9 if stage in fast else 1e-5
        models.stages[stage, device] = Curve.line(0.0, each * (slower if device != CPU else 1.0))
    if link is not None:
        models.links = dict.fromkeys(models.links, link)
    save(Tuning(Machine(), models, now(), pins=pins or {}), cache_file())


def encode(clip, width, height, device, **options):
    settings = Config.from_options(width=width, height=height, device=device, threads=2, **steady(options))
    with h264lite.Encoder.from_config(settings) as encoder:
        executor = executor_of(encoder)
        packets = [packet for planes in clip for packet in encoder.encode(tuple(planes))] + encoder.flush()
    return b"".join(packet.data for packet in packets), executor


def test_a_plan_for_equal_devices_gives_both_rows_and_the_same_bytes(gpu):  # noqa: F811
    clip = round_trip.noise_clip(66, 130, 5, 3)
    expected, _ = encode(clip, 66, 130, "cpu")
    tune()
    stream, executor = encode(clip, 66, 130, "hybrid")
    assert isinstance(executor, HybridExecutor) and executor.adaptation.plans[0].single is None
    assert 0 < executor.adaptation.plans[0].rows["full_search"][0] < 9
    assert stream == expected
    assert executor.adaptation.models.drift() >= 0


def test_where_one_device_is_better_it_works_alone(gpu):  # noqa: F811
    clip = round_trip.noise_clip(66, 66, 3, 3)
    expected, _ = encode(clip, 66, 66, "cpu")
    tune(slower=1e4)
    stream, executor = encode(clip, 66, 66, "hybrid")
    assert isinstance(executor, Executor) and stream == expected


def test_an_idle_gpu_is_measured_again(gpu, monkeypatch):  # noqa: F811
    """The file says that the GPU is slow, so the processor works alone; the GPU is asked, and then does the frames."""
    monkeypatch.setattr("h264lite.scheduler.hybrid.start.Probing", lambda: Probing(share=1.0))
    monkeypatch.setattr("h264lite.scheduler.hybrid.start.TOO_SLOW", 0.0)
    clip = round_trip.noise_clip(66, 66, 4, 3)
    tune(slower=9.0, link=Link(0.004, 1e8))
    settings = Config.from_options(width=66, height=66, device="hybrid", threads=2, ref=2, keyint=25, subme=4, **steady({}))
    packets, pictures = [], []
    with h264lite.Encoder.from_config(settings) as encoder:
        executor = executor_of(encoder)
        adaptation = executor.adaptation
        assert adaptation.plan.single == CPU
        adaptation._clock = itertools.count(1.0).__next__  # every frame takes as long as the one before
        believed = adaptation.models.seconds("full_search", "cuda:0", 5, 5)
        whole = {CPU: adaptation.plan, "cuda:0": Plan.split((CPU, "cuda:0"), 5, 0, 1)}
        # what a planner would say, whatever else this machine does meanwhile
        adaptation._replan = lambda models: whole[
            CPU if models.seconds("full_search", "cuda:0", 5, 5) > believed / 2 else "cuda:0"
        ]
        while len(pictures) < 400 and not isinstance(executor.single_device_executor, CudaExecutor):
            pictures.append(clip[len(pictures) % 4])
            packets += encoder.encode(tuple(pictures[-1]))
            adaptation.wait_for_planner()
            if adaptation.probe is not None:
                assert executor.single_device_executor is None and adaptation.this.rows["full_search"] == (4, 1)
        packets += encoder.flush()
        if gpu is not None:  # the emulated one is fast by its own clock
            assert adaptation.probes >= 2 and isinstance(executor.single_device_executor, CudaExecutor)
    expected, _ = encode(pictures, 66, 66, "cpu", ref=2, keyint=25, subme=4)
    assert b"".join(packet.data for packet in packets) == expected


def test_who_could_add_next_to_nothing_is_not_there(gpu, monkeypatch):  # noqa: F811
    """Far below the other's rate a device is not worth memory and threads of its own; a pinned plan stays as it is."""
    for limit, pins, kind in ((0.0, {}, HybridExecutor), (1.0, {}, Executor), (0.0, {"rows_gpu": 0}, Executor)):
        monkeypatch.setattr("h264lite.scheduler.hybrid.start.TOO_SLOW", limit)
        tune(pins, slower=3.0, link=Link(0.004, 1e8))
        with h264lite.Encoder(66, 66, device="hybrid", qp=26, bframes=0) as encoder:
            assert type(executor_of(encoder)) is kind


def test_rows_that_are_pinned_are_taken(gpu):  # noqa: F811
    clip = round_trip.noise_clip(66, 66, 4, 3)
    expected, _ = encode(clip, 66, 66, "cpu")
    tune({"rows_gpu": 2})
    stream, executor = encode(clip, 66, 66, "hybrid")
    assert executor.adaptation.plan.devices == (CPU, "cuda:0") and executor.adaptation.plan.rows["full_search"] == (3, 2)
    assert stream == expected
