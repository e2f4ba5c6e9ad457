"""Decides explicit weights of the last reference (8.4.2.3): for fades and flashes, from sums of the source frames alone.

The statistics are taken from every SUM_LINES-th line, on the device that has the frame. Integers only, so that every device
decides the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np

from ...cpu_simd.inter.weighting import block_sums
from ...cpu_simd.layout import CHROMA_WEIGHTED, LUMA_WEIGHTED, SUM_BLOCK, SUM_LINES
from ...cpu_simd.source.block_differences import least_differences
from ...jit.kernel import OneVersion
from ...scheduler.frame_spec import MOST_ENTRIES, UNWEIGHTED, FrameSpec, P, Weights
from ...standard.sample_format import chroma_shape

_LARGEST_LOG2 = 7  # of the denominators
_LEAST_GAIN = 3, 4  # weighted differences are at most this share of the unweighted ones
_LEAST_SAVING = 1, 4  # samples: mean by which the differences shrink at least
_BADLY = 2  # samples: difference of the means of a block
_LEAST_SHARE = 16  # one of so many blocks
_SECOND_LOG2 = 6  # of the denominator where the first weights have none
_SAVED_BY_NONE, _SAVED_BY_SECOND = (1, 2), (1, 1)  # as _LEAST_SAVING, by a second entry: less is by motion
_MOST_LEFT = 3, 5  # of the differences, by a second entry beside one without weights: motion leaves more
_LEVELS = 16  # parts of a sample in means of blocks
_block_sums, _least_differences = map(OneVersion, (block_sums, least_differences))


@dataclass(frozen=True, eq=False)
class PlaneSums:
    """Of one plane of a source frame: samples that count, by line and column; their sum, sum of squares, sums of blocks
    int32[h, w].
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
        """int32[h, w]: samples that count in each block."""
        return _block_counts(self.height, self.width)

    @property
    def scaled_variance(self) -> int:
        """count^2 times the variance."""
        return self.count * self.squares - self.total * self.total


Sums = tuple[PlaneSums, ...]  # of Y, Cb, Cr


def frame_sums(planes: Sequence[np.ndarray]) -> Sums:
    """Of Y, Cb, Cr, uint8 of display size."""
    return tuple(map(plane_sums, planes))


def plane_sums(plane: np.ndarray) -> PlaneSums:
    """The sums of a plane, uint8[H, W] of display size."""
    lines = np.ascontiguousarray(plane[::SUM_LINES])
    height, width = lines.shape
    blocks = np.empty((-(-height // (SUM_BLOCK // SUM_LINES)), -(-width // SUM_BLOCK)), np.int32)
    squares = int(_block_sums.call(lines, blocks))
    return PlaneSums(height, width, int(blocks.sum(dtype=np.int64)), squares, blocks)


def sums_of_blocks(block_sums: np.ndarray, width: int, height: int) -> Sums:
    """Of a frame of this size; block_sums: int32[2, n], sums of the blocks of Y, Cb, Cr, and of squares."""
    planes, at = [], 0
    for high, wide in ((height, width), *2 * [chroma_shape(height, width)]):
        shape = -(-high // SUM_BLOCK), -(-wide // SUM_BLOCK)
        blocks, squares = block_sums[:, at : at + shape[0] * shape[1]]
        at += blocks.size
        total, all_squares = (int(sums.sum(dtype=np.int64)) for sums in (blocks, squares))
        planes.append(PlaneSums(-(-high // SUM_LINES), wide, total, all_squares, blocks.reshape(shape).copy()))
    return tuple(planes)


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
    before = _weighted_differences(current, reference, log2, (1 << log2, 0))[1]
    least = _LEAST_SAVING[0] * current.count << log2
    if before * _LEAST_SAVING[1] < least:
        return None
    after = _weighted_differences(current, reference, log2, (weight, offset))[1]
    gained = after * _LEAST_GAIN[1] <= before * _LEAST_GAIN[0]
    return PlaneWeight(log2, weight, offset) if gained and (before - after) * _LEAST_SAVING[1] >= least else None


def weights(current: Sequence[PlaneSums], reference: Sequence[PlaneSums]) -> Weights:
    """Of a frame with these sums of Y, Cb and Cr, whose reference 0 has those."""
    luma = plane_weight(current[0], reference[0])
    chroma = [plane_weight(now, before) for now, before in zip(current[1:], reference[1:])]
    flags = LUMA_WEIGHTED * (luma is not None) + CHROMA_WEIGHTED * any(chroma)
    if not flags:
        return UNWEIGHTED
    luma = luma or PlaneWeight(0, 1, 0)
    cb, cr = (weight or PlaneWeight(0, 1, 0) for weight in chroma)
    log2 = max(cb.log2, cr.log2)  # the denominator is common
    while max(at_log2 := [weight.weight << log2 >> weight.log2 for weight in (cb, cr)]) > 127:
        log2 -= 1
    return Weights(flags, luma.log2, luma.weight, luma.offset, log2, at_log2[0], cb.offset, at_log2[1], cr.offset)


def entries(current: Sums, reference: Sums, repeats: bool) -> tuple[Weights, ...]:
    """Weights of the first entries of RefPicList0, which are one frame; empty: one entry without weights. repeats: there may
    be two.
    """
    first = weights(current, reference)
    second = second_weights(current[0], reference[0], first) if repeats else None
    if second is None:
        return (first,) if first.flags else ()
    return first, second


def second_weights(current: PlaneSums, reference: PlaneSums, first: Weights) -> Weights | None:
    """Other weights for the parts that `first` serves badly, such as captions over a fade, and lights; None: they are few.

    None at all, an offset (the median of what these blocks miss), or what gives their means the mean and the variance.
    """
    counts, weighted = current.block_counts(), first.flags & LUMA_WEIGHTED
    log2 = first.luma_log2 if weighted else _SECOND_LOG2
    one, needed = (1 << log2, 0), _SAVED_BY_NONE if weighted else _SAVED_BY_SECOND
    served, missing = _weighted_differences(current, reference, log2, first[2:4] if weighted else one)
    if missing * needed[1] < needed[0] * current.count << log2:
        return None
    badly = served > _BADLY * counts << log2
    if np.count_nonzero(badly) * _LEAST_SHARE < badly.size:
        return None
    now, before = (sums.blocks[badly].astype(np.int64) * _LEVELS // counts[badly] for sums in (current, reference))
    missed = int(np.partition(now - before, len(now) // 2)[len(now) // 2]) // _LEVELS
    tried = [(1 << log2, offset) for offset in ((0, missed) if weighted else (missed,) if missed else ())]
    if scaled := len(now) * int((before * before).sum()) - int(before.sum()) ** 2:
        variance = len(now) * int((now * now).sum()) - int(now.sum()) ** 2
        weight = _ratio(variance << 2 * log2, scaled)
        total = (int(now.sum()) << log2) - weight * int(before.sum())
        tried.append((weight, _rounded(total, _LEVELS * len(now) << log2)))
    best, least = None, missing
    for weight, offset in tried:
        pair = weight, max(-128, min(127, offset))
        if weight < 128 or (weighted and pair == one):
            left = int(np.minimum(served, _weighted_differences(current, reference, log2, pair)[0]).sum(dtype=np.int64))
            saving = _SAVED_BY_NONE if pair == one else _SAVED_BY_SECOND
            if not weighted and left * _MOST_LEFT[1] > missing * _MOST_LEFT[0]:
                continue
            if left < least and (missing - left) * saving[1] >= saving[0] * current.count << log2:
                best, least = pair, left
    if best is None or best == one:
        return None if best is None else UNWEIGHTED
    return first._replace(flags=LUMA_WEIGHTED, luma_log2=log2, luma_weight=best[0], luma_offset=best[1])


class Weighting:
    """Weights for the P frames of a stream; takes all frames in coding order, keeps the sums of those that are references."""

    def __init__(self, repeats: bool) -> None:
        """repeats: RefPicList0 may repeat its first frame, with other weights."""
        self._repeats = repeats
        self._sums: dict[int, Sums | None] = {}

    def of(self, spec: FrameSpec, sums: Sums | None) -> FrameSpec:
        """The spec with weights, and a list that may repeat its first frame. sums: of the source; None: unknown."""
        if spec.frame_type == P:  # B frames have implicit weights
            reference = self._sums[spec.list0[0]]
            first = entries(sums, reference, self._repeats) if sums and reference else ()
            first = first[: 1 + MOST_ENTRIES - len(spec.list0)]
            list0 = (*(len(first) - 1) * spec.list0[:1], *spec.list0)
            distances = (*(len(first) - 1) * spec.distances[:1], *spec.distances)
            spec = spec._replace(weights=first, list0=list0, distances=distances)
        sums_by_frame = {**self._sums, spec.coding_index: sums}
        self._sums = {index: sums_by_frame[index] for index in spec.references_after}
        return spec


def _ratio(square: int, of: int) -> int:
    """sqrt(square / of), rounded."""
    return (isqrt(4 * square // of) + 1) // 2


def _rounded(value: int, by: int) -> int:
    """value / by, rounded to nearest."""
    return (2 * value + by) // (2 * by)


@lru_cache(maxsize=8)
def _block_counts(height: int, width: int) -> np.ndarray:
    """See PlaneSums.block_counts; not to be written."""
    rows = np.diff([*range(0, height, SUM_BLOCK // SUM_LINES), height])
    return np.outer(rows, np.diff([*range(0, width, SUM_BLOCK), width])).astype(np.int32)


def _weighted_differences(
    current: PlaneSums, reference: PlaneSums, log2: int, pair: Sequence[int]
) -> tuple[np.ndarray, int]:  # fmt: skip
    """least_differences int32[h, w] from the reference with weight and offset, times 2^log2, and their sum."""
    weight, offset = pair
    predicted = reference.blocks if weight == 1 else weight * reference.blocks
    if offset:
        predicted = predicted + (offset << log2) * current.block_counts()
    least = np.empty_like(predicted)
    return least, int(_least_differences.call(current.blocks << log2 if log2 else current.blocks, predicted, least))
