"""Residency: which rows of which arrays are valid in which memory, and intervals of rows."""

from collections.abc import Mapping
from functools import cache

from ..arrays import KEPT_ARRAYS, PREVIOUS, PREVIOUS_FRAME_ARRAYS, REFERENCE_ARRAYS, Key

Rows = tuple[tuple[int, int], ...]  # intervals, sorted, apart
Residency = tuple[tuple[Key, tuple[tuple[str, Rows], ...]], ...]  # valid rows of each array in each memory
NOTHING: Residency = ()


@cache
def resident_in(memory: str, n_references: int, mb_height: int, has_b_frames: bool = False) -> Residency:
    """Residency after a frame that was done in one memory, with `n_references` references; has_b_frames: see Size."""
    names = [name for name in REFERENCE_ARRAYS if has_b_frames or name not in KEPT_ARRAYS]
    keys = [(name, k) for name in names for k in range(n_references)]
    keys += [(name, PREVIOUS) for name in PREVIOUS_FRAME_ARRAYS if not has_b_frames]
    return freeze({key: {memory: ((0, mb_height),)} for key in keys})


def union(rows: Rows, row0: int, row1: int) -> Rows:
    """`rows` and [row0, row1)."""
    apart = [(a, b) for a, b in rows if b < row0 or a > row1]
    touching = [(a, b) for a, b in rows if not (b < row0 or a > row1)]
    joined = (min([row0, *(a for a, _ in touching)]), max([row1, *(b for _, b in touching)]))
    return tuple(sorted([*apart, joined])) if row1 > row0 else rows


def without(rows: Rows, row0: int, row1: int) -> Rows:
    """`rows` less [row0, row1)."""
    return tuple((a, b) for x, y in rows for a, b in ((x, min(y, row0)), (max(x, row1), y)) if a < b)


def common(rows: Rows, row0: int, row1: int) -> Rows:
    """`rows` inside [row0, row1)."""
    return tuple((max(a, row0), min(b, row1)) for a, b in rows if max(a, row0) < min(b, row1))


def freeze(valid: Mapping[Key, Mapping[str, Rows]]) -> Residency:
    """The residency as a hashable value."""
    return tuple(
        sorted((key, tuple(sorted((m, rows) for m, rows in rows_in.items() if rows))) for key, rows_in in valid.items())
    )
