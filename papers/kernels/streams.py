"""Paper 001: SADs of variable blocks in three scenarios of copies and kernels; launches streams.cu."""

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from h264lite.cuda_src.runtime.array import Stream
from h264lite.cuda_src.runtime.device import Device

from .texture import Texture, pitched

MODULE = "papers/streams"
SCENARIOS = {
    "scenario-1": "one loop over the streams: upload, kernel, download",
    "scenario-2": "separate loops for uploads, kernels and downloads",
    "scenario-3": "no streams: frames into textures one by one, under a lock",
}
MODES = ((4, 4), (8, 4), (4, 8), (8, 8))  # width, height, in the order of the results
SIDE, BEFORE = 32, 14  # of the window; samples of it left of and above the block


class Scenarios:
    """A clip of frames uint8[H, W] in pinned memory; each is searched in the one before it.

    clock: begin(stream) and end(track, name, begun, stream, frame), as scheduler/trace.py's GpuClock, takes the timeline.
    """

    def __init__(self, gpu: Device, frames: Sequence[np.ndarray], streams: int = 4, clock: Any = None) -> None:
        self.gpu, self.clock = gpu, clock
        self.height, self.width = frames[0].shape
        self.frames = [pitched(f, gpu.pinned((self.height, pitched(f[:1]).shape[1]), np.uint8)) for f in frames]
        self.grid = (self.width // 4, self.height // 4)
        self.shape = (4, self.grid[1], self.grid[0])
        self.streams = [gpu.stream() for _ in range(streams)]
        plane = self.frames[0].shape
        self.planes = [[gpu.array(plane, np.uint8) for _ in range(2)] for _ in range(streams)]
        self.best = [gpu.array(self.shape, np.uint32) for _ in range(streams)]
        self.got = [gpu.pinned(self.shape, np.uint32) for _ in frames[1:]]
        self.textures = [Texture(gpu, array, self.width) for array in self.planes[0]]
        self.done, self.counted = gpu.array((1,), np.int32), gpu.pinned((1,), np.int32)
        self.turn, self.failures = threading.Lock(), list[str]()

    def run(self, scenario: str) -> np.ndarray:
        """uint32[pictures - 1, 4 modes, blocks down, across]: SAD << 10 | candidate, ~0 where there is no such block."""
        {"scenario-1": self._one_loop, "scenario-2": self._separate_loops, "scenario-3": self._locked}[scenario]()
        self.gpu.synchronize()
        if self.failures:
            raise RuntimeError(self.failures[0])
        return np.stack(self.got)

    def vectors(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Displacements int[..., 2] and SADs of keys."""
        number = (keys & 1023).astype(int)
        return np.stack([number % SIDE - BEFORE, number // SIDE - BEFORE], -1), keys >> 10

    @contextmanager
    def _span(self, what: str, s: int, n: int) -> Iterator[None]:
        stream = self.streams[s]
        begun = self.clock.begin(stream) if self.clock else None
        yield
        if self.clock:
            self.clock.end(f"stream {s}", what, begun, stream, n)

    def _upload(self, n: int, s: int, stream: Stream | None) -> None:
        with self._span("upload", s, n):
            for plane, frame in zip(self.planes[s], (self.frames[n], self.frames[n - 1])):
                plane.put(frame, stream)

    def _kernel(self, n: int, s: int) -> None:
        with self._span("kernel", s, n):
            current, reference = self.planes[s]
            arguments = [current, reference, current.shape[1], self.width, self.height, self.best[s]]
            self.gpu.launch(MODULE, "variable_sads", self.grid, (SIDE, SIDE), arguments, self.streams[s])

    def _download(self, n: int, s: int, stream: Stream | None) -> None:
        with self._span("download", s, n):
            self.best[s].get(self.got[n - 1], stream)

    def _groups(self) -> Iterator[list[tuple[int, int]]]:
        """(frame, stream), as many frames as there are streams."""
        count = len(self.streams)
        for first in range(1, len(self.frames), count):
            yield [(n, n - first) for n in range(first, min(first + count, len(self.frames)))]

    def _one_loop(self) -> None:
        for n, s in itertools.chain.from_iterable(self._groups()):
            self._upload(n, s, self.streams[s])
            self._kernel(n, s)
            self._download(n, s, self.streams[s])

    def _separate_loops(self) -> None:
        for group in self._groups():
            for n, s in group:
                self._upload(n, s, self.streams[s])
            for n, s in group:
                self._kernel(n, s)
            for n, s in group:
                self._download(n, s, self.streams[s])

    def _locked(self) -> None:
        """Two threads send frames; who has the lock keeps it until all CUDA blocks have done with the frame."""
        numbers = iter(range(1, len(self.frames)))
        threads = [threading.Thread(target=self._sender, args=(numbers,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _sender(self, numbers: Iterator[int]) -> None:
        try:
            with self.gpu:
                while True:
                    with self.turn:
                        n = next(numbers, 0)
                        if not n:
                            return
                        self._one_at_a_time(n)
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")

    def _one_at_a_time(self, n: int) -> None:
        stream = self.streams[0]
        self.done.fill(0, stream)
        self._upload(n, 0, stream)
        self.gpu.synchronize(stream)
        with self._span("kernel", 0, n):
            handles = [texture.handle for texture in self.textures]
            arguments = [*handles, self.width, self.height, self.best[0], self.done]
            self.gpu.launch(MODULE, "variable_sads_texture", self.grid, (SIDE, SIDE), arguments, stream)
        self.done.get(self.counted, stream)
        self.gpu.synchronize(stream)
        if self.counted[0] != self.grid[0] * self.grid[1]:
            raise RuntimeError(f"{self.counted[0]} of {self.grid[0] * self.grid[1]} CUDA blocks have done")
        self._download(n, 0, stream)
        self.gpu.synchronize(stream)

    def close(self) -> None:
        """Gives arrays and textures back."""
        for texture in self.textures:
            texture.close()
        self.gpu.release(*itertools.chain.from_iterable(self.planes), *self.best, self.done)
