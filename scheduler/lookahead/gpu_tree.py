"""The macroblock tree on a GPU: amounts flow back through the frames that wait, and only offsets come down, without a wait.

All frames whose amounts are complete are one launch: first those that none depends on, then their references, and so on.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...cpu_simd.macroblock_tree import TREE_LOG2
from ...cuda_src.lookahead import WORDS, Motion, Used, lookahead_both
from ...cuda_src.macroblock_tree import tree_job, tree_offsets, tree_propagate
from ...cuda_src.runtime.device import Device, DeviceArray
from .questions import NotYet, Question, TreeFrame


class Held(NamedTuple):
    """What a frame of the tree has on the GPU, from its first propagation until it leaves."""

    used: Used  # of B frames
    worth: DeviceArray  # int64[n_mb], with adaptive quantisation
    landing: np.ndarray  # page-locked, for its upload


class Memory(NamedTuple):
    """For so many frames that wait."""

    frames: int
    table: DeviceArray
    rows: np.ndarray  # int64[3 * frames, WORDS], page-locked
    amounts: DeviceArray  # int64[frames, n_mb]
    offsets: DeviceArray  # int32[frames, n_mb]
    found: np.ndarray  # the same, page-locked


class GpuTree:
    """One propagation at a time. The context is current in all calls; they raise GpuLost, `start` DeviceMemoryError too."""

    def __init__(self, gpu: Device, mb_width: int, mb_height: int, stream: Any) -> None:
        """stream: that of the lookahead, whose work so far is complete before that of the tree."""
        self._gpu, self._size, self._stream = gpu, (mb_width, mb_height), stream
        self._held: dict[Question, Held] = {}
        self._free: list[Held] = []
        self._memory: Memory | None = None
        self._event = gpu.event()
        self._logarithms = gpu.constant("logarithms of the tree", TREE_LOG2)
        self._count = 0  # frames whose offsets are under way

    def start(
        self, frames: Sequence[TreeFrame], count: int, strength: int, intra: Callable[[int], DeviceArray],
        motions: dict[Question, Motion], triple: Callable[[Question, Used], list[int]],
    ) -> None:  # fmt: skip
        """Arguments: see Costs.start_tree; intra(n): costs of frame n; motions, those of all pairs; triple: a row of
        lookahead_both.
        """
        memory, stream = self._memory_for(len(frames)), self._stream
        asked = {frame.question for frame in frames}
        self._free += [self._held.pop(question) for question in list(self._held) if question not in asked]
        rows = [triple(frame.question, held.used) for frame, held in self._enter(frames)]
        n_triples, levels = len(rows), _levels(frames)
        jobs = [self._row(frames, place, strength, memory, intra, motions) for place in range(len(frames))]
        rows += [jobs[place] for level in levels for place in level] + jobs[:count]
        memory.rows[: len(rows)] = rows
        table = memory.table[: len(rows)].put(memory.rows[: len(rows)], stream)
        if n_triples:
            lookahead_both(table[:n_triples], *self._size, 0, self._size[1], stream)
        memory.amounts[: len(frames)].fill(0, stream)
        first = n_triples
        for level in levels:
            tree_propagate(table[first : first + len(level)], *self._size, stream)
            first += len(level)
        tree_offsets(table[first:], self._size[0] * self._size[1], self._logarithms, stream)
        memory.offsets[:count].get(memory.found[:count], stream)
        self._gpu.record(self._event, stream)
        self._count = count

    def result(self, wait: bool) -> list[np.ndarray]:
        """See Costs.tree."""
        if not wait and not self._gpu.done(self._event):
            raise NotYet
        self._gpu.synchronize(self._event)
        assert self._memory is not None
        return list(self._memory.found[: self._count].copy())

    def _enter(self, frames: Sequence[TreeFrame]) -> list[tuple[TreeFrame, Held]]:
        """Frames that are new get memory. Those of them that are B frames, whose motion is chosen now."""
        new = []
        for frame in frames:
            if frame.question in self._held:
                continue
            held = self._free.pop() if self._free else self._make_held()
            self._held[frame.question] = held
            if frame.worth is not None:
                np.copyto(held.landing, frame.worth)
                held.worth.put(held.landing, self._stream)
            if len(frame.question) == 3:
                new.append((frame, held))
        return new

    def _row(
        self, frames: Sequence[TreeFrame], place: int, strength: int, memory: Memory,
        intra: Callable[[int], DeviceArray], motions: dict[Question, Motion],
    ) -> list[int]:  # fmt: skip
        """The job of a frame."""
        frame, held, amounts = frames[place], self._held[frames[place].question], memory.amounts
        motion = {1: lambda: None, 2: lambda: motions[frame.question], 3: lambda: held.used}[len(frame.question)]()
        gifts = [None if to is None else amounts[to] for to in frame.gives] or [None]
        return tree_job(
            intra(frame.question[-1]), None if frame.worth is None else held.worth, motion, amounts[place],
            (gifts[0], gifts[-1]), frame.weight, (memory.offsets[place], strength),
        )  # fmt: skip

    def _make_held(self) -> Held:
        n_mb = self._size[0] * self._size[1]
        used = Used(self._array((n_mb,), np.uint16), self._array((n_mb, 4), np.int16), self._array((n_mb,), np.uint8))
        return Held(used, self._array((n_mb,), np.int64), self._gpu.pinned((n_mb,), np.int64))

    def _memory_for(self, frames: int) -> Memory:
        """Twice as large where it is too small, so that it seldom grows. No work is under way."""
        if self._memory is None or self._memory.frames < frames:
            old, n, n_mb = self._memory, 1 << (frames - 1).bit_length(), self._size[0] * self._size[1]
            if old is not None:
                self._gpu.synchronize(self._stream)
                self._gpu.release(old.table, old.amounts, old.offsets)
            self._memory = Memory(
                n, self._array((3 * n, WORDS), np.int64), self._gpu.pinned((3 * n, WORDS), np.int64),
                self._array((n, n_mb), np.int64), self._array((n, n_mb), np.int32), self._gpu.pinned((n, n_mb), np.int32),
            )  # fmt: skip
        return self._memory

    def _array(self, shape: Sequence[int], dtype: Any) -> DeviceArray:
        return self._gpu.array(shape, dtype, "the macroblock tree")


def _levels(frames: Sequence[TreeFrame]) -> list[list[int]]:
    """Places of the frames that may propagate at once, in the order of the launches."""
    depth = [0] * len(frames)
    for place in range(len(frames) - 1, -1, -1):
        for to in frames[place].gives:
            if to is not None:
                depth[to] = max(depth[to], depth[place] + 1)
    return [[place for place, own in enumerate(depth) if own == level] for level in range(max(depth, default=-1) + 1)]
