"""The coded picture buffer of a decoder over time, from HRD parameters and SEI of a stream (Annex C)."""

from dataclasses import dataclass
from fractions import Fraction

from ..standard.syntax_sei import CLOCKS
from ..standard.syntax_sps import Hrd, Sps
from .access_unit import AccessUnit


@dataclass
class Fullness:
    """Bits in the buffer before a picture is taken out, bits left after that, and the size of the buffer."""

    bits: int
    left: int
    size: int


class CodedPictureBuffer:
    """C.1.1, for the first CPB of the HRD parameters: bits arrive at its rate, with a variable rate only while there is room.

    Pictures are taken out at the times of the SEI, or a frame apart where there is none. No bit of a picture arrives
    earlier than the sum of both initial delays before its removal; for the first of a buffering period it is the first of
    them. With a constant rate more than the size is an overflow, less than 0 left is an underflow.
    """

    def __init__(self) -> None:
        self._level: Fraction | None = None  # bits left after the last removal
        self._time = Fraction(0)  # of the last removal, seconds
        self._period = Fraction(0)  # of the removal of the picture that began the buffering period
        self._most: Fraction | None = None  # bits that can be there at a removal; None: no buffering period so far

    def add(self, unit: AccessUnit) -> Fullness | None:
        """The next access unit in coding order; None where the stream has no HRD parameters."""
        sps, hrd = unit.sps, hrd_of(unit.sps)
        if hrd is None:
            self._level = self._most = None
            return None
        rate = (hrd.bit_rate_value_minus1[0] + 1) << (6 + hrd.bit_rate_scale)
        size = (hrd.cpb_size_value_minus1[0] + 1) << (4 + hrd.cpb_size_scale)
        delays = (unit.period.nal or unit.period.vcl) if unit.period is not None else []
        first = Fraction(delays[0].initial_cpb_removal_delay * rate, CLOCKS) if delays else None
        if self._level is None:
            bits = first if first is not None else Fraction(size)
            self._time = Fraction(0)
        else:
            removal = self._removal(unit, sps)
            bits = self._level + rate * (removal - self._time)
            self._time = removal
        if not hrd.cbr_flag[0]:
            bits = min(bits, Fraction(size), *(most for most in (self._most, first) if most is not None))
        if first is not None:
            self._period = self._time
            self._most = first + Fraction(delays[0].initial_cpb_removal_delay_offset * rate, CLOCKS)
        self._level = bits - 8 * unit.size
        return Fullness(int(bits // 1), int(self._level // 1), size)

    def _removal(self, unit: AccessUnit, sps: Sps) -> Fraction:
        """C.1.2: nominal removal time, in seconds."""
        tick = Fraction(sps.vui.num_units_in_tick, sps.vui.time_scale) if sps.vui.time_scale else Fraction(1, 50)
        if unit.timing is not None and unit.timing.cpb_removal_delay is not None:
            return self._period + tick * unit.timing.cpb_removal_delay
        return self._time + 2 * tick


def hrd_of(sps: Sps) -> Hrd | None:
    """E.1.2: the HRD parameters of the byte stream, else those of the VCL NAL units, else None."""
    vui = sps.vui
    if vui.nal_hrd_parameters_present_flag:
        return vui.nal_hrd
    return vui.vcl_hrd if vui.vcl_hrd_parameters_present_flag else None
