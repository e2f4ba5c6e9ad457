"""The time of measurements: each gets a share of what is left, and gives up where it does not fit."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

PATIENCE = 2.0  # times its share that a step may take: later steps still have most of theirs


class TooLong(Exception):
    """A measurement does not fit in its time. start: its seconds before the first frame; frame: those of its last frame."""

    def __init__(self, start: float = 0.0, frame: float = 0.0) -> None:
        super().__init__()
        self.start, self.frame = start, frame


@dataclass(frozen=True)
class Window:
    """When a measurement ends: `seconds` after the start of its encode, or at `end`. `latest`: when it gives up if it has
    too few frames. `end` and `latest` by time.perf_counter; no time but `seconds` bounds those of `bench`.
    """

    seconds: float = inf
    end: float = inf
    latest: float = inf

    def is_over(self, begin: float) -> bool:
        """Whether an encode that began at `begin` has no more time."""
        now = time.perf_counter()
        return now >= self.end or now - begin >= self.seconds

    def left(self, begin: float) -> float:
        """Seconds of an encode that began at `begin`."""
        return min(self.end, begin + self.seconds) - time.perf_counter()

    def check(self, start: float = 0.0, frame: float = 0.0) -> None:
        """TooLong after `latest`, where too few frames are finished; start, frame: see there."""
        if time.perf_counter() > self.latest:
            raise TooLong(start, frame)


class Step(NamedTuple):
    """A measurement. weight: its share of the time, relative to others; least: seconds that it takes at least, by those
    before; is_extra: no loss if it is left out; patience: times its share that it may take to have the least of frames.
    """

    label: str
    weight: float
    run: Callable[[Window], None]
    least: Callable[[], float] = lambda: 0.0
    is_extra: bool = False
    patience: float = PATIENCE


def run_steps(
    steps: Iterable[Step], end: float, begin_step: Callable[[str], object], left_out: Callable[[str], object]
) -> None:
    """Run all steps by `end`, of time.perf_counter. What a step does not take of its share, later ones have.

    begin_step: called with the label of each; left_out: with the labels of those that do not fit.
    """
    steps = list(steps)
    weights = sum(step.weight for step in steps)
    for step in steps:
        now = time.perf_counter()
        left = max(0.0, end - now)
        share = left * min(1.0, step.weight / weights)
        weights = max(weights - step.weight, step.weight * 1e-9)
        window = Window(end=now + share, latest=now + min(left, step.patience * share))
        try:
            if now + step.least() > window.latest:
                raise TooLong
            begin_step(step.label)
            step.run(window)
        except TooLong:
            if not step.is_extra:
                left_out(step.label)
