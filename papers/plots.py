"""A figure a paper, as PNG: bars of its tables' columns, timelines of paper 001; needs matplotlib (the extra `plot`)."""

from pathlib import Path
from typing import Any

from .setting import Setting
from .table import PRINT, Table, number

COLOURS = {"upload": "#4878a8", "kernel": "#d8a03c", "download": "#6a9f58"}


def draw(setting: Setting, tables: list[Table], folder: Path) -> list[Path]:
    """papers-000.png, ... of the tables that have something to show."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for paper in sorted({table.name[:3] for table in tables if table.bars}):
        shown = [table for table in tables if table.bars and table.name.startswith(paper)]
        spans = list(setting.timelines.items()) if paper == "001" else []
        heights = [0.6 + 0.14 * len(t.rows) * (len(t.bars) + 1) for t in shown] + [0.9] * len(spans)
        figure, grid = pyplot.subplots(
            len(heights), 1, figsize=(7, sum(heights) + 0.4 * len(heights)), squeeze=False, height_ratios=heights
        )
        for axes, table in zip(grid[:, 0], shown):
            _bars(axes, table)
        for axes, (title, timeline) in zip(grid[len(shown) :, 0], spans):
            _timeline(axes, title, timeline)
        if spans:
            grid[len(shown), 0].legend(fontsize=5, loc="upper right")
        path = folder / f"papers-{paper}.png"
        figure.tight_layout()
        figure.savefig(path, dpi=80)
        pyplot.close(figure)
        drawn.append(path)
    return drawn


def _bars(axes: Any, table: Table) -> None:
    labels = [str(row[0]) for row in table.rows]
    height = 0.8 / len(table.bars)
    most = 0.0
    for k, head in enumerate(table.bars):
        values = [max(0.0, number(v) or 0.0) for v in table.column(head)]
        most = max(most, *values)
        printed = head.startswith(PRINT)
        name = ("in print: " if printed else "measured: ") + head.removeprefix(PRINT)
        axes.barh(
            [n + k * height for n in range(len(labels))],
            values,
            height,
            label=name,
            hatch="////" if printed else None,
            fill=not printed,
            edgecolor=f"C{k}" if printed else None,
            linewidth=0.5,
        )
    axes.set_yticks([n + 0.4 - height / 2 for n in range(len(labels))], labels, fontsize=6)
    axes.invert_yaxis()
    if most:
        axes.set_xscale("log")
    axes.tick_params(axis="x", which="both", labelsize=6)
    axes.set_title(table.title, fontsize=8)
    axes.legend(fontsize=5)


def _timeline(axes: Any, title: str, spans: list[tuple[str, str, float, float]]) -> None:
    tracks = sorted({span[0] for span in spans})
    for name, colour in COLOURS.items():
        for track in tracks:
            bars = [(1000 * a, 1000 * (b - a)) for t, n, a, b in spans if t == track and n == name]
            label = name if track == tracks[0] else None
            axes.broken_barh(bars, (tracks.index(track) + 0.1, 0.8), color=colour, label=label)
    axes.set_yticks([k + 0.5 for k in range(len(tracks))], tracks, fontsize=5)
    axes.tick_params(axis="x", labelsize=6)
    axes.set_title(f"{title}, ms", fontsize=6, pad=2)
