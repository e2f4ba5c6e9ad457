"""Costs of source frames on a GPU: queries are answered in batches on a stream of their own, before they are asked.

A batch is one upload, a few launches and one download of sums, for new frames and any number of queries; the host waits
for none unless it is told to. It has a Device of its own: another thread may record the launches of another one.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from ...cpu_simd.bundles import HalfSize
from ...cuda_src.lookahead.levels import count_samples, replace_samples
from ...cuda_src.lookahead.lookahead import (
    SHARPNESS,
    SUM,
    WORDS,
    Motion,
    SearchMemory,
    Used,
    between_job,
    motion_job,
)
from ...cuda_src.runtime.array import Stream
from ...cuda_src.runtime.device import Device, GpuLost
from ...standard.sample_format import SAMPLE_MAX, SUB_HEIGHT_C, SUB_WIDTH_C, Sample
from ..frames.device_frame import GpuSource
from .brightness import brightness, levels_between
from .costs import CostPending, CostQuery, Source, TreeFrame, position_between
from .gpu_batch import COUNTS, MOST_NEW, MOST_PAIRS, MOST_TRIPLES, Batch, GpuFrame
from .gpu_calls import BatchCalls
from .gpu_tree import GpuTree
from .lookahead_memory import LookaheadMemory

KERNELS = tuple(f"lookahead/{name}" for name in ("half_size", "lookahead", "lookahead_intra", "levels", "macroblock_tree"))
AQ_KERNELS = ("source/ac_energy", "quantiser/aq_offsets")
LEVELS = (SAMPLE_MAX + 1) // (8 * WORDS)  # rows of the table that levels take, 8 bits each
MOST_BATCHES = 8  # that are not collected
MOST_RECORDINGS = 128
RecordingKey = tuple[int, bool, int, int]  # new frames, whether they came on the GPU, pairs, triples


class GpuCosts:
    """As FrameCosts (host_costs.py), but CostPending for costs that are not there.

    All methods raise GpuLost, those that may allocate DeviceMemoryError too.
    """

    def __init__(
        self, gpu: Device, width: int, height: int, copies: bool = True, quick: bool = False,
        aq: tuple[int, int] | None = None, with_sharpness: bool = True,
    ) -> None:  # fmt: skip
        """gpu: without another user, closed by `close`; width, height: of the display, in luma samples; copies: the planes of
        frames from the host are copied; else they stay as they are while `reads_from` says so; quick: fewer vectors are
        tried; aq: mode, not 0, and strength in 1 / 256 of adaptive quantisation, which needs all planes; None: none;
        with_sharpness: see FrameCosts.
        """
        self._gpu, self._copies = gpu, copies
        chroma = -(-height // SUB_HEIGHT_C), -(-width // SUB_WIDTH_C)
        self._shapes = ((height, width), chroma, chroma) if aq else ((height, width),)  # of planes that are uploaded
        self._mb_width, self._mb_height = -(-width // 16), -(-height // 16)
        self._frames: dict[int, GpuFrame] = {}
        self._motions: dict[CostQuery, Motion] = {}  # by reference and frame
        self._memory = LookaheadMemory(gpu, self._mb_width, self._mb_height, self._shapes, aq is not None)
        self._free_batches: list[Batch] = []
        self._searches: list[SearchMemory] = []  # of the jobs of a batch: batches run one after another
        self._batches: deque[Batch] = deque()  # that are not collected, in order
        self.known: dict[CostQuery, int | None] = {}  # by query; None: under way
        self._sharpness: dict[int, int] = {}  # of frames whose cost by intra prediction was collected
        self._counts: dict[int, tuple[list[int], np.ndarray]] = {}  # samples by their value, and brightness, of frames
        self._levelled: tuple[HalfSize, Motion] | None = None  # a reference with other levels, and motion from it
        self._new: list[int] = []  # frames whose work has not started: all came from the host, or all on the GPU
        self._tree: GpuTree | None = None
        self.first = self.count = 0  # frames that are kept: from `first` on, before `count`
        with gpu:
            gpu.load((*KERNELS, *AQ_KERNELS) if aq else KERNELS)
            self._stream: Stream | None = gpu.urgent_stream()
            size = self._mb_width, self._mb_height, self._shapes
            self._calls = BatchCalls(gpu, self._stream, *size, quick, aq, with_sharpness)

    # ---- frames
    def add(self, source: Source) -> None:
        """The next frame. Its work starts with the next call of `ahead` or `wait`, or behind more frames."""
        on_host = not isinstance(source, GpuSource)
        copied = self._copies and on_host
        is_last = len(self._new) == MOST_NEW or (self._new and (self._frames[self._new[0]].source is None) != on_host)
        if copied or is_last or not self._memory.has_frame(copied):
            with self._gpu:
                if is_last:
                    self._start_new()
                while copied and self._reads_forgotten():
                    self._collect_first()
                frame = self._memory.frame(copied)
        else:
            frame = self._memory.frame(copied)
        if isinstance(source, GpuSource):
            frame.source = source.buffer
        elif frame.copied:
            for plane, samples in zip(frame.planes, source):
                np.copyto(plane, samples)
        else:
            frame.planes = source[: len(self._shapes)]
        self._frames[self.count] = frame
        self._new.append(self.count)
        self.count += 1

    @property
    def is_on_host(self) -> bool:
        """Whether the frames that are kept came from there."""
        return all(frame.planes for frame in self._frames.values())

    @property
    def reads_from(self) -> int:
        """See LookaheadCosts."""
        if self._reads_forgotten():
            self._collect()
        return min(self.first, self._read_first())

    def luma(self, number: int) -> np.ndarray:
        """uint8[H, W] of a frame from the host that is kept, as long as it is."""
        return self._frames[number].planes[0]

    def forget(self, before: int) -> None:
        """See FrameCosts."""
        if before <= self.first:
            return
        for number in range(self.first, min(before, self.count)):
            if number in self._new:
                self._new.remove(number)
            frame = self._frames.pop(number)
            for query in frame.queries:
                del self.known[query]
                if (motion := self._motions.pop(query, None)) is not None:
                    self._memory.free_motion(motion)
            self._counts.pop(number, None)
            self._sharpness.pop(number, None)
            frame.queries.clear()
            frame.source = None
            if not frame.copied:
                frame.planes = ()
            self._memory.free_frame(frame)
        self.first = before

    # ---- costs
    def intra(self, frame: int) -> int:
        """See FrameCosts."""
        return self._value((frame,))

    def sharpness(self, frame: int) -> int:
        """See LookaheadCosts: it comes with the cost by intra prediction."""
        self.intra(frame)
        return self._sharpness[frame]

    def p(self, reference: int, frame: int) -> int:
        """See FrameCosts."""
        return self._value((reference, frame))

    def b(self, earlier: int, later: int, frame: int) -> int:
        """See FrameCosts."""
        return self._value((earlier, later, frame))

    def p_of_levels(self, reference: int, frame: int) -> int:
        """See FrameCosts. In two steps: the samples of both frames are counted first."""
        query = reference, frame, frame
        if (total := self.known.get(query)) is None:
            self._collect()
            if query not in self.known:
                self._start([], [])
                self._start_levels(reference, frame)
            if (total := self.known.get(query)) is None:
                raise CostPending
        return total

    def brightness(self, frame: int) -> np.ndarray:
        """See LookaheadCosts. Of a frame with a cost by `p_of_levels`: its samples come with the counts for that."""
        return self._counts[frame][1]

    def aq_offsets(self, frame: int) -> np.ndarray | None:
        """See LookaheadCosts: they come with the cost by intra prediction."""
        self.intra(frame)
        return self._frames[frame].aq_offsets

    def ahead(self, queries: Iterable[CostQuery]) -> None:
        """Start what will be asked: see CostQuery; frames that are kept."""
        pairs: dict[CostQuery, None] = {}
        triples: dict[CostQuery, None] = {}
        for query in queries:
            if query not in self.known and len(query) > 1:
                for pair in _pairs(query):
                    if pair not in self.known:
                        pairs[pair] = None
                if len(query) == 3:
                    triples[query] = None
        self._start(list(pairs), list(triples))

    has_tree = in_batches = True

    def start_tree(self, frames: list[TreeFrame], count: int, strength: int) -> bool:
        """See LookaheadCosts."""
        new = frames if self._tree is None else self._tree.new(frames)
        pairs = {pair: None for frame in new for pair in _pairs(frame.query) if pair not in self.known}
        self._start(list(pairs), [])
        with self._gpu:
            if self._tree is None:
                self._tree = GpuTree(self._gpu, self._mb_width, self._mb_height, self._stream)
            self._tree.start(frames, count, strength, self._frames, self._motions, self._triple)
        return True

    def tree(self, wait: bool) -> list[np.ndarray] | None:
        """See LookaheadCosts."""
        assert self._tree is not None
        with self._gpu:
            return self._tree.result(wait)

    def wait(self) -> None:
        """Block until all costs are there that were asked for."""
        self._start([], [])
        with self._gpu:
            while self._batches:
                self._collect_first()

    @property
    def gpu(self) -> Device:
        """See User (idle.py)."""
        return self._gpu

    def renew(self) -> None:
        """Be as new for a later encoder, with the memory and the recordings. GpuLost."""
        self._new.clear()
        with self._gpu:
            while self._batches:
                self._collect_first()
            self._gpu.synchronize(self._stream)
        self.forget(self.count)
        if self._tree is not None:
            self._tree.renew()
        self.first = self.count = 0

    def close(self) -> None:
        """Free the GPU's memory. Frames are gone."""
        self._frames.clear()
        self._calls.drop_recordings()
        if self._tree is not None:
            self._tree.drop_recordings()
        with suppress(GpuLost), self._gpu:
            self._gpu.synchronize(self._stream)
        self._stream = self._calls.stream = None
        self._gpu.close()

    def _value(self, query: CostQuery) -> int:
        if (total := self.known.get(query)) is None:
            self._collect()
            if (total := self.known.get(query)) is None:
                self.ahead([query])
                raise CostPending
        return total

    # ---- batches
    def _start(self, pairs: Sequence[CostQuery], triples: Sequence[CostQuery]) -> None:
        """Start batches: of new frames, of pairs (reference, frame), of triples, whose pairs are there or before them."""
        if not self._new and not pairs and not triples:
            return
        with self._gpu:
            self._start_new(pairs[:MOST_PAIRS], [] if len(pairs) > MOST_PAIRS else triples[:MOST_TRIPLES])
            for k in range(MOST_PAIRS, len(pairs), MOST_PAIRS):
                self._batch((), pairs[k : k + MOST_PAIRS], [])
            for k in range(0 if len(pairs) > MOST_PAIRS else MOST_TRIPLES, len(triples), MOST_TRIPLES):
                self._batch((), [], triples[k : k + MOST_TRIPLES])

    def _start_new(self, pairs: Sequence[CostQuery] = (), triples: Sequence[CostQuery] = ()) -> None:
        """Start a batch with the new frames, if there are some."""
        new, self._new = self._new, []
        if new or pairs or triples:
            self._batch(new, pairs, triples)

    def _batch(self, new: Sequence[int], pairs: Sequence[CostQuery], triples: Sequence[CostQuery]) -> None:
        """Start one batch. The context is current."""
        batch, frames = self._next_batch(), [self._frames[number] for number in new]
        self._fill(batch, new, pairs, triples)
        self._calls.run(batch, frames, len(pairs))
        for frame in frames:
            frame.source = None
        self._started(batch)

    def _fill(self, batch: Batch, new: Sequence[int], pairs: Sequence[CostQuery], triples: Sequence[CostQuery]) -> None:
        """The table of a batch."""
        while len(self._searches) < len(pairs):
            self._searches.append(self._memory.make_search(self._stream))
        rows = [0] * (WORDS * len(new))
        for pair, memory in zip(pairs, self._searches):
            rows += self._pair(pair, memory)
        for triple in triples:
            rows += self._triple(triple)
        batch.fill(rows, [*[(number,) for number in new], *pairs, *triples], new=new)

    def _start_levels(self, reference: int, frame: int) -> None:
        """Start the next step of a cost of levels, unless the one before is under way."""
        uncounted = [number for number in (reference, frame) if number not in self._counts]
        counting = {number for batch in self._batches for number, _ in batch.counted}
        with self._gpu:
            if not uncounted:
                self._level(reference, frame)
            elif not counting.issuperset(uncounted):
                self._count(uncounted)

    def _count(self, frames: Sequence[int]) -> None:
        """Start a batch that counts the samples of frames."""
        batch = self._next_batch()
        batch.fill([0] * (WORDS * COUNTS * len(frames)), [])
        table = self._calls.upload(batch)
        for k, number in enumerate(frames):
            counts = table[COUNTS * k : COUNTS * (k + 1)].reshape(COUNTS * WORDS).view(np.int32)
            half = self._frames[number].half
            count_samples(half, counts, self._stream)
            copied = self._memory.coarse(half.coarse.shape)
            half.coarse.get(copied, self._stream)
            batch.counted.append((number, copied))
        self._calls.download(batch)
        self._started(batch)

    def _level(self, reference: int, frame: int) -> None:
        """Start a batch with the cost of a frame from a reference with its levels; the samples of both are counted."""
        batch, current = self._next_batch(), self._frames[frame]
        if self._levelled is None:
            self._levelled = self._memory.make_halves(1)[0], self._memory.motion()
            self._searches = self._searches or [self._memory.make_search(self._stream)]
        half, motion = self._levelled
        levels = levels_between(self._counts[reference][0], self._counts[frame][0]).view(np.int64)
        job = motion_job(current.half, half, current.intra, self._searches[0], motion)
        batch.fill([*levels.tolist(), *job], [(reference, frame, frame)], LEVELS)
        table = self._calls.upload(batch)
        of_reference = table[:LEVELS].reshape(LEVELS * WORDS).view(Sample)
        replace_samples(self._frames[reference].half, of_reference, half, self._stream)
        self._calls.search(table[LEVELS:])
        self._calls.download(batch)
        self._started(batch)

    def _started(self, batch: Batch) -> None:
        self._batches.append(batch)
        for query in batch.queries:
            self.known[query] = None
            self._frames[min(query)].queries.append(query)

    def _pair(self, pair: CostQuery, memory: SearchMemory) -> list[int]:
        """The job of a pair, whose motion is kept."""
        reference, frame = self._frames[pair[0]], self._frames[pair[1]]
        self._motions[pair] = motion = self._memory.motion()
        return motion_job(frame.half, reference.half, frame.intra, memory, motion)

    def _triple(self, triple: CostQuery, used: Used | None = None) -> list[int]:
        earlier, later, frame = triple
        halves = self._frames[frame].half, self._frames[earlier].half, self._frames[later].half
        motions = self._motions[earlier, frame], self._motions[later, frame], self._motions[earlier, later]
        return between_job(halves, position_between(earlier, later, frame), motions, used)

    def _next_batch(self) -> Batch:
        if self._free_batches:
            return self._free_batches.pop()
        if len(self._batches) < MOST_BATCHES:
            return Batch(self._gpu)
        self._collect_first()
        return self._free_batches.pop()

    def _reads_forgotten(self) -> bool:
        """Whether the planes of a frame that was forgotten may still be read."""
        return self._read_first() < self.first

    def _read_first(self) -> int:
        """The first frame that is kept, or of a batch that is not collected."""
        return next((batch.new[0] for batch in self._batches if batch.new), self.first)

    def _collect(self) -> None:
        """Collect the batches that have ended."""
        if not self._batches:
            return
        with self._gpu:
            while self._batches and self._gpu.done(self._batches[0].event):
                self._keep_costs(self._batches.popleft())

    def _collect_first(self) -> None:
        """Wait for the first batch, and keep its costs."""
        self._gpu.synchronize(self._batches[0].event)
        self._keep_costs(self._batches.popleft())

    def _keep_costs(self, batch: Batch) -> None:
        """Of a batch that has ended."""
        for query, total in zip(batch.queries, batch.results[batch.first : batch.n_rows, SUM].tolist()):
            if query in self.known:  # else a frame of it was forgotten
                self.known[query] = total
        for number, total in zip(batch.new, batch.results[batch.first :, SHARPNESS].tolist()):
            if (number,) in self.known:
                self._sharpness[number] = total
        for k, (number, coarse) in enumerate(batch.counted):
            if number >= self.first:
                counts = batch.results[COUNTS * k : COUNTS * (k + 1)].view(np.int32).reshape(-1).tolist()
                self._counts[number] = counts, brightness(coarse)
            self._memory.free_coarse(coarse)
        self._free_batches.append(batch)


def _pairs(query: CostQuery) -> tuple[CostQuery, ...]:
    """Whose motion a query needs."""
    if len(query) < 3:
        return (query,) if len(query) == 2 else ()
    earlier, later, frame = query
    return (earlier, frame), (later, frame), (earlier, later)
