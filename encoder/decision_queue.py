"""Frames that wait until they are decided about: they come in display order and leave in coding order."""

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar

import numpy as np

from ..scheduler.devices import DeviceMemoryError, DeviceUnavailable, GpuLost
from ..scheduler.frame_spec import FrameSpec
from ..scheduler.frames.device_frame import GpuSource
from ..scheduler.threads.dependent_task import Starter
from .decisions.frame_decider import FrameDecider
from .errors import DeviceLost
from .settings.config import Config
from .settings.frame_requests import Request

AnySource = TypeVar("AnySource")
_FAILURES = GpuLost, DeviceMemoryError, DeviceUnavailable  # of a device; those of the public interface are DeviceLost
_SHARE = 32  # of the frames that are ready, this part leaves in addition to one: the tree makes ten ready at once


class DecisionQueue(Generic[AnySource]):
    """Gives each frame, as it comes, to FrameDecider, and keeps its source, of any type, until the frame is coded.

    is_whole: false while frames are decided, and while those that leave are coded: after an exception in between a frame may
    be missing, and none can follow.
    """

    def __init__(
        self, config: Config, warn: Callable[[str], None] | None = None, copies: bool = True, start: Starter | None = None
    ) -> None:
        """warn: see Requests; None: a RuntimeWarning; copies, start: see FrameDecider."""
        warn = warn or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=4))
        self._queue: deque[FrameSpec] = deque()  # decided: those that plans look ahead to
        self._planned = config.planned_frames
        self._ready: deque[tuple[FrameSpec, tuple[FrameSpec, ...]]] = deque()  # to be coded, with those ahead
        self._decider = FrameDecider(config, warn, copies, start)
        self._sources: dict[int, AnySource] = {}  # by display index
        self._ended = False
        self.ahead: tuple[FrameSpec, ...] = ()  # what followed the last frame in coding order when plans took it
        self.count = 0  # frames entered
        self._request: Request | None = None  # for the next frame
        # Set by the deciding thread, and by the coding thread. False while a call is inside: an exception then may lose a
        # frame
        self.is_decided = self._have_left = True

    @property
    def is_whole(self) -> bool:
        """Whether frames that wait can still be coded."""
        return self.is_decided and self._have_left

    @property
    def reads_from(self) -> int:
        """Without copies: this frame in display order and later ones may still be read."""
        try:
            return self._decider.reads_from
        except _FAILURES as error:
            raise DeviceLost(str(error)) from None

    def __len__(self) -> int:
        return len(self._sources)

    def enter(self, source: AnySource, planes: Sequence[np.ndarray] | GpuSource = ()) -> None:
        """The next frame in display order.

        planes: Y, Cb, Cr, uint8 of display size, unchanged until the frame is coded, or a frame on a GPU; empty: unknown, if
        decisions need none.
        """
        self._decide(self.count, self._request, source, planes)
        self.count += 1

    def leave(self, evenly: bool = False) -> Iterator[tuple[FrameSpec, AnySource]]:
        """The frames to be coded now, in coding order, each with its source.

        evenly: about as many as have entered since the last call, so that a GPU has work while others are decided.
        """
        return self._left(evenly)

    def _left(self, evenly: bool) -> Iterator[tuple[FrameSpec, AnySource]]:
        self._have_left = False
        for _ in range(min(len(self._ready), 1 + len(self._ready) // _SHARE) if evenly else len(self._ready)):
            spec, self.ahead = self._ready.popleft()
            yield spec, self._sources.pop(spec.display_index)
        self._have_left = True

    def add(self, source: AnySource, planes: Sequence[np.ndarray] | GpuSource = ()) -> Iterator[tuple[FrameSpec, AnySource]]:
        """`enter`, then `leave`."""
        self.enter(source, planes)
        yield from self.leave()

    def end(self) -> Iterator[tuple[FrameSpec, AnySource]]:
        """No frame follows: the others, as of `leave`. At later calls, and after an exception, there are none."""
        if self._ended or not self.is_whole:
            return
        self._ended, self.is_decided = True, False
        try:
            specs = self._decider.flush()
        except _FAILURES as error:
            raise DeviceLost(str(error)) from None
        self._plan(specs, 0)
        self.is_decided = True
        yield from self._left(False)

    def reconfigure(self, config: Config) -> None:
        """Other settings of rate control for the frames that enter from now on."""
        self._decider.reconfigure(self.count, config)

    def request(self, request: Request | None) -> None:
        """For the next frame; None: nothing."""
        self._request = request

    def close(self) -> None:
        """Release what decisions hold: no call follows."""
        self._decider.close()

    def _decide(
        self, number: int, request: Request | None, source: AnySource, planes: Sequence[np.ndarray] | GpuSource
    ) -> None:
        self._decider.check_next()
        self.is_decided = False
        self._decider.requests.of_caller(request)
        self._sources[number] = source
        try:
            specs = self._decider.add(planes)
        except _FAILURES as error:
            raise DeviceLost(str(error)) from None
        self._plan(specs, self._planned)
        self.is_decided = True

    def _plan(self, specs: Sequence[FrameSpec], stay: int) -> None:
        """stay: frames that are decided and wait for others."""
        self._queue += specs
        while len(self._queue) > stay:
            spec = self._queue.popleft()
            # no more, since how many are decided at once depends on the device
            self._ready.append((spec, tuple(islice(self._queue, self._planned))))
