"""Lanes: who has which GOP, when the next one is read, and whether the processor takes one beside GPUs."""

import time
import types

import numpy as np
import pytest
from h264lite.encoder.decisions.frame_types import FrameTypes
from h264lite.encoder.errors import InputError
from h264lite.encoder.files.read_ahead import READ_AHEAD_FRAMES
from h264lite.encoder.gops.lane import Lane
from h264lite.encoder.gops.pace import CpuLaneThrottle
from h264lite.encoder.gops.queue import GopQueue
from h264lite.encoder.settings.config import Config

SIZE, KEYINT, PICTURES = 6, 3, 12
CONFIG = Config.from_options(width=16, height=16, device="cpu", keyint=KEYINT)


class FakePipeline:
    """Where a GPU takes frames from, and the first byte of each that was coded, by GOPs."""

    def __init__(self):
        self.ring = [np.zeros(SIZE, np.uint8) for _ in range(READ_AHEAD_FRAMES + 2)]
        self.count, self.coded, self.reads_ahead = 0, [], False

    def read_ahead(self):
        self.reads_ahead = True
        return True

    def next_buffer(self, ahead=0):
        assert self.reads_ahead or not ahead
        return self.ring[(self.count + ahead) % len(self.ring)]

    def encode_in_place(self, spec):
        if spec.is_idr:
            self.coded.append((spec.gop, []))
        self.coded[-1][1].append(int(self.next_buffer()[0]))
        self.count += 1
        return []

    def flush(self):
        return []


@pytest.fixture
def lanes():
    """Two lanes, their steps, and their queue with all pictures in it."""
    queue = GopQueue(2, 2 * KEYINT, SIZE)
    types = FrameTypes(CONFIG, ((0, 1),))
    for number in range(PICTURES):
        queue.enter(types.next(), lambda place, number=number: place.fill(number))
    queue.end()
    pair = [Lane(FakePipeline(), queue) for _ in range(2)]
    yield pair, [lane.steps() for lane in pair], queue
    queue.close()


def test_a_lane_leaves_gops_to_the_other(lanes):
    """The first lane reads one GOP, not all that its buffers would hold: the other's first step has the next one."""
    (one, two), steps, _ = lanes
    assert next(steps[0]) and next(steps[1])
    assert [lane.pipeline.coded for lane in (one, two)] == [[(0, [0])], [(1, [KEYINT])]]


def test_the_next_gop_is_read_while_the_last_is_coded(lanes):
    """One at most: the next one is the other's."""
    (one, two), steps, _ = lanes
    assert [next(steps[0]) for _ in range(2)] == [True] * 2
    assert next(steps[1]) and two.pipeline.coded == [(2, [2 * KEYINT])]
    assert [next(steps[0]) for _ in range(2 * KEYINT - 2)] == [True] * (2 * KEYINT - 2)
    assert one.pipeline.coded == [(0, [0, 1, 2]), (1, [3, 4, 5])]


def test_not_if_the_other_has_nothing_to_do(lanes):
    (one, two), steps, queue = lanes
    queue.rest(1)
    assert [next(steps[0]) for _ in range(2)] == [True] * 2
    queue.rest(-1)
    assert next(steps[1]) and two.pipeline.coded == [(1, [KEYINT])]
    while any([next(step) for step in steps]):  # a list: each takes its turn
        pass
    assert not queue.busy()
    coded = sorted(one.pipeline.coded + two.pipeline.coded)
    assert coded == [(gop, list(range(KEYINT * gop, KEYINT * gop + KEYINT))) for gop in range(PICTURES // KEYINT)]


class FakeProcessor:
    """Takes so many seconds for a frame after the first of a GOP; numbers of the frames that it coded, by GOPs."""

    config = types.SimpleNamespace(display=((2, 2), (1, 1), (1, 1)))

    def __init__(self, seconds):
        self.seconds, self.coded = seconds, []

    def next_buffer(self, ahead=0):
        return None

    def encode(self, y, u, v, spec):
        if spec.is_idr:
            self.coded.append((spec.gop, []))
        time.sleep(self.seconds * bool(self.coded[-1][1]) or 5 * self.seconds)
        self.coded[-1][1].append(int(y[0, 0]))
        return []

    def flush(self):
        return []


@pytest.fixture(params=["to be read", "there"])
def queue(request):
    queue, types = GopQueue(2, 2 * KEYINT, SIZE), FrameTypes(CONFIG, ((0, 1),))
    for number in range(PICTURES):
        there = np.full(SIZE, number, np.uint8)
        queue.enter(types.next(), there if request.param == "there" else lambda place, number=number: place.fill(number))
    queue.end()
    yield queue
    queue.close()


def beside_a_gpu(queue, seconds):
    lane = Lane(processor := FakeProcessor(seconds), queue, CpuLaneThrottle(processor, queue))
    return lane, lane.steps(), processor


def test_the_processor_waits_for_the_pace_of_the_gpus(queue):
    lane, steps, processor = beside_a_gpu(queue, 0)
    assert not next(steps) and lane.excluded and not processor.coded
    assert not queue.somebody_rests(), "GPUs read ahead beside it"
    queue.wait_for_paces(0)
    queue.report_frame_time("gpu", 1.0)
    assert next(steps) and not lane.excluded
    trial, gop = processor.coded
    assert trial[1] == [0, 1, 2] and gop == (0, [0]), "the frames of the trial are coded again by the lane that takes them"
    assert [next(steps) for _ in range(PICTURES - 1)] == [True] * (PICTURES - 1)
    assert [number for _, numbers in processor.coded[1:] for number in numbers] == list(range(PICTURES))


@pytest.mark.parametrize(("pace", "takes"), [(0.020, True), (0.001, False)])
def test_the_processor_takes_a_gop_if_the_gpus_need_not_wait_for_it(queue, pace, takes):
    """They may be three GOPs ahead; it takes 20 ms a frame, the first one, which may be compiled for, does not count."""
    lane, steps, processor = beside_a_gpu(queue, 0.020)
    queue.report_frame_time("gpu", pace)
    assert next(steps) == takes != lane.excluded
    assert len(processor.coded) == 1 + takes
    queue.report_frame_time("gpu", 10.0)  # it has become slow
    assert next(steps) and not lane.excluded and len(processor.coded) == 2, "tried once"
    assert queue.keeps_up(29.0) and not queue.keeps_up(31.0)


def test_a_gop_that_takes_longer_than_the_trial_counts(queue):
    lane, steps, processor = beside_a_gpu(queue, 0.001)
    queue.report_frame_time("gpu", 0.010)
    assert next(steps)
    processor.seconds = 0.1
    assert [next(steps) for _ in range(KEYINT - 1)] == [True] * (KEYINT - 1)
    assert not next(steps) and lane.excluded


def test_what_cannot_be_read_is_told_by_whoever_codes_it():
    queue, types = GopQueue(2, 2 * KEYINT, SIZE), FrameTypes(CONFIG, ((0, 1),))

    def bad(place):
        raise InputError("not there")

    for _ in range(KEYINT):
        queue.enter(types.next(), bad)
    queue.end()
    queue.report_frame_time("gpu", 1.0)
    lane, steps, _ = beside_a_gpu(queue, 0)
    queue.collect()
    assert not next(steps) and lane.excluded and queue.ready == []
    queue.close()


def test_a_lane_tells_its_pace_with_its_second_gop(lanes):
    (one, _), steps, queue = lanes
    assert [next(steps[0]) for _ in range(KEYINT)] == [True] * KEYINT and not queue.paces
    assert next(steps[0]) and set(queue.paces) == {one} and 0 < queue.paces[one] < 1
