"""Objects of the driver that a later user takes over from an earlier one: streams and events."""

from collections.abc import Callable
from typing import Any


class Pool:
    """Objects that are made once and taken by one user after another."""

    def __init__(self) -> None:
        self._made: list[Any] = []
        self._free: list[Any] = []

    def take(self, make: Callable[[], Any]) -> Any:
        """A free object, or what `make` returns."""
        if self._free:
            return self._free.pop()
        made = make()
        self._made.append(made)
        return made

    def reset(self) -> None:
        """The user has ended: all objects are free."""
        self._free = self._made[::-1]  # taken in the order in which they were made

    def clear(self) -> None:
        """Drop the objects."""
        self._made.clear()
        self._free.clear()
