"""Multipliers of the quantiser and scaling factors that follow from the scaling lists (8.5.9), a table for all kernels."""

import numpy as np

from ...standard.tables import (
    QUANT_MF,
    FLAT_4x4_16,
    FLAT_8x8_16,
    QUANT_MF_8x8,
    ZIGZAG_4x4_INVERSE,
    ZIGZAG_8x8_INVERSE,
    level_scale_4x4,
    level_scale_8x8,
)
from ..layout import SCALING_FINER, SCALING_SIZE, SCALING_WEIGHTS

_MOST = 32767  # multipliers are positive numbers of 16 bits


def is_flat(lists_4x4, lists_8x8):
    """Whether the scaling lists say what is inferred without them (7.4.2.1.1)."""
    return bool((lists_4x4 == 16).all() and (lists_8x8 == 16).all())


def _multipliers(flat, weights, finer):
    """Multipliers by those of a flat list: flat * 16 / (weights * 2^finer), rounded."""
    divisors = weights.astype(np.int64) << finer
    return (32 * flat.astype(np.int64) + divisors) // (2 * divisors)


def _strip(first, second):
    """Two tables [6, 16] -> [6 * 64]: of four blocks side by side, two of each."""
    return np.concatenate([block.reshape(6, 4, 4) for block in (first, first, second, second)], 2).reshape(-1)


def _without_dc(table):
    return np.concatenate([np.zeros((6, 1), np.int64), table[:, 1:]], 1)


def _by_columns(table):
    """[6, 64], raster order -> [6 * 128]: in the order of the levels of two 8x8 blocks."""
    columns = table.reshape(6, 8, 8).transpose(0, 2, 1)
    return np.concatenate([columns, columns], 2).reshape(-1)


def scaling_table(lists_4x4, lists_8x8):
    """The table of the scaling lists: int16[SCALING_SIZE], see layout.py.

    lists_4x4: int32[6, 16], Intra Y, Cb, Cr, Inter Y, Cb, Cr; lists_8x8: int32[2, 64], Intra Y, Inter Y; scan order, 1..255.

    A multiplier is MF * 16 / (weight * 2^finer), rounded, where MF is that of a flat list (standard/tables.py), and the
    quantiser shifts by `finer` bits less. finer is the least number for which all multipliers have 15 bits: 0 with flat
    lists, 1 with the default ones, at most 4. Scaling factors are LevelScale (8.5.9); LevelScale4x4 is divided by 16 if all
    lists are flat, and needs no right shift then.
    """
    weights = lists_4x4[:, ZIGZAG_4x4_INVERSE], lists_8x8[:, ZIGZAG_8x8_INVERSE]
    every = [(QUANT_MF, w) for w in weights[0]] + [(QUANT_MF_8x8, w) for w in weights[1]]
    finer = 0
    while any(_multipliers(flat, w, finer).max() > _MOST for flat, w in every):
        finer += 1
    unit = 16 if is_flat(lists_4x4, lists_8x8) else 1
    tables = []
    for group in range(2):
        y, cb, cr = (_multipliers(QUANT_MF, w, finer) for w in weights[0][3 * group : 3 * group + 3])
        scale_y, scale_cb, scale_cr = (level_scale_4x4(w) // unit for w in lists_4x4[3 * group : 3 * group + 3])
        tables += [_strip(y, y), _strip(_without_dc(y), _without_dc(y)), _strip(scale_y, scale_y)]
        tables += [_strip(cb, cr), _strip(_without_dc(cb), _without_dc(cr)), _strip(scale_cb, scale_cr)]
        tables += [y.reshape(-1), scale_y.reshape(-1)]
        tables.append(_by_columns(_multipliers(QUANT_MF_8x8, weights[1][group], finer)))
        tables.append(_by_columns(level_scale_8x8(lists_8x8[group])))
    table = np.zeros(SCALING_SIZE, np.int16)
    table[:SCALING_FINER] = np.concatenate(tables)
    table[SCALING_FINER] = finer
    lists = [of[group] for group in range(2) for of in (lists_4x4.reshape(2, 48), lists_8x8)]
    table[SCALING_WEIGHTS:] = np.concatenate(lists)
    return table


FLAT_SCALING = scaling_table(np.tile(FLAT_4x4_16, (6, 1)), np.tile(FLAT_8x8_16, (2, 1)))
