"""The end of a thread's share of a step, in one call without the interpreter's lock."""

from ...jit.atomics import fetch_add, wait_until
from ...jit.kernel import kernel


@kernel
def arrive(counters, index, count, value, rounds):
    """Adds `count` to counters[index], int64, then spins until it is >= value, for at most `rounds` checks; whether it is."""
    fetch_add(counters, index, count)
    return wait_until(counters, index, value, rounds)
