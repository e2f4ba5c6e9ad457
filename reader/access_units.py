"""Access units by their place in coding order: their NAL units, and where decoding can begin, of MP4 and of Annex B."""

from bisect import bisect_right
from typing import Protocol

import numpy as np

from ..decoder.headers import StreamMap
from ..mp4.avc import units_in
from ..mp4.reader import Entry
from ..standard.bits import NAL_IDR, BitstreamError, split_byte_stream
from .source import Source

Units = list[tuple[int, bytes]]  # (byte of the video, NAL unit)


class AccessUnits(Protocol):
    """The coded pictures of a video."""

    def units(self, n: int) -> Units:
        """The NAL units of access unit n. BitstreamError if they are damaged."""

    def start(self, n: int) -> int:
        """The last IDR picture up to n, where a decoder has to begin for it; 0 if there is none."""

    def sets_before(self, n: int) -> Units:
        """The parameter sets that a decoder needs that begins with access unit n."""

    def entry(self, n: int) -> int:
        """The sample entry of access unit n: where it changes, `sets_before` come first."""


class Mp4Units:
    """Of samples: int64[n] positions, sizes, entries; keyframes: int64[], those that the file calls so.

    A file may call I pictures keyframes behind which pictures refer to those before: IDR pictures are looked for.
    """

    def __init__(
        self, source: Source, entries: list[Entry], table: tuple[np.ndarray, np.ndarray, np.ndarray], keyframes: np.ndarray
    ) -> None:
        self._source, self._entries = source, entries
        self._positions, self._sizes, self._sample_entries = table
        self._keyframes = keyframes
        self._is_idr: dict[int, bool] = {}  # of those that were read

    def units(self, n: int) -> Units:
        """See AccessUnits."""
        position = int(self._positions[n])
        data = self._source.read(position, int(self._sizes[n]))
        try:
            units = [(position + a, data[a:b].rstrip(b"\0")) for a, b in units_in(data, self._entry(n).length_size)]
        except ValueError as error:
            raise BitstreamError(f"sample {n}: {error}") from None
        return [(at, unit) for at, unit in units if unit]

    def start(self, n: int) -> int:
        """See AccessUnits."""
        k = int(np.searchsorted(self._keyframes, n, "right"))
        while k > 0:
            k -= 1
            candidate = int(self._keyframes[k])
            if candidate not in self._is_idr:
                self._is_idr[candidate] = any(unit[0] & 31 == NAL_IDR for _, unit in self.units(candidate))
            if self._is_idr[candidate]:
                return candidate
        return 0

    def sets_before(self, n: int) -> Units:
        """See AccessUnits: those of the sample entry."""
        return [(0, unit.data) for unit in split_byte_stream(self._entry(n).parameter_sets)]

    def entry(self, n: int) -> int:
        """See AccessUnits."""
        return int(self._sample_entries[n])

    def _entry(self, n: int) -> Entry:
        return self._entries[self.entry(n)]


class StreamUnits:
    """Of a byte stream, by the map of its pictures."""

    def __init__(self, source: Source, stream_map: StreamMap) -> None:
        self._source, self._map = source, stream_map
        self._starts = [n for n, is_idr in enumerate(stream_map.is_idr) if is_idr]

    def units(self, n: int) -> Units:
        """See AccessUnits."""
        positions = self._map.positions
        begin, end = positions[n], positions[n + 1] if n + 1 < len(positions) else self._source.size
        data = b"\0\0\1" + self._source.read(begin, end - begin)
        return [(begin - 3 + unit.offset, unit.data) for unit in split_byte_stream(data)]

    def start(self, n: int) -> int:
        """See AccessUnits."""
        k = bisect_right(self._starts, n)
        return self._starts[k - 1] if k else 0

    def sets_before(self, n: int) -> Units:
        """See AccessUnits: the last of each number before it."""
        return [(0, unit) for unit in self._map.sets_before(n)]

    def entry(self, n: int) -> int:
        """See AccessUnits: parameter sets are in the stream."""
        return 0
