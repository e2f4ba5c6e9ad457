"""The order of rows that threads code at the same time: each behind the row above."""

from ..jit.atomics import give_way, load_acquire, pause
from ..jit.kernel import helper


@helper
def wait_for_above(progress, my, mx, mb_width, first_mb, row0):
    """Waits until the macroblock above right of column mx, which may predict it, is done."""
    if my == row0 or my * mb_width <= first_mb:
        return
    needed = min(mx + 2, mb_width)
    turns = 0
    while load_acquire(progress, my) < needed:  # element my is of row my - 1
        turns += 1
        if turns % 256:
            pause()
        else:
            give_way()
