"""QP offsets of macroblocks by what later frames take from them: the macroblock tree over the frames ahead.

Frames come in coding order and wait until enough later ones are there (`--rc-lookahead`). Integers that are functions of the
costs of source frames (lookahead.py). Costs flow backwards, in reverse coding order, so that each frame's amount is complete
when its turn comes, whatever the pyramid of B frames.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...cpu_simd.decisions.lookahead import AMOUNT_SHIFT, MOST_HIDDEN, SQUARE_SHIFT
from ...cpu_simd.lookahead.macroblock_tree import tree_offsets, tree_propagate
from ...jit.kernel import OneVersion
from ...process import cached_property
from ...scheduler.frame_spec import FrameSpec, I
from ...scheduler.lookahead.costs import CostPending, CostQuery, LookaheadCosts, TreeFrame, UsedMotion
from ..settings.config import Config
from .adapted_frames import Adapted
from .fixed_point import LOG2_SHIFT, QP_SHIFT, exp2_array, fixed, scaled
from .rate_factor import TREE_QPS

_propagate, _tree_offsets = OneVersion(tree_propagate), OneVersion(tree_offsets)
_STRENGTH = 6  # QPs for an amount as large as the macroblock's own worth, at qcomp 0
_NOISE = 12 << 4  # cost of a residual half of which quantisation leaves out at QP 0, in 1 / 16: as of tree_propagate
_STEP = 6 << QP_SHIFT  # QPs that double the quantiser step
_GROUP = 4  # of the frames ahead this part leaves together, so that costs flow back once for all of them


class Flow(NamedTuple):
    """What the tree needs of a frame on the host. intra: uint16[n_mb]; used: None for I frames."""

    intra: np.ndarray
    used: UsedMotion | None
    mb_error: np.ndarray  # int64[n_mb]; as of tree_propagate, as is `hidden`
    hidden: np.ndarray  # int64[n_mb]


class Node:
    """A frame of the tree."""

    noise = 0  # as `hidden` of tree_propagate, of a macroblock that adaptive quantisation leaves alone

    def __init__(self, spec: FrameSpec, qp: int, query: CostQuery, adapt: Callable[[], Adapted] | None) -> None:
        """qp: before offsets, in 1 / 256; query: nearest references and frame; adapt: adaptive quantisation, may wait."""
        self.spec, self.qp, self.query, self._adapt = spec, qp, query, adapt
        self.weight = min(64, max(0, spec.implicit_weights[0])) if spec.list1 else 0
        self.nearest = *spec.list0[:1], *spec.list1[:1]  # its references in the tree: the first of each list
        self.flow: Flow | None = None  # a GPU has it

    @cached_property
    def _adapted(self) -> Adapted | None:
        """Found when it is needed: a thread, or a GPU, may be at it before."""
        return None if self._adapt is None else self._adapt()

    @property
    def adapted(self) -> np.ndarray | None:
        """int32[n_mb]: offsets of adaptive quantisation, in 1 / 256."""
        return None if self._adapted is None else self._adapted.offsets

    @cached_property
    def for_gpu(self) -> TreeFrame:
        """What a GPU needs of it."""
        references = (self.nearest[0], self.nearest[-1]) if self.nearest else (-1, -1)
        return TreeFrame(self.query, self.spec.coding_index, references, self.weight, self.noise)

    def load(self, costs: LookaheadCosts) -> None:
        """The flow comes to the host."""
        intra = costs.intra_costs(self.query[-1])
        used = None
        if len(self.query) > 1:
            used = (costs.used_of_p if len(self.query) == 2 else costs.used_of_b)(*self.query)
        if self._adapted is None:
            square = np.full(intra.size, 1 << SQUARE_SHIFT, np.int64)
        else:
            square = np.maximum(self._adapted.error_weights.astype(np.int64) ** 2 >> SQUARE_SHIFT, 1)
        mb_error = np.maximum(square >> (SQUARE_SHIFT - AMOUNT_SHIFT), 1)
        self.flow = Flow(intra, used, mb_error, np.minimum((self.noise << SQUARE_SHIFT) // square, MOST_HIDDEN))

    def with_tree(self, offsets: np.ndarray | None) -> "FrameWithQp":
        """It leaves with offsets of the tree."""
        by_tree = offsets if self.spec.is_reference else None
        return self.spec, self.qp, [some for some in (self.adapted, by_tree) if some is not None]


# a frame, its QP in 1 / 256 and at most two arrays of offsets of its macroblocks, which add up: int32[n_mb] in 1 / 256, valid
# until the next frame comes; without any all have the frame's QP
FrameWithQp = tuple[FrameSpec, int, Sequence[np.ndarray]]


class MacroblockTree:
    """Holds the frames of a stream until `ahead` later ones are known, or one that no earlier frame is a reference of."""

    def __init__(self, mb_width: int, ahead: int, strength: int, above: int, costs: LookaheadCosts) -> None:
        """strength: as of tree_offsets; above: QPs of frames before offsets over those with them, in 1 / 256."""
        self._mb_width, self._ahead, self._strength, self._above, self._costs = mb_width, ahead, strength, above, costs
        self._group = max(1, ahead // _GROUP)
        self._nodes: deque[Node] = deque()
        self._leaving = self._window = 0  # the first frames that leave with the tree that a GPU grows, of so many first ones
        self.needed_from: int | None = None  # the first frame in display order whose costs only a GPU has; None: none

    @classmethod
    def of(cls, config: Config, costs: LookaheadCosts) -> "MacroblockTree":
        """For an encode."""
        ease = fixed(1 - Fraction(config.rate.qcomp), LOG2_SHIFT)
        strength, above = (scaled(qps, ease, LOG2_SHIFT) for qps in (_STRENGTH << QP_SHIFT, fixed(TREE_QPS, QP_SHIFT)))
        return cls(config.coding.mb_width, config.types.rc_lookahead, strength, above, costs)

    def add(self, node: Node) -> Iterator[FrameWithQp]:
        """The next frame in coding order. Those that leave."""
        yield from self._ended(wait=False)
        if node.spec.frame_type == I:  # the nearest references of all later frames are this one or later ones
            yield from self._leave(len(self._nodes) - self._leaving)
        node.noise = _noise(max(0, node.qp - self._above))
        if not self._costs.has_tree:
            node.load(self._costs)
        elif self.needed_from is None or min(node.query) < self.needed_from:
            self.needed_from = min(node.query)
        self._nodes.append(node)
        if len(self._nodes) - self._leaving >= self._ahead + self._group:
            yield from self._leave(self._group)

    def flush(self) -> Iterator[FrameWithQp]:
        """No frame follows that depends on those that wait: all leave."""
        yield from self._leave(len(self._nodes) - self._leaving)
        yield from self._ended(wait=True)

    def _leave(self, count: int) -> Iterator[FrameWithQp]:
        """The next `count` frames, on the host now, on a GPU later, and those before."""
        yield from self._ended(wait=True)
        if count:
            self._leaving, self._window = count, len(self._nodes)
            if not self._costs.start_tree([node.for_gpu for node in self._nodes], count, self._strength):
                yield from self._with_offsets(self._offsets())

    def _ended(self, wait: bool) -> Iterator[FrameWithQp]:
        """The frames whose offsets a GPU has computed."""
        if not self._leaving:
            return
        try:
            offsets = self._costs.tree(wait)
        except CostPending:
            return
        yield from self._with_offsets(self._offsets() if offsets is None else offsets)

    def _with_offsets(self, offsets: Sequence[np.ndarray | None]) -> Iterator[FrameWithQp]:
        """The first frames leave."""
        left, self._leaving = [self._nodes.popleft() for _ in offsets], 0
        self.needed_from = min([min(node.query) for node in self._nodes if node.flow is None], default=None)
        for node, of_tree in zip(left, offsets):
            yield node.with_tree(of_tree)

    def _offsets(self) -> list[np.ndarray | None]:
        """Of the frames that leave, on the host."""
        amounts: dict[int, np.ndarray] = {}  # by coding index
        offsets: list[np.ndarray | None] = []
        for k in range(self._window - 1, -1, -1):
            node = self._nodes[k]
            if node.flow is None:
                node.load(self._costs)
            assert node.flow is not None
            intra, used, mb_error, hidden = node.flow
            amount = amounts.pop(node.spec.coding_index, None)
            if amount is None:
                amount = np.zeros(mb_error.size, np.int64)
            if used is not None:
                for index in node.nearest:
                    if index not in amounts:
                        amounts[index] = np.zeros(mb_error.size, np.int64)
                gifts = amounts[node.nearest[0]], amounts[node.nearest[-1]]
                _propagate.call(intra, mb_error, hidden, used, node.weight, self._mb_width, amount, *gifts)
            if k < self._leaving:
                offsets.append(self._offsets_of(mb_error, amount) if node.spec.is_reference else None)
        return offsets[::-1]

    def _offsets_of(self, mb_error: np.ndarray, amount: np.ndarray) -> np.ndarray:
        offsets = np.empty(mb_error.size, np.int32)
        _tree_offsets.call(mb_error, amount, self._strength, offsets)
        return offsets


@lru_cache(512)
def _noise(qp: int) -> int:
    """See Node. qp: in 1 / 256; the noise is as large as the quantiser step."""
    doubled, rest = divmod(qp, _STEP)
    step = int(exp2_array(np.array([(rest << LOG2_SHIFT) // _STEP]))[0])
    return (_NOISE * step << doubled) >> LOG2_SHIFT
