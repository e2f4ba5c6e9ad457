"""`h264lite plot`: charts of rate and quality, of presets and of rates over time, from the files of --json and --csv."""

import argparse
import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import PurePath

from ..console import print_line
from ..encoder.errors import InputError, OptionError
from ..encoder.files.output import ByteSink
from ..encoder.settings.option_types import read_fps
from ..files import error_text, small_file
from .charts.chart import FORMATS, check_matplotlib
from .charts.curves import RatePoint, bd_rates, draw_presets, draw_rd
from .charts.rates import Point, draw_rates

_LARGEST = 256 << 20  # bytes of a file that is read
QUALITIES = {"psnr": "PSNR of luma, mean of the frames, dB", "global": "PSNR of luma, all frames together, dB",
             "ssim": "SSIM of luma, -10 log10(1 - mean), dB"}  # fmt: skip


def run_plot(args: argparse.Namespace) -> int:
    """One of the three charts; `args.chart` says which."""
    check_matplotlib("")
    file_format = PurePath(args.out).suffix[1:].lower()
    if file_format not in FORMATS:
        raise OptionError(f"{args.out}: the name ends in none of {', '.join('.' + name for name in FORMATS)}", "out")
    args.title = _drawn(args.title)
    draw = {"rd": _rd, "presets": _presets, "rate": _rate}[args.chart]
    data = draw(args, file_format)
    sink = ByteSink(args.out)
    sink.write(data)
    sink.close()
    return 0


def _rd(args: argparse.Namespace, file_format: str) -> bytes:
    curves: dict[str, list[RatePoint]] = {}
    for argument in args.inputs:
        label, name = _labelled(argument)
        for own_label, point in _rd_points(name, args.by):
            curves.setdefault(_drawn(label or own_label), []).append(point)
    if not curves:
        raise InputError(f"{', '.join(args.inputs)}: no encodes")
    first, *_ = curves
    for name, percent in bd_rates(curves).items():
        said = f"{name}: {percent:+.2f} % bits beside {first} at equal {args.by} (BD-rate, PCHIP)"
        print_line(said.replace(r"\$", "$"))
    return draw_rd(curves, QUALITIES[args.by], args.title, file_format)


def _labelled(argument: str) -> tuple[str, str]:
    """Label, maybe empty, and name of a file."""
    label, equals, name = argument.partition("=")
    return (label, name) if equals else ("", argument)


def _drawn(text: str) -> str:
    """Text as it stands, for matplotlib: dollars begin no formula, and what is no character is replaced."""
    return text.encode(errors="replace").decode().replace("$", r"\$")


def _rd_points(name: str, by: str) -> Iterator[tuple[str, RatePoint]]:
    """(label, point) of each encode in a file: a summary of --json, or rows of CSV with the columns label, kbps and `by`."""
    text = _read(name)
    if not text.lstrip().startswith("{"):
        for row in _rows(name, text, ("label", "kbps", by)):
            yield row["label"], RatePoint(_number(name, row["kbps"]), _number(name, row[by]))
        return
    try:
        summary = json.loads(text)
        every, tune = summary["all"], summary.get("tune")
        label = f"{summary['preset']}, {tune}" if tune else str(summary["preset"])
        if by == "ssim":
            quality = -10 * math.log10(max(1e-10, 1 - float(every["ssim_mean_y"])))
        else:
            quality = float(every["psnr_global" if by == "global" else "psnr_mean"]["y"])
        point = RatePoint(float(summary["kbps"]), quality)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        lacking = f"has no {error}" if isinstance(error, KeyError) else "cannot be read"
        raise InputError(f"{name}: no summary of `h264lite encode --json` for this chart: {lacking}") from None
    if not (math.isfinite(point.quality) and 0 < point.kbps < math.inf):
        raise InputError(f"{name}: a rate or a quality that cannot be drawn")
    yield label, point


def _presets(args: argparse.Namespace, file_format: str) -> bytes:
    diagrams = []
    for given in args.inputs:
        label, name = _labelled(given)
        try:
            rows = {_drawn(row): _means(*values) for row, values in json.loads(_read(name)).items()}
        except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
            raise InputError(f"{name}: no file of `python -m h264lite.benchmarks.presets --json`") from None
        diagrams.append((_drawn(label), rows))
    return draw_presets(diagrams, args.title, file_format)


def _means(speeds: list[float], rates: list[float]) -> tuple[float, float]:
    """Over the clips: geometric mean of speeds, mean of BD-rates."""
    return math.exp(sum(map(math.log, speeds)) / len(speeds)), sum(rates) / len(rates)


def _rate(args: argparse.Namespace, file_format: str) -> bytes:
    (name,) = args.inputs
    try:
        fps = None if args.fps is None else read_fps(args.fps)
    except ValueError as error:
        raise OptionError(f"{args.fps}: {error}", "fps") from None
    rows = _rows(name, _read(name), ("frame", "coded", "type", "bytes", "qp", "qp_least", "qp_most"))
    points = [_frame(name, row) for row in rows]
    if not points:
        raise InputError(f"{name}: no frames")
    return draw_rates(points, fps, args.title, file_format)


def _frame(name: str, row: dict[str, str]) -> Point:
    def number(column: str) -> int:
        return int(_number(name, row[column]))

    buffer = (number("coded"), number("buffer_left"), number("buffer_size")) if row.get("buffer_size") else None
    predicted = number("bits_predicted") if row.get("bits_predicted") else 0
    qps = number("qp_least"), number("qp_most")
    return Point(number("frame"), row["type"], 8 * number("bytes"), _number(name, row["qp"]), qps, predicted, buffer)


def _rows(name: str, text: str, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Rows of a CSV file, which has these columns and perhaps others. InputError."""
    reader = csv.DictReader(io.StringIO(text))
    try:
        lacking = [column for column in columns if column not in (reader.fieldnames or ())]
        if lacking:
            raise InputError(f"{name}: no column {', '.join(lacking)}")
        for row in reader:
            if None in row or any(value is None for value in row.values()):
                raise InputError(f"{name}: line {reader.line_num} has another number of columns than the first")
            yield row
    except csv.Error as error:
        raise InputError(f"{name}: line {reader.line_num}: {error}") from None


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name}: {text[:40]!r} is no number")
    return number


def _read(name: str) -> str:
    try:
        return small_file(name, _LARGEST).decode()
    except OSError as error:
        raise InputError(f"{name}: {error_text(error)}") from None
    except ValueError as error:
        raise InputError(f"{name}: {'no text' if isinstance(error, UnicodeDecodeError) else error}") from None
