"""x264's options that are none here: values that ask for nothing, what stands for others, and why the rest is refused."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...console import MESSAGE_LEVELS
from .option_types import OF_VALUES, OptionValues

_NO_RATE = "rate control has no such setting"
_NO_CABAC = "entropy coding is CAVLC in Baseline profile, see --profile and --no-cabac"
_NO_8X8 = "the 8x8 transform is a tool of High profile, see --profile and --no-8x8dct"
_NO_INTERLACE = "frames are progressive, deinterlace before: ffmpeg -i IN -vf yadif out.y4m"
_BLURAY = "say its limits one by one, as --level 4.1 --slices 4 --vbv-maxrate 40000 --vbv-bufsize 30000 --nal-hrd vbr"
_TIMES = "times come from the input, which may be a .mp4 or .mkv, from --tcfile-in or from --fps"
_CONVERT = "convert before: ffmpeg -i IN -pix_fmt yuv420p out.y4m"
_RESIZE = "filter and scale before: ffmpeg -i IN -vf FILTERS -f yuv4mpegpipe - | h264lite encode - OUT"
_MESSAGES = "redirect messages: h264lite encode IN OUT 2> FILE"
_ONE_BY_ONE = "give each option by its name, as crf=20"

# Options with a value, by reason: the values that describe what the encoder does in any case, separated by blanks.
_WITH_VALUE: dict[str, dict[str, str]] = {
    _NO_RATE: {"qpstep": "", "cplxblur": "", "qblur": ""},
    "direct prediction of B frames is spatial": {"direct": "spatial 1"},
    _NO_INTERLACE: {"pulldown": "none"},
    _CONVERT: {
        "input_csp": "i420", "input_depth": "8", "input_fmt": "", "output_csp": "i420", "output_depth": "8",
        "pix_fmt": "yuv420p", "pixelformat": "yuv420p",
    },
    "samples keep their range, see --range": {"input_range": "auto"},
    "the range follows from the level, see --level": {"mvrange": "-1", "mvrange_thread": "-1"},
    "slices have equally many rows of macroblocks, see --slices, or at most so many bytes, see --slice-max-size": {
        "slice_max_mbs": "0", "slice_min_mbs": "0", "slices_max": "0",
    },
    "there is no noise reduction, filter before": {"nr": "0"},
    _RESIZE: {"vf": "", "video_filter": ""},
    "the output is the first argument of write_video and VideoWriter": {"output": ""},
    "options come from the command line": {"config": ""},
    "the stream does not say it, ffmpeg -bsf:v h264_metadata can add it": {
        "overscan": "undef", "chromaloc": "0", "crop_rect": "0,0,0,0",
    },
    "the stream does not say it, leave it out": {
        "alternative_transfer": "undef", "frame_packing": "",
    },
    "there is one sequence parameter set, with number 0": {"sps_id": "0"},
    _TIMES: {"tcfile_out": "", "timebase": ""},
    _MESSAGES: {"log_file": "", "log_file_level": ""},
    "IN is - for standard input, and --demuxer says its format": {"stdin": ""},
    "choose --profile baseline, main or high": {"avcintra_class": "", "avcintra_flavor": ""},
    # of FFmpeg, PyAV, OpenCV and imageio
    "the stream is H.264, leave it out": {
        "codec": "h264 libx264 x264 avc1", "vcodec": "h264 libx264 x264 avc1", "fourcc": "avc1 h264 H264",
    },
    "use --keyint": {"gop_size": ""},
    "use --bframes": {"max_b_frames": ""},
    "use --fps": {"framerate": ""},
    "it is an argument of VideoWriter.write and Encoder.encode, for single frames": {"keyframe": "", "qp_offsets": ""},
    "use crf in its place, 0..51, lower is better, 23 by itself": {"quality": ""},
    "the index of an MP4 (moov) stands in front anyway; fragment=SECONDS makes fragments": {
        "movflags": "faststart +faststart",
    },
    "any size is coded as it is": {"macro_block_size": "1"},
    _ONE_BY_ONE: {"options": "", "x264_params": "", "x264opts": "", "ffmpeg_params": "", "output_params": ""},
}  # fmt: skip

# Switches for what the encoder never does, by reason: --name is refused and --no-name accepted.
_NEVER: dict[str, tuple[str, ...]] = {
    "GOPs are closed": ("open_gop",),
    "times are not compressed": ("dts_compress",),
    _NO_INTERLACE: ("tff", "bff", "interlaced", "fake_interlaced"),
    "intra macroblocks may predict from inter ones, leave it out": ("constrained_intra",),
    "the motion search uses luma only": ("chroma_me",),
    _BLURAY: ("bluray_compat",),
}

# Switches for what the encoder always does: --name is accepted and --no-name refused.
_ALWAYS: dict[str, tuple[str, ...]] = {
    "each 8x8 partition has its own reference, see --ref 1": ("mixed_refs",),
    "P_Skip is always tested early": ("fast_pskip",),
    "levels that cost more than they gain are always dropped": ("dct_decimate",),
    _TIMES: ("force_cfr",),
    "the stream is the same on every processor": ("cpu_independent",),
    "headers depend on the options only": ("stitchable",),
}

# Switches for tools that profiles have; --no-name is an option
_TOOLS_OF_PROFILES = {"cabac": ("main", "high"), "8x8dct": ("high",)}

# Switches without an opposite: accepted, refused.
_ACCEPTED: dict[str, tuple[str, ...]] = {
    "see --no-weightb": ("weightb",), "see --no-mbtree": ("mbtree",), "see --psy-rd and --no-psy": ("psy",),
}  # fmt: skip
_REFUSED: dict[str, tuple[str, ...]] = {
    "the ending of the output's name decides: .264 is Annex B": ("annexb",),
}

# Tools that a stream does without: --lenient leaves these out
DISPENSABLE = frozenset((
    "qpstep", "cplxblur", "qblur", "direct", "mvrange", "mvrange_thread", "slices_max", "slice_min_mbs", "nr", "open_gop",
    "dts_compress", "no_chroma_me", "chroma_me", "no_mixed_refs", "no_fast_pskip", "no_dct_decimate", "no_cpu_independent",
    "no_stitchable", "no_force_cfr", "cabac", "8x8dct", "weightb", "mbtree", "psy",
))  # fmt: skip

# About how the machine works, and so nothing about the stream: accepted, and it is said that they have no effect
HINTS: dict[str, str] = {
    "sliced_threads": "frames have as many slices as --slices says, whatever the threads",
    "lookahead_threads": "the lookahead shares --threads",
    "sync_lookahead": "the lookahead shares --threads",
    "thread_input": "files are read ahead anyway",
    "non_deterministic": "the stream is the same for any number of threads",
    "asm": "the variable H264LITE_SIMD chooses instructions",
    "no_asm": "the variable H264LITE_SIMD chooses instructions",
    "opencl": "--device chooses a GPU",
    "opencl_clbin": "--device chooses a GPU",
    "opencl_device": "--device chooses a GPU",
    "index": "no index is needed",
}
_HINT_SWITCHES = ("sliced_threads", "thread_input", "non_deterministic", "no_asm", "opencl")

_OFF = ("ssim", "aud", "filler", "pic_struct", "slow_firstpass")  # switches that are off anyway
# What says in x264's words, with a value, what other options say here. Those of messages are of the command alone
EQUAL: dict[tuple[str, Any], OptionValues] = {
    ("no_progress", True): {"progress": "none"},
    ("no_trellis", True): {"trellis": 0},
    ("no_b_adapt", True): {"b_adapt": 0},
    **{(name, False): {f"no_{name}": True} for name in ("cabac", "8x8dct", "weightb", "mbtree", "psy")},
    **{("log_level", said): {"log_level": name} for name, number in MESSAGE_LEVELS.items() for said in (name, str(number))},
    **{("demuxer", name): {"demuxer": "av"} for name in ("lavf", "ffms")},
    ("slices", "0"): {},
    **{(f"no_{name}", True): {} for name in ("sliced_threads", "thread_input", "non_deterministic", "opencl", *_OFF)},
}
_EQUAL_SWITCHES = ("no_progress", "no_trellis", "no_b_adapt", "no_sliced_threads", "no_thread_input", "no_non_deterministic",
                   "no_opencl", *(f"no_{name}" for name in _OFF))  # fmt: skip
SPELLINGS = {"nf": "no_deblock", "filter": "deblock", "analyse": "partitions", "cqmfile": "cqm"}
SHORT = {"w": "weightb", "8": "8x8dct", "o": "output"}


class Values(NamedTuple):
    """Values of an option here that x264 has beside those of the table. nearest: what --lenient takes; "" = refused."""

    name: str
    values: tuple[str, ...]
    why: str
    nearest: str = ""


VALUES = (
    Values("me", ("tesa",), "choose dia, hex, umh, fsbm (esa) or step", "esa"),
    Values("trellis", ("2",), "it would gain 0.1 % for half as much time again, use --trellis 1", "1"),
    Values("profile", ("extended", "high10", "high422", "high444"), "choose baseline, main or high; " + _CONVERT),
    Values("level", ("1b", "9"), "choose 1.1, which holds more"),
    Values("colormatrix", ("GBR",), "RGB becomes YCbCr, choose bt709"),
    Values("muxer", ("flv",), "write .mp4 or .mkv, and then ffmpeg -i out.mp4 -c copy out.flv"),
    Values("demuxer", ("avs",), "pipe the script's frames: avs2yuv IN - | h264lite encode - OUT"),
)
# Numbers of which x264 takes more than there are here: --lenient takes the nearest
CLAMPED = frozenset((
    "ref", "bframes", "b_bias", "scenecut", "rc_lookahead", "qp", "crf", "qpmin", "qpmax", "qcomp", "ratetol", "ipratio",
    "pbratio", "aq_strength", "chroma_qp_offset", "merange", "subme", "trellis", "deadzone_inter", "deadzone_intra",
))  # fmt: skip


class Unbuilt(NamedTuple):
    """One option. neutral: the accepted values; of a switch True, False (Python) or none."""

    name: str
    why: str
    neutral: tuple[Any, ...]
    is_switch: bool = False

    def accepts(self, value: object, other: Callable[[str], object]) -> bool:
        """Whether `value` asks for nothing that is not built. other: the value in use of an option that is built."""
        if self.is_switch:
            value = truth(value)
        if self.name in _TOOLS_OF_PROFILES:
            return value is True and other("profile") in _TOOLS_OF_PROFILES[self.name] and other(f"no_{self.name}") is False
        if self.name in ("weightb", "mbtree", "psy") and value is True:
            return other(f"no_{self.name}") is False
        if self.name == "direct" and _comparable(value) in map(_comparable, ("none", "0")):
            return bool(other("bframes") == 0)
        if self.name == "no_mixed_refs" and value is True:
            return bool(other("ref") == 1)
        if self.is_switch:
            return isinstance(value, bool) and value in self.neutral
        return not isinstance(value, bool) and _comparable(value) in map(_comparable, self.neutral)


def truth(value: object) -> object:
    """True or False also for 1 and 0 as FFmpeg writes switches; other values as they are."""
    if type(value) is int and value in (0, 1):
        return bool(value)
    return {"0": False, "1": True}.get(value, value) if isinstance(value, str) else value


def _comparable(value: object) -> tuple[Any, ...]:
    """The numbers and words of a value: "0:0.0", (0, 0) and "0,0" are alike."""
    try:
        words = re.split("[:,]", value) if isinstance(value, str) else value if isinstance(value, tuple | list) else [value]
        return tuple(map(_number, words))
    except OF_VALUES:
        return ()


def _number(word: Any) -> Any:
    try:
        return float(word)
    except (TypeError, ValueError, OverflowError):
        return word if isinstance(word, str) else None


def _rows() -> Iterator[Unbuilt]:
    for why, names in _WITH_VALUE.items():
        for name, values in names.items():
            yield Unbuilt(name, why, tuple(values.split()))
    for table, always in ((_NEVER, False), (_ALWAYS, True)):
        for why, switches in table.items():
            for name in switches:
                yield Unbuilt(name, why, (always,), is_switch=True)
                yield Unbuilt(f"no_{name}", why, (not always,), is_switch=True)
    for name, why in (("cabac", _NO_CABAC), ("8x8dct", _NO_8X8)):
        yield Unbuilt(name, why, (), is_switch=True)
    for table, neutral in ((_ACCEPTED, (True,)), (_REFUSED, ())):
        for why, switches in table.items():
            for name in switches:
                yield Unbuilt(name, why, neutral, is_switch=True)


UNBUILT = {row.name: row for row in _rows()}
# Whether an option of x264 that is none here takes no value
IS_SWITCH: dict[str, bool] = {
    **{row.name: row.is_switch for row in UNBUILT.values()},
    **{name: name in _HINT_SWITCHES for name in HINTS},
    **{name: value is True for name, value in EQUAL if name in _EQUAL_SWITCHES},
}  # fmt: skip
