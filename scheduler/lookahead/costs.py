"""Questions about source frames, and what costs are there to answer them.

A query is a tuple of frame numbers: (frame,) by intra prediction; (reference, frame) as P; (earlier, later, frame) as B;
(reference, frame, frame) as P from the reference with the frame's levels.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..frames.device_frame import GpuSource

CostQuery = tuple[int, ...]
NOTHING_READ = 1 << 62  # `reads_from` where no luma is kept
# A source frame: planes, uint8 of display size, luma uint8[H, W] the first; or a frame on a GPU
Source = Sequence[np.ndarray] | GpuSource


class CostPending(Exception):
    """A cost is under way: it can be asked for again later, or after `wait`."""


class UsedMotion(NamedTuple):
    """Of each macroblock the least cost by inter prediction, uint16[n_mb]; its vectors int16[n_mb, 4], (x, y) from an earlier
    and from a later frame, source samples; lists uint8[n_mb]: 1 for the earlier frame, 2 for the later one, 3 for both.
    """

    cost: np.ndarray
    vectors: np.ndarray
    lists: np.ndarray

    @classmethod
    def of_p(cls, mv: np.ndarray, cost: np.ndarray) -> "UsedMotion":
        """From an earlier frame alone; mv: int16[n_mb, 2]."""
        vectors = np.zeros((len(cost), 4), np.int16)
        vectors[:, :2] = mv
        return cls(cost, vectors, np.ones(len(cost), np.uint8))


class TreeFrame(NamedTuple):
    """A frame of the macroblock tree (encoder/decisions/macroblock_tree.py) for a GPU."""

    query: CostQuery  # its nearest references and itself
    coding_index: int  # one more for each frame
    references: tuple[int, int]  # coding indices of the earlier and of the later one, which may have left; -1: none
    weight: int  # of the later one in a prediction from both, of 64
    noise: int  # see Node


class LookaheadCosts(Protocol):
    """Costs of the frames of a stream, by their numbers in display order; see FrameCosts, which is one.

    All of them may raise CostPending.
    """

    def add(self, source: Source) -> None:
        """The next frame; frames on a GPU only if these costs are of that GPU. Of planes luma is enough, but for
        `aq_offsets`.
        """

    def expect(self, number: int, luma: np.ndarray) -> None:
        """Frame `number` is there, and its `add` follows: work on it may begin. Called in another thread than all else."""

    def ahead(self, queries: list[CostQuery]) -> None:
        """These will be asked, probably."""

    def wait(self) -> None:
        """Block until what CostPending was raised for has ended; a query of several steps may raise it again."""

    def forget(self, before: int) -> None:
        """Frames before this one are not asked for any more."""

    @property
    def reads_from(self) -> int:
        """The planes of this frame and of later ones may still be read; those of earlier ones may change."""

    def intra(self, frame: int) -> int:
        """By intra prediction."""

    def sharpness(self, frame: int) -> int:
        """See `sharpness` (cpu_simd/lookahead/half_size.py)."""

    def p(self, reference: int, frame: int) -> int:
        """From an earlier frame."""

    def p_of_levels(self, reference: int, frame: int) -> int:
        """The same as if brightness and contrast were equal."""

    def brightness(self, frame: int) -> np.ndarray:
        """See `brightness` (brightness.py)."""

    def b(self, earlier: int, later: int, frame: int) -> int:
        """From both."""

    def aq_offsets(self, frame: int) -> np.ndarray | None:
        """int32[n_mb]: of QP_Y by adaptive quantisation, in 1 / 256, as long as the frame is kept; None: not found here."""

    def intra_costs(self, frame: int) -> np.ndarray:
        """uint16[n_mb]: of each macroblock by intra prediction."""

    def used_of_p(self, reference: int, frame: int) -> UsedMotion:
        """From an earlier frame; intra macroblocks have their motion too."""

    def used_of_b(self, earlier: int, later: int, frame: int) -> UsedMotion:
        """From both."""

    @property
    def in_batches(self) -> bool:
        """Whether queries of several frames at once cost less than one after another."""

    @property
    def has_tree(self) -> bool:
        """Whether start_tree may work: frames that are there stay until they are forgotten."""

    def start_tree(self, frames: list[TreeFrame], count: int, strength: int) -> bool:
        """Start the tree of the frames, in coding order, for the offsets of the `count` first ones; False: it cannot.

        strength: as of tree_offsets (cpu_simd/lookahead/macroblock_tree.py). One tree at a time.
        """

    def tree(self, wait: bool) -> list[np.ndarray] | None:
        """The offsets, int32[n_mb] of each frame, valid until the next tree starts; CostPending unless `wait`; None: they are
        lost with the GPU.
        """

    def close(self) -> None:
        """No query follows."""


def position_between(earlier: int, later: int, frame: int) -> int:
    """Distance from the earlier frame to a frame over that to the later one, in 1 / 256."""
    return (((frame - earlier) << 8) + (later - earlier) // 2) // (later - earlier)
