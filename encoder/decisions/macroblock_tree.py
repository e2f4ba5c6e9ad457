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
from ..settings.config import Config
from .fixed_point import LOG2_SHIFT, QP_SHIFT, fixed, scaled
from .lookahead import UsedMotion

_STRENGTH = 5  # QPs for an amount as large as the macroblock's own worth, at qcomp 0
_GROUP = 4  # of the frames ahead this part leaves together, so that costs flow back once for all of them


class Node(NamedTuple):
    """A frame of the tree. intra: uint16[n_mb]; used: None for I frames."""

    spec: FrameSpec
    qp: int  # before offsets, in 1 / 256
    intra: np.ndarray
    used: UsedMotion | None


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

    def add(self, node: Node) -> Iterator[tuple[Node, np.ndarray | None]]:
        """The next frame in coding order. Yields those that leave, each with its offsets int32[n_mb] in 1 / 256, None for
        frames that are no references.
        """
        if node.spec.frame_type == I:  # the nearest references of all later frames are this one or later ones
            yield from self.flush()
        self._nodes.append(node)
        if len(self._nodes) >= self._ahead + self._group:
            yield from self._leaving(self._group)

    def flush(self) -> Iterator[tuple[Node, np.ndarray | None]]:
        """No frame follows that depends on those that wait: yields all."""
        yield from self._leaving(len(self._nodes))

    def _leaving(self, count: int) -> Iterator[tuple[Node, np.ndarray | None]]:
        """The first `count` frames."""
        offsets = self._offsets(count)
        for found in offsets:
            yield self._nodes.popleft(), found

    def _offsets(self, count: int) -> list[np.ndarray | None]:
        """Of the first `count` frames."""
        amounts: dict[int, np.ndarray] = {}  # by coding index
        found: list[np.ndarray | None] = []
        for place in range(len(self._nodes) - 1, -1, -1):
            node = self._nodes[place]
            spec, own = node.spec, node.intra.astype(np.int64) << COST_SHIFT
            amount = amounts.pop(spec.coding_index, None)
            if amount is None:
                amount = np.zeros_like(own)
            if node.used is not None:
                gifts = [amounts.setdefault(index, np.zeros_like(own)) for index in _nearest(spec)]
                weight = min(64, max(0, spec.implicit_weights[0])) if spec.list1 else 0
                tree_propagate(node.intra, own, node.used, weight, self._mb_width, amount, gifts[0], gifts[-1])
            if place < count:
                found.append(self._offsets_of(own, amount) if spec.is_reference else None)
        return found[::-1]

    def _offsets_of(self, own: np.ndarray, amount: np.ndarray) -> np.ndarray:
        offsets = np.empty(own.size, np.int32)
        tree_offsets(own, amount, self._strength, offsets)
        return offsets


def _nearest(spec: FrameSpec) -> tuple[int, ...]:
    """The references of a frame in the tree: the first of each list."""
    return (*spec.list0[:1], *spec.list1[:1])
