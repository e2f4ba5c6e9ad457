"""Threads that copy pictures to where a card takes them from."""

from collections.abc import Sequence

import numpy as np

from ..cpu_simd.copying import BOARD, OVER, begin_copy, end_copy, help_to_copy
from .semaphore import Sleepers, address


class Copiers(Sleepers):
    """The caller and `helpers` threads."""

    def __init__(self, helpers: int) -> None:
        super().__init__(np.zeros(BOARD, np.int64), OVER, helpers, "copy")
        self._no_gate = np.zeros(1, np.int64)

    def copy(self, targets: Sequence[np.ndarray], sources: Sequence[np.ndarray]) -> None:
        """uint8[H, W] each; rows of targets follow one another. Returns when everything is there."""
        self.begin(targets, sources)
        self.end(self._no_gate)

    def begin(self, targets: Sequence[np.ndarray], sources: Sequence[np.ndarray]) -> None:
        """As `copy`, while the caller does something else until `end`; arrays stay as they are until then."""
        semaphore, planes = self._begin(help_to_copy), []
        for target, source in zip(targets, sources):
            (height, width), (pitch, step) = source.shape, source.strides
            if step != 1 or target.shape != source.shape or target.strides != (width, 1):
                np.copyto(target, source)
            else:
                planes.append((address(target), address(source), width, pitch, height))
        if planes:
            begin_copy(self._board, np.array(planes, np.int64), len(self._threads), semaphore.post, semaphore.memory)

    def end(self, gate: np.ndarray) -> None:
        """Everything is there when it returns; gate, int64[1], is set to OPEN then (cpu_simd/copying.py)."""
        end_copy(self._board, gate)
