"""The command line's `report`: the analysis page of a stream; exit codes as those of `decode`."""

import argparse
import os
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from ..console import print_line
from ..decoder.errors import BitstreamError
from ..encoder.errors import InputError, OptionError
from ..encoder.settings.option_types import read_int, read_size
from ..encoder.settings.options import show
from ..files import identity, opened, shown
from ..jit import compiling
from ..mp4.opening import pieces

if TYPE_CHECKING:
    from ..encoder.files.video import Source  # imports NumPy, which would delay --help
    from ..report.report import WrittenReport

_EXITS = "exit codes: 0 done; 1 broken or unsupported stream, or no file; 2 wrong usage; 130 interrupted"
_MEBI = 1 << 20
PICTURES = ("source", "prediction")


def add_parsers(commands: Any) -> None:
    """Add the sub-parser of `report` to the command line's argparse."""
    report = commands.add_parser(
        "report",
        help="an analysis page of a stream, for the browser",
        allow_abbrev=False,
        epilog=_EXITS,
        description="Write an HTML page that shows how a stream is coded: sizes, types, QPs and references of its frames, "
        "partitions, vectors, modes and bits of their macroblocks (docs/report.md). It needs no network.",
    )
    report.add_argument("input", metavar="STREAM", help="the stream or MP4; - for standard input")
    report.add_argument("-o", "--output", metavar="FILE", help="the page [STREAM.html]; - for standard output")
    report.add_argument("--compare", metavar="STREAM", help="a second stream next to the first")
    report.add_argument("--source", metavar="FILE", help="the video that was encoded: .yuv, .y4m, or what PyAV reads")
    report.add_argument("--input-res", metavar="WxH", help="the size of SOURCE, if it is raw [that of the stream]")
    report.add_argument(
        "--pictures",
        metavar="LIST",
        help="further pictures on the page, coded anew with a finer"
        " quantiser: source, prediction, or none [source,prediction; source above 1280x720]",
    )
    report.add_argument("--frames", metavar="N", help="the page ends after N frames [all]")
    report.add_argument(
        "--in-page",
        metavar="MIB",
        default=128,
        help="MiB of data in the page itself, 1..1024; the rest lies in a folder next to it [128]",
    )
    report.add_argument("--quiet", action="store_true", help="print errors only")
    report.set_defaults(run=run_report)


def _number(value: Any, option: str, least: int, most: int) -> int | None:
    try:
        return None if value is None else read_int(value, least, most)
    except ValueError as error:
        raise OptionError(f"{show(value)}: {error}", option) from None


class Choice(NamedTuple):
    """What the page has: frames at most, further pictures, bytes of data in the page itself."""

    limit: int | None
    pictures: tuple[str, ...] | None
    in_page: int


def _pictures(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(text.split(","))
    if names == ("none",):
        return ()
    for name in names:
        if name not in PICTURES:
            raise OptionError(f"{show(name)}: not one of {', '.join(PICTURES)}, none", "pictures")
    return names


def _size(args: argparse.Namespace) -> tuple[int, int] | None:
    if args.input_res is None:
        return None
    if args.source is None:
        raise OptionError("has no effect without --source", "input-res")
    try:
        return read_size(args.input_res)
    except ValueError as error:
        raise OptionError(f"{show(args.input_res)}: {error}", "input-res") from None


def run_report(args: argparse.Namespace) -> int:
    """`h264lite report STREAM`; OSError, OptionError and InputError reach `main`."""
    limit, in_page = _number(args.frames, "frames", 1, 10**9), _number(args.in_page, "in-page", 1, 1024)
    assert in_page is not None
    size, out = _size(args), args.output or _default_name(args.input)
    names = [args.input] + ([args.compare] if args.compare is not None else [])
    if names == ["-", "-"]:
        raise OptionError("standard input holds one stream", "compare")
    for name in (*names, *([args.source] if args.source is not None else [])):
        if identity(name, 0) is not None and identity(name, 0) == identity(out, 1):
            raise OptionError(f"{shown(out, 'standard output')} is both input and output", "output")
    quiet = compiling.messages_to(lambda text: None) if args.quiet else nullcontext()
    with quiet:
        page = _write(out, names, args.source, size, Choice(limit, _pictures(args.pictures), in_page * _MEBI))
    return _say(page, out, names, args.quiet)


def _default_name(name: str) -> str:
    return "report.html" if name == "-" else f"{os.path.splitext(os.path.basename(name))[0]}.html"


def _write(out: str, names: list[str], source: str | None, size: tuple[int, int] | None, choice: Choice) -> "WrittenReport":
    from ..report.report import Input, write_report  # imports NumPy, which would delay --help
    from ..report.stream_report import Options

    with ExitStack() as stack:
        streams = []
        for name in names:
            said = shown(name, "standard input")
            try:
                chunks, movie = pieces(stack.enter_context(opened(name)))
                rate = movie.rate() if movie is not None else None
            except BitstreamError as error:
                raise InputError(f"{said}: {error}") from None
            video = None if source is None else _open_source(source, size, stack)
            streams.append(Input(os.path.basename(said), chunks, video, rate))
        return write_report(out, streams, Options(choice.limit, choice.pictures), choice.in_page)


def _open_source(name: str, size: tuple[int, int] | None, stack: ExitStack) -> "Source":
    from ..encoder.files.opening import open_source

    source = open_source(name, size)
    stack.callback(source.close)
    return source


def _say(page: "WrittenReport", out: str, names: list[str], quiet: bool) -> int:
    """Lines about what was written; the exit code."""
    for name, count, error, cut in zip(names, page.frames, page.errors, page.cut):
        said = shown(name, "standard input")
        if error:
            print_line(f"h264lite report: error: {said}: {error} ({count} frames on the page)")
        elif not count:
            print_line(f"h264lite report: error: {said}: no frames")
        elif cut and not quiet:
            print_line(f"h264lite report: {said}: the page ends after {count} frames (--frames)")
    if any(page.frames) and not quiet:
        frames = " and ".join(map(str, page.frames))
        folder = f", {page.outside / _MEBI:.1f} MiB of data in {page.folder}, which belongs beside it" if page.outside else ""
        print_line(f"h264lite report: {shown(out, 'standard output')}: {frames} frames, {page.size / _MEBI:.1f} MiB{folder}")
    return 1 if any(page.errors) or not all(page.frames) else 0
