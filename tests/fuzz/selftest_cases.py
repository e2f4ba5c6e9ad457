"""What a campaign has to find, by the case's number: a read outside an array, a foreign exception, memory, too much time."""

import random
import time
from types import ModuleType

import numpy as np

from . import kinds
from .guard import GuardedNumpy
from .kinds import Result

WAYS = ("in place", "before", "behind", "refused", "foreign", "slow", "large")


def material() -> tuple[str, ...]:
    """The ways."""
    return WAYS


def modules() -> tuple[ModuleType, ...]:
    """One that makes no arrays."""
    return (kinds,)


def warm(given: tuple[str, ...]) -> None:
    """Nothing to compile."""


def build(given: tuple[str, ...], rng: random.Random) -> str:
    """One of the ways."""
    return rng.choice(given)


def run(case: str, numpy: GuardedNumpy) -> Result:
    """Do it."""
    array = numpy.full(1000, 7, np.int32)
    outside = np.lib.stride_tricks.as_strided(array[::-1] if case == "before" else array, (1001,))
    if case in ("before", "behind"):
        return Result(int(outside[1000]))
    if case == "foreign":
        raise ZeroDivisionError
    end = time.process_time() + 0.5
    while case == "slow" and time.process_time() < end:
        pass
    large = np.ones(1 << 26 if case == "large" else 1)
    return Result(int(outside[999]) + large.size, "as it should" if case == "refused" else "")


def dump(case: str) -> bytes:
    """Its name."""
    return case.encode()
