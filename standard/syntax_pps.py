"""Syntax of the picture parameter set (7.3.2.2), for writing and reading, and the scaling lists that result."""

from dataclasses import dataclass, field

import numpy as np

from .bits import BitReader, BitWriter, SyntaxElements
from .syntax_sps import LARGEST_FRAME_MBS, ScalingMatrix, Sps, default_lists, scaling_matrix


@dataclass
class Pps:
    """7.3.2.2: pic_parameter_set_rbsp()."""

    pic_parameter_set_id: int = 0
    seq_parameter_set_id: int = 0
    entropy_coding_mode_flag: int = 0
    bottom_field_pic_order_in_frame_present_flag: int = 0
    num_slice_groups_minus1: int = 0
    slice_group_map_type: int = 0
    run_length_minus1: list[int] = field(default_factory=list)
    top_left: list[int] = field(default_factory=list)
    bottom_right: list[int] = field(default_factory=list)
    slice_group_change_direction_flag: int = 0
    slice_group_change_rate_minus1: int = 0
    pic_size_in_map_units_minus1: int = 0
    slice_group_id: list[int] = field(default_factory=list)
    num_ref_idx_l0_default_active_minus1: int = 0
    num_ref_idx_l1_default_active_minus1: int = 0
    weighted_pred_flag: int = 0
    weighted_bipred_idc: int = 0
    pic_init_qp_minus26: int = 0
    pic_init_qs_minus26: int = 0
    chroma_qp_index_offset: int = 0
    deblocking_filter_control_present_flag: int = 0
    constrained_intra_pred_flag: int = 0
    redundant_pic_cnt_present_flag: int = 0
    transform_8x8_mode_flag: int = 0
    pic_scaling_matrix_present_flag: int = 0
    scaling: ScalingMatrix = field(default_factory=ScalingMatrix)
    second_chroma_qp_index_offset: int | None = None  # None = as chroma_qp_index_offset

    @property
    def chroma_qp_index_offset_cr(self) -> int:
        """7.4.2.2: the offset for Cr."""
        second = self.second_chroma_qp_index_offset
        return self.chroma_qp_index_offset if second is None else second


def _slice_groups(rw: SyntaxElements, pps: Pps) -> None:
    """7.3.2.2: the elements of slice groups (flexible macroblock ordering)."""
    groups = pps.num_slice_groups_minus1 + 1
    map_type = rw.ue("slice_group_map_type", pps, 0, 6)
    last_map_unit = LARGEST_FRAME_MBS - 1
    if map_type == 0:
        for i in range(groups):
            rw.ue("run_length_minus1", pps, 0, last_map_unit, index=i)
    elif map_type == 2:
        for i in range(groups - 1):
            rw.ue("top_left", pps, 0, last_map_unit, index=i)
            rw.ue("bottom_right", pps, 0, last_map_unit, index=i)
    elif map_type in (3, 4, 5):
        rw.flag("slice_group_change_direction_flag", pps)
        rw.ue("slice_group_change_rate_minus1", pps, 0, last_map_unit)
    elif map_type == 6:
        rw.ue("pic_size_in_map_units_minus1", pps, 0, last_map_unit)
        bits = (groups - 1).bit_length()
        for i in range(pps.pic_size_in_map_units_minus1 + 1):
            rw.u(bits, "slice_group_id", pps, 0, groups - 1, index=i)


def pic_parameter_set(rw: SyntaxElements, pps: Pps, sps: Sps | None = None) -> None:
    """7.3.2.2: pic_parameter_set_rbsp(); the SPS is needed only where its chroma format is not 4:2:0 or 8 bits."""
    rw.ue("pic_parameter_set_id", pps, 0, 255)
    rw.ue("seq_parameter_set_id", pps, 0, 31)
    rw.flag("entropy_coding_mode_flag", pps)
    rw.flag("bottom_field_pic_order_in_frame_present_flag", pps)
    if rw.ue("num_slice_groups_minus1", pps, 0, 7):
        _slice_groups(rw, pps)
    rw.ue("num_ref_idx_l0_default_active_minus1", pps, 0, 31)
    rw.ue("num_ref_idx_l1_default_active_minus1", pps, 0, 31)
    rw.flag("weighted_pred_flag", pps)
    rw.u(2, "weighted_bipred_idc", pps, 0, 2)
    qp_bd_offset = 6 * (sps.bit_depth_luma_minus8 if sps else 6)
    rw.se("pic_init_qp_minus26", pps, -26 - (0 if rw.writing and not sps else qp_bd_offset), 25)
    rw.se("pic_init_qs_minus26", pps, -26, 25)
    rw.se("chroma_qp_index_offset", pps, -12, 12)
    rw.flag("deblocking_filter_control_present_flag", pps)
    rw.flag("constrained_intra_pred_flag", pps)
    rw.flag("redundant_pic_cnt_present_flag", pps)
    high = pps.transform_8x8_mode_flag or pps.pic_scaling_matrix_present_flag
    if rw.more_data(bool(high) or pps.second_chroma_qp_index_offset is not None):
        rw.flag("transform_8x8_mode_flag", pps)
        if rw.flag("pic_scaling_matrix_present_flag", pps):
            lists_8x8 = 6 if sps and sps.chroma_format_idc == 3 else 2
            scaling_matrix(rw, pps.scaling, 6 + lists_8x8 * pps.transform_8x8_mode_flag)
        if rw.writing and pps.second_chroma_qp_index_offset is None:
            pps.second_chroma_qp_index_offset = pps.chroma_qp_index_offset
        rw.se("second_chroma_qp_index_offset", pps, -12, 12)
    rw.trailing_bits()


def write_pps(pps: Pps, sps: Sps | None = None) -> bytes:
    """7.3.2.2: RBSP of a picture parameter set."""
    writer = BitWriter()
    pic_parameter_set(writer, pps, sps)
    return writer.to_bytes()


def parse_pps(rbsp: bytes, sps: Sps | None = None) -> Pps:
    """7.3.2.2: a picture parameter set from its RBSP; `sps` where its chroma format is not 4:2:0."""
    pps = Pps()
    pic_parameter_set(BitReader(rbsp), pps, sps)
    return pps


def scaling_lists(sps: Sps, pps: Pps) -> tuple[np.ndarray, np.ndarray]:
    """7.4.2.2, Table 7-2: the scaling lists in force, int32[6, 16] (Intra Y Cb Cr, Inter Y Cb Cr) and int32[6, 64].

    The 8x8 lists are Intra Y, Inter Y, Intra Cb, Inter Cb, Intra Cr, Inter Cr; all in scan order.
    """
    lists = [[16] * 16] * 6 + [[16] * 64] * 6
    fallback = default_lists()
    if sps.seq_scaling_matrix_present_flag:
        lists = fallback = sps.scaling.resolve(fallback)
    if pps.pic_scaling_matrix_present_flag:
        lists = pps.scaling.resolve(fallback)
    return np.array(lists[:6], np.int32), np.array(lists[6:], np.int32)
