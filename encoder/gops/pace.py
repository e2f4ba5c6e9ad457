"""Decides whether a CPU lane takes GOPs alongside GPUs: these may run ahead only so far and then wait for it."""

import time
from typing import TYPE_CHECKING

import numpy as np

from ...scheduler.frames.frame import split_planes
from ..errors import InputError
from .queue import GopQueue

if TYPE_CHECKING:
    from ..pipeline import Pipeline

TRIAL = 4  # frames


class CpuLaneThrottle:
    """The throttle of a CPU lane. Once the GPU lanes have reported frame times, it encodes a few frames of a waiting GOP to
    measure its own.
    """

    def __init__(self, pipeline: "Pipeline", queue: GopQueue) -> None:
        self._pipeline, self._queue = pipeline, queue
        self._seconds = 0.0  # of a frame; 0: unknown
        self._begin = 0.0

    def keeps_up(self) -> bool:
        """Whether this lane finishes a GOP before other lanes have to wait for it."""
        if not self._queue.paces:
            return False
        if not self._seconds:
            self._try()
        return bool(self._seconds) and self._queue.keeps_up(self._seconds)

    def begins(self) -> None:
        """Start of a GOP."""
        self._begin = time.perf_counter()

    def ends(self, pictures: int) -> None:
        """End of a GOP of that many frames."""
        if pictures:
            self._seconds = (time.perf_counter() - self._begin) / pictures

    def _try(self) -> None:
        """Measure the shortest frame time, without the first frame, which may compile kernels."""
        frames, times = self._queue.peek(TRIAL), []
        if not frames:
            return
        place = np.empty(self._queue.picture_bytes, np.uint8)
        y, u, v = split_planes(place, self._pipeline.config.display)
        try:
            for spec, picture in frames:
                number = spec.display_index - frames[-1][0].display_index - 1  # below 0: no frame of the stream
                if callable(picture):
                    picture(place)
                else:
                    place[...] = picture
                start = time.perf_counter()
                self._pipeline.encode(y, u, v, spec._replace(display_index=number))
                times.append(time.perf_counter() - start)
        except InputError:  # reported when the frame is encoded
            return
        finally:
            self._pipeline.flush()
        self._seconds = min(times[1:] or times)
