"""Which arrays, and which rows of them, each stage reads and writes: follows from both tables (arrays.py, stages.py)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from .arrays import (
    ALL_REFS,
    ALL_ROWS,
    ARRAYS,
    CONSTANTS,
    CONTINUED,
    CURRENT,
    NEVER_COPIED,
    OF_B_STREAMS,
    PREVIOUS,
    SEARCH,
    SEARCHED_REF,
    SECOND_LIST,
    VIEWS,
    ArrayRow,
    Halo,
    Key,
    check_stages,
)
from .stages import EVEN, ROWS, STAGES, TABLE


def _arrays_of(name: str) -> tuple[Key, ...]:
    """The arrays of a name of the stage table, with numbers as in VIEWS."""
    if name in VIEWS:
        return VIEWS[name].of
    return ((name, SEARCHED_REF if ARRAYS[name].role == SEARCH else CURRENT),)


class RefLists(NamedTuple):
    """Both lists of a frame. references: number of the reference of each entry of list 0, then of list 1, among those that
    are kept; n_ref1: entries of list 1, None in streams without B frames.
    """

    references: tuple[int, ...] = ()
    n_ref1: int | None = None

    @property
    def continued(self) -> int:
        """See CONTINUED."""
        return self.references[-self.n_ref1 if self.n_ref1 else 0]


def storage(name: str, entry: int, ref_lists: RefLists) -> tuple[Key, ...]:
    """The arrays whose rows are copied for a name of the stage table, in a step for one entry of both lists.

    Arrays of the search count entries. Arrays of list 1 have the same values everywhere in frames without list 1.
    """
    if name in CONSTANTS:
        return ()
    keys: list[Key] = []
    for base, number in _arrays_of(name):
        role = ARRAYS[base].role
        if role in NEVER_COPIED or not _is_used(role, number, ref_lists):
            continue
        if number == ALL_REFS:
            numbers: Iterable[int] = (
                range(len(ref_lists.references)) if role == SEARCH else dict.fromkeys(ref_lists.references)
            )
        elif number == SEARCHED_REF:
            numbers = (entry if role == SEARCH else ref_lists.references[entry],)
        else:
            numbers = (ref_lists.continued if number == CONTINUED else number,)
        keys += [(base, k) for k in numbers]
    return tuple(keys)


def _is_used(role: str, number: int, ref_lists: RefLists) -> bool:
    """Whether frames with these lists have an array of this role."""
    if ref_lists.n_ref1 is None:
        return role not in OF_B_STREAMS
    return number != PREVIOUS and (role != SECOND_LIST or ref_lists.n_ref1 > 0)


@dataclass(frozen=True)
class Access:
    """Use of one array by a stage. halo_rows: rows above and below its own that it reads, None: it reads none."""

    key: Key
    halo_rows: Halo | None
    writes: bool


@cache
def accesses(name: str, entry: int, ref_lists: RefLists) -> tuple[Access, ...]:
    """All arrays that a stage reads or writes; see `storage`."""
    stage = STAGES[name]
    own_rows = (0, 0) if stage.split in (ROWS, EVEN) else ALL_ROWS
    uses = []
    for argument in (*stage.reads, *stage.written):
        access = stage.access[argument]
        halo_rows = _halo(argument, ref_lists).get(name, own_rows) if "R" in access else None
        uses += [Access(key, halo_rows, "W" in access) for key in storage(argument, entry, ref_lists)]
    return tuple(uses)


def _halo(name: str, ref_lists: RefLists) -> Mapping[str, Halo]:
    row = VIEWS.get(name) or ARRAYS.get(name)
    if isinstance(row, ArrayRow) and ref_lists.n_ref1 is not None:
        return {**row.halo, **row.halo_of_b}
    return row.halo if row else {}


check_stages(TABLE)  # not where an encode starts: it takes as long as all other work of arrays.py
