"""The table of arrays: name, role, shape, dtype, meaning, halo; and what follows from it, such as bytes of rows.

Arguments of the stage table and members of its bundles are names of ARRAYS, VIEWS or CONSTANTS; this is checked at import.
An array is identified by its name and a number: CURRENT for the frame in the loop, k for arrays of search k, and for
arrays of reference k of those that are kept (PREVIOUS: the last frame).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np

from ..cpu_simd.layout import COARSE_PAD, ENTRY_BYTES, N_B_CHOICES, N_B_EXTRAS, N_LEVEL_BLOCKS, PARTITIONS, n_sum_blocks
from ..process import cached_property
from ..standard.macroblock import I_4x4
from ..standard.sample_format import MB_HEIGHT_C, MB_WIDTH_C, Sample
from .stages import Stage

CURRENT, PREVIOUS = -1, 0  # numbers: the frame in the loop; reference 0, the frame before
SEARCHED_REF, ALL_REFS = -2, -3  # in VIEWS: the number of the reference that a step searches; of each reference
CONTINUED = -4  # in VIEWS: of the first reference of list 1, in P frames of list 0
Key = tuple[str, int]  # name, number
Halo = tuple[int, int]  # rows above and below
ALL_ROWS = (1 << 20, 1 << 20)  # a halo: all rows, by motion vectors

# Roles
RESULT = "result"  # of a frame, in one block of memory that one copy downloads
GPU_RESULT = "result of a GPU"  # in the same block
SECOND_LIST = "result of list 1"  # in the same block, for B frames: empty in streams without them
LEVELS = "levels"  # a result as well, with a download of its own
SOURCE = "source"  # planes of a frame
WORKSPACE = "workspace"  # between the stages of a frame
SEARCH = "search"  # in the workspace, once a reference
TICKETS = "tickets"  # in the workspace, within one stage
REFERENCE = "reference"  # of each decoded frame, see POOLS
HOST = "host"  # written by one device only, into memory of the host
BIPREDICTION = "bi-prediction"  # in the workspace, for B frames: empty in streams without them
KEPT = "kept motion"  # of each decoded frame, for B frames: empty in streams without them
NEVER_COPIED = (TICKETS, HOST)  # roles of arrays that one device uses
OF_B_STREAMS = (SECOND_LIST, BIPREDICTION, KEPT)  # roles of arrays that are empty in streams without B frames


@dataclass(frozen=True)
class Size:
    """Size of a frame in macroblocks; pad: border of luma references in samples; has_b_frames: of the stream."""

    mb_width: int
    mb_height: int
    pad: int = 0
    has_b_frames: bool = False

    @property
    def n_mb(self) -> int:
        """Macroblocks of a frame."""
        return self.mb_width * self.mb_height


class PerMacroblock(NamedTuple):
    """(n_mb, *elements)."""

    elements: tuple[int, ...] = ()

    def shape(self, size: Size) -> tuple[int, ...]:
        """See ArrayRow."""
        return (size.n_mb, *self.elements)

    def rows(self, row0: int, row1: int, size: Size) -> tuple[int, int]:
        """[begin, end) in elements of macroblock rows [row0, row1), in each plane."""
        of_row = size.mb_width * prod(self.elements)
        return row0 * of_row, row1 * of_row


class OfSecondList(PerMacroblock):
    """PerMacroblock in streams with B frames, else empty."""

    def shape(self, size: Size) -> tuple[int, ...]:
        """See ArrayRow."""
        return (size.n_mb if size.has_b_frames else 0, *self.elements)


class PerRow:
    """(mb_height,)."""

    def shape(self, size: Size) -> tuple[int, ...]:
        """See ArrayRow."""
        return (size.mb_height,)

    def rows(self, row0: int, row1: int, size: Size) -> tuple[int, int]:
        """See PerMacroblock."""
        return row0, row1


class Plane(NamedTuple):
    """Planes of a frame with a border. width, height: of a macroblock; padded: the border is Size.pad where these are 16."""

    width: int
    height: int
    border: int = 0
    padded: bool = False
    planes: int = 1

    def _borders(self, size: Size) -> tuple[int, int]:
        """Above and below; left and right."""
        pads = size.pad * self.height // 16, size.pad * self.width // 16
        return pads if self.padded else (self.border, self.border)

    def shape(self, size: Size) -> tuple[int, ...]:
        """See ArrayRow."""
        above, left = self._borders(size)
        one = self.height * size.mb_height + 2 * above, self.width * size.mb_width + 2 * left
        return one if self.planes == 1 else (self.planes, *one)

    def rows(self, row0: int, row1: int, size: Size) -> tuple[int, int]:
        """See PerMacroblock. Borders above and below belong to the first and the last row."""
        above, left = self._borders(size)
        stride = self.width * size.mb_width + 2 * left
        y0 = above + self.height * row0 if row0 else 0
        y1 = above + self.height * row1 + (above if row1 == size.mb_height else 0)
        return y0 * stride, y1 * stride


class Undivided(NamedTuple):
    """An array that does not divide by rows: its shape by the size of the frame."""

    of: Callable[[Size], tuple[int, ...]]

    def shape(self, size: Size) -> tuple[int, ...]:
        """See ArrayRow."""
        return self.of(size)

    def rows(self, row0: int, row1: int, size: Size) -> tuple[int, int]:
        """See PerMacroblock: all of it."""
        return 0, prod(self.of(size))


@dataclass(frozen=True, eq=False, repr=False)
class ArrayRow:
    """A row of the table. halo: by stage, rows above and below its own that it reads; a stage that is missing reads none.

    halo_of_b: in streams with B frames, where it differs.
    """

    name: str
    role: str
    layout: PerMacroblock | PerRow | Plane | Undivided
    dtype: type
    meaning: str
    halo: Mapping[str, Halo] = field(default_factory=dict)
    halo_of_b: Mapping[str, Halo] = field(default_factory=dict)

    def shape(self, size: Size) -> tuple[int, ...]:
        """Of the array of one frame or one reference."""
        return self.layout.shape(size)

    @cached_property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.dtype).itemsize

    @property
    def planes(self) -> int:
        """Equal planes, in each of which rows lie alike."""
        return self.layout.planes if isinstance(self.layout, Plane) else 1


@dataclass(frozen=True, eq=False)
class View:
    """Another name that stages use. of: the arrays of which it is a view; halo: see ArrayRow."""

    name: str
    of: tuple[Key, ...]
    halo: Mapping[str, Halo] = field(default_factory=dict)


def per_mb(*elements: int) -> PerMacroblock:
    """The layout (n_mb, *elements)."""
    return PerMacroblock(elements)


def of_second_list(*elements: int) -> OfSecondList:
    """The layout (n_mb, *elements), or (0, *elements)."""
    return OfSecondList(elements)


Row = TypeVar("Row", "ArrayRow", "View")


def _by_name(rows: Iterable[Row]) -> dict[str, Row]:
    return {row.name: row for row in rows}


LUMA, CHROMA = Plane(16, 16), Plane(MB_WIDTH_C, MB_HEIGHT_C)
_DEBLOCKED = {"deblock": (1, 1)}
_DIRECT_VECTOR = {"explicit_motion": (1, 0), **_DEBLOCKED}
_ABOVE = {"rd_candidates_b": (1, 0)}  # of neighbours, for direct prediction
_SKIP_VECTOR = {"mark_skipped": (1, 0), **_DIRECT_VECTOR}
ARRAYS: dict[str, ArrayRow] = _by_name((
    ArrayRow("mb_type", RESULT, per_mb(), np.uint8, "names in standard/macroblock.py", _DEBLOCKED),
    ArrayRow("sub_mb_type", RESULT, per_mb(4), np.uint8, "by 8x8 quadrant"),
    ArrayRow("ref_idx", RESULT, per_mb(4), np.int8, "by 8x8 quadrant; -1: intra", _SKIP_VECTOR),
    ArrayRow("mv", RESULT, per_mb(16, 2), np.int16, "quarter samples (x, y), 4x4 blocks in raster order", _SKIP_VECTOR),
    ArrayRow("intra4x4_mode", RESULT, per_mb(16), np.int8, "raster order; 2 (DC) where the macroblock is not I_4x4"),
    ArrayRow("intra16x16_mode", RESULT, per_mb(), np.uint8, "Intra16x16PredMode"),
    ArrayRow("intra_chroma_mode", RESULT, per_mb(), np.uint8, "intra_chroma_pred_mode"),
    ArrayRow("cbp", RESULT, per_mb(), np.uint8, "coded_block_pattern"),
    ArrayRow("qp", RESULT, per_mb(), np.uint8, "QP_Y", _DEBLOCKED),
    ArrayRow("total_coeff", RESULT, per_mb(24), np.uint8,
             "non-zero levels a block, without DC blocks: 16 luma in raster order, 4 Cb, 4 Cr", _DEBLOCKED),
    ArrayRow("transform_8x8", RESULT, per_mb(), np.uint8, "transform_size_8x8_flag", _DEBLOCKED),
    ArrayRow("ssd_y", RESULT, PerRow(), np.int64, "squared error of the decoded frame"),
    ArrayRow("ssd_u", RESULT, PerRow(), np.int64, "squared error of Cb"),
    ArrayRow("ssd_v", RESULT, PerRow(), np.int64, "squared error of Cr"),
    ArrayRow("ref_idx1", SECOND_LIST, of_second_list(4), np.int8, "as ref_idx, of RefPicList1", _DIRECT_VECTOR),
    ArrayRow("mv1", SECOND_LIST, of_second_list(16, 2), np.int16, "as mv, of RefPicList1", _DIRECT_VECTOR),
    ArrayRow("level_index", GPU_RESULT, Undivided(lambda size: (size.mb_height + 1 + size.n_mb,)), np.uint32,
             "which blocks have levels, for the download (cuda_src/residual/compact.py)"),
    ArrayRow("slice_sizes", GPU_RESULT, PerRow(), np.int32, "bits of each slice with its header; -1: too long"),
    ArrayRow("slice_bins", GPU_RESULT, PerRow(), np.int32, "bins of each slice, with CABAC only"),
    ArrayRow("levels", LEVELS, per_mb(N_LEVEL_BLOCKS, 16), np.int16,
             "transform coefficient levels in scan order, blocks as in cpu_simd/layout.py"),
    ArrayRow("slice_data", HOST, Undivided(lambda size: (size.mb_height * (size.mb_width + 1) * ENTRY_BYTES,)), np.uint8,
             "the slices as write_slices wrote them, room for their headers"),
    ArrayRow("mb_ends", HOST, Undivided(lambda size: (size.n_mb,)), np.int32,
             "bits of a slice up to the end of each macroblock, where slices have a most size; else None is in its place"),
    ArrayRow("level_blocks", HOST, Undivided(lambda size: (size.n_mb * N_LEVEL_BLOCKS, 16)), np.int16,
             "the blocks that have levels, contiguous (cuda_src/residual/compact.py)"),
    ArrayRow("block_sums", HOST, Undivided(lambda size: (2, n_sum_blocks(16 * size.mb_width, 16 * size.mb_height))), np.int32,
             "sums of blocks of the source planes, of their squares (cuda_src/inter/weighting.cu)"),
    ArrayRow("source_y", SOURCE, LUMA, Sample, "the source in coded size",
             {"intra_estimate": (1, 0), "intra_refresh": (1, 0)}),
    ArrayRow("source_u", SOURCE, CHROMA, Sample, "Cb"),
    ArrayRow("source_v", SOURCE, CHROMA, Sample, "Cr"),
    ArrayRow("rec_y", WORKSPACE, LUMA, Sample, "the reconstruction before deblocking", _DEBLOCKED),
    ArrayRow("rec_u", WORKSPACE, CHROMA, Sample, "Cb", _DEBLOCKED),
    ArrayRow("rec_v", WORKSPACE, CHROMA, Sample, "Cr", _DEBLOCKED),
    ArrayRow("intra_cost", WORKSPACE, per_mb(), np.int32, "least cost of an intra type, in the units of search_cost"),
    ArrayRow("skip_limit", WORKSPACE, per_mb(), np.int32, "what skipping may cost beyond the best choice in P frames; what "
             "its chroma costs in B frames (rd_candidates, rd_candidates_b)"),
    ArrayRow("intra_modes", WORKSPACE, per_mb(16), np.uint8, "its type and modes (cpu_simd/intra/intra_estimate.py)"),
    ArrayRow("coarse_source", WORKSPACE, Plane(4, 4, COARSE_PAD), Sample, "means of 4x4 samples", {"search_centre": (1, 1)}),
    ArrayRow("coarse_reference", WORKSPACE, Plane(4, 4, COARSE_PAD), Sample, "the same", {"search_centre": (3, 3)},
             {"search_centre": ALL_ROWS}),  # around the motion of the camera
    ArrayRow("progress", TICKETS, Undivided(lambda size: (1 + size.mb_height,)), np.int64, "of the rows in mode_decision"),
    ArrayRow("intra_progress", TICKETS, Undivided(lambda size: (1 + 2 * size.mb_height,)), np.int64, "of the rows in intra"),
    ArrayRow("centre", SEARCH, per_mb(2), np.int16, "of the search window, integer samples (x, y)"),
    ArrayRow("predictor", SEARCH, per_mb(2), np.int16, "of the vectors that are searched, quarter samples (x, y)"),
    ArrayRow("search_cost", SEARCH, per_mb(len(PARTITIONS)), np.int32, "least cost of each partition"),
    ArrayRow("search_mv", SEARCH, per_mb(len(PARTITIONS), 2), np.int16, "its vector, quarter samples (x, y)",
             {"neighbour_vectors": (1, 1)}),
    ArrayRow("whole_mv", WORKSPACE, per_mb(2), np.int16, "of undivided macroblocks in the searched reference",
             {"neighbour_vectors_again": (1, 1)}),
    ArrayRow("camera", BIPREDICTION, Undivided(lambda size: (2,)), np.int16, "motion of the whole frame, coarse (x, y)",
             {"search_centre": ALL_ROWS}),
    ArrayRow("b_cost", BIPREDICTION, of_second_list(N_B_CHOICES), np.int32, "SATD of each choice (cpu_simd/layout.py)",
             _ABOVE),
    ArrayRow("b_ref", BIPREDICTION, of_second_list(N_B_CHOICES, 2), np.int8, "its entries of both lists, -1: not used",
             _ABOVE),
    ArrayRow("b_mv", BIPREDICTION, of_second_list(N_B_CHOICES, 2, 2), np.int16, "its vectors, quarter samples (x, y)",
             _ABOVE),
    ArrayRow("b_extra", BIPREDICTION, of_second_list(N_B_EXTRAS), np.int32, "true costs less SATD (cpu_simd/layout.py)"),
    ArrayRow("b_moved", BIPREDICTION, of_second_list(3, 2, 2), np.int16, "vectors of undivided choices, by true costs"),
    ArrayRow("kept_ref_idx", KEPT, of_second_list(4), np.int8, "ref_idx of a decoded frame"),
    ArrayRow("kept_mv", KEPT, of_second_list(16, 2), np.int16, "mv of a decoded frame"),
    ArrayRow("kept_still", KEPT, of_second_list(), np.uint8, "colZeroFlag of its quadrants (8.4.1.2.2), a bit each"),
    ArrayRow("luma", REFERENCE, LUMA._replace(padded=True), Sample, "integer samples G (Figure 8-4)"),
    ArrayRow("half", REFERENCE, LUMA._replace(padded=True, planes=3), Sample, "half samples b, h, j"),
    ArrayRow("cb", REFERENCE, CHROMA._replace(padded=True), Sample, "Cb"),
    ArrayRow("cr", REFERENCE, CHROMA._replace(padded=True), Sample, "Cr"),
))  # fmt: skip

_PREDICTED = dict.fromkeys(("rd_candidates", "rd_candidates_b", "inter_residual", "inter_residual_qp"), ALL_ROWS)
_PREDICTED_LUMA = {"bipredict": ALL_ROWS, **_PREDICTED}
SEARCHES = ("full_search", "pattern_search", "step_search")  # one of these
_VECTORS = dict.fromkeys(("subpel_refine", "neighbour_vectors", "neighbour_vectors_again"), ALL_ROWS)
VIEWS: dict[str, View] = _by_name((
    View("reference_y", (("luma", SEARCHED_REF),), dict.fromkeys(("search_centre", *SEARCHES), ALL_ROWS)),
    View("reference_luma", (("luma", SEARCHED_REF), ("half", SEARCHED_REF)), _VECTORS),
    View("unweighted_luma", (("luma", SEARCHED_REF), ("half", SEARCHED_REF))),
    View("ref_luma", (("luma", ALL_REFS), ("half", ALL_REFS)), _PREDICTED_LUMA),
    View("ref_chroma", (("cb", ALL_REFS), ("cr", ALL_REFS)), _PREDICTED),
    View("decoded_luma", (("luma", CURRENT),), {"interpolate": (1, 1)}),
    View("decoded_half", (("half", CURRENT),)),
    *(View(f"{name}_{plane}", ((base, CURRENT),)) for name in ("decoded", "out")  # out: without borders
      for plane, base in (("y", "luma"), ("u", "cb"), ("v", "cr"))),
    View("previous_ref_idx", (("ref_idx", PREVIOUS), ("kept_ref_idx", CONTINUED))),  # the latter in streams with B frames
    View("previous_mv", (("mv", PREVIOUS), ("kept_mv", CONTINUED))),
    View("colocated_still", (("kept_still", CONTINUED),)),
    View("all_predictor", (("predictor", ALL_REFS),)),
    View("all_cost", (("search_cost", ALL_REFS),)),
    View("all_mv", (("search_mv", ALL_REFS),)),
))  # fmt: skip

# Arguments that are equal on all devices, or used on one only: numbers and small arrays
CONSTANTS = {
    "pad": "border of luma references, samples",
    "chroma_pad": "border of chroma references, samples",
    "luma_unit": "height of a macroblock in luma samples",
    "chroma_unit": "height of a macroblock in chroma samples",
    "width": "of the display area, luma samples",
    "height": "of the display area, luma samples",
    "chroma_width": "of the display area, chroma samples",
    "chroma_height": "of the display area, chroma samples",
    "mb_width": "macroblocks a row",
    "merange": "range of the integer search, samples",
    "pattern": "of pattern_search: DIA, HEX or UMH of cpu_simd/decisions/search.py, and the range",
    "step_grid": "candidates a side of a grid of step_search",
    "max_mv_y": "limit of vertical vectors, samples (Table A-1)",
    "subme": "the option",
    "intra_subme": "the same of the stage intra; with intra refresh below true costs of P frames, so that modes are given",
    "least_qp": "limits of QP_Y, by the options qpmin and qpmax",
    "most_qp": "the other one",
    "partition_mask": "sizes of partitions, bits of scheduler/frames/loop.py",
    "trellis": "the option",
    "transform_8x8_mode": "transform_8x8_mode_flag, None without CABAC too, see CodingTools in cpu_simd/bundles.py",
    "cabac": "entropy_coding_mode_flag, likewise",
    "dead_zone_inter": "of luma levels of inter macroblocks, by the option (ROUNDING in cpu_simd/decisions)",
    "dead_zone_intra": "of intra macroblocks",
    "intra_8x8": "whether Intra_8x8 may be chosen, with transform_8x8_mode",
    "psy_rd": "weight of differences of AC energy in true costs, 1 / 256",
    "chroma_qp_offset": "chroma_qp_index_offset",
    "scaling": "int16[SCALING_SIZE]: factors by the scaling lists (cpu_simd/quantiser/scaling.py)",
    "has_scaling_lists": "1, or None if all scaling lists are flat: CPU kernels are compiled without them",
    "alpha_offset": "FilterOffsetA",
    "beta_offset": "FilterOffsetB",
    "disable_idc": "disable_deblocking_filter_idc",
    "slice_first_mb": "int32[n_mb]: address of the first macroblock of the slice that holds a macroblock",
    "slice_starts": "int32[> n_slices]: address of the first macroblock of each slice, then n_mb",
    "frame_params": "int32[>= HEADER_BITS + n_slices]: see HEADER_BITS in cpu_simd/layout.py",
    "load_qp": "int32[>= 1]: QP_Y of all macroblocks, which loading a source sets; or -1 before uint8[n_mb], that of each",
    "n_ref": "references of the frame, 0 in I slices",
    "n_ref1": "references of list 1, 0 in I and P slices; None in streams without B frames: kernels are compiled without",
    "ref_slots": "int32[n_ref + n_ref1]: slot of each entry of both lists; this and the next five are parts of frame_params "
    "(cpu_simd/layout.py)",
    "searched_slots": "int32[n_ref + n_ref1]: slot of its luma as the search sees it, weighted or not",
    "bi_weights": "int32[n_ref * n_ref1]: implicit weights of list 1 (FrameSpec.implicit_weights)",
    "weights": "int32[MOST_WEIGHTED * N_WEIGHTS]: weights of the first entries of RefPicList0",
    "reference_weights": "int32[N_WEIGHTS]: those of the searched entry",
    "previous_distances": "int32[MOST_LISTED]: frames in display order from each entry of the last frame's RefPicList0 to it",
    "distance": "int32[1]: frames in display order from the searched reference to the frame in the loop, negative from a "
    "later one",
    "refresh_columns": "int32[2]: columns of macroblocks [begin, end) that are a bar of intra macroblocks, those before are "
    "clean; see cpu_simd/intra/intra_refresh.py",
    "duplicates": "entries of RefPicList0 after the first that are its first frame again, with other weights",
    "input_y": "uint8: input of a GPU in display size, of any pitch",
    "input_u": "see input_y: Cb",
    "input_v": "see input_y: Cr",
    "pitch": "bytes from row to row of input_y",
    "chroma_pitch": "bytes from row to row of input_u and input_v",
    "chroma_step": "bytes from sample to sample of input_u and input_v",
    "input_red": "input of a GPU in display size, of any layout and type: the first sample of red",
    "input_green": "see input_red",
    "input_blue": "see input_red",
    "rgb_dtype": "type of the samples of input_red, input_green and input_blue",
    "rgb_step": "bytes from column to column of these",
    "rgb_pitch": "bytes from row to row of these",
    "rgb_low": "bits of the float32 value of black",
    "rgb_scale": "bits of the float32 255 / (value of white - value of black)",
    "outside": "int32[1]: 1 if an input sample is far outside of the range of values",
}
SECOND_FILL = {"ref_idx1": -1, "mv1": 0}  # before frames without list 1
INTRA_FILL = {"mb_type": I_4x4, "ref_idx": -1, "mv": 0}  # values of all macroblocks before an I frame; qp is set before all
POOLS = {"luma": ("luma", "half"), "chroma": ("cb", "cr")}  # the planes of a slot of References, in order


def of_roles(*roles: str) -> tuple[str, ...]:
    """Names of the arrays of these roles, in the order of the table."""
    return tuple(name for name, array in ARRAYS.items() if array.role in roles)


RESULTS = of_roles(RESULT)  # input of the entropy coding, without levels, and statistics of a frame
SECOND_RESULTS = of_roles(SECOND_LIST)  # the same, of frames with list 1
SOURCES = of_roles(SOURCE)
REFERENCE_ARRAYS = of_roles(REFERENCE, KEPT)
KEPT_ARRAYS = of_roles(KEPT)
PREVIOUS_FRAME_ARRAYS = tuple(
    base
    for view in VIEWS.values()
    for base, number in view.of
    if number == PREVIOUS and ARRAYS[base].role not in NEVER_COPIED
)
DECODED = tuple(VIEWS[f"decoded_{plane}"].of[0][0] for plane in "yuv")  # the decoded frame


@cache
def pool_planes(name: str) -> tuple[str, range]:
    """(pool, planes in a slot) of an array of a reference."""
    pool = next(pool for pool, names in POOLS.items() if name in names)
    before = POOLS[pool][: POOLS[pool].index(name)]
    first = sum(ARRAYS[other].planes for other in before)
    return pool, range(first, first + ARRAYS[name].planes)


def pool_shape(pool: str, n_slots: int, size: Size) -> tuple[int, ...]:
    """(n_slots, planes, height, width) of a pool of References."""
    arrays = [ARRAYS[name] for name in POOLS[pool]]
    return (n_slots, sum(array.planes for array in arrays), *arrays[0].shape(size)[-2:])


def byte_span(name: str, row0: int, row1: int, size: Size) -> tuple[int, int]:
    """[begin, end) in bytes of rows [row0, row1) in an array, or in each of its planes."""
    array = ARRAYS[name]
    begin, end = array.layout.rows(row0, row1, size)
    return begin * array.itemsize, end * array.itemsize


def bytes_of(name: str, row0: int, row1: int, size: Size) -> int:
    """Bytes of rows [row0, row1), all planes together."""
    begin, end = byte_span(name, row0, row1, size)
    return ARRAYS[name].planes * (end - begin)


def check_stages(stages: Iterable[Stage]) -> None:
    """Raise ValueError where arguments of a stage are not in this table, or those that it writes are no arrays of it."""
    arrays = ARRAYS.keys() | VIEWS.keys()
    for stage in stages:
        for name in stage.names:
            if name not in arrays and name not in CONSTANTS and name not in stage.span:
                raise ValueError(f"stage {stage.name}: argument {name} is not in the table of arrays")
        for name in stage.written:
            if name not in arrays:
                raise ValueError(f"stage {stage.name}: writes {name}, which is not in the table of arrays")
