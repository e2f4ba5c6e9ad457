"""Whether the processor takes a GOP beside GPUs: they may only run so far ahead of it, and would wait for it then."""

import time
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..picture.frame import split_planes
from .queue import GopQueue

if TYPE_CHECKING:
    from ..pipeline import Pipeline

TRIAL = 4  # pictures


class CpuLaneThrottle:
    """Of a lane of the processor. Once GPUs have told theirs it codes a few pictures of a GOP that waits, only to see how
    long they take.
    """

    def __init__(self, pipeline: "Pipeline", queue: GopQueue) -> None:
        self._pipeline, self._queue = pipeline, queue
        self._seconds = 0.0  # a picture; 0: not known
        self._begin = 0.0

    def keeps_up(self) -> bool:
        """Whether a GOP is done before the others have to wait for it."""
        if not self._queue.paces:
            return False
        if not self._seconds:
            self._try()
        return bool(self._seconds) and self._queue.keeps_up(self._seconds)

    def begins(self) -> None:
        """A GOP."""
        self._begin = time.perf_counter()

    def ends(self, pictures: int) -> None:
        """The GOP, of so many pictures."""
        if pictures:
            self._seconds = (time.perf_counter() - self._begin) / pictures

    def _try(self) -> None:
        """The least time of a picture behind the first one: kernels may have to be compiled."""
        count = min(TRIAL, self._queue.keyint)
        pictures, times = self._queue.peek(count), []
        if len(pictures) < count:
            return
        place = np.empty(self._queue.picture_bytes, np.uint8)
        self._pipeline.begin_gop(0, -count)  # in a timeline nobody takes them for pictures of the stream
        try:
            for picture in pictures:
                if callable(picture):
                    picture(place)
                else:
                    place[...] = picture
                start = time.perf_counter()
                self._pipeline.encode(*split_planes(place, self._pipeline.config.display))
                times.append(time.perf_counter() - start)
        except InputError:  # whoever codes it tells
            return
        finally:
            self._pipeline.flush()
        self._seconds = min(times[1:] or times)
