"""What `h264lite info` says of a stream, for programs."""

from fractions import Fraction
from typing import Any

from ..standard.bits import NAL_AUD, NAL_FILLER
from ..standard.levels import level_name, profile_name
from ..standard.syntax import Hrd, Sps
from .info import StreamInfo, TypeTotals, UnitInfo, nal_name


def unit_facts(unit: UnitInfo) -> dict[str, Any]:
    """A NAL unit; "type" and "ref" are null where its header is broken."""
    known = unit.nal_unit_type >= 0
    return {
        "offset": unit.offset, "bytes": unit.size, "type": unit.nal_unit_type if known else None,
        "ref": unit.nal_ref_idc if known else None, "name": unit.name, "text": unit.text.strip(": "),
    }  # fmt: skip


def stream_facts(info: StreamInfo) -> dict[str, Any]:
    """The whole stream, whose last NAL unit was given to `info`."""
    info.end_picture()
    slices = sum(k.slices for k in info.picture_types.values())
    return {
        "bytes": info.size,
        "nal_units": info.nal_types.total(),
        "pictures": info.pictures,
        "sequences": [_sequence(sps, text) for sps, text in zip(info.sets, info.sequences)],
        "user_data": [*info.user_data],
        "nal_types": {nal_name(number): count for number, count in sorted(info.nal_types.items())},
        "access_unit_delimiters": info.nal_types[NAL_AUD],
        "filler": {"nal_units": info.nal_types[NAL_FILLER], "bytes": info.filler},
        "entropy_coding": sorted(info.entropy),
        "kinds": {name: _picture_type(totals) for name, totals in info.in_order()},
        "slices": slices,
        "slices_a_picture": slices / info.pictures if info.pictures else None,
        "tools": info.tools,
        "errors": [*info.errors],
        "errors_total": info.errors.total,
    }


def _sequence(sps: Sps, text: str) -> dict[str, Any]:
    """A sequence parameter set in use."""
    vui = sps.vui
    timed = vui.timing_info_present_flag and vui.num_units_in_tick and vui.time_scale
    return {
        "text": text,
        "profile_idc": sps.profile_idc,
        "profile": profile_name(sps.profile_idc, sps.constraint_set1_flag, sps.constraint_set3_flag),
        "level_idc": sps.level_idc,
        "level": level_name(sps.level_idc, sps.profile_idc, sps.constraint_set3_flag),
        "width": sps.width,
        "height": sps.height,
        "chroma_format_idc": sps.chroma_format_idc,
        "bit_depth": 8 + max(sps.bit_depth_luma_minus8, sps.bit_depth_chroma_minus8),
        "interlaced_tools": not sps.frame_mbs_only_flag,
        "scaling_matrices": bool(sps.seq_scaling_matrix_present_flag),
        "fps": str(Fraction(vui.time_scale, 2 * vui.num_units_in_tick)) if timed else None,
        "reference_frames": sps.max_num_ref_frames,
        "reordered_frames": vui.max_num_reorder_frames if vui.bitstream_restriction_flag else None,
        "nal_hrd": _buffers(vui.nal_hrd) if vui.nal_hrd_parameters_present_flag else [],
        "vcl_hrd": _buffers(vui.vcl_hrd) if vui.vcl_hrd_parameters_present_flag else [],
    }


def _buffers(hrd: Hrd) -> list[dict[str, Any]]:
    """E.2.2: rate and size of each buffer."""
    return [
        {"bits_a_second": (rate + 1) << (6 + hrd.bit_rate_scale), "constant": bool(constant),
         "buffer_bits": (size + 1) << (4 + hrd.cpb_size_scale)}
        for rate, size, constant in zip(hrd.bit_rate_value_minus1, hrd.cpb_size_value_minus1, hrd.cbr_flag)
    ]  # fmt: skip


def _picture_type(totals: TypeTotals) -> dict[str, Any]:
    """The pictures of a type; bytes: of NAL units of slices."""
    return {
        "pictures": totals.pictures, "bytes_least": totals.size_min, "bytes_most": totals.size_max,
        "bytes_mean": totals.size / totals.pictures, "slices": totals.slices, "slice_qp_least": totals.qp_min,
        "slice_qp_most": totals.qp_max, "slice_qp_mean": totals.qp_sum / totals.slices,
    }  # fmt: skip
