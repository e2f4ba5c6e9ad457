"""The arguments of `tune`, `bench`, `doctor`, `plot` and `compile`. Their code is imported when the command runs."""

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ..encoder.errors import OptionError
from ..encoder.settings.option_types import read_float, read_int, read_size, read_text
from ..encoder.settings.options import BY_NAME, show
from ..jit import compiling

_EXITS = "exit codes: 0 done; 1 failed; 2 wrong usage; 3 a device is not available; 130 interrupted"


def add_parsers(commands: Any) -> None:
    """Add the sub-parsers to the command line's argparse."""
    tune = commands.add_parser(
        "tune",
        help="measure this machine, for --device auto and hybrid",
        allow_abbrev=False,
        description="Measure each stage on each device at several sizes, and the copies between them, and write a tuning "
        "file that encodes use from then on (docs/tuning.md).",
        epilog=_EXITS,
    )
    tune.add_argument("--out", metavar="FILE", help="the file to write [in the user's cache, where encodes find it]")
    tune.add_argument("--clip", metavar="FILE", help="measure with this video, at its size [synthetic frames]")
    tune.add_argument("--input-res", metavar="WxH", help="size of --clip, if it is raw and its name does not say it")
    tune.add_argument("--seconds", default=70.0, metavar="N", help="seconds of all measurements, 5..3600 [70]")
    tune.add_argument("--quiet", action="store_true", help="print nothing but errors")
    tune.set_defaults(run=_tune)
    bench = commands.add_parser(
        "bench",
        help="frames a second of each device on this machine",
        allow_abbrev=False,
        description="Encode frames of several sizes on the CPU, on the GPU and on both, in turns, and print medians. Where "
        "there is a tuning file, also its predictions and their error.",
        epilog=_EXITS,
    )
    bench.add_argument("--sizes", metavar="LIST", help="WxH joined by commas [176x144,352x288,1280x720,1920x1080]")
    bench.add_argument(
        "--devices",
        metavar="LIST",
        help="cpu, cuda, hybrid, joined by commas [those available]; or all, or "
        "cuda:0,cuda:1 and so on: one GPU against several, at 1920x1080",
    )
    bench.add_argument("--clip", metavar="FILE", help="encode this video, at its size [synthetic frames]")
    bench.add_argument("--input-res", metavar="WxH", help="size of --clip, if it is raw and its name does not say it")
    bench.add_argument("--rounds", default=3, metavar="N", help="runs of each device, in turns, 1..1024 [3]")
    bench.add_argument("--seconds", default=2.0, metavar="N", help="least time of a run, 0.1..3600 [2]", dest="run_seconds")
    bench.add_argument("--threads", metavar="N", help="number of threads, 0..256 [as encode chooses]")
    bench.add_argument("--tuning", metavar="FILE", help="tuning file [the one in the user's cache]")
    bench.add_argument("--json", metavar="FILE", help="write the figures as JSON; - for standard output")
    bench.set_defaults(run=_bench)
    doctor = commands.add_parser(
        "doctor",
        help="the devices and tools of this machine, and the choices of an encode",
        allow_abbrev=False,
        description="Processor, GPUs, driver, compilers, caches, tuning file; the devices that an encode would use, and why.",
        epilog="exit codes: 0 all is well; 1 problems, which are listed; 2 wrong usage",
    )
    doctor.add_argument("--tuning", metavar="FILE", help="look at this tuning file [the one in the user's cache]")
    doctor.add_argument("--json", action="store_true", help="print JSON (docs/json.md)")
    doctor.set_defaults(run=_doctor)
    _add_plot(commands)
    _add_compile(commands)


def _add_compile(commands: Any) -> None:
    compile_ = commands.add_parser(
        "compile",
        help="compile all kernels now, as for a container image",
        allow_abbrev=False,
        description="Compile the kernels of this processor, and of GPUs, and keep them, so that later processes compile "
        "none (docs/install.md). Without --cpu and --cuda: both, the latter for the GPUs of this machine.",
        epilog="exit codes: 0 done; 1 failed; 2 wrong usage; 3 no GPU and no nvcc",
    )
    compile_.add_argument("--cpu", action="store_true", help="kernels of the CPU: encoder and decoder")
    compile_.add_argument("--cuda", action="store_true", help="kernels of GPUs, and those of the host for them")
    compile_.add_argument("--arch", metavar="LIST", help="compute capabilities, as 80,90 [of the GPUs here; else all]")
    compile_.add_argument("--cache", metavar="DIR", help="the folder to keep them in, for H264LITE_CACHE [the usual one]")
    compile_.add_argument("--quiet", action="store_true", help="print nothing but errors")
    compile_.set_defaults(run=_compile)


def _add_plot(commands: Any) -> None:
    plot = commands.add_parser(
        "plot",
        help="charts from the files of --json and --csv",
        allow_abbrev=False,
        description="Draw curves of rate and quality (rd), presets by speed and bits (presets), or bits, QPs and the buffer "
        "of the frames over time (rate), as .png, .svg or .pdf (docs/plots.md). Needs matplotlib.",
        epilog="exit codes: 0 done; 1 failed; 2 wrong usage",
    )
    charts = plot.add_subparsers(title="charts", metavar="CHART", dest="chart", required=True)
    rd = charts.add_parser("rd", help="rate and quality of encodes, BD-rates against the first curve", allow_abbrev=False)
    rd.add_argument(
        "inputs",
        nargs="+",
        metavar="[LABEL=]FILE",
        help="files of --json, one encode each; or CSV "
        "with label, kbps and psnr, global or ssim. Encodes of a label are a curve [preset, tune]",
    )
    rd.add_argument("--by", choices=("psnr", "global", "ssim"), default="psnr", help="quality [psnr]")
    presets = charts.add_parser("presets", help="presets of h264lite and x264 by speed and bits", allow_abbrev=False)
    presets.add_argument(
        "inputs",
        nargs="+",
        metavar="[LABEL=]FILE",
        help="files of python -m h264lite.benchmarks.presets --json, one diagram each",
    )
    rate = charts.add_parser("rate", help="bits, QPs and buffer of the frames over time", allow_abbrev=False)
    rate.add_argument("inputs", nargs=1, metavar="FILE", help="file of --csv")
    rate.add_argument("--fps", metavar="RATE", help="frames per second, for an axis of seconds [frames]")
    for chart in (rd, presets, rate):
        chart.add_argument("-o", "--out", metavar="FILE", required=True, help="the chart: .png, .svg or .pdf")
        chart.add_argument("--title", default="", metavar="TEXT", help="title of the chart")
    plot.set_defaults(run=_plot)


def _plot(args: argparse.Namespace) -> int:
    from .plot import run_plot

    return run_plot(args)


def _compile(args: argparse.Namespace) -> int:
    from .compile import run_compile

    return run_compile(args.cpu, args.cuda, args.arch, args.cache, args.quiet)


def _value(value: Any, option: str, read: Callable[..., Any], *limits: float) -> Any:
    """The normal form of a value, None for None; OptionError names the option."""
    try:
        return None if value is None else read(value, *limits)
    except ValueError as error:
        raise OptionError(f"{show(value)}: {error}", option) from None


def _sizes(text: str) -> list[tuple[int, int]]:
    return [read_size(size) for size in text.split(",")]


def _input_res(args: argparse.Namespace) -> tuple[int, int] | None:
    if args.input_res is not None and args.clip is None:
        raise OptionError("has no effect without --clip", "input-res")
    size: tuple[int, int] | None = _value(args.input_res, "input-res", read_size)
    return size


def _tune(args: argparse.Namespace) -> int:
    from .tune import run_tune

    seconds = _value(args.seconds, "seconds", read_float, 5, 3600)
    with compiling.messages_to(lambda text: None) if args.quiet else nullcontext():
        return run_tune(args.out, args.clip, _input_res(args), seconds, args.quiet)


def _bench(args: argparse.Namespace) -> int:
    """Check the usage, then import the measuring code."""
    sizes, input_res = _value(args.sizes, "sizes", _sizes), _input_res(args)
    args.rounds = _value(args.rounds, "rounds", read_int, 1, 1024)
    args.run_seconds = _value(args.run_seconds, "seconds", read_float, 0.1, 3600)
    args.threads = BY_NAME["threads"].value(0 if args.threads is None else args.threads)
    args.json = _value(args.json, "json", read_text)
    from .bench import run_bench

    return run_bench(args, sizes, input_res)


def _doctor(args: argparse.Namespace) -> int:
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        from .libraries import report_without_numpy

        return report_without_numpy(error, args.json)
    from .doctor import run_doctor

    return run_doctor(args.tuning, args.json)
