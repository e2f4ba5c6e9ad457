"""The linear program of row splits: how many macroblock rows of each stage each device takes, fractions allowed.

After Momcilovic, Ilic, Roma and Sousa (IEEE Trans. Multimedia 16(1), 2014; FEVES, ICPP 2014), for the arrays of arrays.py.
Frames follow one another, and the period T between them is minimised. Unknowns: rows r[s, k] of stage s on device k, its end
e[s, k] on it, and the distance by which each cut between two devices moves from stage to stage.

    sum over k of r[s, k] = rows of the frame
    e[s, k] >= e[stage before, k] + launch + each r[s, k] + bytes of rows that the cut moved / rate
    e[s, k] >= e[w, j] + latency + bytes that j wrote in stage w and k lacks / rate + launch + each r[s, k]
    (minus T if w is a stage of the frame before)
    work of a device, bytes of a link / rate <= T
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..accesses import accesses
from ..arrays import CURRENT, PREVIOUS_FRAME_ARRAYS, REFERENCE_ARRAYS, RESULTS, Key, bytes_of
from .plan import EXTENDED, HOST, SPLITTING, is_gpu, memory_of
from .route import FrameTraits
from .tuning.models import Models

REPEATED = "repeated"  # each device does all rows itself
Placement = Mapping[str, int | str]  # by stage that does not split: index of its device, or REPEATED


@dataclass(frozen=True)
class Feed:
    """Data that one stage reads from another. all_rows: the reader reads all rows, else only its own rows."""

    writer: str
    reader: str
    bytes_a_row: float
    all_rows: bool
    before: bool  # written in the frame before


def feeds(frame_traits: FrameTraits) -> tuple[list[str], list[Feed]]:
    """(stages in order, feeds between them). A stage of several references counts once, its bytes as often as read."""
    writers: dict[Key, str] = {}
    order: list[str] = []
    fed_bytes: dict[tuple[str, str, bool, bool], float] = {}
    steps = [(name, reference) for names, reference in frame_traits.steps for name in names]
    for first in (True, False):  # the first pass finds the writers of the frame before
        for name, reference in steps:
            for use in accesses(name, reference, frame_traits.ref_lists):
                (array, number), halo_rows = use.key, use.halo_rows
                before = number == 0 and array in (*REFERENCE_ARRAYS, *PREVIOUS_FRAME_ARRAYS)
                writer = writers.get((array, CURRENT) if before else use.key)
                if not first and halo_rows is not None and writer and writer != name and number <= 0:
                    key = writer, name, max(halo_rows) > frame_traits.size.mb_height, before
                    fed_bytes[key] = fed_bytes.get(key, 0.0) + bytes_of(array, 1, 2, frame_traits.size)
                if use.writes:
                    writers[use.key] = name
            if name not in order:
                order.append(name)
    return order, [Feed(writer, reader, size, wide, before) for (writer, reader, wide, before), size in fed_bytes.items()]


class RowSplitLp:
    """One linear program: for one frame, devices, models, and one placement of stages that do not split."""

    def __init__(self, frame_traits: FrameTraits, devices: Sequence[str], models: Models, placement: Placement) -> None:
        self.frame_traits, self.devices, self.models = frame_traits, tuple(devices), models
        self.placement: Placement = {**dict.fromkeys(EXTENDED, REPEATED), **placement}
        self.height, self.count = frame_traits.size.mb_height, len(devices)
        self.order, self.feeds = feeds(frame_traits)
        self.times = Counter(name for names, _ in frame_traits.steps for name in names)
        self.split = [name for name in self.order if name in SPLITTING and name not in placement]
        self.columns: dict[tuple[str, str, int], int] = {}
        self.rows: list[tuple[dict[int, float], float]] = []  # (coefficients, upper limit of their sum)
        self.equal: list[tuple[dict[int, float], float]] = []

    def column(self, variable: str, stage: str = "", k: int = 0) -> int:
        return self.columns.setdefault((variable, stage, k), len(self.columns))

    def share(self, stage: str, k: int) -> tuple[dict[int, float], float]:
        """Rows of a stage on a device: (coefficients, constant)."""
        if stage in self.split:
            return {self.column("r", stage, k): 1.0}, 0.0
        device = self.placement.get(stage, REPEATED)
        return {}, float(self.height if device == REPEATED or device == k else 0)

    def at_most(self, terms: Iterable[tuple[float, tuple[dict[int, float], float]]], limit: float = 0.0) -> None:
        """Sum of factor * (coefficients, constant) <= limit."""
        total: dict[int, float] = {}
        for factor, (coefficients, constant) in terms:
            limit -= factor * constant
            for column, value in coefficients.items():
                total[column] = total.get(column, 0.0) + factor * value
        self.rows.append((total, limit))

    def end(self, stage: str, k: int) -> tuple[dict[int, float], float]:
        return {self.column("e", stage, k): 1.0}, 0.0

    @property
    def period(self) -> tuple[dict[int, float], float]:
        return {self.column("T"): 1.0}, 0.0

    def rate(self, source: str, target: str) -> tuple[float, float]:
        """(latency, seconds a byte) between the memories of two devices."""
        a, b = memory_of(source), memory_of(target)
        if a == b:
            return 0.0, 0.0
        short, long = (self.models.copy_seconds(a, b, size) for size in (1, 1e8))
        return short + self.models.meeting, (long - short) / 1e8

    def work(self, stage: str, k: int) -> list[tuple[float, tuple[dict[int, float], float]]]:
        """Seconds of a stage on a device."""
        share = self.share(stage, k)
        device, size = self.devices[k], self.frame_traits.size
        if not self.models.knows(stage, device) or share == ({}, 0.0):
            return []
        launch, each = self.models.line(stage, device, size.mb_width, size.mb_height)
        times = self.times[stage]
        return [(each * times, share), (1.0, ({}, launch * times))]

    def solve(self) -> dict[str, np.ndarray] | None:
        """{stage that splits: rows of each device}; None if the program has no solution."""
        from scipy.optimize import linprog  # takes a third of a second, spared by encodes on one device

        self._build()
        n = len(self.columns)
        cost = np.zeros(n)
        cost[self.column("T")] = 1.0
        moves = [column for (variable, _, _), column in self.columns.items() if variable == "m"]
        cost[moves] = 1e-9  # among equal solutions, the one that moves cuts least
        upper = [None if variable != "r" else self.height for variable, _, _ in self.columns]
        solution = linprog(
            cost, *_sparse(self.rows, n), *_sparse(self.equal, n), bounds=[(0, high) for high in upper], method="highs"
        )
        if solution.x is None:
            return None
        return {stage: solution.x[[self.column("r", stage, k) for k in range(self.count)]] for stage in self.split}

    def _build(self) -> None:
        ks = range(self.count)
        for stage in self.split:
            self.equal.append(({self.column("r", stage, k): 1.0 for k in ks}, float(self.height)))
            for k in ks:
                if not self.models.knows(stage, self.devices[k]):
                    self.at_most([(1.0, self.share(stage, k))])
        self._moves()
        for at, stage in enumerate(self.order):
            for k in ks:
                work = self.work(stage, k)
                previous = [(1.0, self.end(self.order[at - 1], k))]
                previous += [] if at else [(-1.0, self.period)]
                self.at_most([*previous, *work, *self._moved(stage, k), (-1.0, self.end(stage, k))])
                for feed in self.feeds:
                    if feed.reader == stage and work:
                        self._fed(feed, k, work)
        for k in ks:
            load = [term for stage in self.order for term in self.work(stage, k)]
            self.at_most([*load, (-1.0, self.period)])
        self._results()

    def _moves(self) -> None:
        """m[s, k] >= distance between the cuts after device k of a stage and of a stage whose rows it reads."""
        for feed in self.feeds:
            if feed.all_rows or feed.reader not in self.split or feed.writer not in self.split:
                continue
            for k in range(self.count - 1):
                move = ({self.column("m", f"{feed.writer}>{feed.reader}", k): 1.0}, 0.0)
                cut = [(1.0, self.share(feed.reader, j)) for j in range(k + 1)]
                cut += [(-1.0, self.share(feed.writer, j)) for j in range(k + 1)]
                self.at_most([*cut, (-1.0, move)])
                self.at_most([*((-factor, share) for factor, share in cut), (-1.0, move)])

    def _moved(self, stage: str, k: int) -> list[tuple[float, tuple[dict[int, float], float]]]:
        terms = []
        for feed in self.feeds:
            if feed.reader == stage and not feed.all_rows and stage in self.split and feed.writer in self.split:
                for cut in (k - 1, k):
                    if 0 <= cut < self.count - 1:
                        seconds = self.rate(self.devices[cut], self.devices[cut + 1])[1]
                        column = self.column("m", f"{feed.writer}>{stage}", cut)
                        terms.append((seconds * feed.bytes_a_row, ({column: 1.0}, 0.0)))
        return terms

    def _fed(self, feed: Feed, k: int, work: list[tuple[float, tuple[dict[int, float], float]]]) -> None:
        """Rows written by other devices must arrive before the stage starts."""
        both_split = feed.reader in self.split and feed.writer in self.split
        if self.placement.get(feed.writer) == REPEATED or (both_split and not feed.all_rows):
            return
        for j in range(self.count):
            written = self.share(feed.writer, j)
            if j == k or written == ({}, 0.0):
                continue
            latency, seconds = self.rate(self.devices[j], self.devices[k])
            rows = self.share(feed.reader, k) if feed.writer not in self.split and not feed.all_rows else written
            terms = [(1.0, self.end(feed.writer, j)), (seconds * feed.bytes_a_row, rows), (latency, ({}, 1.0)), *work]
            terms += [(-1.0, self.period)] if feed.before else []
            self.at_most([*terms, (-1.0, self.end(feed.reader, k))])

    def _results(self) -> None:
        """Results of a GPU are downloaded within a period."""
        size = self.frame_traits.size
        result_bytes = sum(bytes_of(name, 1, 2, size) for name in RESULTS)
        for k, device in enumerate(self.devices):
            if is_gpu(device) and "deblock" in self.split:
                seconds = self.rate(device, HOST)[1]
                self.at_most([(seconds * result_bytes, self.share("deblock", k)), (-1.0, self.period)])


def _sparse(rows: list[tuple[dict[int, float], float]], n: int) -> tuple[Any, np.ndarray | None]:
    from scipy.sparse import csr_array

    if not rows:
        return None, None
    data = [(value, at, column) for at, (row, _) in enumerate(rows) for column, value in row.items()]
    values, down, across = zip(*data)
    matrix = csr_array((values, (down, across)), shape=(len(rows), n))
    return matrix, np.array([limit for _, limit in rows])
