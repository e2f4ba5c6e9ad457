"""How many frames a GPU may have in flight beyond one of each stream: with them P frames run ahead of B frames."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...cuda_src.runtime.pool import allocation_bytes
from ..coding_settings import CodingSettings
from .frame import FrameArrays, References, upload_shape

# With one frame of each stream a P frame takes over the arrays and the slot of a B frame shortly before it, and so waits for
# it. With as many more as two groups of B frames have by default, its stream has work while they are coded.
MOST_AHEAD = 6
# These frames take at most one part in so many of the free memory. Two encodes at once take less than so many frames do,
# so that what fits without these frames fits with them.
MEMORY_DIVISOR = 160


class RunAhead(NamedTuple):
    """What bounds these frames, before the executor is made."""

    most: int  # in flight beside those of the main stream, of B frames too
    frame_bytes: int  # GPU memory of one
    gops: int = 1  # at once on the GPU

    def frames(self, streams: int, free_bytes: int) -> int:
        """Frames in flight beyond one of each stream. streams: for B frames; free_bytes: of the GPU's memory."""
        pairs = max(1, (self.gops + 1) // 2)
        in_memory = free_bytes // (MEMORY_DIVISOR * pairs * self.frame_bytes)
        return max(0, min(MOST_AHEAD, self.most - streams, in_memory))


NONE = RunAhead(0, 1)


def frame_bytes(settings: CodingSettings) -> int:
    """GPU memory of a frame in flight: its arrays, its upload and a slot of the decoded picture buffer."""
    total, size = 0, settings.size

    def counted(shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
        nonlocal total
        total += allocation_bytes(math.prod(shape) * np.dtype(dtype).itemsize)
        return np.empty(shape, dtype)  # no page of it exists

    FrameArrays(size.mb_width, size.mb_height, counted, settings.has_b_frames)
    References.allocate(1, size, counted)
    counted(upload_shape(size.mb_height, settings.display), np.uint8)
    return total
