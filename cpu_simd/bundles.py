"""Arrays and numbers that stages take together, for the kernels of both devices; scheduler/bundles.py says which arrays.

Arrays are np.ndarray on the CPU, DeviceArray on a GPU. Sizes of a frame: H x W luma samples, n_mb macroblocks.
Each is a collections.namedtuple, made in 25 us at import; a typing.NamedTuple takes 160 us.
"""

from collections import namedtuple

import numpy as np

from .decisions.quantise import DEAD_ZONE_INTER, DEAD_ZONE_INTRA
from .quantiser.scaling import FLAT_SCALING

# Motion of list 1, and implicit weights, of streams without B frames
NO_REF_IDX, NO_MV, NO_WEIGHTS = np.zeros((0, 4), np.int8), np.zeros((0, 16, 2), np.int16), np.zeros(0, np.int32)

# Samples of one frame, each plane of Sample; rows may be longer than the frame.
Planes = namedtuple("Planes", (
    "y",  # [H, W]
    "u",  # [H / 2, W / 2]
    "v",
))  # fmt: skip

# Frames in a quarter of the width and height, with borders: means of 4x4 samples.
Coarse = namedtuple("Coarse", (
    "source",  # Sample[H / 4 + 2 COARSE_PAD, W / 4 + 2 COARSE_PAD]
    "reference",
))  # fmt: skip

# A source frame as the lookahead sees it: one macroblock is a block of 8x8 samples. h, w: 8 samples a macroblock.
HalfSize = namedtuple("HalfSize", (
    "planes",  # Sample[4, h + 2 LOOK_PAD, w + 2 LOOK_PAD], G, b, h, j: half samples to the right, below, both
    "coarse",  # Sample[h / 2 + 2 COARSE_PAD, w / 2 + 2 COARSE_PAD], means of 4x4 source samples
    "tiny",  # Sample[h / 8, w / 8], means of 16x16 source samples
))  # fmt: skip

# Vectors of the frame before, and the distance over which they are continued.
PreviousMotion = namedtuple("PreviousMotion", (
    "ref_idx",  # int8[n_mb, 4], -1: intra
    "mv",  # int16[n_mb, 16, 2], quarter samples (x, y)
    "distance",  # int32[1], frames in display order from the searched reference to the frame in the loop
    "distances",  # int32[n_ref], from each entry of RefPicList0 of the frame before to it
    "camera",  # int16[2], motion of the whole frame from the reference, coarse samples; 0 in streams without B frames
))  # fmt: skip

# Where the search of each macroblock begins, in one reference.
SearchStart = namedtuple("SearchStart", (
    "centre",  # int16[n_mb, 2], of the window, integer samples (x, y)
    "predictor",  # int16[n_mb, 2], of the vectors, quarter samples (x, y)
))  # fmt: skip

# What the search of one reference finds for the 41 partitions of each macroblock (layout.py).
SearchResult = namedtuple("SearchResult", (
    "cost",  # int32[n_mb, 41]
    "mv",  # int16[n_mb, 41, 2], quarter samples (x, y)
))  # fmt: skip

# Results of the search and refinement in all references.
Searches = namedtuple("Searches", (
    "cost",  # int32[>= n_ref, n_mb, 41]
    "mv",  # int16[>= n_ref, n_mb, 41, 2], quarter samples (x, y)
    "predictor",  # int16[>= n_ref, n_mb, 2], as the search took it
))  # fmt: skip

# The luma of RefPicList0 and RefPicList1 as the search sees it, weighted or not.
LumaReferences = namedtuple("LumaReferences", (
    "luma",  # Sample[n_slots, 4, H + 2 pad, W + 2 pad], planes G, b, h, j
    "slots",  # int32[n_ref + n_ref1], slot of each entry of both lists
    "pad",  # border, luma samples
    "n_ref",
    "n_ref1",  # entries of list 1, 0 in P frames; None in streams without B frames: kernels are compiled without them
    "bi_weights",  # int32[n_ref * n_ref1], implicit weights of list 1, of 64 (8.4.2.3.1)
), defaults=(None, NO_WEIGHTS))  # fmt: skip

# RefPicList0 and RefPicList1.
References = namedtuple("References", (
    "luma",  # Sample[n_slots, 4, H + 2 pad, W + 2 pad], planes G, b, h, j
    "chroma",  # Sample[n_slots, 2, H / 2 + pad, W / 2 + pad], Cb, Cr
    "slots",  # int32[n_ref + n_ref1], slot of each entry of both lists
    "searched",  # int32[n_ref + n_ref1], slot of its luma as the search sees it, weighted or not
    "weights",  # int32[MOST_WEIGHTED * N_WEIGHTS], of the first entries, see layout.py
    "pad",  # border, luma samples
    "n_ref",
    "n_ref1",  # as in LumaReferences
    "bi_weights",  # as in LumaReferences
), defaults=(None, NO_WEIGHTS))  # fmt: skip

# What the choices of a B macroblock are, see layout.py.
Candidates = namedtuple("Candidates", (
    "cost",  # int32[n_mb, N_B_CHOICES], SATD
    "ref",  # int8[n_mb, N_B_CHOICES, 2], entries of list 0 and list 1, -1: not used
    "mv",  # int16[n_mb, N_B_CHOICES, 2, 2], vectors in both, quarter samples (x, y)
    "extra",  # int32[n_mb, N_B_EXTRAS], true cost less SATD; 0 without rd_candidates_b
))  # fmt: skip

# The same with vectors that true costs have moved, from subme RD_B_DIVISIONS on.
MovedCandidates = namedtuple("MovedCandidates", (
    "cost",
    "ref",
    "mv",
    "extra",
    "moved",  # int16[n_mb, 3, 2, 2], in place of mv of the undivided choices, which neighbours read
))  # fmt: skip

# Motion of a decoded frame, for later frames.
KeptMotion = namedtuple("KeptMotion", (
    "ref_idx",  # int8[n_mb, 4], of list 0
    "mv",  # int16[n_mb, 16, 2], of list 0
    "still",  # uint8[n_mb], colZeroFlag of the quadrants (8.4.1.2.2), a bit each
))  # fmt: skip

# What mode decision may choose, and how it compares.
DecisionSettings = namedtuple("DecisionSettings", (
    "subme",  # the option
    "trellis",  # the option
    "max_mv_y",  # limit of vertical vectors, luma samples (Table A-1)
    "partition_mask",  # sizes of partitions, see ALL_PARTITIONS in decisions/search.py
    "psy_rd",  # the option in 1 / 256: weight of differences of AC energy in true costs
), defaults=(0,))  # fmt: skip

# What mode_decision_b may choose, and how it compares.
DecisionSettingsB = namedtuple("DecisionSettingsB", (
    "qp",  # uint8[n_mb], QP_Y
    "subme",  # the option
    "cabac",  # entropy_coding_mode_flag: costs are true ones from BY_COST on only with CABAC
    "partition_mask",  # as in DecisionSettings
    "psy_rd",
), defaults=(0,))  # fmt: skip

# What the divisions of an inter macroblock are compared with, in the units of Searches.cost.
OtherCosts = namedtuple("OtherCosts", (
    "intra_cost",  # int32[n_mb], least cost of an intra type
    "skip_limit",  # int32[n_mb], what P_Skip may cost beyond the best choice, see rd_candidates and rd_candidates_b
))  # fmt: skip

# Types and motion of the macroblocks of a frame.
Motion = namedtuple("Motion", (
    "mb_type",  # uint8[n_mb]
    "sub_mb_type",  # uint8[n_mb, 4]
    "ref_idx",  # int8[n_mb, 4], -1: intra, or list 0 is not used
    "mv",  # int16[n_mb, 16, 2], quarter samples (x, y)
    "ref_idx1",  # int8[n_mb, 4], of list 1; both empty in streams without B frames
    "mv1",  # int16[n_mb, 16, 2]
), defaults=(NO_REF_IDX, NO_MV))  # fmt: skip

# Rows of slices in raster order, which threads take by ticket.
SliceOrder = namedtuple("SliceOrder", (
    "first_mb",  # int32[n_mb], address of the first macroblock of the slice that holds a macroblock
    # int64[1 + 2 mb_height], 0 at first: from 1 on macroblocks done in each row, then rows taken, at the first row of a slice
    "progress",
))  # fmt: skip

# What write_slices says of slices.
SliceCounts = namedtuple("SliceCounts", (
    "sizes",  # int32[>= n]: bits of each slice with its header, up to the stop bit; -1: too long
    "bins",  # int32[>= n]: bins of each slice, with CABAC only
    "mb_ends",  # None, or int32[n_mb]: bits of the slice up to the end of each macroblock, with CABAC some less
), defaults=(None,))  # fmt: skip

# Types and prediction modes of intra macroblocks.
IntraChoice = namedtuple("IntraChoice", (
    "mb_type",  # uint8[n_mb]
    "intra4x4_mode",  # int8[n_mb, 16], raster order; 2 (DC) where the macroblock is not I_4x4
    "intra16x16_mode",  # uint8[n_mb]
    "intra_chroma_mode",  # uint8[n_mb]
))  # fmt: skip

# Transform coefficient levels of the macroblocks, and which of them are coded.
Residual = namedtuple("Residual", (
    "levels",  # int16[n_mb, N_LEVEL_BLOCKS, 16], scan order; of an 8x8 block see layout.py
    "total_coeff",  # uint8[n_mb, 24]
    "transform_8x8",  # uint8[n_mb], transform_size_8x8_flag
    "cbp",  # uint8[n_mb], coded_block_pattern
))  # fmt: skip

# What the boundary filtering strengths depend on (8.7.2.1).
StrengthData = namedtuple("StrengthData", (
    "mb_type",  # uint8[n_mb]
    "ref_idx",  # int8[n_mb, 4], -1: intra
    "mv",  # int16[n_mb, 16, 2], quarter samples (x, y)
    "total_coeff",  # uint8[n_mb, 24]
    "transform_8x8",  # uint8[n_mb], transform_size_8x8_flag
    "duplicates",  # entries of RefPicList0 after the first that are its first frame again
    "n_ref1",  # as in LumaReferences
    "n_ref",
    "slots",  # int32[n_ref + n_ref1], slot of each entry of both lists
    "ref_idx1",  # int8[n_mb, 4], of list 1; both empty in streams without B frames
    "mv1",  # int16[n_mb, 16, 2]
), defaults=(0, None, 0, NO_WEIGHTS, NO_REF_IDX, NO_MV))  # fmt: skip

# Entries of both lists of a frame's slices.
Entries = namedtuple("Entries", (
    "n_ref",  # of list 0, 0 in I frames
    "n_ref1",  # as in LumaReferences
))  # fmt: skip

# What macroblock_layer() says of the macroblocks of a frame.
Macroblocks = namedtuple("Macroblocks", (
    "mb_type",  # uint8[n_mb]
    "sub_mb_type",  # uint8[n_mb, 4]
    "ref_idx",  # int8[n_mb, 4], -1: intra
    "mv",  # int16[n_mb, 16, 2], quarter samples (x, y)
    "intra4x4_mode",  # int8[n_mb, 16]
    "intra16x16_mode",  # uint8[n_mb]
    "intra_chroma_mode",  # uint8[n_mb]
    "cbp",  # uint8[n_mb]
    "qp",  # uint8[n_mb], QP_Y
    "levels",  # int16[n_mb, N_LEVEL_BLOCKS, 16], scan order
    "total_coeff",  # uint8[n_mb, 24]
    "transform_8x8",  # uint8[n_mb], transform_size_8x8_flag
    "ref_idx1",  # int8[n_mb, 4], of list 1; both empty in streams without B frames
    "mv1",  # int16[n_mb, 16, 2]
), defaults=(NO_REF_IDX, NO_MV))  # fmt: skip

# Tools of residual coding and entropy coding that the options choose, numbers. None in place of both flags of 0: CPU kernels
# are compiled without these tools, for Baseline profile a tenth faster.
CodingTools = namedtuple("CodingTools", (
    "trellis",  # the option
    "transform_8x8_mode",  # transform_8x8_mode_flag
    "cabac",  # entropy_coding_mode_flag
    "dead_zone_inter",  # of luma levels that are not chosen by bits, see ROUNDING in decisions/quantise.py
    "dead_zone_intra",
    "intra_8x8",  # whether Intra_8x8 may be chosen, where transform_8x8_mode is 1
    "subme",  # the option
), defaults=(DEAD_ZONE_INTER, DEAD_ZONE_INTRA, 1, 0))  # fmt: skip

# Quantisation of the macroblocks.
Quantiser = namedtuple("Quantiser", (
    "qp",  # uint8[n_mb], QP_Y
    "chroma_offset",  # chroma_qp_index_offset
    "scaling",  # int16[SCALING_SIZE], of scaling.py
    "has_scaling_lists",  # None if all scaling lists are flat: kernels are compiled without others; or 1
), defaults=(FLAT_SCALING, None))  # fmt: skip

# Parameters of the deblocking filter.
Deblocking = namedtuple("Deblocking", (
    "alpha_offset",  # FilterOffsetA
    "beta_offset",  # FilterOffsetB
    "disable_idc",  # disable_deblocking_filter_idc
))  # fmt: skip

# A frame of display size on a GPU as planes, I420 or NV12. Distances are in bytes.
InputPlanes = namedtuple("InputPlanes", (
    "y",
    "u",
    "v",
    "pitch",  # from row to row of luma
    "chroma_pitch",
    "chroma_step",  # from sample to sample of chroma: 1, or 2 where Cb and Cr are interleaved
))  # fmt: skip

# A frame of display size on a GPU as colours. Distances are in bytes and may be negative.
InputRgb = namedtuple("InputRgb", (
    "red",  # the first sample of each colour
    "green",
    "blue",
    "dtype",  # the type of the samples, one of cpu_simd.source.convert.RGB_DTYPES
    "step",  # from column to column
    "pitch",  # from row to row
    "low",  # bits of the float32 value of black
    "scale",  # bits of the float32 255 / (value of white - low)
    "outside",  # int32[1] out: 1 if a sample is far outside of the range, or no number
))  # fmt: skip
