"""Types of frames in display order that are known before: those of the first pass."""

from collections.abc import Callable, Sequence

from ...scheduler.frame_spec import B, P
from ...scheduler.lookahead.costs import Source
from ..errors import InputError


class GivenTypes:
    """A TypeSource. What is asked of a frame has no effect: the first pass has asked for the same."""

    def __init__(self, types: Sequence[str], name: str, warn: Callable[[str], None] | None = None) -> None:
        """name: of the file of statistics. warn: called with a sentence if fewer frames come than types."""
        self._types, self._warn = types, warn
        self._about = f"{name}: the statistics of the first pass are of {len(types)} frames"
        self._count = 0  # frames added
        self._waiting = 0  # B frames whose next other frame has not come

    def check_next(self) -> None:
        """InputError if there is no type for one more frame."""
        if self._count >= len(self._types):
            raise InputError(f"{self._about}, and more come")

    def add(self, source: Source | None, requested: str = "") -> list[str]:
        """See TypeSource."""
        frame_type = self._types[self._count]
        self._count += 1
        self._waiting += 1
        return [] if frame_type == B else self._run(frame_type)

    def flush(self) -> list[str]:
        """See TypeSource."""
        if self._count < len(self._types) and self._warn is not None:
            self._warn(f"{self._about}, and {self._count} have come: the rate is not that of --bitrate")
        return self._run(P) if self._waiting else []

    def _run(self, last: str) -> list[str]:
        """The frames that wait, of which the last has this type."""
        count, self._waiting = self._waiting, 0
        return [*(count - 1) * [B], last]

    def close(self) -> None:
        """See TypeSource: it holds nothing."""
