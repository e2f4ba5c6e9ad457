"""Parameter sets, slice headers and SEI: what is written is read back, FFmpeg agrees, and no input breaks a parser."""

import copy
import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from h264lite.cpu_simd.entropy.entropy import write_slices
from h264lite.standard.bits import NAL_IDR, NAL_PPS, NAL_SLICE, NAL_SPS, BitReader, BitstreamError, nal_unit
from h264lite.standard.macroblock import I_PCM
from h264lite.standard.syntax import (
    EXTENDED_SAR,
    SP,
    B,
    Hrd,
    I,
    ListModification,
    MarkingOperation,
    P,
    Pps,
    ScalingMatrix,
    SliceHeader,
    Sps,
    Vui,
    Weight,
    parse_access_unit_delimiter,
    parse_pps,
    parse_sei,
    parse_slice_header,
    parse_sps,
    scaling_lists,
    starts_new_picture,
    write_access_unit_delimiter,
    write_pps,
    write_sei,
    write_slice_header,
    write_sps,
)
from h264lite.standard.tables import DEFAULT_4x4_INTER, DEFAULT_4x4_INTRA, DEFAULT_8x8_INTRA
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..support import naive_entropy

flag = st.integers(0, 1)
ue = st.integers(0, 2**20)
se = st.integers(-(2**20), 2**20)


def scaling_list(size: int):
    """Absent, any values, the default, or a list whose tail is constant."""
    values = st.integers(1, 255)
    default = DEFAULT_4x4_INTRA if size == 16 else DEFAULT_8x8_INTRA
    tail = st.tuples(st.lists(values, min_size=1, max_size=size), values).map(
        lambda pair: pair[0] + [pair[1]] * (size - len(pair[0]))
    )
    return st.one_of(st.none(), st.lists(values, min_size=size, max_size=size), tail, st.just(default.tolist()))


def scaling_matrix(lists_8x8: int):
    return st.tuples(*[scaling_list(16)] * 6, *[scaling_list(64)] * lists_8x8).map(lambda x: ScalingMatrix(list(x)))


@st.composite
def hrds(draw):
    count = draw(st.integers(0, 3))
    values = st.lists(ue, min_size=count + 1, max_size=count + 1)
    flags = st.lists(flag, min_size=count + 1, max_size=count + 1)
    five = st.integers(0, 31)
    return Hrd(count, draw(st.integers(0, 15)), draw(st.integers(0, 15)), draw(values), draw(values), draw(flags),
               draw(five), draw(five), draw(five), draw(five))  # fmt: skip


@st.composite
def vuis(draw):
    vui = Vui()
    if draw(flag):
        vui.aspect_ratio_info_present_flag = 1
        vui.aspect_ratio_idc = draw(st.sampled_from([0, 1, 14, EXTENDED_SAR]))
        if vui.aspect_ratio_idc == EXTENDED_SAR:
            vui.sar_width, vui.sar_height = draw(st.integers(0, 65535)), draw(st.integers(0, 65535))
    if draw(flag):
        vui.video_signal_type_present_flag, vui.video_format = 1, draw(st.integers(0, 7))
        vui.video_full_range_flag = draw(flag)
        if draw(flag):
            vui.colour_description_present_flag = 1
            vui.colour_primaries, vui.transfer_characteristics = draw(st.integers(0, 255)), draw(st.integers(0, 255))
    if draw(flag):
        vui.chroma_loc_info_present_flag, vui.chroma_sample_loc_type_top_field = 1, draw(st.integers(0, 5))
    if draw(flag):
        vui.timing_info_present_flag, vui.fixed_frame_rate_flag = 1, draw(flag)
        vui.num_units_in_tick, vui.time_scale = draw(st.integers(1, 2**32 - 1)), draw(st.integers(1, 2**32 - 1))
    if draw(flag):
        vui.nal_hrd_parameters_present_flag, vui.nal_hrd = 1, draw(hrds())
    if draw(flag):
        vui.vcl_hrd_parameters_present_flag, vui.vcl_hrd, vui.low_delay_hrd_flag = 1, draw(hrds()), 0
    if draw(flag):
        vui.bitstream_restriction_flag, vui.max_num_reorder_frames = 1, draw(st.integers(0, 16))
        vui.log2_max_mv_length_vertical = draw(st.integers(0, 16))
    return vui


@st.composite
def spss(draw):
    sps = Sps(
        profile_idc=draw(st.sampled_from([66, 77, 88, 100, 122])),
        constraint_set1_flag=draw(flag),
        level_idc=draw(st.integers(10, 62)),
        seq_parameter_set_id=draw(st.integers(0, 31)),
        log2_max_frame_num_minus4=draw(st.integers(0, 12)),
        pic_order_cnt_type=draw(st.integers(0, 2)),
        max_num_ref_frames=draw(st.integers(0, 16)),
        gaps_in_frame_num_value_allowed_flag=draw(flag),
        pic_width_in_mbs_minus1=draw(st.integers(0, 200)),
        pic_height_in_map_units_minus1=draw(st.integers(0, 200)),
        frame_mbs_only_flag=draw(flag),
        direct_8x8_inference_flag=draw(flag),
    )
    if sps.profile_idc >= 100:
        sps.chroma_format_idc = draw(st.integers(0, 3))
        sps.bit_depth_luma_minus8 = draw(st.integers(0, 6))
        if draw(flag):
            sps.seq_scaling_matrix_present_flag = 1
            sps.scaling = draw(scaling_matrix(6 if sps.chroma_format_idc == 3 else 2))
    if sps.pic_order_cnt_type == 0:
        sps.log2_max_pic_order_cnt_lsb_minus4 = draw(st.integers(0, 12))
    if sps.pic_order_cnt_type == 1:
        sps.delta_pic_order_always_zero_flag = draw(flag)
        sps.offset_for_non_ref_pic, sps.offset_for_top_to_bottom_field = draw(se), draw(se)
        sps.offset_for_ref_frame = draw(st.lists(se, max_size=4))
        sps.num_ref_frames_in_pic_order_cnt_cycle = len(sps.offset_for_ref_frame)
    if not sps.frame_mbs_only_flag:
        sps.mb_adaptive_frame_field_flag = draw(flag)
    if draw(flag):
        sps.frame_cropping_flag = 1
        sps.frame_crop_right_offset, sps.frame_crop_bottom_offset = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    if draw(flag):
        sps.vui_parameters_present_flag, sps.vui = 1, draw(vuis())
    return sps


@st.composite
def ppss(draw, sps):
    pps = Pps(
        pic_parameter_set_id=draw(st.integers(0, 255)),
        seq_parameter_set_id=sps.seq_parameter_set_id,
        entropy_coding_mode_flag=draw(flag),
        bottom_field_pic_order_in_frame_present_flag=draw(flag),
        num_ref_idx_l0_default_active_minus1=draw(st.integers(0, 15)),
        num_ref_idx_l1_default_active_minus1=draw(st.integers(0, 15)),
        weighted_pred_flag=draw(flag),
        weighted_bipred_idc=draw(st.integers(0, 2)),
        pic_init_qp_minus26=draw(st.integers(-26, 25)),
        chroma_qp_index_offset=draw(st.integers(-12, 12)),
        deblocking_filter_control_present_flag=draw(flag),
        constrained_intra_pred_flag=draw(flag),
        redundant_pic_cnt_present_flag=draw(flag),
    )
    groups = draw(st.integers(0, 2))
    if groups:
        pps.num_slice_groups_minus1 = groups
        pps.slice_group_map_type = draw(st.integers(0, 6))
        pps.run_length_minus1 = [3] * (groups + 1) if pps.slice_group_map_type == 0 else []
        pps.top_left = pps.bottom_right = [1] * groups if pps.slice_group_map_type == 2 else []
        if pps.slice_group_map_type == 6:
            pps.slice_group_id = draw(st.lists(st.integers(0, groups), min_size=1, max_size=9))
            pps.pic_size_in_map_units_minus1 = len(pps.slice_group_id) - 1
    if draw(flag):
        pps.transform_8x8_mode_flag = draw(flag)
        pps.second_chroma_qp_index_offset = draw(st.integers(-12, 12))
        if draw(flag):
            pps.pic_scaling_matrix_present_flag = 1
            lists_8x8 = (6 if sps.chroma_format_idc == 3 else 2) * pps.transform_8x8_mode_flag
            pps.scaling = draw(scaling_matrix(lists_8x8))
    return pps


def modifications(most: int):
    entry = st.one_of(
        st.builds(ListModification, st.integers(0, 1), abs_diff_pic_num_minus1=ue),
        st.builds(ListModification, st.just(2), long_term_pic_num=ue),
    )
    return st.lists(entry, max_size=most)


marking = st.one_of(
    st.builds(MarkingOperation, st.just(1), difference_of_pic_nums_minus1=ue),
    st.builds(MarkingOperation, st.just(2), long_term_pic_num=ue),
    st.builds(MarkingOperation, st.just(3), difference_of_pic_nums_minus1=ue, long_term_frame_idx=st.integers(0, 31)),
    st.builds(MarkingOperation, st.just(4), max_long_term_frame_idx_plus1=st.integers(0, 32)),
    st.builds(MarkingOperation, st.just(5)),
    st.builds(MarkingOperation, st.just(6), long_term_frame_idx=st.integers(0, 31)),
)


def weights(header: SliceHeader, count: int, chroma: bool):
    eight = st.integers(-128, 127)

    def make(luma, coded, values):
        weight = Weight(luma, 1 << header.luma_log2_weight_denom, 0)
        weight.chroma_weight_flag = coded if chroma else 0
        weight.chroma_weight = [1 << header.chroma_log2_weight_denom] * 2
        weight.chroma_offset = [0, 0]
        if luma:
            weight.luma_weight, weight.luma_offset = values[:2]
        if weight.chroma_weight_flag:
            weight.chroma_weight, weight.chroma_offset = values[2:4], values[4:]
        return weight

    one = st.builds(make, flag, flag, st.lists(eight, min_size=6, max_size=6))
    return st.lists(one, min_size=count, max_size=count)


@st.composite
def headers(draw, sps, pps):
    unit_type = draw(st.sampled_from([NAL_SLICE, NAL_IDR]))
    kind = I if unit_type == NAL_IDR else draw(st.sampled_from([P, B, I, SP]))
    header = SliceHeader(
        nal_unit_type=unit_type,
        nal_ref_idc=draw(st.integers(unit_type == NAL_IDR, 3)),
        slice_type=kind + 5 * draw(flag),
        pic_parameter_set_id=pps.pic_parameter_set_id,
        frame_num=0 if unit_type == NAL_IDR else draw(st.integers(0, 15)),
    )
    if not sps.frame_mbs_only_flag:
        header.field_pic_flag = draw(flag)
    header.first_mb_in_slice = draw(st.integers(0, max(0, sps.mb_width * sps.mb_height // 2 - 1)))
    if header.idr:
        header.idr_pic_id = draw(st.integers(0, 65535))
    if sps.pic_order_cnt_type == 0:
        header.pic_order_cnt_lsb = draw(st.integers(0, 15))
    if sps.pic_order_cnt_type == 1 and not sps.delta_pic_order_always_zero_flag:
        header.delta_pic_order_cnt[0] = draw(se)
    if kind in (P, B, SP):
        header.num_ref_idx_active_override_flag = draw(flag)
        override = bool(header.num_ref_idx_active_override_flag)
        active = st.integers(0, 15)
        header.num_ref_idx_l0_active_minus1 = draw(active) if override else pps.num_ref_idx_l0_default_active_minus1
        if kind == B:
            header.direct_spatial_mv_pred_flag = draw(flag)
            header.num_ref_idx_l1_active_minus1 = draw(active) if override else pps.num_ref_idx_l1_default_active_minus1
        header.ref_pic_list_modification_flag_l0 = draw(flag)
        if header.ref_pic_list_modification_flag_l0:
            header.modifications_l0 = draw(modifications(header.num_ref_idx_l0_active_minus1 + 1))
        if (pps.weighted_pred_flag and kind != B) or (pps.weighted_bipred_idc == 1 and kind == B):
            header.luma_log2_weight_denom = draw(st.integers(0, 7))
            chroma = sps.chroma_array_type != 0
            header.chroma_log2_weight_denom = draw(st.integers(0, 7)) if chroma else 0
            header.weights_l0 = draw(weights(header, header.num_ref_idx_l0_active_minus1 + 1, chroma))
            if kind == B:
                header.weights_l1 = draw(weights(header, header.num_ref_idx_l1_active_minus1 + 1, chroma))
        header.cabac_init_idc = draw(st.integers(0, 2)) if pps.entropy_coding_mode_flag else 0
    if header.nal_ref_idc and not header.idr:
        header.adaptive_ref_pic_marking_mode_flag = draw(flag)
        if header.adaptive_ref_pic_marking_mode_flag:
            header.marking_operations = draw(st.lists(marking, max_size=5))
    header.slice_qp_delta = draw(st.integers(-26, 25)) - pps.pic_init_qp_minus26
    if pps.deblocking_filter_control_present_flag:
        header.disable_deblocking_filter_idc = draw(st.integers(0, 2))
        if header.disable_deblocking_filter_idc != 1:
            header.slice_alpha_c0_offset_div2 = draw(st.integers(-6, 6))
    return header


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_round_trips(data):
    sps = data.draw(spss())
    rbsp = write_sps(sps)
    assert parse_sps(rbsp) == sps
    pps = data.draw(ppss(sps))
    assert parse_pps(write_pps(pps, sps), sps) == pps
    header = data.draw(headers(sps, pps))
    writer = write_slice_header(header, sps, pps)
    units = {sps.seq_parameter_set_id: sps}, {pps.pic_parameter_set_id: pps}
    before = copy.deepcopy(header)
    rbsp = writer.to_bytes() + b"\x80"
    parsed, *sets, position = parse_slice_header(header.nal_unit_type, header.nal_ref_idc, rbsp, *units)
    assert parsed == before == header
    assert position == writer.position
    assert sets == [sps, pps]
    assert not starts_new_picture(parsed, header)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60), st.data())
def test_any_bytes(junk, data):
    """Junk, or a parameter set with bits flipped or its end cut off: an object, or a BitstreamError that says where."""
    sps, pps = Sps(pic_width_in_mbs_minus1=10, pic_height_in_map_units_minus1=8), Pps(weighted_pred_flag=1)
    parsers = [
        (write_sps, parse_sps, data.draw(spss())),
        (write_pps, parse_pps, data.draw(ppss(sps))),
        (write_sei, parse_sei, [(5, b"some user data"), (300, b"")]),
        (
            lambda header: write_slice_header(header, sps, pps).to_bytes(),
            lambda rbsp: parse_slice_header(1, 1, rbsp, {0: sps}, {0: pps}),
            SliceHeader(nal_ref_idc=1, slice_type=P, weights_l0=[Weight()]),
        ),
    ]
    for write, parse, structure in parsers:
        broken = bytearray(write(structure))
        for _ in range(data.draw(st.integers(0, 3))):
            broken[data.draw(st.integers(0, len(broken) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        for rbsp in (junk, bytes(broken), bytes(broken[: data.draw(st.integers(0, len(broken)))])):
            try:
                parse(rbsp)
            except BitstreamError as error:
                assert str(error)


@pytest.mark.parametrize(
    "change, name",
    [
        ({"log2_max_frame_num_minus4": 13}, "log2_max_frame_num_minus4 = 13 is outside 0..12"),
        ({"max_num_ref_frames": 17}, "max_num_ref_frames"),
        ({"seq_parameter_set_id": -1}, "seq_parameter_set_id"),
        ({"pic_width_in_mbs_minus1": 1000, "pic_height_in_map_units_minus1": 1000}, "larger than any level"),
        ({"frame_cropping_flag": 1, "frame_crop_left_offset": 8}, "leave a picture of 0 x 16"),
        ({"level_idc": 256}, "level_idc"),
    ],
)
def test_out_of_range(change, name):
    with pytest.raises(ValueError, match=name) as error:
        write_sps(dataclasses.replace(Sps(), **change))
    assert not isinstance(error.value, BitstreamError)


def test_read_out_of_range():
    rbsp = bytes([66, 0, 10]) + b"\x80\x0e\xff"  # seq_parameter_set_id 0, then log2_max_frame_num_minus4 = 28
    with pytest.raises(BitstreamError, match=r"log2_max_frame_num_minus4 = \d+ is outside 0..12") as error:
        parse_sps(rbsp)
    assert error.value.position == 25
    header = SliceHeader(nal_unit_type=NAL_IDR, nal_ref_idc=1, slice_type=P)
    with pytest.raises(ValueError, match="IDR"):
        write_slice_header(header, Sps(), Pps())
    with pytest.raises(BitstreamError, match="picture parameter set 3"):
        rbsp = write_slice_header(SliceHeader(pic_parameter_set_id=3), Sps(), Pps(3)).to_bytes()
        parse_slice_header(1, 0, rbsp + b"\x80", {}, {})


def test_inferred_values():
    """A writer does not drop what the syntax has no room for."""
    header = SliceHeader(slice_type=P, num_ref_idx_l0_active_minus1=2)
    with pytest.raises(ValueError, match="num_ref_idx_l0_active_minus1"):
        write_slice_header(header, Sps(), Pps())


def test_scaling_lists():
    """Table 7-2: flat without matrices; fall-back rule A in the SPS, B in the PPS where the SPS has one."""
    four, eight = scaling_lists(Sps(), Pps())
    assert (four == 16).all() and (eight == 16).all() and four.shape == (6, 16) and eight.shape == (6, 64)
    one, two = [7] * 16, [9] * 16
    sps = Sps(profile_idc=100, seq_scaling_matrix_present_flag=1, scaling=ScalingMatrix([None, one] + [None] * 6))
    four, eight = scaling_lists(sps, Pps())
    assert four.tolist() == [DEFAULT_4x4_INTRA.tolist(), one, one] + [DEFAULT_4x4_INTER.tolist()] * 3
    assert (eight[0] == DEFAULT_8x8_INTRA).all() and (eight[2] == eight[0]).all() and (eight[3] == eight[1]).all()
    sps.scaling = ScalingMatrix([one] * 6 + [None] * 2)
    pps = Pps(pic_scaling_matrix_present_flag=1, scaling=ScalingMatrix([None, two] + [None] * 4))
    four, _ = scaling_lists(sps, pps)
    assert four.tolist() == [one, two, two, one, one, one]
    four, _ = scaling_lists(Sps(), pps)
    assert four.tolist()[:3] == [DEFAULT_4x4_INTRA.tolist(), two, two]


def test_sei_and_delimiter():
    messages = [(5, b"x" * 600), (1000, b""), (0, b"\0\0\0")]
    assert parse_sei(write_sei(messages)) == messages
    with pytest.raises(BitstreamError, match="longer than its NAL unit"):
        parse_sei(b"\x05\x09abc\x80")
    for kind in range(8):
        assert parse_access_unit_delimiter(write_access_unit_delimiter(kind)) == kind


def test_new_pictures():
    """7.4.1.2.4, one difference at a time."""
    first = SliceHeader(nal_ref_idc=1)
    assert not starts_new_picture(dataclasses.replace(first, first_mb_in_slice=9, slice_type=P, nal_ref_idc=3), first)
    for change in (
        {"frame_num": 1},
        {"pic_parameter_set_id": 1},
        {"nal_ref_idc": 0},
        {"pic_order_cnt_lsb": 2},
        {"delta_pic_order_cnt": [1, 0]},
        {"nal_unit_type": NAL_IDR},
    ):
        assert starts_new_picture(dataclasses.replace(first, **change), first), change
    idr = SliceHeader(nal_unit_type=NAL_IDR, nal_ref_idc=1)
    assert starts_new_picture(dataclasses.replace(idr, idr_pic_id=1), idr)


def test_ffmpeg_reads_our_headers():
    """FFmpeg finds size, cropping, shape, colour and time, and the samples of an I_PCM picture after the headers."""
    av = pytest.importorskip("av")
    sps = Sps(
        constraint_set1_flag=1,
        level_idc=30,
        pic_order_cnt_type=2,
        pic_width_in_mbs_minus1=2,
        pic_height_in_map_units_minus1=1,
        frame_cropping_flag=1,
        frame_crop_right_offset=3,
        frame_crop_bottom_offset=5,
        vui_parameters_present_flag=1,
        vui=Vui(
            aspect_ratio_info_present_flag=1,
            aspect_ratio_idc=EXTENDED_SAR,
            sar_width=64,
            sar_height=45,
            video_signal_type_present_flag=1,
            video_full_range_flag=1,
            colour_description_present_flag=1,
            colour_primaries=1,
            transfer_characteristics=6,
            matrix_coefficients=5,
            timing_info_present_flag=1,
            num_units_in_tick=1001,
            time_scale=60000,
            fixed_frame_rate_flag=1,
            bitstream_restriction_flag=1,
        ),
    )
    pps = Pps(deblocking_filter_control_present_flag=1)
    header = SliceHeader(nal_unit_type=NAL_IDR, nal_ref_idc=3, slice_type=I + 5, disable_deblocking_filter_idc=1)
    writer = write_slice_header(header, sps, pps)
    rng = np.random.default_rng(7)
    state = naive_entropy.random_state(rng, 3, 2, 0, 26, 0.1, 1)
    state.mb_type[:] = I_PCM
    (bits,) = naive_entropy.written(write_slices, state, [0, 2], [writer.position], 26)
    assert bits is not None
    out = np.packbits(np.array([*bits], np.uint8))
    out[: len(writer.to_bytes())] |= np.frombuffer(writer.to_bytes(), np.uint8)
    stream = nal_unit(NAL_SPS, 3, write_sps(sps)) + nal_unit(NAL_PPS, 3, write_pps(pps))
    stream += nal_unit(NAL_IDR, 3, out.tobytes())
    decoder = av.CodecContext.create("h264", "r")
    frames = [frame for packet in [*decoder.parse(stream), *decoder.parse(b""), None] for frame in decoder.decode(packet)]
    assert len(frames) == 1
    frame = frames[0]
    assert (frame.width, frame.height) == (42, 22) == (sps.width, sps.height)
    assert decoder.sample_aspect_ratio == Fraction(64, 45)
    assert decoder.framerate == Fraction(30000, 1001)
    assert (frame.color_primaries, frame.color_trc, frame.colorspace, frame.color_range) == (1, 6, 5, 2)
    for plane, samples in zip(frame.planes, (state.rec_y, state.rec_u, state.rec_v)):
        decoded = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height, : plane.width]
        assert np.array_equal(decoded, samples[: plane.height, : plane.width])


def test_positions():
    """Errors name the element and the bit at which it begins."""
    rbsp = write_sps(Sps())
    for size in range(len(rbsp)):
        with pytest.raises(BitstreamError) as error:
            parse_sps(rbsp[:size])
        assert error.value.position is not None and error.value.position <= 8 * size
    with pytest.raises(BitstreamError, match="rbsp_trailing_bits"):
        parse_sps(rbsp + b"\x80")
    assert BitReader(rbsp).get_u(8) == 66
