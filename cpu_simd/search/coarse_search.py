"""Best vector of each macroblock in a coarse frame, by SADs of 4x4 coarse samples that four macroblocks share."""
# Samples of 8 bits only: differences of bytes.

from collections import namedtuple

import numpy as np

from ...jit.kernel import helper
from ..costs.bit_costs import mvd_bits
from ..decisions.search import COARSE_X, COARSE_Y
from ..layout import COARSE_PAD
from ..simd.lanes import first_where, smallest
from ..simd.search import quarter_sads, where_below, window_of
from ..simd.vector import (
    SIMD_LEVEL,
    WIDE,
    add,
    add_sat_u,
    aligned,
    lane_numbers_like,
    lanes_of,
    load_like,
    min_u,
    splat_u16x16,
    splat_u16x32,
    store,
)

widest = splat_u16x32 if SIMD_LEVEL == WIDE else splat_u16x16  # of a candidate in each lane
VECTORS = 4 * COARSE_X * COARSE_Y  # candidates, rows from above
_COLUMNS = 2 * COARSE_X  # candidates side by side

# SADs of quads, of 4x4 coarse samples each, at all candidates: a macroblock's 8x8 are four quads, and the next macroblock's
# two of these. Quad q of row r lies half a macroblock before macroblock (q, r).
Quads = namedtuple("Quads", (
    "sads",  # uint16[(mb_width + 1) * VECTORS], of the last quad computed in each column
    "key",  # int64[mb_width + 1], which one that is, see _quad_key
    "pairs",  # uint16[2 * VECTORS], sums of two quads one above the other, of columns q at q % 2
    "pair_key",  # int64[2], which ones these are, by the upper quad
))  # fmt: skip
NOWHERE = -1


@helper
def vector_costs(lam, cost):
    """cost: uint16[VECTORS]: lam * bits of each vector of the coarse search; favours 0 in flat areas."""
    for dy in range(-COARSE_Y, COARSE_Y):
        for dx in range(-COARSE_X, COARSE_X):
            cost[(dy + COARSE_Y) * _COLUMNS + dx + COARSE_X] = lam * mvd_bits(dx, dy, 0, 0)


@helper
def make_quads(mb_width):
    """Quads of a frame so wide, none of them computed."""
    sads, key = aligned(2 * VECTORS * (mb_width + 1)).view(np.uint16), aligned(8 * (mb_width + 1)).view(np.int64)
    pairs, pair_key = aligned(4 * VECTORS).view(np.uint16), aligned(16).view(np.int64)
    for q in range(key.size):
        key[q] = NOWHERE
    pair_key[0] = pair_key[1] = NOWHERE
    return Quads(sads, key, pairs, pair_key)


@helper
def _quad_key(q, row, centre_x, centre_y):
    """A number for quad q of a row and the centre of its candidates."""
    return q << 48 | row << 32 | (centre_x & 0xFFFF) << 16 | centre_y & 0xFFFF


@helper
def _know_pair(source, reference, q, my, quads, centre_x, centre_y):
    """Quads q of rows my and my + 1 -> quads.pairs, unless they are there; the lower one stays in quads.sads."""
    sads, key, pairs, pair_key = quads
    slot, like = q & 1, widest(0)
    here = _quad_key(q, my, centre_x, centre_y)
    if pair_key[slot] == here:
        return
    stride, lanes = source.shape[1], lanes_of(like)
    for row in range(my + 1 if key[q] == here else my, my + 2):
        at = (COARSE_PAD + 4 * row - 2) * stride + COARSE_PAD + 4 * q - 2
        corner = at + (centre_y - COARSE_Y) * stride + centre_x - COARSE_X
        for g in range(0, _COLUMNS, lanes):
            w0, w1 = window_of(reference, corner + g, like), window_of(reference, corner + stride + g, like)
            w2 = window_of(reference, corner + 2 * stride + g, like)
            for dy in range(2 * COARSE_Y):
                w3 = window_of(reference, corner + (dy + 3) * stride + g, like)
                upper = add(quarter_sads(source, at, w0, like), quarter_sads(source, at + stride, w1, like))
                lower = quarter_sads(source, at + 2 * stride, w2, like)
                total = add(upper, add(lower, quarter_sads(source, at + 3 * stride, w3, like)))
                k = dy * _COLUMNS + g
                store(pairs, slot * VECTORS + k, add(load_like(like, sads, q * VECTORS + k), total))
                store(sads, q * VECTORS + k, total)
                w0, w1, w2 = w1, w2, w3
    pair_key[slot] = here
    key[q] = _quad_key(q, my + 1, centre_x, centre_y)


@helper
def coarse_vector(source, reference, mx, my, cost, quads, centre_x=0, centre_y=0):
    """Returns the best vector (x, y), in coarse samples, of the 8x8 coarse samples round macroblock (mx, my).

    The search window lies at (centre_x, centre_y), from where the vector is counted; cost: from vector_costs; quads: Quads
    of these two frames. The first of equal candidates wins, rows from above.
    """
    _know_pair(source, reference, mx, my, quads, centre_x, centre_y)
    _know_pair(source, reference, mx + 1, my, quads, centre_x, centre_y)
    lanes = lanes_of(widest(0))
    least, rank = np.int64(65536), np.int64(0)
    for g in range(0, _COLUMNS, lanes):
        low, row = widest(65535), widest(0)
        for dy in range(2 * COARSE_Y):
            k = dy * _COLUMNS + g
            total = add(load_like(low, quads.pairs, k), load_like(low, quads.pairs, VECTORS + k))
            total = add_sat_u(total, load_like(low, cost, k))
            row = where_below(total, low, widest(k), row)
            low = min_u(total, low)
        value = np.int64(smallest(low))
        lane = np.int64(first_where(low, value, add(row, lane_numbers_like(low))))
        if value < least or (value == least and lane < rank):
            least, rank = value, lane
    return rank % _COLUMNS - COARSE_X, rank // _COLUMNS - COARSE_Y
