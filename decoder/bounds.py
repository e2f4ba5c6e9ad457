"""What the kernels of a slice or picture rely on, checked once before they run: they look at no bounds themselves.

Sizes of arrays follow from the parameters; parameters that index arrays or tables stay within them. What a kernel reads
from the stream it checks itself.
"""

import numpy as np

from ..standard.cabac_contexts import N_CONTEXTS
from . import layout as at
from .bitreader import PADDING
from .errors import StateError
from .layout import Macroblocks, Motion, Planes, References

# Slice parameters and the least and greatest value that kernels take; those of the picture's size: _picture_size.
RANGES = {
    at.P_SLICE_TYPE: (at.SLICE_P, at.SLICE_I),
    at.P_QP: (0, 51),
    at.P_REFS_0: (0, 32),
    at.P_REFS_1: (0, 32),
    at.P_CB_OFFSET: (-12, 12),
    at.P_CR_OFFSET: (-12, 12),
    at.P_LUMA_DENOM: (0, 7),
    at.P_CHROMA_DENOM: (0, 7),
    at.P_CABAC_INIT: (0, 3),
}


def check_slice_call(
    data: np.ndarray, s: np.ndarray, p: np.ndarray, mbs: Macroblocks, motion: Motion, planes: Planes
) -> None:
    """StateError unless a slice with the parameters `p` may be parsed and reconstructed in these arrays (layout.py)."""
    _expect({"p": (p, (at.N_PARAMETERS,)), "s": (s, (at.N_STATE,))})
    _pool_sizes(int(p[at.P_MB_WIDTH]), int(p[at.P_N_MB]), mbs, motion, planes)
    slots, n_mb = planes.y.shape[0], int(p[at.P_N_MB])
    for index, (low, high) in RANGES.items():
        _within(f"parameter {index}", int(p[index]), low, high)
    _within("first macroblock", int(p[at.P_FIRST_MB]), 0, n_mb - 1)
    _within("slice number", int(p[at.P_SLICE_ID]), 0, n_mb - 1)
    _within("place in the pool", int(p[at.P_SLOT]), 0, slots - 1)
    _within("place of the co-located picture", int(p[at.P_COL_SLOT]), -1, slots - 1)
    _within("1 / width", int(p[at.P_ROWS_PER_MB]), *[at.rows_per_mb(int(p[at.P_MB_WIDTH]))] * 2)
    bits = 8 * (data.size - PADDING)
    _within("end of the data", int(s[at.S_END]), 0, bits)
    _within("beginning of the data", int(s[at.S_POS]), 0, bits)


def check_references(references: References, factors: tuple[np.ndarray, np.ndarray], slots: int) -> None:
    """StateError unless the reference lists stay within a pool of `slots` pictures, and the factors are all there."""
    _expect({
        "slots": (references.slots, (2, 32)), "ids": (references.ids, (2, 32)), "scale": (references.scale, (32,)),
        "weights": (references.weights, (2, 32, 3, 2)), "implicit": (references.implicit, (32, 32)),
        "factors of 4x4 blocks": (factors[0], (2, 2, 52, 256)), "factors of 8x8 blocks": (factors[1], (2, 52, 64)),
    })  # fmt: skip
    _within("place of a reference", int(references.slots.max()), -1, slots - 1)


def check_deblocking_call(
    mbs: Macroblocks, table: np.ndarray, mb_width: int, planes: Planes, motion: Motion, slot: int
) -> None:
    """StateError unless a picture of these arrays may be deblocked; every macroblock has its row of the slice table."""
    _pool_sizes(mb_width, mbs.slice_id.size, mbs, motion, planes)
    _expect({"slice table": (table, (len(table), at.N_SLICE_COLUMNS))})
    _within("place in the pool", slot, 0, planes.y.shape[0] - 1)
    _within("slice of a macroblock", int(mbs.slice_id.min()), 0, len(table) - 1)
    _within("slice of a macroblock", int(mbs.slice_id.max()), 0, len(table) - 1)
    _within("QP of a macroblock", int(mbs.qp.max()), 0, 51)


def _pool_sizes(mb_width: int, n_mb: int, mbs: Macroblocks, motion: Motion, planes: Planes) -> None:
    """The arrays of a pool of pictures of n_mb macroblocks, as layout.py says."""
    mb_height, rest = divmod(n_mb, mb_width) if mb_width > 0 else (0, 1)
    if rest or mb_height <= 0:
        raise StateError(f"{n_mb} macroblocks are no rows of {mb_width}")
    h, w, slots = 16 * mb_height, 16 * mb_width, planes.y.shape[0]
    h4, w4, h8, w8 = h // 4, w // 4, h // 8, w // 8
    per_macroblock = {
        "slice_id", "mb_type", "transform_8x8", "cbp", "qp", "intra16x16_mode", "chroma_mode", "dc_coded", "bits",
    }  # fmt: skip
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(per_macroblock, (n_mb,)) | {
        "sub_type": (n_mb, 4), "intra_mode": (h4, w4), "nonzero": (h4, w4), "nonzero_chroma": (2, h8, w8),
        "mvd": (2, h4, w4, 2), "levels": (n_mb, at.LEVELS_PER_MB), "contexts": (N_CONTEXTS,),
    }  # fmt: skip
    _expect({name: (array, shapes[name]) for name, array in mbs._asdict().items()})
    _expect({
        "mv": (motion.mv, (slots, 2, h4, w4, 2)), "ref_idx": (motion.ref_idx, (slots, 2, h8, w8)),
        "ref_id": (motion.ref_id, (slots, 2, h8, w8)), "y": (planes.y, (slots, h, w)),
        "u": (planes.u, (slots, h // 2, w // 2)), "v": (planes.v, (slots, h // 2, w // 2)),
    })  # fmt: skip


def _expect(arrays: dict[str, tuple[np.ndarray, tuple[int, ...]]]) -> None:
    for name, (array, shape) in arrays.items():
        if array.shape != shape or not array.flags.c_contiguous:
            raise StateError(f"{name} is an array of {array.shape}, not {shape}")


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise StateError(f"{name} = {value} is outside {low}..{high}")
