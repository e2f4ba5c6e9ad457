"""QP of each frame at a constant rate factor (CRF): complex frames are coded more coarsely, as x264 does it.

Not part of the standard. A function of the costs of source frames alone (lookahead.py), in integers: QPs are in 1 / 256.
"""

from dataclasses import dataclass
from fractions import Fraction

from ...scheduler.frame_spec import B, FrameSpec, I
from ..settings.config import Config
from .fixed_point import LOG2_SHIFT, QP_SHIFT, fixed, log2_fixed, log2_of, scaled
from .second_pass import rate_factor

_STEP = 6  # QPs that double the quantiser step
_COST_P, _COST_B = 96, 136  # of a macroblock whose frame has QP CRF, in streams without and with B frames: bits as x264's
_USUAL = Fraction(1, 25)  # seconds of a frame whose QP has no addition for its duration
_SHORTEST, _LONGEST = Fraction(1, 100), Fraction(1)
TREE_QPS = Fraction(27, 2)  # QP of a frame with macroblock tree, which makes most macroblocks finer again, at qcomp 0
# the tree's offsets grow with the QP, so that bits fall by less than x264's from one rate factor to the next: QPs lie further
# from this one by one part of so many
_TREE_CRF, _FURTHER = 23, 16
_TREE_PB = 1.3  # as --pbratio, with macroblock tree, whose offsets are most of the distance
_DECAY = 95, 100  # weight of a frame in the mean QP, against that of the next one
_SUM_SHIFT = 16


@dataclass(frozen=True, eq=False, repr=False)
class CrfRules:
    """Settings of the decisions; names are those of the options, numbers without a unit are QPs in 1 / 256."""

    crf: int
    ease: int  # 1 - qcomp, in 1 / 65536: 0 leaves all frames the same QP
    ip: int  # P frames above I frames
    pb: int  # B frames above P frames
    qpmin: int
    qpmax: int
    log2_usual: int  # of the cost of a frame whose QP is crf, in 1 / 65536
    log2_duration: int  # of the duration of a frame over the usual one, in 1 / 65536
    tree: bool  # whether QPs are those of frames with macroblock tree

    @classmethod
    def of(cls, config: Config) -> "CrfRules":
        """Those of an encode."""
        assert config.rate.crf is not None
        factor = fixed(config.rate.crf, QP_SHIFT)
        if config.rate.mbtree:
            factor += (factor - (_TREE_CRF << QP_SHIFT)) // _FURTHER
        duration = min(_LONGEST, max(_SHORTEST, 1 / config.video.fps)) / _USUAL
        usual = config.coding.n_mb * (_COST_B if config.coding.bframes else _COST_P)
        return cls(
            crf=factor if config.rate.first_pass is None else rate_factor(config),
            ease=fixed(1 - Fraction(config.rate.qcomp), LOG2_SHIFT),
            ip=_steps(log2_of(config.rate.ipratio)),
            pb=_steps(log2_of(_TREE_PB if config.rate.mbtree else config.rate.pbratio)),
            qpmin=config.rate.qpmin << QP_SHIFT,
            qpmax=config.rate.qpmax << QP_SHIFT,
            log2_usual=log2_fixed(usual),
            log2_duration=log2_of(duration),
            tree=config.rate.mbtree,
        )


class RateFactor:
    """QPs of the frames of a stream, which come in coding order."""

    def __init__(self, rules: CrfRules) -> None:
        self._set(rules)
        self._cost = self._count = 0  # of I and P frames, each worth half as much as the next; in 1 / 65536
        self._sum = self._weight = 0  # QPs of I and P frames as those of P frames, by decaying weight
        self._last_type = ""  # of the last frame that is no B frame
        self._known: dict[int, tuple[FrameSpec, int]] = {}  # references and their QPs, by coding index

    def _set(self, rules: CrfRules) -> None:
        self._rules = rules
        ease = scaled(fixed(TREE_QPS, LOG2_SHIFT), rules.ease, LOG2_SHIFT)
        self._of_tree = rules.crf + _qps(ease + _STEP * scaled(-rules.log2_duration, rules.ease, LOG2_SHIFT))

    def change(self, rules: CrfRules) -> None:
        """Another rate factor from the next frame on: QPs of later frames that follow from those before differ by as much."""
        change = rules.crf - self._rules.crf
        self._set(rules)
        self._sum += change * self._weight
        limits = rules.qpmin, rules.qpmax
        self._known = {
            index: (spec, min(limits[1], max(limits[0], qp + change))) for index, (spec, qp) in self._known.items()
        }

    def display_index(self, reference: int) -> int:
        """Of a reference, by its coding index."""
        return self._known[reference][0].display_index

    def qp(self, spec: FrameSpec, cost: int) -> int:
        """Of the next frame, in 1 / 256. cost: of the frame by its type from the nearest reference; of B frames unused."""
        rules = self._rules
        qp = self._between(spec) if spec.frame_type == B else self._of_other(spec.frame_type, cost)
        qp = min(rules.qpmax, max(rules.qpmin, qp))
        if spec.frame_type != B:
            self._sum = self._sum * _DECAY[0] // _DECAY[1] + (qp + rules.ip * (spec.frame_type == I) << _SUM_SHIFT)
            self._weight = self._weight * _DECAY[0] // _DECAY[1] + (1 << _SUM_SHIFT)
            self._last_type = spec.frame_type
        if spec.is_reference:
            known = {**self._known, spec.coding_index: (spec, qp)}
            self._known = {index: known[index] for index in spec.references_after}
        return qp

    def _of_other(self, frame_type: str, cost: int) -> int:
        """Of an I or P frame; I frames are finer than the P frames before them by `ip`."""
        rules = self._rules
        self._cost = self._cost // 2 + (cost << _SUM_SHIFT)
        self._count = self._count // 2 + (1 << _SUM_SHIFT)
        if frame_type == I and self._last_type not in ("", I):
            return self._sum // self._weight - rules.ip
        if rules.tree:
            return self._of_tree
        if not self._last_type:
            return rules.crf - rules.ip
        log2_cost = log2_fixed(max(1, self._cost)) - log2_fixed(self._count) - rules.log2_duration
        return rules.crf + _qps(_STEP * scaled(log2_cost - rules.log2_usual, rules.ease, LOG2_SHIFT))

    def _between(self, spec: FrameSpec) -> int:
        """Of a B frame: the mean of its references' by distance, coarser by `pb`, half as much if it is a reference."""
        rules = self._rules
        (earlier, qp0), (later, qp1) = self._known[spec.list0[0]], self._known[spec.list1[0]]
        distance0, distance1 = spec.distances[0], -spec.distances[len(spec.list0)]
        qp0 -= rules.pb // 2 * (earlier.frame_type == B)
        qp1 -= rules.pb // 2 * (later.frame_type == B)
        if earlier.frame_type == later.frame_type == I:
            qp = (qp0 + qp1) // 2 + rules.ip
        elif I in (earlier.frame_type, later.frame_type):
            qp = qp1 if earlier.frame_type == I else qp0
        else:
            qp = (qp0 * distance1 + qp1 * distance0) // (distance0 + distance1)
        return qp + (rules.pb // 2 if spec.is_reference else rules.pb)


def _steps(log2: int) -> int:
    """QPs in 1 / 256 of a ratio of quantiser steps; log2: of the ratio, in 1 / 65536."""
    return _qps(_STEP * log2)


def _qps(number: int) -> int:
    """Of 1 / 65536 in 1 / 256, rounded to nearest."""
    return scaled(number, 1, LOG2_SHIFT - QP_SHIFT)
