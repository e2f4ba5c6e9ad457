"""The end of a thread's share of a step, in one call without the interpreter's lock."""

from ...jit.atomics import fetch_add, give_way, load_acquire, pause
from ...jit.kernel import kernel


@kernel
def arrive(counters, index, count, value, rounds):
    """Adds `count` to counters[index], int64, then spins until it is >= value, for at most `rounds` checks; whether it is."""
    fetch_add(counters, index, count)
    for k in range(rounds):
        if load_acquire(counters, index) >= value:
            return True
        if k & 15 == 15:
            give_way()
        pause()
    return load_acquire(counters, index) >= value
