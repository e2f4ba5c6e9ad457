"""Arrays of the lookahead on a GPU: made when they are needed, and kept for later frames."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from ...cpu_simd.bundles import HalfSize
from ...cpu_simd.decisions.lookahead import LOOK_PAD
from ...cpu_simd.layout import COARSE_PAD
from ...cuda_src.lookahead.lookahead import CAMERA_WORDS, Motion, SearchMemory
from ...cuda_src.runtime.array import Stream
from ...cuda_src.runtime.device import Device, DeviceArray
from ...cuda_src.runtime.pool import allocation_bytes
from ...standard.sample_format import Sample
from .gpu_batch import GpuFrame

FRAMES, MOTIONS = 8, 64  # so many in one allocation of the driver: an encode begins with hundreds of arrays


class LookaheadMemory:
    """What frames, pairs and counts of one size take. A call that finds nothing free allocates, in the current context:
    GpuLost, DeviceMemoryError.
    """

    def __init__(self, gpu: Device, mb_width: int, mb_height: int, shapes: Sequence[tuple[int, ...]], with_aq: bool) -> None:
        """shapes: of the planes that frames from the host have; with_aq: frames get offsets of adaptive quantisation."""
        self._gpu, self._shapes, self._with_aq = gpu, shapes, with_aq
        self._mb_width, self._mb_height = mb_width, mb_height
        self._frames: dict[bool, list[GpuFrame]] = {False: [], True: []}  # free, by whether they have memory for a copy
        self._motions: list[Motion] = []  # free
        self._coarse: list[np.ndarray] = []  # free

    def has_frame(self, copied: bool) -> bool:
        """Whether `frame` finds a free one."""
        return bool(self._frames[copied])

    def frame(self, copied: bool) -> GpuFrame:
        """A frame; copied: with page-locked planes, to which a caller's are copied."""
        if not self._frames[copied]:
            self._frames[copied] = self._make_frames(copied)
        return self._frames[copied].pop()

    def free_frame(self, frame: GpuFrame) -> None:
        """For later frames."""
        self._frames[frame.copied].append(frame)

    def motion(self) -> Motion:
        """The motion of a pair."""
        if not self._motions:
            n_mb = self._mb_width * self._mb_height
            vectors, costs = self._arrays(MOTIONS, (n_mb, 2), np.int16), self._arrays(MOTIONS, (n_mb,), np.uint16)
            self._motions = [Motion(*of_pair) for of_pair in zip(vectors, costs)]
        return self._motions.pop()

    def free_motion(self, motion: Motion) -> None:
        """For later pairs."""
        self._motions.append(motion)

    def coarse(self, shape: Sequence[int]) -> np.ndarray:
        """Page-locked Sample[shape] for the coarse samples of a frame; all are of one shape."""
        return self._coarse.pop() if self._coarse else self._gpu.pinned(shape, Sample)

    def free_coarse(self, coarse: np.ndarray) -> None:
        """For later frames."""
        self._coarse.append(coarse)

    def _make_frames(self, copied: bool) -> list[GpuFrame]:
        n_mb, pinned = self._mb_height * self._mb_width, self._gpu.pinned
        halves, costs = self.make_halves(FRAMES), self._arrays(FRAMES, (n_mb,), np.uint16)
        weights = self._arrays(FRAMES, (n_mb,), np.int32) if self._with_aq else []
        frames = []
        for k in range(FRAMES):
            planes = [pinned(shape, Sample) for shape in self._shapes] if copied else ()
            offsets = (pinned((n_mb,), np.int32), weights[k]) if self._with_aq else ()
            frames.append(GpuFrame(planes, halves[k], costs[k], copied, *offsets))
        return frames

    def make_halves(self, count: int) -> list[HalfSize]:
        """New half-size frames."""
        mb_height, mb_width = self._mb_height, self._mb_width
        planes = self._arrays(count, (4, 8 * mb_height + 2 * LOOK_PAD, 8 * mb_width + 2 * LOOK_PAD), Sample)
        coarse = self._arrays(count, (4 * mb_height + 2 * COARSE_PAD, 4 * mb_width + 2 * COARSE_PAD), Sample)
        return list(map(HalfSize, planes, coarse, self._arrays(count, (mb_height, mb_width), Sample)))

    def make_search(self, stream: Stream | None) -> SearchMemory:
        """New memory for the search of one pair; stream: on which it is cleared."""
        vector = self.array((self._mb_height * self._mb_width, 2), np.int16)
        return SearchMemory(self.array((CAMERA_WORDS,), np.int32).fill(0, stream), self.array((2,), np.int16), vector)

    def array(self, shape: Sequence[int], dtype: DTypeLike) -> DeviceArray:
        """New memory."""
        return self._gpu.array(shape, dtype, "the lookahead")

    def _arrays(self, count: int, shape: Sequence[int], dtype: DTypeLike) -> list[DeviceArray]:
        """Arrays in one allocation, each of which begins as one of its own would."""
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        pitch = allocation_bytes(nbytes)
        memory = self.array((count * pitch,), np.uint8)
        return [memory[k : k + nbytes].view(dtype).reshape(*shape) for k in range(0, count * pitch, pitch)]
