"""The macroblock tree on a GPU: amounts flow back through the frames that wait, and only offsets come down, without a wait.

One launch goes through all frames: first those that none depends on, then their references, and so on.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...cpu_simd.lookahead.macroblock_tree import TREE_LOG2
from ...cuda_src.lookahead.lookahead import WORDS, Motion, Used, lookahead_both
from ...cuda_src.lookahead.macroblock_tree import AFTER, AMOUNT, GIFTS, OFFSETS, tree_job, tree_offsets, tree_propagate
from ...cuda_src.runtime.array import Stream
from ...cuda_src.runtime.device import Device, DeviceArray
from .costs import CostPending, CostQuery, TreeFrame


class TreeState(NamedTuple):
    """What a frame of the tree has on the GPU, from its first propagation until it leaves."""

    used: Used  # of B frames
    error_weights: DeviceArray  # int64[n_mb], with adaptive quantisation
    landing: np.ndarray  # page-locked, for its upload
    job: np.ndarray  # int64[WORDS]: tree_job


class Memory(NamedTuple):
    """For so many frames that wait."""

    frames: int
    table: DeviceArray
    rows: np.ndarray  # int64[3 * frames, WORDS], page-locked
    amounts: DeviceArray  # int64[frames + 1, n_mb]; the first words of the last row are the launch's progress
    offsets: DeviceArray  # int32[frames, n_mb]
    found: np.ndarray  # the same, page-locked


class GpuTree:
    """One propagation at a time. The context is current in all calls; they raise GpuLost, `start` DeviceMemoryError too."""

    def __init__(self, gpu: Device, mb_width: int, mb_height: int, stream: Stream | None) -> None:
        """stream: that of the lookahead, whose work so far is complete before that of the tree."""
        self._gpu, self._size, self._stream = gpu, (mb_width, mb_height), stream
        self._states: dict[CostQuery, TreeState] = {}
        self._free: list[TreeState] = []
        self._memory: Memory | None = None
        self._event = gpu.event()
        self._logarithms = gpu.constant("logarithms of the tree", TREE_LOG2)
        self._count = 0  # frames whose offsets are under way

    def start(
        self, frames: Sequence[TreeFrame], count: int, strength: int, intra: Callable[[int], DeviceArray],
        motions: dict[CostQuery, Motion], triple: Callable[[CostQuery, Used], list[int]],
    ) -> None:  # fmt: skip
        """Arguments: see Costs.start_tree; intra(n): costs of frame n; motions, those of all pairs; triple: a row of
        lookahead_both.
        """
        memory, stream, n = self._memory_for(len(frames)), self._stream, len(frames)
        queries = {frame.question for frame in frames}
        self._free += [self._states.pop(question) for question in list(self._states) if question not in queries]
        triples = [triple(frame.question, state.used) for frame, state in self._enter(frames, strength, intra, motions)]
        jobs = self._jobs(frames, memory)
        order, after = _order(frames)
        rows = memory.rows[: len(triples) + n + count]
        if triples:
            rows[: len(triples)] = triples
        rows[len(triples) : len(triples) + n] = jobs[order]
        rows[len(triples) : len(triples) + n, AFTER] = after
        rows[len(triples) + n :] = jobs[:count]
        table = memory.table[: len(rows)].put(rows, stream)
        if triples:
            lookahead_both(table[: len(triples)], *self._size, 0, self._size[1], stream)
        memory.amounts[: n + 1].fill(0, stream)
        progress = memory.amounts[n].view(np.int32)[:2]
        tree_propagate(table[len(triples) : len(triples) + n], *self._size, progress, stream)
        tree_offsets(table[len(triples) + n :], self._size[0] * self._size[1], self._logarithms, stream)
        memory.offsets[:count].get(memory.found[:count], stream)
        self._gpu.record(self._event, stream)
        self._count = count

    def renew(self) -> None:
        """Be as new for a later encoder: no frame is known. The work has ended."""
        self._free += self._states.values()
        self._states.clear()

    def result(self, wait: bool) -> list[np.ndarray]:
        """See Costs.tree."""
        if not wait and not self._gpu.done(self._event):
            raise CostPending
        self._gpu.synchronize(self._event)
        assert self._memory is not None
        return list(self._memory.found[: self._count].copy())

    def _enter(
        self, frames: Sequence[TreeFrame], strength: int, intra: Callable[[int], DeviceArray],
        motions: dict[CostQuery, Motion],
    ) -> list[tuple[TreeFrame, TreeState]]:  # fmt: skip
        """Frames that are new get memory. Those of them that are B frames, whose motion is chosen now."""
        new = []
        for frame in frames:
            if frame.question in self._states:
                continue
            state = self._free.pop() if self._free else self._make_state()
            self._states[frame.question] = state
            error_weights = None
            if frame.error_weights is not None:
                np.copyto(state.landing, frame.error_weights)
                error_weights = state.error_weights.put(state.landing, self._stream)
            motion = state.used if len(frame.question) == 3 else motions.get(frame.question)
            state.job[:] = tree_job(intra(frame.question[-1]), error_weights, motion, frame.weight, strength, frame.noise)
            if len(frame.question) == 3:
                new.append((frame, state))
        return new

    def _jobs(self, frames: Sequence[TreeFrame], memory: Memory) -> np.ndarray:
        """int64[n, WORDS]: the jobs of the frames, in their order."""
        jobs = np.array([self._states[frame.question].job for frame in frames])
        n_mb, places = self._size[0] * self._size[1], np.arange(len(frames))
        gives = np.array([frame.gives for frame in frames], np.int64)
        jobs[:, AMOUNT] = memory.amounts.ptr + 8 * n_mb * places
        jobs[:, GIFTS : GIFTS + 2] = np.where(gives < 0, 0, memory.amounts.ptr + 8 * n_mb * gives)
        jobs[:, OFFSETS] = memory.offsets.ptr + 4 * n_mb * places
        return jobs

    def _make_state(self) -> TreeState:
        n_mb = self._size[0] * self._size[1]
        used = Used(self._array((n_mb,), np.uint16), self._array((n_mb, 4), np.int16), self._array((n_mb,), np.uint8))
        job = np.zeros(WORDS, np.int64)
        return TreeState(used, self._array((n_mb,), np.int64), self._gpu.pinned((n_mb,), np.int64), job)

    def _memory_for(self, frames: int) -> Memory:
        """Twice as large where it is too small, so that it seldom grows. No work is under way."""
        if self._memory is None or self._memory.frames < frames:
            old, n, n_mb = self._memory, 1 << (frames - 1).bit_length(), self._size[0] * self._size[1]
            if old is not None:
                self._gpu.synchronize(self._stream)
                self._gpu.release(old.table, old.amounts, old.offsets)
            self._memory = Memory(
                n,
                self._array((3 * n, WORDS), np.int64),
                self._gpu.pinned((3 * n, WORDS), np.int64),
                self._array((n + 1, n_mb), np.int64),
                self._array((n, n_mb), np.int32),
                self._gpu.pinned((n, n_mb), np.int32),
            )
        return self._memory

    def _array(self, shape: Sequence[int], dtype: DTypeLike) -> DeviceArray:
        return self._gpu.array(shape, dtype, "the macroblock tree")


def _order(frames: Sequence[TreeFrame]) -> tuple[list[int], list[int]]:
    """Places of the frames in the order of their turns, and how many of these must have ended before each."""
    depth = [0] * len(frames)
    for place in range(len(frames) - 1, -1, -1):
        below = depth[place] + 1
        for to in frames[place].gives:
            if to >= 0 and depth[to] < below:
                depth[to] = below
    order = sorted(range(len(frames)), key=depth.__getitem__)
    after: list[int] = []
    for k, place in enumerate(order):
        begins = not k or depth[place] > depth[order[k - 1]]
        after.append(k if begins else after[-1])
    return order, after
