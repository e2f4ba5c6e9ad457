"""The table of options: the only source of the command line, keyword arguments and documentation."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import OptionError
from .option_types import (
    MOST,
    read_choice,
    read_count,
    read_deblock,
    read_devices,
    read_flag,
    read_float,
    read_fps,
    read_grid,
    read_int,
    read_keyint,
    read_partitions,
    read_sar,
    read_size,
    read_text,
)

# Where an option is accepted: everywhere; only as an argument of Encoder(); only on the command line.
ALL, API, CLI = "all", "api", "cli"


@dataclass(frozen=True)
class Option:
    """One row: `name` is the keyword argument; the command line has it with dashes."""

    name: str
    group: str
    read: Callable[..., Any]  # reads a value; gets low and high, or choices, if the row has them
    default: Any
    help: str
    metavar: str = ""
    low: float | None = None
    high: float | None = None
    choices: dict[str, Any] | None = None
    short: str = ""  # x264's letter
    scope: str = ALL

    @property
    def flag(self) -> str:
        """The long option of the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value on the command line."""
        return self.read is read_flag

    @property
    def range_text(self) -> str:
        """The legal values, for help and documentation."""
        if self.choices is not None:
            return ", ".join(self.choices)
        if self.low is not None or self.high is not None:
            return f"{'' if self.low is None else self.low}..{'' if self.high is None else self.high}"
        return ""

    @property
    def default_text(self) -> str:
        """The default as a user writes it; empty if there is none."""
        if self.default is None:
            return ""
        return ":".join(map(str, self.default)) if isinstance(self.default, tuple) else str(self.default)

    @property
    def default_value(self) -> Any:
        """The normal form of the default; None = nothing."""
        return None if self.default is None else self.value(self.default)

    def value(self, raw: Any) -> Any:
        """The normal form of `raw`; OptionError with option, value and range."""
        try:
            if self.choices is not None:
                return self.read(raw, self.choices)
            if self.low is not None or self.high is not None:
                return self.read(raw, self.low, self.high)
            return self.read(raw)
        except Exception as error:  # objects of the caller may raise anything
            why = str(error) if type(error) is ValueError else f"{type(error).__name__} while it is read"
            raise OptionError(f"{show(raw)}: {why}", self.name.replace("_", "-")) from None


def show(raw: Any) -> str:
    """A value as the user wrote it, shortened to fit a line."""
    try:
        text = raw if isinstance(raw, str) and raw and raw.isprintable() else repr(raw)
    except Exception:  # numbers of very many digits, and objects of the caller
        return f"a value of type {type(raw).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def _same(*names: str) -> dict[str, Any]:
    return {name: name for name in names}


# Tables E-2 to E-5: the numbers of x264's names; None = not written.
VIDEO_FORMAT = {"component": 0, "pal": 1, "ntsc": 2, "secam": 3, "mac": 4, "undef": None}
RANGE = {"auto": None, "tv": 0, "pc": 1}
COLOUR_PRIMARIES = {
    "undef": None, "bt709": 1, "bt470m": 4, "bt470bg": 5, "smpte170m": 6, "smpte240m": 7, "film": 8, "bt2020": 9,
    "smpte428": 10, "smpte431": 11, "smpte432": 12,
}
TRANSFER = {
    "undef": None, "bt709": 1, "bt470m": 4, "bt470bg": 5, "smpte170m": 6, "smpte240m": 7, "linear": 8, "log100": 9,
    "log316": 10, "iec61966-2-4": 11, "bt1361e": 12, "iec61966-2-1": 13, "bt2020-10": 14, "bt2020-12": 15,
    "smpte2084": 16, "smpte428": 17, "arib-std-b67": 18,
}
COLOUR_MATRIX = {
    "undef": None, "bt709": 1, "fcc": 4, "bt470bg": 5, "smpte170m": 6, "smpte240m": 7, "YCgCo": 8, "bt2020nc": 9,
    "bt2020c": 10, "smpte2085": 11, "chroma-derived-nc": 12, "chroma-derived-c": 13, "ICtCp": 14,
}

# Each row holds the changes from the row before; "medium" equals the defaults of the table.
PRESETS: dict[str, dict[str, Any]] = {
    "ultrafast": {"ref": 1, "merange": 4, "subme": 1, "partitions": "none", "no_deblock": True,
                  "trellis": 0},
    "superfast": {"partitions": "p8x8", "no_deblock": False},
    "veryfast": {"merange": 8, "subme": 2, "partitions": "p8x8,i4x4"},
    "faster": {"subme": 3},
    "fast": {"subme": 4, "partitions": "all", "trellis": 1},
    "medium": {"merange": 16},
    "slow": {"ref": 2},
    "slower": {"ref": 3, "subme": 5, "merange": 24},
    "veryslow": {"ref": 6},
    "placebo": {"ref": 8, "merange": 32, "subme": 6},
}

LEVELS = _same(*"1 1.1 1.2 1.3 2 2.1 2.2 3 3.1 3.2 4 4.1 4.2 5 5.1 5.2 6 6.1 6.2".split())

OPTIONS: tuple[Option, ...] = (
    Option("input_res", "Input", read_size, None, "size of raw input; else from a name such as x_352x288.yuv",
           "WxH", scope=CLI),
    Option("width", "Input", read_int, None, "width in luma samples", "INT", 1, MOST, scope=API),
    Option("height", "Input", read_int, None, "height in luma samples", "INT", 1, MOST, scope=API),
    Option("demuxer", "Input", read_choice, "auto", "what IN is: by its name and first bytes, or said",
           choices=_same("auto", "raw", "y4m", "av"), scope=CLI),
    Option("fps", "Input", read_fps, Fraction(25), "frames per second: 25, 29.97 or 30000/1001; else that of the "
           "input", "RATE"),
    Option("seek", "Input", read_int, 0, "first frame to encode", "INT", 0, MOST, scope=CLI),
    Option("frames", "Input", read_int, 0, "largest number of frames to encode; 0 = all", "INT", 0, MOST, scope=CLI),

    Option("muxer", "Output", read_choice, "auto", "what OUT is: by its name, or said; raw is Annex B",
           choices=_same("auto", "raw", "mp4", "mkv", "mov"), scope=CLI),
    Option("audio", "Output", read_text, None, "file whose sound is put beside the video in .mp4, .mkv or .mov (may be IN): "
           "copied, or encoded to AAC; needs PyAV", "FILE", scope=CLI),
    Option("fragment", "Output", read_float, None, "MP4 in fragments (also for -, and for HLS and DASH), each of whole "
           "GOPs of at least so many seconds together", "SECONDS", 0.001, 3600.0, scope=CLI),

    Option("preset", "Presets", read_choice, "medium", "a row of options for speed against compression; other "
           "options override it", choices=_same(*PRESETS)),
    Option("profile", "Presets", read_choice, "baseline", "the profile that the stream must keep to",
           choices=_same("baseline")),
    Option("level", "Presets", read_choice, None, "the level to declare; refused if its limits are exceeded. Else the "
           "smallest that fits", choices=LEVELS),

    Option("keyint", "Frame types", read_keyint, 250, "largest distance of IDR frames, or infinite", "INT", short="I"),
    Option("ref", "Frame types", read_int, 1, "reference frames of a P frame (slower)", "INT", 1, 16, short="r"),
    Option("slices", "Frame types", read_int, 1, "slices per frame, whole macroblock rows each", "INT", 1, 1055),
    Option("no_deblock", "Frame types", read_flag, False, "switch the deblocking filter off"),
    Option("deblock", "Frame types", read_deblock, (0, 0), "deblocking offsets, strength and threshold, -6..6 each",
           "A:B", short="f"),

    Option("deblock_within_slices", "Frame types", read_flag, False, "filter no edge between slices"),

    Option("qp", "Quality", read_int, 26, "quantiser of P frames, 0 the finest", "INT", 0, 51, short="q"),
    Option("ipratio", "Quality", read_float, 1.4, "quantiser step of P frames over that of I frames", "FLOAT",
           0.25, 4.0),
    Option("chroma_qp_offset", "Quality", read_int, 0, "QP of chroma minus QP of luma", "INT", -12, 12),

    Option("partitions", "Analysis", read_partitions, "all", "p8x8, p4x4, i4x4, joined by commas; none; all. p8x8 "
           "stands for 16x8, 8x16 and 8x8 as well", "LIST", short="A"),
    Option("me", "Analysis", read_choice, "fsbm", "motion search: fsbm (esa) is the full search with SAD reuse; step "
           "looks at grids of candidates, ever finer (faster, CPU alone)",
           choices={"fsbm": "fsbm", "esa": "fsbm", "step": "step"}),
    Option("step_grid", "Analysis", read_grid, 7, "candidates along each side of a step's grid (slower): 3, 7 or 13",
           "INT", choices={"3": 3, "7": 7, "13": 13}),
    Option("merange", "Analysis", read_int, 16, "range of the motion search in samples (slower)", "INT", 4, 64),
    Option("subme", "Analysis", read_int, 4, "sub-sample refinement (slower): 0 none, 1 half samples, 2 quarter, "
           "3 quarter by SATD, 4 both by SATD; 5 also of partitions that seem to have no chance; "
           "6 modes by squared error and real bits as well (CPU alone)", "INT", 0, 6, short="m"),
    Option("trellis", "Analysis", read_int, 1, "1: levels of P frames are chosen by distortion and bits (slower), 0: "
           "by a dead zone", "INT", 0, 1, short="t"),

    Option("threads", "Running", read_int, 0, "threads; 0 = one a core, fewer for the stages of small frames. The "
           "stream is the same for any number", "INT", 0, 256),
    Option("device", "Running", read_choice, "auto", "where to encode; auto chooses by this machine and reports it",
           choices=_same("auto", "cpu", "cuda", "hybrid")),
    Option("gops", "Running", read_count, "auto", "closed GOPs (--keyint) encoded at once; auto = as many as pay where a "
           "file can be read in any order, else 1. The stream is the same for any number", "INT", 1, 64),
    Option("devices", "Running", read_devices, None, "the GPUs that take GOPs, in place of --device: cuda:0, cuda:1 "
           "and so on, joined by commas; or cpu", "LIST"),

    Option("tuning", "Running", read_text, None, "file of `h264lite tune` that says what devices take; else the one in the "
           "user's cache", "FILE"),

    Option("sar", "Video usability info", read_sar, None, "sample aspect ratio; else that of the input", "W:H"),
    Option("videoformat", "Video usability info", read_choice, None, "kind of the source", choices=VIDEO_FORMAT),
    Option("range", "Video usability info", read_choice, None, "range of the samples: limited (tv) or full (pc); auto "
           "= as the input", choices=RANGE),
    Option("colorprim", "Video usability info", read_choice, None, "colour primaries", choices=COLOUR_PRIMARIES),
    Option("transfer", "Video usability info", read_choice, None, "transfer characteristics", choices=TRANSFER),
    Option("colormatrix", "Video usability info", read_choice, None, "matrix coefficients", choices=COLOUR_MATRIX),

    Option("dump_yuv", "Reports", read_text, None, "write the reconstruction, equal to the output of a decoder", "FILE",
           scope=CLI),
    Option("psnr", "Reports", read_flag, True, "PSNR in the summary"),
    Option("ssim", "Reports", read_flag, False, "SSIM in the summary"),
    Option("csv", "Reports", read_text, None, "write a line per frame", "FILE", scope=CLI),
    Option("json", "Reports", read_text, None, "write the summary for programs", "FILE", scope=CLI),
    Option("trace", "Reports", read_text, None, "write the timeline of stages, copies and threads (Chrome trace "
           "format)", "FILE", scope=CLI),
    Option("trace_png", "Reports", read_text, None, "draw the timeline of some frames in the middle as a chart (needs "
           "matplotlib)", "FILE", scope=CLI),
    Option("verbose", "Reports", read_flag, False, "report the placement of the work, predicted and measured times",
           scope=CLI),
    Option("progress", "Reports", read_choice, "auto", "the progress line; auto = a live one on a terminal",
           choices=_same("auto", "plain", "json", "none"), scope=CLI),
    Option("quiet", "Reports", read_flag, False, "print nothing but errors", scope=CLI),
)

BY_NAME = {option.name: option for option in OPTIONS}
ALIASES = {"frame_rate": "fps", "bframe": "bframes"}

# x264's options that are not built, with the reason in the error.
_NO_RATE = "the quantiser is constant, see --qp"
_NO_B = "there are no B frames"
_NO_CABAC = "entropy coding is CAVLC (Constrained Baseline)"
_NO_8X8 = "there is no 8x8 transform (Constrained Baseline)"
_NO_ADAPT = "the quantiser is constant within a frame"
_NO_INTERLACE = "frames are progressive"
NOT_BUILT: dict[str, str] = {
    "crf": _NO_RATE, "bitrate": _NO_RATE, "vbv_maxrate": _NO_RATE, "vbv_bufsize": _NO_RATE, "vbv_init": _NO_RATE,
    "crf_max": _NO_RATE, "qpmin": _NO_RATE, "qpmax": _NO_RATE, "qpstep": _NO_RATE, "ratetol": _NO_RATE,
    "pass": _NO_RATE, "stats": _NO_RATE, "qcomp": _NO_RATE, "cplxblur": _NO_RATE, "qblur": _NO_RATE,
    "zones": _NO_RATE, "qpfile": _NO_RATE, "nal_hrd": _NO_RATE, "filler": _NO_RATE, "rc_lookahead": _NO_RATE,
    "aq_mode": _NO_ADAPT, "aq_strength": _NO_ADAPT, "no_mbtree": _NO_ADAPT, "mbtree": _NO_ADAPT,
    "bframes": _NO_B, "b_adapt": _NO_B, "b_bias": _NO_B, "b_pyramid": _NO_B, "direct": _NO_B, "pbratio": _NO_B,
    "weightb": _NO_B, "no_weightb": _NO_B, "open_gop": _NO_B,
    "weightp": "prediction is not weighted (Constrained Baseline)",
    "cabac": _NO_CABAC, "no_cabac": _NO_CABAC + " always", "8x8dct": _NO_8X8, "no_8x8dct": _NO_8X8 + " in any case",
    "cqm": _NO_8X8, "cqmfile": _NO_8X8,
    "no_trellis": "say --trellis 0",
    "deadzone_inter": "the dead zone is fixed", "deadzone_intra": "the dead zone is fixed",
    "psy_rd": "decisions follow distortion and bits alone", "no_psy": "decisions follow distortion and bits alone",
    "tff": _NO_INTERLACE, "bff": _NO_INTERLACE, "interlaced": _NO_INTERLACE, "fake_interlaced": _NO_INTERLACE,
    "pulldown": _NO_INTERLACE, "constrained_intra": "intra macroblocks predict from inter ones",
    "scenecut": "IDR frames come by --keyint alone", "no_scenecut": "IDR frames come by --keyint alone",
    "min_keyint": "IDR frames come by --keyint alone", "intra_refresh": "IDR frames come by --keyint alone",
    "tune": "presets have no tunings",
    "input_csp": "input is 8-bit I420", "output_csp": "output is 8-bit 4:2:0",
    "input_depth": "input is 8-bit", "output_depth": "output is 8-bit",
    "no_chroma_me": "the motion search takes luma alone", "mixed_refs": "each 8x8 partition has its own reference",
    "no_mixed_refs": "each 8x8 partition has its own reference", "mvrange": "the range follows from the level",
    "slice_max_size": "see --slices", "slice_max_mbs": "see --slices", "sliced_threads": "see --threads and --slices",
    "nr": "there is no noise reduction", "aud": "access unit delimiters are not written",
    "vf": "input is never filtered or rescaled", "output": "the output is the second argument",
    "config": "options come from the command line",
}
NOT_BUILT_SHORT = {"B": "bitrate", "b": "bframes", "i": "min_keyint", "p": "pass", "w": "weightb",
                   "8": "8x8dct", "o": "output"}
NOT_BUILT_VALUES = {
    ("me", ("dia", "hex", "umh", "tesa")): "is not built yet; fsbm (esa) and step are",
    ("profile", ("main", "high", "extended", "high10", "high422", "high444")): "is not built yet; baseline is",
}


def refuse_unbuilt(name: str, value: Any = None) -> None:
    """Raise OptionError if `name`, or `name` with `value`, is an option of x264 that is not built."""
    shown = name.replace("_", "-")
    if name in NOT_BUILT:
        raise OptionError(f"is not supported yet: {NOT_BUILT[name]}", shown)
    for (option, values), why in NOT_BUILT_VALUES.items():
        if name == option and isinstance(value, str) and value in values:
            raise OptionError(f"{value} {why}", shown)


def unknown_option(name: str, legal: Iterable[str]) -> OptionError:
    """The error for an unknown name, with the most similar known one."""
    near = difflib.get_close_matches(name, list(legal), 1, 0.6)
    return OptionError(f"unknown option {name[:60]!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def read_options(options: dict[str, Any], legal: Iterable[Option] = OPTIONS) -> dict[str, Any]:
    """Normal forms of all `legal` options: the user's value, else the preset's, else the default.

    Refuses unknown names with a near match and unbuilt ones with the reason. None stands for "not set".
    """
    table = {option.name: option for option in legal}
    asked: dict[str, Any] = {}
    for raw_name, value in options.items():
        name = ALIASES.get(raw_name, raw_name)
        if name in table:
            if name in asked:
                raise OptionError(f"{raw_name}: {name} is given twice, under two names")
            if value is not None:
                refuse_unbuilt(name, value)
                asked[name] = table[name].value(value)
        else:
            refuse_unbuilt(name)
            raise unknown_option(raw_name, table)
    merged = {name: option.default_value for name, option in table.items()}
    if "preset" in table:
        merged |= {name: BY_NAME[name].value(value) for name, value in preset(asked.get("preset", "medium")).items()}
    return merged | asked


def preset(name: str) -> dict[str, Any]:
    """The options of a preset: its row and all rows before it."""
    changes: dict[str, Any] = {}
    for row, values in PRESETS.items():
        changes |= values
        if row == name:
            break
    return changes
