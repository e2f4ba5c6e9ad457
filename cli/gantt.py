"""`--trace-png`: the timeline of a few frames as a Gantt chart, one row for each stream and thread. Needs matplotlib."""

import importlib.util
import io
from typing import Any

from ..encoder.errors import OptionError
from ..scheduler.trace import GPU, Trace

FRAMES = 4  # frames in the chart, from the middle of the encode, where frames are alike
WIDTH, ROW = 16.0, 0.34  # inches
LEAST_LABEL = 0.035  # of the chart's width: narrower spans get no label


def check_matplotlib() -> None:
    """OptionError if matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise OptionError("needs matplotlib, which is not installed: pip install 'h264lite[plot]', or --trace FILE for "
                          "chrome://tracing", "trace-png")  # fmt: skip


def window(trace: Trace, frames: int = FRAMES) -> tuple[float, float]:
    """(begin, end) in seconds: `frames` frames in the middle, from the start of their loop; all if there are few."""
    starts = sorted({frame: begin for _, track, name, begin, _, frame in trace.spans
                     if frame >= 0 and name == "loop" and track.endswith("loop")}.values())  # fmt: skip
    if len(starts) > frames + 2:
        middle = (len(starts) - frames) // 2
        return starts[middle], starts[middle + frames]
    ends = [begin + seconds for _, _, _, begin, seconds, _ in trace.spans]
    return min((span[3] for span in trace.spans), default=0.0), max(ends, default=0.0)


def draw(trace: Trace, title: str = "") -> bytes:
    """The chart as a PNG file's contents."""
    check_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    begin, end = window(trace)
    spans = [span for span in trace.spans if span[3] < end and span[3] + span[4] > begin]
    tracks = sorted({(process, track) for process, track, *_ in spans}, key=lambda key: (key[0] != GPU, key))
    colours = _colours(sorted({name for _, _, name, *_ in spans}))
    figure = Figure(figsize=(WIDTH, 1.2 + ROW * max(1, len(tracks))), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    scale = 1e3 if end - begin < 10 else 1.0
    for process, track, name, start, seconds, _ in spans:
        row = tracks.index((process, track))
        left, right = max(start, begin), min(start + seconds, end)
        box = {"color": colours[name], "linewidth": 0.2, "edgecolor": "white"}
        axes.barh(row, scale * (right - left), 0.82, scale * (left - begin), **box)
        if right - left > LEAST_LABEL * (end - begin):
            axes.text(scale * ((left + right) / 2 - begin), row, name, ha="center", va="center", fontsize=6, clip_on=True)
    axes.set_yticks(range(len(tracks)), [f"{'GPU' if process == GPU else 'host'} {track}" for process, track in tracks])
    axes.set_ylim(max(1, len(tracks)) - 0.5, -0.5)
    axes.set_xlim(0, scale * (end - begin) or 1)
    axes.set_xlabel("milliseconds" if scale == 1e3 else "seconds")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, fontsize=9)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return file.getvalue()


def _colours(names: list[str]) -> dict[str, Any]:
    """A colour for each name; charts with the same names have the same colours."""
    from matplotlib import colormaps

    ring = colormaps["tab20"]
    return {name: ring(k % 20) for k, name in enumerate(names)}
