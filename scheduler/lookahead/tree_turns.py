"""The order in which a GPU goes through the frames of the macroblock tree, as rows of its table of jobs."""

import numpy as np

from ...cuda_src.lookahead.macroblock_tree import AFTER, AMOUNT, GIFTS, OFFSETS, WORDS
from ...jit.kernel import OneVersion, quick_kernel

GIFT, OTHER_GIFT = GIFTS, GIFTS + 1


@quick_kernel
def write_turns(jobs, first, amounts, offsets, n_mb, depths, rows):
    """Rows of the jobs, those first that give to none which has not had its turn.

    jobs: int64[n, WORDS] of consecutive frames in coding order, `first` the index of the first one: with the indices of their
    references as GIFTS, negative or below `first` for none; AMOUNT and OFFSETS are written. amounts, offsets: addresses of
    int64[n, n_mb], int32[n, n_mb]. depths: int64[n], scratch. rows: int64[n, WORDS] out.
    """
    n = jobs.shape[0]
    depths[:n] = 0
    for index in range(n - 1, -1, -1):
        jobs[index, AMOUNT], jobs[index, OFFSETS] = amounts + 8 * n_mb * index, offsets + 4 * n_mb * index
        for gift in (GIFT, OTHER_GIFT):
            to = jobs[index, gift] - first
            if to >= 0:
                depths[to] = max(depths[to], depths[index] + 1)
    at = depth = 0
    while at < n:
        before = at  # frames of lower depth
        for index in range(n):
            if depths[index] == depth:
                rows[at] = jobs[index]
                rows[at, AFTER] = before
                for gift in (GIFT, OTHER_GIFT):
                    to = jobs[index, gift] - first
                    rows[at, gift] = amounts + 8 * n_mb * to if to >= 0 else 0
                at += 1
        depth += 1


turns = OneVersion(write_turns)


def load_turns() -> None:
    """Compile the kernel, or load its machine code."""
    job = np.zeros((1, WORDS), np.int64)
    turns.call(job, 1, 0, 0, 1, np.zeros(1, np.int64), job.copy())
