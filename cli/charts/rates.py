"""`--rate-png` and `h264lite plot rate`: bits, QPs and the promised buffer of each frame over time."""

from fractions import Fraction
from typing import Any, NamedTuple

from ...encoder.statistics import FrameRow
from .chart import OF_TYPES, check_matplotlib, contents, new_figure

WIDTH, HEIGHT = 12.0, 2.8  # inches, of each part


class Point(NamedTuple):
    """What is drawn of a frame."""

    frame: int  # in display order
    type: str
    bits: int
    qp: float
    qp_range: tuple[int, int]
    predicted: int = 0  # bits; 0: nothing predicts them
    buffer: tuple[int, int, int] | None = None  # coding index; bits left when the frame is taken out, and the size

    @classmethod
    def of(cls, row: FrameRow) -> "Point":
        """Of a finished frame."""
        buffer = None if row.in_buffer is None else (row.coded, row.in_buffer.left, row.in_buffer.size)
        return cls(row.frame, row.type, 8 * row.bytes, row.qp, row.qp_range, row.predicted, buffer)


class RatePlot:
    """Collects frames in any order and draws them."""

    def __init__(self) -> None:
        """OptionError if matplotlib is missing."""
        check_matplotlib("rate-png", "--csv FILE for the numbers")
        self.points: list[Point] = []

    def add(self, row: FrameRow) -> None:
        """A finished frame."""
        self.points.append(Point.of(row))

    def draw(self, fps: Fraction, title: str = "") -> bytes:
        """The contents of a PNG file, over seconds; see draw_rates."""
        return draw_rates(self.points, fps, title)


def draw_rates(points: list[Point], fps: Fraction | None, title: str = "", file_format: str = "png") -> bytes:
    """The contents of a file: bits with those predicted, QPs with the range within each frame, the buffer if one is promised.

    fps: None for an axis of frames in place of seconds.
    """
    shown = sorted(points)
    has_buffer = any(point.buffer for point in shown)
    figure = new_figure(WIDTH, HEIGHT * (2 + has_buffer))
    panels = list(figure.subplots(2 + has_buffer, sharex=True))
    bits, qps, *rest = panels
    width = float(1 / fps) if fps else 1.0
    for name, colour in OF_TYPES.items():
        some = [point for point in shown if point.type == name]
        times, label = [point.frame * width for point in some], f"{name}: {len(some)}"
        bits.bar(times, [point.bits / 1000 for point in some], width, color=colour, label=label)
        qps.vlines(times, *([point.qp_range[end] for point in some] for end in (0, 1)), color=colour, alpha=0.25)
        qps.plot(times, [point.qp for point in some], ".", color=colour, markersize=4, label=label)
    expected = [(point.frame * width, point.predicted / 1000) for point in shown if point.predicted]
    if expected:
        bits.plot(*zip(*expected), "_", color="black", markersize=5, label="predicted")
    for axes in rest:
        _draw_buffer(axes, width, sorted(point.buffer for point in shown if point.buffer))
    bits.set_ylabel("kbit a frame")
    qps.set_ylabel("QP: mean, least to most")
    for axes in panels:
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
    panels[-1].set_xlabel("seconds" if fps else "frame")
    bits.legend(loc="upper right", fontsize=8)
    if title:
        bits.set_title(title, fontsize=9)
    return contents(figure, file_format)


def _draw_buffer(axes: Any, width: float, levels: list[tuple[int, int, int]]) -> None:
    """levels: as in Point, in coding order, in which frames are taken out; width: of a frame."""
    order, left, sizes = zip(*levels)
    times = [number * width for number in order]
    axes.fill_between(times, [bits / 1000 for bits in left], step="mid", color=OF_TYPES["P"], alpha=0.3)
    axes.plot(times, [bits / 1000 for bits in left], drawstyle="steps-mid", color=OF_TYPES["P"])
    axes.axhline(max(sizes) / 1000, color="black", linewidth=0.8, linestyle="--", label="size")
    if min(left) < 0:
        axes.axhline(0, color="red", linewidth=0.8, label="underflow below")
    axes.set_ylabel("kbit left in the buffer")
    axes.legend(loc="lower right", fontsize=8)
