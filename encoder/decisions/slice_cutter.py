"""Cuts frames into slices of at most so many bytes, by the bits of macroblocks (--slice-max-size; not part of the standard).

A frame is coded with the slices that the last one of its kind would have; a slice that is too large is cut into pieces of
equally many bits, and the frame is coded again. The other slices stay as they are, since slices are coded independently: a
few tries are enough. A slice of one macroblock is never too large to stay.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ...scheduler.frame_spec import FrameSpec
from ...scheduler.frames.frame import Frame
from ...scheduler.frames.sized_slices import bits_of_macroblocks
from ...standard.levels import Level, level_by_name, max_slices
from ..settings.config import Config

FILLED, AGAIN = 94, 90  # of 100: bytes of a slice that is expected, of a piece of one that was too large
_END_BITS = 8 + 16  # of a NAL unit besides header and macroblocks: its first byte, and about what the entropy coder ends with
_STEPS = tuple(round(256 * 2 ** (k / 6)) for k in range(6))  # a QP halves the bits in six steps, about: 1 / 256
Slices = tuple[tuple[int, int], ...]


class SliceCutter:
    """The slices of the frames of a stream, which come in coding order. What one GOP teaches is forgotten at its end."""

    def __init__(self, most: int, warn: Callable[[str], None], level: Level, most_slices: int | None) -> None:
        """most: bytes of the NAL unit of a slice; most_slices: of a frame, by the level; None: no limit.

        warn: called with a sentence about the first frame that exceeds one of both.
        """
        self._most, self._warn, self._level, self._most_slices = most, warn, level, most_slices
        self._warned: set[str] = set()
        self._last: dict[tuple[str, bool], tuple[int, int, np.ndarray]] = {}  # QP, bits of a header, bits of macroblocks

    @classmethod
    def of(cls, config: Config, warn: Callable[[str], None]) -> "SliceCutter | None":
        """None without --slice-max-size."""
        coding = config.coding
        if not coding.slice_max_size:
            return None
        level = level_by_name(str(config.stream.level_idc))
        return cls(coding.slice_max_size, warn, level, max_slices(level, coding.n_mb, config.video.fps))

    def first(self, spec: FrameSpec) -> FrameSpec:
        """A frame as it is coded first."""
        if spec.is_idr:
            self._last.clear()
        last = self._last.get((spec.frame_type, spec.is_reference))
        if last is not None:
            qp, header, bits = last
            octaves, step = divmod(qp - spec.qp, 6)
            scale = _STEPS[step] << max(0, octaves + 8)
            room = 8 * self._most * FILLED // 100 - header - _END_BITS
            spec = spec.changed(slices=_filled(bits * scale >> 16, room))
        return spec

    def again(self, frame: Frame) -> FrameSpec | None:
        """The last frame with smaller slices, since some are too large; None: it is done. frame: written."""
        spec, sizes, headers = frame.spec, frame.unit_sizes, frame.headers.bits
        assert frame.mb_ends is not None
        bits = bits_of_macroblocks(frame.mb_ends, spec.slices, headers)
        slices: list[tuple[int, int]] = []
        for (first, end), size in zip(spec.slices, sizes):
            pieces = -(-100 * size // (AGAIN * self._most)) if size > self._most else 1
            slices += _pieces(bits, first, end, pieces)
        if len(slices) > len(sizes):
            return spec.changed(slices=tuple(slices))
        self._last[spec.frame_type, spec.is_reference] = spec.qp, max(headers), bits
        if max(sizes) > self._most:
            self._warn_once(spec, "size", f"a slice of {max(sizes)} bytes, more than {self._most}: one macroblock")
        if self._most_slices is not None and len(sizes) > self._most_slices:
            text = f"{len(sizes)} slices, of which level {self._level.name} allows {self._most_slices}"
            self._warn_once(spec, "number", text)
        return None

    def _warn_once(self, spec: FrameSpec, limit: str, text: str) -> None:
        if limit not in self._warned:
            self._warned.add(limit)
            self._warn(f"frame {spec.display_index} has {text}")


def _filled(bits: np.ndarray, room: int) -> Slices:
    """Slices of as many macroblocks as have at most `room` bits, at least one. bits: int64[n_mb]."""
    sums = np.cumsum(bits)
    slices, first, before = [], 0, 0
    while first < len(sums):
        end = max(first + 1, int(np.searchsorted(sums, before + room, "right")))
        slices.append((first, end))
        first, before = end, int(sums[end - 1])
    return tuple(slices)


def _pieces(bits: np.ndarray, first: int, end: int, count: int) -> Sequence[tuple[int, int]]:
    """A slice in `count` pieces of about equally many bits, none of them empty: fewer, if it has fewer macroblocks."""
    count = min(count, end - first)
    if count == 1:
        return [(first, end)]
    sums = np.cumsum(bits[first:end])
    cuts = [first]
    for k in range(1, count):
        at = first + int(np.searchsorted(sums, int(sums[-1]) * k // count, "right"))
        cuts.append(min(max(at, cuts[-1] + 1), end - count + k))
    return list(zip(cuts, [*cuts[1:], end]))
