"""Costs of source frames in half size on the host, before they are coded: what the decisions about frame types compare.

Not part of the standard. Integers that depend on two or three source frames alone: neither on the order of the queries nor
on threads. Every frame is made half as large once, and every pair of frames searched once: by the thread that first needs it,
or before by one that is free.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...cpu_simd.bundles import HalfSize
from ...cpu_simd.decisions.lookahead import LOOK_PAD
from ...cpu_simd.lookahead.half_size import half_size, half_size_arrays, sharpness
from ...cpu_simd.lookahead.lookahead import (
    lookahead_both,
    lookahead_camera,
    lookahead_intra,
    lookahead_refine,
    lookahead_search,
    lookahead_used,
    sum_inside,
)
from ..executor import bands
from ..frames.device_frame import GpuSource
from ..threads.dependent_task import ComputeOnce, Starter
from .brightness import brightness, levels_between
from .costs import NOTHING_READ, CostQuery, Source, TreeFrame, UsedMotion, position_between

_LEAST_BAND = 200  # macroblocks that are worth a thread's start
Motion = tuple[np.ndarray, np.ndarray]  # vectors int16[n_mb, 2], source samples; costs uint16[n_mb]
Halves = tuple[ComputeOnce[HalfSize], ...]
Motions = tuple[ComputeOnce[Motion], ...]
Both = tuple[Halves, int, Motions]  # the first arguments of lookahead_both


class FrameCosts:
    """Costs of the frames of a stream, by their numbers in display order, in bits at a lambda of 1
    (cpu_simd/lookahead/lookahead.py).

    Those of a frame are sums over its macroblocks without those at the border, which predict worse than they will.
    """

    def __init__(
        self, width: int, height: int, threads: int = 1, first: int = 0, quick: bool = False, start: Starter | None = None,
        keeps_used: bool = False, with_sharpness: bool = True,
    ) -> None:  # fmt: skip
        """width, height: of the display, in luma samples; threads: over rows; first: number of the first frame; quick: fewer
        vectors are tried; start: for work that free threads may do ahead; keeps_used: used_of_b will follow most calls of b;
        with_sharpness: `sharpness` will be called.
        """
        self._quick = quick
        self._mb_width, self._mb_height = -(-width // 16), -(-height // 16)
        threads = min(threads, self._mb_width * self._mb_height // _LEAST_BAND)
        self._bands = bands(self._mb_height, threads)
        self._pool = None
        if threads > 1:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(threads - 1, "h264lite-lookahead")
        self._first = self._count = first  # frames that are kept: from _first on, before _count
        self._frames: dict[int, ComputeOnce[HalfSize]] = {}  # these two also of frames that are expected
        self._intra: dict[int, ComputeOnce[np.ndarray]] = {}
        self._with_sharpness = with_sharpness
        self._sharpness: dict[int, int] = {}  # of frames in half size
        self._start = start
        self._kernels: dict[Callable[..., Any], Callable[..., Any]] = {}  # functions of kernels for the arrays of this size
        self._motions: dict[tuple[int, int], ComputeOnce[Motion]] = {}  # by frame and reference
        self._sums: dict[CostQuery, int] = {}  # of pairs and triples
        self._keeps_used = keeps_used
        self._between: dict[CostQuery, ComputeOnce[UsedMotion]] = {}  # of triples; without `keeps_used` the costs alone

    def expect(self, number: int, luma: np.ndarray) -> None:
        """See LookaheadCosts: free threads begin with the frame."""
        half = self._frames.setdefault(number, ComputeOnce(partial(self._half_size, number, luma)))
        intra = self._intra.setdefault(number, ComputeOnce(partial(self._intra_costs, half)))
        if self._start is not None:
            self._start(intra)

    def add(self, source: Source) -> None:
        """The next frame, by its planes; they are not kept."""
        assert not isinstance(source, GpuSource)
        half = self._frames.setdefault(self._count, ComputeOnce(partial(self._half_size, self._count, source[0])))
        self._intra.setdefault(self._count, ComputeOnce(partial(self._intra_costs, half)))
        half()
        self._count += 1

    def ahead(self, queries: list[CostQuery]) -> None:
        """See LookaheadCosts: each is computed when it is asked for, if not before by free threads."""
        if self._start is None:
            return
        for query in queries:
            frame, between = query[-1], len(query) == 3 and query[1] != query[2]
            pairs = [(frame, reference) for reference in query[:-1]]
            for pair in [*pairs, (query[1], query[0])] if between else pairs:
                if pair not in self._motions and pair[0] != pair[1]:
                    self._start(self._motion_of(*pair))
            if between and query not in self._sums and query not in self._between:
                self._start(self._between_of(query))

    def wait(self) -> None:
        """See LookaheadCosts: nothing is under way."""

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def forget(self, before: int) -> None:
        """Frees the frames before number `before`, which are not asked for any more."""
        if before <= self._first:
            return
        for number in range(self._first, min(before, self._count)):
            del self._frames[number], self._intra[number]
            self._sharpness.pop(number, None)
        self._first = before
        self._motions = {pair: motion for pair, motion in self._motions.items() if min(pair) >= before}
        self._sums = {frames: cost for frames, cost in self._sums.items() if min(frames) >= before}
        self._between = {frames: used for frames, used in self._between.items() if min(frames) >= before}

    @property
    def reads_from(self) -> int:
        """See LookaheadCosts."""
        return NOTHING_READ

    def intra(self, frame: int) -> int:
        """The frame by intra prediction alone."""
        costs = self._intra[frame]()
        return self._sum(costs, costs)

    def sharpness(self, frame: int) -> int:
        """See LookaheadCosts."""
        return self._sharpness[frame]

    def p(self, reference: int, frame: int) -> int:
        """The frame as P, each macroblock from the reference or by intra prediction."""
        key = reference, frame
        if key not in self._sums:
            self._sums[key] = self._sum(self._motion_of(frame, reference)()[1], self._intra[frame]())
        return self._sums[key]

    def p_of_levels(self, reference: int, frame: int) -> int:
        """As p, from the reference with the frame's mean and contrast: fades and flashes cost what their motion costs."""
        half = self._frames[frame]()
        motion = self._search(half, _with_levels(self._frames[reference](), half))
        return self._sum(motion[1], self._intra[frame]())

    def brightness(self, frame: int) -> np.ndarray:
        """See LookaheadCosts."""
        return brightness(self._frames[frame]().coarse)

    def b(self, earlier: int, later: int, frame: int) -> int:
        """The frame as B between two others."""
        key = earlier, later, frame
        if key not in self._sums:
            cost = self._between_of(key)().cost
            self._sums[key] = self._sum(cost, cost)
            if not self._keeps_used:
                del self._between[key]
        return self._sums[key]

    def aq_offsets(self, frame: int) -> None:
        """See LookaheadCosts: other threads find them, of all planes."""

    def intra_costs(self, frame: int) -> np.ndarray:
        """See LookaheadCosts."""
        return self._intra[frame]()

    def used_of_p(self, reference: int, frame: int) -> UsedMotion:
        """See LookaheadCosts."""
        return UsedMotion.of_p(*self._motion_of(frame, reference)())

    def used_of_b(self, earlier: int, later: int, frame: int) -> UsedMotion:
        """See LookaheadCosts."""
        key = earlier, later, frame
        return self._between_of(key)() if self._keeps_used else self._use_both(True, *self._for_both(*key))

    in_batches = False

    @property
    def has_tree(self) -> bool:
        """See LookaheadCosts: the caller grows it."""
        return False

    def start_tree(self, frames: list[TreeFrame], count: int, strength: int) -> bool:
        """See LookaheadCosts."""
        return False

    def tree(self, wait: bool) -> None:
        """See LookaheadCosts."""

    def _half_size(self, number: int, luma: np.ndarray) -> HalfSize:
        frame, luma = half_size_arrays(self._mb_width, self._mb_height), np.ascontiguousarray(luma)
        half_size(luma, 0, self._mb_height, frame)
        if self._with_sharpness:
            self._sharpness[number] = int(sharpness(luma))
        return frame

    def _intra_costs(self, half: ComputeOnce[HalfSize]) -> np.ndarray:
        costs = np.empty(self._mb_width * self._mb_height, np.uint16)
        self._by_rows(lookahead_intra, (half(),), (costs,))
        return costs

    def _between_of(self, key: CostQuery) -> ComputeOnce[UsedMotion]:
        between = self._between.get(key)
        if between is None:
            between = self._between[key] = ComputeOnce(partial(self._use_both, self._keeps_used, *self._for_both(*key)))
        return between

    def _for_both(self, earlier: int, later: int, frame: int) -> Both:
        sources = self._frames[frame], self._frames[earlier], self._frames[later]
        motions = self._motion_of(frame, earlier), self._motion_of(frame, later), self._motion_of(later, earlier)
        return sources, position_between(earlier, later, frame), motions

    def _use_both(self, with_motion: bool, sources: Halves, position: int, motions: Motions) -> UsedMotion:
        n_mb = self._mb_width * self._mb_height
        before = tuple(half() for half in sources), position, tuple(motion() for motion in motions)
        used = UsedMotion(np.empty(n_mb, np.uint16), np.empty((n_mb, 4), np.int16), np.empty(n_mb, np.uint8))
        if with_motion:
            self._by_rows(lookahead_used, before, used)
        else:
            self._by_rows(lookahead_both, before, (used.cost,))
        return used

    def _motion_of(self, frame: int, reference: int) -> ComputeOnce[Motion]:
        motion = self._motions.get((frame, reference))
        if motion is None:
            motion = ComputeOnce(partial(self._search_once, self._frames[frame], self._frames[reference]))
            self._motions[frame, reference] = motion
        return motion

    def _search_once(self, frame: ComputeOnce[HalfSize], reference: ComputeOnce[HalfSize]) -> Motion:
        return self._search(frame(), reference())

    def _search(self, frame: HalfSize, reference: HalfSize) -> Motion:
        n_mb = self._mb_width * self._mb_height
        first, mv, cost = np.empty((n_mb, 2), np.int16), np.empty((n_mb, 2), np.int16), np.empty(n_mb, np.uint16)
        camera = np.empty(2, np.int16)
        self._chosen(lookahead_camera, frame, reference, camera)(frame, reference, camera)
        self._by_rows(lookahead_search, (frame, reference, camera), (first, self._quick))
        self._by_rows(lookahead_refine, (frame, reference, first), (mv, cost, self._quick))
        return mv, cost

    def _chosen(self, kernel: Any, *arguments: Any) -> Callable[..., Any]:
        """The function of a kernel, whose arguments are of the same types in every call."""
        chosen: Callable[..., Any] | None = self._kernels.get(kernel)
        if chosen is None:
            chosen = self._kernels[kernel] = kernel.chosen(*arguments)
        return chosen

    def _by_rows(self, kernel: object, before: tuple[object, ...], after: tuple[object, ...]) -> None:
        """Call a kernel for all rows, which stand between its arguments `before` and `after`, on all threads."""
        own_band, *others = self._bands
        function = self._chosen(kernel, *before, *own_band, *after)
        waiting = []
        for rows in others:
            assert self._pool is not None
            try:
                waiting.append(self._pool.submit(function, *before, *rows, *after))
            except RuntimeError:  # the system refuses another thread
                function(*before, *rows, *after)
        function(*before, *own_band, *after)
        for call in waiting:
            call.result()

    def _sum(self, costs: np.ndarray, others: np.ndarray) -> int:
        """See sum_inside."""
        return int(self._chosen(sum_inside, costs, others, self._mb_width)(costs, others, self._mb_width))


def _with_levels(reference: HalfSize, frame: HalfSize) -> HalfSize:
    """The reference, each sample replaced so that mean and standard deviation become those of the frame."""
    levels = levels_between(_counts(reference), _counts(frame))
    return HalfSize(*(levels.take(samples) for samples in reference))


def _counts(frame: HalfSize) -> np.ndarray:
    """int64[256]: the half-size samples by their value."""
    samples = frame.planes[0, LOOK_PAD:-LOOK_PAD, LOOK_PAD:-LOOK_PAD]
    return np.bincount(samples.reshape(-1), minlength=256)
