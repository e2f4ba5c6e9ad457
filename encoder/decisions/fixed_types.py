"""Types of frames in display order, from the settings alone: IDR frames by keyint, B frames in a fixed number."""

from typing import Protocol

from ...scheduler.frame_spec import B, I, P
from ...scheduler.lookahead.costs import Source
from ..settings.config import Config
from ..settings.frame_requests import IDR  # beside I, P and B: an I frame that begins a closed GOP


class TypeSource(Protocol):
    """Decides types in display order: "IDR", "I", "P", "B". The first is IDR; no B stands before an IDR or at the end, and
    there are at most `bframes` one after another.
    """

    def add(self, source: Source | None, requested: str = "") -> list[str]:
        """One more source frame has come. The types that are decided now, of the frames that follow those of the last call.

        source: see Costs.add; None: unknown. requested: the type that it gets unless it would be a B frame before an IDR or
        I frame or at the end, or `keyint` asks for an IDR frame; at most `bframes` frames one after another ask for B.
        """

    def flush(self) -> list[str]:
        """No source frame comes any more: the types of all others."""

    def close(self) -> None:
        """No call follows."""


class FixedTypes:
    """A TypeSource: an IDR frame every `keyint` frames, `bframes` B frames between others as long as a GOP has so many."""

    def __init__(self, config: Config) -> None:
        self._keyint, self._bframes = config.types.keyint, config.coding.bframes
        self._index = 0  # of the next frame in its GOP
        self._open: list[str] = []  # what is asked of the frames whose types wait for the next P frame

    def add(self, source: Source | None, requested: str = "") -> list[str]:
        """See TypeSource."""
        index = 0 if requested == IDR else self._index
        self._index = (index + 1) % self._keyint
        if not index or requested == I:
            return [*self.flush(), I if index else IDR]
        if not self._bframes:
            return [P]
        self._open.append(requested)
        if requested == P or not self._index:
            return self.flush()
        return self._run(self._longest()) if len(self._open) > self._bframes else []

    def flush(self) -> list[str]:
        """See TypeSource."""
        return self._run(len(self._open))

    def _longest(self) -> int:
        """Frames up to the last one that may be a P frame."""
        return max(number for number, requested in enumerate(self._open, 1) if requested != B)

    def _run(self, count: int) -> list[str]:
        """The first frames that wait, up to a P frame."""
        del self._open[:count]
        return [*(count - 1) * [B], P] if count else []

    def close(self) -> None:
        """See TypeSource: it holds nothing."""
