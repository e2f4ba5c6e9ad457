"""Encodes the chunks of a stream as tasks of Ray. Decisions are made here; bytes and order are those of one process."""

import os
import time
import uuid
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..encoder.decisions.second_pass import sections_of
from ..encoder.encoded_frame import EncodedFrame
from ..encoder.errors import DeviceLost, Error
from ..encoder.files.read_ahead import FileRead, Read
from ..encoder.gops.concurrent_gops import POLL_SECONDS, ConcurrentGops
from ..encoder.gops.gops import frame_bytes
from ..encoder.gops.queue import Waiting
from ..encoder.settings.config import Config, with_bt709
from ..encoder.slice_writer import SliceWriter
from ..scheduler.frame_spec import FrameSpec
from .connection import Share, nodes
from .frames import FilePart, Shipped
from .worker import ChunkJob, Stream, encode

CHUNK_FRAMES = 48  # of a chunk at least, but for the last one: a task costs some milliseconds
SHIPPED_BYTES = 4 << 30  # of frames in the cluster's memory at a time, less if it is small
COUNT_SECONDS = 5.0  # between two looks at the machines of the cluster


@dataclass(frozen=True)
class FileInput:
    """An input that workers may open: its path, and the Read of each frame by number."""

    path: str
    read: Callable[[int], Read]
    first: int  # number of the first frame to encode


@dataclass
class _Chunk:
    """A chunk in the cluster: its task, and what it needs to be shipped again."""

    job: ChunkJob
    task: Any
    reads: list[FileRead]
    bytes: int = 0  # of shipped frames
    done: list[EncodedFrame] | None = None


class RayPipeline(ConcurrentGops):
    """At most `window` chunks are in the cluster.

    Ray repeats tasks whose process or machine is lost (RAY_TASK_MAX_RETRIES; 3 times by default); more losses of one chunk
    raise DeviceLost. A result is fetched as soon as it is there, and nothing of it stays in the object store.
    """

    def __init__(
        self, ray: Any, config: Config, share: Share, file: FileInput | None, keep: bool = False,
        warn: Callable[[str], None] | None = None, least: int = 0,
    ) -> None:  # fmt: skip
        """file: the input, if workers may open it. keep: return reconstructions. least: frames of a chunk; 0: usual."""
        super().__init__(config, warn)
        self._ray, self._share, self._file, self._keep = ray, share, file, keep
        self._least = least or CHUNK_FRAMES
        self._stream = Stream(uuid.uuid4().hex)
        self._frame_bytes = frame_bytes(config)
        first = config.rate.first_pass
        self._starts = [] if first is None else [section.start for section in sections_of(first)]
        self._free: list[np.ndarray] = []
        self._specs: list[FrameSpec] = []  # of the chunk that is filled, as these three
        self._unit = -1
        self._reads: list[FileRead] = []
        self._shipped = Shipped(self._frame_bytes)
        self._chunks: deque[_Chunk] = deque()  # in the cluster, in coding order
        self._by_task: dict[Any, _Chunk] = {}
        self._ready: list[EncodedFrame] = []  # finished in order
        self._number = 0  # of the next chunk
        self._ship_files = False  # whether a worker did not find the file
        self._ended = self._failed = False
        self._counted, self.slots = 0.0, 0
        store = ray.cluster_resources().get("object_store_memory", SHIPPED_BYTES)
        self._most_bytes = min(SHIPPED_BYTES, int(store) // 2)
        options: dict[str, Any] = {"num_cpus": share.cpus, "num_gpus": share.gpus, "name": "h264lite encode"}
        if share.gpus:  # a process serves the GPU that each task is given; it would end after a task without max_calls
            options["runtime_env"] = {"env_vars": {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}}
        self._task = ray.remote(max_calls=0, **options)(encode)

    def headers(self) -> bytes:
        return SliceWriter(self.config).parameter_sets

    def set_bt709(self) -> None:
        self.config = with_bt709(self.config, self._decisions.count > 0)

    def close(self) -> None:
        self.cut()  # tasks that are not done are cancelled
        self._decisions.close()

    def has_room(self) -> bool:
        if not self._chunks or self._failed:
            return True
        shipped = self._shipped.bytes + sum(chunk.bytes for chunk in self._chunks)
        return len(self._chunks) < self._window() and shipped < self._most_bytes

    def busy(self) -> bool:
        return bool(self._chunks)

    def end(self) -> None:
        if not self._ended and not self._failed:
            self._ended = True
            self._add(self._decisions.end())
            self._submit()

    def cut(self) -> None:
        """The first chunk that is not finished is given up, and all after it."""
        self._ended = True
        for task in self._by_task:
            self._ray.cancel(task, force=True)
        self._by_task.clear()
        self._chunks.clear()
        self._specs = []

    def _new_buffer(self) -> np.ndarray:
        return self._free.pop() if self._free else np.empty(self._frame_bytes, np.uint8)

    def _waiting_read(self, read: Read) -> np.ndarray | Read:
        """Read now, if workers cannot do it."""
        if self._file is not None:
            return read
        read(self.next_buffer())
        return self._buffers.popleft()

    # ---- chunks
    def _window(self) -> int:
        """The most chunks in the cluster: each slot has one, and another one waits. Machines may come and go."""
        now = time.monotonic()
        if not self.slots or now > self._counted + COUNT_SECONDS:
            self._counted, self.slots = now, max(1, self._share.slots(nodes(self._ray)))
        return 2 * self.slots + 1

    def _add(self, frames: Iterable[Waiting]) -> None:
        """Chunks that are full are submitted."""
        for spec, source in frames:
            unit = bisect_right(self._starts, spec.coding_index) - 1 if self._starts else spec.gop
            if unit != self._unit and len(self._specs) >= self._least:
                self._submit()
            self._unit = unit
            self._specs.append(spec)
            if self._file is not None:
                read = self._file.read(self._file.first + spec.display_index)
                assert isinstance(read, FileRead)
                self._reads.append(read)
            if isinstance(source, np.ndarray):
                if self._file is None:
                    self._shipped.add(source)
                self._free.append(source)

    def _submit(self) -> None:
        """The frames of the chunk that is filled go to the cluster."""
        if not self._specs:
            return
        reads, self._reads = self._reads, []
        frames: FilePart | Shipped
        if self._file is None:
            frames, self._shipped = self._shipped, Shipped(self._frame_bytes)
            frames.finish()
        elif self._ship_files:
            frames = self._read(reads)
        else:
            frames = FilePart.of(self._file.path, reads, self._frame_bytes)
        config = self.config._replace(machine=self.config.machine._replace(tuning=None))
        job = ChunkJob(config, self._number, tuple(self._specs), frames, self._keep)
        self._specs, self._number = [], self._number + 1
        chunk = _Chunk(job, None, reads)
        self._chunks.append(chunk)
        self._start(chunk)

    def _start(self, chunk: _Chunk) -> None:
        frames = chunk.job.frames
        chunk.bytes = frames.bytes if isinstance(frames, Shipped) else 0
        chunk.task = self._task.remote(self._stream, chunk.job)
        self._by_task[chunk.task] = chunk

    def _read(self, reads: list[FileRead]) -> Shipped:
        """The frames of a file as objects of Ray."""
        frames, buffer = Shipped(self._frame_bytes), np.empty(self._frame_bytes, np.uint8)
        for read in reads:
            read(buffer)
            frames.add(buffer)
        frames.finish()
        return frames

    def _wait(self) -> None:
        if not self._by_task:
            return
        done, _ = self._ray.wait(list(self._by_task), num_returns=1, timeout=POLL_SECONDS)
        if done:
            done, _ = self._ray.wait(list(self._by_task), num_returns=len(self._by_task), timeout=0)
        for task in done:
            chunk = self._by_task.pop(task)
            try:
                result = self._ray.get(task)
            except Exception as error:
                self._fail(chunk, error)
            if isinstance(result, str):
                self._ship_files = True
                chunk.job = replace(chunk.job, frames=self._read(chunk.reads))
                self._start(chunk)
                continue
            # the reference and the frames of the chunk go with the job
            chunk.done, chunk.task, chunk.bytes, chunk.reads = result, None, 0, []
            chunk.job = None  # type: ignore[assignment]
        while self._chunks and self._chunks[0].done is not None:
            self._ready += self._chunks.popleft().done or []

    def _fail(self, chunk: _Chunk, error: Exception) -> None:
        """Raise the error of a task, after which no frame follows."""
        cause = getattr(error, "cause", None)
        first, last = chunk.job.specs[0].coding_index, chunk.job.specs[-1].coding_index
        self._failed = True
        self.cut()
        if isinstance(cause, Error):
            raise cause from None
        said = (str(cause or error).strip() or type(error).__name__).splitlines()[0]
        error_name = type(cause or error).__name__
        raise DeviceLost(f"Ray: frames {first} to {last} cannot be encoded: {error_name}: {said}") from None

    def _fetch(self) -> list[EncodedFrame]:
        self._taken, self._ready = self._ready, []
        return self._taken


def file_input(path: str, read: Callable[[int], Read], first: int) -> FileInput | None:
    """A raw file as an input that workers may open; None for a device or a pipe."""
    return FileInput(os.path.abspath(path), read, first) if os.path.isfile(path) else None
