"""The command line: sub-commands, their options from the table, and exit codes."""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any, NoReturn

from ..console import INFO, MESSAGE_LEVELS, WARNING, levels_up_to, print_line, silence
from ..decoder.errors import BitstreamError
from ..encoder.errors import Error, OptionError
from ..encoder.files.output import error_text
from ..encoder.settings.option_types import is_ray_address, read_devices
from ..encoder.settings.options import ALIASES, API, BY_NAME, OPTIONS, Option
from ..encoder.settings.user_options import check_names, translated
from ..encoder.settings.x264_options import IS_SWITCH
from ..encoder.settings.x264_options import SHORT as OF_X264_SHORT
from ..jit import cache_checks, compiling
from ..jit.numba_version import TO_INSTALL
from ..process import gc_paused
from ..version import __version__
from .ffmpeg_words import check_value, check_word
from .machine_arguments import add_parsers as add_machine_parsers

_EPILOG = """\
IN   .yuv (raw 8-bit I420), .y4m, - (standard input);
     images (*.png, frame_%04d.png, '*.png') with Pillow or PyAV;
     with PyAV all formats of FFmpeg
OUT  .264, .h264, .bin (Annex B), .mp4, - (standard output);
     .m3u8 (HLS), .mpd (DASH); with PyAV .mkv, .mov

exit codes: 0 done; 1 failed; 2 wrong usage; 3 the device is not available;
130 interrupted, the file is finished
"""
_OF_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errno of failed prints: no file name

COMMANDS = ("encode", "decode", "info", "report", "tune", "bench", "doctor", "plot", "compile")
_NEEDED = {  # what to say where they are not installed; a wheel with compiled kernels does without the last two
    "numpy": "pip install numpy", "numba": TO_INSTALL, "scipy": TO_INSTALL,
}  # fmt: skip
_WHICH = "to encode say h264lite encode IN OUT"
_OUTPUT = "output"  # x264's option for OUT
_ANSWERS = {name: name for name in ("-h", "--help", "-V", "--version")} | {"--longhelp": "--help", "--fullhelp": "--help"}


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        """Print argparse's message with a hint to --help; exit code 2."""
        print_line(f"{self.prog}: error: {message} (see {self.prog} --help)")
        self.exit(2)


def make_parser(command: str = "") -> Parser:
    """The parser of the sub-commands; imports only what `command` needs."""
    parser = Parser(prog="h264lite", description="An H.264/AVC encoder, and a decoder to check it with.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"h264lite {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    add_encode_parser(commands)
    if command != "encode":
        if command not in ("tune", "bench", "doctor", "plot", "compile"):
            import_module(".decode", __package__).add_parsers(commands)
            import_module(".report", __package__).add_parsers(commands)
        add_machine_parsers(commands)
    return parser


def check_command(argv: Sequence[str]) -> None:
    """OptionError for what is no command, with one that is written alike, or the way to encode for a file or an option."""
    first = argv[0] if argv else ""
    if first in ("", "-h", "--help", "--version", *COMMANDS):
        return
    import difflib  # few need it

    near = difflib.get_close_matches(first.lower(), COMMANDS, 1, 0.6)
    if first.startswith("-") or (not near and (os.path.exists(first) or "." in first)):
        raise OptionError(f"{first[:60]!r} is no command: {_WHICH}")
    proposal = f"; did you mean {near[0]!r}?" if near else f": {', '.join(COMMANDS)}"
    raise OptionError(f"{first[:60]!r} is no command{proposal}")


def add_encode_parser(commands: Any) -> None:
    """Add `encode`, with the options of the table in their groups."""
    usage = "h264lite encode IN... OUT [options]\n       h264lite encode --batch LIST [options]"
    encode = commands.add_parser(
        "encode",
        help="encode video to H.264",
        usage=usage,
        description="Encode video to a standard H.264 stream.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    encode.add_argument("input", metavar="IN", nargs="+", help="the video to encode, or image files, one for each frame")
    encode.add_argument("output", metavar="OUT", help="where the stream goes; also as -o OUT, before or after IN")
    encode.add_argument("-V", "--version", action="version", version=f"h264lite {__version__}")
    groups: dict[str, Any] = {}
    for row in OPTIONS:
        if row.scope != API:
            group = groups.setdefault(row.group, encode.add_argument_group(row.group) if row.group not in groups else 0)
            add_option(group, row)
    encode.set_defaults(run=_run_encode)


def add_option(group: Any, row: Option) -> None:
    """Add one row of the table. Values stay strings here; the table's reader checks them."""
    names = [f"-{row.short}"] if row.short else []
    if row.is_switch:
        group.add_argument(*names, row.flag, dest=row.name, action="store_true", default=None, help=row.help)
        if row.default is True:
            group.add_argument("--no-" + row.flag[2:], dest=row.name, action="store_false", help=f"no {row.help}")
        return
    default = f" [{row.default_text}]" if row.default_text else ""
    legal = f" ({row.range_text})" if row.range_text else ""
    group.add_argument(
        *names, row.flag, dest=row.name, metavar=row.metavar or "NAME", help=(row.help + legal + default).replace("%", "%%")
    )


def join_values(argv: Sequence[str], tell: Callable[[str], None] = lambda line: None) -> list[str]:
    """`--deblock -1:1` -> `--deblock=-1:1`, for all options with a value, which may begin with a dash; of several the last.

    Positional arguments come last, and behind them that of x264's --output. What x264 says in other words is said in those
    of the table, with a line to `tell` where it acts otherwise; what is not built is refused, and so are unknown names.
    """
    legal = [row for row in OPTIONS if row.scope != API]
    rows = {row.flag: row for row in legal} | {_flag(alias): BY_NAME[name] for alias, name in ALIASES.items()}
    rows |= {f"-{row.short}": row for row in legal if row.short}
    switches = {"--no-" + row.flag[2:] for row in legal if row.is_switch and row.default is True}
    out: list[str] = []
    positional: list[str] = []
    values: dict[str, Any] = {}
    bare = {row.flag for row in legal if row.may_be_bare}  # --ray IN -> --ray= IN
    pairs = zip(argv, [*argv[1:], ""])
    remaining = iter([word + "=" if word in bare and not is_ray_address(after) else word for word, after in pairs])
    for argument in remaining:
        check_word(argument, rows)
        name, equals, value = argument.partition("=")
        row = rows.get(name) or rows.get("" if argument.startswith("--") else argument[:2])
        if row is not None and not row.is_switch:
            given: str | None = value if name.startswith("--") and equals else argument[2:]  # -q27
            values[row.name] = next(remaining, None) if argument in rows else given
            if values[row.name] is None:
                raise OptionError("needs a value", row.flag[2:])
            check_value(argument, values[row.name])
        elif argument[:1] != "-" or argument == "-":
            positional.append(argument)
        elif row is not None and argument in rows:
            out.append(row.flag)
        elif argument in switches or argument in _ANSWERS:
            out.append(_ANSWERS.get(argument, argument))
        else:
            values |= _foreign(argument, remaining)
    outputs = [values.pop(_OUTPUT)] if _OUTPUT in values else []
    given_options, lines = translated(values | {"lenient": "--lenient" in out})
    check_names(given_options, BY_NAME, [*(row.flag for row in legal), *switches, "--help"])
    del given_options["lenient"]
    if "batch" in values and (extra := positional + outputs):
        raise OptionError(f"takes the place of IN and OUT, and there is {extra[0]}", "batch")
    if outputs and not positional:
        raise OptionError(f"{outputs[0]}: IN is missing, the video to encode", _OUTPUT)
    for line in lines:
        tell(line)
    out += [BY_NAME[name].word(value) for name, value in given_options.items() if name in BY_NAME]
    return out + (["IN", "OUT"] if "batch" in values else positional + outputs)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _foreign(argument: str, remaining: Iterator[str]) -> dict[str, Any]:
    """Name and value of an option of x264 that is none here, or the argument; takes its value from the following ones."""
    name, equals, value = argument.partition("=")
    known = name[2:].replace("-", "_") if name.startswith("--") else ""
    if not name.startswith("--") and argument[1] in OF_X264_SHORT:
        known, equals, value = OF_X264_SHORT[argument[1]], argument[2:], argument[2:]
    if known not in IS_SWITCH:
        return {name: ""}
    if not IS_SWITCH[known] and not equals and (value := next(remaining, "")) == "":
        raise OptionError("needs a value", known.replace("_", "-"))
    return {known: True if IS_SWITCH[known] else value}


def _run_encode(args: argparse.Namespace) -> int:
    values = {row.name: getattr(args, row.name) for row in OPTIONS if row.scope != API}
    options = {name: value for name, value in values.items() if value is not None}
    if args.batch is not None:
        from .batch import run_batch

        return run_batch(options, main)
    if args.workers is not None:
        raise OptionError("is for --batch", "workers")
    from ..cuda_src.runtime.context_warmup import ContextWarmup  # 4 ms of --help, for the ctypes module

    gpus = gpus_of(args.device, args.devices)
    # where samples decide, this process measures them on the first GPU, and encodes there
    first = int(args.qp is None and args.pass_ is None and bool(gpus))
    early = args.devices is not None and _start_early(args.devices, args.input, first)
    if early:
        gpus = gpus[:first]
    warmup = ContextWarmup(gpus)  # in parallel with the import of the encoder
    starting = ExitStack()

    def has_device() -> None:
        warmup.release()
        starting.close()

    try:
        with starting:
            starting.enter_context(gc_paused())  # what is imported and made up to then stays
            from .encode import run_encode

            return run_encode(args.input, args.output, options, has_device)
    finally:
        if early:
            import_module("..encoder.workers.process", __package__).end_early()
        warmup.close()


def _start_early(devices: str, inputs: Sequence[str], first: int) -> bool:
    """Start worker processes before all else; whether there are any. first: of the devices that have one."""
    from ..encoder.workers.process import start_early

    return start_early(_names_of(devices), inputs, first)


def gpus_of(device: str | None, devices: str | None) -> list[int]:
    """The GPUs that an encode may use, judged by these options alone."""
    if devices is None:
        return [0] if device in (None, "auto", "cuda", "hybrid") else []
    return [int(name.partition(":")[2] or 0) for name in _names_of(devices) if name != "cpu"]


def _names_of(devices: str) -> tuple[str, ...]:
    try:
        return read_devices(devices)
    except ValueError:  # reported later
        return ()


def main(argv: Sequence[str]) -> int:
    """Run one command; return the exit code. Errors are one line on standard error."""
    with ExitStack() as stack:
        stack.enter_context(cache_checks.messages_to(lambda text: print_line(f"h264lite [warning]: {text}", level=WARNING)))
        stack.enter_context(compiling.messages_to(lambda text: print_line(f"h264lite [info]: {text}", level=INFO)))
        code = _run(list(argv), stack)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError as error:
            silence(sys.stdout)
            return code or _fail("h264lite", f"standard output: {error_text(error)}", 1)
        return code


def _run(argv: list[str], stack: ExitStack) -> int:
    """The exit code of a command. stack: what limits messages until the command has ended."""
    prog, args = "h264lite", None
    try:
        if argv and argv[0] == "encode":
            prog = "h264lite encode"
            lines: list[str] = []
            argv[1:] = join_values(argv[1:], lines.append)
            stack.enter_context(levels_up_to(_level(argv)))
            for line in lines if "--quiet" not in argv else ():
                print_line(f"h264lite [warning]: {line}", level=WARNING)
        check_command(argv)
        parser = make_parser(argv[0] if argv else "")
        args, unknown = parser.parse_known_args(argv)
        if args.command is not None:
            parser.prog = prog = f"h264lite {args.command}"
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        if args.command is None:
            parser.error(f"which command? {_WHICH}")
        return int(args.run(args) or 0)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 2
    except Error as error:
        hint = f" (see {prog} --help)" if error.exit_code == 2 else ""
        return _fail(prog, f"{getattr(error, 'command_text', error)}{hint}", error.exit_code)
    except MemoryError as error:
        return _fail(prog, f"out of memory: {error}" if str(error) else "out of memory", 1)
    except OSError as error:
        where = error.filename or ("standard output" if error.errno in _OF_OUTPUT else "")
        return _fail(prog, f"{where}{': ' if where else ''}{error_text(error)}", 1)
    except KeyboardInterrupt:
        return _fail(prog, "interrupted", 130)
    except BitstreamError as error:
        return _fail(prog, f"{_inputs_of(args)}{error}", 1)
    except Exception as error:
        if os.environ.get("H264LITE_TRACEBACK") == "1":
            raise
        if isinstance(error, ModuleNotFoundError) and error.name in _NEEDED:
            text = str(error) if error.name == "numba" else f"{error.name} is not installed: {_NEEDED[error.name]}"
            return _fail(prog, text, 1)
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _fail(prog, f"{_inputs_of(args)}a fault of h264lite: {said} (H264LITE_TRACEBACK=1 shows where)", 1)


def _level(argv: Sequence[str]) -> int:
    """Of the messages that a command wants, whose words are those of the table."""
    said = [word.partition("=")[2] for word in argv if word.startswith("--log-level=")]
    level = MESSAGE_LEVELS.get(said[-1], INFO) if said else INFO  # another word is refused later
    return min(level, WARNING) if "--quiet" in argv else level


def _inputs_of(args: argparse.Namespace | None) -> str:
    """The names of the files that a command reads, before what is wrong; empty where there are none."""
    named = [getattr(args, name, None) for name in ("input", "inputs", "clip")]
    names = [name for value in named if value for name in ([value] if isinstance(value, str) else value)]
    return f"{', '.join(names[:3])}{', ...' * (len(names) > 3)}: " if names else ""


def _fail(prog: str, text: str, code: int) -> int:
    print_line(f"{prog}: error: {text}")
    return code
