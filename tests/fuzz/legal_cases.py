"""Legal rewrites of small streams: headers and parameter sets say something else of the same slice data, or what they said in
another way. Ours and FFmpeg's frames are equal, or ours names what it refuses.

Left out is what docs/differences.md tells of FFmpeg: a second chroma offset below High profile, reordering that is not said,
cropping that changes within a stream, order counts out of range. Scaling lists and chroma QP offsets make some residuals
larger than 8.5.10 to 8.5.13 allow: such pictures, and what may refer to them, may differ; their number may not.
"""

import copy
import random
from types import SimpleNamespace
from typing import Any, NamedTuple

import h264lite
import numpy as np
from h264lite.standard import bits, syntax_pps, syntax_slice, syntax_sps
from h264lite.standard.syntax import HIGH, B, I, P, Pps, SliceHeader, Sps, Weight, starts_new_picture

from ..support.residual_limits import spoiled_frames
from . import decoder_cases, mutate, seeds
from .guard import GuardedNumpy
from .kinds import Result

REWRITES = ("weights", "bipred", "direct", "deblocking", "scaling", "order", "offsets", "init_qp", "crop", "bottom",
            "inference", "defaults", "redundant", "frame_num", "long_term", "ref_idc")  # fmt: skip


class Case(NamedTuple):
    """One stream, or several that are decoded one behind the other; and how it was rewritten."""

    parts: list[bytes]
    rewrites: tuple[str, ...]
    piece: int


def material() -> decoder_cases.Material:
    """The progressive seeds that are whole, which both decoders decode alike."""
    whole = [*seeds.own_streams(), *seeds.x264_streams()]
    whole += [seeds.own(48, 32, 8, qp=30, keyint=8, ref=3, bframes=3), seeds.own(64, 48, 6, qp=33, bframes=2, no_cabac=True)]
    streams = []
    for stream in whole:
        try:
            if ours(stream, 1 << 20) == theirs(stream):
                streams.append(mutate.units_of(stream))
        except h264lite.BitstreamError:
            continue
    return decoder_cases.Material(streams, f"{len(streams)} streams")


modules = decoder_cases.modules


def warm(given: decoder_cases.Material) -> None:
    """Decode all as they are."""
    for units in given.streams:
        stream = mutate.stream_of(units, random.Random(0))
        assert ours(stream, 1 << 20) == theirs(stream)


def build(given: decoder_cases.Material, rng: random.Random) -> Case:
    """One rewritten stream; or several."""
    rewrites = tuple(rng.sample(REWRITES, rng.choice((1, 1, 2, 3, 5))))
    parts = [_rewritten(rng.choice(given.streams), rewrites, rng) for _ in range(rng.choice((1,) * 8 + (2, 3)))]
    return Case(parts, rewrites, rng.choice((1 << 20, 1 << 20, 1000, 77)))


def run(case: Case, numpy: GuardedNumpy) -> Result:
    """Equal frames, or a refusal by name."""
    try:
        frames = ours(b"".join(case.parts), case.piece)
    except h264lite.BitstreamError as error:
        assert decoder_cases.PLACE.match(str(error)), error
        return Result(0, str(error))
    expected = [frame for part in case.parts for frame in theirs(part)]
    different = {n for n, pair in enumerate(zip(frames, expected)) if pair[0] != pair[1]}
    if different:  # most residuals out of range give the same samples: only here is it of interest, which takes long
        different -= spoiled_frames(b"".join(case.parts))
    assert len(frames) == len(expected) and not different, (case.rewrites, len(frames), len(expected), sorted(different)[:9])
    return Result(len(frames))


def dump(case: Case) -> bytes:
    """The streams in sequence."""
    return b"".join(case.parts)


def ours(stream: bytes, piece: int) -> list[bytes]:
    """Frames of the project's decoder, I420."""
    coder, frames = h264lite.Decoder(), []
    for at in range(0, len(stream), piece):
        frames += [frame.to_bytes() for frame in coder.decode(stream[at : at + piece])]
    return frames + [frame.to_bytes() for frame in coder.flush()]


def theirs(stream: bytes) -> list[bytes]:
    """Frames of FFmpeg, I420."""
    import av

    av.logging.set_level(av.logging.PANIC)
    context: Any = av.CodecContext.create("h264", "r")
    context.thread_count = 1
    context.flags |= 1  # AV_CODEC_FLAG_UNALIGNED: crops to the sample
    packets = [*context.parse(stream), *context.parse(None), None]
    return [_i420(frame) for packet in packets for frame in context.decode(packet)]


def _i420(frame: Any) -> bytes:
    planes = (np.frombuffer(p, np.uint8).reshape(p.height, p.line_size)[:, : p.width] for p in frame.planes)
    return b"".join(plane.tobytes() for plane in planes)


# Rewriting --------------------------------------------------------------------------------------------------------------


class _Sets(NamedTuple):
    """Parameter sets by number."""

    sps: dict[int, Sps]
    pps: dict[int, Pps]


def _rewritten(units: list[mutate.Unit], rewrites: tuple[str, ...], rng: random.Random) -> bytes:
    """The stream with other headers."""
    old, new, out = _Sets({}, {}), _Sets({}, {}), []
    crop = [rng.randint(0, 3) for _ in range(4)]
    headers = _headers(units)
    rewrites = tuple(name for name in rewrites if name not in _illegal(units, headers))
    state = SimpleNamespace(last=None, references=[], plan=None)
    for unit, header in zip(units, headers):
        rbsp = unit.rbsp
        if unit.kind == bits.NAL_SPS:
            sps = syntax_sps.parse_sps(rbsp)
            old.sps[sps.seq_parameter_set_id] = copy.deepcopy(sps)
            _change_sps(sps, rewrites, crop, rng)
            new.sps[sps.seq_parameter_set_id] = sps
            rbsp = syntax_sps.write_sps(sps)
        elif unit.kind == bits.NAL_PPS:
            pps = syntax_pps.parse_pps(rbsp)
            old.pps[pps.pic_parameter_set_id] = copy.deepcopy(pps)
            _change_pps(pps, new.sps[pps.seq_parameter_set_id], rewrites, rng)
            new.pps[pps.pic_parameter_set_id] = pps
            rbsp = syntax_pps.write_pps(pps)
        elif header is not None:
            unit, rbsp = _slice(unit, old, new, state, rewrites, rng)
        out.append(unit._replace(rbsp=rbsp))
    return mutate.stream_of(out, rng)


def _illegal(units: list[mutate.Unit], headers: list[SliceHeader | None]) -> set[str]:
    """Rewrites that would break this stream."""
    reasons = set()
    for unit, header in zip(units, headers):
        if header is not None and header.adaptive_ref_pic_marking_mode_flag:
            reasons |= {"long_term", "order"}  # other pictures are references than those of the sliding window
        if header is not None and (header.modifications_l0 or header.modifications_l1):
            reasons.add("long_term")  # which they name by other numbers
        if unit.kind == bits.NAL_PPS and syntax_pps.parse_pps(unit.rbsp).transform_8x8_mode_flag:
            reasons.add("inference")  # on which the presence of transform_size_8x8_flag depends
    return reasons


def _headers(units: list[mutate.Unit]) -> list[SliceHeader | None]:
    """The slice header of each unit."""
    sets, headers = _Sets({}, {}), []
    for unit in units:
        headers.append(None)
        if unit.kind == bits.NAL_SPS:
            sps = syntax_sps.parse_sps(unit.rbsp)
            sets.sps[sps.seq_parameter_set_id] = sps
        elif unit.kind == bits.NAL_PPS:
            pps = syntax_pps.parse_pps(unit.rbsp)
            sets.pps[pps.pic_parameter_set_id] = pps
        elif unit.kind in (bits.NAL_SLICE, bits.NAL_IDR):
            headers[-1] = syntax_slice.parse_slice_header(*unit, *sets)[0]
    return headers


def _lists(rng: random.Random, count: int) -> list[list[int] | None]:
    """Scaling lists, some of them as they fall back."""
    sizes = [16] * 6 + [64] * (count - 6)
    return [rng.choice((None, [16] * n, [rng.randint(4, 32) for _ in range(n)])) for n in sizes]


def _change_sps(sps: Sps, rewrites: tuple[str, ...], crop: list[int], rng: random.Random) -> None:
    sps.vui_parameters_present_flag = sps.vui.bitstream_restriction_flag = 1  # both decoders wait for as many frames
    sps.vui.max_num_reorder_frames, sps.vui.max_dec_frame_buffering, sps.level_idc = 16, 16, 51
    if "scaling" in rewrites or "offsets" in rewrites:
        sps.profile_idc = HIGH
        sps.constraint_set0_flag = sps.constraint_set1_flag = 0
    if "scaling" in rewrites and rng.random() < 0.7:
        sps.seq_scaling_matrix_present_flag = 1
        sps.scaling.lists = _lists(rng, 8)
    if "inference" in rewrites and sps.frame_mbs_only_flag:
        sps.direct_8x8_inference_flag ^= 1
    if "crop" in rewrites and min(sps.mb_width, sps.mb_height) > 1:
        sps.frame_cropping_flag = 1
        sps.frame_crop_left_offset, sps.frame_crop_right_offset = crop[:2]
        sps.frame_crop_top_offset, sps.frame_crop_bottom_offset = crop[2:]
    if "frame_num" in rewrites:
        sps.log2_max_frame_num_minus4 = max(sps.log2_max_frame_num_minus4, rng.choice((1, 4, 8, 12)))


def _change_pps(pps: Pps, sps: Sps, rewrites: tuple[str, ...], rng: random.Random) -> None:
    if "bipred" in rewrites:
        pps.weighted_bipred_idc = rng.randint(0, 2)
    if "weights" in rewrites:
        pps.weighted_pred_flag = rng.randint(0, 1)
    if "offsets" in rewrites:
        pps.chroma_qp_index_offset = rng.randint(-12, 12)
        pps.second_chroma_qp_index_offset = rng.randint(-12, 12)
    if "deblocking" in rewrites:
        pps.deblocking_filter_control_present_flag = 1
    if "init_qp" in rewrites:
        pps.pic_init_qp_minus26 = rng.randint(-26, 25)
    if "bottom" in rewrites and sps.pic_order_cnt_type == 0:
        pps.bottom_field_pic_order_in_frame_present_flag = 1
    if "scaling" in rewrites and rng.random() < 0.7:
        pps.pic_scaling_matrix_present_flag = 1
        pps.scaling.lists = _lists(rng, 6 + 2 * pps.transform_8x8_mode_flag)
    if "defaults" in rewrites:
        pps.num_ref_idx_l0_default_active_minus1 = rng.randint(0, 15)
        pps.num_ref_idx_l1_default_active_minus1 = rng.randint(0, 15)
    if "redundant" in rewrites:
        pps.redundant_pic_cnt_present_flag = 1


def _slice(
    unit: mutate.Unit, old: _Sets, new: _Sets, state: SimpleNamespace, rewrites: tuple[str, ...], rng: random.Random
) -> tuple[mutate.Unit, bytes]:
    """A slice with another header before the same slice data."""
    header, sps, pps, position = syntax_slice.parse_slice_header(*unit, *old)
    qp, (new_sps, new_pps) = header.qp(pps), (new.sps[sps.seq_parameter_set_id], new.pps[pps.pic_parameter_set_id])
    if state.last is None or starts_new_picture(header, state.last):
        _next_picture(header, sps, state, rng)
    state.last = copy.deepcopy(header)
    header.slice_qp_delta = qp - 26 - new_pps.pic_init_qp_minus26
    header.num_ref_idx_active_override_flag = 1
    if "ref_idc" in rewrites and unit.ref_idc:
        header.nal_ref_idc = state.plan["ref_idc"]
    if "bottom" in rewrites:
        header.delta_pic_order_cnt_bottom = state.plan["bottom"]
    if "long_term" in rewrites and header.idr:
        header.long_term_reference_flag = state.plan["long_term"]
    if "direct" in rewrites and header.type_mod_5 == B:
        header.direct_spatial_mv_pred_flag ^= 1
    if new_pps.deblocking_filter_control_present_flag and "deblocking" in rewrites:
        header.disable_deblocking_filter_idc = rng.choice((0, 0, 1, 2))
        header.slice_alpha_c0_offset_div2, header.slice_beta_offset_div2 = rng.randint(-6, 6), rng.randint(-6, 6)
    if ("weights" in rewrites and header.type_mod_5 == P) or ("bipred" in rewrites and header.type_mod_5 == B):
        _weigh(header, rng)
    if "order" in rewrites and header.type_mod_5 != I and state.references and sps.frame_mbs_only_flag:
        _reorder(header, new_sps, state.references, rng)
    writer = bits.BitWriter()
    syntax_slice._slice_header_start(writer, header)
    syntax_slice.slice_header(writer, header, new_sps, new_pps)
    if pps.entropy_coding_mode_flag:
        writer.align(1)
        position += -position % 8
    kept = 8 * len(unit.rbsp) - position
    writer.put_u(kept, int.from_bytes(unit.rbsp, "big") & ((1 << kept) - 1))
    return unit._replace(ref_idc=header.nal_ref_idc), writer.to_bytes().rstrip(b"\0")


def _next_picture(header: SliceHeader, sps: Sps, state: SimpleNamespace, rng: random.Random) -> None:
    """The short-term references of a picture by the sliding window, and what its slices have in common."""
    if header.idr:
        state.references = []
    elif state.last is not None and state.last.nal_ref_idc:
        state.references = [*state.references, state.last.frame_num][-max(1, sps.max_num_ref_frames) :]
    bottom = rng.randint(-1, 3)
    state.plan = {
        "bottom": abs(bottom) if header.idr else bottom,
        "ref_idc": rng.randint(1, 3),
        "long_term": rng.randint(0, 1),
    }


def _weigh(header: SliceHeader, rng: random.Random) -> None:
    """7.4.3.2: weights of any sign; of B slices the sum of two stays within -128..127."""
    most = 5 if header.type_mod_5 == B else 7
    header.luma_log2_weight_denom, header.chroma_log2_weight_denom = rng.randint(0, most), rng.randint(0, most)

    def weight() -> Weight:
        luma, chroma = rng.randint(0, 1), rng.randint(0, 1)
        values = [rng.randint(-60, 60) for _ in range(3)]
        offsets = [rng.randint(-128, 127) for _ in range(3)]
        if not luma:
            values[0], offsets[0] = 1 << header.luma_log2_weight_denom, 0
        if not chroma:
            values[1:], offsets[1:] = [1 << header.chroma_log2_weight_denom] * 2, [0, 0]
        return Weight(luma, values[0], offsets[0], chroma, values[1:], offsets[1:])

    header.weights_l0, header.weights_l1 = [weight() for _ in range(32)], [weight() for _ in range(32)]


def _reorder(header: SliceHeader, sps: Sps, references: list[int], rng: random.Random) -> None:
    """7.3.3.1: any short-term references in any order, also several times, at the beginning of both lists."""

    def entries(active: int) -> list[syntax_slice.ListModification]:
        modifications, predicted, size = [], header.frame_num, header.max_frame_num(sps)
        for _ in range(rng.randint(0, active)):
            chosen = rng.choice(references)
            back = (predicted - chosen) % size or size
            ahead = size - back or size
            if rng.random() < 0.5:
                modifications.append(syntax_slice.ListModification(0, back - 1))
            else:
                modifications.append(syntax_slice.ListModification(1, ahead - 1))
            predicted = chosen
        return modifications

    header.modifications_l0 = entries(header.num_ref_idx_l0_active_minus1 + 1)
    header.ref_pic_list_modification_flag_l0 = int(bool(header.modifications_l0))
    if header.type_mod_5 == B:
        header.modifications_l1 = entries(header.num_ref_idx_l1_active_minus1 + 1)
        header.ref_pic_list_modification_flag_l1 = int(bool(header.modifications_l1))
