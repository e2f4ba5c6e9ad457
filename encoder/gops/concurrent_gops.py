"""What pipelines that encode several GOPs at once have in common: how frames enter, are decided about and come back."""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from ...scheduler.frames.device_frame import DeviceFrame
from ...scheduler.frames.host_rgb import RgbFrame
from ..decision_queue import DecisionQueue
from ..encoded_frame import EncodedFrame
from ..errors import InputError
from ..files.read_ahead import Read
from ..frame_pipeline import FramePipeline
from ..frames.source import Source, load
from ..settings.config import Config
from ..settings.frame_requests import Request
from .queue import Waiting

POLL_SECONDS = 0.1  # a blocked caller handles signals at this interval


class ConcurrentGops(FramePipeline):
    """Frames must be on the host. `encode` blocks while there is no room, except for Reads."""

    def __init__(self, config: Config, warn: Callable[[str], None] | None) -> None:
        self.config = config
        self._taken: list[EncodedFrame] = []
        self._warn = warn
        self._decisions = DecisionQueue[np.ndarray | Read](config, warn)
        self._buffers: deque[np.ndarray | Read] = deque()  # of the next frames
        self._is_stopped = False

    @property
    def taken(self) -> list[EncodedFrame]:
        return self._taken

    @property
    def is_whole(self) -> bool:
        return self._decisions.is_whole

    @property
    def takes_reads(self) -> bool:
        return True

    def next_buffer(self, ahead: int = 0) -> np.ndarray:
        while len(self._buffers) <= ahead:
            self._buffers.append(self._new_buffer())
        return self._samples_of(self._buffers[ahead])

    def read_ahead(self, later: Callable[[int], Read] | None = None) -> bool:
        return True

    def reconfigure(self, config: Config) -> None:
        self._decisions.reconfigure(config)  # for all lanes: with a bit rate or a buffer there is one GOP at a time

    def request(self, request: Request | None) -> None:
        self._decisions.request(request)

    def encode(self, source: Source) -> list[EncodedFrame]:
        """InputError for DeviceFrames, which would have to stay as they are until their GOP is encoded."""
        if isinstance(source, DeviceFrame):
            raise InputError("frames on a GPU are encoded one GOP at a time: gops=1")
        if isinstance(source, tuple | np.ndarray):
            planes = load(source, self.next_buffer(), self.config.coding.display, self._decisions.count)
            if isinstance(source, RgbFrame):
                self.set_bt709()
            while not self.has_room() and not self._is_stopped:
                self._wait()
            self._add(self._decisions.add(self._buffers.popleft(), planes))
        else:
            assert not self.config.decides_by_samples
            self._add(self._decisions.add(self._waiting_read(source)))
        return self._fetch()

    def flush(self) -> list[EncodedFrame]:
        self.end()
        while self.busy() and not self._is_stopped:
            self._wait()
        return self._fetch()

    def stop(self) -> None:
        self._is_stopped = True

    def poll(self) -> list[EncodedFrame]:
        self._wait()
        return self._fetch()

    @abstractmethod
    def _new_buffer(self) -> np.ndarray | Read:
        """A buffer for a frame, as the frame waits in it."""

    def _samples_of(self, buffer: np.ndarray | Read) -> np.ndarray:
        """uint8[n]: where the samples of the frame go."""
        assert isinstance(buffer, np.ndarray)
        return buffer

    def _waiting_read(self, read: Read) -> np.ndarray | Read:
        """A Read as it waits."""
        return read

    @abstractmethod
    def _add(self, frames: Iterable[Waiting]) -> None:
        """Take decided frames, in coding order."""

    @abstractmethod
    def _wait(self) -> None:
        """Wait up to POLL_SECONDS for frames, and collect them. Raises what has failed."""

    @abstractmethod
    def _fetch(self) -> list[EncodedFrame]:
        """Finished frames in order that were not fetched yet, which become `taken`."""
