"""x264's options whose tools are not built: values that ask for nothing are accepted, others refused with the reason."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .option_types import OF_VALUES

_NO_RATE = "rate control has no such setting, see --bitrate"
_SPATIAL = "direct prediction of B frames is spatial"
_WEIGHTB = "see --no-weightb"
_MBTREE = "see --no-mbtree"
_NO_CABAC = "entropy coding is CAVLC in Baseline profile, see --profile and --no-cabac"
_NO_8X8 = "the 8x8 transform is a tool of High profile, see --profile and --no-8x8dct"
_MATRICES = "scaling matrices come from a file, see --cqm"
_NO_INTERLACE = "frames are progressive"
_PSY = "see --psy-rd and --no-psy"
_IDR = "IDR frames come by --keyint and --scenecut"
_TIMES = "the frame rate is constant, see --fps"
_LUMA_SEARCH = "the motion search uses luma only"
_SLICES = "see --slices"

# Options with a value, by reason: the values that describe what the encoder does in any case, separated by blanks.
_WITH_VALUE: dict[str, dict[str, str]] = {
    _NO_RATE: {
        "qpstep": "", "cplxblur": "", "qblur": "",
        "sync_lookahead": "0", "lookahead_threads": "",
    },
    _SPATIAL: {"direct": "spatial 1"},
    _MATRICES: {"cqmfile": ""},
    _NO_INTERLACE: {"pulldown": "none"},
    "input is 8-bit I420": {"input_csp": "i420", "input_depth": "8", "input_fmt": ""},
    "output is 8-bit 4:2:0": {"output_csp": "i420", "output_depth": "8"},
    "samples keep their range, see --range": {"input_range": "auto"},
    "the range follows from the level": {"mvrange": "-1", "mvrange_thread": "-1"},
    _SLICES: {"slice_max_size": "0", "slice_max_mbs": "0", "slice_min_mbs": "0", "slices_max": "0"},
    "there is no noise reduction": {"nr": "0"},
    "input is never filtered or rescaled": {"vf": "", "video_filter": ""},
    "the output is the second argument": {"output": ""},
    "options come from the command line": {"config": ""},
    "it is not written": {
        "overscan": "undef", "chromaloc": "0", "alternative_transfer": "undef", "crop_rect": "0,0,0,0", "frame_packing": "",
    },
    "there is one sequence parameter set, with number 0": {"sps_id": "0"},
    _TIMES: {"tcfile_in": "", "tcfile_out": "", "timebase": ""},
    "no index is needed": {"index": ""},
    "see --quiet, --verbose and --progress": {"log_level": "", "log_file": "", "log_file_level": ""},
    "see --device": {"opencl_clbin": "", "opencl_device": ""},
    "the variable H264LITE_SIMD chooses instructions": {"asm": ""},
    "choose baseline, main or high": {"avcintra_class": "", "avcintra_flavor": ""},
}  # fmt: skip

# Switches for what the encoder never does, by reason: --name is refused and --no-name accepted.
_NEVER: dict[str, tuple[str, ...]] = {
    "GOPs are closed": ("open_gop",),
    "times are not compressed": ("dts_compress",),
    _NO_INTERLACE: ("tff", "bff", "interlaced", "fake_interlaced"),
    "intra macroblocks may predict from inter ones": ("constrained_intra",),
    _IDR: ("intra_refresh",),
    _LUMA_SEARCH: ("chroma_me",),
    "see --threads and --slices": ("sliced_threads",),
    "what Blu-ray demands is not checked": ("bluray_compat",),
    "see --device": ("opencl",),
    "the stream is the same for any number of threads": ("non_deterministic",),
    "no thread for input is needed": ("thread_input",),
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
_ACCEPTED: dict[str, tuple[str, ...]] = {_WEIGHTB: ("weightb",), _MBTREE: ("mbtree",), _PSY: ("psy",)}
_REFUSED: dict[str, tuple[str, ...]] = {
    "use --trellis 0": ("no_trellis",),
    "use --progress none": ("no_progress",),
    "the variable H264LITE_SIMD chooses instructions": ("no_asm",),
    "the ending of the output's name decides: .264 is Annex B": ("annexb",),
}

SHORT = {"w": "weightb", "8": "8x8dct", "o": "output"}
VALUES = {  # of options that are built
    ("me", ("tesa",)): "choose dia, hex, umh, fsbm (esa) or step",
    ("trellis", ("2",)): "it would gain 0.1 % for half as much time again, use --trellis 1",
    ("profile", ("extended", "high10", "high422", "high444")): "choose baseline, main or high",
}


class Unbuilt(NamedTuple):
    """One option. neutral: the accepted values; of a switch True, False (Python) or none."""

    name: str
    why: str
    neutral: tuple[Any, ...]
    is_switch: bool = False

    def accepts(self, value: object, other: Callable[[str], Any]) -> bool:
        """Whether `value` asks for nothing that is not built. other: the value in use of an option that is built."""
        if self.name in _TOOLS_OF_PROFILES:
            return value is True and other("profile") in _TOOLS_OF_PROFILES[self.name] and other(f"no_{self.name}") is False
        if self.name in ("weightb", "mbtree", "psy") and value is True:
            return other(f"no_{self.name}") is False
        if self.name == "direct" and _parts(value) in map(_parts, ("none", "0")):
            return bool(other("bframes") == 0)
        if self.name == "no_mixed_refs" and value is True:
            return bool(other("ref") == 1)
        if self.is_switch:
            return isinstance(value, bool) and value in self.neutral
        return not isinstance(value, bool) and _parts(value) in map(_parts, self.neutral)


def _parts(value: object) -> tuple[Any, ...]:
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
