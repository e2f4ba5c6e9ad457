"""The coded picture buffer of a decoder over time, from HRD parameters and SEI of a stream (Annex C)."""

from dataclasses import dataclass
from fractions import Fraction

from ..standard.syntax_sei import CLOCKS
from ..standard.syntax_sps import Hrd, Sps
from .access_units import AccessUnit


@dataclass
class Fullness:
    """Bits in the buffer before a picture is taken out, bits left after that, and the size of the buffer."""

    bits: int
    left: int
    size: int


class CodedPictureBuffer:
    """C.1.1 with a sender that is never late: bits arrive at the rate of the first CPB whenever the buffer has room.

    The times of removal are those of the SEI; pictures without such messages are taken out a frame apart. With
    `cbr_flag` the buffer is the same, and an overflow is a fullness above the size.
    """

    def __init__(self) -> None:
        self._level: Fraction | None = None  # bits left after the last removal
        self._time = Fraction(0)  # of the last removal, seconds
        self._period = Fraction(0)  # of the removal of the picture that began the buffering period

    def add(self, unit: AccessUnit) -> Fullness | None:
        """The next access unit in coding order; None where the stream has no HRD parameters."""
        sps = unit.sps
        hrd = hrd_of(sps) if sps is not None else None
        if sps is None or hrd is None:
            self._level = None
            return None
        rate = (hrd.bit_rate_value_minus1[0] + 1) << (6 + hrd.bit_rate_scale)
        size = (hrd.cpb_size_value_minus1[0] + 1) << (4 + hrd.cpb_size_scale)
        tick = Fraction(sps.vui.num_units_in_tick, sps.vui.time_scale) if sps.vui.time_scale else Fraction(1, 50)
        delays = (unit.period.nal or unit.period.vcl) if unit.period is not None else []
        if self._level is None:
            bits = Fraction(delays[0].initial_cpb_removal_delay * rate, CLOCKS) if delays else Fraction(size)
            self._time = self._period = Fraction(0)
        else:
            bits = self._level + rate * (self._removal(unit, tick) - self._time)
            self._time = self._removal(unit, tick)
        if not hrd.cbr_flag[0]:
            bits = min(bits, Fraction(size))
        if unit.period is not None:
            self._period = self._time
        self._level = bits - 8 * unit.size
        return Fullness(int(bits), int(self._level), size)

    def _removal(self, unit: AccessUnit, tick: Fraction) -> Fraction:
        """C.1.2: nominal removal time, in seconds."""
        if unit.timing is not None and unit.timing.cpb_removal_delay is not None:
            return self._period + tick * unit.timing.cpb_removal_delay
        return self._time + 2 * tick


def hrd_of(sps: Sps) -> Hrd | None:
    """E.1.2: the HRD parameters of the byte stream, else those of the VCL NAL units, else None."""
    vui = sps.vui
    if vui.nal_hrd_parameters_present_flag:
        return vui.nal_hrd
    return vui.vcl_hrd if vui.vcl_hrd_parameters_present_flag else None
