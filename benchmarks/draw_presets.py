"""Draws docs/presets.png from benchmarks/results/presets.csv: speed of the presets against bits at equal quality.

python -m h264lite.benchmarks.draw_presets [CSV] [PNG]; needs matplotlib
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from h264lite.benchmarks.clips import require
from h264lite.benchmarks.preset_speeds import RESULTS, read_rows

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "presets.png"
CURVES = {  # by encoder and device: label, colour, marker, 1 where names stand below, -1 where above
    ("h264lite", "cuda"): ("h264lite, one H100", "#1b7837", "s", 1),
    ("h264lite", "cpu"): ("h264lite, 16 cores", "#2166ac", "o", 1),
    ("x264", "cpu"): ("x264, the same 16 cores", "#777777", "^", -1),
}
# Where the name of a preset below a curve may stand, in points from its marker: the first that covers nothing is taken
PLACES = [(x * far, y * far) for x, y in ((1, -1), (0.4, -1.2), (1, -0.3), (-1, 1), (1, 1), (-1, 0.3), (-1, -0.6))
          for far in (8, 14, 22, 30)]  # fmt: skip


def draw(rows: list[dict[str, str]], target: Path) -> None:
    """A curve for each encoder and device."""
    require("matplotlib").use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    figure, axes = pyplot.subplots(figsize=(8.6, 4.8), dpi=120)
    named, covered = [], []
    for key, (label, colour, marker, side) in CURVES.items():
        points = [
            (float(row["fps"]), 100 + float(row["bits_percent"]), row["preset"])
            for row in rows
            if (row["encoder"], row["device"]) == key and row["fps"]
        ]
        if points:
            speeds, bits, _ = zip(*points)
            covered.append(axes.plot(speeds, bits, color=colour, marker=marker, markersize=5, label=label)[0])
            named += [(point, colour, side) for point in points]
    axes.set(xscale="log", yscale="log", title=f"Right is faster, down is smaller ({rows[0]['clip']})")
    axes.set_xlabel("frames per second")
    axes.set_ylabel("bits at equal PSNR; x264 with\nBaseline's tools = 100 %")
    ticks = (20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000), (60, 70, 80, 90, 100, 120, 150, 200, 250)
    for axis, marks in zip((axes.xaxis, axes.yaxis), ticks):
        axis.set_major_locator(FixedLocator(marks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.margins(0.08, 0.14)
    axes.grid(alpha=0.3)
    legend = axes.legend(loc="upper left")
    figure.canvas.draw()
    taken = [legend.get_window_extent()]
    dots = np.concatenate([_along(axes.transData.transform(curve.get_xydata())) for curve in covered])
    for (x, y, name), colour, side in named:
        offsets = [(side * right, side * up) for right, up in PLACES]
        taken.append(_place(axes, (x, y), name, colour, offsets, taken, dots))
    figure.savefig(target, bbox_inches="tight", metadata={"Software": None})


def _along(corners: np.ndarray) -> np.ndarray:
    """Points of a line every few dots. corners: float[n, 2]."""
    lines = [np.linspace(a, b, 2 + int(np.hypot(*(b - a)) / 3)) for a, b in zip(corners, corners[1:])]
    return np.concatenate(lines)


def _place(
    axes: Any, point: tuple[float, float], name: str, colour: str, offsets: list[tuple[float, float]], taken: list[Any],
    dots: np.ndarray,
) -> Any:  # fmt: skip
    """Writes the name of a preset where it covers no other name and no curve; its box."""
    from matplotlib.text import Text

    renderer = axes.figure.canvas.get_renderer()
    for x, y in offsets:
        text = axes.annotate(
            name,
            point,
            (x, y),
            textcoords="offset points",
            color=colour,
            fontsize=8,
            ha="left" if x >= 0 else "right",
            va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 0, "shrinkB": 2},
        )
        text.update_positions(renderer)
        box = Text.get_window_extent(text, renderer).padded(2)
        inside = (dots > (box.x0, box.y0)).all(1) & (dots < (box.x1, box.y1)).all(1)
        frame = axes.get_window_extent()
        fits = frame.x0 < box.x0 and box.x1 < frame.x1 and frame.y0 < box.y0 and box.y1 < frame.y1
        if fits and not inside.any() and not any(box.overlaps(other) for other in taken):
            return box
        text.remove()
    raise SystemExit(f"no room for {name}")


if __name__ == "__main__":
    words = [Path(word) for word in sys.argv[1:]]
    draw(read_rows(words[0] if words else RESULTS), words[1] if words[1:] else PICTURE)
