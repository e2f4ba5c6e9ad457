"""The command line's `decode` and `info`; exit codes: 0 ok, 1 failed, 2 wrong usage, 130 interrupted."""

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..console import folded, one_line, print_line, silence
from ..decoder.errors import BitstreamError
from ..encoder.files.names import I420, ending_of
from ..files import WholeFile, error_text, identity, is_special, opened, shown
from ..jit import compiling
from ..mp4.opening import pieces

if TYPE_CHECKING:
    from ..decoder.info import StreamInfo, UnitInfo
    from ..decoder.picture import Frame  # imports the compiler, which would delay --help
    from ..mp4.reader import Mp4Reader


def add_parsers(commands: Any) -> None:
    """Add the sub-parsers of `decode` and `info` to the command line's argparse."""
    decode = commands.add_parser(
        "decode",
        help="decode an H.264 stream or MP4 to raw video",
        allow_abbrev=False,
        description="Decode an H.264 stream (Annex B, or in an MP4) to raw 8-bit 4:2:0 video.",
        epilog="exit codes: 0 decoded; 1 broken or unsupported stream, or no file; 2 wrong usage; 130 interrupted",
    )
    decode.add_argument("input", metavar="IN", help="the stream or MP4; - for standard input")
    decode.add_argument("output", metavar="OUT", help=".yuv (I420), .y4m; - for I420 on standard output")
    decode.add_argument("--resilient", action="store_true", help="after an error, continue at the next IDR picture")
    decode.add_argument("--frames", type=_count, metavar="N", help="stop after N frames")
    decode.add_argument("--quiet", action="store_true", help="print errors only")
    decode.set_defaults(run=run_decode)
    info = commands.add_parser(
        "info",
        help="the contents of an H.264 stream or MP4",
        allow_abbrev=False,
        description="Profile, level, size, picture types, sizes and QP of an H.264 stream (Annex B, or in an MP4).",
    )
    info.add_argument("input", metavar="FILE", help="the stream or MP4; - for standard input")
    info.add_argument(
        "--nal",
        action="store_true",
        help="a line for each NAL unit: offset (of an MP4: in its stream as Annex B), bytes, type, contents",
    )
    info.add_argument("--json", action="store_true", help="print JSON (docs/json.md), with --nal the NAL units too")
    info.set_defaults(run=run_info)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 18 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text[:60]}: not a whole number, 1 or more")
    return int(text)


def run_decode(args: argparse.Namespace) -> int:
    """`h264lite decode IN OUT`. OUT stays unchanged until the first frame is written."""
    source = identity(args.input, 0)
    if source is not None and source == identity(args.output, 1):
        return _fail(f"{shown(args.output, 'standard output')} is both input and output", 2)
    ending = ending_of(args.output)
    if ending not in (*I420, ".y4m") and not is_special(args.output):
        return _fail(f"{args.output}: {ending} is no output format; these are: .y4m, {', '.join(filter(None, I420))}", 2)
    name, sink = shown(args.input, "standard input"), None
    try:
        quiet = compiling.messages_to(lambda text: None) if args.quiet else nullcontext()
        with quiet, _signals(), opened(args.input) as stream, WholeFile(args.output) as file:
            sink = Sink(file, ending == ".y4m")
            chunks, movie = pieces(stream)
            sink.rate = movie.rate() if movie is not None else None
            dropped = _decode(chunks, sink, args.resilient, args.frames)
    except KeyboardInterrupt:
        return _fail(f"interrupted after {sink.frames if sink else 0} frames", 130)
    except BitstreamError as error:
        return _fail(f"{name}: {error} ({sink.frames if sink else 0} frames decoded)", 1)
    except (OSError, MemoryError) as error:
        return _fail(_error_text(error), 1)
    for line in dropped:
        print_line(f"h264lite: dropped: {line}")
    if sink.frames == 0:
        return _fail(f"{name}: no frames", 1)
    if not args.quiet:
        print_line(f"h264lite: {sink.frames} frames of {sink.size[0]}x{sink.size[1]} decoded")
    return 0


@contextmanager
def _signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP interrupt as Ctrl-C does; an ignored signal, such as SIGHUP under nohup, stays ignored."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))}
    taken = {number: before for number, before in handlers.items() if before != signal.SIG_IGN}
    for number in taken:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, before in taken.items():
            signal.signal(number, before)


def _decode(source: Iterator[bytes], sink: "Sink", resilient: bool, limit: int | None) -> list[str]:
    """Write the frames of a stream; return the dropped parts. Decoded frames are written before an error is raised."""
    from ..decoder.decoder import Decoder

    decoder = Decoder(resilient=resilient)

    def frames() -> "Iterator[Frame]":
        try:
            for piece in source:
                yield from decoder.decode(piece)
            yield from decoder.flush()
        except BitstreamError:
            yield from decoder.flush()
            raise

    for frame in frames():
        sink.write(frame)
        if limit is not None and sink.frames >= limit:
            break
    return decoder.dropped


class Sink:
    """Writes frames as raw I420 or as YUV4MPEG2."""

    def __init__(self, file: WholeFile, y4m: bool) -> None:
        self._file = file
        self._y4m = y4m
        self.frames = 0
        self.size = (0, 0)
        self.rate: Fraction | None = None  # frames a second, for a stream that does not say it

    def write(self, frame: "Frame") -> None:
        """Write one frame; BitstreamError if the size changes in a YUV4MPEG2 file."""
        size = (frame.width, frame.height)
        if self._y4m and self.frames and size != self.size:
            raise BitstreamError(f"the size changes to {size[0]}x{size[1]}: write .yuv, a .y4m file has one size")
        head = b"FRAME\n" if self._y4m else b""
        if self._y4m and not self.frames:
            head = y4m_header(frame, self.rate) + head
        self.size = size
        self._file.write(head, frame.to_bytes())
        self.frames += 1


def y4m_header(frame: "Frame", otherwise: Fraction | None = None) -> bytes:
    """The first line of a YUV4MPEG2 file: size, rate (of the stream, or `otherwise`), sample aspect ratio, chroma."""
    vui = frame.sps.vui
    rate = (otherwise or Fraction(25)).as_integer_ratio()
    if vui.timing_info_present_flag and vui.num_units_in_tick and vui.time_scale:
        rate = (vui.time_scale, 2 * vui.num_units_in_tick)
        if rate[0] % 2 == 0:
            rate = (rate[0] // 2, rate[1] // 2)
    colour = " XCOLORRANGE=FULL" if vui.video_full_range_flag else ""
    return f"YUV4MPEG2 W{frame.width} H{frame.height} F{rate[0]}:{rate[1]} Ip C420mpeg2{colour}\n".encode()


def run_info(args: argparse.Namespace) -> int:
    """`h264lite info FILE`."""
    from ..decoder.info import StreamInfo  # imports NumPy, which would delay --help

    info, name = StreamInfo(), shown(args.input, "standard input")
    out = (_Facts if args.json else _Words)(info, args.nal)
    try:
        with opened(args.input) as source:
            stream, movie = pieces(source)
            for piece in stream:
                out.units(info.units(piece))
            out.units(info.last_units())
            out.rest(movie)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BitstreamError as error:
        return _fail(f"{name}: {error}", 1)
    except BrokenPipeError:
        silence(sys.stdout)
        return 1
    except OSError as error:
        return _fail(_error_text(error, "standard output: "), 1)
    if not info.pictures and not info.errors:
        return _fail(f"{name}: no frames", 1)
    return 1 if info.errors else 0


class _Words:
    """Prints lines for people."""

    def __init__(self, info: "StreamInfo", nal: bool) -> None:
        self._info, self._nal = info, nal

    def units(self, units: "Iterator[UnitInfo]") -> None:
        """The next NAL units."""
        for unit in units:
            if self._nal:
                print(unit.line())

    def rest(self, movie: "Mp4Reader | None") -> None:
        """The summary."""
        if self._nal:
            print()
        if movie is not None:
            print(folded("\n".join([movie.summary(), *_tag_lines(movie)]), sys.stdout))
        print(folded("\n".join(self._info.summary()), sys.stdout), flush=True)


def _tag_lines(movie: "Mp4Reader") -> list[str]:
    """Metadata and chapters, a line each."""
    tags = movie.tags()
    lines = [f"{name}: {text}" for name, text in tags.metadata.items()]
    return [one_line(line) for line in [*lines, *(f"chapter at {float(at):.3f} s: {title}" for at, title in tags.chapters)]]


class _Facts:
    """Prints an object of JSON, the NAL units first and as they come: memory does not hold those of a long stream."""

    def __init__(self, info: "StreamInfo", nal: bool) -> None:
        self._info, self._nal, self._count = info, nal, 0

    def units(self, units: "Iterator[UnitInfo]") -> None:
        """The next NAL units."""
        from ..decoder.info_json import unit_facts

        for unit in units:
            if self._nal:
                print(",\n" if self._count else '{"units": [\n', json.dumps(unit_facts(unit)), sep="", end="")
                self._count += 1

    def rest(self, movie: "Mp4Reader | None") -> None:
        """The summary."""
        from ..decoder.info_json import stream_facts

        facts = {**({} if self._count or not self._nal else {"units": []}), **stream_facts(self._info),
                 "mp4": None if movie is None else movie.facts()}  # fmt: skip
        text = json.dumps(facts, indent=2)
        print(f"],\n{text[2:]}" if self._count else text, flush=True)


def _error_text(error: Exception, otherwise: str = "") -> str:
    """The text of an error after its file name, or after `otherwise` if it has none."""
    if isinstance(error, MemoryError):
        return "out of memory"
    name = getattr(error, "filename", None)
    return f"{f'{name}: ' if name else otherwise}{error_text(error)}"


def _fail(text: str, code: int) -> int:
    print_line(f"h264lite: error: {text}")
    return code
