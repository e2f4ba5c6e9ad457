"""The arguments of stages that are the same for all frames of an encode."""

from collections.abc import Callable

import numpy as np

from ...cpu_simd.decisions.common import BY_COST_INTRA
from ...cpu_simd.decisions.quantise import DEAD_ZONE_INTER, DEAD_ZONE_INTRA, ROUNDING
from ...cpu_simd.decisions.search import DIA, HEX, UMH
from ...cpu_simd.quantiser.scaling import scaling_table
from ...standard.sample_format import MB_HEIGHT_C, SUB_WIDTH_C, chroma_shape
from ..bundles import A, State
from ..coding_settings import CodingSettings

PATTERNS = {"dia": DIA, "hex": HEX, "umh": UMH}  # by --me
BY_DEFAULT = 21, 11  # deadzone_inter, deadzone_intra
MASK_16x16, MASK_16x8, MASK_8x8, MASK_8x4, MASK_4x4 = 1, 2, 4, 8, 16  # partition sizes, down to the one named


def constants(settings: CodingSettings, constant: Callable[[np.ndarray], A]) -> State:
    """By name; constant: makes an array that no stage writes, in their memory."""
    beyond_baseline = settings.cabac or settings.transform_8x8_mode or settings.has_b_frames
    chroma_height, chroma_width = chroma_shape(settings.height, settings.width)
    return {
        "pad": settings.pad, "chroma_pad": settings.pad // SUB_WIDTH_C, "luma_unit": 16, "chroma_unit": MB_HEIGHT_C,
        "width": settings.width, "height": settings.height,
        "chroma_width": chroma_width, "chroma_height": chroma_height,
        "merange": settings.merange, "pattern": (PATTERNS.get(settings.me, DIA), settings.merange),
        "step_grid": settings.step_grid, "max_mv_y": settings.max_mv_y, "subme": settings.subme,
        "intra_subme": min(settings.subme, BY_COST_INTRA - 1) if settings.refresh_cycle else settings.subme,
        "mb_width": settings.mb_width, "partition_mask": _partition_mask(settings.partitions, settings.max_mvs_per_2mb),
        "chroma_qp_offset": settings.chroma_qp_offset, "has_scaling_lists": 1 if settings.has_scaling_lists else None,
        "trellis": settings.trellis,
        "transform_8x8_mode": int(settings.transform_8x8_mode) if beyond_baseline else None,
        "cabac": int(settings.cabac) if beyond_baseline else None,
        "dead_zone_inter": _dead_zone(settings.deadzone_inter, BY_DEFAULT[0], DEAD_ZONE_INTER),
        "dead_zone_intra": _dead_zone(settings.deadzone_intra, BY_DEFAULT[1], DEAD_ZONE_INTRA),
        "intra_8x8": int("i8x8" in settings.partitions), "psy_rd": round(256 * settings.psy_rd),
        "alpha_offset": 2 * settings.deblock_alpha, "beta_offset": 2 * settings.deblock_beta,
        "disable_idc": settings.disable_deblocking_idc,
        "slice_first_mb": constant(_slice_first_mb(settings)), "slice_starts": constant(_slice_starts(settings)),
        "mb_ends": None, "least_qp": settings.least_qp, "most_qp": settings.most_qp,
        "scaling": constant(_scaling(settings)),
    }  # fmt: skip


def _partition_mask(partitions: frozenset[str], max_mvs_per_2mb: int) -> int:
    """The bit mask of decisions.ALL_PARTITIONS.

    Table A-1: 8x4 and 4x8 make at most 8 vectors a macroblock, 4x4 16; a limit of 16 for two macroblocks excludes 4x4.
    """
    unlimited = max_mvs_per_2mb in (0, 32)
    small = (MASK_8x4 | MASK_4x4) if unlimited else MASK_8x4
    return MASK_16x16 | ("p8x8" in partitions) * (MASK_16x8 | MASK_8x8) | ("p4x4" in partitions) * small


def _slice_first_mb(settings: CodingSettings) -> np.ndarray:
    """int32[n_mb]: address of the first macroblock of the slice that holds a macroblock."""
    first, end = np.array(settings.slice_ranges).T
    return np.repeat(first, end - first).astype(np.int32)


def _slice_starts(settings: CodingSettings) -> np.ndarray:
    """int32[n_slices + 1]: address of the first macroblock of each slice, then n_mb."""
    return np.array([*(first for first, _ in settings.slice_ranges), settings.n_mb], np.int32)


def _scaling(settings: CodingSettings) -> np.ndarray:
    """int16[SCALING_SIZE]: the table of the scaling lists."""
    lists = settings.scaling_lists
    return scaling_table(np.array(lists[:6], np.int32), np.array(lists[6:], np.int32))


def _dead_zone(option: int, default: int, of_default: int) -> int:
    """The kernels' number for a dead zone in 1 / 64 of a step on both sides of 0; the default stands for a sixth, a third."""
    return of_default if option == default else ROUNDING * (32 - option) // 64
