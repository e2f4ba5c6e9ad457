"""What a picture gives the streams, noted, so that a picture of the same kind can be given the same."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

KERNEL = "the kernel "  # in messages, before its name


def handle(stream: Any) -> int:
    """Of a stream or an event; None is the default stream."""
    return 0 if stream is None else int(stream.handle)


class Act(NamedTuple):
    """One call that streams get."""

    what: str  # its name in messages
    do: Any  # what does it
    row: list[int] | None  # the same for native.replay_rows
    held: Any  # what the row points to


class Script:
    """What was given to the streams, in order."""

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.uses = 0
        self._parts: list[tuple[Any, list[str]]] | None = None

    def add(self, what: str, do: Any, row: list[int] | None = None, held: Any = None) -> None:
        """Note one call."""
        self.acts.append(Act(what, do, row, held))

    def launches(self) -> Iterator[tuple[int, str, Any]]:
        """Kernels in order: where in `acts`, name, stream. What does it is called with grid, block, stream and more."""
        for k, act in enumerate(self.acts):
            if act.what.startswith(KERNEL):
                yield k, act.what.removeprefix(KERNEL), act.do.args[2]

    def parts(self) -> list[tuple[Any, list[str]]]:
        """Neighbouring rows as one array, other calls as they are; with the names of each."""
        if self._parts is None:
            self.consist_of(self.acts)
        return self._parts or []

    def consist_of(self, acts: Iterable[Act]) -> None:
        """These do the same as `acts`, in fewer calls."""
        self._parts = []
        for is_row, some in groupby(acts, lambda act: act.row is not None):
            if is_row:
                rows, names = zip(*((act.row, act.what) for act in some))
                self._parts.append((np.array(rows, np.int64), list(names)))
            else:
                self._parts += [(act.do, [act.what]) for act in some if act.do is not None]
