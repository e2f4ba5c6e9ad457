"""Lanes: who has which GOP, and when the next one is read."""

import numpy as np
import pytest
from h264lite.encoder.decisions.frame_decider import FrameDecider
from h264lite.encoder.files.read_ahead import READ_AHEAD_FRAMES
from h264lite.encoder.gops.lane import Lane
from h264lite.encoder.gops.queue import GopQueue
from h264lite.encoder.settings.config import Config

SIZE, KEYINT, PICTURES = 6, 3, 12
CONFIG = Config.from_options(width=16, height=16, device="cpu", keyint=KEYINT, qp=26, bframes=0)


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

    def encode(self, source, spec):
        assert source is self.next_buffer()
        if spec.is_idr:
            self.coded.append((spec.gop, []))
        self.coded[-1][1].append(int(source[0]))
        self.count += 1
        return []

    def flush(self):
        return []


@pytest.fixture
def lanes():
    """Two lanes, their steps, and their queue with all pictures in it."""
    queue = GopQueue(2, 2 * KEYINT, SIZE)
    types = FrameDecider(CONFIG)
    for number in range(PICTURES):
        queue.enter(types.add()[0], lambda place, number=number: place.fill(number))
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
    queue.add_idle(1)
    assert [next(steps[0]) for _ in range(2)] == [True] * 2
    queue.add_idle(-1)
    assert next(steps[1]) and two.pipeline.coded == [(1, [KEYINT])]
    while any([next(step) for step in steps]):  # a list: each takes its turn
        pass
    assert not queue.busy()
    coded = sorted(one.pipeline.coded + two.pipeline.coded)
    assert coded == [(gop, list(range(KEYINT * gop, KEYINT * gop + KEYINT))) for gop in range(PICTURES // KEYINT)]
