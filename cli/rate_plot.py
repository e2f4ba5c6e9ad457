"""`--rate-png`: bits and QP of each frame over time, by frame type. Needs matplotlib."""

import importlib.util
import io
from fractions import Fraction
from typing import NamedTuple

from ..encoder.errors import OptionError
from ..encoder.statistics import FrameRow

WIDTH, HEIGHT = 12.0, 6.0  # inches
COLOURS = {"I": "tab:red", "P": "tab:blue", "B": "tab:green"}


class Point(NamedTuple):
    """What is drawn of a frame."""

    frame: int
    type: str
    bits: int
    qp: float
    qp_range: tuple[int, int]


class RatePlot:
    """Collects frames in any order and draws them."""

    def __init__(self) -> None:
        """OptionError if matplotlib is missing."""
        if importlib.util.find_spec("matplotlib") is None:
            raise OptionError("needs matplotlib, which is not installed: pip install 'h264lite[plot]', or --csv FILE for the "
                              "numbers", "rate-png")  # fmt: skip
        self.points: list[Point] = []

    def add(self, row: FrameRow) -> None:
        """A finished frame."""
        self.points.append(Point(row.frame, row.type, 8 * row.bytes, row.qp, row.qp_range))

    def draw(self, fps: Fraction, title: str = "") -> bytes:
        """The contents of a PNG file: bits above, QPs below, with the range within each frame; both over seconds."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        FigureCanvasAgg(figure)
        bits, qps = figure.subplots(2, sharex=True)
        shown = sorted(self.points)
        for kind, colour in COLOURS.items():
            some = [point for point in shown if point.type == kind]
            times = [float(point.frame / fps) for point in some]
            label = f"{kind}: {len(some)}"
            bits.bar(times, [point.bits / 1000 for point in some], float(1 / fps), color=colour, label=label)
            qps.vlines(times, *([point.qp_range[end] for point in some] for end in (0, 1)), color=colour, alpha=0.25)
            qps.plot(times, [point.qp for point in some], ".", color=colour, markersize=4, label=label)
        bits.set_ylabel("kbit a frame")
        qps.set_ylabel("QP: mean, least to most")
        qps.set_xlabel("seconds")
        for axes in (bits, qps):
            axes.grid(alpha=0.3)
            axes.set_axisbelow(True)
        bits.legend(loc="upper right", fontsize=8)
        if title:
            bits.set_title(title, fontsize=9)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=110)
        return file.getvalue()
