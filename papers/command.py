"""`python -m papers`: runs what the papers describe and shows their tables beside the measured ones."""

import argparse
import datetime
import importlib
import importlib.util
import os
import platform
import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from h264lite.console import print_line
from h264lite.cuda_src.runtime import device as device_module
from h264lite.encoder.errors import DeviceError, Error, InputError, OptionError
from h264lite.encoder.files.names import size_from_name

from .kernels import fsbm, memory, streams
from .notes import NOTES
from .published import HARDWARE, PAPERS
from .setting import Setting, read_clip
from .table import Table, to_csv

ALIASES = {"002": "000", "fsbm": "000", "streams": "001", "memory": "003", "loop": "004"}
LONGEST = 13  # pictures of a clip that any table uses


def make_parser() -> argparse.ArgumentParser:
    """NAME and the options."""
    description = "Run what the papers describe; their figures beside those measured here."
    parser = argparse.ArgumentParser(prog="python -m papers", description=description, allow_abbrev=False)
    parser.add_argument("name", metavar="NAME", help="000 (also 002), 001, 003, 004, all; list: what there is")
    parser.add_argument("--input", metavar="FILE", help="a clip in place of those of $H264LITE_SEQUENCES or made ones")
    parser.add_argument("--input-res", metavar="WxH", help="its size, if raw and not in its name")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="cpu: only what runs on it [auto]")
    parser.add_argument("--reach", type=int, default=64, metavar="N", help="largest range: 8, 16, 32 or 64 [64]")
    parser.add_argument("--repeats", type=int, default=10, metavar="N", help="runs of a variant; their median counts [10]")
    parser.add_argument("--budget", type=float, default=3.0, metavar="S", help="seconds for a variant, else a sample [3]")
    parser.add_argument("--csv", metavar="FILE", help="all figures, one a line")
    parser.add_argument("--plots", metavar="DIR", help="a PNG file a paper; needs matplotlib")
    parser.add_argument("--markdown", metavar="FILE", help="the tables as a page, as benchmarks/results/papers/README.md")
    return parser


def listing() -> str:
    """Papers and their variants."""
    lines = []
    variants = {"000": {**fsbm.FSBM, **fsbm.STEP}, "003": memory.MEMORY}
    for name, title in PAPERS.items():
        lines.append(f"{name}  {title}")
        lines += [
            f"       {key:18s} {v.title}{f' (table {v.figure})' if v.figure else ''}"
            for key, v in variants.get(name, {}).items()
        ]  # type: ignore[attr-defined]
        lines += [f"       {key:18s} {how}" for key, how in streams.SCENARIOS.items() if name == "001"]
    lines.append("       search, refinement, deblocking, CPU vectors, modules")
    return "\n".join(lines)


def _open_gpu(wanted: str) -> device_module.Device | None:
    if wanted == "cpu":
        return None
    reason = device_module.available()
    if reason and wanted == "cuda":
        raise DeviceError(f"cuda: {reason}")
    if reason:
        print_line(f"papers: on the CPU alone ({reason})")
        return None
    return device_module.Device()


def _setting(given: argparse.Namespace, gpu: device_module.Device | None) -> Setting:
    clip = None
    if given.input:
        size = size_from_name(given.input_res or given.input)
        clip = read_clip(given.input, size, LONGEST)
        if len(clip.frames) < 2:
            raise InputError(f"{given.input}: {len(clip.frames)} pictures, and 2 are needed")
    return Setting(gpu, clip, budget=given.budget, repeats=given.repeats, reach=given.reach)


def run(given: argparse.Namespace) -> int:
    """The command; the exit code."""
    if given.name == "list":
        print(listing())
        return 0
    name = ALIASES.get(given.name, given.name)
    if name not in (*PAPERS, "all"):
        raise OptionError(f"papers {given.name}: is none of list, all, {', '.join([*PAPERS, *ALIASES])}")
    if given.reach not in (8, 16, 32, 64):
        raise OptionError(f"{given.reach}: 8, 16, 32 or 64", "reach")
    if given.repeats < 1:
        raise OptionError(f"{given.repeats}: 1 or more", "repeats")
    if given.plots and importlib.util.find_spec("matplotlib") is None:
        raise OptionError("needs matplotlib: pip install 'h264lite[plot]'", "plots")
    gpu = _open_gpu(given.device)
    tables: list[Table] = []
    with gpu or nullcontext():
        setting = _setting(given, gpu)
        for paper in PAPERS if name == "all" else (name,):
            tables_of_paper = importlib.import_module(f".paper_{paper}", __package__).run(setting)
            for table in tables_of_paper:
                print(table.text() + "\n", flush=True)
            tables += tables_of_paper
    plots: list[Path] = []
    if given.plots:
        from .plots import draw

        plots = draw(setting, tables, Path(given.plots))
    if given.csv:
        Path(given.csv).write_text(to_csv(tables), encoding="utf-8")
    if given.markdown:
        _write_page(given, tables, plots, gpu.name if gpu else None)
    if gpu:
        gpu.close()
    return 0


def _cpu() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores seen"


def _write_page(given: argparse.Namespace, tables: list[Table], plots: list[Path], gpu: str | None) -> None:
    page = Path(given.markdown)
    words = [w for key in ("input", "input_res", "csv", "plots", "markdown") if (value := getattr(given, key))
             for w in (f"--{key.replace('_', '-')}", value)]  # fmt: skip
    lines = ["# The papers, run again", "",
             "*Italics: what the papers print.* Everything else was measured here, in one run of one command:", "",
             f"    python -m papers {given.name} {shlex.join([*words, '--device', given.device])}", "",
             f"{datetime.date.today()}; {gpu or 'no GPU'}; {_cpu()}. {NOTES['00']}", ""]  # fmt: skip
    for paper, title in PAPERS.items():
        of_paper = [table for table in tables if table.name.startswith(paper)]
        if of_paper:
            lines += [f"## {title}", "", f"Hardware in print: {HARDWARE[paper]}.", ""]
        lines += [table.markdown() for table in of_paper]
        drawn = [plot for plot in plots if of_paper and plot.stem.endswith(paper)]
        lines += [f"![{title}]({os.path.relpath(plot, page.parent)})\n" for plot in drawn]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def main(argv: Sequence[str]) -> int:
    """The command; the exit code."""
    try:
        return run(make_parser().parse_args(argv))
    except Error as error:
        dashes = "--" if getattr(error, "option", "") else ""
        print_line(f"papers: error: {dashes}{error}")
        return error.exit_code
