"""Costs of source frames on a GPU: questions are answered in batches on a stream of their own, before they are asked.

A batch is one upload, a few launches and one download of sums, for a new frame and any number of questions; the host waits
for none unless it is told to. It has a Device of its own: another thread may record the launches of another one.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from struct import Struct

import numpy as np
from numpy.typing import DTypeLike

from ...cpu_simd.bundles import HalfSize
from ...cpu_simd.decisions.lookahead import LOOK_PAD
from ...cpu_simd.layout import COARSE_PAD
from ...cuda_src.lookahead.half_size import half_size
from ...cuda_src.lookahead.levels import count_samples, replace_samples
from ...cuda_src.lookahead.lookahead import (
    CAMERA_WORDS,
    SUM,
    WORDS,
    Motion,
    SearchMemory,
    Used,
    between_job,
    lookahead_both,
    lookahead_camera,
    lookahead_intra,
    lookahead_refine,
    lookahead_search,
    motion_job,
)
from ...cuda_src.runtime.array import Stream, address_of
from ...cuda_src.runtime.device import Device, DeviceArray, GpuLost
from ...cuda_src.runtime.recording import HostBuffers, Recording, placeholder_address
from ...standard.sample_format import SAMPLE_MAX, Sample
from ..frames.device_frame import GpuSource
from .brightness import brightness, levels_between
from .costs import CostPending, CostQuery, Luma, TreeFrame, position_between
from .gpu_tree import GpuTree

KERNELS = tuple(f"lookahead/{name}" for name in ("half_size", "lookahead", "lookahead_intra", "levels", "macroblock_tree"))
COUNTS = (SAMPLE_MAX + 1) // (2 * WORDS)  # rows of the table that the counts of a frame's samples take, int32 each
LEVELS = (SAMPLE_MAX + 1) // (8 * WORDS)  # rows of the table that levels take, 8 bits each
MOST_PAIRS, MOST_TRIPLES = 31, 64  # of a batch
MOST_BATCHES = 8  # that are not collected
MOST_RECORDINGS = 64
TABLE = max(2 * COUNTS, 1 + MOST_PAIRS + MOST_TRIPLES), WORDS  # shape
LUMA, NUMBERS = 3, 9  # of the numbers of a batch: its luma on the host, which five addresses follow; how many there are
RecordingKey = tuple[bool, bool, int, int]  # whether there is a new frame, and whether its luma is there; pairs, triples


@dataclass(eq=False)
class GpuFrame:
    """A frame that is kept, or the memory for one."""

    luma: np.ndarray | None  # uint8[H, W]: uploaded, and kept for the host if the GPU is lost; None: it came on the GPU
    half: HalfSize
    intra: DeviceArray  # uint16[n_mb]
    copied: bool  # `luma` is memory of its own
    source: GpuSource | None = None  # a frame that came on the GPU, until its work starts
    questions: list[CostQuery] = field(default_factory=list)  # that have been asked, of which it is the first frame

    def __post_init__(self) -> None:
        self.addresses = [array.ptr for array in (self.intra, *reversed(self.half))]  # by NUMBERS


class Batch:
    """Work that has one upload and one download."""

    def __init__(self, gpu: Device) -> None:
        self.jobs, self.results = (gpu.pinned(TABLE, np.int64) for _ in range(2))
        self.event = gpu.event()
        self.n_rows = 0
        self.questions: Sequence[CostQuery] = ()
        self.first = 0  # the row of the first question; one follows another
        self.new: int | None = None  # the frame whose luma it reads
        self.counted: list[tuple[int, np.ndarray]] = []  # frames whose samples are counted, from row 0 on, and their `coarse`
        self.numbers = np.zeros(NUMBERS, np.int64)  # for recordings: those of the host buffers, then addresses, last first
        self.numbers[:LUMA] = address_of(self.jobs), address_of(self.results), self.event.handle

    def set_numbers(self, frame: GpuFrame, on_gpu: DeviceArray | None) -> None:
        """Those of the new frame. on_gpu: its luma, if that came there."""
        luma = 0 if frame.luma is None else address_of(frame.luma), 0 if on_gpu is None else on_gpu.ptr
        self.numbers[LUMA:] = *luma, *frame.addresses

    def fill(self, rows: Sequence[int], questions: Sequence[CostQuery], first: int = 0, new: int | None = None) -> None:
        """The work: rows of the table, one behind another, the last of which, from `first` on, are those of the questions."""
        self.n_rows, self.questions, self.first, self.new, self.counted = len(rows) // WORDS, questions, first, new, []
        _packer(len(rows))(self.jobs, 0, *rows)


@cache
def _packer(count: int) -> Callable[..., None]:
    """What writes so many int64."""
    return Struct(f"{count}q").pack_into


class GpuCosts:
    """As FrameCosts (host_costs.py), but CostPending for costs that are not there.

    All methods raise GpuLost, those that may allocate DeviceMemoryError too.
    """

    def __init__(self, gpu: Device, width: int, height: int, copies: bool = True, quick: bool = False) -> None:
        """gpu: without another user, closed by `close`; width, height: of the display, in luma samples; copies: the luma of
        frames from the host is copied; else it stays as it is while `reads_from` says so; quick: fewer vectors are tried.
        """
        self._gpu, self._shape, self._copies, self._quick = gpu, (height, width), copies, quick
        self._mb_width, self._mb_height = -(-width // 16), -(-height // 16)
        self._frames: dict[int, GpuFrame] = {}
        self._motions: dict[CostQuery, Motion] = {}  # by reference and frame
        self._free_frames: dict[bool, list[GpuFrame]] = {False: [], True: []}  # by whether they have memory for a copy
        self._free_motions: list[Motion] = []
        self._free_batches: list[Batch] = []
        self._memories: list[SearchMemory] = []  # of the jobs of a batch: batches run one after another
        self._batches: deque[Batch] = deque()  # that are not collected, in order
        self.known: dict[CostQuery, int | None] = {}  # by question; None: under way
        self._counts: dict[int, tuple[list[int], np.ndarray]] = {}  # samples by their value, and brightness, of frames
        self._free_coarse: list[np.ndarray] = []
        self._levelled: tuple[HalfSize, Motion] | None = None  # a reference with other levels, and motion from it
        self._new: int | None = None  # a frame that has not been uploaded
        self._tree: GpuTree | None = None
        self._recordings: dict[RecordingKey, Recording] = {}  # of batches, by kind
        self.first = self.count = 0  # frames that are kept: from `first` on, before `count`
        with gpu:
            gpu.load(KERNELS)
            self._stream: Stream | None = gpu.urgent_stream()
            self._luma = gpu.array(self._shape, Sample, "the lookahead")
            self._table = gpu.array(TABLE, np.int64)  # of all batches, which run one after another

    # ---- frames
    def add(self, luma: Luma) -> None:
        """The next frame; it is copied. Its work starts with the next call of `ahead`, `wait` or `add`."""
        on_host = isinstance(luma, np.ndarray)
        copied = self._copies and on_host
        free = self._free_frames[copied]
        if copied or not free or self._new is not None:
            with self._gpu:
                self._start_new()
                while copied and self._reads_forgotten():
                    self._collect_first()
                if not free:
                    free.append(self._make_frame(copied))
        frame = free.pop()
        if isinstance(luma, GpuSource):
            frame.source = luma
        elif frame.luma is None:
            frame.luma = luma
        else:
            np.copyto(frame.luma, luma)
        self._frames[self.count] = frame
        self._new, self.count = self.count, self.count + 1

    @property
    def is_on_host(self) -> bool:
        """Whether the frames that are kept came from there."""
        return all(frame.luma is not None for frame in self._frames.values())

    @property
    def reads_from(self) -> int:
        """See Costs."""
        if self._reads_forgotten():
            with self._gpu:
                self._collect()
        return min(self.first, self._read_first())

    def luma(self, number: int) -> np.ndarray:
        """uint8[H, W] of a frame from the host that is kept, as long as it is."""
        luma = self._frames[number].luma
        assert luma is not None
        return luma

    def forget(self, before: int) -> None:
        """See FrameCosts."""
        if before <= self.first:
            return
        for number in range(self.first, min(before, self.count)):
            if number == self._new:
                self._new = None
            frame = self._frames.pop(number)
            for question in frame.questions:
                del self.known[question]
                if (motion := self._motions.pop(question, None)) is not None:
                    self._free_motions.append(motion)
            self._counts.pop(number, None)
            frame.questions.clear()
            frame.source = None
            if not frame.copied:
                frame.luma = None
            self._free_frames[frame.copied].append(frame)
        self.first = before

    # ---- costs
    def intra(self, frame: int) -> int:
        """See FrameCosts."""
        return self._value((frame,))

    def p(self, reference: int, frame: int) -> int:
        """See FrameCosts."""
        return self._value((reference, frame))

    def b(self, earlier: int, later: int, frame: int) -> int:
        """See FrameCosts."""
        return self._value((earlier, later, frame))

    def p_of_levels(self, reference: int, frame: int) -> int:
        """See FrameCosts. In two steps: the samples of both frames are counted first."""
        question = reference, frame, frame
        if question not in self.known:
            self._start([], [])
            self._start_levels(reference, frame)
        if (total := self.known.get(question)) is None:
            raise CostPending
        return total

    def brightness(self, frame: int) -> np.ndarray:
        """See Costs. Of a frame with a cost by `p_of_levels`: its samples come with the counts for that."""
        return self._counts[frame][1]

    def ahead(self, questions: Iterable[CostQuery]) -> None:
        """Start what will be asked: see Question; frames that are kept."""
        pairs: dict[CostQuery, None] = {}
        triples: dict[CostQuery, None] = {}
        for question in questions:
            if question not in self.known and len(question) > 1:
                for pair in _pairs(question):
                    if pair not in self.known:
                        pairs[pair] = None
                if len(question) == 3:
                    triples[question] = None
        self._start(list(pairs), list(triples))

    has_tree = True

    def start_tree(self, frames: list[TreeFrame], count: int, strength: int) -> bool:
        """See Costs."""
        new = frames if self._tree is None else self._tree.new(frames)
        pairs = {pair: None for frame in new for pair in _pairs(frame.question) if pair not in self.known}
        self._start(list(pairs), [])
        with self._gpu:
            if self._tree is None:
                self._tree = GpuTree(self._gpu, self._mb_width, self._mb_height, self._stream)
            self._tree.start(frames, count, strength, lambda n: self._frames[n].intra, self._motions, self._triple)
        return True

    def tree(self, wait: bool) -> list[np.ndarray] | None:
        """See Costs."""
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
        self._new = None
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
        self._drop_recordings()
        with suppress(GpuLost), self._gpu:
            self._gpu.synchronize(self._stream)
        self._stream = None
        self._gpu.close()

    def _value(self, question: CostQuery) -> int:
        if (total := self.known.get(question)) is None:
            self.ahead([question])
            raise CostPending
        return total

    # ---- batches
    def _start(self, pairs: Sequence[CostQuery], triples: Sequence[CostQuery]) -> None:
        """Start batches: of the new frame, of pairs (reference, frame), of triples, whose pairs are there or before them."""
        if self._new is None and not pairs and not triples:
            return
        with self._gpu:
            self._collect()
            self._start_new(pairs[:MOST_PAIRS], [] if len(pairs) > MOST_PAIRS else triples[:MOST_TRIPLES])
            for k in range(MOST_PAIRS, len(pairs), MOST_PAIRS):
                self._batch(None, pairs[k : k + MOST_PAIRS], [])
            for k in range(0 if len(pairs) > MOST_PAIRS else MOST_TRIPLES, len(triples), MOST_TRIPLES):
                self._batch(None, [], triples[k : k + MOST_TRIPLES])

    def _start_new(self, pairs: Sequence[CostQuery] = (), triples: Sequence[CostQuery] = ()) -> None:
        """Start a batch with the new frame, if there is one."""
        new, self._new = self._new, None
        if new is not None or pairs or triples:
            self._batch(new, pairs, triples)

    def _batch(self, new: int | None, pairs: Sequence[CostQuery], triples: Sequence[CostQuery]) -> None:
        """Start one batch. The context is current."""
        batch, frame = self._next_batch(), None if new is None else self._frames[new]
        self._fill(batch, new, pairs, triples)
        source = None if frame is None else frame.source
        assert self._stream is not None
        on_gpu = None if source is None else source.luma_on(self._gpu, self._stream)
        if frame is not None:
            batch.set_numbers(frame, on_gpu)
        recording_key = frame is None, on_gpu is None, len(pairs), len(triples)
        recording = self._recordings.get(recording_key)
        if recording is not None:
            recording.bind(batch.numbers)
            self._gpu.replay(recording)
        else:
            self._keep(recording_key, self._record(batch, frame, on_gpu, len(pairs)))
        if frame is not None and source is not None:
            source.seen_on(self._gpu, self._stream)
            frame.source = None
        self._started(batch)

    def _fill(self, batch: Batch, new: int | None, pairs: Sequence[CostQuery], triples: Sequence[CostQuery]) -> None:
        """The table of a batch."""
        while len(self._memories) < len(pairs):
            self._memories.append(self._make_memory())
        first = [] if new is None else [(new,)]
        rows = [0] * (WORDS * len(first))
        for pair, memory in zip(pairs, self._memories):
            rows += self._pair(pair, memory)
        for triple in triples:
            rows += self._triple(triple)
        batch.fill(rows, [*first, *pairs, *triples], new=new)

    def _record(self, batch: Batch, frame: GpuFrame | None, on_gpu: DeviceArray | None, n_pairs: int) -> Recording:
        """All calls of a batch, on stand-ins (recording.py) for the arrays of the new frame; they are done too."""
        jobs, results = batch.jobs[: batch.n_rows], batch.results[: batch.n_rows]
        luma = None if frame is None else frame.luma
        host = HostBuffers(jobs, results, batch.event, *([] if luma is None else [luma]))
        with self._gpu.record_calls(host, batch.numbers[:LUMA:-1].tolist()) as recording:
            stream, size = self._stream, (self._mb_width, self._mb_height)
            table = self._table[: batch.n_rows].put(jobs, stream)
            first = 0 if frame is None else 1
            if frame is not None:
                arrays = *frame.half, frame.intra, self._luma if on_gpu is None else on_gpu
                *planes, intra, source = (_stand_in(number, array) for number, array in enumerate(arrays))
                half = HalfSize(*planes)
                half_size(source if luma is None else self._luma.put(luma, stream), 0, self._mb_height, half, stream)
                lookahead_intra(half, 0, self._mb_height, intra, table[0][SUM:], stream)
            if n_pairs:
                self._search(table[first : first + n_pairs])
            if batch.n_rows > first + n_pairs:
                lookahead_both(table[first + n_pairs :], *size, 0, self._mb_height, stream)
            table.get(results, stream)
            self._gpu.record(batch.event, stream)
        return recording

    def _keep(self, recording_key: RecordingKey, recording: Recording) -> None:
        """For later batches of a kind."""
        if len(self._recordings) == MOST_RECORDINGS:
            self._drop_recordings()
        self._recordings[recording_key] = recording

    def _drop_recordings(self) -> None:
        for recording in self._recordings.values():
            recording.clear()
        self._recordings.clear()

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
        table = self._upload(batch)
        for k, number in enumerate(frames):
            counts = table[COUNTS * k : COUNTS * (k + 1)].reshape(COUNTS * WORDS).view(np.int32)
            half = self._frames[number].half
            count_samples(half, counts, self._stream)
            copied = self._free_coarse.pop() if self._free_coarse else self._gpu.pinned(half.coarse.shape, Sample)
            half.coarse.get(copied, self._stream)
            batch.counted.append((number, copied))
        self._download(batch)

    def _level(self, reference: int, frame: int) -> None:
        """Start a batch with the cost of a frame from a reference with its levels; the samples of both are counted."""
        batch, current = self._next_batch(), self._frames[frame]
        if self._levelled is None:
            self._levelled = self._make_half(), self._make_motion()
            self._memories = self._memories or [self._make_memory()]
        half, motion = self._levelled
        levels = levels_between(self._counts[reference][0], self._counts[frame][0]).view(np.int64)
        job = motion_job(current.half, half, current.intra, self._memories[0], motion)
        batch.fill([*levels.tolist(), *job], [(reference, frame, frame)], LEVELS)
        table = self._upload(batch)
        of_reference = table[:LEVELS].reshape(LEVELS * WORDS).view(Sample)
        replace_samples(self._frames[reference].half, of_reference, half, self._stream)
        self._search(table[LEVELS:])
        self._download(batch)

    def _search(self, jobs: DeviceArray) -> None:
        """All steps of the motion of jobs."""
        mb_width, mb_height, stream = self._mb_width, self._mb_height, self._stream
        lookahead_camera(jobs, mb_width, mb_height, stream)
        lookahead_search(jobs, mb_width, mb_height, 0, mb_height, self._quick, stream)
        lookahead_refine(jobs, mb_width, mb_height, 0, mb_height, self._quick, stream)

    def _upload(self, batch: Batch) -> DeviceArray:
        """The table of a batch on the GPU."""
        return self._table[: batch.n_rows].put(batch.jobs[: batch.n_rows], self._stream)

    def _download(self, batch: Batch) -> None:
        """End the calls for a batch."""
        self._table[: batch.n_rows].get(batch.results[: batch.n_rows], self._stream)
        self._gpu.record(batch.event, self._stream)
        self._started(batch)

    def _started(self, batch: Batch) -> None:
        self._batches.append(batch)
        for question in batch.questions:
            self.known[question] = None
            self._frames[min(question)].questions.append(question)

    def _pair(self, pair: CostQuery, memory: SearchMemory) -> list[int]:
        """The job of a pair, whose motion is kept."""
        reference, frame = (self._frames[number] for number in pair)
        self._motions[pair] = motion = self._free_motions.pop() if self._free_motions else self._make_motion()
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
        """Whether the luma of a frame that was forgotten may still be read."""
        return self._read_first() < self.first

    def _read_first(self) -> int:
        """The first frame that is kept, or of a batch that is not collected."""
        return next((batch.new for batch in self._batches if batch.new is not None), self.first)

    def _collect(self) -> None:
        """Collect the batches that have ended. The context is current."""
        while self._batches and self._gpu.done(self._batches[0].event):
            self._keep_costs(self._batches.popleft())

    def _collect_first(self) -> None:
        """Wait for the first batch, and keep its costs."""
        self._gpu.synchronize(self._batches[0].event)
        self._keep_costs(self._batches.popleft())

    def _keep_costs(self, batch: Batch) -> None:
        """Of a batch that has ended."""
        for question, total in zip(batch.questions, batch.results[batch.first : batch.n_rows, SUM].tolist()):
            if question in self.known:  # else a frame of it was forgotten
                self.known[question] = total
        for k, (number, coarse) in enumerate(batch.counted):
            if number >= self.first:
                counts = batch.results[COUNTS * k : COUNTS * (k + 1)].view(np.int32).reshape(-1).tolist()
                self._counts[number] = counts, brightness(coarse)
            self._free_coarse.append(coarse)
        self._free_batches.append(batch)

    # ---- memory
    def _make_frame(self, copied: bool) -> GpuFrame:
        intra = self._array((self._mb_height * self._mb_width,), np.uint16)
        return GpuFrame(self._gpu.pinned(self._shape, Sample) if copied else None, self._make_half(), intra, copied)

    def _make_half(self) -> HalfSize:
        mb_height, mb_width = self._mb_height, self._mb_width
        planes = self._array((4, 8 * mb_height + 2 * LOOK_PAD, 8 * mb_width + 2 * LOOK_PAD), Sample)
        coarse = self._array((4 * mb_height + 2 * COARSE_PAD, 4 * mb_width + 2 * COARSE_PAD), Sample)
        return HalfSize(planes, coarse, self._array((mb_height, mb_width), Sample))

    def _make_motion(self) -> Motion:
        n_mb = self._mb_height * self._mb_width
        return Motion(self._array((n_mb, 2), np.int16), self._array((n_mb,), np.uint16))

    def _make_memory(self) -> SearchMemory:
        vector = self._array((self._mb_height * self._mb_width, 2), np.int16)
        return SearchMemory(self._array((CAMERA_WORDS,), np.int32).fill(0, self._stream), self._array((2,), np.int16), vector)

    def _array(self, shape: Sequence[int], dtype: DTypeLike) -> DeviceArray:
        return self._gpu.array(shape, dtype, "the lookahead")


def _stand_in(number: int, array: DeviceArray) -> DeviceArray:
    """For an array that differs between replays of a recording."""
    return DeviceArray(array.device, placeholder_address(number), array.shape, array.dtype)


def _pairs(question: CostQuery) -> tuple[CostQuery, ...]:
    """Whose motion a question needs."""
    if len(question) < 3:
        return (question,) if len(question) == 2 else ()
    earlier, later, frame = question
    return (earlier, frame), (later, frame), (earlier, later)
