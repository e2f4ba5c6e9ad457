"""`--trace-png`: the timeline of a few frames as a Gantt chart, one row for each stream and thread. Needs matplotlib."""

from typing import Any

from ...scheduler.trace import GPU, Trace
from .chart import contents, new_figure

FRAMES = 4  # frames in the chart, from the middle of the encode, where frames are alike
WIDTH, ROW = 16.0, 0.34  # inches
LEAST_LABEL = 0.035  # of the chart's width: narrower spans get no label


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
    begin, end = window(trace)
    spans = [span for span in trace.spans if span[3] < end and span[3] + span[4] > begin]
    tracks = sorted({(process, track) for process, track, *_ in spans}, key=lambda key: (key[0] != GPU, key))
    colours = _colours(sorted({name for _, _, name, *_ in spans}))
    figure = new_figure(WIDTH, 1.2 + ROW * max(1, len(tracks)))
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
    return contents(figure)


def _colours(names: list[str]) -> dict[str, Any]:
    """A colour for each name; charts with the same names have the same colours."""
    from matplotlib import colormaps

    ring = colormaps["tab20"]
    return {name: ring(k % 20) for k, name in enumerate(names)}
