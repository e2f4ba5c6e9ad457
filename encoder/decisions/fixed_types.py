"""Types of frames in display order, from the settings alone: IDR frames by keyint, B frames in a fixed number."""

from typing import Protocol

from ...scheduler.frame_spec import B, P
from ...scheduler.lookahead.questions import Luma
from ..settings.config import Config

IDR = "IDR"  # beside I, P and B: an I frame that begins a closed GOP


class TypeSource(Protocol):
    """Decides types in display order: "IDR", "I", "P", "B". The first is IDR; no B stands before an IDR or at the end, and
    there are at most `bframes` one after another.
    """

    def add(self, luma: Luma | None) -> list[str]:
        """One more source frame has come. The types that are settled now, of the frames that follow those of the last call.

        luma: see Costs.add; None: unknown.
        """

    def flush(self) -> list[str]:
        """No source frame comes any more: the types of all others."""

    def close(self) -> None:
        """No call follows."""


class FixedTypes:
    """A TypeSource: an IDR frame every `keyint` frames, `bframes` B frames between others as long as a GOP has so many."""

    def __init__(self, config: Config) -> None:
        self._keyint, self._bframes = config.keyint, config.bframes
        self._place = 0  # of the next frame in its GOP
        self._open = 0  # frames whose types wait for the next P frame

    def add(self, luma: Luma | None) -> list[str]:
        """See TypeSource."""
        place, self._place = self._place, (self._place + 1) % self._keyint
        if not place:
            return [IDR]
        self._open += 1
        return self.flush() if self._open > self._bframes or not self._place else []

    def flush(self) -> list[str]:
        """See TypeSource."""
        types = [*(self._open - 1) * [B], P] if self._open else []
        self._open = 0
        return types

    def close(self) -> None:
        """See TypeSource: it holds nothing."""
