"""What the kernels of a slice or picture rely on, checked once before they run: they look at no bounds themselves.

Sizes of arrays follow from the parameters; parameters that index arrays or tables stay within them. What a kernel reads
from the stream it checks itself.
"""

import numpy as np

from ..standard.cabac_contexts import N_CONTEXTS
from . import layout as at
from .bitreader import PADDING
from .errors import StateError
from .layout import References
from .picture import Checked, Pool

INT64_MAX = (1 << 63) - 1
# Slice parameters and the least and greatest value that kernels take, but for those of a picture's size.
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
    pool: Pool, p: np.ndarray, s: np.ndarray, size: int, references: References, factors: tuple[np.ndarray, np.ndarray]
) -> None:
    """StateError unless a slice with the parameters `p` may be decoded in the arrays of the pool (layout.py).

    s: the reader's state before; size: of the data with its padding; factors: as of scaling.py.
    """
    checked = _checked(pool)
    if p.shape != checked.low.shape or ((p - checked.low).view(np.uint64) > checked.span).any():
        raise StateError(f"slice parameters {p.tolist()} leave a picture of {pool.mb_width} x {pool.mb_height} macroblocks")
    bits = 8 * (size - PADDING)
    if s.shape != (at.N_STATE,) or not (0 <= s[at.S_POS] <= bits and 0 <= s[at.S_END] <= bits):
        raise StateError(f"the slice data of {bits} bits end before {s[at.S_POS]} or {s[at.S_END]}")
    if references.slots.shape != (2, 32) or references.slots.max() >= pool.slots:
        raise StateError(f"references {references.slots.tolist()} are outside a pool of {pool.slots} pictures")
    _expect(
        ids=(references.ids, (2, 32)),
        scale=(references.scale, (32,)),
        weights=(references.weights, (2, 32, 3, 2)),
        implicit=(references.implicit, (32, 32)),
        factors_4x4=(factors[0], (2, 2, 52, 256)),
        factors_8x8=(factors[1], (2, 52, 64)),
    )


def check_deblocking_call(pool: Pool, table: np.ndarray, slot: int) -> None:
    """StateError unless the picture at `slot` may be deblocked; every macroblock has its row of the slice table."""
    _checked(pool)
    if table.shape[1:] != (at.N_SLICE_COLUMNS,) or not 0 <= slot < pool.slots:
        raise StateError(f"a slice table of {table.shape}, slot {slot} of {pool.slots}")
    if pool.mbs.slice_id.view(np.uint32).max() >= len(table):  # -1 is large
        raise StateError(f"slices {pool.mbs.slice_id.min()} to {pool.mbs.slice_id.max()} in a table of {len(table)}")


def _checked(pool: Pool) -> Checked:
    """What holds for the arrays of the pool, which are looked at once as long as they are the same."""
    arrays = (pool.mbs, pool.motion, pool.planes, pool.traces, pool.mb_width, pool.mb_height, pool.slots)
    if pool.checked is None or any(a is not b for a, b in zip(arrays, pool.checked.arrays)):
        _check_sizes(pool)
        pool.checked = Checked(arrays, *_limits(pool))
    return pool.checked


def _limits(pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Least values and spans of all slice parameters."""
    n_mb = pool.mb_width * pool.mb_height
    ranges = RANGES | {
        at.P_FIRST_MB: (0, n_mb - 1), at.P_SLICE_ID: (0, n_mb - 1), at.P_N_MB: (n_mb, n_mb),
        at.P_MB_WIDTH: (pool.mb_width, pool.mb_width), at.P_ROWS_PER_MB: (at.rows_per_mb(pool.mb_width),) * 2,
        at.P_SLOT: (0, pool.slots - 1), at.P_COL_SLOT: (-1, pool.slots - 1),
    }  # fmt: skip
    every = [ranges.get(index, (0, INT64_MAX)) for index in range(at.N_PARAMETERS)]
    return np.array([low for low, _ in every]), np.array([high - low for low, high in every], np.uint64)


def _check_sizes(pool: Pool) -> None:
    """The arrays of a pool, as layout.py says."""
    n_mb, slots = pool.mb_width * pool.mb_height, pool.slots
    h, w = 16 * pool.mb_height, 16 * pool.mb_width
    h4, w4, h8, w8 = h // 4, w // 4, h // 8, w // 8
    mbs = {
        "sub_type": (n_mb, 4), "intra_mode": (h4, w4), "nonzero": (h4, w4), "nonzero_chroma": (2, h8, w8),
        "mvd": (2, h4, w4, 2), "levels": (n_mb, at.LEVELS_PER_MB), "contexts": (N_CONTEXTS,),
        "bits_by_kind": (n_mb, at.N_KINDS),
    }  # fmt: skip
    _expect(**{name: (array, mbs.get(name, (n_mb,))) for name, array in pool.mbs._asdict().items()})
    motion, planes = pool.motion, pool.planes
    _expect(
        mv=(motion.mv, (slots, 2, h4, w4, 2)),
        ref_idx=(motion.ref_idx, (slots, 2, h8, w8)),
        ref_id=(motion.ref_id, (slots, 2, h8, w8)),
        y=(planes.y, (slots, h, w)),
        u=(planes.u, (slots, h // 2, w // 2)),
        v=(planes.v, (slots, h // 2, w // 2)),
    )
    traces = pool.traces
    if traces.energy.size == 0:
        h = w = h4 = w4 = n_mb = 0
    _expect(
        prediction_y=(traces.y, (h, w)),
        prediction_u=(traces.u, (h // 2, w // 2)),
        prediction_v=(traces.v, (h // 2, w // 2)),
        energy=(traces.energy, (n_mb,)),
        strengths=(traces.strengths, (2 if n_mb else 0, h4, w4)),
    )


def _expect(**arrays: tuple[np.ndarray, tuple[int, ...]]) -> None:
    for name, (array, shape) in arrays.items():
        if array.shape != shape or not array.flags.c_contiguous:
            raise StateError(f"{name} is an array of {array.shape}, not {shape}")
