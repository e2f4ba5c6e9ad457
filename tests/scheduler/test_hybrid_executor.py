"""The executor without a GPU: two processors of unequal speed share the rows as their speeds say, and learn these."""

import random
import time
from dataclasses import replace

import h264lite
import pytest
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.arrays import Size
from h264lite.scheduler.executor import bands
from h264lite.scheduler.hybrid.executor import HybridExecutor
from h264lite.scheduler.hybrid.issue_order import IssueOrder
from h264lite.scheduler.hybrid.loop import HybridLoop
from h264lite.scheduler.hybrid.plan import SPLITS, Plan
from h264lite.scheduler.hybrid.planner import make_plan
from h264lite.scheduler.hybrid.residency import NOTHING
from h264lite.scheduler.hybrid.route import FrameTraits, route
from h264lite.scheduler.hybrid.tuning.models import Curve, Models
from h264lite.scheduler.hybrid.workers import CpuWorker
from h264lite.scheduler.threads.watchdog import Watchdog
from h264lite.scheduler.trace import Trace

from ..inside import changed, loop_of
from ..support import round_trip
from ..support.steady import steady
from .test_route import HEIGHT, random_plan

NAMES = ("cpu", "cpu:slow")


class SlowWorker(CpuWorker):
    """Each kernel call is stretched by sleep to `slowdown` times its CPU time."""

    slowdown = 1.0

    @property
    def is_compiled(self):
        return super().is_compiled and self.slowdown == 1

    def _around(self, stage, state, call):
        call = super()._around(stage, state, call)

        def slowed(*part):
            begin, worked = time.perf_counter(), time.thread_time()
            call(*part)
            worked = time.thread_time() - worked
            time.sleep(max(0.0, self.slowdown * worked - (time.perf_counter() - begin)))

        return slowed if self.slowdown > 1 else call


def two_processors(width, height, first, whole=0, slowdowns=(1.0, 1.0), limit=0.0, models=None, replan=None, trace=None,
                   slices=1):  # fmt: skip
    """A hybrid executor over two threads, each slowed down."""
    mb_width, mb_height = -(-width // 16), -(-height // 16)
    parts = [(mb_width * a, mb_width * b) for a, b in bands(mb_height, slices)]
    workers = [SlowWorker(name, 1, mb_height, parts, trace) for name in NAMES]
    for worker, slowdown in zip(workers, slowdowns):
        worker.slowdown = slowdown
    return HybridExecutor(Plan.split(NAMES, mb_height, first, whole), workers, Watchdog(limit), models, replan)


def encode_with(executor, clip, width, height, monkeypatch, seconds=None, shares=None, **options):
    """The stream of a clip through an executor; `seconds` takes the time of each picture, `shares` its rows on device 0."""
    options = {"qp": 24, "threads": 1, "subme": 4, **options}
    settings = Config.from_options(width=width, height=height, device="cpu", **steady(options))
    packets = []
    with monkeypatch.context() as patch:
        patch.setattr("h264lite.scheduler.frames.frame_executor.make_executor", lambda *_: executor)
        encoder = h264lite.Encoder.from_config(changed(settings, device="hybrid"))
    with encoder:
        assert isinstance(loop_of(encoder), HybridLoop)
        for planes in clip:
            begin = time.perf_counter()
            packets += encoder.encode(tuple(planes))
            if seconds is not None:
                seconds.append(time.perf_counter() - begin)
            if shares is not None:
                shares.append(executor.adaptation.plan.rows["full_search"][0] / executor.adaptation.plan.mb_height)
        packets += encoder.flush()
    return b"".join(packet.data for packet in packets)


@pytest.mark.parametrize("whole", (0, 1))
def test_two_processors_give_the_bytes_of_one(monkeypatch, whole):
    width, height = 50, 82
    clip = round_trip.noise_clip(width, height, 5, 3)
    for options in ({}, {"ref": 3, "slices": 2}, {"keyint": 2, "no_deblock": True}):
        with h264lite.Encoder(width, height, device="cpu", qp=24, threads=1, subme=4, **{"bframes": 0} | options) as encoder:
            expected = b"".join(p.data for planes in clip for p in encoder.encode(tuple(planes)))
            expected += b"".join(p.data for p in encoder.flush())
        for first in (0, 1, 3, 5, 6):
            executor = two_processors(width, height, first, whole, slices=options.get("slices", 1))
            assert encode_with(executor, clip, width, height, monkeypatch, **options) == expected, (first, options)


def test_groups_and_who_is_waited_for():
    """Stages of one step go through bands together, unless one of them waits for what another device makes of the others."""
    picture, valid = FrameTraits(Size(4, 8, 48), 1, 1), NOTHING
    for n in range(3):
        ops, valid = route(Plan.split(("cpu", "cuda:0"), 8, 3, 1), replace(picture, n_ref=min(n, 1)), valid)
    order = IssueOrder.of(ops)
    groups = order.groups["cpu"]
    names = [group.stages for group in groups]
    assert ("search_centre",) not in names and any(stages[:2] == ("search_centre", "full_search") for stages in names)
    done = [k for group in groups for k in group.runs] + [k for queue in order.queues for k in queue]
    assert sorted(done) == list(range(len(ops)))
    for group in groups:
        assert all(need < group.runs[-1] for need in group.needs)
    assert order.compacts and order.refs_copied > 0


@pytest.mark.parametrize("devices", (("cpu", "cuda:0"), NAMES, ("cpu", "cuda:0", "cpu:slow")), ids=str)
def test_nobody_waits_for_somebody_who_waits(devices):
    """Whatever the plans: groups and queues, each in its order, come to their end."""
    for seed in range(25):
        rng, valid = random.Random(seed), NOTHING
        for n in range(4):
            picture = FrameTraits(Size(4, HEIGHT, 48), min(n, 2), 2, decoded=bool(seed % 2))
            ops, valid = route(random_plan(rng, devices), picture, valid)
            order, over = IssueOrder.of(ops), set()
            lines = [[(group.runs, group.needs) for group in groups] for groups in order.groups.values()]
            lines += [[((k,), ops[k].needs) for k in queue] for queue in order.queues]
            while any(lines):
                ready = [line for line in lines if line and over.issuperset(line[0][1])]
                assert ready, f"seed {seed}, picture {n}: {[line[0] for line in lines if line]}"
                over.update(rng.choice(ready).pop(0)[0])


def test_every_side_is_in_the_timeline(monkeypatch):
    trace = Trace()
    clip = round_trip.noise_clip(50, 82, 3, 3)
    encode_with(two_processors(50, 82, 3, trace=trace), clip, 50, 82, monkeypatch)
    tracks = {(track, name) for _, track, name, _, _, _ in trace.spans}
    for name in ("full_search", "inter_residual", "deblock"):
        assert ("MainThread", name) in tracks and ("h264lite cpu:slow", name) in tracks


def equal_models(rate):
    """Both processors alike: what the executor has to unlearn."""
    stages = {(stage, name): Curve.line(1e-6, rate) for name in NAMES for stage in (*SPLITS, "mode_decision", "intra",
              "extend_luma", "extend_cb", "extend_cr")}  # fmt: skip
    return Models(stages)


def learned(monkeypatch):
    """(share of the fast one after ten pictures, its ideal, rate over the sum of both alone, plans made).

    One thread against one three times slower; both sleep most of the time, so that what else the machine does changes little.
    """
    width, height, slowdowns, options = 96, 640, (12.0, 36.0), {"merange": 64, "keyint": 250}
    rows = height // 16
    clip = round_trip.noise_clip(width, height, 4, 3)
    frames = [clip[n % 4] for n in range(20)]
    alone = []
    for first in (rows, 0):  # everything on the fast one, on the slow one
        seconds = []
        executor = two_processors(width, height, first, int(not first), slowdowns)
        encode_with(executor, frames[:5], width, height, monkeypatch, seconds, **options)
        alone.append(min(seconds[2:]))
    picture, plans = FrameTraits(Size(width // 16, rows, 96), 1, 1), []

    def replan(models):
        plans.append(make_plan(NAMES, picture, models, tries=12).plan)
        return plans[-1]

    seconds, shares = [], []
    executor = two_processors(width, height, rows // 2, 0, slowdowns, models=equal_models(2e-6), replan=replan)
    encode_with(executor, frames, width, height, monkeypatch, seconds, shares, **options)
    ideal = alone[1] / (alone[0] + alone[1])
    # two pictures load kernels
    return shares[12], ideal, 1 / min(seconds[12:]) / (1 / alone[0] + 1 / alone[1]), len(plans)


@pytest.mark.slow  # times: for a machine that does nothing else
def test_it_learns_how_fast_they_are(monkeypatch):
    """After ten pictures the split is right, and the rate nearly that of both together; one good run of three will do."""
    runs = []
    for _ in range(3):
        share, ideal, rate, plans = learned(monkeypatch)
        runs.append(f"share {share:.2f} of {ideal:.2f}, rate {rate:.2f} of both, {plans} plans")
        if abs(share - ideal) < 0.1 * ideal and rate > 0.9 and 1 <= plans < 6:
            print(runs)
            return
    pytest.fail("; ".join(runs))
