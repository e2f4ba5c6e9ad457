"""What comes out of a pipeline: a coded frame with all that statistics, a second pass and reports read of it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class InBuffer(NamedTuple):
    """A frame in the buffer, in bits: what can be there when it is taken out, left then; negative: it comes too late."""

    there: int
    left: int
    size: int  # of the buffer
    filler: int  # bytes
    tries: int


@dataclass(slots=True, eq=False, repr=False)
class EncodedFrame:
    """One access unit and its statistics."""

    index: int  # in display order
    coding_index: int
    pts: int  # in frames, as dts
    dts: int
    frame_type: str  # "I", "P" or "B"
    is_idr: bool
    qp: int  # SliceQPY
    avg_qp: float  # of the macroblocks, as a decoder has it
    qp_range: tuple[int, int]  # the least and the largest
    qp_by: str  # as in FrameSpec
    is_reference: bool  # as are those up to predicted
    is_qp_requested: bool
    over_factor: int
    predicted: int
    mean_qp: int  # of the macroblocks in 1 / 256, as decided; with --pass
    data: bytes  # Annex B
    mb_counts: np.ndarray  # int64[15], by mb_type
    transform_8x8: int  # macroblocks with the 8x8 transform
    ssd: tuple[int, int, int]  # squared error over the display area of Y, Cb, Cr
    sums: list[int]  # of the arrays SUMMED, in its order
    bits: int
    bits_by_kind: tuple[int, ...] | None  # in the order of statistics.KINDS, if asked for
    stage_seconds: dict[str, float]
    reconstruction: tuple[np.ndarray, np.ndarray, np.ndarray] | None  # cropped, as a decoder returns it
    in_buffer: InBuffer | None = None  # where a buffer is promised
    ssim: float | None = None  # of luma, where statistics have it
    refused: bool = False  # samples of its source, on a GPU, are far outside of their range
