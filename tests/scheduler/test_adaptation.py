"""Plans that follow what is measured, on simulated machines: a device that is idle for wrong reasons is found out, and what
asking costs stays below its share of the time.
"""

from dataclasses import replace

import pytest
from h264lite.scheduler.arrays import Size
from h264lite.scheduler.hybrid.adaptation import Adaptation
from h264lite.scheduler.hybrid.plan import SPLITS, Plan
from h264lite.scheduler.hybrid.planner import make_plan
from h264lite.scheduler.hybrid.probing import (
    LEAST,
    LOADING,
    MOST_INTERVAL_FACTOR,
    ROWS_DIVISOR,
    SHARE,
    WINDOW,
    Probing,
    idle_devices,
    probe,
)
from h264lite.scheduler.hybrid.route import FrameTraits, Run
from h264lite.scheduler.hybrid.simulate import cycle, meeting_of, predict
from h264lite.scheduler.hybrid.tuning.models import CPU, ENTROPY, ISSUE, LOAD, Curve, Models, guess

GPU = "cuda:0"
BOTH = (CPU, GPU)
PICTURE = FrameTraits(Size(40, 23, 48), 1, 1)


def machine(cpu=1.0, gpu=1.0, threads=4):
    """The guess with the stages of both devices slower by a factor."""
    models, factor = guess(BOTH, threads), {CPU: cpu, GPU: gpu}
    for (stage, device), curve in list(models.stages.items()):
        if stage not in (ENTROPY, LOAD, ISSUE):
            points = tuple((n, factor[device] * seconds) for n, seconds in curve.points)
            models.stages[stage, device] = Curve(points, factor[device] * curve.one_thread)
    return models


class Encode:
    """Frames on a machine that is as `true`, planned by what is believed of it; the clock is the machine's."""

    def __init__(self, true, believed):
        self.true, self.now, self.spent, self.dearest = true, 0.0, 0.0, 0.0
        self.known, self.stall = {}, 0.0
        self.asked = []  # when
        plan = make_plan(BOTH, PICTURE, believed, tries=12).plan
        self.adaptation = Adaptation(
            plan, believed, lambda models: make_plan(BOTH, PICTURE, models, tries=12).plan, Probing(), lambda: self.now,
            lambda plan, models, seconds: meeting_of(plan, PICTURE, models, seconds),
        )  # fmt: skip
        self.adaptation.mb_width, self.adaptation.in_thread = PICTURE.size.mb_width, False

    def seconds(self, plan):
        if plan not in self.known:
            self.known[plan] = predict(plan, PICTURE, self.true).seconds
        return self.known[plan]

    def run(self, pictures):
        for _ in range(pictures):
            adaptation = self.adaptation
            adaptation.learn()
            plan = adaptation.this
            took = self.seconds(plan)
            if adaptation.probe is not None:
                self.asked.append(self.now)
                cost = took - self.seconds(adaptation.plan)
                self.spent, self.dearest = self.spent + cost, max(self.dearest, cost)
            if adaptation.probe is not None or adaptation.plan.single is None or not adaptation.knows():
                for op in cycle(plan, PICTURE)[0]:
                    if isinstance(op, Run):
                        rows = op.row1 - op.row0
                        seconds = self.true.seconds(op.stage, op.device, rows, PICTURE.size.mb_width)
                        adaptation.measured.append((op, seconds))
            self.now += took + self.stall
            self.stall = 0.0
            adaptation.issued(1)


@pytest.mark.parametrize(
    ("true", "believed", "idle"),
    (((1, 1), (1, 250), GPU), ((1, 1), (0.5, 300), GPU), ((1, 10), (40, 10), CPU)),
    ids=("a slow GPU that is fast", "both wrong", "a slow processor that is not"),
)  # fmt: skip
def test_a_device_that_is_idle_for_wrong_reasons_is_found_out(true, believed, idle):
    encode = Encode(machine(*true), machine(*believed))
    plan = encode.adaptation.plan
    assert plan.single not in (None, idle)
    best = predict(make_plan(BOTH, PICTURE, encode.true).plan, PICTURE, encode.true).seconds
    before = encode.seconds(plan)
    while encode.now < 150 and len(encode.adaptation.plans) == 1:
        encode.run(100)
    encode.run(500)
    after = encode.seconds(encode.adaptation.plan)
    print(f"{1e3 * before:.2f} ms, {1e3 * after:.2f} after {encode.now:.0f} s, best {1e3 * best:.2f}")
    assert before > 1.2 * best and after < 1.1 * best, (before, after, best, encode.adaptation.plans)
    assert len(encode.adaptation.plans) < 8
    assert (encode.asked[0] > LOADING / SHARE) == (idle == CPU), "kernels of the processor would have to be loaded first"


@pytest.mark.parametrize("slow", ((1, 400), (8, 1)), ids=("gpu", "processor"))
def test_who_is_idle_for_good_reasons_is_asked_ever_more_rarely(slow):
    encode = Encode(machine(*slow), machine(*slow))
    assert encode.adaptation.plan.single is not None
    while len(encode.asked) < 9:
        encode.run(500)
        assert encode.spent <= SHARE * encode.now + encode.dearest
    assert len(encode.adaptation.plans) == 1
    gaps = [b - a for a, b in zip(encode.asked, encode.asked[1:])]
    print(encode.now, encode.spent / encode.now, gaps)
    assert gaps[-1] > 7 * min(gaps)


def test_the_account():
    """One probe as soon as it is earned; a dear one is paid back first; confirmations make the interval longer."""
    account = Probing()
    assert not account.due(True)
    pictures = 0
    while not account.due(True):
        account.passed(0.01)
        pictures += 1
    assert 0 <= pictures - round(1 / SHARE) <= 1  # it is reckoned as a whole frame
    assert not account.due(False) and account.balance < LOADING
    account.paid(WINDOW * 0.01 + 0.002)
    assert account.cost == pytest.approx(0.002)
    account.paid(WINDOW * 0.01 + 1.0)
    spent, pictures = 1.0, 0
    while not account.due(True):
        account.passed(0.01)
        pictures += 1
    assert 0.01 * pictures * SHARE >= spent, "a dear one is paid back, and the next one earned"
    account.paid(0.0)
    assert account.cost == pytest.approx(account.usual / LEAST), "none is for nothing"
    intervals = []
    for _ in range(12):
        pictures = 0
        account.paid(WINDOW * account.usual)
        account.confirmed()
        while not account.due(True):
            account.passed(0.01)
            pictures += 1
        intervals.append(pictures)
    assert intervals == sorted(intervals) and intervals[-1] == intervals[-2] > 20 * intervals[0]
    assert account.interval_factor == MOST_INTERVAL_FACTOR
    account.changed()
    assert account.interval_factor == MOST_INTERVAL_FACTOR // 2


@pytest.mark.parametrize("height", (1, 2, 5, 16, 68))
def test_what_a_probe_asks_for(height):
    for single in (0, 1):
        plan = Plan.split(BOTH, height, height * (not single), single)
        assert idle_devices(plan) == [1 - single]
        probed = probe(plan, 1 - single)
        if height == 1:
            assert probed is None
            continue
        few = max(1, height // ROWS_DIVISOR)
        assert all(probed.rows[stage][1 - single] == few for stage in SPLITS)
        assert probed.rows["mode_decision"] == plan.rows["mode_decision"]
    shared = Plan.split(BOTH, height, height // 2, 1) if height > 1 else None
    assert shared is None or idle_devices(shared) == []


def test_stages_that_were_never_measured_follow():
    models = Models({(stage, GPU): Curve.line(0, 1e-6) for stage in ("deblock", "ssd_y", "intra", "issue")})
    models.follow(GPU, ("intra",))
    assert models.seconds("intra", GPU, 1, 100) == pytest.approx(1e-4)
    for _ in range(60):
        models.observe("deblock", GPU, 1, 100, 3e-4, 50)
        models.observe("ssd_y", GPU, 1, 100, 1e-4, 50)
    models.follow(GPU, ("intra", "deblock", "unknown"))
    assert models.seconds("intra", GPU, 1, 100) == pytest.approx(2e-4, rel=1e-3)
    assert models.seconds("deblock", GPU, 1, 100) == pytest.approx(3e-4, rel=1e-3)
    assert models.seconds("issue", GPU, 1, 100) == pytest.approx(1e-4)
    assert models.drift() == pytest.approx(1.0, rel=0.01)  # 2 of 1 and 0 of 1: as samples of whole frames


@pytest.mark.parametrize("meeting", (0.0, 50e-6, 200e-6, 1e-3, 5e-3))
@pytest.mark.parametrize("gpu", (10, 40))
def test_what_meetings_cost_is_learned(gpu, meeting):
    """However much it is: plans say what frames take, and none takes longer than on the better device."""
    true = replace(machine(1, gpu), meeting=meeting)
    best = min(make_plan(BOTH, PICTURE, true, tries=12).single_device_seconds.values())
    encode = Encode(true, machine(1, gpu))
    divided = encode.adaptation.plan
    assert divided.single is None, "the first plan knows nothing of meetings"
    encode.run(400)
    plan = encode.adaptation.plan
    assert encode.seconds(plan) < 1.02 * best and plan.seconds == pytest.approx(encode.seconds(plan), rel=0.15)
    assert (plan.single is None) == (encode.seconds(divided) < best) and len(encode.adaptation.plans) < 4


def test_meetings_that_cost_less_than_was_measured_once():
    """As after other load of the host, which was there when `tune` ran."""
    true, slow = replace(machine(1, 40), meeting=50e-6), replace(machine(1, 40), meeting=250e-6)
    encode = Encode(true, slow)
    assert encode.adaptation.plan.single is None
    encode.run(400)
    assert encode.adaptation.models.meeting == pytest.approx(50e-6, rel=0.2)


@pytest.mark.parametrize("source", ("live", "stalls"))
def test_waits_are_no_meetings(source):
    """A source that brings a frame only now and then, or a machine that stops now and then, changes no plan."""
    encode = Encode(machine(1, 40), machine(1, 40))
    for frame in range(200):
        encode.run(1)
        if source == "live":
            encode.now += 0.1
        elif frame % 20 == 0:
            encode.stall = 0.02
    assert len(encode.adaptation.plans) == 1 and encode.adaptation.models.meeting < 50e-6
