"""The model of Annex C finds what is wrong: streams that keep their buffer are broken, each in one way."""

import pytest
from h264lite.standard.bits import NAL_FILLER, NAL_SEI, NAL_SPS, nal_unit, split_byte_stream
from h264lite.standard.syntax import parse_sei, parse_sps, write_sei, write_sps
from h264lite.standard.syntax_sei import (
    SEI_BUFFERING_PERIOD,
    SEI_PIC_TIMING,
    parse_buffering_period,
    parse_pic_timing,
    write_buffering_period,
    write_pic_timing,
)

from ..support import hrd_model
from .test_buffer import BUFFER, encoded

OPTIONS = {"keyint": 8, "bframes": 2, "crf": 30, "vbv_bufsize": 20}


@pytest.fixture(scope="module")
def streams():
    by_kind = {kind: encoded(**{**BUFFER, **OPTIONS, "nal_hrd": kind})[0] for kind in ("vbr", "cbr")}
    assert not any(hrd_model.check(stream).problems for stream in by_kind.values())
    return by_kind


def rebuilt(stream, change):
    """The stream with the NAL units that change(unit, number of units of its type before) returns; None: without it."""
    seen, units = {}, []
    for unit in split_byte_stream(stream):
        count = seen.setdefault(unit.nal_unit_type, 0)
        seen[unit.nal_unit_type] += 1
        changed = change(unit, count)
        units.append(b"\0\0\0\1" + (unit.data if changed is True else changed) if changed is not None else b"")
    return b"".join(units)


def with_sps(stream, edit):
    def change(unit, count):
        if unit.nal_unit_type != NAL_SPS:
            return True
        sps = parse_sps(unit.rbsp())
        edit(sps.vui.nal_hrd)
        return nal_unit(NAL_SPS, 3, write_sps(sps))[4:]

    return rebuilt(stream, change)


def with_sei(stream, edit):
    """edit(buffering period or None, picture timing, number of the picture) changes both."""
    sps = next(parse_sps(unit.rbsp()) for unit in split_byte_stream(stream) if unit.nal_unit_type == NAL_SPS)

    def change(unit, count):
        if unit.nal_unit_type != NAL_SEI:
            return True
        messages = dict(parse_sei(unit.rbsp()))
        period = messages.get(SEI_BUFFERING_PERIOD)
        period = period and parse_buffering_period(period, sps)
        timing = parse_pic_timing(messages[SEI_PIC_TIMING], sps)
        edit(period, timing, count)
        periods = [(SEI_BUFFERING_PERIOD, write_buffering_period(period, sps))] if period else []
        return nal_unit(NAL_SEI, 0, write_sei([*periods, (SEI_PIC_TIMING, write_pic_timing(timing, sps))]))[4:]

    return rebuilt(stream, change)


def test_without_filler_data_a_constant_rate_overflows(streams):
    broken = rebuilt(streams["cbr"], lambda unit, _: None if unit.nal_unit_type == NAL_FILLER else True)
    problems = hrd_model.check(broken).problems
    assert any("overflow" in text for text in problems) and any("initial_cpb_removal_delay" in text for text in problems)
    assert not any("underflow" in text for text in problems)


@pytest.mark.parametrize("kind", ["vbr", "cbr"])
def test_a_frame_that_is_too_large_underflows(streams, kind):
    units = list(split_byte_stream(streams[kind]))
    last = max(k for k, unit in enumerate(units) if unit.nal_unit_type == 1)
    filler = nal_unit(NAL_FILLER, 0, b"\xff" * 9000 + b"\x80")
    broken = b"".join(b"\0\0\0\1" + unit.data + (filler if k == last else b"") for k, unit in enumerate(units))
    assert any("underflow" in text for text in hrd_model.check(broken).problems)


def test_a_lower_rate_underflows(streams):
    def edit(hrd):
        hrd.bit_rate_value_minus1[0] = hrd.bit_rate_value_minus1[0] // 3

    assert any("underflow" in text for text in hrd_model.check(with_sps(streams["vbr"], edit)).problems)


def test_a_smaller_buffer_overflows(streams):
    def edit(hrd):
        hrd.cpb_size_value_minus1[0] = hrd.cpb_size_value_minus1[0] * 9 // 10

    problems = hrd_model.check(with_sps(streams["cbr"], edit)).problems
    assert any("overflow" in text for text in problems)


def test_wrong_delays(streams):
    def later(period, timing, count):
        if period and count:
            period.nal[0].initial_cpb_removal_delay += 200

    def earlier(period, timing, count):
        if period and count:
            period.nal[0].initial_cpb_removal_delay -= 200
            period.nal[0].initial_cpb_removal_delay_offset += 200

    def removed_again(period, timing, count):
        timing.cpb_removal_delay -= 2 * (count == 3)

    def shown_late(period, timing, count):
        timing.dpb_output_delay += 2 * (count == 5)

    for kind, edit, message in (
        ("cbr", later, "initial_cpb_removal_delay"), ("cbr", earlier, "initial_cpb_removal_delay"), ("vbr", later, "sums"),
        ("vbr", removed_again, "removal times do not rise"), ("vbr", shown_late, "not shown at the frame rate"),
    ):  # fmt: skip
        assert any(message in text for text in hrd_model.check(with_sei(streams[kind], edit)).problems), edit


def test_missing_messages(streams):
    broken = rebuilt(streams["vbr"], lambda unit, count: None if unit.nal_unit_type == NAL_SEI and count == 2 else True)
    assert hrd_model.check(broken).problems == ["picture 2: no times"]
    broken = rebuilt(streams["vbr"], lambda unit, count: None if unit.nal_unit_type == NAL_SEI and count == 0 else True)
    assert hrd_model.check(broken).problems == ["picture 0: no times"]
    assert hrd_model.check(encoded(crf=30)[0]).problems == ["no NAL HRD parameters"]
