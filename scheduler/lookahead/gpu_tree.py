"""The macroblock tree on a GPU: amounts flow back through the frames that wait, and only offsets come down, without a wait.

One launch goes through all frames: first those that none depends on, then their references, and so on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...cpu_simd.lookahead.macroblock_tree import TREE_LOG2
from ...cuda_src.lookahead.lookahead import WORDS, Motion, Used, lookahead_both
from ...cuda_src.lookahead.macroblock_tree import GIFTS, tree_job, tree_offsets, tree_propagate
from ...cuda_src.runtime.array import Stream
from ...cuda_src.runtime.device import Device, DeviceArray
from ...cuda_src.runtime.recording import HostBuffers, Recording
from .costs import CostPending, CostQuery, TreeFrame
from .gpu_batch import GpuFrame
from .tree_turns import turns

MOST_RECORDINGS = 32


class Memory(NamedTuple):
    """For so many frames that wait, each in slot `coding_index % frames`."""

    frames: int
    table: DeviceArray
    rows: np.ndarray  # int64[3 * frames, WORDS], page-locked
    amounts: DeviceArray  # int64[frames + 1, n_mb]; the first words of the last row are the launch's progress
    offsets: DeviceArray  # int32[frames, n_mb]
    host_offsets: np.ndarray  # the same, page-locked
    used: Used  # of B frames, of all slots
    slots: list[Used]
    jobs: np.ndarray  # int64[frames, WORDS]: tree_job of the frames that wait, in their order; as GIFTS, their references
    depths: np.ndarray  # int64[frames], scratch of write_turns


class GpuTree:
    """One propagation at a time. The context is current in all calls; they raise GpuLost, `start` DeviceMemoryError too."""

    def __init__(self, gpu: Device, mb_width: int, mb_height: int, stream: Stream | None) -> None:
        """stream: that of the lookahead, whose work so far is complete before that of the tree."""
        self._gpu, self._size, self._stream, self._n_mb = gpu, (mb_width, mb_height), stream, mb_width * mb_height
        self._memory: Memory | None = None
        self._waiting = range(0)  # coding indices of the frames that are in slots
        self._event = gpu.event()
        self._logarithms = gpu.constant("logarithms of the tree", TREE_LOG2)
        self._count = 0  # frames whose offsets are under way
        self._recordings: dict[tuple[int, int, int], Recording | None] = {}  # by the arguments of _issue; None: seen once

    def new(self, frames: Sequence[TreeFrame]) -> Sequence[TreeFrame]:
        """Those that have come since the last `start`."""
        first = frames[0].coding_index
        return frames[self._waiting.stop - first :] if first in self._waiting else frames

    def start(
        self, frames: Sequence[TreeFrame], count: int, strength: int, sources: Mapping[int, GpuFrame],
        motions: dict[CostQuery, Motion], triple: Callable[[CostQuery, Used], list[int]],
    ) -> None:  # fmt: skip
        """Arguments: see Costs.start_tree; sources: by display index; motions, those of all pairs; triple: a row of
        lookahead_both.
        """
        memory, n = self._memory_for(len(frames)), len(frames)
        triples = self._enter(memory, frames, strength, sources, motions, triple)
        rows, at = memory.rows[: len(triples) + n + count], len(triples)
        if triples:
            rows[:at] = triples
        amounts, offsets = memory.amounts.ptr, memory.offsets.ptr
        turns.call(memory.jobs[:n], frames[0].coding_index, amounts, offsets, self._n_mb, memory.depths, rows[at : at + n])
        rows[at + n :] = memory.jobs[:count]
        self._run(memory, at, n, count)
        self._count = count

    def _run(self, memory: Memory, n_triples: int, n: int, count: int) -> None:
        """Start the launches for the rows; from their third time on without the interpreter."""
        key, offsets = (n_triples, n, count), memory.host_offsets[:count]
        rows = memory.rows[: n_triples + n + count]
        if (recording := self._recordings.get(key)) is not None:
            self._gpu.replay(recording)
        elif key in self._recordings:
            with self._gpu.record_calls(HostBuffers(rows, offsets, self._event)) as recording:
                self._issue(memory, rows, offsets, *key)
            self._recordings[key] = recording
        else:
            if len(self._recordings) == MOST_RECORDINGS:
                self.drop_recordings()
            self._recordings[key] = None
            self._issue(memory, rows, offsets, *key)

    def _issue(self, memory: Memory, rows: np.ndarray, offsets: np.ndarray, n_triples: int, n: int, count: int) -> None:
        """Jobs of triples, of all frames that wait, of those that leave, in this order in the table: rows -> offsets."""
        stream, tree = self._stream, n_triples + n
        table = memory.table[: len(rows)].put(rows, stream)
        if n_triples:
            lookahead_both(table[:n_triples], *self._size, 0, self._size[1], stream)
        memory.amounts[: n + 1].fill(0, stream)
        progress = memory.amounts[n].view(np.int32)[:2]
        tree_propagate(table[n_triples:tree], *self._size, progress, stream)
        tree_offsets(table[tree:], self._n_mb, self._logarithms, stream)
        memory.offsets[:count].get(offsets, stream)
        self._gpu.record(self._event, stream)

    def drop_recordings(self) -> None:
        """Record anew: kernels are unloaded, or memory changes."""
        for recording in self._recordings.values():
            if recording is not None:
                recording.clear()
        self._recordings.clear()

    def renew(self) -> None:
        """Be as new for a later encoder: no frame is known. The work has ended."""
        self._waiting = range(0)

    def result(self, wait: bool) -> list[np.ndarray]:
        """See LookaheadCosts.tree."""
        if not wait and not self._gpu.done(self._event):
            raise CostPending
        self._gpu.synchronize(self._event)
        assert self._memory is not None
        return list(self._memory.host_offsets[: self._count])

    def _enter(
        self, memory: Memory, frames: Sequence[TreeFrame], strength: int, sources: Mapping[int, GpuFrame],
        motions: dict[CostQuery, Motion], triple: Callable[[CostQuery, Used], list[int]],
    ) -> list[list[int]]:  # fmt: skip
        """Jobs of the frames that are new; rows for those of them that are B frames, whose motion is chosen now."""
        new, first, jobs, triples = self.new(frames), frames[0].coding_index, [], []
        if kept := len(frames) - len(new):
            left = first - self._waiting.start
            memory.jobs[:kept] = memory.jobs[left : left + kept]
        self._waiting = range(first, first + len(frames))
        for frame in new:
            query = frame.query
            motion: Motion | Used | None = motions.get(query)
            if len(query) == 3:
                motion = used = memory.slots[frame.coding_index % memory.frames]
                triples.append(triple(query, used))
            source = sources[query[-1]]
            job = tree_job(source.intra, source.error_weights, motion, frame.weight, strength, frame.noise)
            job[GIFTS : GIFTS + 2] = frame.references
            jobs.append(job)
        if jobs:
            memory.jobs[kept : len(frames)] = jobs
        return triples

    def _memory_for(self, frames: int) -> Memory:
        """Twice as large where it is too small, so that it seldom grows; all frames are new then. No work is under way."""
        if self._memory is None or self._memory.frames < frames:
            if (old := self._memory) is not None:
                self._gpu.synchronize(self._stream)
                self._gpu.release(old.table, old.amounts, old.offsets, *old.used)
            self.drop_recordings()
            self._memory, self._waiting = None, range(0)
            self._memory = self._make_memory(1 << (frames - 1).bit_length())
        return self._memory

    def _make_memory(self, frames: int) -> Memory:
        n_mb, pinned = self._n_mb, self._gpu.pinned
        size = frames, n_mb
        used = Used(self._array(size, np.uint16), self._array((*size, 4), np.int16), self._array(size, np.uint8))
        slots = [Used(*(of_all[k] for of_all in used)) for k in range(frames)]
        table, rows = self._array((3 * frames, WORDS), np.int64), pinned((3 * frames, WORDS), np.int64)
        amounts, offsets = self._array((frames + 1, n_mb), np.int64), self._array(size, np.int32)
        host_offsets, jobs = pinned(size, np.int32), np.zeros((frames, WORDS), np.int64)
        return Memory(frames, table, rows, amounts, offsets, host_offsets, used, slots, jobs, np.zeros(frames, np.int64))

    def _array(self, shape: Sequence[int], dtype: DTypeLike) -> DeviceArray:
        return self._gpu.array(shape, dtype, "the macroblock tree")
