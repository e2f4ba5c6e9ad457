"""Frames that wait until they are decided about: they come in display order and leave in coding order."""

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..scheduler.devices import DeviceMemoryError, DeviceUnavailable, GpuLost
from ..scheduler.executor import bands
from ..scheduler.frame_spec import FrameSpec
from ..scheduler.frames.held_sources import HeldSource
from .decisions.frame_types import FrameTypes
from .errors import DeviceLost
from .settings.config import Config
from .settings.requests import Request


class HeldFrames:
    """Gives each frame, as it comes, to FrameTypes, and keeps its source, of any kind, until the frame is coded.

    is_whole: false from the beginning of a call of `add` or `end` until all its frames are coded: after an exception in
    between a frame may be missing, and none can follow.
    """

    def __init__(self, config: Config, warn: Callable[[str], None] | None = None) -> None:
        """warn: see Requests; None: a RuntimeWarning."""
        warn = warn or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=4))
        self._queue: deque[FrameSpec] = deque()  # decided, and not coded yet: those that plans look ahead to
        self._ahead = config.planned_frames
        self._types = FrameTypes(config, tuple(bands(config.mb_height, config.slices)), warn)
        self._held: dict[int, Any] = {}  # sources by display index
        self._ended = False
        self.count = 0  # frames entered
        self.is_whole = True

    @property
    def ahead(self) -> tuple[FrameSpec, ...]:
        """The frames that follow the last one in coding order, as far as they are decided and plans need them."""
        return tuple(self._queue)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, source: Any, planes: Sequence[np.ndarray] | HeldSource = ()) -> Iterator[tuple[FrameSpec, Any]]:
        """The next frame in display order. Yields the frames to be coded now, in coding order, each with its source.

        planes: Y, Cb, Cr, uint8 of display size, read at once, or a frame on a GPU; empty: unknown, if decisions need none.
        """
        self._types.check_next()
        self.is_whole = False
        self._held[self.count] = source
        self.count += 1
        yield from self._leaving(self._decided(lambda: self._types.add(planes)), self._ahead)

    def end(self) -> Iterator[tuple[FrameSpec, Any]]:
        """No frame follows: yields the others as `add` does. At later calls, and after an exception, there are none."""
        if self._ended or not self.is_whole:
            return
        self._ended, self.is_whole = True, False
        yield from self._leaving(self._decided(self._types.flush), 0)

    def request(self, request: Request | None) -> None:
        """For the next frame; see Requests.of_caller."""
        self._types.requests.of_caller(request)

    def close(self) -> None:
        """Release what decisions hold: no call follows."""
        self._types.close()

    def _decided(self, decide: Callable[[], list[FrameSpec]]) -> list[FrameSpec]:
        """Errors of a device are those of the public interface."""
        try:
            return decide()
        except (GpuLost, DeviceMemoryError, DeviceUnavailable) as error:
            raise DeviceLost(str(error)) from None

    def _leaving(self, specs: Sequence[FrameSpec], stay: int) -> Iterator[tuple[FrameSpec, Any]]:
        """stay: frames that are decided and wait for others."""
        self._queue += specs
        while len(self._queue) > stay:
            spec = self._queue.popleft()
            yield spec, self._held.pop(spec.display_index)
        self.is_whole = True
