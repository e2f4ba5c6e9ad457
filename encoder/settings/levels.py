"""Chooses the level: the lowest of Table A-1 whose limits hold for size, frame rate, references, vectors and rate."""

from fractions import Fraction

from ...standard.levels import LEVELS, Level, level_by_name, limits_exceeded, smallest_level
from ..errors import OptionError
from .pyramid import dpb_frames

_BEYOND_RANGE = 4  # samples: partitions and refinement may exceed the search range by this


def choose_level(
    width: int, height: int, fps: Fraction, ref: int, bframes: int, b_pyramid: str, merange: int, slices: int,
    name: str | None, rates: tuple[int, int, int] = (0, 0, 0),
) -> Level:  # fmt: skip
    """The level to declare; OptionError names the option that exceeds all levels, or the level that was name for.

    rates: bits a second, of the buffer or on average, bits of the coded picture buffer, and the factor of the profile for
    both; see limits_exceeded.
    """
    rate, size, factor = rates
    mb_width, mb_height = -(-width // 16), -(-height // 16)
    reach = merange + _BEYOND_RANGE
    rates_and_size = rate, factor, size
    largest, frames = LEVELS[-1], dpb_frames(ref, bframes, b_pyramid)
    for (option, value), limits in (
        (("", f"size {width}x{height}"), (0, 0)),
        (("fps", str(fps)), (fps, 0)),
        (("ref", str(ref)), (fps, ref)),
        (("bframes", str(bframes)), (fps, dpb_frames(ref, bframes, "none"))),
        (("b-pyramid", b_pyramid), (fps, frames)),
        (("slices", str(slices)), (fps, frames, 0, 0, factor, 0, slices)),
        (("vbv-maxrate", str(rate // 1000)), (fps, frames, 0, rate, factor)),
        (("vbv-bufsize", str(size // 1000)), (fps, frames, 0, rate, factor, size)),
    ):
        reasons = limits_exceeded(largest, mb_width, mb_height, *limits)
        if reasons:
            raise OptionError(f"{value}: beyond level {largest.name}, the highest: {'; '.join(reasons)}", option)
    if name is None:
        return smallest_level(mb_width, mb_height, fps, frames, reach, *rates_and_size, slices)
    level = level_by_name(name)
    reasons = limits_exceeded(level, mb_width, mb_height, fps, frames, reach, *rates_and_size, slices)
    if reasons:
        raise OptionError(f"{name}: does not allow {'; '.join(reasons)}", "level")
    return level
