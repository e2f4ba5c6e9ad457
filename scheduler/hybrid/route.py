"""The route of a frame: the runs of stages and the copies of rows that a plan gives for one frame.

Pure. The executor does exactly these operations, and the planner times exactly these. Rows are copied only if a stage reads
them in a memory where they are not valid. The residency after a frame is numbered for the next frame, so that routes repeat
after a few frames and are looked up.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...process import cached_property
from ..accesses import Access, RefLists, accesses
from ..arrays import (
    ALL_ROWS,
    CURRENT,
    DECODED,
    INTRA_FILL,
    PREVIOUS,
    PREVIOUS_FRAME_ARRAYS,
    REFERENCE_ARRAYS,
    RESULTS,
    SECOND_RESULTS,
    SOURCES,
    Halo,
    Key,
    Size,
    bytes_of,
)
from ..stages import frame_steps
from .plan import EXTENDED, HOST, Plan, memory_of
from .residency import Residency, Rows, common, freeze, union, without

COMPACT = "compact"
TYPICAL_B_FRAMES = 3  # most that are predicted after a P frame


@dataclass(frozen=True)
class FrameTraits:
    """The properties of a frame that determine its route.

    limit: references held after it; source: the memory of its samples; decoded: whether the decoded frame is downloaded;
    is_idr: whether all references before it are dropped; None: if it has none. me, subme, cabac: the options; n_ref:
    references, of which the first is in RefPicList0 `duplicates` times more; weighted: entries with weights of luma.
    n_ref1: entries of list 1, in streams with B frames (size.has_b_frames); is_reference: see FrameSpec. References have the
    numbers of the residency before the frame: `entries` of both lists, None: 0, 1, ... in list 0; `after`: those that are
    held after it, which then have the numbers 0, 1, ...; CURRENT: this frame; None: it and the first ones before it, `limit`
    together.
    qp_varies: see FrameSpec; QPs of macroblocks lie on the host at first; refreshes: see frame_steps.
    then: the frames that follow it before the next one with its traits, for predictions.
    """

    size: Size
    n_ref: int
    limit: int
    me: str = "fsbm"
    source: str = HOST
    decoded: bool = False
    is_idr: bool | None = None
    subme: int = 0
    cabac: bool = False
    duplicates: int = 0
    weighted: tuple[int, ...] = ()
    n_ref1: int = 0
    is_reference: bool = True
    entries: tuple[int, ...] | None = None
    after: tuple[int, ...] | None = None
    qp_varies: int = 0
    refreshes: bool = False
    then: tuple["FrameTraits", ...] = ()

    @classmethod
    def typical(
        cls, size: Size, ref: int, me: str = "fsbm", subme: int = 0, cabac: bool = False, bframes: int = 0
    ) -> "FrameTraits":
        """A P frame with `ref` references, and the B frames that follow it: of several, the first ones, none a reference."""
        limit = max(ref, 2) if bframes else ref
        entries = tuple(range(1, max(ref, 2)))
        b_frame = cls(
            size,
            len(entries),
            limit,
            me,
            is_idr=False,
            subme=subme,
            cabac=cabac,
            n_ref1=1,
            is_reference=False,
            entries=(*entries, 0),
            after=tuple(range(limit)),
        )
        return cls(size, ref, limit, me, subme=subme, cabac=cabac, then=(b_frame,) * min(bframes, TYPICAL_B_FRAMES))

    @property
    def frames(self) -> tuple["FrameTraits", ...]:
        """It and those of `then`."""
        return (self, *self.then)

    @property
    def steps(self) -> list[tuple[tuple[str, ...], int]]:
        """See frame_steps."""
        entries, options = self.n_ref + self.duplicates, (self.me, (), self.subme, self.cabac, self.weighted)
        traits = self.is_reference, self.size.has_b_frames, self.qp_varies, self.refreshes
        return frame_steps(entries, *options, self.n_ref1, *traits)

    @cached_property
    def ref_lists(self) -> RefLists:
        """Its reference lists."""
        n_ref1 = self.n_ref1 if self.size.has_b_frames else None
        if self.entries is not None:
            return RefLists(self.entries, n_ref1)
        return RefLists((*[0] * self.duplicates, *range(self.n_ref)), n_ref1)

    @property
    def references_after(self) -> tuple[int, ...]:
        """The references that are held after it, as `after` says."""
        return (CURRENT, *range(self.limit - 1)) if self.after is None else self.after

    @property
    def stages(self) -> frozenset[str]:
        """Names of its stages, and of those of `then`."""
        return frozenset(self.runs)

    @cached_property
    def runs(self) -> dict[str, float]:
        """How often each stage runs a frame, on average with those of `then`."""
        names = [name for frame in self.frames for of_step, _ in frame.steps for name in of_step]
        return {name: count / len(self.frames) for name, count in Counter(names).items()}

    @property
    def drops_references(self) -> bool:
        """Whether no later frame uses a frame before this one."""
        return self.n_ref == 0 if self.is_idr is None else self.is_idr


@dataclass(frozen=True)
class Run:
    """A stage on a device. needs: indices of operations of other engines that must be over; step: index in the frame."""

    stage: str
    device: str
    row0: int
    row1: int
    needs: tuple[int, ...]
    reference: int = -1
    step: int = 0


@dataclass(frozen=True)
class Copy:
    """A copy of rows of an array from one memory to another."""

    array: Key
    row0: int
    row1: int
    source: str
    target: str
    bytes: int
    needs: tuple[int, ...]
    step: int = 0


Op = Run | Copy


def engine(op: Op) -> tuple[str, ...]:
    """The engine of an operation: a device, or one direction between two memories. It works in order."""
    return (op.device,) if isinstance(op, Run) else (op.source, op.target)


class _Hazards:
    """By (array, memory): operations that wrote rows, and those that read them since."""

    def __init__(self) -> None:
        self.writers: dict[tuple[Key, str], list[tuple[int, int, int]]] = {}
        self.readers: dict[tuple[Key, str], list[tuple[int, int, int]]] = {}

    def read(self, key: Key, memory: str, row0: int, row1: int, op: int, needs: set[int]) -> None:
        array = (key, memory)
        needs.update(n for a, b, n in self.writers.get(array, ()) if a < row1 and row0 < b)
        self.readers.setdefault(array, []).append((row0, row1, op))

    def write(self, key: Key, memory: str, row0: int, row1: int, op: int, needs: set[int]) -> None:
        array = (key, memory)
        for table in (self.writers, self.readers):
            old = table.get(array, ())
            needs.update(n for a, b, n in old if a < row1 and row0 < b)
            table[array] = [(a, b, n) for a, b, n in old if a < row0 or b > row1]
        self.writers[array].append((row0, row1, op))


class _Route:
    """A route under construction."""

    def __init__(self, plan: Plan, frame_traits: FrameTraits, valid: Residency) -> None:
        self.plan, self.frame_traits, self.size = plan, frame_traits, frame_traits.size
        self.height = frame_traits.size.mb_height
        self.memories = tuple(dict.fromkeys([HOST, *(memory_of(device) for device in plan.devices)]))
        self.valid: dict[Key, dict[str, Rows]] = {key: dict(rows_in) for key, rows_in in valid}
        self.extended: dict[Key, set[str]] = {}  # memories with borders around the frame in the loop
        self.hazards = _Hazards()
        self.ops: list[Op] = []
        self.engines: list[tuple[str, ...]] = []
        self.step = 0

    def start(self) -> None:
        """Residency before the first stage: the source, and the arrays that are filled in every memory."""
        all_rows: Rows = ((0, self.height),)
        filled = ("qp",) if self.frame_traits.n_ref else ("qp", *INTRA_FILL)
        for name in filled:
            self.valid[name, CURRENT] = dict.fromkeys(self.memories, all_rows)
        if self.frame_traits.qp_varies:
            self.valid["qp", CURRENT] = {HOST: all_rows}
        for name in SOURCES:
            self.valid[name, CURRENT] = {self.frame_traits.source: all_rows}

    def stage(self, name: str, reference: int) -> None:
        """Add the copies that a stage needs, then its runs."""
        uses = accesses(name, reference, self.frame_traits.ref_lists)
        spans = self.plan.spans(name)
        for device, row0, row1 in spans:
            memory = memory_of(self.plan.devices[device])
            for use in uses:
                if use.halo_rows is not None:
                    self.ensure_resident(use.key, memory, *self._rows(use.halo_rows, row0, row1))
        for device, row0, row1 in spans:
            self.run(name, self.plan.devices[device], row0, row1, reference, uses)
        for use in uses:
            if use.writes:
                self._written(use, spans, name in EXTENDED)

    def _rows(self, halo_rows: Halo, row0: int, row1: int) -> tuple[int, int]:
        return max(0, row0 - halo_rows[0]), min(self.height, row1 + halo_rows[1])

    def _written(self, use: Access, spans: Sequence[tuple[int, int, int]], borders: bool) -> None:
        """Note the writes of a stage. borders: only borders change, so rows elsewhere stay valid until the next frame."""
        rows_in = self.valid.setdefault(use.key, {})
        if borders:
            self.extended[use.key] = {memory_of(self.plan.devices[k]) for k, _, _ in spans}
            return
        for device, row0, row1 in spans:
            same = {memory_of(self.plan.devices[k]) for k, a, b in spans if a <= row0 and row1 <= b}
            for memory in rows_in.keys() - same:
                rows_in[memory] = without(rows_in[memory], row0, row1)
            target_memory = memory_of(self.plan.devices[device])
            rows_in[target_memory] = union(rows_in.get(target_memory, ()), row0, row1)

    def ensure_resident(self, key: Key, memory: str, row0: int, row1: int) -> None:
        """Copy the rows of [row0, row1) that a memory lacks; rows valid in no memory are uninitialised and need no copy."""
        rows_in = self.valid.get(key, {})
        lacking: Rows = ((row0, row1),)
        for a, b in rows_in.get(memory, ()):
            lacking = tuple(rest for span in lacking for rest in without((span,), a, b))
        for other in self.memories:
            if other == memory or other not in rows_in:
                continue
            for span in lacking:
                for a, b in common(rows_in[other], *span):
                    self.copy(key, a, b, other, memory)
                    rows_in[memory] = union(rows_in.get(memory, ()), a, b)
                    lacking = tuple(rest for rows in lacking for rest in without((rows,), a, b))

    def copy(self, key: Key, row0: int, row1: int, source: str, target: str) -> None:
        op, needs = len(self.ops), set[int]()
        self.hazards.read(key, source, row0, row1, op, needs)
        self.hazards.write(key, target, row0, row1, op, needs)
        size = bytes_of(key[0], row0, row1, self.size)
        ready = self._needs(needs, (source, target))
        self.ops.append(Copy(key, row0, row1, source, target, size, ready, self.step))
        self.engines.append((source, target))

    def run(self, name: str, device: str, row0: int, row1: int, reference: int, uses: Iterable[Access]) -> None:
        op, needs, memory = len(self.ops), set[int](), memory_of(device)
        for use in uses:
            if use.halo_rows is not None:
                self.hazards.read(use.key, memory, *self._rows(use.halo_rows, row0, row1), op, needs)
            if use.writes:
                self.hazards.write(use.key, memory, row0, row1, op, needs)
        needs.discard(op)
        self.ops.append(Run(name, device, row0, row1, self._needs(needs, (device,)), reference, self.step))
        self.engines.append((device,))

    def _needs(self, needs: set[int], engine: tuple[str, ...]) -> tuple[int, ...]:
        """The last needed operation of each other engine, because engines work in order."""
        last: dict[tuple[str, ...], int] = {}
        for n in needs:
            if self.engines[n] != engine:
                last[self.engines[n]] = max(n, last.get(self.engines[n], -1))
        return tuple(sorted(last.values()))

    def download_results(self) -> None:
        """Add the downloads of results; levels are compacted first if a GPU has all of them."""
        for name in (*RESULTS, *SECOND_RESULTS) if self.frame_traits.n_ref1 else RESULTS:
            self.ensure_resident((name, CURRENT), HOST, 0, self.height)
        for name in SOURCES:  # for samples of I_PCM
            self.ensure_resident((name, CURRENT), HOST, 0, self.height)
        if self.frame_traits.decoded:
            for name in DECODED:
                self.ensure_resident((name, CURRENT), HOST, 0, self.height)
        levels = self.valid.get(("levels", CURRENT), {})
        complete_in = [m for m, rows in levels.items() if rows == ((0, self.height),)]
        if complete_in and HOST not in complete_in and not levels.get(HOST):
            device = next(device for device in self.plan.devices if memory_of(device) == complete_in[0])
            uses = (
                *(Access((name, CURRENT), ALL_ROWS, False) for name in ("mb_type", "cbp", "total_coeff", "levels")),
                Access(("level_index", CURRENT), None, True),
            )
            self.run(COMPACT, device, 0, self.height, -1, uses)
            self.copy(("level_index", CURRENT), 0, self.height, complete_in[0], HOST)
        else:
            self.ensure_resident(("levels", CURRENT), HOST, 0, self.height)

    def residency_after(self) -> Residency:
        """The residency before the next frame."""
        after: dict[Key, dict[str, Rows]] = {}
        numbers = {number: k for k, number in enumerate(self.frame_traits.references_after)}
        for (name, number), rows_in in self.valid.items():
            if name in REFERENCE_ARRAYS and number in numbers:
                framed = self.extended.get((name, number))
                kept = rows_in if framed is None else {m: rows for m, rows in rows_in.items() if m in framed}
                after[name, numbers[number]] = kept
            elif name in PREVIOUS_FRAME_ARRAYS and number == CURRENT and not self.size.has_b_frames:
                after[name, PREVIOUS] = rows_in
        return freeze(after)


def all_resident_in(valid: Residency, memory: str, mb_height: int) -> bool:
    """Whether all arrays of a residency have all rows in one memory."""
    return all(((memory, ((0, mb_height),)) in rows_in) for _, rows_in in valid)


@lru_cache(4096)
def route(plan: Plan, frame_traits: FrameTraits, valid: Residency) -> tuple[tuple[Op, ...], Residency]:
    """The operations of a frame in issue order, and the residency after it."""
    builder = _Route(plan, frame_traits, () if frame_traits.drops_references else valid)
    builder.start()
    for names, reference in frame_traits.steps:
        for name in names:
            builder.stage(name, reference)
        builder.step += 1
    builder.download_results()
    return tuple(builder.ops), builder.residency_after()
