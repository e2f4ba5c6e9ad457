"""Questions about source frames, and what costs are there to answer them.

A question is a tuple of frame numbers: (frame,) by intra prediction; (reference, frame) as P; (earlier, later, frame) as B;
(reference, frame, frame) as P from the reference with the frame's levels.
"""

from typing import Protocol

import numpy as np

Question = tuple[int, ...]


class NotYet(Exception):
    """A cost is under way: it can be asked for again later, or after `wait`."""


class Costs(Protocol):
    """Costs of the frames of a stream, by their numbers in display order; see FrameCosts, which is one.

    All of them may raise NotYet.
    """

    def add(self, luma: np.ndarray) -> None:
        """The next frame."""

    def ahead(self, questions: list[Question]) -> None:
        """These will be asked, probably."""

    def wait(self) -> None:
        """Block until what NotYet was raised for has ended; a question of several steps may raise it again."""

    def forget(self, before: int) -> None:
        """Frames before this one are not asked for any more."""

    def intra(self, frame: int) -> int:
        """By intra prediction."""

    def p(self, reference: int, frame: int) -> int:
        """From an earlier frame."""

    def p_of_levels(self, reference: int, frame: int) -> int:
        """The same as if brightness and contrast were equal."""

    def b(self, earlier: int, later: int, frame: int) -> int:
        """From both."""

    def close(self) -> None:
        """No question follows."""


def position_between(earlier: int, later: int, frame: int) -> int:
    """Distance from the earlier frame to a frame over that to the later one, in 1 / 256."""
    return (((frame - earlier) << 8) + (later - earlier) // 2) // (later - earlier)
