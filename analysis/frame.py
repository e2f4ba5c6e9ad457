"""An analysed frame: its place, its size in bits, its references, and arrays of its macroblocks, for research.

All grids cover the coded picture, whose size is a multiple of 16 and at least that of the shown one (`crop`). H, W: its
luma samples; MH, MW = H / 16, W / 16; H4, W4 = H / 4, W / 4.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from ..standard.cabac_contexts import UNIT
from ..standard.macroblock import MB_TYPE_NAMES as MB_TYPE_NAMES
from ..standard.syntax import Pps, SliceHeader, Sps

SUB_TYPE_NAMES = ("8x8", "8x4", "4x8", "4x4", "direct")  # of sub_type
BIT_KINDS = ("type", "motion", "coded", "luma", "chroma")  # last axis of bits_by_kind
BIT_UNIT = UNIT  # of bits_by_kind in a bit


@dataclass(eq=False)
class MacroblockGrids:
    """Arrays of a frame's macroblocks and 4x4 blocks, in their places in the picture."""

    mb_type: np.ndarray  # uint8[MH, MW], index of MB_TYPE_NAMES
    sub_type: np.ndarray  # uint8[MH, MW, 4], index of SUB_TYPE_NAMES, by 8x8 quadrant; 0 but in P_8x8, B_8x8, direct
    skip: np.ndarray  # bool[MH, MW], P_Skip or B_Skip
    transform_8x8: np.ndarray  # uint8[MH, MW], transform_size_8x8_flag
    intra_mode: np.ndarray  # int8[H4, W4], Intra4x4PredMode or Intra8x8PredMode (8.3.1.1, 8.3.2.1); -1 in other types
    intra16x16_mode: np.ndarray  # int8[MH, MW], Intra16x16PredMode; -1 in other types
    chroma_mode: np.ndarray  # int8[MH, MW], intra_chroma_pred_mode; -1 in I_PCM and inter macroblocks
    mv: np.ndarray  # int16[2, H4, W4, 2]: list 0 and 1; (x, y) in quarter samples; 0 where the list is not used
    ref_idx: np.ndarray  # int8[2, H4, W4], index in the slice's list; -1 where the list is not used
    reference: np.ndarray  # int32[2, H4, W4], display_index of the reference; -1: none, or one that is never shown
    qp: np.ndarray  # uint8[MH, MW], QP_Y; of skipped macroblocks and I_PCM that of the one before (7.4.5)
    cbp: np.ndarray  # uint8[MH, MW], coded_block_pattern: bits 0-3 luma quadrants, 4-5 chroma
    total_coeff: np.ndarray  # uint8[H4, W4], luma levels that are not 0; with CABAC and 8x8 transform those of the 8x8 block
    bits: np.ndarray  # int32[MH, MW]; their sum over a slice is the size of its slice data exactly
    bits_by_kind: np.ndarray  # int32[MH, MW, 5] by BIT_KINDS, in 1 / 256 bits (BIT_UNIT)
    slice_id: np.ndarray  # int32[MH, MW], number of the slice in the frame
    residual_energy: np.ndarray  # int32[MH, MW], sum of squares of luma before deblocking minus its prediction
    strengths: np.ndarray  # uint8[2, H4, W4], bS (8.7.2.1) of the left (0) and upper (1) edge of a block; 0 unfiltered

    def items(self) -> list[tuple[str, np.ndarray]]:
        """Names and arrays."""
        return [(row.name, getattr(self, row.name)) for row in fields(self)]


class Samples(NamedTuple):
    """Planes of the shown part of a frame: y uint8[height, width], u and v uint8[height / 2, width / 2]."""

    y: np.ndarray
    u: np.ndarray
    v: np.ndarray


class AnalysedSlice(NamedTuple):
    """A slice: its header, and bits of its NAL unit."""

    slice_type: str  # I, P or B
    header: SliceHeader
    pps: Pps
    qp: int  # SliceQP_Y
    first_mb: int  # address of the first macroblock
    mb_count: int
    data_bits: int  # of slice_data(); the sum of `bits` of its macroblocks
    references: tuple[tuple[int, ...], tuple[int, ...]]  # display_index of list 0 and 1; -1: never shown, missing


@dataclass(eq=False)
class AnalysedFrame:
    """A frame of a stream, with what its syntax says.

    bits: of the access unit as it lies in the stream: start codes, parameter sets, SEI, slices, filler data. header_bits:
    those outside of slice data. bits_by_kind: headers, vectors, luma and chroma as `h264lite encode --csv` has them.
    An end of stream (NAL unit type 11) behind an end of sequence counts for no frame.
    """

    coding_index: int  # place in the stream, from 0
    display_index: int  # place among the shown frames, from 0; -1 if it is never shown (no_output_of_prior_pics_flag)
    poc: int  # PicOrderCnt (8.2.1)
    frame_num: int
    frame_type: str  # I, P or B: the most general type of its slices
    is_idr: bool
    is_reference: bool
    nal_ref_idc: int
    width: int  # luma samples that are shown
    height: int
    crop: tuple[int, int, int, int]  # luma samples of the coded picture that are not: left, right, top, bottom
    mb_width: int
    mb_height: int
    bits: int
    header_bits: int
    bits_by_kind: dict[str, int]
    slices: tuple[AnalysedSlice, ...]
    sps: Sps
    units: tuple[tuple[int, int], ...]  # nal_unit_type and bytes in the stream, start code included
    data: bytes  # the access unit as Annex B, start codes of 4 bytes, without zeros behind NAL units
    macroblocks: MacroblockGrids
    samples: Samples | None = None  # decoded, deblocked; with samples=True
    prediction: Samples | None = None  # before the residual is added; of I_PCM its samples; with samples=True

    @property
    def references(self) -> tuple[int, ...]:
        """display_index of all references of its lists, ascending, without -1."""
        return tuple(sorted({k for s in self.slices for entries in s.references for k in entries if k >= 0}))

    def by_macroblock(self, name: str) -> np.ndarray:
        """An array of `macroblocks` by macroblock address: [n_mb, ...], [n_mb, 16] or [n_mb, 2, 16, ...] of 4x4 blocks."""
        grid, n_mb = getattr(self.macroblocks, name), self.mb_width * self.mb_height
        if grid.shape[:2] == (self.mb_height, self.mb_width):
            return grid.reshape(n_mb, *grid.shape[2:])
        axis = 0 if grid.shape[:2] == (4 * self.mb_height, 4 * self.mb_width) else 1
        rest = grid.shape[axis + 2 :]
        tiles = grid.reshape(*grid.shape[:axis], self.mb_height, 4, self.mb_width, 4, *rest).swapaxes(axis + 1, axis + 2)
        tiles = tiles.reshape(*grid.shape[:axis], n_mb, 16, *rest)
        return np.ascontiguousarray(tiles.swapaxes(0, 1) if axis else tiles)
