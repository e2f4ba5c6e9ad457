"""Syntax of SEI messages: buffering period and picture timing (D.1.1, D.1.2) of the reference decoder; recovery point."""

from dataclasses import dataclass, field

from .bits import BitReader, BitWriter, SyntaxElements
from .syntax_sps import Hrd, Sps

SEI_BUFFERING_PERIOD, SEI_PIC_TIMING, SEI_RECOVERY_POINT = 0, 1, 6  # payloadType
_MOST_RECOVERY = (1 << 16) - 1  # recovery_frame_cnt: MaxFrameNum - 1
CLOCKS = 90000  # of the initial delays: a second
FRAME, MOST_PIC_STRUCT = 0, 8  # Table D-1: pic_struct
NUM_CLOCK_TS = (1, 1, 1, 2, 2, 3, 3, 2, 3)  # Table D-1: by pic_struct


@dataclass
class InitialDelays:
    """Of one buffer in buffering_period(), in clocks of 1 / 90000 s."""

    initial_cpb_removal_delay: int = 0
    initial_cpb_removal_delay_offset: int = 0


@dataclass
class BufferingPeriod:
    """D.1.1: buffering_period(); nal, vcl: for each CPB of the HRD parameters, empty without these."""

    seq_parameter_set_id: int = 0
    nal: list[InitialDelays] = field(default_factory=list)
    vcl: list[InitialDelays] = field(default_factory=list)


@dataclass
class ClockTimestamp:
    """D.1.2: one clock time of pic_timing()."""

    clock_timestamp_flag: int = 0
    ct_type: int = 0
    nuit_field_based_flag: int = 0
    counting_type: int = 0
    full_timestamp_flag: int = 0
    discontinuity_flag: int = 0
    cnt_dropped_flag: int = 0
    n_frames: int = 0
    seconds_flag: int = 0
    minutes_flag: int = 0
    hours_flag: int = 0
    seconds_value: int = 0
    minutes_value: int = 0
    hours_value: int = 0
    time_offset: int = 0  # two's complement of time_offset_length bits, as its bits


@dataclass
class PicTiming:
    """D.1.2: pic_timing(); delays in clock ticks (half a frame); None: the VUI has no HRD parameters, or no pic_struct."""

    cpb_removal_delay: int | None = None
    dpb_output_delay: int | None = None
    pic_struct: int | None = None
    clocks: list[ClockTimestamp] = field(default_factory=list)


@dataclass
class RecoveryPoint:
    """D.1.8: recovery_point()."""

    recovery_frame_cnt: int = 0
    exact_match_flag: int = 0
    broken_link_flag: int = 0
    changing_slice_group_idc: int = 0


def _hrds(sps: Sps) -> list[tuple[str, Hrd]]:
    """The HRD parameters of the VUI, with the name of their delays in BufferingPeriod."""
    vui = sps.vui
    hrds = [("nal", vui.nal_hrd)] if vui.nal_hrd_parameters_present_flag else []
    return hrds + ([("vcl", vui.vcl_hrd)] if vui.vcl_hrd_parameters_present_flag else [])


def _buffering_period(rw: SyntaxElements, message: BufferingPeriod, sps: Sps) -> None:
    rw.ue("seq_parameter_set_id", message, 0, 31)
    for name, hrd in _hrds(sps):
        length, delays = hrd.initial_cpb_removal_delay_length_minus1 + 1, getattr(message, name)
        if not rw.writing:
            delays += [InitialDelays() for _ in range(hrd.cpb_cnt_minus1 + 1)]
        for one in delays:
            rw.u(length, "initial_cpb_removal_delay", one, int(rw.writing))  # 0 is illegal, but decoding does not need it
            rw.u(length, "initial_cpb_removal_delay_offset", one)


def _pic_timing(rw: SyntaxElements, message: PicTiming, sps: Sps) -> None:
    offset_bits = 24  # E.2.2: inferred
    for _, hrd in _hrds(sps)[:1]:  # both have the same lengths (E.2.2)
        rw.u(hrd.cpb_removal_delay_length_minus1 + 1, "cpb_removal_delay", message)
        rw.u(hrd.dpb_output_delay_length_minus1 + 1, "dpb_output_delay", message)
        offset_bits = hrd.time_offset_length
    if sps.vui.pic_struct_present_flag:
        count = NUM_CLOCK_TS[rw.u(4, "pic_struct", message, 0, MOST_PIC_STRUCT)]
        message.clocks += [ClockTimestamp() for _ in range(count - len(message.clocks))]
        for clock in message.clocks:
            if rw.flag("clock_timestamp_flag", clock):
                _clock_timestamp(rw, clock, offset_bits)


def _clock_timestamp(rw: SyntaxElements, clock: ClockTimestamp, offset_bits: int) -> None:
    rw.u(2, "ct_type", clock)
    rw.flag("nuit_field_based_flag", clock)
    rw.u(5, "counting_type", clock)
    full = rw.flag("full_timestamp_flag", clock)
    rw.flag("discontinuity_flag", clock)
    rw.flag("cnt_dropped_flag", clock)
    rw.u(8, "n_frames", clock)
    for name, bits, most in (("seconds", 6, 59), ("minutes", 6, 59), ("hours", 5, 23)):
        if not full and not rw.flag(f"{name}_flag", clock):
            break
        rw.u(bits, f"{name}_value", clock, 0, most)
    if offset_bits:
        rw.u(offset_bits, "time_offset", clock)


def _recovery_point(rw: SyntaxElements, message: RecoveryPoint) -> None:
    rw.ue("recovery_frame_cnt", message, 0, _MOST_RECOVERY)
    rw.flag("exact_match_flag", message)
    rw.flag("broken_link_flag", message)
    rw.u(2, "changing_slice_group_idc", message, 0, 2)


def _payload(writer: BitWriter) -> bytes:
    """7.3.2.3.1: a payload ends with a one and zeros where it does not fill its last byte."""
    if writer.position % 8:
        writer.put_u(1, 1)
    return writer.to_bytes()


def write_buffering_period(message: BufferingPeriod, sps: Sps) -> bytes:
    """D.1.1: the payload of a message; ValueError if a delay does not fit the lengths of the HRD parameters."""
    writer = BitWriter()
    _buffering_period(writer, message, sps)
    return _payload(writer)


def write_pic_timing(message: PicTiming, sps: Sps) -> bytes:
    """D.1.2: the payload of a message; ValueError if a delay does not fit the lengths of the HRD parameters."""
    writer = BitWriter()
    _pic_timing(writer, message, sps)
    return _payload(writer)


def parse_buffering_period(payload: bytes, sps: Sps) -> BufferingPeriod:
    """D.1.1; sps: the parameter set that the message names (`named_sps`). BitstreamError."""
    message = BufferingPeriod()
    _buffering_period(BitReader(payload), message, sps)
    return message


def named_sps(payload: bytes) -> int:
    """D.1.1: seq_parameter_set_id of a buffering period, which says how the rest is read."""
    return BitReader(payload).get_ue()


def parse_pic_timing(payload: bytes, sps: Sps) -> PicTiming:
    """D.1.2; sps: the active parameter set. BitstreamError."""
    message = PicTiming()
    _pic_timing(BitReader(payload), message, sps)
    return message


def write_recovery_point(message: RecoveryPoint) -> bytes:
    """D.1.8: the payload of a message."""
    writer = BitWriter()
    _recovery_point(writer, message)
    return _payload(writer)


def parse_recovery_point(payload: bytes) -> RecoveryPoint:
    """D.1.8. BitstreamError."""
    message = RecoveryPoint()
    _recovery_point(BitReader(payload), message)
    return message
