"""Headers that are right each by itself, and against the standard with those around them, are refused by name."""

from collections.abc import Callable

import pytest
from h264lite.decoder.decoder import decode
from h264lite.decoder.errors import BitstreamError
from h264lite.standard.bits import NAL_AUD, NAL_IDR, NAL_PPS, NAL_SLICE, NAL_SPS, BitReader, nal_unit, parse_nal_unit
from h264lite.standard.syntax import (
    Pps,
    SliceHeader,
    Sps,
    parse_pps,
    parse_slice_header,
    parse_sps,
    write_pps,
    write_slice_header,
    write_sps,
)

from ..support import round_trip
from ..support.broken import units_of

DELIMITER = nal_unit(NAL_AUD, 0, b"\xf0")
LARGEST = (1 << 31) - 1


def coded(frames: int, **options: object) -> bytes:
    """A small stream by CAVLC, without B slices."""
    return round_trip.encode(round_trip.noise_clip(32, 32, frames, 7), 32, 32, qp=30, profile="baseline", **options)[0]


def rewritten(
    stream: bytes,
    header: Callable[[SliceHeader, int], object] = lambda header, picture: None,
    sps: Callable[[Sps], object] = lambda sps: None,
    pps: Callable[[Pps], object] = lambda pps: None,
) -> bytes:
    """The stream with its headers changed; `header` gets the number of its picture, of one slice each, too."""
    units, pictures, sets = [], 0, {}
    for unit in map(parse_nal_unit, (unit.lstrip(b"\0")[1:] for unit in units_of(stream))):
        unit_type, ref_idc, rbsp = unit.nal_unit_type, unit.nal_ref_idc, unit.rbsp()
        if unit_type == NAL_SPS:
            sets[unit_type] = parse_sps(rbsp), parse_sps(rbsp)
            sps(sets[unit_type][1])
            rbsp = write_sps(sets[unit_type][1])
        elif unit_type == NAL_PPS:
            sets[unit_type] = parse_pps(rbsp), parse_pps(rbsp)
            pps(sets[unit_type][1])
            rbsp = write_pps(sets[unit_type][1])
        elif unit_type in (NAL_SLICE, NAL_IDR):
            (old_sps, new_sps), (old_pps, new_pps) = sets[NAL_SPS], sets[NAL_PPS]
            changed, _, _, position = parse_slice_header(unit_type, ref_idc, rbsp, {0: old_sps}, {0: old_pps})
            header(changed, pictures)
            pictures += 1
            writer = write_slice_header(changed, new_sps, new_pps)
            left = 8 * len(rbsp.rstrip(b"\0")) - position
            writer.put_u(left, BitReader(rbsp, position).get_u(left))
            unit_type, ref_idc, rbsp = changed.nal_unit_type, changed.nal_ref_idc, writer.to_bytes().rstrip(b"\0")
        units.append(DELIMITER * (unit_type in (NAL_SLICE, NAL_IDR)) + nal_unit(unit_type, ref_idc, rbsp))
    return b"".join(units)


# 8.2.1: order counts have 32 bits ---------------------------------------------------------------------------------------


def type_1(sps: Sps) -> None:
    """Order counts by deltas; any picture may be shown before the one before."""
    sps.pic_order_cnt_type, sps.offset_for_ref_frame, sps.num_ref_frames_in_pic_order_cnt_cycle = 1, [2], 1
    sps.vui.max_num_reorder_frames, sps.vui.max_dec_frame_buffering = 1, 2


@pytest.mark.parametrize("delta, counts", [(LARGEST - 2, [0, LARGEST]), (-LARGEST, [2 - LARGEST, 0])])
def test_the_largest_order_counts(delta, counts):
    def header(header: SliceHeader, picture: int) -> None:
        header.delta_pic_order_cnt = [delta * picture, 0]

    assert [frame.poc for frame in decode(rewritten(coded(2), header, type_1))] == counts


@pytest.mark.parametrize("delta, count", [(LARGEST - 1, LARGEST + 1), (-LARGEST, -LARGEST - 3)])
def test_order_counts_beyond_32_bits(delta, count):
    """By type 1, where the second field of a frame may lie beyond, too."""

    def sps(sps: Sps) -> None:
        type_1(sps)
        sps.offset_for_top_to_bottom_field = -5 if delta < 0 else 0

    def header(header: SliceHeader, picture: int) -> None:
        header.delta_pic_order_cnt = [delta * picture, 0]

    with pytest.raises(BitstreamError, match=rf"NAL unit 6 .*: picture order count {count} is outside"):
        decode(rewritten(coded(2), header, sps))


# 7.4.3: a frame has 16 references at most -------------------------------------------------------------------------------


def test_a_picture_parameter_set_that_implies_more_references_than_a_frame_has():
    """num_ref_idx_active_override_flag is 1 in P slices of frames where the default is beyond 15: here it is not."""
    stream = coded(2)

    def pps(pps: Pps) -> None:
        pps.num_ref_idx_l0_default_active_minus1 = 16

    def header(header: SliceHeader, picture: int) -> None:
        header.num_ref_idx_active_override_flag = picture
        header.num_ref_idx_l0_active_minus1 = 0

    legal = rewritten(stream, header, pps=pps)
    assert len(decode(legal)) == 2
    units = units_of(rewritten(stream))
    places = [k for k, unit in enumerate(units) if unit.lstrip(b"\0")[1] & 31 == NAL_PPS]
    for place in places:
        units[place] = units_of(legal)[place]
    with pytest.raises(BitstreamError, match=r"NAL unit 6 .*: num_ref_idx_l0_active_minus1 = 16 is outside 0\.\.15"):
        decode(b"".join(units))
