"""The arrays of the stage table by macroblock rows: layout, storage behind each name, rows that stages read.

An array is identified by storage and number: NEW for the frame in the loop, k for arrays of reference k of RefPicList0
(reference 0 is the frame before). Names of the stage table are views of such arrays: "reference_y" is the integer samples of
the reference that a step searches, "ref_luma" the integer and half samples of all references.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from .stages import EVEN, ROWS, STAGES

NEW = -1  # the frame in the loop
THIS, EACH = "the reference of the step", "each reference"
Key = tuple[str, int]  # storage, number

# kinds of arrays
MACROBLOCKS, PER_ROW, PLANE, PADDED, COARSE, INDEX = "macroblocks", "rows", "plane", "padded plane", "coarse", "index"
COARSE_BORDER = 32  # coarse samples


@dataclass(frozen=True)
class Layout:
    """size: bytes a macroblock (MACROBLOCKS) or row (PER_ROW), else samples a side of a macroblock; planes: equal planes."""

    kind: str
    size: int
    planes: int = 1


@dataclass(frozen=True)
class Size:
    """Size of a frame in macroblocks; pad: border of luma references in samples."""

    mb_width: int
    mb_height: int
    pad: int


_ROW_BYTES = {"ssd_y": 8, "ssd_u": 8, "ssd_v": 8}
_MACROBLOCK_BYTES = {
    "mb_type": 1, "sub_mb_type": 4, "ref_idx": 4, "mv": 64, "intra4x4_mode": 16, "intra16x16_mode": 1,
    "intra_chroma_mode": 1, "cbp": 1, "qp": 1, "total_coeff": 24, "levels": 864, "centre": 4, "predictor": 4,
    "search_cost": 164, "search_mv": 164, "intra_cost": 4, "intra_modes": 16,
}  # fmt: skip
LAYOUTS: dict[str, Layout] = (
    {name: Layout(MACROBLOCKS, size) for name, size in _MACROBLOCK_BYTES.items()}
    | {name: Layout(PER_ROW, size) for name, size in _ROW_BYTES.items()}
    | {name: Layout(PLANE, 16 if name[-1] == "y" else 8) for name in
       ("source_y", "source_u", "source_v", "rec_y", "rec_u", "rec_v")}
    | {"luma": Layout(PADDED, 16), "half": Layout(PADDED, 16, 3), "cb": Layout(PADDED, 8), "cr": Layout(PADDED, 8)}
    | {"coarse_source": Layout(COARSE, 4), "coarse_reference": Layout(COARSE, 4)}
    | {"level_index": Layout(INDEX, 4)}
)  # fmt: skip

# Names of the stage table whose storage has another name, or another number than NEW
_ALIASES: dict[str, tuple[tuple[str, int | str], ...]] = {
    "reference_y": (("luma", THIS),),
    "reference_luma": (("luma", THIS), ("half", THIS)),
    "ref_luma": (("luma", EACH), ("half", EACH)),
    "ref_chroma": (("cb", EACH), ("cr", EACH)),
    "decoded_y": (("luma", NEW),), "decoded_u": (("cb", NEW),), "decoded_v": (("cr", NEW),),
    "out_y": (("luma", NEW),), "out_u": (("cb", NEW),), "out_v": (("cr", NEW),),
    "decoded_luma": (("luma", NEW),), "decoded_half": (("half", NEW),),
    "previous_ref_idx": (("ref_idx", 0),), "previous_mv": (("mv", 0),),
    "centre": (("centre", THIS),), "predictor": (("predictor", THIS),),
    "search_cost": (("search_cost", THIS),), "search_mv": (("search_mv", THIS),),
    "all_predictor": (("predictor", EACH),), "all_cost": (("search_cost", EACH),), "all_mv": (("search_mv", EACH),),
}  # fmt: skip

# Arguments that are equal on all devices, or used on one device only: never copied
CONSTANTS = frozenset(
    "pad chroma_pad luma_unit chroma_unit width height chroma_width chroma_height merange step_grid max_mv_y subme mb_width "
    "partition_mask chroma_qp_offset trellis alpha_offset beta_offset disable_idc slice_first_mb lambdas n_ref "
    "ref_slots distance progress level_blocks slice_rows frame_params slice_data slice_sizes "
    "given_y given_u given_v given_uv given_rgb pitch chroma_pitch plane_pitch".split()
)

# Rows above and below its own rows that a stage reads of an array; ALL: all rows, by motion vectors
ALL = (1 << 20, 1 << 20)
_REACH: dict[tuple[str, str], tuple[int, int]] = {
    ("search_centre", "reference_y"): ALL,
    ("search_centre", "coarse_source"): (1, 1),
    ("search_centre", "coarse_reference"): (3, 3),
    ("full_search", "reference_y"): ALL,
    ("step_search", "reference_y"): ALL,
    ("subpel_refine", "reference_luma"): ALL,
    ("intra_estimate", "source_y"): (1, 0),
    ("inter_residual", "ref_luma"): ALL,
    ("inter_residual", "ref_chroma"): ALL,
    ("mark_skipped", "ref_idx"): (1, 0),
    ("mark_skipped", "mv"): (1, 0),
    ("interpolate", "decoded_luma"): (1, 1),
} | {("deblock", name): (1, 1) for name in ("rec_y", "rec_u", "rec_v", "mb_type", "ref_idx", "mv", "total_coeff", "qp")}

# Arrays that a stage changes only in part, so that their rows must be resident before
_CHANGED: dict[str, tuple[str, ...]] = {
    "subpel_refine": ("search_cost", "search_mv"),
    "inter_residual": ("mb_type", "ref_idx", "mv"),
    "intra": tuple(STAGES["intra"].writes.split()),
    "mark_skipped": ("mb_type",),
    "extend_luma": ("decoded_y",), "extend_cb": ("decoded_u",), "extend_cr": ("decoded_v",),
}  # fmt: skip

RESULTS = (  # input of the entropy coding, without levels, and statistics of a frame
    "mb_type", "sub_mb_type", "ref_idx", "mv", "intra4x4_mode", "intra16x16_mode", "intra_chroma_mode", "cbp", "qp",
    "total_coeff", "ssd_y", "ssd_u", "ssd_v",
)  # fmt: skip
SOURCES, DECODED = ("source_y", "source_u", "source_v"), ("luma", "cb", "cr")
REFERENCE_ARRAYS = ("luma", "half", "cb", "cr")  # of each reference; next line: of the frame before
PREVIOUS_FRAME_ARRAYS = ("ref_idx", "mv")


def storage(name: str, reference: int, n_ref: int) -> tuple[Key, ...]:
    """The arrays behind a name of the stage table, in a step for one reference."""
    if name in CONSTANTS:
        return ()
    found: list[Key] = []
    for base, number in _ALIASES.get(name, ((name, NEW),)):
        if number == EACH:
            found += [(base, k) for k in range(n_ref)]
        else:
            found.append((base, reference if isinstance(number, str) else number))
    return tuple(found)


@dataclass(frozen=True)
class Access:
    """Use of one array by a stage. reach: rows above and below its own that it reads, None: it reads none."""

    key: Key
    reach: tuple[int, int] | None
    writes: bool


@cache
def accesses(name: str, reference: int, n_ref: int) -> tuple[Access, ...]:
    """All arrays that a stage reads or writes."""
    stage = STAGES[name]
    written = stage.writes.split()
    own = (0, 0) if stage.split in (ROWS, EVEN) else ALL
    found = []
    for argument in [*stage.reads, *written]:
        writes = argument in written
        reads = not writes or argument in _CHANGED.get(name, ())
        reach = _REACH.get((name, argument), own) if reads else None
        found += [Access(key, reach, writes) for key in storage(argument, reference, n_ref)]
    return tuple(found)


def byte_span(array: str, row0: int, row1: int, size: Size) -> tuple[int, int]:
    """[begin, end) in bytes of rows [row0, row1) in an array, or in each of its planes.

    Borders above and below belong to the first and the last row.
    """
    layout = LAYOUTS[array]
    if layout.kind == MACROBLOCKS:
        return row0 * size.mb_width * layout.size, row1 * size.mb_width * layout.size
    if layout.kind == PER_ROW:
        return row0 * layout.size, row1 * layout.size
    if layout.kind == INDEX:
        return 0, layout.size * (size.mb_height + 1 + size.mb_width * size.mb_height)
    border = _border(layout, size)
    stride = layout.size * size.mb_width + 2 * border
    y0 = border + layout.size * row0 if row0 else 0
    y1 = border + layout.size * row1 + (border if row1 == size.mb_height else 0)
    return y0 * stride, y1 * stride


def _border(layout: Layout, size: Size) -> int:
    return {PLANE: 0, PADDED: size.pad * layout.size // 16, COARSE: COARSE_BORDER}[layout.kind]


def bytes_of(array: str, row0: int, row1: int, size: Size) -> int:
    """Bytes of rows [row0, row1), all planes together."""
    begin, end = byte_span(array, row0, row1, size)
    return LAYOUTS[array].planes * (end - begin)


Rows = tuple[tuple[int, int], ...]  # intervals, sorted, apart
Residency = tuple[tuple[Key, tuple[tuple[str, Rows], ...]], ...]  # valid rows of each array in each memory
NOTHING: Residency = ()


@cache
def everything(memory: str, n_references: int, mb_height: int) -> Residency:
    """Residency after a frame that was done in one memory, with `n_references` references held."""
    keys = [(name, k) for name in REFERENCE_ARRAYS for k in range(n_references)]
    keys += [(name, 0) for name in PREVIOUS_FRAME_ARRAYS]
    return freeze({key: {memory: ((0, mb_height),)} for key in keys})


def union(rows: Rows, row0: int, row1: int) -> Rows:
    """`rows` and [row0, row1)."""
    apart = [(a, b) for a, b in rows if b < row0 or a > row1]
    touching = [(a, b) for a, b in rows if not (b < row0 or a > row1)]
    whole = (min([row0, *(a for a, _ in touching)]), max([row1, *(b for _, b in touching)]))
    return tuple(sorted([*apart, whole])) if row1 > row0 else rows


def without(rows: Rows, row0: int, row1: int) -> Rows:
    """`rows` less [row0, row1)."""
    return tuple((a, b) for x, y in rows for a, b in ((x, min(y, row0)), (max(x, row1), y)) if a < b)


def common(rows: Rows, row0: int, row1: int) -> Rows:
    """`rows` inside [row0, row1)."""
    return tuple((max(a, row0), min(b, row1)) for a, b in rows if max(a, row0) < min(b, row1))


def freeze(valid: Mapping[Key, Mapping[str, Rows]]) -> Residency:
    """The residency as a hashable value."""
    return tuple(sorted((key, tuple(sorted((m, rows) for m, rows in held.items() if rows))) for key, held in valid.items()))
