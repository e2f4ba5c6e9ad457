"""Frame types by the content: scene cuts, and how many B frames lie between two others. Not part of the standard.

Pure functions of integers: the types of a stream depend on its frames and the settings alone, not on threads or on when
frames come.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from ...process import cached_property
from ...scheduler.frame_spec import B, I, P
from ...scheduler.lookahead.brightness import is_same_picture
from ...scheduler.lookahead.costs import CostPending, CostQuery, LookaheadCosts, Source
from ..settings.config import Config
from ..settings.frame_requests import IDR
from .sharp_frames import LEAST, last_sharp

FIXED, FAST, BEST = 0, 1, 2  # b_adapt
_B_SHARE, _B_OF = 100, 120  # a B frame counts as this share of its cost: it has a coarser quantiser
_LEAST = 4  # the bias of scene cuts min_keyint frames behind an IDR frame, that part of the one at keyint
_SHORT = 4  # that part of min_keyint, and of that bias: below there is no less
_FLASH = Fraction(1, 200)  # frames before and behind a flash resemble each other from this bias on, for each of scenecut
_GUARD = 2  # frames: flashes are shorter
_LAG = 4  # frames by which decisions may wait for costs that a GPU computes
_GROUP = 4  # frames that are asked about together where costs come in batches, as many as a run has: a batch costs as much
_NEVER = 1 << 62  # after all frames
_PATIENCE = 2  # lengths of runs that are tried beyond the best one, see _fast_run


@dataclass(frozen=True, eq=False, repr=False)
class TypeRules:
    """Settings of the decisions; names are those of the options."""

    keyint: int
    min_keyint: int
    scenecut: int  # 0: none
    bframes: int
    b_adapt: int  # FIXED, FAST, BEST
    b_bias: int
    rc_lookahead: int  # frames
    pyramid: bool  # a B frame in the middle of several is a reference of the others
    lag: int = 0  # frames that may come before a decision waits for its costs; changes no type

    @classmethod
    def of(cls, config: Config, pyramid: bool) -> "TypeRules":
        """Those of an encode."""
        types = config.types
        return cls(
            types.keyint,
            types.min_keyint,
            types.scenecut,
            config.coding.bframes,
            types.b_adapt,
            types.b_bias,
            types.rc_lookahead,
            pyramid,
            0 if config.machine.waits_for_packets else _LAG,
        )

    @cached_property
    def guard(self) -> int:
        """Frames on each side of a scene cut that must differ."""
        return max(_GUARD, self.bframes + 1) if self.b_adapt == BEST else _GUARD

    @cached_property
    def most_waiting(self) -> int:
        """Frames that wait for their type at most, if costs are there at once."""
        return self.window + self.guard - 1

    @cached_property
    def by_runs(self) -> bool:
        """Whether what is asked depends on where the last run ended."""
        return self.b_adapt == FAST and self.bframes > 0

    @cached_property
    def due(self) -> int:
        """Where costs come in batches: frames that wait when a run is decided. Fewer wait when its costs are asked for."""
        return self.most_waiting + max(_GROUP, self.bframes + 1 if self.by_runs else 0)

    @cached_property
    def window(self) -> int:
        """Frames behind the last decided one that the next decision takes into account."""
        longest = self.bframes + 1
        return max(longest, self.rc_lookahead - self.guard + 1) if self.b_adapt == BEST else longest


class AdaptiveTypes:
    """Types of the frames of a stream in display order: IDR, I, P, B. Frames before IDR and I, and the last one, are never B.

    Where queries are answered in batches, decisions are made when the next run must be known, and not before. As few
    frames as possible are kept: those of `window`, `guard` and, where costs come in batches, of one more run and `lag`;
    those from `needed_from` on, which others ask for. A decision that lacks a cost is made anew with a later frame.
    """

    def __init__(self, rules: TypeRules, costs: LookaheadCosts) -> None:
        """costs: of no frame yet."""
        self._rules, self._costs = rules, costs
        self._guard, self._window = rules.guard, rules.window
        self._is_late = False  # costs come in batches, and decisions are made when they must be
        self.needed_from = _NEVER
        self._count = 0  # frames added
        self._expected = 0  # frames that are there, added or not
        self._asked_ahead = 1  # the first frame of which its resemblance to the one before was not asked for
        self._asked_to = 0  # the end of the longest run from _anchor on of which the cost was asked for
        self._n_decided = 0  # frames of which it is known whether they are IDR or I
        self._breaks: dict[int, str] = {}  # those that are, from _anchor on
        self._requested: dict[int, str] = {}  # types that are asked for, from _anchor on
        self._last_idr = 0
        self._anchor = -1  # the last decided frame; never B
        self._runs: dict[tuple[int, int], int | None] = {}  # costs, by first and last frame; None: asked for ahead
        self._sharpness: dict[int, int] = {}  # of frames that were compared: of the scene, and not too far behind
        self._last_run = rules.bframes + 1  # frames of the last run that no break ended

    @classmethod
    def of(cls, config: Config, pyramid: bool, costs: LookaheadCosts) -> "AdaptiveTypes":
        """For an encode. pyramid: see TypeRules."""
        return cls(TypeRules.of(config, pyramid), costs)

    def expect(self, number: int, luma: np.ndarray) -> None:
        """Frame `number` is there; `add` follows. In another thread than all else."""
        self._costs.expect(number, luma)
        self._expected = number + 1

    def add(self, source: Source | None, requested: str = "") -> list[str]:
        """See TypeSource. Raises TypeError without samples."""
        if source is None:
            raise TypeError("types of frames by their samples need these")
        self._costs.add(source)
        if requested:
            self._requested[self._count] = requested
        self._count += 1
        self._is_late = self._anchor >= 0 and self._rules.lag > 0 and self._costs.in_batches
        if not self._is_late:
            self._costs.ahead(self._soon())
            return self._decided(False)
        types = self._decided(False) if self._waiting >= self._rules.due else []
        is_new = not self._asked_to if self._rules.by_runs else self._count - self._asked_ahead >= _GROUP
        if is_new and self._waiting >= self._rules.most_waiting:
            self._costs.ahead(self._soon())
        return types

    def flush(self) -> list[str]:
        """See TypeSource."""
        self._costs.ahead(self._soon())
        return self._decided(True)

    @property
    def _waiting(self) -> int:
        """Frames behind the last decided one."""
        return self._count - 1 - self._anchor

    def close(self) -> None:
        """Release what the costs hold; no call follows."""
        self._costs.close()

    def _decided(self, end: bool) -> list[str]:
        """The types that are decided now, without the costs that are not there yet unless too many frames wait."""
        types: list[str] = []
        most = (self._rules.due if self._is_late else self._rules.most_waiting) + self._rules.lag
        while not self._decide(types, end):
            if not end and self._waiting <= most:
                break
            self._costs.wait()
        self._costs.forget(min(self._anchor, self._n_decided - self._guard, self.needed_from))
        return types

    def _decide(self, types: list[str], end: bool) -> bool:
        """Appends the types that are decided; false if a cost was missing."""
        try:
            self._find_breaks(end)
            while length := self._next_run(end):
                self._anchor += length
                self._asked_to = 0
                types += [*(length - 1) * ["B"], self._breaks.pop(self._anchor, "P")]
                if types[-1] == "P":
                    self._last_run = length
                if self._sharpness:
                    oldest = self._anchor - (self._rules.bframes if types[-1] == "P" else 0)
                    self._sharpness = {frame: value for frame, value in self._sharpness.items() if frame >= oldest}
                if self._runs:
                    self._runs = {run: cost for run, cost in self._runs.items() if run[0] >= self._anchor}
                if self._requested:
                    self._requested = {frame: one for frame, one in self._requested.items() if frame > self._anchor}
        except CostPending:
            return False
        return True

    def _soon(self) -> list[CostQuery]:
        """What the decisions ask about the newest frames, probably: a GPU answers it before they do, or free threads."""
        rules, count = self._rules, max(self._count, self._expected)
        longest, unasked = rules.bframes + 1, range(self._asked_ahead, count)
        self._asked_ahead = count
        if not (rules.scenecut or rules.bframes):
            return []
        queries: list[CostQuery] = []
        for newest in unasked:
            first = max(newest - longest, 0) if rules.b_adapt == BEST else newest - 1
            for start in range(newest - 1, first - 1, -1):
                queries += self._queries(start, newest)
        if rules.b_adapt == FAST and self._anchor >= 0:  # runs are about as long as the last one
            most = min(longest, self._last_run + _PATIENCE)
            for to in range(max(self._anchor + 2, self._asked_to + 1), min(self._anchor + most + 1, count)):
                queries += self._queries(self._anchor, to)
                self._asked_to = to
        return queries

    def _queries(self, start: int, to: int) -> list[CostQuery]:
        """Those of `_run_cost`, once."""
        if (start, to) in self._runs:
            return []
        self._runs[start, to] = None
        return [(start, to), *self._b_frames(start, to)]

    def _find_breaks(self, end: bool) -> None:
        """Finds the IDR and I frames among those whose guard is there."""
        until = min(self._count - (0 if end else self._guard - 1), self._asked_ahead)
        while self._n_decided < until:
            frame = self._n_decided
            length, requested = frame - self._last_idr, self._requested.get(frame)
            if frame == 0 or length >= self._rules.keyint or requested == IDR:
                self._breaks[frame] = "IDR"
            elif requested == I:
                self._breaks[frame] = "I"
            elif not requested and self._rules.scenecut and self._is_cut(frame, length):
                self._breaks[frame] = "IDR" if length >= self._rules.min_keyint else "I"
            if self._breaks.get(frame) == "IDR":
                self._last_idr = frame
            self._n_decided += 1

    def _is_cut(self, frame: int, length: int) -> bool:
        """Whether a scene begins: no frame shortly before resembles the first, and no frame of it the one before.

        A flash ends with a frame like the one before it, so that neither its first frame nor the one behind it is a cut.
        """
        guard, bias = self._guard, cut_bias(self._rules, length)
        if not self._differ(frame - 1, frame, bias):
            return False
        after = [(frame - 1, later) for later in range(frame + 1, min(frame + guard, self._count))]
        before = [(earlier, frame) for earlier in range(frame - 2, max(frame - guard, 0) - 1, -1)]
        self._costs.ahead([*after, *before])
        bias = max(Fraction(*bias), self._rules.scenecut * _FLASH).as_integer_ratio()
        is_missing = False
        for pair in (*after, *before):  # costs that are missing come together
            try:
                if not self._differ(*pair, bias):
                    return False
            except CostPending:
                is_missing = True
        if is_missing:
            raise CostPending
        return True

    def _differ(self, earlier: int, later: int, bias: tuple[int, int]) -> bool:
        """Whether prediction gains so little that frames belong to different scenes: no more than `bias`, a fraction, of all
        bits. It gains nothing from one frame of noise to the next either, which show the same picture.
        """
        numerator, denominator = bias
        costs, intra = self._costs, self._costs.intra(later)
        least = (denominator - numerator) * intra
        if denominator * costs.p(earlier, later) < least or denominator * costs.p_of_levels(earlier, later) < least:
            return False
        return not is_same_picture(costs.brightness(earlier), costs.brightness(later), intra)

    def _next_run(self, end: bool) -> int:
        """Frames up to the next one that is not B, with it; 0: not known yet."""
        start = self._anchor + 1
        if start >= self._n_decided:
            return 0
        if start in self._breaks:
            return 1
        last = self._last(start, end)
        if last >= self._n_decided:
            return 0
        if not self._rules.bframes:
            return 1
        if self._rules.b_adapt == BEST:
            return self._best_run(last)
        longest = min(self._rules.bframes + 1, last - self._anchor)
        lengths = [length for length in range(1, longest + 1) if self._requested.get(self._anchor + length) != B]
        if self._rules.b_adapt == FIXED:
            return lengths[-1]
        if self._is_late and not self._asked_to and not end:
            return 0  # its costs are asked for together, behind this call, and not one after another here
        sharp = self._sharp_run(longest)
        return sharp if sharp in lengths else self._fast_run(lengths)

    def _last(self, start: int, end: bool) -> int:
        """The last frame that the next decision takes into account; no B frame. At least the number of settled ones: unknown.

        start: the first frame.
        """
        window, requested = self._window, self._requested
        behind = min(self._breaks, default=self._n_decided if end else start + window)
        last = min(behind - 1, self._anchor + window)
        last = next((frame for frame in range(start, last) if requested.get(frame) == P), last) if requested else last
        if last >= self._n_decided or requested.get(last) != B:
            return last
        if last == behind - 1 and (self._breaks or end):
            del requested[last]  # a B frame has no frame of its GOP after it
            return last
        return max(frame for frame in range(start, last) if requested.get(frame) != B)

    def _sharp_run(self, longest: int) -> int:
        """The run that ends at the last sharp one of the next frames; 0: there is none.

        longest: how many frames come into question.
        """
        if self._rules.bframes + 1 < LEAST:
            return 0
        known = self._sharpness
        for frame in range(self._anchor, self._anchor + longest + 1):
            if frame not in known:
                known[frame] = self._costs.sharpness(frame)
        first = self._anchor - longest + 1
        values = [known[frame] for frame in range(first, self._anchor + longest + 1) if frame in known]
        return last_sharp(values, longest)

    def _fast_run(self, lengths: list[int]) -> int:
        """The run of the least cost per frame among those tried, of equal ones the longer. Each one more frame, until
        _PATIENCE lengths one after another cost more: even numbers of B frames have a lopsided pyramid.
        """
        best, cost = lengths[0], self._run_cost(self._anchor, self._anchor + lengths[0])
        for length in lengths[1:]:
            run_cost = self._run_cost(self._anchor, self._anchor + length)
            if run_cost * best <= cost * length:
                best, cost = length, run_cost
            elif length - best >= _PATIENCE:
                break
        return best

    def _best_run(self, last: int) -> int:
        """The first run of the cheapest way to divide the frames up to `last` into runs; of equal ways the shorter runs."""
        costs, firsts = {self._anchor: 0}, {self._anchor: 0}  # of the ways to a frame, and the lengths of their first runs
        for to in range(self._anchor + 1, last + 1):
            best = -1
            if self._requested.get(to) == B:
                continue
            for start in range(to - 1, max(self._anchor, to - self._rules.bframes - 1) - 1, -1):
                if start not in costs:
                    continue
                if best >= 0 and costs[start] + self._costs.p(start, to) >= best:
                    continue
                cost = costs[start] + self._run_cost(start, to)
                if best < 0 or cost < best:
                    best = cost
                    firsts[to] = firsts[start] or to - self._anchor
            costs[to] = best
        return firsts[last]

    def _run_cost(self, start: int, to: int) -> int:
        """Of a P frame and the B frames between it and the last frame that is not B."""
        cost = self._runs.get((start, to))
        if cost is None:
            if queries := self._queries(start, to):
                self._costs.ahead(queries)
            cost = sum([self._b_cost(*frames) for frames in self._b_frames(start, to)]) + self._costs.p(start, to)
            self._runs[start, to] = cost
        return cost

    def _b_frames(self, start: int, to: int) -> list[tuple[int, int, int]]:
        """(earlier, later, frame) of the B frames of a run."""
        gaps = _gaps(to - start, self._rules.pyramid)
        return [(start + earlier, start + later, start + frame) for earlier, later, frame in gaps]

    def _b_cost(self, earlier: int, later: int, frame: int) -> int:
        return self._costs.b(earlier, later, frame) * _B_SHARE // (_B_OF + self._rules.b_bias)


@cache
def _gaps(length: int, pyramid: bool) -> list[tuple[int, int, int]]:
    """See AdaptiveTypes._b_frames: of a run from 0 to `length`."""
    middle = length // 2
    ends = [0, middle, length] if pyramid and length > 2 else [0, length]
    triples = [(0, length, middle)] if len(ends) > 2 else []
    for earlier, later in zip(ends, ends[1:]):
        triples += [(earlier, later, frame) for frame in range(earlier + 1, later)]
    return triples


def cut_bias(rules: TypeRules, length: int) -> tuple[int, int]:
    """A frame is like no earlier one if its cost as P is at least 1 minus this of that by intra prediction: a fraction, which
    is asked for in every frame.

    length: frames since the last IDR frame, below keyint. The longer the GOP, the easier a new one begins.
    """
    shortest, longest = rules.min_keyint, rules.keyint
    least = 100 if shortest == longest else 100 * _LEAST
    if length * _SHORT <= shortest:
        return rules.scenecut, least * _SHORT
    if length <= shortest:
        return rules.scenecut * length, least * shortest
    return rules.scenecut * (longest - shortest + (_LEAST - 1) * (length - shortest)), 100 * _LEAST * (longest - shortest)
