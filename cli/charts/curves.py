"""`h264lite plot rd` and `plot presets`: rate against quality, and speed against bits at equal quality."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .chart import COLOURS, contents, new_figure

LEAST_POINTS = 4  # of a curve, for a BD-rate by PCHIP


class RatePoint(NamedTuple):
    """An encode."""

    kbps: float
    quality: float  # dB


def bd_rates(curves: Mapping[str, Sequence[RatePoint]]) -> dict[str, float]:
    """Bits beside the first curve at equal quality in percent, by name (PCHIP); of curves with LEAST_POINTS that overlap it.

    Empty without the package bjontegaard.
    """
    if importlib.util.find_spec("bjontegaard") is None:
        return {}
    from bjontegaard import bd_rate

    lines = {name: sorted(points) for name, points in curves.items() if len(set(points)) >= LEAST_POINTS}
    first = next(iter(curves))
    if first not in lines:
        return {}
    differences, base = {}, [*zip(*lines.pop(first))]
    for name, line in lines.items():
        rates, qualities = zip(*line)
        if max(qualities) > min(base[1]) and min(qualities) < max(base[1]):
            differences[name] = float(bd_rate(*base, rates, qualities, method="pchip", min_overlap=0))
    return differences


def draw_rd(curves: Mapping[str, Sequence[RatePoint]], quality: str, title: str = "", file_format: str = "png") -> bytes:
    """The contents of a file: a curve of rate and quality for each name, with BD-rates beside the first one.

    quality: what it is, for the axis.
    """
    figure, bd_rate_of = new_figure(7.2, 4.6), bd_rates(curves)
    axes = figure.subplots()
    for k, (name, points) in enumerate(curves.items()):
        label = f"{name} ({bd_rate_of[name]:+.1f} %)" if name in bd_rate_of else name
        axes.plot(*zip(*sorted(points)), "o-", color=COLOURS[k % len(COLOURS)], markersize=4, label=label)
    axes.set(xscale="log", xlabel="kbit/s", ylabel=quality, title=title)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="x", which="both", labelsize=8)
    axes.grid(which="both", alpha=0.3)
    axes.legend(fontsize=8, title="bits at equal quality" if bd_rate_of else None, title_fontsize=8)
    return contents(figure, file_format, 120)


def draw_presets(
    diagrams: Sequence[tuple[str, Mapping[str, tuple[float, float]]]], title: str = "", file_format: str = "png"
) -> bytes:
    """The contents of a file: diagrams, two beside each other, each with a curve of presets for each encoder.

    diagrams: label, and rows: speed and BD-rate in percent, both beside the base, by "ENCODER PRESET"; presets in the order
    of the curve.
    """
    columns = min(2, len(diagrams))
    lines = -(-len(diagrams) // columns)
    figure = new_figure(7.2 * columns, 4.2 * lines)
    figure.suptitle(title or None)
    for axes, (label, rows) in zip(figure.subplots(lines, columns, squeeze=False).flat, diagrams):
        _draw_curves(axes, rows)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="speed, x264 with Baseline's tools and full search = 1",
            ylabel="bits at equal PSNR, %",
            title=label,
        )
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.grid(alpha=0.3, which="both")
        axes.legend()
    return contents(figure, file_format, 120)


def _draw_curves(axes: Any, rows: Mapping[str, tuple[float, float]]) -> None:
    encoders: dict[str, list[str]] = {}  # presets
    for encoder, _, preset in (name.partition(" ") for name in rows):
        if preset.isalpha():  # other rows are presets with another option, and the base
            encoders.setdefault(encoder, []).append(preset)
    for k, (encoder, presets) in enumerate(encoders.items()):
        colour = COLOURS[k] if encoder == "h264lite" else "gray"
        points = [(speed, 100 + percent) for speed, percent in (rows[f"{encoder} {preset}"] for preset in presets)]
        axes.plot(*zip(*points), "o-", color=colour, markersize=4, label=encoder)
        offset, side = ((-4, -9), "right") if encoder == "h264lite" else ((4, 4), "left")
        for preset, point in zip(presets, points):
            axes.annotate(preset, point, offset, textcoords="offset points", fontsize=7, color=colour, ha=side)
