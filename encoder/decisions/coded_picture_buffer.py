"""The coded picture buffer of a decoder (Annex C): how full it is, what fits, which times and filler data follow."""

from fractions import Fraction
from typing import NamedTuple

from ...scheduler.frame_spec import FrameSpec
from ...standard.syntax_sei import CLOCKS
from ..settings.buffer import Buffer

_TICKS = 2  # clock ticks of a frame: a tick is a field (E.2.1)


class Times(NamedTuple):
    """What the SEI of a frame says. Delays in clock ticks (D.2.2); initial: initial_cpb_removal_delay and its offset in
    clocks of 1 / 90000 s (D.2.1), of IDR frames; None: no buffering period begins.
    """

    cpb_removal_delay: int
    dpb_output_delay: int
    initial: tuple[int, int] | None


class CodedPictureBuffer:
    """Frames in coding order, taken out at constant intervals; each IDR frame begins a buffering period.

    Bits arrive at the rate of the buffer: with a constant rate always, else only while there is room (C.1.1). All numbers are
    integers: the fullness is in 1 / (90000 * numerator of the frame rate) of a bit.
    """

    def __init__(self, buffer: Buffer, fps: Fraction) -> None:
        self._fps, self._bit = fps, CLOCKS * fps.numerator
        self._set(buffer)
        self._fullness = CLOCKS * buffer.start // buffer.rate * self._clock  # when the next frame is taken out
        self._period = 0  # coding index of the frame that began the buffering period

    def _set(self, buffer: Buffer) -> None:
        self.buffer, self._clock = buffer, buffer.rate * self._fps.numerator
        self._arriving = buffer.rate * self._fps.denominator * CLOCKS  # in the time of a frame
        self._longest = CLOCKS * buffer.size // buffer.rate  # clocks: the sum of both initial delays
        self._most = buffer.size * self._bit if buffer.constant else self._longest * self._clock

    def change(self, buffer: Buffer) -> None:
        """Another rate and size from the next frame on: what is in the buffer stays there, as far as it has room."""
        self._set(buffer)
        self._fullness = min(self._most, self._fullness)

    def times(self, spec: FrameSpec) -> Times:
        """Of the next frame, which may be asked for again. It begins a buffering period if it is an IDR frame."""
        initial = None
        if spec.is_idr:
            delay = max(1, self._filled(spec) // self._clock)
            initial = delay, self._longest - delay
        removal = _TICKS * (spec.coding_index - self._period)
        return Times(removal, _TICKS * (spec.pts - spec.dts), initial)

    def there(self, spec: FrameSpec) -> int:
        """Bits that can be in the buffer when the next frame is taken out, itself included; negative after an underflow."""
        return self._filled(spec) // self._bit

    def _filled(self, spec: FrameSpec) -> int:
        """The same in the units of fullness. No bit of an IDR frame arrives before its initial delay, in whole clocks, unless
        bits come at a constant rate.
        """
        whole = spec.is_idr and not self.buffer.constant
        return self._fullness // self._clock * self._clock if whole else self._fullness

    @property
    def arriving(self) -> int:
        """Bits that arrive in the time of a frame."""
        return self._arriving // self._bit

    def room(self, spec: FrameSpec) -> int:
        """The most bits of the next frame: those that are there in time, and what MinCR allows (A.3.1)."""
        return min(self.there(spec), self.compared(spec))

    def compared(self, spec: FrameSpec) -> int:
        """The most bits of the next frame by MinCR (A.3.1)."""
        return 8 * self.buffer.compared[spec.coding_index > 0]

    def filler(self, bits: int) -> int:
        """Bytes of filler data for a frame of so many bits: what would overflow the buffer at a constant rate."""
        if not self.buffer.constant:
            return 0
        return max(0, -(-(self._fullness + self._arriving - self._most - bits * self._bit) // (8 * self._bit)))

    def take(self, spec: FrameSpec, bits: int) -> None:
        """The next frame is coded, with so many bits, filler data included."""
        if spec.is_idr:
            self._period = spec.coding_index
        self._fullness = min(self._most, self._filled(spec) - bits * self._bit + self._arriving)
