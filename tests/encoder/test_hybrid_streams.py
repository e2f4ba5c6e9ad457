"""Whole encodes with rows on both devices give the bytes of one: forced splits, tools, sizes, frames in flight."""


import random
from dataclasses import replace

import h264lite
import numpy as np
import pytest
from h264lite.encoder.errors import DeviceError
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.hybrid.adaptation import Adaptation
from h264lite.scheduler.hybrid.executor import HybridExecutor
from h264lite.scheduler.hybrid.plan import SPLITTING, WHOLE, Plan, rows_of
from h264lite.scheduler.hybrid.recorded import KEPT
from h264lite.scheduler.hybrid.tuning.models import CPU, guess
from h264lite.scheduler.hybrid.tuning.tuning_file import Machine, Tuning

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..cuda_emulator.real import skip_without
from ..inside import changed, executor_of, gpu_of, pipelines_of, say_no_gpu
from ..support import round_trip, sequences
from .test_cuda_frames import upload
from .test_cuda_streams import TOOLS
from .test_streams import planes

MORE_TOOLS = ({"ref": 3, "slices": 3, "keyint": 4}, {"me": "step", "ref": 2}, {"subme": 6, "ref": 2, "profile": "baseline"},
              {"profile": "high", "me": "step", "subme": 7}, {"me": "umh", "ref": 2})  # fmt: skip
SPLITS = ("none", "one", "half", "all but one", "all")


def config(width, height, split=None, **options):
    """Settings with a forced split: (rows of the processor by name, who does whole stages); few stages, and a short search,
    unless asked for.
    """
    few = {"qp": 24, "bframes": 0, "threads": 2, "subme": 4, "merange": 8}
    plain = Config.from_options(width=width, height=height, **{**few, **options})
    if split is None:
        return plain
    height = plain.coding.mb_height
    rows = {"none": 0, "one": 1, "half": height // 2, "all but one": height - 1, "all": height}
    return changed(plain, split=(rows[split[0]], split[1]))


def encode(clip, settings):
    """Stream and reconstruction."""
    with h264lite.Encoder.from_config(settings, True) as encoder:
        if settings.machine.split is not None:
            assert all(isinstance(executor_of(pipeline), HybridExecutor) for pipeline in pipelines_of(encoder))
        packets = round_trip.packets_of(encoder, clip)
    return b"".join(packet.data for packet in packets), [packet.reconstruction for packet in packets]


def compare(clip, width, height, splits, **options):
    expected, decoded = encode(clip, config(width, height, device="cpu", **options))
    for split in splits:
        stream, mine = encode(clip, config(width, height, split, device="hybrid", **options))
        round_trip.assert_same(mine, decoded, f"split {split}")
        assert stream == expected, split


@pytest.mark.parametrize("whole", (0, 1), ids=("whole stages on the processor", "whole stages on the GPU"))
def test_every_split(gpu, whole):  # noqa: F811
    clip = round_trip.noise_clip(50, 82, 6, 3)
    compare(clip, 50, 82, [(rows, whole) for rows in SPLITS], ref=2)


@pytest.mark.parametrize("threads", (1, 2, 3, 4))
def test_frames_in_flight(gpu, threads):  # noqa: F811
    clip = round_trip.noise_clip(50, 66, 12, 4)
    splits = ("half",) if gpu else SPLITS  # the emulated one takes its time
    compare(clip, 50, 66, [(rows, threads % 2) for rows in splits], ref=3, threads=threads, keyint=9)


@pytest.mark.parametrize("gops", (1, 2, 3, 4))
def test_gops_at_once(gpu, gops):  # noqa: F811
    """Each lane with a GPU's streams and threads of its own: every split in every number of them."""
    clip = round_trip.noise_clip(18, 50, 8, 5)
    splits = [(rows, (gops + k) % 2) for k, rows in enumerate(SPLITS)]
    compare(clip, 18, 50, splits, ref=2, keyint=2, gops=gops, threads=gops)


@pytest.mark.parametrize("split", (("half", 0), ("none", 1), ("all", 1)), ids=str)
def test_bits_by_kind(gpu, split):  # noqa: F811
    """Counted from levels that come packed, in full or not at all."""
    clip, by_device = round_trip.noise_clip(50, 50, 6, 4), []
    for device, rows in (("cpu", None), ("hybrid", split)):
        settings = config(50, 50, rows, device=device, profile="high", subme=7, psy_rd=1, bits_by_kind=True)
        with h264lite.Encoder.from_config(settings) as encoder:
            pairs = round_trip.finished(encoder, clip)
        by_device.append([(frame.data, row.bits_by_kind) for frame, row in pairs])
    assert by_device[0] == by_device[1]


@pytest.mark.parametrize("tools", (*TOOLS, *MORE_TOOLS), ids=str)
def test_tools(gpu, tools):  # noqa: F811
    compare(round_trip.noise_clip(50, 66, 4, 3), 50, 66, [("half", len(tools) % 2)], **tools)


@pytest.mark.parametrize(("width", "height"), ((16, 16), (17, 33), (1, 1), (3, 65), (48, 80)))
def test_sizes(gpu, width, height):  # noqa: F811
    compare(round_trip.noise_clip(width, height, 4, width), width, height, [("half", 1), ("all but one", 0)])


def test_pictures_that_lie_on_the_gpu(gpu):  # noqa: F811
    """Rows of their source come down for the processor, and all of it for I_PCM; mixed with pictures of the host."""
    from h264lite.cuda_src.runtime.device import Device

    clip = round_trip.noise_clip(34, 50, 6, 3)
    expected, _ = encode(clip, config(34, 50, device="cpu", qp=3))
    device = Device()
    with device:
        frames = [tuple(upload(device, plane) for plane in planes) if n % 3 else planes for n, planes in enumerate(clip)]
        for split in (("half", 1), ("all but one", 0), ("none", 1)):
            stream, _ = encode(frames, config(34, 50, split, device="hybrid", qp=3))
            assert stream == expected, split
    device.close()


def test_levels_that_a_later_stage_drops(gpu):  # noqa: F811
    """What the processor coded as inter and the GPU then codes as intra: its old levels do not stay for a later frame."""
    compare(round_trip.noise_clip(34, 66, 14, 5), 34, 66, [("half", 1), ("all but one", 1)], ref=3, qp=3, threads=3)


REPLAYED = (
    {}, {"ref": 3, "slices": 2, "keyint": 12},
    {"profile": "high", "bframes": 2, "ref": 2, "qp": None, "crf": 26, "rc_lookahead": 8},
    {"weightp": 2, "ref": 2, "qp": None, "crf": 24, "profile": "main"},
    {"bframes": 3, "b_pyramid": "normal", "subme": 7, "ref": 2}, {"me": "umh", "merange": 16, "ref": 2},
)


def numbers_of(recording):
    """Names and numbers of the calls, in place of the memory of a launch the arguments in it."""
    return [(command.name, (row[1:] if command.launch is None else command.launch.arguments).tolist())
            for row, command in zip(recording.rows, recording.commands)]  # fmt: skip


@pytest.mark.parametrize("options", REPLAYED, ids=str)
def test_recorded_calls(gpu, options, monkeypatch):  # noqa: F811
    """Frames whose driver calls are replayed, since no operation is measured, as of all frames but one in eight: the calls
    are those that would be made, and so are the bytes.
    """
    monkeypatch.setattr(HybridExecutor, "_is_due", lambda *_: False)
    equal, issue_ready = [], HybridExecutor._issue_ready

    def compared(self, run):
        if run.replayed is None or run.issued_at == run.ended:
            return issue_ready(self, run)
        worker, trial = self.gpu_worker, replace(run, at=[*run.at], events={**run.events})
        replay, worker.gpu.replay = worker.gpu.replay, lambda *_: None
        with worker.gpu.record_calls(KEPT, run.work.with_placeholders()) as recording:
            self._issue(trial, worker)
        worker.gpu.replay = replay
        equal.append(numbers_of(recording) == numbers_of(run.replayed.sweeps[run.ended].recording))
        assert equal[-1]
        return issue_ready(self, run)

    monkeypatch.setattr(HybridExecutor, "_issue_ready", compared)
    clip = round_trip.noise_clip(34, 66, 6, 5)
    fading = [tuple((plane * (1 - k / 60)).astype(np.uint8) for plane in clip[k % 6]) for k in range(36)]
    compare(fading, 34, 66, [("half", 1), ("half", 0)], threads=3, **options)
    assert len(equal) > 200


def random_options(rng):
    """Tools that decide what frames of several devices exchange and record."""
    options = {"ref": rng.choice((1, 1, 2, 4)), "keyint": rng.choice((7, 250)), "slices": rng.choice((1, 2)),
               "subme": rng.choice((0, 2, 6, 7)), "threads": rng.choice((1, 3))}  # fmt: skip
    options["me"] = rng.choice(("fsbm", "hex", "umh"))
    options |= {"bframes": rng.choice((0, 0, 1, 3)), "weightp": rng.choice((0, 2)), "cabac": rng.random() < 0.7}
    return options | ({"qp": None, "crf": 26, "rc_lookahead": 8} if rng.random() < 0.5 else {})


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 80))])
def test_plans_that_change(gpu, seed, monkeypatch):  # noqa: F811
    """Between any two frames, recorded or measured."""
    rng, learn = random.Random(seed), Adaptation.learn
    measures = rng.random()

    def change(self, n_ref=1):
        learn(self, n_ref)
        if rng.random() < 0.2:
            height, decider = self.plan.mb_height, rng.randrange(2)
            first = rng.choice((0, 1, height // 2, height - 1, height))
            rows = dict.fromkeys(SPLITTING, (first, height - first))
            rows |= dict.fromkeys(WHOLE, tuple(height * (k == decider) for k in range(2)))
            devices, stages = self.plan.devices, frozenset(self.plan.rows)
            self.change(Plan.complete(devices, height, rows_of(stages, devices, height, rows)))

    monkeypatch.setattr(Adaptation, "learn", change)
    monkeypatch.setattr(HybridExecutor, "_is_due", lambda *_: rng.random() < measures / 2)
    width, height = rng.choice(((34, 66), (17, 49)))
    clip = round_trip.noise_clip(width, height, 5, seed)
    fading = [tuple((plane * (1 - k / 80)).astype(np.uint8) for plane in clip[k % 5]) for k in range(rng.randrange(12, 36))]
    compare(fading, width, height, [("half", seed % 2)], **random_options(rng))


def test_it_needs_a_gpu(monkeypatch):
    say_no_gpu(monkeypatch.setattr, "no GPU today")
    with pytest.raises(DeviceError, match="device hybrid: no GPU today"):
        h264lite.Encoder(64, 64, device="hybrid")


def test_a_plan_for_one_device_is_that_device(gpu, monkeypatch):  # noqa: F811
    """No cost of two devices where one does everything and the other could not add much."""
    monkeypatch.setattr("h264lite.scheduler.hybrid.start.TOO_SLOW", 1.0)
    with h264lite.Encoder(64, 64, device="hybrid", qp=26, bframes=0) as encoder:
        executor = executor_of(encoder)
        assert not isinstance(executor, HybridExecutor)
        encoder.encode(np.zeros((96, 64), np.uint8))
        encoder.flush()


def test_a_stage_that_was_not_measured_is_guessed(gpu):  # noqa: F811
    """`h264lite tune` measures the full search alone."""
    plain = changed(Config.from_options(width=50, height=82, threads=2, device="hybrid", me="step"), threads_by_user=True)
    models = guess([CPU, "cuda:0"], 2)
    models.stages = {(name, device): curve for (name, device), curve in models.stages.items() if name != "step_search"}
    tuned, clip = changed(plain, tuning=Tuning(Machine.here(), models)), round_trip.noise_clip(50, 82, 3, 7)
    cpu = Config.from_options(width=50, height=82, threads=2, device="cpu", me="step")
    assert encode(clip, tuned)[0] == encode(clip, cpu)[0]


@pytest.mark.parametrize("split", (None, "half"))
def test_what_the_tuning_file_says_of_a_gpu(gpu, split):  # noqa: F811
    """Streams and the variant of a kernel, chosen or pinned: other work on the GPU, the same bytes."""
    clip, device = round_trip.noise_clip(50, 82, 4, 7), "cuda" if split is None else "hybrid"
    plain = config(50, 82, split and (split, 1), device=device)
    tuning = Tuning(Machine.here(), guess([CPU, "cuda:0"], 2), chosen={"streams": 1, "tile_rows": 4}, pins={"tile_rows": 2})
    assert tuning.choices == {"streams": 1, "tile_rows": 2}
    tuned = changed(plain, tuning=tuning)
    with h264lite.Encoder.from_config(tuned) as encoder:
        executor = executor_of(encoder)
        assert gpu_of(encoder).tile_rows == 2
        assert executor.serial if split is None else executor.executor_of("cuda:0").serial
    told = changed(tuned, gpu_choices={"tile_rows": 1})
    with h264lite.Encoder.from_config(told) as encoder:  # whatever the file says
        executor = executor_of(encoder)
        assert gpu_of(encoder).tile_rows == 1
        assert not (executor.serial if split is None else executor.executor_of("cuda:0").serial)
    cpu = encode(clip, config(50, 82, device="cpu"))[0]
    assert all(encode(clip, some)[0] == cpu for some in (tuned, told, plain))


@pytest.mark.gpu
@pytest.mark.parametrize("gops", (1, 3))
def test_a_real_clip(gops):
    """On a real GPU alone: every device and split at 352x288, one GOP at a time and several."""
    skip_without()
    clip = sequences.clip("foreman_352x288_30")
    frames, options = planes(clip, 12), {"keyint": 4, "ref": 2, "qp": 27, "threads": 3, "gops": gops}
    compare(frames, 352, 288, [(rows, k % 2) for k, rows in enumerate(SPLITS)], **options)
    expected, _ = encode(frames, config(352, 288, device="cpu", **options))
    for device in ("cuda", "auto"):
        stream, _ = encode(frames, config(352, 288, device=device, **options))
        assert stream == expected, device
