"""Syntax of the slice header (7.3.3), for writing and reading, and where one picture ends and the next begins."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .bits import NAL_IDR, BitReader, BitstreamError, BitWriter, SyntaxElements
from .syntax_pps import Pps
from .syntax_sps import Sps

# Table 7-6: slice_type % 5
P, B, I, SP, SI = range(5)
SLICE_TYPE_NAMES = ("P", "B", "I", "SP", "SI")
# 7.4.3.3: each of 32 reference fields becomes long-term and then unused at most, and 4, 5 and 6 come once.
MOST_OPERATIONS = 2 * 32 + 3


@dataclass
class ListModification:
    """7.3.3.1: one entry of ref_pic_list_modification(): idc 0, 1 short-term, 2 long-term; the final 3 is not kept."""

    modification_of_pic_nums_idc: int = 0
    abs_diff_pic_num_minus1: int = 0
    long_term_pic_num: int = 0


@dataclass
class Weight:
    """7.3.3.2: weights and offsets of one reference picture; chroma: Cb, Cr."""

    luma_weight_flag: int = 0
    luma_weight: int = 1
    luma_offset: int = 0
    chroma_weight_flag: int = 0
    chroma_weight: list[int] = field(default_factory=list)
    chroma_offset: list[int] = field(default_factory=list)


@dataclass
class MarkingOperation:
    """7.3.3.3: one memory_management_control_operation and its operands (the final 0 is not kept)."""

    memory_management_control_operation: int = 0
    difference_of_pic_nums_minus1: int = 0
    long_term_pic_num: int = 0
    long_term_frame_idx: int = 0
    max_long_term_frame_idx_plus1: int = 0


@dataclass
class SliceHeader:
    """7.3.3: slice_header(), with nal_unit_type and nal_ref_idc of its NAL unit."""

    nal_unit_type: int = 1
    nal_ref_idc: int = 0
    first_mb_in_slice: int = 0
    slice_type: int = I
    pic_parameter_set_id: int = 0
    colour_plane_id: int = 0
    frame_num: int = 0
    field_pic_flag: int = 0
    bottom_field_flag: int = 0
    idr_pic_id: int = 0
    pic_order_cnt_lsb: int = 0
    delta_pic_order_cnt_bottom: int = 0
    delta_pic_order_cnt: list[int] = field(default_factory=lambda: [0, 0])
    redundant_pic_cnt: int = 0
    direct_spatial_mv_pred_flag: int = 0
    num_ref_idx_active_override_flag: int = 0
    num_ref_idx_l0_active_minus1: int = 0
    num_ref_idx_l1_active_minus1: int = 0
    ref_pic_list_modification_flag_l0: int = 0
    ref_pic_list_modification_flag_l1: int = 0
    modifications_l0: list[ListModification] = field(default_factory=list)
    modifications_l1: list[ListModification] = field(default_factory=list)
    luma_log2_weight_denom: int = 0
    chroma_log2_weight_denom: int = 0
    weights_l0: list[Weight] = field(default_factory=list)
    weights_l1: list[Weight] = field(default_factory=list)
    no_output_of_prior_pics_flag: int = 0
    long_term_reference_flag: int = 0
    adaptive_ref_pic_marking_mode_flag: int = 0
    marking_operations: list[MarkingOperation] = field(default_factory=list)
    cabac_init_idc: int = 0
    slice_qp_delta: int = 0
    sp_for_switch_flag: int = 0
    slice_qs_delta: int = 0
    disable_deblocking_filter_idc: int = 0
    slice_alpha_c0_offset_div2: int = 0
    slice_beta_offset_div2: int = 0
    slice_group_change_cycle: int = 0

    @property
    def type_mod_5(self) -> int:
        """P, B, I, SP or SI: slice_type without the promise about the picture's other slices."""
        return self.slice_type % 5

    @property
    def idr(self) -> int:
        """7.4.1.2.4: IdrPicFlag."""
        return int(self.nal_unit_type == NAL_IDR)

    def max_frame_num(self, sps: Sps) -> int:
        """7.4.3: MaxFrameNum."""
        return 1 << sps.log2_max_frame_num_minus4 + 4

    def qp(self, pps: Pps) -> int:
        """7.4.3: SliceQPY."""
        return 26 + pps.pic_init_qp_minus26 + self.slice_qp_delta


def _list_modifications(rw: SyntaxElements, entries: list[ListModification], active: int) -> None:
    """7.3.3.1: the entries for one list of `active` pictures: at most that many, then the end mark 3."""
    for i in range(active + 1):
        if not rw.writing:
            entries.append(ListModification())
        entry = entries[i] if i < len(entries) else ListModification(3)
        idc = rw.ue("modification_of_pic_nums_idc", entry, 3 if i == active else 0, 3)
        if idc == 3:
            del entries[i:]
            return
        rw.ue("long_term_pic_num" if idc == 2 else "abs_diff_pic_num_minus1", entry)


def _ref_pic_list_modification(rw: SyntaxElements, header: SliceHeader) -> None:
    """7.3.3.1: ref_pic_list_modification()."""
    if header.type_mod_5 in (P, SP, B) and rw.flag("ref_pic_list_modification_flag_l0", header):
        _list_modifications(rw, header.modifications_l0, header.num_ref_idx_l0_active_minus1 + 1)
    if header.type_mod_5 == B and rw.flag("ref_pic_list_modification_flag_l1", header):
        _list_modifications(rw, header.modifications_l1, header.num_ref_idx_l1_active_minus1 + 1)


def _weights(rw: SyntaxElements, header: SliceHeader, weights: list[Weight], active: int, chroma: bool) -> None:
    """7.3.3.2: the weights of the `active` pictures of one list."""
    for i in range(active):
        if not rw.writing:
            weights.append(Weight())
        weight = weights[i]
        if rw.flag("luma_weight_flag", weight):
            rw.se("luma_weight", weight, -128, 127)
            rw.se("luma_offset", weight, -128, 127)
        else:
            rw.infer("luma_weight", weight, 1 << header.luma_log2_weight_denom)
        coded = chroma and rw.flag("chroma_weight_flag", weight)
        for j in range(2 if coded else 0):
            rw.se("chroma_weight", weight, -128, 127, index=j)
            rw.se("chroma_offset", weight, -128, 127, index=j)
        if not coded and not rw.writing:
            weight.chroma_weight = [1 << header.chroma_log2_weight_denom] * 2
            weight.chroma_offset = [0, 0]


def _pred_weight_table(rw: SyntaxElements, header: SliceHeader, sps: Sps) -> None:
    """7.3.3.2: pred_weight_table()."""
    chroma = sps.chroma_array_type != 0
    rw.ue("luma_log2_weight_denom", header, 0, 7)
    if chroma:
        rw.ue("chroma_log2_weight_denom", header, 0, 7)
    _weights(rw, header, header.weights_l0, header.num_ref_idx_l0_active_minus1 + 1, chroma)
    if header.type_mod_5 == B:
        _weights(rw, header, header.weights_l1, header.num_ref_idx_l1_active_minus1 + 1, chroma)


def _dec_ref_pic_marking(rw: SyntaxElements, header: SliceHeader) -> None:
    """7.3.3.3: dec_ref_pic_marking()."""
    if header.idr:
        rw.flag("no_output_of_prior_pics_flag", header)
        rw.flag("long_term_reference_flag", header)
        return
    if not rw.flag("adaptive_ref_pic_marking_mode_flag", header):
        return
    operations = header.marking_operations
    i = 0
    while True:
        if not rw.writing:
            operations.append(MarkingOperation())
        operation = operations[i] if i < len(operations) else MarkingOperation(0)
        control = rw.ue("memory_management_control_operation", operation, 0, 6)
        if control == 0:
            del operations[i:]
            return
        if i == MOST_OPERATIONS:
            raise BitstreamError(f"more than {MOST_OPERATIONS} memory_management_control_operations")
        if control in (1, 3):
            rw.ue("difference_of_pic_nums_minus1", operation)
        if control == 2:
            rw.ue("long_term_pic_num", operation)
        if control in (3, 6):
            rw.ue("long_term_frame_idx", operation, 0, 31)
        if control == 4:
            rw.ue("max_long_term_frame_idx_plus1", operation, 0, 32)
        i += 1


def _picture_order(rw: SyntaxElements, header: SliceHeader, sps: Sps, pps: Pps) -> None:
    """7.3.3: the elements from frame_num to delta_pic_order_cnt[1]."""
    rw.u(sps.log2_max_frame_num_minus4 + 4, "frame_num", header)
    if not sps.frame_mbs_only_flag and rw.flag("field_pic_flag", header):
        rw.flag("bottom_field_flag", header)
    if header.idr:
        rw.ue("idr_pic_id", header, 0, 65535)
    bottom = pps.bottom_field_pic_order_in_frame_present_flag and not header.field_pic_flag
    if sps.pic_order_cnt_type == 0:
        rw.u(sps.log2_max_pic_order_cnt_lsb_minus4 + 4, "pic_order_cnt_lsb", header)
        if bottom:
            rw.se("delta_pic_order_cnt_bottom", header)
    if sps.pic_order_cnt_type == 1 and not sps.delta_pic_order_always_zero_flag:
        for i in range(2 if bottom else 1):
            rw.se("delta_pic_order_cnt", header, index=i)
        header.delta_pic_order_cnt += [0] * (2 - len(header.delta_pic_order_cnt))


def _references(rw: SyntaxElements, header: SliceHeader, sps: Sps, pps: Pps) -> None:
    """7.3.3: the elements from direct_spatial_mv_pred_flag to dec_ref_pic_marking()."""
    slice_type = header.type_mod_5
    if slice_type == B:
        rw.flag("direct_spatial_mv_pred_flag", header)
    if slice_type in (P, SP, B):
        most = 31 if header.field_pic_flag else 15
        if rw.flag("num_ref_idx_active_override_flag", header):
            rw.ue("num_ref_idx_l0_active_minus1", header, 0, most)
            if slice_type == B:
                rw.ue("num_ref_idx_l1_active_minus1", header, 0, most)
        else:
            rw.infer("num_ref_idx_l0_active_minus1", header, pps.num_ref_idx_l0_default_active_minus1)
            if slice_type == B:
                rw.infer("num_ref_idx_l1_active_minus1", header, pps.num_ref_idx_l1_default_active_minus1)
    _ref_pic_list_modification(rw, header)
    if (pps.weighted_pred_flag and slice_type in (P, SP)) or (pps.weighted_bipred_idc == 1 and slice_type == B):
        _pred_weight_table(rw, header, sps)
    if header.nal_ref_idc:
        _dec_ref_pic_marking(rw, header)


def slice_header(rw: SyntaxElements, header: SliceHeader, sps: Sps, pps: Pps) -> None:
    """7.3.3: slice_header() after pic_parameter_set_id."""
    if sps.separate_colour_plane_flag:
        rw.u(2, "colour_plane_id", header, 0, 2)
    _picture_order(rw, header, sps, pps)
    if pps.redundant_pic_cnt_present_flag:
        rw.ue("redundant_pic_cnt", header, 0, 127)
    _references(rw, header, sps, pps)
    slice_type = header.type_mod_5
    if pps.entropy_coding_mode_flag and slice_type not in (I, SI):
        rw.ue("cabac_init_idc", header, 0, 2)
    qp = 26 + pps.pic_init_qp_minus26
    rw.se("slice_qp_delta", header, -6 * sps.bit_depth_luma_minus8 - qp, 51 - qp)
    if slice_type in (SP, SI):
        if slice_type == SP:
            rw.flag("sp_for_switch_flag", header)
        rw.se("slice_qs_delta", header, -26 - pps.pic_init_qs_minus26, 25 - pps.pic_init_qs_minus26)
    if pps.deblocking_filter_control_present_flag and rw.ue("disable_deblocking_filter_idc", header, 0, 2) != 1:
        rw.se("slice_alpha_c0_offset_div2", header, -6, 6)
        rw.se("slice_beta_offset_div2", header, -6, 6)
    if pps.num_slice_groups_minus1 and pps.slice_group_map_type in (3, 4, 5):
        map_units = sps.mb_width * (sps.pic_height_in_map_units_minus1 + 1)
        cycles = -(-map_units // (pps.slice_group_change_rate_minus1 + 1))
        rw.u(cycles.bit_length(), "slice_group_change_cycle", header, 0, cycles)


def _slice_header_start(rw: SyntaxElements, header: SliceHeader) -> None:
    """7.3.3: the elements that come before the parameter sets are known."""
    rw.ue("first_mb_in_slice", header)
    rw.ue("slice_type", header, 0, 9)
    rw.ue("pic_parameter_set_id", header, 0, 255)


def _check(header: SliceHeader, sps: Sps, error: type[ValueError]) -> None:
    """7.4.3: what ranges alone do not say."""
    macroblocks = sps.mb_width * sps.mb_height
    pairs = header.field_pic_flag or (sps.mb_adaptive_frame_field_flag and not sps.frame_mbs_only_flag)
    last = macroblocks // (2 if pairs else 1) - 1
    if header.first_mb_in_slice > last:
        raise error(f"first_mb_in_slice = {header.first_mb_in_slice} is outside 0..{last}")
    most = 31 if header.field_pic_flag else 15  # also of what a picture parameter set implies
    for name in ("num_ref_idx_l0_active_minus1", "num_ref_idx_l1_active_minus1"):
        if getattr(header, name) > most:
            raise error(f"{name} = {getattr(header, name)} is outside 0..{most}")
    if header.idr and header.type_mod_5 not in (I, SI):
        raise error(f"slice_type = {header.slice_type} in an IDR picture, which has I slices only")
    if header.idr and header.frame_num:
        raise error(f"frame_num = {header.frame_num} in an IDR picture, where it is 0")


def write_slice_header(header: SliceHeader, sps: Sps, pps: Pps) -> BitWriter:
    """7.3.3: the slice header, not byte-aligned: slice data goes on at the writer's position."""
    _check(header, sps, ValueError)
    writer = BitWriter()
    _slice_header_start(writer, header)
    slice_header(writer, header, sps, pps)
    return writer


def parse_slice_header(
    nal_unit_type: int, nal_ref_idc: int, rbsp: bytes, sps_by_id: Mapping[int, Sps], pps_by_id: Mapping[int, Pps]
) -> tuple[SliceHeader, Sps, Pps, int]:
    """7.3.3: header, its parameter sets, and the bit of the RBSP at which slice data begins."""
    reader = BitReader(rbsp)
    header = SliceHeader(nal_unit_type=nal_unit_type, nal_ref_idc=nal_ref_idc)
    _slice_header_start(reader, header)
    pps = pps_by_id.get(header.pic_parameter_set_id)
    if pps is None:
        raise BitstreamError(f"picture parameter set {header.pic_parameter_set_id} of a slice is missing", 0)
    sps = sps_by_id.get(pps.seq_parameter_set_id)
    if sps is None:
        raise BitstreamError(f"sequence parameter set {pps.seq_parameter_set_id} of a slice is missing", 0)
    slice_header(reader, header, sps, pps)
    _check(header, sps, BitstreamError)
    return header, sps, pps, reader.position


def starts_new_picture(header: SliceHeader, previous: SliceHeader) -> bool:
    """7.4.1.2.4: whether a slice belongs to another primary coded picture than the slice before it."""
    for name in (
        "frame_num",
        "pic_parameter_set_id",
        "field_pic_flag",
        "bottom_field_flag",
        "idr",
        "pic_order_cnt_lsb",
        "delta_pic_order_cnt_bottom",
        "delta_pic_order_cnt",
    ):
        if getattr(header, name) != getattr(previous, name):
            return True
    if (header.nal_ref_idc == 0) != (previous.nal_ref_idc == 0):
        return True
    return bool(header.idr) and header.idr_pic_id != previous.idr_pic_id
