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


class Quantiser(NamedTuple):
    """Quantisation of the macroblocks."""

    qp: Any  # uint8[n_mb], QP_Y
    chroma_offset: int  # chroma_qp_index_offset


class Deblocking(NamedTuple):
    """Parameters of the deblocking filter."""

    alpha_offset: int  # FilterOffsetA
    beta_offset: int  # FilterOffsetB
    disable_idc: int  # disable_deblocking_filter_idc


class InputPlanes(NamedTuple):
    """A frame of display size on a GPU as planes, I420 or NV12. Distances are in bytes."""

    y: Any
    u: Any
    v: Any
    pitch: int  # from row to row of luma
    chroma_pitch: int
    chroma_step: int  # from sample to sample of chroma: 1, or 2 where Cb and Cr are interleaved


class InputRgb(NamedTuple):
    """A frame of display size on a GPU as colours. Distances are in bytes and may be negative."""

    red: Any  # the first sample of each colour
    green: Any
    blue: Any
    kind: str  # the type of the samples, one of cpu_simd.convert.KINDS
    step: int  # from column to column
    pitch: int  # from row to row
    low: int  # bits of the float32 value of black
    scale: int  # bits of the float32 255 / (value of white - low)
    outside: Any  # int32[1] out: 1 if a sample is far outside of the range, or no number
