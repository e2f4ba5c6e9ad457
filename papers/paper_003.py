"""Paper 003: tables 1 to 3, and where 8 dB from textures come from."""

from functools import partial

import numpy as np

from . import published
from .kernels import scalar
from .kernels.memory import MEMORY, Search, predicted, psnr
from .setting import Clip, Product, Setting, wall
from .table import PRINT, Table

CLIPS = ("foreman_176x144_30", "foreman_352x288_30", "crowd_run_1280x720_50", "driving_1920x1080_30")
WIDTHS = (176, 352, 1280, 1920)  # of published.SIZES
REACH = 16


class Measured:
    """All variants on two pictures of one clip: milliseconds, vectors, PSNR of the predicted picture."""

    def __init__(self, setting: Setting, clip: Clip) -> None:
        self.clip, (self.reference, self.current) = clip, clip.frames[:2]
        self.ms: dict[str, float] = {}
        self.vectors: dict[str, np.ndarray] = {}
        self.plain(16, 16, True)  # compiles
        self.cpu_ms = 1000 * wall(lambda: self.plain(16, 16, True), 3)
        for name, inside in (("cpu", True), ("cpu, edges repeated", False)):
            self.vectors[name] = self.plain(16, 16, inside)
        for name, variant in MEMORY.items():
            if not setting.gpu:
                break
            search = Search(setting.gpu, variant, clip.shape, REACH)
            staged = search.stage(self.current), search.stage(self.reference)
            search.run(*staged)
            self.ms[name] = 1000 * wall(partial(search.run, *staged), 3 * setting.repeats)
            self.vectors[name] = search.vectors(search.run(*staged))[0]
            search.close()
        product = Product([self.reference, self.current], REACH)
        self.product_ms = 1000 * (product.clip_on_gpu(setting.gpu)[0] if setting.gpu else product.clip_on_cpu()[0])

    def plain(self, wide: int, high: int, inside: bool) -> np.ndarray:
        """Vectors int16[k, 2] of the plain loops, for blocks of wide x high."""
        height, width = self.clip.shape
        count = -(-width // wide) * -(-height // high)
        vectors, sads = np.zeros((count, 2), np.int16), np.zeros(count, np.int32)
        scalar.full(self.current, self.reference, wide, high, REACH, inside, np.arange(count), vectors, sads)
        return vectors

    def psnr(self, vectors: np.ndarray, wide: int = 16, high: int = 16) -> float:
        """dB of the picture that vectors predict."""
        return psnr(self.current, predicted(self.reference, vectors, wide, high))

    def gain(self, name: str) -> float | None:
        """dB of a variant over the plain loops inside the picture."""
        return self.psnr(self.vectors[name]) - self.psnr(self.vectors["cpu"]) if name in self.vectors else None

    def speed_up(self, name: str) -> float | None:
        """Of a variant, copies included, over the plain loops on one core."""
        return self.cpu_ms / self.ms[name] if name in self.ms else None

    @property
    def size(self) -> str:
        """WxH."""
        return f"{self.clip.shape[1]}x{self.clip.shape[0]}"


def run(setting: Setting) -> list[Table]:
    """Tables 1 to 3 and the explanation."""
    measured = [Measured(setting, clip) for clip in setting.clips(*CLIPS, frames=2)]
    order = [WIDTHS.index(m.clip.shape[1]) if m.clip.shape[1] in WIDTHS else None for m in measured]
    return [
        _speed_table("1", "local memory versus shared memory", published.TABLE_1, ("local", "shared"), measured, order),
        _speed_table("2", "global memory versus texture memory", published.TABLE_2, ("shared", "texture"), measured, order),
        _pinned_table(measured, order),
        _explanation(setting, measured, order),
    ]


def _speed_table(
    number: str, title: str, printed: dict, names: tuple[str, str], measured: list[Measured], order: list
) -> Table:
    columns, rows = ["size"], []
    for name in names:
        columns += [f"{PRINT}{name}, speed-up", f"{PRINT}{name}, dB"]
    columns += ["plain loops, ms"]
    for name in names:
        columns += [f"{name}, ms", f"{name}, speed-up", f"{name}, dB"]
    columns += ["h264lite, ms", "h264lite is faster by"]
    for m, k in zip(measured, order):
        row: list = [m.size]
        for name in names:
            row += printed[name][k] if k is not None else (None, None)
        row += [m.cpu_ms]
        for name in names:
            row += [m.ms.get(name), m.speed_up(name), m.gain(name)]
        rows.append([*row, m.product_ms, m.ms[names[1]] / m.product_ms if m.ms else m.cpu_ms / m.product_ms])
    bars = [c for c in columns if c.endswith("speed-up")]
    return Table(f"003-{number}", f"Table {number}: {title}", columns, rows, bars)


def _pinned_table(measured: list[Measured], order: list) -> Table:
    columns = ["size", *(f"{PRINT}{n}, {what}" for n in ("pageable", "pinned") for what in ("ms", "speed-up")),
               "pageable, ms", "pageable, speed-up", "pinned, ms", "pinned, speed-up", "h264lite is faster by"]  # fmt: skip
    rows: list[list] = []
    for m, k in zip(measured, order):
        row: list = [m.size]
        for name in ("shared", "pinned"):
            row += published.TABLE_3[name][k] if k is not None else (None, None)
        for name in ("shared", "pinned"):
            row += [m.ms.get(name), m.speed_up(name)]
        rows.append([*row, m.ms["pinned"] / m.product_ms if m.ms else None])
    return Table(
        "003-3",
        "Table 3: pageable memory versus pinned memory",
        columns,
        rows,
        [c for c in columns if c.endswith("speed-up")],
    )


def crossing(m: Measured) -> np.ndarray:
    """bool[n_mb]: macroblocks whose window leaves the picture."""
    height, width = m.clip.shape
    y, x = np.mgrid[0:height:16, 0:width:16]
    return ((x < REACH) | (y < REACH) | (x + 15 + REACH > width) | (y + 15 + REACH > height)).ravel()


def _explanation(setting: Setting, measured: list[Measured], order: list) -> Table:
    """Differences of PSNR between searches that `texture` and `global` may hide, and one between memories."""
    columns = ["what one search does and the other does not, dB", *(m.size for m in measured)]
    inside = [m.psnr(m.vectors["cpu"]) for m in measured]
    printed = [published.TABLE_2["texture"][k][1] if k is not None else None for k in order]
    rows: list[list] = [["in print: texture beside global", *printed]]
    if setting.gpu:
        rows.append(
            [
                "texture for global memory, the same candidates",
                *(m.psnr(m.vectors["texture"]) - m.psnr(m.vectors["shared-repeat"]) for m in measured),
            ]
        )
        rows.append(
            [
                "vectors that differ then",
                *(int((m.vectors["texture"] != m.vectors["shared-repeat"]).any(1).sum()) for m in measured),
            ]
        )
    rows.append(
        [
            "candidates outside the picture, which clamping gives",
            *(m.psnr(m.vectors["cpu, edges repeated"]) - base for m, base in zip(measured, inside)),
        ]
    )
    quarters, strips, columns_of_16, zero, border = [], [], [], [], []
    for m, base in zip(measured, inside):
        unsearched = m.vectors["cpu"].copy()
        unsearched[crossing(m)] = 0
        border.append(m.psnr(m.vectors["cpu, edges repeated"]) - m.psnr(unsearched))
        strips.append(m.psnr(m.plain(16, 4, True), 16, 4) - base)
        columns_of_16.append(m.psnr(m.plain(1, 16, True), 1, 16) - base)
        quarters.append(m.psnr(m.plain(4, 4, True), 4, 4) - base)
        zero.append(base - m.psnr(np.zeros_like(unsearched)))
    rows += [
        ["and the other leaves macroblocks at the border unsearched", *border],
        ["a vector for each CUDA block of the printed grid [W/16, (H+3)/4]: 16x4 samples", *strips],
        ["a vector for each thread's column: 1x16 samples", *columns_of_16],
        ["a vector for each 4x4 samples", *quarters],
        ["a search at all, beside none (vectors of zero)", *zero],
    ]
    return Table("003-why", "Where the 8 dB come from", columns, rows)
