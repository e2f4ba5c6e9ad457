"""What the page says about one frame: its packed arrays, and a row of facts for timeline and panels."""

from typing import Any

import numpy as np

from ..analysis.frame import BIT_UNIT, AnalysedFrame
from ..standard.macroblock import I_PCM, LAST_INTRA
from . import packing
from .access_unit import AccessUnit
from .fullness import Fullness
from .parameter_text import slice_row
from .quality import Planes, Quality, compare
from .totals import FRAME_TYPES

LARGEST = 65535  # of what the page has in 16 bits; a macroblock of 3200 bits is the largest that is legal (A.3.1)
KIND_SCALE = 4  # of a bit: the unit of bits by kind on the page
ENERGY_SCALE = 16  # of the root of the sum of squares of a macroblock's residual
KIND_NAMES = ("mb_type, modes, skip", "ref_idx, mvd, sub_mb_type", "cbp, transform flag, QP", "luma levels", "chroma levels")
QUADRANT_FIRST = [0, 2, 8, 10]  # 4x4 blocks in raster order


def sections_of(frame: AnalysedFrame) -> dict[str, np.ndarray]:
    """The sections of packing.py, and `area` beside them."""
    of = frame.by_macroblock
    mb_type, ref_idx = of("mb_type"), of("ref_idx")[:, :, QUADRANT_FIRST]
    modes = np.maximum(of("chroma_mode"), 0) << 1 | np.maximum(of("intra16x16_mode"), 0) << 3
    bits = (of("bits_by_kind") * KIND_SCALE + BIT_UNIT // 2) // BIT_UNIT
    energy = np.rint(np.sqrt(of("residual_energy")) * ENERGY_SCALE)
    return {
        "type": mb_type, "qp": of("qp"), "cbp": of("cbp"), "modes": modes | of("transform_8x8"), "slice": of("slice_id"),
        "bits": np.minimum(of("bits"), LARGEST), "kinds": np.minimum(bits, LARGEST).T,
        "energy": np.minimum(energy, LARGEST), "coded": packing.block_mask(of("total_coeff")),
        "sub": packing.sub_types(mb_type, of("sub_type")), "intra": packing.intra_modes(mb_type, of("intra_mode")),
        **packing.motion(of("mv"), ref_idx), "indices": ref_idx,
    }  # fmt: skip


def quality_of(frame: AnalysedFrame, source: Planes) -> Quality:
    """PSNR, SSIM and errors of a frame beside its source."""
    assert frame.samples is not None
    return compare(frame.samples, source, frame.crop[0], frame.crop[2], frame.mb_width, frame.mb_height)


def row_of(frame: AnalysedFrame, unit: AccessUnit, fullness: Fullness | None, quality: Quality | None) -> dict[str, Any]:
    """The facts of a frame by name. bits: of its access unit; qp: mean QP_Y of the macroblocks but I_PCM."""
    mbs = frame.macroblocks
    qps = mbs.qp[mbs.mb_type != I_PCM]
    qps = qps if len(qps) else np.zeros(1, np.uint8)
    row: dict[str, Any] = {
        "coded": frame.coding_index, "type": FRAME_TYPES.index(frame.frame_type), "idr": int(frame.is_idr), "poc": frame.poc,
        "num": frame.frame_num, "ref": frame.nal_ref_idc, "bits": frame.bits, "mb_bits": frame.bits - frame.header_bits,
        "qp": round(float(qps.mean()), 4), "qp_least": int(qps.min()), "qp_most": int(qps.max()),
        "intra": int((mbs.mb_type <= LAST_INTRA).sum()), "skip": int(mbs.skip.sum()),
        "slices": [slice_row(one.header, one.qp) for one in frame.slices], "units": unit.names,
    }  # fmt: skip
    if frame.references:
        row["lists"] = [one.references for one in frame.slices]
    if fullness is not None:
        row["buffer"] = [fullness.bits, fullness.left, fullness.size]
    if quality is not None:
        row["psnr"] = [round(value, 4) for value in quality.psnr]
        row["ssim"] = round(quality.ssim, 7)
    return row
