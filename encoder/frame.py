"""One picture's state as plain arrays, the pool they come from, and the reference pictures beside them.

Every array is indexed by macroblock (raster address) or by sample, so that kernels on any device take them as they are:

    planes          y uint8[H, W], u and v uint8[H/2, W/2]; H, W the coded size, multiples of 16
    rec_y/u/v       the same shapes: the reconstruction before deblocking
    mb_type         uint8[n_mb]            names in standard/macroblock.py
    sub_mb_type     uint8[n_mb, 4]         by 8x8 quadrant
    ref_idx         int8[n_mb, 4]          by 8x8 quadrant; -1: intra
    mv              int16[n_mb, 16, 2]     quarter samples (x, y), by 4x4 block in raster order
    intra4x4_mode   int8[n_mb, 16]         raster order; 2 (DC) where the macroblock is not I_4x4
    intra16x16_mode, intra_chroma_mode     uint8[n_mb]
    cbp, qp         uint8[n_mb]            coded_block_pattern; QP_Y
    levels          int16[n_mb, 27, 16]    transform coefficient levels in scan order, blocks as in standard/macroblock.py
    total_coeff     uint8[n_mb, 24]        non-zero levels a block: 16 luma in raster order, 4 Cb, 4 Cr
    mb_bits         int32[n_mb]            bits of macroblock_layer() as written
    ssd_y/u/v       int64[mb_height]       squared error of the decoded picture
"""

from dataclasses import dataclass, field

import numpy as np

from ..cpu_simd.search_centre import coarse_shape
from ..standard.macroblock import N_LEVEL_BLOCKS, N_PARTITIONS


class Frame:
    """A picture on its way through the pipeline; taken from a pool and used again for a later picture."""

    def __init__(self, mb_width: int, mb_height: int) -> None:
        n_mb = mb_width * mb_height
        self.planes = _planes(mb_width, mb_height)
        self.rec = _planes(mb_width, mb_height)
        self.mb_type = np.zeros(n_mb, np.uint8)
        self.sub_mb_type = np.zeros((n_mb, 4), np.uint8)
        self.ref_idx = np.zeros((n_mb, 4), np.int8)
        self.mv = np.zeros((n_mb, 16, 2), np.int16)
        self.intra4x4_mode = np.zeros((n_mb, 16), np.int8)
        self.intra16x16_mode = np.zeros(n_mb, np.uint8)
        self.intra_chroma_mode = np.zeros(n_mb, np.uint8)
        self.cbp = np.zeros(n_mb, np.uint8)
        self.qp = np.zeros(n_mb, np.uint8)
        self.levels = np.zeros((n_mb, N_LEVEL_BLOCKS, 16), np.int16)
        self.total_coeff = np.zeros((n_mb, 24), np.uint8)
        self.mb_bits = np.zeros(n_mb, np.int32)
        self.ssd_y, self.ssd_u, self.ssd_v = (np.zeros(mb_height, np.int64) for _ in range(3))  # by macroblock row
        self.index = 0
        self.is_idr = False
        self.slice_qp = 0
        self.frame_num = 0
        self.idr_pic_id = 0
        self.n_ref = 0
        self.stage_seconds: dict[str, float] = {}

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by the names that the stage table uses."""
        named = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        for name, planes in (("source", self.planes), ("rec", self.rec)):
            named |= {f"{name}_{plane}": samples for plane, samples in zip("yuv", planes)}
        return named

    def load(self, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
        """Copy a picture of display size in and repeat its last column and row up to the coded size."""
        for plane, samples in zip(self.planes, (y, u, v)):
            height, width = samples.shape
            plane[:height, :width] = samples
            plane[:height, width:] = plane[:height, width - 1 : width]
            plane[height:] = plane[height - 1]


def _planes(mb_width: int, mb_height: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    luma, chroma = (16 * mb_height, 16 * mb_width), (8 * mb_height, 8 * mb_width)
    return np.zeros(luma, np.uint8), np.zeros(chroma, np.uint8), np.zeros(chroma, np.uint8)


@dataclass
class References:
    """The decoded picture buffer: deblocked pictures with borders, and the sliding window over their slots.

    luma    uint8[n_slots, 4, H + 2 pad, W + 2 pad]   integer samples G and half samples b, h, j (Figure 8-4)
    chroma  uint8[n_slots, 2, H/2 + pad, W/2 + pad]   Cb, Cr
    """

    luma: np.ndarray
    chroma: np.ndarray
    held: list[int] = field(default_factory=list)  # slots of the short-term references, latest first: RefPicList0

    @classmethod
    def allocate(cls, n_slots: int, height: int, width: int, pad: int) -> "References":
        return cls(
            np.zeros((n_slots, 4, height + 2 * pad, width + 2 * pad), np.uint8),
            np.zeros((n_slots, 2, height // 2 + pad, width // 2 + pad), np.uint8),
        )

    def free_slot(self) -> int:
        """A slot that no reference occupies: the current picture is reconstructed into it."""
        return next(slot for slot in range(len(self.luma)) if slot not in self.held)

    def clear(self) -> None:
        """8.2.5.1: an IDR picture marks all references unused."""
        self.held.clear()

    def push(self, slot: int, limit: int) -> None:
        """8.2.5.3: sliding window of `limit` frames."""
        self.held.insert(0, slot)
        del self.held[limit:]


class Workspace:
    """What the stages of one frame's loop hand to each other; one frame at a time is in the loop."""

    def __init__(self, mb_width: int, mb_height: int, n_ref: int) -> None:
        n_mb = mb_width * mb_height
        self.all_centre = np.zeros((n_ref, n_mb, 2), np.int16)  # integer samples
        self.all_predictor = np.zeros((n_ref, n_mb, 2), np.int16)  # quarter samples
        self.all_cost = np.zeros((n_ref, n_mb, N_PARTITIONS), np.int32)
        self.all_mv = np.zeros((n_ref, n_mb, N_PARTITIONS, 2), np.int16)  # quarter samples
        self.progress = np.zeros(1 + mb_height, np.int64)  # of the rows in mode_decision
        self.intra_cost = np.zeros(n_mb, np.int32)
        coarse = coarse_shape(16 * mb_height, 16 * mb_width)
        self.coarse_source = np.zeros(coarse, np.uint8)
        self.coarse_reference = np.zeros(coarse, np.uint8)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by the names that the stage table uses."""
        return vars(self)
