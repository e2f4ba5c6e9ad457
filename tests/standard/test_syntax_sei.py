"""SEI of buffering periods and picture timing: what is written is read back, broken ones are refused."""

import pytest
from h264lite.standard.bits import BitstreamError
from h264lite.standard.syntax import Hrd, Sps, Vui
from h264lite.standard.syntax_sei import (
    NUM_CLOCK_TS,
    BufferingPeriod,
    ClockTimestamp,
    InitialDelays,
    PicTiming,
    named_sps,
    parse_buffering_period,
    parse_pic_timing,
    write_buffering_period,
    write_pic_timing,
)
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def sequences(draw):
    """A parameter set with HRD parameters of any lengths, or without."""
    delays = ("initial_cpb_removal_delay", "cpb_removal_delay", "dpb_output_delay")
    lengths = {f"{name}_length_minus1": draw(st.integers(0, 31)) for name in delays}
    lengths["time_offset_length"] = draw(st.integers(0, 31))
    nal, vcl = draw(st.integers(0, 1)), draw(st.integers(0, 1))
    hrds = [Hrd(cpb_cnt_minus1=draw(st.integers(0, 3)), **lengths) for _ in range(2)]
    vui = Vui(nal_hrd_parameters_present_flag=nal, vcl_hrd_parameters_present_flag=vcl, nal_hrd=hrds[0], vcl_hrd=hrds[1],
              pic_struct_present_flag=draw(st.integers(0, 1)))
    return Sps(vui_parameters_present_flag=1, vui=vui)


def number(draw, bits, least=0):
    return draw(st.integers(least, (1 << bits) - 1))


@given(sequences(), st.data())
def test_buffering_periods(sps, data):
    vui, draw = sps.vui, data.draw
    period = BufferingPeriod(draw(st.integers(0, 31)))
    for present, hrd, delays in ((vui.nal_hrd_parameters_present_flag, vui.nal_hrd, period.nal),
                                 (vui.vcl_hrd_parameters_present_flag, vui.vcl_hrd, period.vcl)):
        bits = hrd.initial_cpb_removal_delay_length_minus1 + 1
        if present:
            delays += [InitialDelays(number(draw, bits, 1), number(draw, bits)) for _ in range(hrd.cpb_cnt_minus1 + 1)]
    payload = write_buffering_period(period, sps)
    assert parse_buffering_period(payload, sps) == period and named_sps(payload) == period.seq_parameter_set_id
    if len(payload) > 2:
        with pytest.raises(BitstreamError):
            parse_buffering_period(payload[:1], sps)


@st.composite
def clocks(draw, offset_bits):
    """What an absent element stands for is 0, and a value follows the one before."""
    if not draw(st.booleans()):
        return ClockTimestamp()
    full, present = draw(st.integers(0, 1)), draw(st.integers(0, 3))
    values = {}
    for k, (name, most) in enumerate((("seconds", 59), ("minutes", 59), ("hours", 23))):
        if full or present > k:
            values[f"{name}_value"] = draw(st.integers(0, most))
            values[f"{name}_flag"] = int(not full)
    values["time_offset"] = number(draw, offset_bits) if offset_bits else 0
    return ClockTimestamp(
        1, draw(st.integers(0, 3)), draw(st.integers(0, 1)), draw(st.integers(0, 31)), full, draw(st.integers(0, 1)),
        draw(st.integers(0, 1)), draw(st.integers(0, 255)), **values,
    )  # fmt: skip


@given(sequences(), st.data())
def test_picture_timing(sps, data):
    vui, draw, timing, offset_bits = sps.vui, data.draw, PicTiming(), 24
    if vui.nal_hrd_parameters_present_flag or vui.vcl_hrd_parameters_present_flag:
        hrd = vui.nal_hrd if vui.nal_hrd_parameters_present_flag else vui.vcl_hrd
        timing.cpb_removal_delay = number(draw, hrd.cpb_removal_delay_length_minus1 + 1)
        timing.dpb_output_delay = number(draw, hrd.dpb_output_delay_length_minus1 + 1)
        offset_bits = hrd.time_offset_length
    if vui.pic_struct_present_flag:
        timing.pic_struct = draw(st.integers(0, 8))
        timing.clocks = [draw(clocks(offset_bits)) for _ in range(NUM_CLOCK_TS[timing.pic_struct])]
    assert parse_pic_timing(write_pic_timing(timing, sps), sps) == timing


def test_numbers_that_do_not_fit():
    vui = Vui(nal_hrd_parameters_present_flag=1, pic_struct_present_flag=1, nal_hrd=Hrd(dpb_output_delay_length_minus1=3))
    sps = Sps(vui_parameters_present_flag=1, vui=vui)
    with pytest.raises(ValueError, match="dpb_output_delay = 16"):
        write_pic_timing(PicTiming(0, 16, 0), sps)
    with pytest.raises(ValueError, match="initial_cpb_removal_delay = 0"):
        write_buffering_period(BufferingPeriod(0, [InitialDelays(0, 5)]), sps)
    with pytest.raises(BitstreamError, match="pic_struct = 15"):
        parse_pic_timing(b"\0\0\0\xff\xff", sps)
