"""Decides explicit weights of reference 0 (8.4.2.3): for fades and flashes, from sums of the source frames alone.

The statistics are taken from every SUM_LINES-th line. Integers only, so that every device decides the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np

from ...cpu_simd.layout import CHROMA_WEIGHTED, LUMA_WEIGHTED
from ...cpu_simd.weighting import block_sums
from ...scheduler.frame_spec import UNWEIGHTED, FrameSpec, Weights

SUM_LINES = 4  # of as many lines one counts
_BLOCK = 16  # columns of a block, and lines (4 of which count)
_LARGEST_LOG2 = 7  # of the denominators
_LEAST_GAIN = 3, 4  # weighted differences are at most this share of the unweighted ones
_LEAST_SAVING = 1, 4  # samples: mean by which the differences shrink at least


@dataclass(frozen=True, eq=False)
class PlaneSums:
    """Of one plane of a source frame: samples that count, by line and column; their sum, sum of squares, sums of blocks
    int64[h, w].
    """

    height: int
    width: int
    total: int
    squares: int
    blocks: np.ndarray

    @property
    def count(self) -> int:
        """Samples that count."""
        return self.height * self.width

    def block_counts(self) -> np.ndarray:
        """int64[h, w]: samples that count in each block."""
        rows = np.diff([*range(0, self.height, _BLOCK // SUM_LINES), self.height])
        return np.outer(rows, np.diff([*range(0, self.width, _BLOCK), self.width]))

    @property
    def scaled_variance(self) -> int:
        """count^2 times the variance."""
        return self.count * self.squares - self.total * self.total


def plane_sums(plane: np.ndarray) -> PlaneSums:
    """The sums of a plane, uint8[H, W] of display size."""
    lines = np.ascontiguousarray(plane[::SUM_LINES])
    height, width = lines.shape
    blocks = np.empty((-(-height // (_BLOCK // SUM_LINES)), -(-width // _BLOCK)), np.int32)
    squares = int(block_sums(lines, blocks))
    return PlaneSums(height, width, int(blocks.sum(dtype=np.int64)), squares, blocks.astype(np.int64))


@dataclass(frozen=True)
class PlaneWeight:
    """A sample s becomes ((s * weight + rounding) >> log2) + offset."""

    log2: int
    weight: int
    offset: int


def plane_weight(current: PlaneSums, reference: PlaneSums) -> PlaneWeight | None:
    """The weight and offset that give the reference the mean and variance of the current frame; None: they are no better."""
    log2, weight = 0, 1
    if reference.scaled_variance:  # the ratio of the standard deviations, rounded
        log2 = _LARGEST_LOG2
        while (weight := _ratio(current.scaled_variance << 2 * log2, reference.scaled_variance)) > 127 and log2:
            log2 -= 1
        while log2 and weight % 2 == 0:
            log2, weight = log2 - 1, weight // 2
    if weight > 127:
        return None
    offset = _rounded((current.total << log2) - weight * reference.total, current.count << log2)
    offset = max(-128, min(127, offset))
    if (log2, weight, offset) == (0, 1, 0):
        return None
    before = _difference(current.blocks << log2, reference.blocks << log2)
    weighted = weight * reference.blocks + (offset * current.block_counts() << log2)
    after = _difference(current.blocks << log2, weighted)
    gained = after * _LEAST_GAIN[1] <= before * _LEAST_GAIN[0]
    saved = (before - after) * _LEAST_SAVING[1] >= _LEAST_SAVING[0] * current.count << log2
    return PlaneWeight(log2, weight, offset) if gained and saved else None


def weights(current: Sequence[PlaneSums], reference: Sequence[PlaneSums]) -> Weights:
    """Of a frame with these sums of Y, Cb and Cr, whose reference 0 has those."""
    luma = plane_weight(current[0], reference[0])
    chroma = [plane_weight(now, before) for now, before in zip(current[1:], reference[1:])]
    flags = LUMA_WEIGHTED * (luma is not None) + CHROMA_WEIGHTED * any(chroma)
    if not flags:
        return UNWEIGHTED
    luma = luma or PlaneWeight(0, 1, 0)
    cb, cr = (found or PlaneWeight(0, 1, 0) for found in chroma)
    log2 = max(cb.log2, cr.log2)  # the denominator is common
    while max(at_log2 := [found.weight << log2 >> found.log2 for found in (cb, cr)]) > 127:
        log2 -= 1
    return Weights(flags, luma.log2, luma.weight, luma.offset, log2, at_log2[0], cb.offset, at_log2[1], cr.offset)


class Weighting:
    """Weights for the frames of a stream, in coding order; keeps the sums of the frames that are references."""

    def __init__(self) -> None:
        self._sums: dict[int, tuple[PlaneSums, ...]] = {}

    def of(self, spec: FrameSpec, planes: Sequence[np.ndarray]) -> FrameSpec:
        """The spec with weights. planes: Y, Cb, Cr of the source, uint8 of display size."""
        sums = tuple(map(plane_sums, planes))
        if spec.list0:
            found = weights(sums, self._sums[spec.list0[0]])
            spec = spec._replace(weights=found)
        held = {**self._sums, spec.coding_index: sums}
        self._sums = {index: held[index] for index in spec.references_after}
        return spec


def _ratio(square: int, of: int) -> int:
    """sqrt(square / of), rounded."""
    return (isqrt(4 * square // of) + 1) // 2


def _rounded(value: int, by: int) -> int:
    """value / by, rounded to nearest."""
    return (2 * value + by) // (2 * by)


def _difference(current: np.ndarray, reference: np.ndarray) -> int:
    """Sum over the blocks of the least difference from a block of the reference at most one block away: motion counts not."""
    height, width = current.shape
    padded = np.pad(reference, 1, mode="edge")
    least = np.abs(current - reference)
    for y in range(3):
        for x in range(3):
            np.minimum(least, np.abs(current - padded[y : y + height, x : x + width]), out=least)
    return int(least.sum())
