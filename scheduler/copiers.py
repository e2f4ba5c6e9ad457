"""Threads that copy pictures to where a card takes them from."""

from collections.abc import Sequence

import numpy as np

from ..cpu_simd.copying import BOARD, OVER, copy_planes, help_to_copy
from .semaphore import Sleepers, address


class Copiers(Sleepers):
    """The caller and `helpers` threads."""

    def __init__(self, helpers: int) -> None:
        super().__init__(np.zeros(BOARD, np.int64), OVER, helpers, "copy")

    def copy(self, targets: Sequence[np.ndarray], sources: Sequence[np.ndarray]) -> None:
        """uint8[H, W] each; rows of targets follow one another. Returns when everything is there."""
        semaphore, planes = self._begin(help_to_copy), []
        for target, source in zip(targets, sources):
            (height, width), (pitch, step) = source.shape, source.strides
            if step != 1 or target.shape != source.shape or target.strides != (width, 1):
                np.copyto(target, source)
            else:
                planes.append((address(target), address(source), width, pitch, height))
        if planes:
            copy_planes(self._board, np.array(planes, np.int64), len(self._threads), semaphore.post, semaphore.memory)
