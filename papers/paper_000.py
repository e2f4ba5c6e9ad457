"""Papers 000 and 002: tables I to V, full search and step search of 32x32 blocks."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import published
from .kernels import fsbm, scalar
from .setting import Clip, Product, Setting, sampled
from .table import PRINT, About, Table

VIDEO_1, LARGE = "BasketballPass_416x240_50", "driving_1920x1080_30"
PAIRS = {VIDEO_1: 3, LARGE: 1}
DISTANCE = {3: 32, 7: 16, 13: 8}

RowsByVariant = dict[str, tuple[float | About, int | None, str]]  # seconds, residue, whether all is as defined


class Measured:
    """All variants on one clip: `rows` by variant; `cpu` and `cpu-step` are the plain loops."""

    def __init__(self, setting: Setting, clip: Clip) -> None:
        self.setting, self.clip, self.rows = setting, clip, RowsByVariant()
        self.defined: dict[tuple[int, bool], np.ndarray] = {}  # SADs by grid (0: full search), inside
        height, width = clip.shape
        blocks = list(range(-(-width // 32) * -(-height // 32)))
        reach, across = setting.reach, -(-width // 32)
        inner = [
            b
            for b in blocks
            if reach <= b % across * 32 <= width - 31 - reach and reach <= b // across * 32 <= height - 31 - reach
        ]
        self.blocks, self.strata = blocks, [inner, [b for b in blocks if b not in set(inner)]]
        self._plain("cpu", 0)
        self._plain("cpu-step", 3)
        for name, variant in {**fsbm.FSBM, **fsbm.STEP}.items():
            if setting.gpu:
                self._variant(name, variant)
        product = Product(clip.frames, reach)
        self.product: dict[str, tuple[float, int]] = {"cpu": product.clip_on_cpu()}
        for grid in (3, 7, 13):
            self.product[f"step {grid}"] = Product(clip.frames, 64).clip_on_cpu(grid)
        if setting.gpu:
            self.product["gpu"] = product.clip_on_gpu(setting.gpu)

    def _search(self, blocks: list[int], grid: int, inside: bool) -> np.ndarray:
        """SADs int32[pairs, blocks] of the plain loops."""
        frames, wanted = self.clip.frames, np.array(blocks)
        sads, vectors = np.zeros((len(frames) - 1, len(blocks)), np.int32), np.zeros((len(blocks), 2), np.int16)
        for n in range(1, len(frames)):
            if grid:
                where = (frames[n], frames[n - 1], 32, DISTANCE[grid], fsbm.SHIFT[grid], grid, inside, wanted)
                scalar.step(*where, vectors, sads[n - 1])
            else:
                scalar.full(frames[n], frames[n - 1], 32, 32, self.setting.reach, inside, wanted, vectors, sads[n - 1])
        return sads

    def _plain(self, name: str, grid: int) -> None:
        self._search([0], grid, False)  # compiles
        seconds, whole = sampled(lambda blocks: self._search(blocks, grid, False), self.strata, self.setting.budget)
        self.rows[name] = seconds if whole else About(seconds), None, "defines"
        if seconds > 2 * self.setting.budget * (os.cpu_count() or 1):
            return
        for which in ((grid, False), (grid, True), *(((7, True), (13, True)) if grid else ())):
            self.defined[which] = self._search_all(*which)
        self.rows[name] = self.rows[name][0], int(self.defined[grid, False].sum()), "defines"

    def _search_all(self, grid: int, inside: bool) -> np.ndarray:
        """The same of all blocks, on all cores: what the variants must find."""
        with ThreadPoolExecutor() as pool:
            sads = pool.map(lambda b: self._search([b], grid, inside), self.blocks)
            return np.concatenate(list(sads), 1)

    def _variant(self, name: str, variant: fsbm.Variant) -> None:
        ladder = fsbm.Ladder(
            self.setting.gpu,
            variant,
            self.clip.frames,  # type: ignore[arg-type]
            64 if variant.grid else self.setting.reach,
        )
        seen: dict[int, np.ndarray] = {}

        def run(blocks: list[int]) -> None:
            seen.update(zip(blocks, ladder.run(blocks=blocks)[1].T))

        ladder.run(1, [] if variant.search in fsbm.SLOW else [0])  # compiles
        seconds, whole = sampled(run, self.strata, self.setting.budget)
        key = variant.grid, variant.borders == "leave out"
        equal = "-"
        if key in self.defined:
            wanted = self.defined[key].T
            right = sum(bool(np.array_equal(sads, wanted[b])) for b, sads in seen.items())
            equal = f"{right} of {len(seen)}"
        residue = int(sum(s.sum() for s in seen.values())) if whole else None
        self.rows[name] = seconds if whole else About(seconds), residue, equal

    def seconds(self, name: str) -> float | None:
        """Of a variant, whole or scaled."""
        if name not in self.rows:
            return None
        value = self.rows[name][0]
        return value.value if isinstance(value, About) else value

    def speed_up(self, name: str, base: str) -> float | None:
        """Of a variant beside the plain loops."""
        seconds, plain = self.seconds(name), self.seconds(base)
        return plain / seconds if seconds and plain else None

    def cell(self, name: str, k: int) -> object:
        """Seconds (0), residue (1), agreement (2), or nothing."""
        return self.rows[name][k] if name in self.rows else None


def titles(names: list[str]) -> list[tuple[str, str]]:
    table = {"cpu": "CPU", **{n: v.title for n, v in {**fsbm.FSBM, **fsbm.STEP}.items()}}
    return [(name, table[name]) for name in names]


def run(setting: Setting) -> list[Table]:
    """Tables I to V."""
    measured = []
    for name, pairs in PAIRS.items():
        measured += [Measured(setting, clip) for clip in setting.clips(name, frames=pairs + 1)]
        if setting.clip:
            break
    return [_table_i(measured[0]), _table_ii(measured), _table_iii(measured), _table_iv(measured), _table_v(measured)]


def _own(m: Measured, name: str, key: str) -> float | None:
    """How much faster the product's kernel is than a variant."""
    own, seconds = m.product.get(key), m.seconds(name)
    return seconds / own[0] if own and seconds else None


def _label(m: Measured) -> str:
    return f"{m.clip.name.split('_')[0]} {m.clip.shape[1]}x{m.clip.shape[0]}"


def _table_i(m: Measured) -> Table:
    pairs = len(m.clip.frames) - 1
    columns = ["variant", PRINT + "video 1, s", PRINT + "speed-up", f"{_label(m)}, {pairs} pictures, s", "speed-up",
               "blocks as defined", "h264lite is faster by"]  # fmt: skip
    rows = []
    for name, title in titles(list(published.TABLE_I)):
        seconds, gain = published.TABLE_I[name]
        rows.append([title, seconds, gain, m.cell(name, 0), m.speed_up(name, "cpu"), m.cell(name, 2), _own(m, name, "gpu")])
    return Table("000-I", "Table I: first solutions' execution time", columns, rows, [columns[1], columns[3]])


def _table_ii(ms: list[Measured]) -> Table:
    columns = ["variant", PRINT + "video 1, s", PRINT + "video 2, s", PRINT + "video 3, s", PRINT + "speed-up"]
    for m in ms:
        columns += [f"{_label(m)}, s", f"speed-up, {m.clip.shape[1]} wide"]
    columns += ["h264lite is faster by"]
    rows = []
    names = ["cpu", "parallel-fsbm", "streams-sad-2", "streams-sad", "all-on-gpu", "streams-result-2", "streams-result",
             "pinned", "threads-in-z"]  # fmt: skip
    for name, title in titles(names):
        row: list = [title, *published.TABLE_II.get(name, (None,) * 4)]
        for m in ms:
            row += [m.cell(name, 0), m.speed_up(name, "cpu")]
        rows.append([*row, _own(ms[-1], name, "gpu")])
    for key, title in (("gpu", "h264lite on the GPU, 16x16, 41 partitions"), ("cpu", "h264lite on the CPU, one thread")):
        row = [title, None, None, None, None]
        for m in ms:
            seconds = m.product.get(key, (None, 0))[0]
            base = m.seconds("cpu")
            row += [seconds, base / seconds if seconds and base else None]
        rows.append([*row, None])
    return Table("000-II", "Table II: better solutions' execution time", columns, rows, [columns[4], columns[-2]])


def _table_iii(ms: list[Measured]) -> Table:
    columns = ["variant", PRINT + "video 1, s", PRINT + "video 2, s", PRINT + "video 3, s", PRINT + "speed-up"]
    for m in ms:
        columns += [f"{_label(m)}, s", f"speed-up, {m.clip.shape[1]} wide"]
    columns += ["h264lite on one core is faster by"]
    rows = []
    for name, title in titles(["cpu", *fsbm.STEP]):
        own = "cpu-step" if name == "cpu" else name
        grid = fsbm.STEP[name].grid if name in fsbm.STEP else 3
        row: list = [title, *published.TABLE_III.get(name, (None,) * 4)]
        for m in ms:
            row += [m.cell(own, 0), m.speed_up(own, "cpu-step")]
        rows.append([*row, _own(ms[-1], own, f"step {grid}")])
    return Table("000-III", "Table III: step search solutions' execution time", columns, rows, [columns[4], columns[-2]])


def _loss(m: Measured, name: str, base: str) -> float | None:
    own, plain = m.cell(name, 1), m.cell(base, 1)
    return own / plain if isinstance(own, int) and isinstance(plain, int) and plain else None


def _table_iv(ms: list[Measured]) -> Table:
    columns = ["variant", PRINT + "video 1", PRINT + "video 2", PRINT + "video 3", PRINT + "loss"]
    for m in ms:
        columns += [f"{_label(m)}", f"loss, {m.clip.shape[1]} wide"]
    columns += ["blocks as defined", "residue of h264lite, 16x16"]
    rows = []
    for name, title in titles(["cpu", *fsbm.STEP]):
        own = "cpu-step" if name == "cpu" else name
        row: list = [title, *published.TABLE_IV.get(name, (None,) * 4)]
        for m in ms:
            row += [m.cell(own, 1), _loss(m, own, "cpu-step") if name != "cpu" else None]
        grid = fsbm.STEP[name].grid if name in fsbm.STEP else 3
        rows.append([*row, ms[0].cell(own, 2), ms[0].product[f"step {grid}"][1]])
    return Table("000-IV", "Table IV: step search solutions' residue", columns, rows, [columns[4], columns[6]])


def _table_v(ms: list[Measured]) -> Table:
    columns = ["video and algorithm", PRINT + "loss", PRINT + "speed-up", PRINT + "normalised gain", "residue, CPU",
               "residue, GPU", "loss", "speed-up", "normalised gain", "h264lite is faster by"]  # fmt: skip
    rows: list[list] = []
    for name, short in (("threads-in-z", "FSBM"), ("step-13-z", "SS")):
        base = "cpu" if short == "FSBM" else "cpu-step"
        rows += [[f"video {k + 1} {short}", *triple, *([None] * 6)] for k, triple in enumerate(published.TABLE_V[name])]
        for m in ms:
            loss, gain = _loss(m, name, base), m.speed_up(name, base)
            rows.append(
                [
                    f"{_label(m)} {short}",
                    None,
                    None,
                    None,
                    m.cell(base, 1),
                    m.cell(name, 1),
                    loss,
                    gain,
                    gain / loss if gain and loss else None,
                    _own(m, name, "gpu" if short == "FSBM" else "step 13"),
                ]
            )
    return Table("000-V", "Table V: final results", columns, rows)
