"""The coded picture buffer of a stream (Annex C): what options promise about it, as the stream says it."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from ...standard.levels import LEVELS, NAL_FACTOR, NAL_FACTOR_HIGH, Level, macroblocks_in_time
from ...standard.syntax_sei import CLOCKS
from ..errors import OptionError

_KBIT = 1000  # bits
_RATE_UNIT, _SIZE_UNIT = 64, 16  # E.2.2: bits a second of bit_rate_value, bits of cpb_size_value
_LONGEST = (1 << 32) - 1  # clocks of initial_cpb_removal_delay
_LUMA_AND_CHROMA = 384  # A.3.1: bytes of a macroblock without compression
_OF_BUFFER = ("nal_hrd", "filler", "vbv_init", "crf_max")


class Buffer(NamedTuple):
    """rate, in bits a second, and size, in bits, are numbers that hrd_parameters() can say."""

    rate: int
    size: int
    start: int  # bits in it when the first frame is taken out
    constant: bool  # bits come at a constant rate, with filler data
    compared: tuple[int, int]  # most bytes of the first and of later frames by MinCR (A.3.1)


def requested_buffer(values: Mapping[str, Any], user_options: Mapping[str, Any]) -> tuple[int, int]:
    """(bits a second, bits) of vbv_maxrate and vbv_bufsize, (0, 0) without; OptionError for what contradicts.

    values: normal forms of all options; user_options: those of the user.
    """
    rate, size = (values[name] * _KBIT for name in ("vbv_maxrate", "vbv_bufsize"))
    if not rate or not size:
        if rate or size:
            raise OptionError(f"needs --vbv-{'bufsize' if rate else 'maxrate'}", "vbv-maxrate" if rate else "vbv-bufsize")
        for name in _OF_BUFFER:
            if values[name] not in (False, "none") and user_options.get(name) is not None:
                raise OptionError("has no effect without --vbv-maxrate and --vbv-bufsize", name.replace("_", "-"))
        return 0, 0
    if values["crf"] is None and not values["bitrate"]:
        raise OptionError("QPs are constant: a buffer contradicts --qp", "vbv-maxrate")
    if values["crf_max"] and (values["bitrate"] or values["crf_max"] < values["crf"]):
        less = f"{values['crf_max']}: less than --crf {values['crf']}"
        raise OptionError("is for --crf, not for --bitrate" if values["bitrate"] else less, "crf-max")
    rate, size = rate // _RATE_UNIT * _RATE_UNIT, size // _SIZE_UNIT * _SIZE_UNIT
    if size * values["fps"] < rate:
        least = -(-rate / values["fps"] // _KBIT)
        raise OptionError(f"{values['vbv_bufsize']}: less than a frame of --vbv-maxrate; at least {least}", "vbv-bufsize")
    if CLOCKS * size // rate > _LONGEST:
        text = f"{values['vbv_bufsize']}: --vbv-maxrate takes more than {_LONGEST // CLOCKS} s to fill it"
        raise OptionError(text, "vbv-bufsize")
    if values["gops"] not in (0, 1):
        raise OptionError(f"{values['gops']}: a buffer is filled by one GOP after another; use 1", "gops")
    return rate, size


def nal_factor(high: bool) -> int:
    """A.3.1 j), A.3.3: what MaxBR and MaxCPB are multiplied by."""
    return NAL_FACTOR_HIGH if high else NAL_FACTOR


def average_rate(bitrate: int, high: bool) -> int:
    """Bits a second that the level must allow for --bitrate without a buffer: an aim, no more than the highest allows."""
    return min(bitrate * _KBIT, LEVELS[-1].max_br * nal_factor(high))


def buffer_of(values: Mapping[str, Any], requested: tuple[int, int], level: Level, n_mb: int) -> Buffer | None:
    """The buffer of an encode; requested: see `requested_buffer`; n_mb: macroblocks of a frame."""
    rate, size = requested
    if not rate:
        return None
    init, fps = Fraction(values["vbv_init"]), values["fps"]
    start = int(init * size if init <= 1 else init * _KBIT)
    start = min(size, max(start, -(-rate // fps)))
    compared = tuple(int(_LUMA_AND_CHROMA * most / level.min_cr) for most in macroblocks_in_time(level, n_mb, fps))
    return Buffer(rate, size, start, values["filler"] or values["nal_hrd"] == "cbr", compared)  # type: ignore[arg-type]
