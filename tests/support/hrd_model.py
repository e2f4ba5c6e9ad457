"""The hypothetical reference decoder of Annex C, from a byte stream alone: when bits arrive, when pictures are taken out.

Parameter sets, SEI and slice headers come from h264lite.standard, whose parsers other tests compare with FFmpeg. All times
are fractions.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor

from h264lite.standard.bits import NAL_AUD, NAL_FILLER, NAL_IDR, NAL_PPS, NAL_SEI, NAL_SLICE, NAL_SPS, unescape
from h264lite.standard.syntax import parse_pps, parse_sei, parse_slice_header, parse_sps, starts_new_picture
from h264lite.standard.syntax_sei import SEI_BUFFERING_PERIOD, SEI_PIC_TIMING, parse_buffering_period, parse_pic_timing

CLOCK = 90000
BEFORE_SLICES = (NAL_SPS, NAL_PPS, NAL_SEI, NAL_AUD)  # 7.4.1.2.3: begin an access unit if slices were before


@dataclass
class AccessUnit:
    """bits: of the byte stream, start codes and zeros included (Type II, C.1); nal_bytes: without them."""

    bits: int = 0
    nal_bytes: int = 0
    slices: int = 0
    filler: int = 0  # bytes of NAL units with filler data
    period: object = None
    timing: object = None
    header: object = None


@dataclass
class Report:
    """What is wrong, as sentences; bits from the beginning of each picture's arrival to its removal; fullness before that."""

    problems: list = field(default_factory=list)
    room: list = field(default_factory=list)
    fullness: list = field(default_factory=list)
    removal: list = field(default_factory=list)  # seconds
    output: list = field(default_factory=list)
    units: list = field(default_factory=list)
    sps: object = None


def access_units(stream):
    """(the sequence parameter set, the access units) of an Annex B stream; every byte belongs to one."""
    starts = [match.start() for match in re.finditer(b"\0\0\1", stream)]
    # zero_byte belongs to the NAL unit that follows, trailing_zero_8bits to the one before (B.1.1)
    edges = [at - (at > 0 and stream[at - 1] == 0) for at in starts] + [len(stream)]
    spss, ppss, units, last, sps = {}, {}, [], None, None
    unit, has_slices, leading = AccessUnit(bits=8 * edges[0]), False, True
    for at, begin, end in zip(starts, edges, edges[1:]):
        data = stream[at + 3 : end].rstrip(b"\0")
        kind, rbsp = data[0] & 31, unescape(data[1:])
        header = None
        if kind in (NAL_SLICE, NAL_IDR):
            header = parse_slice_header(kind, data[0] >> 5 & 3, rbsp, spss, ppss)[0]
        if not leading and has_slices and (kind in BEFORE_SLICES or (header and starts_new_picture(header, last))):
            units.append(unit)
            unit, has_slices = AccessUnit(), False
        leading = False
        unit.bits += 8 * (end - begin)
        unit.nal_bytes += len(data)
        unit.slices += header is not None
        if header is not None:
            unit.header, last, has_slices = unit.header or header, header, True
        elif kind == NAL_SPS:
            sps = parse_sps(rbsp)
            spss[sps.seq_parameter_set_id] = sps
        elif kind == NAL_PPS:
            pps = parse_pps(rbsp, sps)
            ppss[pps.pic_parameter_set_id] = pps
        elif kind == NAL_FILLER:
            assert set(rbsp[:-1]) <= {255} and rbsp[-1] == 128, "7.3.2.7: filler data are bytes of 255"
            assert has_slices, "7.4.1.2.3: filler data precede no first slice"
            unit.filler += end - begin
        elif kind == NAL_SEI:
            for number, (payload_type, payload) in enumerate(parse_sei(rbsp)):
                if payload_type == SEI_BUFFERING_PERIOD:
                    assert number == 0, "7.4.1.2.3: a buffering period is the first message"
                    unit.period = parse_buffering_period(payload, sps)
                elif payload_type == SEI_PIC_TIMING:
                    unit.timing = parse_pic_timing(payload, sps)
    return sps, [*units, unit]


def check(stream):
    """Run the NAL HRD (Type II) of a stream; see Report."""
    report = Report()
    report.sps, report.units = sps, units = access_units(stream)
    vui, say = sps.vui, report.problems.append
    if not vui.nal_hrd_parameters_present_flag:
        return Report(["no NAL HRD parameters"])
    hrd = vui.nal_hrd
    rate = (hrd.bit_rate_value_minus1[0] + 1) << (6 + hrd.bit_rate_scale)
    size = (hrd.cpb_size_value_minus1[0] + 1) << (4 + hrd.cpb_size_scale)
    constant = hrd.cbr_flag[0]
    tick = Fraction(vui.num_units_in_tick, vui.time_scale)
    arrivals, sums = [], set()
    begin_of_period = removal = end = Fraction(0)
    delay = offset = 0
    for n, unit in enumerate(units):
        if unit.timing is None or (n == 0 and unit.period is None):
            say(f"picture {n}: no {'times' if unit.timing is None else 'buffering period'}")
            return report
        if unit.period is not None:
            delay = unit.period.nal[0].initial_cpb_removal_delay
            offset = unit.period.nal[0].initial_cpb_removal_delay_offset
            sums.add(delay + offset)
            if not 0 < delay * rate <= CLOCK * size:
                say(f"picture {n}: initial_cpb_removal_delay {delay} (D.2.1)")
        # C.1.2: nominal removal; C.1.1: earliest and initial arrival
        removal = Fraction(delay, CLOCK) if n == 0 else begin_of_period + tick * unit.timing.cpb_removal_delay
        if unit.period is not None:
            if n > 0:  # C.3, conditions C-15 and C-16
                waited = CLOCK * (removal - end)
                if delay > ceil(waited) or (constant and delay < floor(waited)):
                    say(f"picture {n}: initial_cpb_removal_delay {delay}, and the last bit came {float(waited):.2f} before")
            begin_of_period = removal
        earliest = removal - Fraction(delay + (0 if unit.period is not None else offset), CLOCK)
        begin = end if n and constant else max(end, earliest) if n else Fraction(0)
        end = begin + Fraction(unit.bits, rate)
        arrivals.append((begin, end))
        report.room.append(rate * (removal - begin))
        if end > removal:
            say(f"picture {n}: underflow, the last bit comes {float(end - removal):.6f} s late")
        report.removal.append(removal)
        report.output.append(removal + tick * unit.timing.dpb_output_delay)
    _fullness(report, arrivals, rate, size)
    if len(sums) > 1:
        say(f"sums of initial delays differ within the stream: {sorted(sums)}")
    _order(report)
    return report


def _fullness(report, arrivals, rate, size):
    """Bits at each removal, where the buffer is fullest: those that have arrived less those that were taken out."""
    taken, first = 0, 0
    for n, (unit, removal) in enumerate(zip(report.units, report.removal)):
        came = sum(u.bits for u in report.units[:first])
        while first < len(arrivals) and arrivals[first][1] <= removal:
            came += report.units[first].bits
            first += 1
        if first < len(arrivals) and arrivals[first][0] < removal:
            came += rate * (removal - arrivals[first][0])
        if came - taken > size:
            report.problems.append(f"picture {n}: overflow, {float(came - taken):.1f} bits in a buffer of {size}")
        report.fullness.append(came - taken)
        taken += unit.bits


def _order(report):
    """C.4.2, C.4.5.x: pictures are shown in the order of their counts, at the frame rate; removal times rise."""
    if report.removal != sorted(set(report.removal)):
        report.problems.append("removal times do not rise")
    if any(shown < removed for shown, removed in zip(report.output, report.removal)):
        report.problems.append("a picture is shown before it is decoded")
    vui = report.sps.vui
    frame = Fraction(2 * vui.num_units_in_tick, vui.time_scale)
    shown = sorted(report.output)
    if any(later - earlier != frame for earlier, later in zip(shown, shown[1:])):
        report.problems.append("pictures are not shown at the frame rate")
