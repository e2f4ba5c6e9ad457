"""The choice of explicit weights in plain NumPy and whole numbers of any size: what the kernel is compared with."""

from math import isqrt
from typing import NamedTuple

import numpy as np
from h264lite.cpu_simd.layout import CHROMA_WEIGHTED, LUMA_WEIGHTED, sum_block
from h264lite.scheduler.frame_spec import UNWEIGHTED, Weights

NONE = 0, 1, 0  # log2 of the denominator, weight, offset


class PlaneSums(NamedTuple):
    """Of the lines of a plane that count: sum, sum of squares; by block int64[h, w] the sums, and the numbers of samples."""

    total: int
    squares: int
    blocks: np.ndarray
    counts: np.ndarray

    @property
    def count(self):
        return int(self.counts.sum())

    @property
    def variance(self):
        """count^2 times the variance."""
        return self.count * self.squares - self.total**2


def by_blocks(lines, block, step):
    """int64[h, w]: sums of blocks."""
    rows, columns = range(0, lines.shape[0], block // step), range(0, lines.shape[1], block)
    return np.add.reduceat(np.add.reduceat(lines.astype(np.int64), rows, 0), columns, 1)


def plane_sums(plane, block, step):
    lines = plane[::step].astype(np.int64)
    by_block = [by_blocks(values, block, step) for values in (lines, np.ones_like(lines))]
    return PlaneSums(int(lines.sum()), int((lines**2).sum()), *by_block)


def frame_sums(planes):
    """int32[2, n] as block_sums in cpu_simd/inter/weighting.py."""
    block, step = sum_block(*planes[0].shape[::-1])
    lines = [plane[::step].astype(np.int64) for plane in planes]
    return np.stack([np.concatenate([by_blocks(values**power, block, step).ravel() for values in lines]) for power in (1, 2)])


def ratio(square, of):
    """sqrt(square / of), rounded."""
    return (isqrt(4 * square // of) + 1) // 2


def rounded(value, by):
    return (2 * value + by) // (2 * by)


def clipped(offset):
    return max(-128, min(127, offset))


def least_differences(current, reference):
    """Of each block from the blocks of the reference that are at most one away."""
    near = np.pad(reference, 1, constant_values=2**40)
    h, w = current.shape
    return np.min([abs(near[y : y + h, x : x + w] - current) for y in range(3) for x in range(3)], 0)


def differences(current, reference, log2, weight, offset):
    return least_differences(current.blocks << log2, weight * reference.blocks + (offset << log2) * current.counts)


def plane_weight(current, reference):
    """That gives the mean and the variance of the current plane, where this saves enough of the differences."""
    log2, weight = 0, 1
    if reference.variance:
        weights = {k: ratio(current.variance << 2 * k, reference.variance) for k in range(8)}
        log2 = max([k for k in weights if weights[k] <= 127], default=0)
        weight = weights[log2]
        while log2 and weight % 2 == 0:
            log2, weight = log2 - 1, weight // 2
    if weight > 127:
        return NONE
    offset = clipped(rounded((current.total << log2) - weight * reference.total, current.count << log2))
    before = int(differences(current, reference, 0, 1, 0).sum()) << log2
    after = int(differences(current, reference, log2, weight, offset).sum())
    unit = current.count << log2
    enough = 4 * before >= unit and 4 * (before - after) >= unit and 4 * after <= 3 * before
    return (log2, weight, offset) if enough else NONE


def first_weights(current, reference):
    luma, cb, cr = map(plane_weight, current, reference)
    flags = LUMA_WEIGHTED * (luma != NONE) + CHROMA_WEIGHTED * ((cb, cr) != (NONE, NONE))
    if not flags:
        return UNWEIGHTED
    log2 = max(cb[0], cr[0])
    while max(weights := [weight << log2 >> log2_of for log2_of, weight, _ in (cb, cr)]) > 127:
        log2 -= 1
    return Weights(flags, *luma, log2, weights[0], cb[2], weights[1], cr[2])


def second_weights(current, reference, first):
    """None: there is no second entry."""
    weighted = first.flags & LUMA_WEIGHTED
    log2, weight, offset = first[1:4] if weighted else (6, 64, 0)
    one, unit = (1 << log2, 0), current.count << log2
    served = differences(current, reference, log2, weight, offset)
    missing = int(served.sum())
    badly = served > 2 * current.counts << log2
    if 4 * missing < (2 if weighted else 4) * unit or 16 * np.count_nonzero(badly) < badly.size:
        return None
    now, before = (16 * sums.blocks[badly] // current.counts[badly] for sums in (current, reference))
    missed = int(np.sort(now - before)[len(now) // 2]) // 16
    tried = [one, (1 << log2, clipped(missed))]
    if spread := len(now) * int((before**2).sum()) - int(before.sum()) ** 2:
        weight = ratio((len(now) * int((now**2).sum()) - int(now.sum()) ** 2) << 2 * log2, spread)
        total = (int(now.sum()) << log2) - weight * int(before.sum())
        tried.append((weight, clipped(rounded(total, 16 * len(now) << log2))))
    best, least = None, missing
    for pair in tried:
        if weighted if pair == one else pair[0] < 128:
            left = int(np.minimum(served, differences(current, reference, log2, *pair)).sum())
            enough = 4 * (missing - left) >= (2 if pair == one else 4) * unit and (weighted or 5 * left <= 3 * missing)
            if enough and left < least:
                best, least = pair, left
    if best in (None, one):
        return None if best is None else UNWEIGHTED
    return first._replace(flags=LUMA_WEIGHTED, luma_log2=log2, luma_weight=best[0], luma_offset=best[1])


def entries(current, reference, repeats):
    """As those of encoder/decisions/weights.py, from the planes of both frames."""
    grid = sum_block(*current[0].shape[::-1])
    now, before = ([plane_sums(plane, *grid) for plane in planes] for planes in (current, reference))
    first = first_weights(now, before)
    second = second_weights(now[0], before[0], first) if repeats else None
    return tuple(entry for entry in (first, second) if entry is not None)[: None if second or first.flags else 0]
