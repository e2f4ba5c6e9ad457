"""Pictures: their place in the pool of samples and motion, what marks them, and the frames a decoder gives out."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..standard.cabac_contexts import N_CONTEXTS
from ..standard.sample_format import SUB_HEIGHT_C, SUB_WIDTH_C, Sample, chroma_shape
from ..standard.syntax import Pps, Sps
from .intra_pred import DC
from .layout import LEVELS_PER_MB, N_KINDS, NO_SLICE, Macroblocks, Motion, Planes, Traces
from .scaling import residual_factors

UNUSED, SHORT_TERM, LONG_TERM = range(3)  # "used for ... reference" (8.2.5)
NO_SLOT = -1


@dataclass(eq=False)
class Picture:
    """A picture of the decoded picture buffer, or the one at work."""

    id: int  # unique in the decoder's life
    slot: int  # in the pool; NO_SLOT for a "non-existing" frame (8.2.5.2)
    frame_num: int
    sps: Sps
    top_poc: int = 0  # TopFieldOrderCnt
    bottom_poc: int = 0
    marking: int = UNUSED
    frame_num_wrap: int = 0  # 8.2.4.1, as of the slice at work
    long_term_frame_idx: int = 0
    waiting: bool = False  # "needed for output" (C.4)
    is_idr: bool = False
    slice_types: str = ""  # "I", "IP" ..., of its slices
    decode_index: int = 0
    display_index: int = -1  # place in output order; -1 before the output
    arrays: "MacroblockArrays | None" = None

    @property
    def poc(self) -> int:
        """8.2.1: PicOrderCnt of a frame."""
        return min(self.top_poc, self.bottom_poc)


@dataclass(eq=False)
class MacroblockArrays:
    """How a picture's macroblocks were coded, for research; macroblock address first, 4x4 blocks in raster order."""

    mb_type: np.ndarray  # uint8[n_mb], index of standard.macroblock.MB_TYPE_NAMES
    sub_type: np.ndarray  # uint8[n_mb, 4]: 0 8x8, 1 8x4, 2 4x8, 3 4x4, 4 direct; per 8x8 quadrant
    ref_idx: np.ndarray  # int8[n_mb, 2, 4]: list, quadrant; -1 = list not used
    mv: np.ndarray  # int16[n_mb, 2, 16, 2]: list, block, (x, y) in quarter samples
    qp: np.ndarray  # uint8[n_mb], QP_Y; 0 in I_PCM
    cbp: np.ndarray  # uint8[n_mb]
    transform_8x8: np.ndarray  # uint8[n_mb]
    intra_mode: np.ndarray  # int8[n_mb, 16]: Intra4x4PredMode or Intra8x8PredMode; 2 elsewhere
    intra16x16_mode: np.ndarray  # uint8[n_mb]
    chroma_mode: np.ndarray  # uint8[n_mb], intra_chroma_pred_mode
    total_coeff: np.ndarray  # uint8[n_mb, 16], luma
    bits: np.ndarray  # int32[n_mb], of the slice data (slice_data.py)
    slice_id: np.ndarray  # int32[n_mb], number of the slice in the picture


@dataclass(eq=False)
class Frame:
    """One decoded frame, cropped: y uint8[height, width], u and v uint8[height / 2, width / 2]."""

    y: np.ndarray
    u: np.ndarray
    v: np.ndarray
    poc: int
    frame_num: int
    is_idr: bool
    slice_types: str  # types of its slices, "I", "P", "IP" ...
    decode_index: int  # place in decoding order
    sps: Sps
    macroblocks: MacroblockArrays | None = None  # only from Decoder(macroblocks=True)

    @property
    def width(self) -> int:
        """Luma samples."""
        return self.y.shape[1]

    @property
    def height(self) -> int:
        """Luma samples."""
        return self.y.shape[0]

    def to_bytes(self) -> bytes:
        """Planar I420: all of Y, then U, then V."""
        return self.y.tobytes() + self.u.tobytes() + self.v.tobytes()


class Checked(NamedTuple):
    """The arrays of a pool that bounds.py has found to be right, and what parameters of slices in it may be."""

    arrays: tuple[object, ...]
    low: np.ndarray  # int64[N_PARAMETERS]
    span: np.ndarray  # uint64[N_PARAMETERS], greatest - least


class Pool:
    """Arrays of all pictures of one sequence (layout.py says which), and the state of the picture at work."""

    def __init__(self, sps: Sps, slots: int, traced: bool = False) -> None:
        mb_width, mb_height = sps.mb_width, sps.mb_height
        n_mb = mb_width * mb_height
        height, width = 16 * mb_height, 16 * mb_width
        chroma = chroma_shape(height, width)
        h4, w4, h8, w8 = height // 4, width // 4, height // 8, width // 8
        self.mb_width, self.mb_height, self.slots = mb_width, mb_height, slots
        self.checked: Checked | None = None
        self._sps = sps
        self._factors: tuple[Pps, tuple[np.ndarray, np.ndarray]] | None = None  # for the last slice
        self.unused_levels = False  # mbs.levels holds what was parsed and not reconstructed
        self.planes = Planes(
            y=np.zeros((slots, height, width), Sample),
            u=np.zeros((slots, *chroma), Sample),
            v=np.zeros((slots, *chroma), Sample),
        )
        self.motion = Motion(
            mv=np.zeros((slots, 2, h4, w4, 2), np.int16),
            ref_idx=np.zeros((slots, 2, h8, w8), np.int8),
            ref_id=np.zeros((slots, 2, h8, w8), np.int32),
        )
        self.mbs = Macroblocks(
            slice_id=np.full(n_mb, NO_SLICE, np.int32),
            mb_type=np.zeros(n_mb, np.uint8),
            sub_type=np.zeros((n_mb, 4), np.uint8),
            transform_8x8=np.zeros(n_mb, np.uint8),
            cbp=np.zeros(n_mb, np.uint8),
            qp=np.zeros(n_mb, np.uint8),
            intra16x16_mode=np.zeros(n_mb, np.uint8),
            chroma_mode=np.zeros(n_mb, np.uint8),
            intra_mode=np.zeros((h4, w4), np.int8),
            nonzero=np.zeros((h4, w4), np.uint8),
            nonzero_chroma=np.zeros((2, h8, w8), np.uint8),
            dc_coded=np.zeros(n_mb, np.uint8),
            mvd=np.zeros((2, h4, w4, 2), np.int16),
            levels=np.zeros((n_mb, LEVELS_PER_MB), np.int16),
            bits=np.zeros(n_mb, np.int32),
            bits_by_kind=np.zeros((n_mb, N_KINDS), np.int32),
            contexts=np.zeros(N_CONTEXTS, np.uint8),
        )
        size = int(traced)  # or nothing
        self.traces = Traces(
            y=np.zeros((size * height, size * width), Sample),
            u=np.zeros((size * chroma[0], size * chroma[1]), Sample),
            v=np.zeros((size * chroma[0], size * chroma[1]), Sample),
            energy=np.zeros(size * n_mb, np.int32),
            strengths=np.zeros((2 * size, size * h4, size * w4), np.uint8),
        )

    def factors_for(self, pps: Pps) -> tuple[np.ndarray, np.ndarray]:
        """What levels are multiplied by (scaling.py)."""
        if self._factors is None or self._factors[0] is not pps:
            self._factors = pps, residual_factors(self._sps, pps)
        return self._factors[1]

    def clear(self, slot: int) -> None:
        """What a macroblock has unless its syntax says otherwise, in all of a picture that begins."""
        mbs, motion = self.mbs, self.motion
        mbs.slice_id.fill(NO_SLICE)
        mbs.intra_mode.fill(DC)
        for array in (
            mbs.sub_type, mbs.transform_8x8, mbs.cbp, mbs.intra16x16_mode, mbs.chroma_mode, mbs.nonzero,
            mbs.nonzero_chroma, mbs.dc_coded, mbs.bits, mbs.bits_by_kind, self.traces.energy, self.traces.strengths,
        ):  # fmt: skip
            array.fill(0)
        motion.ref_idx[slot].fill(-1)
        motion.ref_id[slot].fill(-1)

    def frame(self, picture: Picture) -> Frame:
        """The cropped samples of a picture, copied."""
        left, right, top, bottom = picture.sps.crop
        height, width = self.planes.y.shape[1:]
        rows, columns = slice(top, height - bottom), slice(left, width - right)
        half_rows = slice(top // SUB_HEIGHT_C, (height - bottom) // SUB_HEIGHT_C)
        half_columns = slice(left // SUB_WIDTH_C, (width - right) // SUB_WIDTH_C)
        slot = picture.slot
        return Frame(
            y=self.planes.y[slot, rows, columns].copy(),
            u=self.planes.u[slot, half_rows, half_columns].copy(),
            v=self.planes.v[slot, half_rows, half_columns].copy(),
            poc=picture.poc,
            frame_num=picture.frame_num,
            is_idr=picture.is_idr,
            slice_types=picture.slice_types,
            decode_index=picture.decode_index,
            sps=picture.sps,
            macroblocks=picture.arrays,
        )

    def macroblock_arrays(self, picture: Picture) -> MacroblockArrays:
        """Copies of the macroblock state of the picture at work, by macroblock address."""
        mbs, slot = self.mbs, picture.slot
        ref_idx = _by_macroblock(self.motion.ref_idx[slot].transpose(1, 2, 0), 2)
        mv = self.motion.mv[slot].transpose(1, 2, 0, 3).copy()
        inter = np.repeat(np.repeat(self.motion.ref_idx[slot] >= 0, 2, axis=1), 2, axis=2)
        mv *= inter.transpose(1, 2, 0)[..., None]
        return MacroblockArrays(
            mb_type=mbs.mb_type.copy(),
            sub_type=mbs.sub_type.copy(),
            ref_idx=np.ascontiguousarray(ref_idx.transpose(0, 2, 1)),
            mv=np.ascontiguousarray(_by_macroblock(mv, 4).transpose(0, 2, 1, 3)),
            qp=mbs.qp.copy(),
            cbp=mbs.cbp.copy(),
            transform_8x8=mbs.transform_8x8.copy(),
            intra_mode=_by_macroblock(mbs.intra_mode, 4).copy(),
            intra16x16_mode=mbs.intra16x16_mode.copy(),
            chroma_mode=mbs.chroma_mode.copy(),
            total_coeff=_by_macroblock(mbs.nonzero, 4).copy(),
            bits=mbs.bits.copy(),
            slice_id=mbs.slice_id.copy(),
        )


def _by_macroblock(grid: np.ndarray, n: int) -> np.ndarray:
    """A grid [H, W, ...] of n x n blocks a macroblock as [n_mb, n * n, ...]."""
    height, width, *rest = grid.shape
    tiles = grid.reshape(height // n, n, width // n, n, *rest).swapaxes(1, 2)
    return tiles.reshape(height // n * (width // n), n * n, *rest)
