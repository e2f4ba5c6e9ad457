"""The coded picture buffer in the stream: HRD parameters (E.1.2), SEI of times (D.1.1, D.1.2), filler data (7.3.2.7)."""

from ..standard.bits import NAL_FILLER, start_of_nal_unit
from ..standard.syntax import Hrd, Sps, write_sei
from ..standard.syntax_sei import (
    CLOCKS,
    FRAME,
    SEI_BUFFERING_PERIOD,
    SEI_PIC_TIMING,
    BufferingPeriod,
    InitialDelays,
    PicTiming,
    write_buffering_period,
    write_pic_timing,
)
from .decisions.coded_picture_buffer import Times
from .settings.buffer import Buffer
from .settings.config import Config

_MOST_SCALE = 15  # u(4)
_RATE_SHIFT, _SIZE_SHIFT = 6, 4  # E.2.2: BitRate = (bit_rate_value_minus1 + 1) * 2^(6 + bit_rate_scale), CpbSize with 4
_LONGEST_LENGTH = 32  # bits of a delay
_OUTPUT_LENGTH = 8  # bits of dpb_output_delay: frames are displayed at most 2 * MOST_B + 1 frames later
_SHORTEST_FILLER = 5  # bytes: start code, header, rbsp_trailing_bits


def hrd_parameters(config: Config, buffer: Buffer) -> Hrd:
    """E.1.2: one buffer, with numbers as short as they can be."""
    rate, rate_scale = _scaled(buffer.rate >> _RATE_SHIFT)
    size, size_scale = _scaled(buffer.size >> _SIZE_SHIFT)
    return Hrd(
        bit_rate_scale=rate_scale,
        cpb_size_scale=size_scale,
        bit_rate_value_minus1=[rate - 1],
        cpb_size_value_minus1=[size - 1],
        cbr_flag=[int(config.hrd.nal_hrd == "cbr")],
        initial_cpb_removal_delay_length_minus1=_length(CLOCKS * buffer.size // buffer.rate) - 1,
        cpb_removal_delay_length_minus1=_length(2 * config.types.keyint) - 1,
        dpb_output_delay_length_minus1=_OUTPUT_LENGTH - 1,
        time_offset_length=0,
    )


def _scaled(value: int) -> tuple[int, int]:
    """value / 2^scale and scale, without loss."""
    scale = min(_MOST_SCALE, (value & -value).bit_length() - 1)
    return value >> scale, scale


def _length(most: int) -> int:
    """Bits of a number up to `most`."""
    return min(_LONGEST_LENGTH, max(1, most.bit_length()))


def timing_sei(sps: Sps, times: Times | None) -> bytes:
    """7.3.2.3: RBSP with buffering period and picture timing of a frame; empty if the VUI announces neither.

    times: None without HRD parameters.
    """
    messages, timing = [], PicTiming()
    if times is not None:
        timing.cpb_removal_delay, timing.dpb_output_delay = times.cpb_removal_delay, times.dpb_output_delay
        if times.initial is not None:
            period = BufferingPeriod(sps.seq_parameter_set_id, [InitialDelays(*times.initial)])
            messages.append((SEI_BUFFERING_PERIOD, write_buffering_period(period, sps)))  # the first of all (7.4.1.2.3)
    if sps.vui.pic_struct_present_flag:
        timing.pic_struct = FRAME
    if times is not None or sps.vui.pic_struct_present_flag:
        messages.append((SEI_PIC_TIMING, write_pic_timing(timing, sps)))
    return write_sei(messages) if messages else b""


def filler_data(size: int) -> bytes:
    """So many bytes at the end of an access unit: 7.3.2.7, filler data; trailing_zero_8bits (B.1.1) where it is longer."""
    if size < _SHORTEST_FILLER:
        return bytes(size)
    start = start_of_nal_unit(NAL_FILLER, 0, long_start_code=False)
    return start.ljust(size - 1, b"\xff") + b"\x80"  # no zeros: emulation prevention adds nothing to many megabytes
