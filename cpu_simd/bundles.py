"""Arrays and numbers that stages take together, for the kernels of both devices; scheduler/bundles.py says which arrays.

Arrays are np.ndarray on the CPU, DeviceArray on a GPU. Sizes of a frame: H x W luma samples, n_mb macroblocks.
"""

from typing import Any, NamedTuple


class Planes(NamedTuple):
    """Samples of one frame, each plane uint8; rows may be longer than the frame."""

    y: Any  # [H, W]
    u: Any  # [H / 2, W / 2]
    v: Any


class Coarse(NamedTuple):
    """Frames in a quarter of the width and height, with borders: means of 4x4 samples."""

    source: Any  # uint8[H / 4 + 2 COARSE_PAD, W / 4 + 2 COARSE_PAD]
    reference: Any


class PreviousMotion(NamedTuple):
    """Vectors of the frame before, and the distance over which they are continued."""

    ref_idx: Any  # int8[n_mb, 4], -1: intra
    mv: Any  # int16[n_mb, 16, 2], quarter samples (x, y)
    distance: int  # frames from the searched reference to the frame in the loop


class SearchStart(NamedTuple):
    """Where the search of each macroblock begins, in one reference."""

    centre: Any  # int16[n_mb, 2], of the window, integer samples (x, y)
    predictor: Any  # int16[n_mb, 2], of the vectors, quarter samples (x, y)


class SearchResult(NamedTuple):
    """What the search of one reference finds for the 41 partitions of each macroblock (layout.py)."""

    cost: Any  # int32[n_mb, 41]
    mv: Any  # int16[n_mb, 41, 2], quarter samples (x, y)


class Searches(NamedTuple):
    """Results of the search and refinement in all references."""

    cost: Any  # int32[>= n_ref, n_mb, 41]
    mv: Any  # int16[>= n_ref, n_mb, 41, 2], quarter samples (x, y)
    predictor: Any  # int16[>= n_ref, n_mb, 2], as the search took it


class LumaReferences(NamedTuple):
    """The luma of RefPicList0."""

    luma: Any  # uint8[n_slots, 4, H + 2 pad, W + 2 pad], planes G, b, h, j
    slots: Any  # int32[n_ref], slot of each reference
    pad: int  # border, luma samples
    n_ref: int


class References(NamedTuple):
    """RefPicList0."""

    luma: Any  # uint8[n_slots, 4, H + 2 pad, W + 2 pad], planes G, b, h, j
    chroma: Any  # uint8[n_slots, 2, H / 2 + pad, W / 2 + pad], Cb, Cr
    slots: Any  # int32[n_ref], slot of each reference
    pad: int  # border, luma samples
    n_ref: int


class DecisionSettings(NamedTuple):
    """What mode decision may choose, and how it compares."""

    subme: int  # the option
    trellis: int  # the option
    max_mv_y: int  # limit of vertical vectors, luma samples (Table A-1)
    partition_mask: int  # sizes of partitions, see ALL_KINDS in decisions.py


class Motion(NamedTuple):
    """Types and motion of the macroblocks of a frame."""

    mb_type: Any  # uint8[n_mb]
    sub_mb_type: Any  # uint8[n_mb, 4]
    ref_idx: Any  # int8[n_mb, 4], -1: intra
    mv: Any  # int16[n_mb, 16, 2], quarter samples (x, y)


class IntraChoice(NamedTuple):
    """Types and prediction modes of intra macroblocks."""

    mb_type: Any  # uint8[n_mb]
    intra4x4_mode: Any  # int8[n_mb, 16], raster order; 2 (DC) where the macroblock is not I_4x4
    intra16x16_mode: Any  # uint8[n_mb]
    intra_chroma_mode: Any  # uint8[n_mb]


class Residual(NamedTuple):
    """Transform coefficient levels of the macroblocks."""

    levels: Any  # int16[n_mb, N_LEVEL_BLOCKS, 16], scan order
    total_coeff: Any  # uint8[n_mb, 24]


class Macroblocks(NamedTuple):
    """What macroblock_layer() says of the macroblocks of a frame."""

    mb_type: Any  # uint8[n_mb]
    sub_mb_type: Any  # uint8[n_mb, 4]
    ref_idx: Any  # int8[n_mb, 4], -1: intra
    mv: Any  # int16[n_mb, 16, 2], quarter samples (x, y)
    intra4x4_mode: Any  # int8[n_mb, 16]
    intra16x16_mode: Any  # uint8[n_mb]
    intra_chroma_mode: Any  # uint8[n_mb]
    cbp: Any  # uint8[n_mb]
    qp: Any  # uint8[n_mb], QP_Y
    levels: Any  # int16[n_mb, N_LEVEL_BLOCKS, 16], scan order
    total_coeff: Any  # uint8[n_mb, 24]


class Quantiser(NamedTuple):
    """Quantisation of the macroblocks."""

    qp: Any  # uint8[n_mb], QP_Y
    chroma_offset: int  # chroma_qp_index_offset


class Deblocking(NamedTuple):
    """Parameters of the deblocking filter."""

    alpha_offset: int  # FilterOffsetA
    beta_offset: int  # FilterOffsetB
    disable_idc: int  # disable_deblocking_filter_idc
