"""What a picture gives the streams, noted, so that a picture of the same kind can be given the same."""

from collections.abc import Iterator
from typing import Any

import numpy as np

KERNEL = "the kernel "  # in messages, before its name


def handle(stream: Any) -> int:
    """Of a stream or an event; None is the default stream."""
    return 0 if stream is None else int(stream.handle)


class Script:
    """What was given to the streams, in order: (its name in messages, what does it, its row or None, what the row holds)."""

    def __init__(self) -> None:
        self.acts: list[tuple[str, Any, list[int] | None, Any]] = []
        self._parts: list[tuple[Any, list[str]]] | None = None

    def add(self, what: str, act: Any, row: list[int] | None = None, held: Any = None) -> None:
        """Note one call."""
        self.acts.append((what, act, row, held))

    def launches(self) -> Iterator[tuple[int, str, Any]]:
        """Kernels in order: where in `acts`, name, stream. What does it is called with grid, block, stream and more."""
        for k, (what, act, _, _) in enumerate(self.acts):
            if what.startswith(KERNEL):
                yield k, what.removeprefix(KERNEL), act.args[2]

    def parts(self) -> list[tuple[Any, list[str]]]:
        """Neighbouring rows as one array, other calls as they are; with the names of each."""
        if self._parts is None:
            self._parts = []
            rows: list[list[int]] = []
            names: list[str] = []
            for what, act, row, _ in [*self.acts, ("", None, None, None)]:
                if row is not None:
                    rows.append(row)
                    names.append(what)
                    continue
                if rows:
                    self._parts.append((np.array(rows, np.int64), names))
                    rows, names = [], []
                if act is not None:
                    self._parts.append((act, [what]))
        return self._parts
