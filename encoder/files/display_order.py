"""Finished frames in display order, for outputs that have no times."""

from collections.abc import Iterator
from typing import Any


class DisplayOrder:
    """Puts frames that come in coding order into display order; holds no more than the encoder reorders."""

    def __init__(self) -> None:
        self._waiting: dict[int, Any] = {}
        self._next = 0

    def add(self, index: int, frame: Any) -> Iterator[Any]:
        """The next frame in coding order, with its display index. Yields the frames whose turn has come."""
        self._waiting[index] = frame
        while self._next in self._waiting:
            self._next += 1
            yield self._waiting.pop(self._next - 1)

    def rest(self) -> Iterator[Any]:
        """No frame follows: yields those that wait for one that was not coded."""
        for index in sorted(self._waiting):
            yield self._waiting.pop(index)
