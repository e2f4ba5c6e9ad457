"""Measured frames a second of encodes, by device, traits and size; imports neither the planner nor Numba."""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from ...coding_settings import CodingSettings
from ...stages import BY_BITS

_SEARCH = ("fsbm", 16, 1)  # me, merange, ref of the measured encodes: those of preset medium
_SMALLER, _LARGER = 3, 4  # times below the least measured size, and above the largest, that a rate still holds


class EncodeTraits(NamedTuple):
    """What of an encode decides about its speed."""

    b_frames: bool
    cabac: bool
    by_bits: bool  # subme 6 and more: decisions by bits

    @classmethod
    def of(cls, coding: CodingSettings) -> "EncodeTraits | None":
        """Those of an encode; None if it does not search as the measured ones do."""
        if (coding.me, coding.merange, coding.ref) != _SEARCH:
            return None
        return cls(coding.has_b_frames, coding.cabac, coding.subme >= BY_BITS)

    @property
    def name(self) -> str:
        """In a tuning file."""
        return "_".join(name for name, value in zip(self._fields, self) if value) or "plain"


BY_NAME = {traits.name: traits for traits in (EncodeTraits(*values) for values in product((False, True), repeat=3))}
Points = Sequence[tuple[float, float]]  # (macroblocks, frames a second), macroblocks ascending


@dataclass
class Rates:
    """Points of the encodes of each device."""

    points: dict[tuple[str, EncodeTraits], Points] = field(default_factory=dict)

    @property
    def devices(self) -> list[str]:
        """Those with points, by name."""
        return sorted({device for device, _ in self.points})

    def add(self, device: str, traits: EncodeTraits, macroblocks: int, rate: float) -> None:
        """Add a measurement, in place of one of the same size."""
        others = [point for point in self.points.get((device, traits), ()) if point[0] != macroblocks]
        self.points[device, traits] = sorted([*others, (macroblocks, rate)])

    def rate(self, device: str, traits: EncodeTraits, macroblocks: int) -> float | None:
        """Frames a second; None without a measurement of the device with these traits, or if all were at other sizes by far.

        Macroblocks a second are taken to lie on a straight line between two sizes, and to stay the same beyond.
        """
        points = self.points.get((device, traits), ())
        if not points or not points[0][0] / _SMALLER <= macroblocks <= _LARGER * points[-1][0]:
            return None
        k = bisect([n for n, _ in points], macroblocks)
        (n0, fps0), (n1, fps1) = points[max(0, k - 1)], points[min(k, len(points) - 1)]
        share = (macroblocks - n0) / (n1 - n0) if n1 > n0 else 0.0
        return (n0 * fps0 + share * (n1 * fps1 - n0 * fps0)) / macroblocks
