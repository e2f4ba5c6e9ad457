"""Scaling lists for tests: flat ones, the default ones, and random ones over the whole range."""

import numpy as np
from h264lite.cpu_simd.bundles import Quantiser
from h264lite.cpu_simd.layout import SCALING_FINER, SCALING_SET
from h264lite.cpu_simd.quantiser.scaling import is_flat, scaling_table
from h264lite.cpu_simd.residual.transform import ScalingLists
from h264lite.encoder.settings.scaling_lists import NAMES
from h264lite.standard import tables

FLAT = np.full((6, 16), 16, np.int32), np.full((2, 64), 16, np.int32)
DEFAULT = (
    np.array([tables.DEFAULT_4x4_INTRA] * 3 + [tables.DEFAULT_4x4_INTER] * 3),
    np.array([tables.DEFAULT_8x8_INTRA, tables.DEFAULT_8x8_INTER]),
)


def random_lists(rng, least=1, most=255):
    """Each of the eight lists with other values, in scan order."""
    return rng.integers(least, most + 1, (6, 16)).astype(np.int32), rng.integers(least, most + 1, (2, 64)).astype(np.int32)


def kernel_lists(lists, inter=False):
    """ScalingLists of transform.py."""
    table = scaling_table(*lists)
    return ScalingLists(table, SCALING_SET * inter, int(table[SCALING_FINER]), None if is_flat(*lists) else 1)


def quantiser_of(qp, offset, lists, upload=None):
    """A Quantiser of bundles.py; upload: its table to a GPU."""
    table = scaling_table(*lists)
    return Quantiser(qp, offset, upload(table) if upload else table, None if is_flat(*lists) else 1)


def lists_named(name, rng):
    """FLAT, DEFAULT, or random lists over the whole range ("wild") or a part of it."""
    return {"flat": FLAT, "default": DEFAULT}.get(name) or random_lists(rng, *((1, 255) if name == "wild" else (6, 40)))


def multipliers(flat, weights, finer):
    """What a coefficient is multiplied by: flat: of flat lists, weights: both in raster order."""
    return np.array([round_half_up(int(mf) * 16, int(w) << finer) for mf, w in zip(flat, weights, strict=True)])


def round_half_up(a, b):
    return (2 * a + b) // (2 * b)


FLAT_LISTS = kernel_lists(FLAT)


def to_file(lists, path):
    """Writes the lists in JM's format; returns the path."""
    text = "# scaling lists of a test\n"
    for n, name in enumerate(NAMES):
        values, scan = (lists[0][n], tables.ZIGZAG_4x4_INVERSE) if n < 6 else (lists[1][n - 6], tables.ZIGZAG_8x8_INVERSE)
        side = 4 if n < 6 else 8
        rows = values[scan].reshape(side, side)
        text += f"{name} =\n" + "".join(",".join(map(str, row)) + ",\n" for row in rows)
    path.write_text(text)
    return path
