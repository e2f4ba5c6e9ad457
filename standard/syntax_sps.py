"""Syntax of the sequence parameter set with its VUI and HRD parameters (7.3.2.1, E.1), for writing and reading."""

from dataclasses import dataclass, field

from .bits import BitReader, BitstreamError, BitWriter, SyntaxElements
from .tables import DEFAULT_4x4_INTER, DEFAULT_4x4_INTRA, DEFAULT_8x8_INTER, DEFAULT_8x8_INTRA

# A.2: profile_idc
BASELINE, MAIN, EXTENDED, HIGH = 66, 77, 88, 100
# 7.3.2.1.1: the profiles whose SPS has chroma_format_idc and what follows it
PROFILES_WITH_CHROMA_FORMAT = (100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135)

# The largest frame any level allows (Table A-1, level 6.2): macroblocks, and sqrt(8 * MaxFS) in either direction.
LARGEST_FRAME_MBS, LARGEST_SIDE_MBS = 139264, 1055

EXTENDED_SAR = 255

_DEFAULT_LISTS = (
    [DEFAULT_4x4_INTRA.tolist()] * 3
    + [DEFAULT_4x4_INTER.tolist()] * 3
    + [DEFAULT_8x8_INTRA.tolist(), DEFAULT_8x8_INTER.tolist()] * 3
)


@dataclass
class ScalingMatrix:
    """7.3.2.1.1.1: up to 12 scaling lists in scan order: 6 of 16 values (Intra Y Cb Cr, Inter Y Cb Cr), then of 64.

    None = list not present: the fall-back rule of Table 7-2 applies.
    """

    lists: list[list[int] | None] = field(default_factory=list)

    def resolve(self, fallback: "list[list[int]]") -> list[list[int]]:
        """Table 7-2: all 12 lists; `fallback` (12 lists) stands in for lists 0, 3, 6 and 7, others for themselves."""
        given = self.lists + [None] * (12 - len(self.lists))
        resolved: list[list[int]] = []
        for i in range(12):
            previous = fallback[i] if i in (0, 3, 6, 7) else resolved[i - (1 if i < 6 else 2)]
            resolved.append(given[i] or previous)
        return resolved


def default_lists() -> list[list[int]]:
    """Table 7-2, fall-back rule set A: the default scaling lists."""
    return list(_DEFAULT_LISTS)


@dataclass
class _ScalingElements:
    scaling_list_present_flag: int = 0
    delta_scale: int = 0


def scaling_matrix(rw: SyntaxElements, matrix: ScalingMatrix, count: int) -> None:
    """7.3.2.1.1: the loop over scaling lists in an SPS or PPS."""
    if rw.writing:
        matrix.lists += [None] * (count - len(matrix.lists))
    else:
        matrix.lists = []
    for i in range(count):
        values = matrix.lists[i] if rw.writing else None
        element = _ScalingElements(scaling_list_present_flag=int(values is not None))
        present = rw.flag("scaling_list_present_flag", element)
        matrix.lists[i : i + 1] = [_scaling_list(rw, values or [], i) if present else None]


def _scaling_list(rw: SyntaxElements, values: list[int], index: int) -> list[int]:
    """7.3.2.1.1.1: scaling_list(); `values` is what a writer has to say; a constant tail is cut short."""
    size = 16 if index < 6 else 64
    element = _ScalingElements()
    result: list[int] = []
    last_scale = next_scale = 8
    for j in range(size):
        if next_scale != 0:
            if rw.writing:
                constant_tail = j > 0 and all(v == last_scale for v in values[j:])
                target = 0 if constant_tail or values == _DEFAULT_LISTS[index] else values[j]
                element.delta_scale = (target - last_scale + 128) % 256 - 128
            rw.se("delta_scale", element, -128, 127)
            next_scale = (last_scale + element.delta_scale + 256) % 256
            if j == 0 and next_scale == 0:
                return list(_DEFAULT_LISTS[index])
        last_scale = next_scale or last_scale
        result.append(last_scale)
    return result


@dataclass
class Hrd:
    """E.1.2: hrd_parameters()."""

    cpb_cnt_minus1: int = 0
    bit_rate_scale: int = 0
    cpb_size_scale: int = 0
    bit_rate_value_minus1: list[int] = field(default_factory=list)
    cpb_size_value_minus1: list[int] = field(default_factory=list)
    cbr_flag: list[int] = field(default_factory=list)
    initial_cpb_removal_delay_length_minus1: int = 23
    cpb_removal_delay_length_minus1: int = 23
    dpb_output_delay_length_minus1: int = 23
    time_offset_length: int = 24


def _hrd_parameters(rw: SyntaxElements, hrd: Hrd) -> None:
    """E.1.2: hrd_parameters()."""
    rw.ue("cpb_cnt_minus1", hrd, 0, 31)
    rw.u(4, "bit_rate_scale", hrd)
    rw.u(4, "cpb_size_scale", hrd)
    for i in range(hrd.cpb_cnt_minus1 + 1):
        rw.ue("bit_rate_value_minus1", hrd, index=i)
        rw.ue("cpb_size_value_minus1", hrd, index=i)
        rw.flag("cbr_flag", hrd, index=i)
    rw.u(5, "initial_cpb_removal_delay_length_minus1", hrd)
    rw.u(5, "cpb_removal_delay_length_minus1", hrd)
    rw.u(5, "dpb_output_delay_length_minus1", hrd)
    rw.u(5, "time_offset_length", hrd)


@dataclass
class Vui:
    """E.1.1: vui_parameters(); the values stand for absent elements as E.2.1 infers them."""

    aspect_ratio_info_present_flag: int = 0
    aspect_ratio_idc: int = 0
    sar_width: int = 0
    sar_height: int = 0
    overscan_info_present_flag: int = 0
    overscan_appropriate_flag: int = 0
    video_signal_type_present_flag: int = 0
    video_format: int = 5
    video_full_range_flag: int = 0
    colour_description_present_flag: int = 0
    colour_primaries: int = 2
    transfer_characteristics: int = 2
    matrix_coefficients: int = 2
    chroma_loc_info_present_flag: int = 0
    chroma_sample_loc_type_top_field: int = 0
    chroma_sample_loc_type_bottom_field: int = 0
    timing_info_present_flag: int = 0
    num_units_in_tick: int = 0
    time_scale: int = 0
    fixed_frame_rate_flag: int = 0
    nal_hrd_parameters_present_flag: int = 0
    nal_hrd: Hrd = field(default_factory=Hrd)
    vcl_hrd_parameters_present_flag: int = 0
    vcl_hrd: Hrd = field(default_factory=Hrd)
    low_delay_hrd_flag: int = 0
    pic_struct_present_flag: int = 0
    bitstream_restriction_flag: int = 0
    motion_vectors_over_pic_boundaries_flag: int = 1
    max_bytes_per_pic_denom: int = 2
    max_bits_per_mb_denom: int = 1
    log2_max_mv_length_horizontal: int = 15
    log2_max_mv_length_vertical: int = 15
    max_num_reorder_frames: int = 0
    max_dec_frame_buffering: int = 0


def _vui_parameters(rw: SyntaxElements, vui: Vui) -> None:
    """E.1.1: vui_parameters()."""
    if rw.flag("aspect_ratio_info_present_flag", vui):
        if rw.u(8, "aspect_ratio_idc", vui) == EXTENDED_SAR:
            rw.u(16, "sar_width", vui)
            rw.u(16, "sar_height", vui)
    if rw.flag("overscan_info_present_flag", vui):
        rw.flag("overscan_appropriate_flag", vui)
    if rw.flag("video_signal_type_present_flag", vui):
        rw.u(3, "video_format", vui)
        rw.flag("video_full_range_flag", vui)
        if rw.flag("colour_description_present_flag", vui):
            rw.u(8, "colour_primaries", vui)
            rw.u(8, "transfer_characteristics", vui)
            rw.u(8, "matrix_coefficients", vui)
    if rw.flag("chroma_loc_info_present_flag", vui):
        rw.ue("chroma_sample_loc_type_top_field", vui, 0, 5)
        rw.ue("chroma_sample_loc_type_bottom_field", vui, 0, 5)
    if rw.flag("timing_info_present_flag", vui):
        positive = int(rw.writing)  # zeros are illegal, but decoding does not need these two
        rw.u(32, "num_units_in_tick", vui, positive)
        rw.u(32, "time_scale", vui, positive)
        rw.flag("fixed_frame_rate_flag", vui)
    if rw.flag("nal_hrd_parameters_present_flag", vui):
        _hrd_parameters(rw, vui.nal_hrd)
    if rw.flag("vcl_hrd_parameters_present_flag", vui):
        _hrd_parameters(rw, vui.vcl_hrd)
    if vui.nal_hrd_parameters_present_flag or vui.vcl_hrd_parameters_present_flag:
        rw.flag("low_delay_hrd_flag", vui)
    rw.flag("pic_struct_present_flag", vui)
    if rw.flag("bitstream_restriction_flag", vui):
        rw.flag("motion_vectors_over_pic_boundaries_flag", vui)
        rw.ue("max_bytes_per_pic_denom", vui, 0, 16)
        rw.ue("max_bits_per_mb_denom", vui, 0, 16)
        rw.ue("log2_max_mv_length_horizontal", vui, 0, 16)
        rw.ue("log2_max_mv_length_vertical", vui, 0, 16)
        rw.ue("max_num_reorder_frames", vui, 0, 16)
        rw.ue("max_dec_frame_buffering", vui, 0, 16)


@dataclass
class Sps:
    """7.3.2.1.1: seq_parameter_set_data(); the values stand for absent elements as 7.4.2.1.1 infers them."""

    profile_idc: int = BASELINE
    constraint_set0_flag: int = 0
    constraint_set1_flag: int = 0
    constraint_set2_flag: int = 0
    constraint_set3_flag: int = 0
    constraint_set4_flag: int = 0
    constraint_set5_flag: int = 0
    level_idc: int = 10
    seq_parameter_set_id: int = 0
    chroma_format_idc: int = 1
    separate_colour_plane_flag: int = 0
    bit_depth_luma_minus8: int = 0
    bit_depth_chroma_minus8: int = 0
    qpprime_y_zero_transform_bypass_flag: int = 0
    seq_scaling_matrix_present_flag: int = 0
    scaling: ScalingMatrix = field(default_factory=ScalingMatrix)
    log2_max_frame_num_minus4: int = 0
    pic_order_cnt_type: int = 0
    log2_max_pic_order_cnt_lsb_minus4: int = 0
    delta_pic_order_always_zero_flag: int = 0
    offset_for_non_ref_pic: int = 0
    offset_for_top_to_bottom_field: int = 0
    num_ref_frames_in_pic_order_cnt_cycle: int = 0
    offset_for_ref_frame: list[int] = field(default_factory=list)
    max_num_ref_frames: int = 1
    gaps_in_frame_num_value_allowed_flag: int = 0
    pic_width_in_mbs_minus1: int = 0
    pic_height_in_map_units_minus1: int = 0
    frame_mbs_only_flag: int = 1
    mb_adaptive_frame_field_flag: int = 0
    direct_8x8_inference_flag: int = 0
    frame_cropping_flag: int = 0
    frame_crop_left_offset: int = 0
    frame_crop_right_offset: int = 0
    frame_crop_top_offset: int = 0
    frame_crop_bottom_offset: int = 0
    vui_parameters_present_flag: int = 0
    vui: Vui = field(default_factory=Vui)

    @property
    def chroma_array_type(self) -> int:
        """7.4.2.1.1: ChromaArrayType."""
        return 0 if self.separate_colour_plane_flag else self.chroma_format_idc

    @property
    def mb_width(self) -> int:
        """PicWidthInMbs."""
        return self.pic_width_in_mbs_minus1 + 1

    @property
    def mb_height(self) -> int:
        """FrameHeightInMbs."""
        return (2 - self.frame_mbs_only_flag) * (self.pic_height_in_map_units_minus1 + 1)

    @property
    def crop(self) -> tuple[int, int, int, int]:
        """Left, right, top, bottom in luma samples."""
        unit_x = 2 if self.chroma_array_type in (1, 2) else 1
        unit_y = (2 if self.chroma_array_type == 1 else 1) * (2 - self.frame_mbs_only_flag)
        return (
            self.frame_crop_left_offset * unit_x,
            self.frame_crop_right_offset * unit_x,
            self.frame_crop_top_offset * unit_y,
            self.frame_crop_bottom_offset * unit_y,
        )

    @property
    def width(self) -> int:
        """Width of the cropped picture in luma samples."""
        return 16 * self.mb_width - self.crop[0] - self.crop[1]

    @property
    def height(self) -> int:
        """Height of the cropped picture in luma samples."""
        return 16 * self.mb_height - self.crop[2] - self.crop[3]


def _high_profile_fields(rw: SyntaxElements, sps: Sps) -> None:
    """7.3.2.1.1: the elements from chroma_format_idc to the scaling lists."""
    if rw.ue("chroma_format_idc", sps, 0, 3) == 3:
        rw.flag("separate_colour_plane_flag", sps)
    rw.ue("bit_depth_luma_minus8", sps, 0, 6)
    rw.ue("bit_depth_chroma_minus8", sps, 0, 6)
    rw.flag("qpprime_y_zero_transform_bypass_flag", sps)
    if rw.flag("seq_scaling_matrix_present_flag", sps):
        scaling_matrix(rw, sps.scaling, 12 if sps.chroma_format_idc == 3 else 8)


def _pic_order_cnt_fields(rw: SyntaxElements, sps: Sps) -> None:
    """7.3.2.1.1: the elements from pic_order_cnt_type to offset_for_ref_frame."""
    rw.ue("pic_order_cnt_type", sps, 0, 2)
    if sps.pic_order_cnt_type == 0:
        rw.ue("log2_max_pic_order_cnt_lsb_minus4", sps, 0, 12)
    elif sps.pic_order_cnt_type == 1:
        rw.flag("delta_pic_order_always_zero_flag", sps)
        rw.se("offset_for_non_ref_pic", sps)
        rw.se("offset_for_top_to_bottom_field", sps)
        rw.ue("num_ref_frames_in_pic_order_cnt_cycle", sps, 0, 255)
        for i in range(sps.num_ref_frames_in_pic_order_cnt_cycle):
            rw.se("offset_for_ref_frame", sps, index=i)


def seq_parameter_set(rw: SyntaxElements, sps: Sps) -> None:
    """7.3.2.1: seq_parameter_set_rbsp()."""
    rw.u(8, "profile_idc", sps)
    for i in range(6):
        rw.flag(f"constraint_set{i}_flag", sps)
    rw.reserved(2)
    rw.u(8, "level_idc", sps)
    rw.ue("seq_parameter_set_id", sps, 0, 31)
    if sps.profile_idc in PROFILES_WITH_CHROMA_FORMAT:
        _high_profile_fields(rw, sps)
    rw.ue("log2_max_frame_num_minus4", sps, 0, 12)
    _pic_order_cnt_fields(rw, sps)
    rw.ue("max_num_ref_frames", sps, 0, 16)
    rw.flag("gaps_in_frame_num_value_allowed_flag", sps)
    rw.ue("pic_width_in_mbs_minus1", sps, 0, LARGEST_SIDE_MBS - 1)
    rw.ue("pic_height_in_map_units_minus1", sps, 0, LARGEST_SIDE_MBS - 1)
    if not rw.flag("frame_mbs_only_flag", sps):
        rw.flag("mb_adaptive_frame_field_flag", sps)
    rw.flag("direct_8x8_inference_flag", sps)
    if rw.flag("frame_cropping_flag", sps):
        rw.ue("frame_crop_left_offset", sps)
        rw.ue("frame_crop_right_offset", sps)
        rw.ue("frame_crop_top_offset", sps)
        rw.ue("frame_crop_bottom_offset", sps)
    if rw.flag("vui_parameters_present_flag", sps):
        _vui_parameters(rw, sps.vui)
    rw.trailing_bits()


def _check_size(sps: Sps, error: type[ValueError]) -> None:
    """7.4.2.1.1, A.3.1: a frame no level allows, and cropping that leaves nothing, are refused."""
    if sps.mb_width * sps.mb_height > LARGEST_FRAME_MBS:
        raise error(
            f"a frame of {sps.mb_width} x {sps.mb_height} macroblocks is larger than any level allows"
            f" ({LARGEST_FRAME_MBS} macroblocks)"
        )
    if sps.width <= 0 or sps.height <= 0:
        raise error(f"frame_crop_*_offset leave a picture of {sps.width} x {sps.height} samples")


def write_sps(sps: Sps) -> bytes:
    """7.3.2.1: RBSP of a sequence parameter set."""
    _check_size(sps, ValueError)
    writer = BitWriter()
    seq_parameter_set(writer, sps)
    return writer.to_bytes()


def parse_sps(rbsp: bytes) -> Sps:
    """7.3.2.1: a sequence parameter set from its RBSP."""
    sps = Sps()
    seq_parameter_set(BitReader(rbsp), sps)
    _check_size(sps, BitstreamError)
    return sps
