"""What all ways to encode have in common: frames in display order in, finished ones in coding order out."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from .encoded_frame import EncodedFrame
from .files.read_ahead import Read
from .frames.source import Source
from .settings.config import Config
from .settings.frame_requests import Request


class FramePipeline(Protocol):
    """One thread calls. An exception in `encode` that is no InputError ends the stream; `flush` then gives the frames before.

    What is not abstract is right where one GOP at a time is encoded, on the host.
    """

    @property
    def taken(self) -> Sequence[EncodedFrame]:
        """The frames that the last call returned, or has finished before an interrupt; some may have been returned before."""

    def headers(self) -> bytes:
        """Sequence and picture parameter sets as an Annex B byte stream."""

    def request(self, request: Request | None) -> None:
        """What is asked of the next frame; None: nothing."""

    def reconfigure(self, config: Config) -> None:
        """Other settings of rate control for the frames that enter from now on, as of settings/reconfigure.py."""

    def set_bt709(self) -> None:
        """Frames come from RGB: write BT.709, limited range, to the VUI.

        InputError if options or earlier frames contradict.
        """

    def encode(self, source: Source) -> list[EncodedFrame]:
        """Encode a frame; the source may be overwritten afterwards, if it is no Read. The frames that are finished, in order.

        Several at once or none if frames wait for later ones. InputError: the frame has not entered.
        """

    def flush(self) -> list[EncodedFrame]:
        """No frame follows: encode those that wait, finish all. After an exception again: those that are finished."""

    def close(self) -> None:
        """Stop threads and release memory; frames that are not finished are dropped."""

    def stop(self) -> None:
        """Another thread drops the encode: a call of this one returns soon, whatever it leaves out; `close` follows."""
        return

    def next_buffer(self, ahead: int = 0) -> np.ndarray | None:
        """uint8[n]: a buffer for the next frame as I420, which saves a copy if it is its source; None: any buffer.

        ahead: for the frame that many later, at most READ_AHEAD_FRAMES, and only after `read_ahead`.
        """
        return None

    def read_ahead(self, later: Callable[[int], Read] | None = None) -> bool:
        """Called before the first frame: make room for frames that are read ahead; False if that is impossible or slower.

        later: the Read of each frame by its number, by which other threads or processes may read it once more.
        """
        return False

    @property
    def on_gpu(self) -> bool:
        """Whether sources may be DeviceFrames."""
        return False

    @property
    def is_whole(self) -> bool:
        """Whether frames that wait can still be coded: false after an exception while others were decided or coded."""
        return True

    @property
    def rates(self) -> dict[str, tuple[int, float]]:
        """(frames encoded, frames a second while it had work) of each device that encodes GOPs of its own, by name."""
        return {}

    # ---- several GOPs at once: without blocking
    @property
    def takes_reads(self) -> bool:
        """Whether several GOPs are encoded at once, so that all sources of a stream may be Reads, if no decision needs their
        samples. `encode` does not block for these: `has_room` says whether it should be called.
        """
        return False

    def has_room(self) -> bool:
        """Whether another frame is accepted without blocking."""
        return True

    def busy(self) -> bool:
        """Whether frames are encoded for which `poll` can wait."""
        return False

    def poll(self) -> list[EncodedFrame]:
        """Finished frames in order; waits up to 0.1 s if they are few and more are in flight."""
        return []

    def end(self) -> None:
        """No frame follows; those that wait to be decided about are encoded."""
        return

    def cut(self) -> None:
        """Start no more frames; finish those in flight, and those that are displayed before one of these."""
        return
