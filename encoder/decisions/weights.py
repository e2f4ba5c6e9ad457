"""Explicit weights of the last reference (8.4.2.3) for the P frames of a stream, from sums of the source frames alone.

One of some lines counts (sum_block in cpu_simd/layout.py), and the device that has the frame adds them up.
"""

from collections.abc import Sequence

import numpy as np

from ...cpu_simd.inter.explicit_weights import choose_weights
from ...cpu_simd.inter.weighting import block_sums
from ...cpu_simd.layout import MOST_WEIGHTED, N_WEIGHTS, n_sum_blocks, sum_block
from ...jit.kernel import OneVersion
from ...scheduler.frame_spec import MOST_ENTRIES, FrameSpec, P, Weights

_choose, _block_sums = OneVersion(choose_weights), OneVersion(block_sums)


def frame_sums(planes: Sequence[np.ndarray]) -> np.ndarray:
    """int32[2, n], see cpu_simd.inter.weighting.block_sums; planes: Y, Cb, Cr, uint8 of display size."""
    height, width = planes[0].shape
    block, lines = sum_block(width, height)
    sums, step = np.empty((2, n_sum_blocks(width, height)), np.int32), lines
    if not all(plane.flags.carray for plane in planes):
        step, planes = 1, [np.array(plane[::lines], order="C") for plane in planes]
    _block_sums.call(*planes, block, block // lines, step, sums)
    return sums


def entries(current: np.ndarray, reference: np.ndarray, size: tuple[int, int], repeats: bool) -> tuple[Weights, ...]:
    """Weights of the first entries of RefPicList0, which are one frame; empty: one entry without weights.

    current, reference: frame_sums of the frame and of its reference; size: width and height; repeats: there may be two.
    """
    numbers = np.empty((MOST_WEIGHTED, N_WEIGHTS), np.int32)
    count = _choose.call(current, reference, *size, *sum_block(*size), repeats, numbers)
    return tuple([Weights(*entry) for entry in numbers[:count].tolist()])


class Weighting:
    """Weights for the P frames of a stream; takes all frames in coding order, keeps the sums of those that are references."""

    def __init__(self, size: tuple[int, int], repeats: bool) -> None:
        """size: width and height; repeats: RefPicList0 may repeat its first frame, with other weights."""
        self._size, self._repeats = size, repeats
        self._sums: dict[int, np.ndarray | None] = {}

    sums_of = staticmethod(frame_sums)

    def of(self, spec: FrameSpec, sums: np.ndarray | None) -> FrameSpec:
        """The spec with weights, and a list that may repeat its first frame. sums: frame_sums of it; None: unknown."""
        if spec.frame_type == P:  # B frames have implicit weights
            reference = self._sums[spec.list0[0]]
            first = () if sums is None or reference is None else entries(sums, reference, self._size, self._repeats)
            first = first[: 1 + MOST_ENTRIES - len(spec.list0)]
            if first:
                list0 = (*(len(first) - 1) * spec.list0[:1], *spec.list0)
                distances = (*(len(first) - 1) * spec.distances[:1], *spec.distances)
                spec = spec.changed(weights=first, list0=list0, distances=distances)
        sums_by_frame = {**self._sums, spec.coding_index: sums}
        self._sums = {index: sums_by_frame[index] for index in spec.references_after}
        return spec
