"""Annex A by what a stream says and holds: limits of its level, found in decoded macroblocks, slices and sizes.

Tables A-1, A-3 and A-4 are written here once more: nothing of the encoder is used.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from h264lite.decoder.picture import Frame
from h264lite.standard.macroblock import MB_TYPE_NAMES

from .hrd_model import access_units

# level_idc: MaxMBPS, MaxFS, MaxDpbMbs, MaxBR, MaxCPB, MaxVmvR, MinCR, MaxMvsPer2Mb, SliceRate; 0: no limit
LIMITS = {
    10: (1485, 99, 396, 64, 175, 64, 2, 0, 0), 11: (3000, 396, 900, 192, 500, 128, 2, 0, 0),
    12: (6000, 396, 2376, 384, 1000, 128, 2, 0, 0), 13: (11880, 396, 2376, 768, 2000, 128, 2, 0, 0),
    20: (11880, 396, 2376, 2000, 2000, 128, 2, 0, 0), 21: (19800, 792, 4752, 4000, 4000, 256, 2, 0, 0),
    22: (20250, 1620, 8100, 4000, 4000, 256, 2, 0, 0), 30: (40500, 1620, 8100, 10000, 10000, 256, 2, 32, 22),
    31: (108000, 3600, 18000, 14000, 14000, 512, 4, 16, 60), 32: (216000, 5120, 20480, 20000, 20000, 512, 4, 16, 60),
    40: (245760, 8192, 32768, 20000, 25000, 512, 4, 16, 60), 41: (245760, 8192, 32768, 50000, 62500, 512, 2, 16, 24),
    42: (522240, 8704, 34816, 50000, 62500, 512, 2, 16, 24), 50: (589824, 22080, 110400, 135000, 135000, 512, 2, 16, 24),
    51: (983040, 36864, 184320, 240000, 240000, 512, 2, 16, 24), 52: (2073600, 36864, 184320, 240000, 240000, 512, 2, 16, 24),
    60: (4177920, 139264, 696320, 240000, 240000, 8192, 2, 16, 24),
    61: (8355840, 139264, 696320, 480000, 480000, 8192, 2, 16, 24),
    62: (16711680, 139264, 696320, 800000, 800000, 8192, 2, 16, 24),
}  # fmt: skip
HIGH = 100
MOST_BITS = 3200  # A.3.1 n): of macroblock_layer()
SKIP_BITS = 40  # of mb_skip_run and the like, which the bits of a macroblock have besides
_SUB_PARTS = (1, 2, 2, 4, 1)  # of sub_type; direct: one vector for an 8x8 quadrant, by direct_8x8_inference_flag


def problems(stream: bytes, frames: list[Frame], limited: bool) -> list[str]:
    """What goes beyond the level, as sentences. frames: decoded with macroblocks. limited: sizes are promised (MinCR)."""
    sps = frames[0].sps
    mbps, fs, dpb, br, cpb, _, min_cr, _, slice_rate = LIMITS[sps.level_idc]
    width, height = sps.pic_width_in_mbs_minus1 + 1, sps.pic_height_in_map_units_minus1 + 1
    size, vui = width * height, sps.vui
    interval = Fraction(2 * vui.num_units_in_tick, vui.time_scale)
    texts = []

    def limit(what: str, value: Any, most: Any) -> None:
        if value > most:
            texts.append(f"{what}: {float(value):.1f}, at most {float(most):.1f} at level {sps.level_idc / 10}")

    limit("macroblocks a frame", size, fs)
    limit("squared side", max(width, height) ** 2, 8 * fs)
    limit("macroblocks a second", size / interval, mbps)
    held = max(sps.max_num_ref_frames, vui.max_dec_frame_buffering)
    limit("frames in the decoded picture buffer", held, min(dpb // size, 16))
    limit("frames reordered", vui.max_num_reorder_frames, vui.max_dec_frame_buffering)
    assert sps.frame_mbs_only_flag and sps.direct_8x8_inference_flag
    if vui.nal_hrd_parameters_present_flag:
        hrd, factor = vui.nal_hrd, 1500 if sps.profile_idc == HIGH else 1200
        limit("bit rate", (hrd.bit_rate_value_minus1[0] + 1) << (6 + hrd.bit_rate_scale), br * factor)
        limit("buffer", (hrd.cpb_size_value_minus1[0] + 1) << (4 + hrd.cpb_size_scale), cpb * factor)
    units = access_units(stream)[1]
    for n, unit in enumerate(units):
        first = max(Fraction(size), mbps * Fraction(1, 300 if sps.level_idc >= 60 else 172))
        time = mbps * interval if n else first  # macroblocks that the level has time for
        if slice_rate:
            limit(f"slices of picture {n}", unit.slices, time / slice_rate)
        if limited:
            limit(f"bytes of picture {n}", unit.nal_bytes, 384 * time / min_cr)
    for frame in frames:
        texts += _of_macroblocks(frame)
    return texts


def _of_macroblocks(frame: Frame) -> list[str]:
    """Vectors and bits of a frame's macroblocks."""
    arrays, level = frame.macroblocks, frame.sps.level_idc
    *_, vmv, _, most_vectors, _ = LIMITS[level]
    used = np.repeat(np.repeat((arrays.ref_idx >= 0).reshape(-1, 2, 2, 2), 2, 3), 2, 2).reshape(-1, 2, 16)
    x, y = (arrays.mv[..., k][used] for k in range(2))
    texts = []
    if x.size and (y.min() < -4 * vmv or y.max() > 4 * vmv - 1 or x.min() < -8192 or x.max() > 8191):
        texts.append(f"vectors from {x.min(), y.min()} to {x.max(), y.max()} in quarters of a sample")
    counts = np.array([_vectors(arrays, mb) for mb in range(len(arrays.mb_type))])
    if most_vectors and len(counts) > 1 and (counts[1:] + counts[:-1]).max() > most_vectors:
        texts.append(f"{(counts[1:] + counts[:-1]).max()} vectors in two macroblocks, at most {most_vectors}")
    names = np.array(MB_TYPE_NAMES)[arrays.mb_type]
    if level >= 31 and ((names == "B_8x8")[:, None] & (arrays.sub_type % 4 > 0)).any():
        texts.append("a B macroblock with blocks smaller than 8x8 (MinLumaBiPredSize)")
    if arrays.bits.max() > MOST_BITS + SKIP_BITS:
        texts.append(f"{arrays.bits.max()} bits of a macroblock")
    return texts


def _vectors(arrays: Any, mb: int) -> int:
    """Vectors of a macroblock, those of both lists, as A.3.1 m) counts them."""
    name = MB_TYPE_NAMES[arrays.mb_type[mb]]
    if name.startswith("I"):
        return 0
    lists = (arrays.ref_idx[mb] >= 0).sum(0)  # of each quadrant
    if name[2:] == "8x8":
        return sum(int(lists[q]) * _SUB_PARTS[arrays.sub_type[mb, q]] for q in range(4))
    quadrants = {"16x8": (0, 2), "8x16": (0, 1)}.get(name[2:], (0,))
    return int(sum(lists[q] for q in quadrants))
