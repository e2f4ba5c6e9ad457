"""What the page says about one decoded frame: its packed arrays, and a row of facts for timeline and panels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..decoder.picture import Frame, MacroblockArrays
from ..standard.macroblock import B_SKIP, I_PCM, LAST_INTRA, P_SKIP
from . import packing
from .access_units import AccessUnit
from .fullness import Fullness
from .parameter_text import slice_row
from .quality import Planes, Quality, compare
from .totals import FRAME_TYPES

LARGEST_BITS = 65535  # of a macroblock on the page; the standard allows 3200 (A.3.1)


@dataclass
class Coded:
    """What is known about a picture before it is decoded."""

    unit: AccessUnit
    fullness: Fullness | None


def type_of(frame: Frame) -> str:
    """I, P or B: the "largest" type of its slices."""
    return next((name for name in "BPI" if name in frame.slice_types), "I")


def sections_of(mbs: MacroblockArrays) -> dict[str, np.ndarray]:
    """The sections of packing.py that the decoder's arrays give."""
    return {
        "type": mbs.mb_type, "qp": mbs.qp, "cbp": mbs.cbp,
        "modes": mbs.transform_8x8 | mbs.chroma_mode << 1 | mbs.intra16x16_mode << 3, "slice": mbs.slice_id,
        "bits": np.minimum(mbs.bits, LARGEST_BITS), "coded": packing.block_mask(mbs.total_coeff),
        "sub": packing.sub_types(mbs.mb_type, mbs.sub_type), "intra": packing.intra_modes(mbs.mb_type, mbs.intra_mode),
        **packing.motion(mbs.mv, mbs.ref_idx),
    }  # fmt: skip


def quality_of(frame: Frame, source: Planes) -> Quality:
    """PSNR, SSIM and errors of a frame beside its source."""
    sps = frame.sps
    return compare((frame.y, frame.u, frame.v), source, sps.crop[0], sps.crop[2], sps.mb_width, sps.mb_height)


def row_of(frame: Frame, mbs: MacroblockArrays, coded: Coded, quality: Quality | None) -> dict[str, Any]:
    """The facts of a frame by name. bits: of its access unit; qp: mean QP_Y of the macroblocks but I_PCM."""
    unit = coded.unit
    qps = mbs.qp[mbs.mb_type != I_PCM]
    qps = qps if len(qps) else np.zeros(1, np.uint8)
    row: dict[str, Any] = {
        "coded": frame.decode_index, "type": FRAME_TYPES.index(type_of(frame)), "idr": int(frame.is_idr), "poc": frame.poc,
        "num": frame.frame_num, "ref": unit.slices[0][0].nal_ref_idc if unit.slices else 0, "bits": 8 * unit.size,
        "mb_bits": int(mbs.bits.sum()), "qp": round(float(qps.mean()), 4), "qp_least": int(qps.min()),
        "qp_most": int(qps.max()), "intra": int((mbs.mb_type <= LAST_INTRA).sum()),
        "skip": int(((mbs.mb_type == P_SKIP) | (mbs.mb_type == B_SKIP)).sum()),
        "slices": [slice_row(header, qp) for header, qp in unit.slices], "units": unit.names,
    }  # fmt: skip
    if frame.reference_lists:
        row["lists"] = frame.reference_lists
    if coded.fullness is not None:
        row["buffer"] = [coded.fullness.bits, coded.fullness.left, coded.fullness.size]
    if quality is not None:
        row["psnr"] = [round(value, 4) for value in quality.psnr]
        row["ssim"] = round(quality.ssim, 7)
    return row
