"""QPs of a second pass: one rate factor for the whole stream by the sizes of the first pass, corrected by real sizes.

The stream has sections of closed GOPs, each of them with its share of the bits and corrections of its own.
"""

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ...scheduler.frame_spec import FrameSpec
from ..settings.config import Config
from ..settings.frame_requests import IDR
from ..settings.pass_file import FirstPass
from .adaptive_quantisation import QP_ONE, mean_qp, shifted
from .fixed_point import LOG2_SHIFT, QP_SHIFT, fixed, log2_fixed, scaled
from .size_model import SizeModel

_STEP = 6  # QPs that double the quantiser step
# 1 / 65536: bits of headers, vectors and levels fall with that power of the quantiser step
_SLOPES = tuple(fixed(slope, LOG2_SHIFT) for slope in (0.25, 0.5, 1.1))
_MOST = 51  # QPs
_LEAST_FACTOR, _MOST_FACTOR = -2 * _MOST * QP_ONE, 2 * _MOST * QP_ONE
_ONE = 1 << LOG2_SHIFT
_MEMORY = 32  # frames over which real and predicted sizes of a class are compared
_TRUST = 4  # frames: so much the predictions count in that at first
_REPAID = 12  # frames in which a deviation is made good at the soonest: faster corrections swing
_MOST_STEP = QP_ONE // 4  # of the correction from a frame to the next one
_FAR = 5  # times: within it, 14 QPs, a second pass has its rate; 13 to 19 times off it has missed it by 79 to 506 %
_LEAST_SECTION = 200  # frames: sections of 100 miss their share by up to 0.8 %, where the content changes


class FirstPassSizes:
    """Predicts bits of the frames of a stream, by coding index, from their bits and QPs in the first pass."""

    def __init__(self, config: Config) -> None:
        first = config.rate.first_pass
        assert first is not None
        self._first, self._low, self._high = first, config.rate.qpmin * QP_ONE, config.rate.qpmax * QP_ONE
        columns = first.headers, first.vectors, first.levels
        self._logs = [np.array([log2_fixed(max(1, bits)) for bits in column.tolist()], np.int64) for column in columns]

    def at(self, frames: slice, qps: np.ndarray) -> np.ndarray:
        """int64[n]: bits of n frames, or of one, with n mean QPs in 1 / 256."""
        change = qps - self._first.qp[frames]
        sizes = np.zeros(change.shape, np.int64)
        for logs, slope in zip(self._logs, _SLOPES):
            sizes += SizeModel.bits_of(logs[frames] - change * slope // (_STEP * QP_ONE))
        return sizes

    def with_factor(self, frames: slice, factor: int | np.ndarray) -> np.ndarray:
        """int64[n]: bits of n frames with the QPs of a rate factor in 1 / 256, or of one frame with n factors."""
        first = self._first
        qps = np.where(first.asked[frames] > 0, first.qp[frames], np.clip(first.over[frames] + factor, self._low, self._high))
        return self.at(frames, qps)


def rate_factor(config: Config) -> int:
    """The rate factor, in 1 / 256, with which the predicted bits of all frames are those of the bit rate, or just fewer."""
    sizes, target = FirstPassSizes(config), stream_bits(config)
    low, high = _LEAST_FACTOR, _MOST_FACTOR
    while low < high:
        middle = (low + high) // 2
        fits = int(sizes.with_factor(slice(None), middle).sum()) <= target
        low, high = (low, middle) if fits else (middle + 1, high)
    return low


def stream_bits(config: Config) -> int:
    """Bits of all frames at the bit rate."""
    assert config.rate.first_pass is not None
    return int(Fraction(1000 * config.rate.bitrate) / config.video.fps * len(config.rate.first_pass.types))


def far_off(config: Config) -> str:
    """A warning where the first pass has many times more or fewer bits than the bit rate: it predicts badly. Empty if not."""
    first = config.rate.first_pass
    assert first is not None
    bits, target = int(first.headers.sum() + first.vectors.sum() + first.levels.sum()), stream_bits(config)
    if target < _FAR * bits and bits < _FAR * target:
        return ""
    many, word = (bits // max(1, target), "more") if bits > target else (target // max(1, bits), "fewer")
    return (
        f"the first pass has {many} times {word} bits than --bitrate {config.rate.bitrate} gives, so that the rate may "
        "be missed: repeat it with that --bitrate, or run --pass 3 before --pass 2"
    )


def sections_of(first: FirstPass) -> tuple[range, ...]:
    """The coding indices of each section: one or several GOPs, at least _LEAST_SECTION frames if the stream has as many."""
    starts, count = [0], len(first.types)
    for index, frame_type in enumerate(first.types):  # of an IDR frame the coding index is the display index
        if frame_type == IDR and _LEAST_SECTION <= index - starts[-1] and _LEAST_SECTION <= count - index:
            starts.append(index)
    return tuple([range(*pair) for pair in pairwise([*starts, count])])


class WholeStream:
    """What all sections of a second pass share."""

    def __init__(self, config: Config) -> None:
        assert config.rate.first_pass is not None
        self.qpmin, self.qpmax, self.has_buffer = config.rate.qpmin, config.rate.qpmax, config.hrd.buffer is not None
        self.sizes, self.factor = FirstPassSizes(config), rate_factor(config)
        self.frame_classes, self.over = config.rate.first_pass.frame_classes, config.rate.first_pass.over + self.factor
        self._planned, self._bits = self.sizes.with_factor(slice(None), self.factor), stream_bits(config)

    def share(self, frames: range) -> int:
        """Bits of a section: as many of those of the stream as it is predicted to have with the rate factor."""
        return self._bits * int(self._planned[frames.start : frames.stop].sum()) // max(1, int(self._planned.sum()))


class SecondPass:
    """Corrects QPs of the frames of a section in coding order, as BitrateControl does, so that it has its share of the bits:
    by the sizes of its frames up to n - RATE_LAG, and predictions for all others. All numbers are integers.
    """

    def __init__(self, whole: WholeStream, frames: range) -> None:
        """frames: coding indices of the section."""
        section = slice(frames.start, frames.stop)
        self._qpmin, self._qpmax, self._has_buffer = whole.qpmin, whole.qpmax, whole.has_buffer
        self._sizes, self._left, self._end = whole.sizes, whole.share(frames), frames.stop
        self._frame_classes, self._over = whole.frame_classes, whole.over
        # bits of the frames of each class that have no QP yet, with QPs higher by -_MOST .. _MOST
        self._factors = whole.factor + QP_ONE * np.arange(-_MOST, _MOST + 1)
        self._ahead = {frame_class: np.zeros(2 * _MOST + 1, np.int64) for frame_class in self._frame_classes[section]}
        members = {
            frame_class: np.array([other == frame_class for other in self._frame_classes[section]])
            for frame_class in self._ahead
        }
        for row, factor in enumerate(self._factors.tolist()):
            bits = self._sizes.with_factor(section, factor)
            for frame_class, is_member in members.items():
                self._ahead[frame_class][row] = bits[is_member].sum()
        self._real = dict.fromkeys(self._ahead, 0)  # recent bits by class, and the predicted ones
        self._predicted = dict.fromkeys(self._ahead, 0)
        # of predictions, beside these
        self._trust = {
            frame_class: _TRUST * (int(self._ahead[frame_class][_MOST]) // int(members[frame_class].sum()) + 1)
            for frame_class in self._ahead
        }
        self._waiting: deque[tuple[tuple[str, bool], int]] = deque()  # class and predicted bits of frames of unknown size
        self._correction = 0  # in 1 / 256 QP
        self._rest = 0  # bits that rounding to whole QPs has left
        self._count = frames.start  # the coding index of the next frame

    def assign_qp(
        self, spec: FrameSpec, sizes: Sequence[int], ahead: Sequence[FrameSpec]
    ) -> tuple[FrameSpec, tuple[FrameSpec, ...]]:
        """See BitrateControl."""
        for bits in sizes:
            self._learn(bits)
        best = self._best_correction()
        limits = self._correction - _MOST_STEP, self._correction + _MOST_STEP
        self._correction = min(limits[1], max(limits[0], best))
        frame, frame_class = slice(self._count, self._count + 1), self._frame_classes[self._count]
        shift = self._whole(spec, frame)
        with_qp = self._shifted(spec, shift)
        bits = int(self._sizes.at(frame, np.array([mean_qp(with_qp)]))[0])
        self._waiting.append((frame_class, bits))
        self._ahead[frame_class] -= self._sizes.with_factor(frame, self._factors)
        self._count += 1
        with_qp = with_qp._replace(predicted=scaled(bits, self._ratio(frame_class), LOG2_SHIFT))
        return with_qp, tuple([self._shifted(frame, shift) for frame in ahead]) if self._has_buffer else ()

    def _learn(self, bits: int) -> None:
        """The size of the next frame has become known."""
        frame_class, predicted = self._waiting.popleft()
        self._left -= bits
        self._real[frame_class] += bits - self._real[frame_class] // _MEMORY
        self._predicted[frame_class] += predicted - self._predicted[frame_class] // _MEMORY

    def _ratio(self, frame_class: tuple[str, bool]) -> int:
        """Real over predicted bits of frames of a class, in 1 / 65536; without many of them that of all frames counts too."""
        real, predicted = sum(self._real.values()), sum(self._predicted.values())
        most, trust = max(self._trust.values()), self._trust[frame_class]
        usual = ((real + most) << LOG2_SHIFT) // (predicted + most)
        return ((self._real[frame_class] << LOG2_SHIFT) + trust * usual) // (self._predicted[frame_class] + trust)

    def _best_correction(self) -> int:
        """In 1 / 256 QP: with it the frames that have no QP yet have the bits that are left."""
        ratios = {frame_class: self._ratio(frame_class) for frame_class in self._ahead}
        left = self._left - sum(bits * ratios[frame_class] for frame_class, bits in self._waiting) // _ONE
        totals = sum(bits * ratios[frame_class] >> LOG2_SHIFT for frame_class, bits in self._ahead.items())
        assert isinstance(totals, np.ndarray)
        expected, frames = int(totals[_MOST]), self._end - self._count
        left = expected + (left - expected) * frames // max(frames, _REPAID)
        fits = int(np.searchsorted(-totals, -left))  # totals fall: the first that is not above what is left
        if fits in (0, len(totals)):
            return (min(fits, len(totals) - 1) - _MOST) * QP_ONE
        more, fewer = int(totals[fits - 1]), int(totals[fits])
        return (fits - 1 - _MOST) * QP_ONE + (more - left) * QP_ONE // max(1, more - fewer)

    def _whole(self, spec: FrameSpec, frame: slice) -> int:
        """The whole QPs next to the correction with which predicted bits keep near to those of the corrections."""
        corrected = int(self._over[self._count]) + self._correction
        below = corrected - mean_qp(spec) >> QP_SHIFT
        qps = corrected, *(mean_qp(spec) + QP_ONE * shift for shift in (below, below + 1))
        wanted, more, fewer = self._sizes.at(frame, np.array(qps)).tolist()
        wanted += self._rest
        is_nearer = 2 * wanted > more + fewer
        self._rest = wanted - (more if is_nearer else fewer)
        return below if is_nearer else below + 1

    def _shifted(self, spec: FrameSpec, shift: int) -> FrameSpec:
        return spec if spec.is_qp_requested else shifted(spec, shift, self._qpmin, self._qpmax, "bitrate")
