"""One picture at work: its slices through the three walks, then deblocking."""

from typing import NamedTuple

import numpy as np

from ..standard.cabac_contexts import initial_states
from ..standard.syntax import B as TYPE_B
from ..standard.syntax import I as TYPE_I
from ..standard.syntax import Pps, SliceHeader
from . import layout as at
from .bitreader import PADDING
from .bounds import check_deblocking_call, check_slice_call
from .deblock import deblock_picture
from .errors import CAUSES, BitstreamError, Unsupported
from .motion import derive_motion
from .picture import NO_SLOT, SHORT_TERM, Picture, Pool
from .reconstruct import reconstruct_slice
from .reference_lists import RefList, kernel_references, reference_lists, weighting
from .slice_data import parse_slice


class CodedSlice(NamedTuple):
    """What is known of a decoded slice."""

    header: SliceHeader
    pps: Pps
    first_mb: int  # address
    end_mb: int
    list0: RefList
    list1: RefList
    data_bits: int  # of slice_data() without cabac_alignment_one_bit


_SLICE_NAMES = {at.SLICE_P: "P", at.SLICE_B: "B", at.SLICE_I: "I"}


def stop_bit(rbsp: bytes) -> int:
    """7.3.2.11: position of rbsp_stop_one_bit, in bits."""
    stripped = rbsp.rstrip(b"\0")
    if not stripped:
        raise BitstreamError("a slice without rbsp_stop_one_bit", 0)
    last = stripped[-1]
    return 8 * len(stripped) - (last & -last).bit_length()


class PictureDecoding:
    """Decodes the slices of one picture into its place in the pool."""

    def __init__(self, picture: Picture, pool: Pool, header: SliceHeader) -> None:
        self.picture = picture
        self.header = header  # of the first slice
        self._pool = pool
        self._rows: list[list[int]] = []  # of the slice table
        self._decoded = 0  # macroblocks
        self._next = 0  # address behind the last slice
        self._stale_mvd = True
        self.slices: list[CodedSlice] = []
        pool.clear(picture.slot)
        if pool.unused_levels:  # of a slice with an error
            pool.mbs.levels[:] = 0
            pool.unused_levels = False

    def decode_slice(self, header: SliceHeader, pps: Pps, rbsp: bytes, position: int, references: list[Picture]) -> None:
        """7.3.4, 8.3 to 8.5: parse a slice that begins at bit `position` of its RBSP, and reconstruct it."""
        self._check_order(header.first_mb_in_slice)
        pool, picture, mbs = self._pool, self.picture, self._pool.mbs
        list0: RefList = []
        list1: RefList = []
        if header.type_mod_5 != TYPE_I:
            list0, list1 = reference_lists(header, picture, references)
        arrays = kernel_references(header, pps, picture, list0, list1)
        p = self._parameters(header, pps, list1)
        data = np.zeros(len(rbsp) + PADDING, np.uint8)
        data[: len(rbsp)] = np.frombuffer(rbsp, np.uint8)
        s = np.zeros(at.N_STATE, np.int64)
        s[at.S_POS], s[at.S_END] = position, stop_bit(rbsp)
        if pps.entropy_coding_mode_flag:
            mbs.contexts[:] = initial_states(int(p[at.P_CABAC_INIT]), int(p[at.P_QP]))
            if self._stale_mvd:
                mbs.mvd.fill(0)  # contexts look at that of macroblocks without motion, too
                self._stale_mvd = False
        factors = pool.factors_for(pps)
        check_slice_call(pool, p, s, data.size, arrays, factors)
        pool.unused_levels = True
        parse_slice(data, s, p, mbs, pool.motion)
        first, end = int(p[at.P_FIRST_MB]), int(p[at.P_END_MB])
        self._raise(int(s[at.S_ERROR]), int(s[at.S_MB]), int(s[at.S_POS]))
        if end == first:
            raise BitstreamError("a slice without macroblocks", position)
        if header.type_mod_5 != TYPE_I:
            self._raise(*derive_motion(p, mbs, pool.motion, arrays))
        self._raise(*reconstruct_slice(p, mbs, pool.planes, pool.motion, arrays, *factors, pool.traces))
        pool.unused_levels = False
        name = _SLICE_NAMES[int(p[at.P_SLICE_TYPE])]
        if name not in picture.slice_types:
            picture.slice_types = "".join(sorted(picture.slice_types + name, key="IPB".index))
        begin = position + 7 & ~7 if pps.entropy_coding_mode_flag else position
        self.slices.append(CodedSlice(header, pps, first, end, list0, list1, int(s[at.S_END]) - begin))
        self._decoded += end - first
        self._next = end

    @property
    def is_complete(self) -> bool:
        """Whether all macroblocks are decoded."""
        return self._decoded >= self._pool.mbs.slice_id.size

    def finish(self) -> None:
        """8.7: deblock the picture, which must be complete."""
        mbs, pool = self._pool.mbs, self._pool
        if not self.is_complete:
            missing = int(np.argmax(mbs.slice_id < 0))
            raise BitstreamError(
                f"{mbs.slice_id.size - self._decoded} macroblocks of picture {self.picture.decode_index} are missing,"
                f" the first is {missing}"
            )
        table = np.array(self._rows, np.int32)
        if (table[:, at.SLICE_DISABLE] != 1).any():
            check_deblocking_call(pool, table, self.picture.slot)
            arrays = (mbs.slice_id, mbs.mb_type, mbs.cbp, mbs.qp, mbs.transform_8x8, mbs.nonzero)
            deblock_picture(arrays, table, pool.mb_width, pool.planes, pool.motion, self.picture.slot, pool.traces.strengths)

    def _check_order(self, first: int) -> None:
        """7.4.3: slices come in order of their first macroblocks, else it is arbitrary slice order."""
        if first < self._next:
            if self._pool.mbs.slice_id[first] >= 0:
                raise BitstreamError(f"macroblock {first} is coded twice")
            raise Unsupported("arbitrary slice order (ASO)")

    def _parameters(self, header: SliceHeader, pps: Pps, list1: RefList) -> np.ndarray:
        """The slice parameters for the kernels, int64[N_PARAMETERS]; adds the slice to the slice table."""
        sps, picture = self.picture.sps, self.picture
        is_b, is_i = header.type_mod_5 == TYPE_B, header.type_mod_5 == TYPE_I
        colocated = list1[0] if list1 else None
        values = {
            at.P_SLICE_TYPE: at.SLICE_I if is_i else at.SLICE_B if is_b else at.SLICE_P,
            at.P_FIRST_MB: header.first_mb_in_slice,
            at.P_SLICE_ID: len(self._rows),
            at.P_MB_WIDTH: sps.mb_width,
            at.P_ROWS_PER_MB: at.rows_per_mb(sps.mb_width),
            at.P_N_MB: sps.mb_width * sps.mb_height,
            at.P_QP: header.qp(pps),
            at.P_REFS_0: 0 if is_i else header.num_ref_idx_l0_active_minus1 + 1,
            at.P_REFS_1: header.num_ref_idx_l1_active_minus1 + 1 if is_b else 0,
            at.P_TRANSFORM_8x8: pps.transform_8x8_mode_flag,
            at.P_CONSTRAINED_INTRA: pps.constrained_intra_pred_flag,
            at.P_SPATIAL_DIRECT: header.direct_spatial_mv_pred_flag,
            at.P_DIRECT_8x8: sps.direct_8x8_inference_flag,
            at.P_CB_OFFSET: pps.chroma_qp_index_offset,
            at.P_CR_OFFSET: pps.chroma_qp_index_offset_cr,
            at.P_WEIGHTING: weighting(header, pps) if not is_i else at.WEIGHT_DEFAULT,
            at.P_LUMA_DENOM: header.luma_log2_weight_denom,
            at.P_CHROMA_DENOM: header.chroma_log2_weight_denom,
            at.P_CABAC: pps.entropy_coding_mode_flag,
            at.P_CABAC_INIT: 3 if is_i else header.cabac_init_idc,
            at.P_SLOT: picture.slot,
            at.P_COL_SLOT: NO_SLOT if colocated is None else colocated.slot,
            at.P_COL_SHORT: colocated is not None and colocated.marking == SHORT_TERM,
        }
        p = np.zeros(at.N_PARAMETERS, np.int64)
        for index, value in values.items():
            p[index] = value
        offsets = (2 * header.slice_alpha_c0_offset_div2, 2 * header.slice_beta_offset_div2)
        chroma = (pps.chroma_qp_index_offset, pps.chroma_qp_index_offset_cr)
        self._rows.append([header.disable_deblocking_filter_idc, *offsets, *chroma])
        return p

    @staticmethod
    def _raise(error: int, mb: int, position: int | None = None) -> None:
        """Turn a kernel's error code into an exception."""
        if error:
            raise BitstreamError(f"macroblock {mb}: {CAUSES[error]}", position)
