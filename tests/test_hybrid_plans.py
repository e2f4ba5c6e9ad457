"""Device hybrid as it is planned: from measured models or a guess, with pins; the bytes are those of one device."""

import h264lite
import pytest
from h264lite.encoder import tuned
from h264lite.encoder.config import Config
from h264lite.scheduler.devices import HybridExecutor
from h264lite.scheduler.executor import Executor
from h264lite.scheduler.models import CPU, ENTROPY, ISSUE, LOAD, Curve, guess
from h264lite.scheduler.tuning import Machine, Tuning, cache_file, now, save

from . import round_trip
from .test_cuda_streams import card  # noqa: F401


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tuned, "this_machine", Machine)
    yield


def tune(pins=None, slower=1.0):
    """A file that says: the card takes `slower` times what the processor takes."""
    models = guess([CPU, "cuda:0"], 2)
    fast = ("mode_decision", "intra", "extend_luma", "extend_cb", "extend_cr", ENTROPY, LOAD, ISSUE, "compact", "load_i420")
    for stage, device in list(models.stages):
        each = 1e-9 if stage in fast else 1e-5
        models.stages[stage, device] = Curve.line(0.0, each * (slower if device != CPU else 1.0))
    save(Tuning(Machine(), models, now(), pins=pins or {}), cache_file())


def encode(clip, width, height, device):
    with h264lite.Encoder.from_config(Config.from_options(width=width, height=height, device=device, threads=2)) as encoder:
        executor = encoder._pipeline.loop.executor
        packets = [packet for planes in clip for packet in encoder.encode(tuple(planes))] + encoder.flush()
    return b"".join(packet.data for packet in packets), executor


def test_a_plan_for_equal_devices_gives_both_rows_and_the_same_bytes(card):  # noqa: F811
    clip = round_trip.noise_clip(66, 130, 5, 3)
    expected, _ = encode(clip, 66, 130, "cpu")
    tune()
    found, executor = encode(clip, 66, 130, "hybrid")
    assert isinstance(executor, HybridExecutor) and executor.adaptation.plans[0].single is None
    assert 0 < executor.adaptation.plans[0].rows["full_search"][0] < 9
    assert found == expected
    assert executor.adaptation.models.drift() >= 0


def test_where_one_device_is_better_it_works_alone(card):  # noqa: F811
    clip = round_trip.noise_clip(66, 66, 3, 3)
    expected, _ = encode(clip, 66, 66, "cpu")
    tune(slower=1e4)
    found, executor = encode(clip, 66, 66, "hybrid")
    assert isinstance(executor, Executor) and found == expected


def test_rows_that_are_pinned_are_taken(card):  # noqa: F811
    clip = round_trip.noise_clip(66, 66, 4, 3)
    expected, _ = encode(clip, 66, 66, "cpu")
    tune({"rows_gpu": 2})
    found, executor = encode(clip, 66, 66, "hybrid")
    assert executor.adaptation.plan.devices == (CPU, "cuda:0") and executor.adaptation.plan.rows["full_search"] == (3, 2)
    assert found == expected
