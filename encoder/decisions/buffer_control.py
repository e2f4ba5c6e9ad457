"""QPs of frames that must fit the coded picture buffer: planned before a frame is coded, raised if it comes out too large."""

from collections.abc import Sequence
from fractions import Fraction

from ...scheduler.frame_spec import FrameSpec
from ..encoded_frame import InBuffer
from ..settings.config import Config
from .adaptive_quantisation import shifted
from .coded_picture_buffer import CodedPictureBuffer, Times
from .fixed_point import LOG2_SHIFT, log2_fixed
from .size_model import SizeModel

MOST_TRIES = 6  # of a frame; the last one has the greatest QP
_KEPT = 8  # a plan leaves one part of so many of the buffer, and a try aims that far below what fits
_SLOPE = 6  # QPs that halve the bits; after two tries by these
_LEAST_SLOPE, _MOST_SLOPE = 3, 24


class BufferControl:
    """Frames in coding order: `first`, then `again` until a frame fits, then `take`. A function of sizes alone."""

    def __init__(self, config: Config) -> None:
        assert config.hrd.buffer is not None
        self.buffer = CodedPictureBuffer(config.hrd.buffer, config.video.fps)
        self._qpmax, self._model = config.rate.qpmax, SizeModel(256 * config.coding.n_mb)
        self._most = _most_higher(config)
        self._planned: FrameSpec  # as it came
        self._tried: FrameSpec
        self._limit = 0  # bits
        self._next = 0  # predicted bits of the next frame at the greatest QP, or of this one if none is decided
        self._tries: list[tuple[int, int]] = []  # how much higher the QP was, and the bits that came out
        self._higher = 0

    def change(self, config: Config) -> None:
        """Another buffer from the next frame on."""
        assert config.hrd.buffer is not None
        self.buffer.change(config.hrd.buffer)
        self._most = _most_higher(config)

    def times(self) -> Times:
        """Of the frame at work."""
        return self.buffer.times(self._planned)

    def first(self, spec: FrameSpec, ahead: Sequence[FrameSpec]) -> FrameSpec:
        """The next frame, as it is to be coded; ahead: frames that follow it, as far as they are decided."""
        self._planned, self._tries = spec, []
        (self._next,) = self._model.sizes(ahead[:1] or (spec,), self._qpmax)(self._most)
        self._limit = self._limit_by(1, 1)
        self._higher = self._least_higher((spec, *ahead))
        self._tried = self._raised()
        return self._tried

    def again(self, bits: int) -> FrameSpec | None:
        """The frame as it is to be coded again, since it has too many bits; None: it fits, or no QP is higher."""
        self._tries.append((self._higher, bits))
        self._limit = min(self._limit, self._limit_by(bits, max(1, self._tried.predicted)))
        most = min(self._most, self._qpmax - (min(self._planned.mb_qp) if self._planned.mb_qp else self._planned.qp))
        if bits <= self._limit or self._higher >= most:
            return None
        excess = log2_fixed(bits) - log2_fixed(max(1, self._limit - self._limit // _KEPT))
        step = max(1, -(-excess * self._slope() >> LOG2_SHIFT))
        self._higher = most if len(self._tries) >= MOST_TRIES - 1 else min(most, self._higher + step)
        self._tried = self._raised()
        return self._tried

    def take(self, bits: int) -> InBuffer:
        """The frame at work is accepted with so many bits."""
        buffer, filler = self.buffer, self.buffer.filler(bits)
        there, bits_sent = buffer.there(self._planned), bits + 8 * filler
        buffer.take(self._planned, bits_sent)
        self._model.learn(self._tried, bits)
        return InBuffer(there, there - bits_sent, buffer.buffer.size, filler, len(self._tries))

    def broken(self, in_buffer: InBuffer, bits: int) -> dict[str, str]:
        """What the frame at work breaks, accepted with so many bits, filler data not counted: by promise, in words."""
        sent, most, broken = bits + 8 * in_buffer.filler, self.buffer.compared(self._planned), {}
        if in_buffer.left < 0:
            there = f"the buffer (--vbv-bufsize) {in_buffer.there}"
            broken["buffer"] = f"{bits} bits at the greatest QP, and {there}: it underflows"
        if sent > most:
            filler = f", {8 * in_buffer.filler} of them filler data" if in_buffer.filler else ""
            broken["level"] = f"{sent} bits{filler}, and the level allows {most}: it breaks MinCR"
        return broken

    def _limit_by(self, bits: int, predicted: int) -> int:
        """Bits that leave room for the next frame, at least with the greatest QP, if its prediction fails as this frame's."""
        room = self.buffer.room(self._planned)
        next_one = self._next * max(bits, predicted) // predicted
        return max(room // 2, min(room, self.buffer.there(self._planned) + self.buffer.arriving - 2 * next_one))

    def _raised(self) -> FrameSpec:
        raised = shifted(self._planned, self._higher, 0, self._qpmax, "buffer")
        return raised._replace(predicted=self._model.bits(raised))

    def _slope(self) -> int:
        """QPs that halve the bits, by the last two tries."""
        if len(self._tries) < 2:
            return _SLOPE
        (higher0, bits0), (higher1, bits1) = self._tries[-2:]
        fallen = log2_fixed(bits0) - log2_fixed(bits1)
        slope = -(-(higher1 - higher0 << LOG2_SHIFT) // fallen) if fallen > 0 else _MOST_SLOPE
        return min(_MOST_SLOPE, max(_LEAST_SLOPE, slope))

    def _least_higher(self, specs: Sequence[FrameSpec]) -> int:
        """By how much QPs of all these frames must be higher for the buffer not to become too empty."""
        sizes, begin = self._model.sizes(specs, self._qpmax), self.buffer.there(specs[0])
        low, high = 0, self._most
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._lasts(sizes(middle), begin) else (middle + 1, high)
        return low

    def _lasts(self, sizes: Sequence[int], begin: int) -> bool:
        """Whether a part of the buffer stays full, and at the end half of it, or half of what arrives.

        sizes: of the next frames; begin: bits that are there for the first.
        """
        size, arriving, fullness = self.buffer.buffer.size, self.buffer.arriving, begin
        if sizes[0] > self._limit - self._limit // _KEPT:
            return False
        for bits in sizes:
            if fullness - bits < size // _KEPT:
                return False
            fullness = min(size, fullness - bits + arriving)
        return fullness >= min(begin + len(sizes) * arriving // 2, size // 2)


def _most_higher(config: Config) -> int:
    """By how much QPs may be above those without a buffer."""
    most = config.hrd.crf_max
    return int(Fraction(most) - Fraction(config.rate.crf or 0)) if most else config.rate.qpmax
