"""Profiles and levels (Annex A): names, Table A-1, the smallest level that holds a size, rate, buffer and vector range."""

from fractions import Fraction
from typing import NamedTuple


class Level(NamedTuple):
    """One row of Table A-1; bit rate and buffer in units of 1000 bits (1200 counted over NAL units, see NAL_FACTOR)."""

    name: str
    level_idc: int
    max_mbps: int  # macroblocks a second
    max_fs: int  # macroblocks a frame
    max_dpb_mbs: int  # macroblocks in the decoded picture buffer
    max_br: int
    max_cpb: int
    max_vmv_r: int  # vertical vectors: -max_vmv_r .. max_vmv_r - 0.25 luma samples
    min_cr: int  # compression ratio
    max_mvs_per_2mb: int  # vectors in two consecutive macroblocks of Main and High profile; 0 = no limit
    slice_rate: int  # Table A-4, SliceRate: macroblocks of max_mbps for each slice of a second; 0 = no limit


# Table A-1. Level 1b is left out of the choice: it is level 1 with twice the bit rate, signalled as level_idc 11 with
# constraint_set3_flag; whoever needs its bit rate gets level 1.1.
LEVELS = (
    Level("1", 10, 1485, 99, 396, 64, 175, 64, 2, 0, 0),
    Level("1.1", 11, 3000, 396, 900, 192, 500, 128, 2, 0, 0),
    Level("1.2", 12, 6000, 396, 2376, 384, 1000, 128, 2, 0, 0),
    Level("1.3", 13, 11880, 396, 2376, 768, 2000, 128, 2, 0, 0),
    Level("2", 20, 11880, 396, 2376, 2000, 2000, 128, 2, 0, 0),
    Level("2.1", 21, 19800, 792, 4752, 4000, 4000, 256, 2, 0, 0),
    Level("2.2", 22, 20250, 1620, 8100, 4000, 4000, 256, 2, 0, 0),
    Level("3", 30, 40500, 1620, 8100, 10000, 10000, 256, 2, 32, 22),
    Level("3.1", 31, 108000, 3600, 18000, 14000, 14000, 512, 4, 16, 60),
    Level("3.2", 32, 216000, 5120, 20480, 20000, 20000, 512, 4, 16, 60),
    Level("4", 40, 245760, 8192, 32768, 20000, 25000, 512, 4, 16, 60),
    Level("4.1", 41, 245760, 8192, 32768, 50000, 62500, 512, 2, 16, 24),
    Level("4.2", 42, 522240, 8704, 34816, 50000, 62500, 512, 2, 16, 24),
    Level("5", 50, 589824, 22080, 110400, 135000, 135000, 512, 2, 16, 24),
    Level("5.1", 51, 983040, 36864, 184320, 240000, 240000, 512, 2, 16, 24),
    Level("5.2", 52, 2073600, 36864, 184320, 240000, 240000, 512, 2, 16, 24),
    Level("6", 60, 4177920, 139264, 696320, 240000, 240000, 8192, 2, 16, 24),
    Level("6.1", 61, 8355840, 139264, 696320, 480000, 480000, 8192, 2, 16, 24),
    Level("6.2", 62, 16711680, 139264, 696320, 800000, 800000, 8192, 2, 16, 24),
)
LEVEL_1B = Level("1b", 11, 1485, 99, 396, 128, 350, 64, 2, 0, 0)

# A.3.1 j), Table A-2: bits a second per unit of max_br, over all NAL units: cpbBrNalFactor of Baseline, Main, Extended;
# of High.
NAL_FACTOR, NAL_FACTOR_HIGH = 1200, 1500

MAX_DPB_FRAMES = 16  # A.3.1 h)

PROFILE_NAMES = {
    44: "CAVLC 4:4:4 Intra", 66: "Baseline", 77: "Main", 88: "Extended", 100: "High", 110: "High 10", 122: "High 4:2:2",
    244: "High 4:4:4 Predictive",
}  # fmt: skip


def profile_name(profile_idc: int, constraint_set1_flag: int = 0, constraint_set3_flag: int = 0) -> str:
    """A.2: a profile's name from what a sequence parameter set says."""
    if profile_idc == 66 and constraint_set1_flag:
        return "Constrained Baseline"
    if profile_idc in (110, 122, 244) and constraint_set3_flag:
        return f"{PROFILE_NAMES[profile_idc]} Intra"
    return PROFILE_NAMES.get(profile_idc, f"profile {profile_idc}")


def level_name(level_idc: int, profile_idc: int = 66, constraint_set3_flag: int = 0) -> str:
    """A.3.1: a level's name from what a sequence parameter set says; "?" and the number where Table A-1 has none."""
    if level_idc == 9 or (level_idc == 11 and constraint_set3_flag and profile_idc in (66, 77, 88)):
        return LEVEL_1B.name
    return next((level.name for level in LEVELS if level.level_idc == level_idc), f"?{level_idc}")


def level_by_name(name: str) -> Level:
    """The row of Table A-1 with this name, "4.1", or this level_idc, "41"."""
    for level in LEVELS:
        if name in (level.name, str(level.level_idc), f"{level.name}.0"):
            return level
    raise ValueError(f"there is no level {name!r}; levels are {', '.join(level.name for level in LEVELS)}")


def max_dpb_frames(level: Level, mb_width: int, mb_height: int) -> int:
    """A.3.1 h): MaxDpbFrames, the most reference frames a stream of this level and frame size may use."""
    return min(level.max_dpb_mbs // (mb_width * mb_height), MAX_DPB_FRAMES)


def shortest_frame(level: Level) -> Fraction:
    """A.3.1 a): fR, seconds from one frame to the next at least."""
    return Fraction(1, 300 if level.level_idc >= 60 else 172)


def macroblocks_in_time(level: Level, frame: int, fps: Fraction | float) -> tuple[Fraction | float, Fraction | float]:
    """A.3.1 c), d), A.3.3 a), b): macroblocks for which the level has time in the first frame, and in later ones.

    frame: macroblocks of a frame. fps: of a constant rate, 0 = unknown.
    """
    first = max(Fraction(frame), level.max_mbps * shortest_frame(level))
    return first, level.max_mbps / fps if fps else first


def max_slices(level: Level, frame: int, fps: Fraction | float) -> int | None:
    """A.3.3 a), b): most slices of each frame, of Main and High profile, so of Constrained Baseline too; None = no limit."""
    return int(min(macroblocks_in_time(level, frame, fps)) / level.slice_rate) if level.slice_rate else None


def limits_exceeded(
    level: Level,
    mb_width: int,
    mb_height: int,
    fps: Fraction | float = 0,
    ref_frames: int = 1,
    max_mv_y: int = 0,  # the longest vertical vector, whole luma samples
    bitrate: int = 0,  # bits a second over all NAL units
    nal_factor: int = NAL_FACTOR,
    cpb_size: int = 0,  # bits of the coded picture buffer over all NAL units
    slices: int = 1,  # of a frame
) -> list[str]:
    """A.3.1, A.3.3: what of a stream goes beyond the level, one sentence a limit; empty where it fits.

    The least distance of two pictures (shortest_frame) is not among them: no decoder enforces it.
    """
    frame = mb_width * mb_height
    rate = fps * frame
    reasons = []
    if frame > level.max_fs:
        reasons.append(f"{frame} macroblocks a frame (at most {level.max_fs})")
    for side in ("width", "height"):
        macroblocks = mb_width if side == "width" else mb_height
        if macroblocks**2 > 8 * level.max_fs:
            reasons.append(f"{macroblocks} macroblocks of {side} (at most sqrt(8 * {level.max_fs}))")
    if rate > level.max_mbps:
        reasons.append(f"{float(rate):.0f} macroblocks a second (at most {level.max_mbps})")
    if ref_frames > max_dpb_frames(level, mb_width, mb_height):
        reasons.append(f"{ref_frames} reference frames (at most {max_dpb_frames(level, mb_width, mb_height)})")
    if max_mv_y > level.max_vmv_r:
        reasons.append(f"vertical vectors of {max_mv_y} samples (at most {level.max_vmv_r})")
    if bitrate > level.max_br * nal_factor:
        reasons.append(f"{bitrate} bits a second (at most {level.max_br * nal_factor})")
    if cpb_size > level.max_cpb * nal_factor:
        reasons.append(f"a buffer of {cpb_size} bits (at most {level.max_cpb * nal_factor})")
    most = max_slices(level, frame, fps)
    if most is not None and slices > most:
        reasons.append(f"{slices} slices a frame (at most {most})")
    return reasons


def smallest_level(
    mb_width: int,
    mb_height: int,
    fps: Fraction | float = 0,
    ref_frames: int = 1,
    max_mv_y: int = 0,
    bitrate: int = 0,
    nal_factor: int = NAL_FACTOR,
    cpb_size: int = 0,
    slices: int = 1,
) -> Level:
    """Table A-1: the lowest level that holds all this (units as in limits_exceeded); ValueError where none does."""
    reasons: list[str] = []
    for level in LEVELS:
        reasons = limits_exceeded(
            level, mb_width, mb_height, fps, ref_frames, max_mv_y, bitrate, nal_factor, cpb_size, slices
        )
        if not reasons:
            return level
    raise ValueError(f"no level of H.264 allows {'; '.join(reasons)}")
