"""QP offsets of macroblocks by what later frames take from them: the macroblock tree over the frames ahead.

Frames come in coding order and wait until enough later ones are there (`--rc-lookahead`). Integers that are functions of the
costs of source frames (lookahead.py). Costs flow backwards, in reverse coding order, so that each frame's amount is complete
when its turn comes, whatever the pyramid of B frames.
"""

from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ...cpu_simd.macroblock_tree import COST_SHIFT, tree_offsets, tree_propagate
from ...scheduler.frame_spec import FrameSpec, I
from ...scheduler.lookahead.questions import UsedMotion
from ..settings.config import Config
from .fixed_point import LOG2_SHIFT, QP_SHIFT, exp2_array, fixed, scaled

_STRENGTH = 5  # QPs for an amount as large as the macroblock's own worth, at qcomp 0
_STEP = 6  # QPs that double the quantiser step
_MOST_LOG2 = 8 << LOG2_SHIFT
_GROUP = 4  # of the frames ahead this part leaves together, so that costs flow back once for all of them


class Node(NamedTuple):
    """A frame of the tree. intra: uint16[n_mb]; used: None for I frames."""

    spec: FrameSpec
    qp: int  # before offsets, in 1 / 256
    intra: np.ndarray
    used: UsedMotion | None
    adapted: np.ndarray | None  # int32[n_mb], offsets of adaptive quantisation in 1 / 256

    @property
    def own(self) -> np.ndarray:
        """int64[n_mb]: what each macroblock is worth by itself, in 1 / 2^COST_SHIFT: its cost, at finer steps more."""
        own = self.intra.astype(np.int64)
        if self.adapted is None:
            return own << COST_SHIFT
        log2 = np.clip(-self.adapted.astype(np.int64) * (1 << LOG2_SHIFT - QP_SHIFT) // _STEP, -_MOST_LOG2, _MOST_LOG2)
        worth = own * exp2_array(log2 + _MOST_LOG2) >> LOG2_SHIFT - COST_SHIFT + (_MOST_LOG2 >> LOG2_SHIFT)
        return np.maximum(worth, 1)

    @property
    def offsets(self) -> np.ndarray:
        """int32[n_mb]: without the tree."""
        return np.zeros(self.intra.size, np.int32) if self.adapted is None else self.adapted


# a frame, its QP in 1 / 256 and offsets of its macroblocks, int32[n_mb] in 1 / 256; None: all have the frame's QP
Settled = tuple[FrameSpec, int, np.ndarray | None]


class MacroblockTree:
    """Holds the frames of a stream until `ahead` later ones are known, or one that no earlier frame is a reference of."""

    def __init__(self, mb_width: int, ahead: int, strength: int) -> None:
        """strength: as of tree_offsets."""
        self._mb_width, self._ahead, self._strength = mb_width, ahead, strength
        self._group = max(1, ahead // _GROUP)
        self._nodes: deque[Node] = deque()

    @classmethod
    def of(cls, config: Config) -> "MacroblockTree":
        """For an encode."""
        strength = scaled(_STRENGTH << QP_SHIFT, fixed(1 - Fraction(config.qcomp), LOG2_SHIFT), LOG2_SHIFT)
        return cls(config.mb_width, config.rc_lookahead, strength)

    def add(self, node: Node) -> Iterator[Settled]:
        """The next frame in coding order. Yields those that leave."""
        if node.spec.frame_type == I:  # the nearest references of all later frames are this one or later ones
            yield from self.flush()
        self._nodes.append(node)
        if len(self._nodes) >= self._ahead + self._group:
            yield from self._leaving(self._group)

    def flush(self) -> Iterator[Settled]:
        """No frame follows that depends on those that wait: yields all."""
        yield from self._leaving(len(self._nodes))

    def _leaving(self, count: int) -> Iterator[Settled]:
        """The first `count` frames."""
        offsets = self._offsets(count)
        for found in offsets:
            node = self._nodes.popleft()
            yield node.spec, node.qp, found

    def _offsets(self, count: int) -> list[np.ndarray | None]:
        """Of the first `count` frames."""
        amounts: dict[int, np.ndarray] = {}  # by coding index
        found: list[np.ndarray | None] = []
        for place in range(len(self._nodes) - 1, -1, -1):
            node = self._nodes[place]
            spec, own = node.spec, node.own
            amount = amounts.pop(spec.coding_index, None)
            if amount is None:
                amount = np.zeros_like(own)
            if node.used is not None:
                gifts = [amounts.setdefault(index, np.zeros_like(own)) for index in _nearest(spec)]
                weight = min(64, max(0, spec.implicit_weights[0])) if spec.list1 else 0
                tree_propagate(node.intra, own, node.used, weight, self._mb_width, amount, gifts[0], gifts[-1])
            if place < count:
                found.append(node.offsets + self._offsets_of(own, amount) if spec.is_reference else node.adapted)
        return found[::-1]

    def _offsets_of(self, own: np.ndarray, amount: np.ndarray) -> np.ndarray:
        offsets = np.empty(own.size, np.int32)
        tree_offsets(own, amount, self._strength, offsets)
        return offsets


def _nearest(spec: FrameSpec) -> tuple[int, ...]:
    """The references of a frame in the tree: the first of each list."""
    return (*spec.list0[:1], *spec.list1[:1])
