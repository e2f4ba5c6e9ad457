"""A chunk: a serialisable unit of work of whole closed GOPs, which any process encodes to the same bytes.

FrameSpecs of closed GOPs with their sources -> ChunkJob -> ChunkEncoder -> list of EncodedFrame
"""

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...process import start_threads
from ...scheduler.frame_spec import FrameSpec
from ...scheduler.trace import Trace
from ...uninterrupted import check_of_file
from ..encoded_frame import EncodedFrame
from ..errors import InputError
from ..files.read_ahead import FileRead, FileReader, Read
from ..gops.gops import NoThreads, WarnOnce, lane_settings, lanes_by_thread, work
from ..gops.queue import Waiting
from ..settings.config import Config
from .chunk_queue import ChunkQueue


class Frames(Protocol):
    """The sources of a chunk. They can be pickled."""

    def reads(self, specs: Sequence[FrameSpec], opened: Callable[[int], None]) -> list[Read]:
        """The Reads of all frames; opened: called with a descriptor that is to be closed after them. InputError."""


@dataclass(frozen=True)
class FileFrames:
    """Frames of a raw file, I420 of display size without padding, that the process which encodes reads itself.

    offsets: of each frame of a chunk in coding order, in bytes.
    """

    path: str
    offsets: tuple[int, ...]

    def reads(self, specs: Sequence[FrameSpec], opened: Callable[[int], None]) -> list[Read]:
        try:
            file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            check_of_file(error)
            raise InputError(f"{self.path}: {error.strerror or error}") from None
        opened(file)
        read = FileReader(file, self.path)
        return [FileRead(file, at, spec.display_index, read) for spec, at in zip(specs, self.offsets, strict=True)]


@dataclass(frozen=True)
class ChunkJob:
    """All that a process needs to encode a chunk. It can be pickled.

    config: of the whole stream; its device, ordinal, devices and threads are those of the process that encodes (`on_device`).
    number: chunks count from 0 in coding order. specs: of the frames of closed GOPs, in coding order, as decided for the
    whole stream; with a second pass of whole sections, which share corrections of their QPs. frames: their sources, as many.
    """

    config: Config
    number: int
    specs: tuple[FrameSpec, ...]
    frames: Frames
    keep_reconstruction: bool = False


def on_device(config: Config, device: str, threads: int) -> Config:
    """The config of a stream for a process that encodes on `device`, cpu or cuda:N, with so many CPU threads.

    The device is a named one: if it is lost, DeviceLost is raised. Bytes depend on neither.
    """
    device_type, _, ordinal = device.partition(":")
    return config._replace(
        machine=config.machine._replace(
            device=device_type,
            ordinal=int(ordinal or 0),
            devices=(device,),
            threads=threads,
            split=None,
            may_change_device=False,
        )
    )


class ChunkEncoder:
    """Encodes chunks of one stream on one device; it keeps its kernels, threads and GPU memory from one to the next.

    `encode` for whole chunks, one after another; or `enter` and `queue.fetch` for several at once. Raises DeviceError if the
    device is missing, DeviceLost if it fails, InputError if a source cannot be read: no chunk can follow these.
    """

    def __init__(
        self,
        config: Config,
        keep_reconstruction: bool = False,
        warn: Callable[[str], None] | None = None,
        trace: Trace | None = None,
        lanes: int | None = None,
    ) -> None:
        """lanes: chunks at once; None: GOPs of a chunk are coded one after another."""
        from ..pipeline import Pipeline

        lanes = lanes or 1
        self.config = config
        self.queue = ChunkQueue(lanes)
        self.lanes: list[Pipeline] = []
        self._threads: list[threading.Thread] = []
        say = WarnOnce(warn or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=2)))
        try:
            for k in range(lanes):
                view = trace.with_prefix(f"gop lane {k}, ") if trace is not None else None
                self.lanes.append(Pipeline(lane_settings(config, k, lanes), keep_reconstruction, say, view))
            threads = [
                threading.Thread(target=work, args=(self.queue, some), name=f"h264lite-gop-{k}", daemon=True)
                for k, some in enumerate(lanes_by_thread(self.lanes, self.queue))
            ]
            if not start_threads(threads, self._threads):
                raise NoThreads(f"no threads can be started for {lanes} GOPs at once")
        except BaseException:
            self.close()
            raise

    def encode(self, specs: Sequence[FrameSpec], frames: Frames) -> list[EncodedFrame]:
        """The frames of a chunk, in coding order."""
        files: list[int] = []
        try:
            self.enter(specs[0].coding_index, list(zip(specs, frames.reads(specs, files.append), strict=True)), True)
            done: list[EncodedFrame] = []
            while len(done) < len(specs):
                done += self.queue.fetch(None)[0]
            return sorted(done, key=lambda frame: frame.coding_index)
        finally:
            for file in files:
                os.close(file)

    def enter(self, number: int, frames: Sequence[Waiting], closed: bool) -> None:
        """See ChunkQueue."""
        self.queue.enter(number, frames, closed)

    def close(self) -> None:
        """Release threads and memory."""
        self.queue.close()
        for thread in self._threads:
            thread.join()
        for lane in self.lanes:
            lane.close()

    def __enter__(self) -> "ChunkEncoder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
