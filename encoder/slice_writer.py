"""Assembles the NAL units of a frame: parameter sets, slice headers, and slice data of the entropy stage (7.3.2, 7.3.3)."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from ..cpu_simd.entropy.entropy import begin_slice
from ..cpu_simd.layout import CHROMA_WEIGHTED, ENTRY_BYTES, LUMA_WEIGHTED
from ..scheduler.coding_settings import CodingSettings
from ..scheduler.frame_spec import MOST_NEEDED, FrameSpec, SliceHeaders, Weights
from ..scheduler.frames.frame import Frame
from ..standard.bits import (
    NAL_AUD,
    NAL_IDR,
    NAL_PPS,
    NAL_SEI,
    NAL_SLICE,
    NAL_SPS,
    BitWriter,
    escape,
    nal_unit,
    start_of_nal_unit,
)
from ..standard.sample_format import SUB_HEIGHT_C, SUB_WIDTH_C
from ..standard.syntax import (
    BASELINE,
    EXTENDED_SAR,
    HIGH,
    B,
    I,
    ListModification,
    P,
    Pps,
    ScalingMatrix,
    SliceHeader,
    Sps,
    Vui,
    Weight,
    write_access_unit_delimiter,
    write_pps,
    write_slice_header,
    write_sps,
)
from .decisions.coded_picture_buffer import Times
from .hrd_syntax import hrd_parameters, timing_sei
from .info_sei import info_sei
from .list_syntax import marking_operations, modifications, relations
from .sei import of_display, of_refresh
from .settings.config import Config
from .settings.scaling_lists import scaling_syntax

ALL_SLICES_ALIKE = 5  # Table 7-6: slice_type + 5 means that all slices of the picture have this type
LOG2_MAX_FRAME_NUM = 8
LOG2_MAX_PIC_ORDER_CNT_LSB = 8  # half is more than between references one after another: 2 * (2 * MOST_B + 1) at most
MOST_HEADERS = 4096  # that are kept
WEIGHTED_BIPRED_IMPLICIT = 2  # weighted_bipred_idc
SLICE_TYPES = {"P": P, "B": B, "I": I}
PRIMARY_PIC_TYPES = {"I": 0, "P": 1, "B": 2}  # Table 7-5: I slices only; I and P slices; I, P and B slices
CABAC_ZERO_WORD = b"\x00\x00\x03"  # with emulation prevention
BINS_OF_MACROBLOCK = 96  # 7.4.2.10: RawMbBits / 32
TOO_LONG = "a slice is longer than A.3.1 allows"  # the quantiser turns such macroblocks into I_PCM


def sequence_parameter_set(config: Config) -> Sps:
    """7.4.2.1: progressive; without B frames output order is decoding order (pic_order_cnt_type 2). Baseline is Constrained
    Baseline.
    """
    coding = config.coding
    right, bottom = coding.crop
    scaling = scaling_syntax(coding.scaling_lists)
    return Sps(
        profile_idc=coding.profile_idc,
        seq_scaling_matrix_present_flag=int(scaling is not None),
        scaling=scaling or ScalingMatrix(),
        constraint_set0_flag=int(coding.profile_idc == BASELINE),
        constraint_set1_flag=int(coding.profile_idc != HIGH),
        level_idc=config.stream.level_idc,
        log2_max_frame_num_minus4=log2_max_frame_num(coding) - 4,
        pic_order_cnt_type=0 if coding.bframes else 2,
        log2_max_pic_order_cnt_lsb_minus4=LOG2_MAX_PIC_ORDER_CNT_LSB - 4,
        max_num_ref_frames=coding.dpb_frames,
        pic_width_in_mbs_minus1=coding.mb_width - 1,
        pic_height_in_map_units_minus1=coding.mb_height - 1,
        direct_8x8_inference_flag=1,
        frame_cropping_flag=int(right + bottom > 0),
        frame_crop_right_offset=right // SUB_WIDTH_C,
        frame_crop_bottom_offset=bottom // SUB_HEIGHT_C,
        vui_parameters_present_flag=1,
        vui=_vui(config),
    )


def _vui(config: Config) -> Vui:
    """Annex E: sample aspect ratio, colour and timing of the options; the reordering, so that decoders output early."""
    video, hrd = config.video, config.hrd
    vui = Vui(
        timing_info_present_flag=1,
        num_units_in_tick=video.fps.denominator,
        time_scale=2 * video.fps.numerator,  # a tick is a field
        fixed_frame_rate_flag=int(video.fixed_frame_rate),
        bitstream_restriction_flag=1,
        max_num_reorder_frames=config.coding.max_num_reorder_frames,
        max_dec_frame_buffering=config.coding.dpb_frames,
    )
    vui.pic_struct_present_flag = int(hrd.pic_struct)
    if hrd.buffer is not None and hrd.nal_hrd != "none":
        vui.nal_hrd_parameters_present_flag, vui.nal_hrd = 1, hrd_parameters(config, hrd.buffer)
    if video.sar is not None:
        vui.aspect_ratio_info_present_flag = 1
        vui.aspect_ratio_idc = EXTENDED_SAR
        vui.sar_width, vui.sar_height = video.sar
    colour = (video.colorprim, video.transfer, video.colormatrix)
    described = any(value is not None for value in colour)
    if described or video.videoformat is not None or video.range is not None:
        vui.video_signal_type_present_flag = 1
        vui.video_format = 5 if video.videoformat is None else video.videoformat
        vui.video_full_range_flag = video.range or 0
    if described:
        vui.colour_description_present_flag = 1
        vui.colour_primaries, vui.transfer_characteristics, vui.matrix_coefficients = (
            2 if value is None else value for value in colour
        )
    return vui


def log2_max_frame_num(coding: CodingSettings) -> int:
    """log2_max_frame_num (7.4.2.1.1): lists that repeat a frame say MaxFrameNum - 1 for it (8.2.4.3.1); a recovery
    point counts frames of a cycle by frame_num (D.2.8).
    """
    if coding.refresh_cycle:
        return max(LOG2_MAX_FRAME_NUM, coding.mb_width.bit_length())
    if not coding.repeats_references or coding.bframes:
        return LOG2_MAX_FRAME_NUM
    return 4 if coding.ref < 16 else 5


def picture_parameter_set(coding: CodingSettings, qp: int) -> Pps:
    """7.4.2.2: one slice group; pic_init_qp is `qp`, that of P frames, so that their slice_qp_delta is 0."""
    default_deblocking = coding.disable_deblocking_idc == coding.deblock_alpha == coding.deblock_beta == 0
    return Pps(
        entropy_coding_mode_flag=int(coding.cabac),
        num_ref_idx_l0_default_active_minus1=coding.ref - 1,
        weighted_pred_flag=int(coding.weightp > 0),
        weighted_bipred_idc=WEIGHTED_BIPRED_IMPLICIT * coding.weightb,
        pic_init_qp_minus26=qp - 26,
        chroma_qp_index_offset=coding.chroma_qp_offset,
        deblocking_filter_control_present_flag=int(not default_deblocking),
        transform_8x8_mode_flag=int(coding.transform_8x8_mode),
    )


def cabac_zero_words(bins: int, size: int, n_mb: int) -> bytes:
    """7.4.2.10: what the slices of a frame, `size` bytes of NAL units with so many bins, end with.

    A frame has at most 32 / 3 bins a byte of its NAL units and BINS_OF_MACROBLOCK a macroblock.
    """
    missing = -(-3 * (bins - BINS_OF_MACROBLOCK * n_mb) // 32) - size
    return CABAC_ZERO_WORD * max(0, -(-missing // len(CABAC_ZERO_WORD)))


class SliceWriter:
    """Writes frames of one sequence; keeps no state of a frame, so that several can be written at once."""

    def __init__(self, config: Config) -> None:
        self.config, self.coding = config, config.coding
        self._reorders = config.coding.bframes > 0
        self.sps = sequence_parameter_set(config)
        self._log2_max_frame_num = log2_max_frame_num(config.coding)
        self.pps = picture_parameter_set(config.coding, config.rate.qp)
        self._of_display = of_display(config.video)
        self._headers: dict[tuple[object, ...], SliceHeaders] = {}
        self._n_mb = config.coding.n_mb
        self.parameter_sets = nal_unit(NAL_SPS, MOST_NEEDED, write_sps(self.sps)) + nal_unit(
            NAL_PPS, MOST_NEEDED, write_pps(self.pps)
        )

    def access_unit(self, frame: Frame) -> bytes:
        """7.4.1.2: the NAL units of one frame, Annex B; parameter sets precede every IDR frame and recovery point."""
        spec, n_slices = frame.spec, len(frame.spec.slices)
        units = self._units_before_slices(spec, frame.sei)
        unit_type, ref_idc = NAL_IDR if spec.is_idr else NAL_SLICE, spec.nal_ref_idc
        frame.unit_sizes = unit_sizes = []
        for n, bits in enumerate(frame.slice_sizes[:n_slices].tolist()):
            payload = self._payload(frame, n, bits)
            units += start_of_nal_unit(unit_type, ref_idc, not units), payload
            unit_sizes.append(1 + len(payload))
        if self.coding.cabac:
            bins = sum(frame.slice_bins[:n_slices].tolist())
            units.append(cabac_zero_words(bins, sum(unit_sizes), self._n_mb))  # NumBytesInVclNALunits
            unit_sizes[-1] += len(units[-1])
        return b"".join(units)

    def sei(self, times: Times | None) -> bytes:
        """The RBSP of the SEI with the times of a frame; see timing_sei."""
        vui = self.sps.vui
        if not (vui.nal_hrd_parameters_present_flag or vui.pic_struct_present_flag):
            return b""
        return timing_sei(self.sps, times if vui.nal_hrd_parameters_present_flag else None)

    def _units_before_slices(self, spec: FrameSpec, sei: bytes = b"") -> list[bytes | memoryview]:
        """7.4.1.2.3: delimiter, parameter sets, SEI, in this order, as far as the frame has them; sei: RBSP of its times."""
        units: list[bytes | memoryview] = []
        if self.config.stream.aud:
            units.append(nal_unit(NAL_AUD, 0, write_access_unit_delimiter(PRIMARY_PIC_TYPES[spec.frame_type])))
        refresh = of_refresh(spec, self.coding)
        if spec.is_idr or refresh:
            units.append(self.parameter_sets)
        if sei:
            units.append(nal_unit(NAL_SEI, 0, sei, long_start_code=not units))
        if refresh:
            units.append(nal_unit(NAL_SEI, 0, refresh, long_start_code=False))
        if spec.is_idr and self._of_display:
            units.append(nal_unit(NAL_SEI, 0, self._of_display, long_start_code=False))
        if self.config.stream.info_sei and spec.coding_index == 0:
            units.append(nal_unit(NAL_SEI, 0, info_sei(self.config), long_start_code=False))
        return units

    def headers(self, spec: FrameSpec) -> SliceHeaders:
        """The headers of the slices of a frame, made once for frames that differ in nothing but frame_num and
        pic_order_cnt_lsb, whose length is fixed.
        """
        header_key = (
            spec.frame_type, spec.is_idr, spec.is_idr and spec.idr_pic_id, spec.is_reference, len(spec.list0), spec.qp,
            spec.cabac_init_idc, spec.slices, spec.weights, relations(spec) if self._reorders else spec.duplicates,
        )  # fmt: skip
        headers = self._headers.get(header_key)
        if headers is None:
            if len(self._headers) == MOST_HEADERS:
                self._headers.clear()
            numbers, bits, shifts = zip(*(self._header_as_number(spec, first_mb) for first_mb, _ in spec.slices))
            headers = self._headers[header_key] = SliceHeaders(bits, numbers, shifts)
        return headers

    def header_number(self, spec: FrameSpec, headers: SliceHeaders, n: int) -> int:
        """The bits of the header of slice n, with the frame's own numbers."""
        shift = headers.shifts[n]
        number = headers.numbers[n] | spec.frame_num % (1 << self._log2_max_frame_num) << shift
        if self._reorders and not spec.is_idr:  # the element after frame_num
            lsb = spec.pic_order_cnt % (1 << LOG2_MAX_PIC_ORDER_CNT_LSB)
            number |= lsb << shift - LOG2_MAX_PIC_ORDER_CNT_LSB
        return number

    def _header_as_number(self, spec: FrameSpec, first_mb: int) -> tuple[int, int, int]:
        """A slice header with pic_order_cnt_lsb 0 as a number, its bits, the place of frame_num; see SliceHeaders."""
        last = 0 if spec.is_idr else (1 << self._log2_max_frame_num) - 1
        written = [self._written_header(spec, first_mb, frame_num) for frame_num in (0, last)]
        bits = written[0].position
        zero, ones = (int.from_bytes(one.to_bytes(), "big") >> (-bits % 8) for one in written)
        return zero, bits, max(0, (zero ^ ones).bit_length() - self._log2_max_frame_num)

    def _written_header(self, spec: FrameSpec, first_mb: int, frame_num: int) -> BitWriter:
        """7.3.3, and with CABAC the cabac_alignment_one_bits of 7.3.4; frame_num: in place of the frame's."""
        writer = write_slice_header(self._header(spec, first_mb, frame_num), self.sps, self.pps)
        if self.coding.cabac:
            padding = -writer.position % 8
            writer.put_u(padding, (1 << padding) - 1)
        return writer

    def _header_as_bytes(self, frame: Frame, n: int) -> np.ndarray:
        """uint8: the header of slice n, filled with zeros."""
        bits = frame.headers.bits[n]
        number = self.header_number(frame.spec, frame.headers, n) << (-bits % 8)
        return np.frombuffer(number.to_bytes((bits + 7) // 8, "big"), np.uint8)

    def _payload(self, frame: Frame, n: int, bits: int) -> bytes | memoryview:
        """7.3.1, 7.3.2.8: payload of slice n: its data with the header merged in; emulation prevention where needed. bits:
        of both; -1: too long.
        """
        if bits < 0:
            raise RuntimeError(TOO_LONG)
        first_mb = frame.spec.slices[n][0]
        entry = first_mb + (n if self.coding.slice_max_size else first_mb // self.coding.mb_width)  # see write_slices
        size = (bits + 7) // 8
        data = frame.slice_data[ENTRY_BYTES * entry : ENTRY_BYTES * entry + size]
        return escape(data.tobytes()) if _begin_slice()(data, self._header_as_bytes(frame, n), size) else data.data

    def _header(self, spec: FrameSpec, first_mb: int, frame_num: int) -> SliceHeader:
        coding, max_frame_num = self.coding, 1 << self._log2_max_frame_num
        header = SliceHeader(
            nal_unit_type=NAL_IDR if spec.is_idr else NAL_SLICE,
            nal_ref_idc=spec.nal_ref_idc,
            first_mb_in_slice=first_mb,
            slice_type=SLICE_TYPES[spec.frame_type] + ALL_SLICES_ALIKE,
            frame_num=frame_num,
            idr_pic_id=spec.idr_pic_id,
            direct_spatial_mv_pred_flag=1,
            cabac_init_idc=spec.cabac_init_idc,
            slice_qp_delta=spec.qp - self.config.rate.qp,
            disable_deblocking_filter_idc=coding.disable_deblocking_idc,
            slice_alpha_c0_offset_div2=coding.deblock_alpha,
            slice_beta_offset_div2=coding.deblock_beta,
        )
        if spec.n_ref:
            header.num_ref_idx_l0_active_minus1 = spec.n_ref - 1
            header.num_ref_idx_active_override_flag = int(spec.n_ref != coding.ref)
        if spec.n_ref1:
            header.num_ref_idx_l1_active_minus1 = spec.n_ref1 - 1
        elif spec.n_ref and coding.weightp:
            _set_weights(header, spec.weights, spec.n_ref)
        if self._reorders:
            _set_references(header, spec, max_frame_num, coding.dpb_frames)
        elif spec.duplicates:
            header.ref_pic_list_modification_flag_l0 = 1
            header.modifications_l0 = _repeated(spec.duplicates, max_frame_num)
        return header


@cache
def _begin_slice() -> Callable[[np.ndarray, np.ndarray, int], bool]:
    """The kernel's function for slice data and a header of bytes, chosen once."""
    chosen: Callable[[np.ndarray, np.ndarray, int], bool] = begin_slice.chosen(
        np.zeros(1, np.uint8), np.frombuffer(bytes(1), np.uint8), 0
    )
    return chosen


def _repeated(duplicates: int, max_frame_num: int) -> list[ListModification]:
    """7.3.3.1: the last frame, then as many times itself again: a distance of MaxFrameNum (8.2.4.3.1)."""
    return [ListModification(0, 0), *(ListModification(0, max_frame_num - 1) for _ in range(duplicates))]


def _set_references(header: SliceHeader, spec: FrameSpec, max_frame_num: int, max_num_ref_frames: int) -> None:
    """7.4.3.1, 7.4.3.3: the lists and the marking of a frame in a stream with B frames."""
    header.modifications_l0, header.modifications_l1 = modifications(spec, max_frame_num)
    header.ref_pic_list_modification_flag_l0 = int(bool(header.modifications_l0))
    header.ref_pic_list_modification_flag_l1 = int(bool(header.modifications_l1))
    header.marking_operations = marking_operations(spec, max_num_ref_frames)
    header.adaptive_ref_pic_marking_mode_flag = int(bool(header.marking_operations))


def _set_weights(header: SliceHeader, entries: Sequence[Weights], n_ref: int) -> None:
    """7.4.3.2: the weights of the first entries of RefPicList0; the others have none."""
    header.luma_log2_weight_denom = max([weights.luma_log2 for weights in entries], default=0)
    header.chroma_log2_weight_denom = max([weights.chroma_log2 for weights in entries], default=0)
    header.weights_l0 = [Weight(luma_weight=1 << header.luma_log2_weight_denom) for _ in range(n_ref)]
    for entry, weights in zip(header.weights_l0, entries):
        if weights.flags & LUMA_WEIGHTED:
            entry.luma_weight_flag, entry.luma_weight, entry.luma_offset = 1, weights.luma_weight, weights.luma_offset
        if weights.flags & CHROMA_WEIGHTED:
            entry.chroma_weight_flag, entry.chroma_weight = 1, [weights.cb_weight, weights.cr_weight]
            entry.chroma_offset = [weights.cb_offset, weights.cr_offset]
