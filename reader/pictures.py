"""Decoded pictures by their place in coding order: decoded from the IDR picture before, the nearby ones kept."""

from collections import OrderedDict, deque
from typing import Any

import numpy as np

from ..decoder.decoder import Decoder
from ..decoder.picture import Frame, Picture, Pool
from ..decoder.picture_decoding import PictureDecoding
from ..standard.bits import NAL_IDR, NAL_SLICE, BitstreamError, NalUnit
from .access_units import AccessUnits, Units

_MOST_AHEAD = 32  # pictures kept because they are shown later: more than any level's buffer reorders


class _Last:
    """The last picture that a decoder has decoded: its observer, which does not wait for the order of output."""

    traced = False

    def __init__(self) -> None:
        self.ready: deque[Any] = deque()
        self.picture: tuple[Pool, Picture] | None = None

    def unit(self, unit: NalUnit) -> None:
        """See decoder.Observer."""

    def decoded(self, work: PictureDecoding, pool: Pool) -> None:
        """See decoder.Observer."""
        self.picture = pool, work.picture

    def shown(self, picture: Picture) -> None:
        """See decoder.Observer."""


class Pictures:
    """Pictures of access units. rank: int64[n], found in the order of times, of each access unit; -1: never shown.

    A decoder goes on where it is if the wanted picture comes before the next IDR picture, else it begins at the IDR picture
    before. Pictures that are no references are left out unless they are wanted or within `nearby` of it in order of times.
    Kept are those that come later than the last wanted one and are decoded before it, and `nearby` others, the last used.
    """

    def __init__(self, units: AccessUnits, rank: np.ndarray, nearby: int) -> None:
        self._units, self._rank, self._nearby = units, rank, nearby
        self._last = _Last()
        self._decoder: Any = None
        self._next = 0  # access unit that the decoder needs next
        self._entry = -1  # sample entry whose parameter sets the decoder has
        self._kept: OrderedDict[int, Frame] = OrderedDict()  # by access unit, the last used last
        self._ahead: set[int] = set()  # of them those that the decoder has decoded since it began, and that come later
        self.decoded = 0  # pictures so far, for tests and benchmarks

    def picture(self, n: int) -> Frame:
        """The picture of access unit n, which belongs to the store. BitstreamError if it cannot be decoded."""
        if n not in self._kept:
            self._decode_up_to(n)
        self._kept.move_to_end(n)
        self._forget(int(self._rank[n]))
        return self._kept[n]

    def _decode_up_to(self, n: int) -> None:
        start = self._units.start(n)
        if self._decoder is None or not start <= self._next <= n:
            self._begin(start)
        oldest = int(self._rank[n]) - self._nearby
        try:
            while self._next <= n:
                wanted = self._rank[self._next] >= oldest
                if (frame := self._decode_next(wanted)) is not None and wanted:
                    self._kept[self._next - 1] = frame
                    self._ahead.add(self._next - 1)
                    self._forget(int(self._rank[n]))
        except BaseException:
            self._decoder = None
            raise
        if n not in self._kept:
            self._decoder = None
            raise BitstreamError(f"access unit {n} has no picture")

    def _begin(self, start: int) -> None:
        """Go on at an IDR picture, or at the first picture, for which no decoder may have seen another."""
        if self._decoder is None or start == 0:
            self._decoder = Decoder(observer=self._last)
        self._next, self._entry = start, -1
        self._ahead.clear()

    def _decode_next(self, wanted: bool) -> Frame | None:
        """Decode the next access unit, or leave it out; its picture if it is wanted."""
        n = self._next
        units = self._units.units(n)
        self._next = n + 1
        if not wanted and _is_disposable(units):
            return None
        if self._entry != (entry := self._units.entry(n)):
            units, self._entry = self._units.sets_before(n) + units, entry
        self._last.picture = None
        for _ in self._decoder.decode_access_unit(units):
            pass
        self.decoded += 1
        if self._last.picture is None or not wanted:
            return None
        pool, picture = self._last.picture
        return pool.frame(picture)

    def _forget(self, rank: int) -> None:
        """Drop the pictures used last, but for those that the decoder has decoded ahead of `rank`."""
        ahead = [n for n in self._ahead if self._rank[n] >= rank]
        if len(ahead) > _MOST_AHEAD:  # by times that are no order of output
            ahead.remove(dropped := max(ahead, key=lambda n: int(self._rank[n])))
            self._kept.pop(dropped, None)
        self._ahead = set(ahead)
        others = [n for n in self._kept if n not in self._ahead]
        for n in others[: max(0, len(others) - self._nearby)]:
            del self._kept[n]

    def clear(self) -> None:
        """Free all memory."""
        self._kept.clear()
        self._ahead.clear()
        self._decoder, self._last.picture = None, None


def _is_disposable(units: Units) -> bool:
    """Whether an access unit is a picture that none refers to, and nothing that later ones need."""
    return all(unit[0] & 31 == NAL_SLICE and not unit[0] >> 5 & 3 for _, unit in units if 1 <= unit[0] & 31 <= NAL_IDR) and (
        not any(unit[0] & 31 in (7, 8) for _, unit in units)
    )
