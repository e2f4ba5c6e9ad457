"""Papers 000 and 002: the ladder of full searches of 32x32 blocks, and the step search; launches fsbm.cu."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from h264lite.cuda_src.runtime.array import DType, Stream
from h264lite.cuda_src.runtime.device import Device, DeviceArray

from . import scalar

MODULE = "papers/fsbm"
SIZE = 32
COST_OUTSIDE = 9999999  # of a candidate that leaves the picture, the figure of Algorithm 1
Finish = Callable[[], tuple[int, int, int]]


@dataclass(frozen=True)
class Variant:
    """One row of tables I to IV. borders: what becomes of candidates that leave the picture: `repeat` looks at all of
    them, with the picture's edges repeated; `cpu` too, but searches blocks that have any on the CPU; `leave out` does.
    """

    title: str
    search: str  # the method of Ladder
    borders: str = "leave out"
    resident: bool = True  # frames stay on the GPU, and blocks are cut there
    pinned: bool = False
    streams: int = 1
    grid: int = 0  # of the step search
    figure: str = ""  # the table in print that has it


FSBM = {
    "parallel-sad": Variant("Parallel SAD", "each", "repeat", resident=False, figure="I"),
    "resident": Variant("Less memory overhead", "each", "repeat", figure="I"),
    "borders-on-cpu": Variant("Borders on CPU", "each", "cpu", figure="I"),
    "parallel-fsbm": Variant("Parallel FSBM", "whole", "cpu", figure="I, II"),
    "streams-sad-2": Variant("Streams (SAD), 2", "streams_sad", "cpu", streams=2, figure="II"),
    "streams-sad": Variant("Streams (SAD), 4", "streams_sad", "cpu", streams=4, figure="II"),
    "streams-result-2": Variant("Streams (Result), 2", "streams_result", "cpu", streams=2, figure="II"),
    "streams-result": Variant("Streams (Result), 4", "streams_result", "cpu", streams=4, figure="II"),
    "all-on-gpu": Variant("All on GPU", "inside", figure="II"),
    "pinned": Variant("Pinned memory", "inside", pinned=True, figure="II"),
    "threads-in-z": Variant("Threads in z", "z", pinned=True, figure="II, V"),
}
STEP = {
    f"step-{grid}{'-z' if z else ''}": Variant(f"{grid} x {grid}{' + z' if z else ' block'}", "step", pinned=z, grid=grid,
                                               figure="III, IV") for z in (False, True) for grid in (3, 7, 13)
}  # fmt: skip
SHIFT = {3: 1, 7: 2, 13: 3}  # of the distance, from iteration to iteration
SLOW = ("each",)  # a launch a candidate


class Ladder:
    """One variant at work on a clip. frames: uint8[H, W], lumas; candidates -reach .. reach - 1."""

    def __init__(self, gpu: Device, variant: Variant, frames: Sequence[np.ndarray], reach: int = 64) -> None:
        if reach not in (8, 16, 32, 64):
            raise ValueError(f"reach {reach}: 8, 16, 32 or 64")
        if variant.grid and reach != 64:
            raise ValueError(f"reach {reach}: the step search has 64")
        self.gpu, self.variant, self.reach, self.n = gpu, variant, reach, 2 * reach
        self.height, self.width = frames[0].shape
        self.stride = 2 * reach + SIZE
        self.frames = [self._staged(frame) for frame in frames]
        self.blocks_across = -(-self.width // SIZE)
        self.n_blocks = self.blocks_across * -(-self.height // SIZE)
        self.on_gpu = [gpu.array(frames[0].shape, np.uint8) for _ in range(2)]
        self.block, self.area = gpu.array((SIZE, SIZE), np.uint8), gpu.array((self.stride, self.stride), np.uint8)
        shape = (variant.grid,) * 2 if variant.grid else (SIZE,) if variant.search == "each" else (self.n, self.n)
        self.results, self.got = gpu.array(shape, np.int32), self._host(shape, np.int32)
        self.lines, self.best = gpu.array((self.n,), np.uint32), gpu.array((1,), np.uint32)
        self.got_best = self._host((1,), np.uint32)
        self.streams = [gpu.stream() for _ in range(variant.streams)]
        self.events = [gpu.event() for _ in range(variant.streams + 1)]

    def _host(self, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
        return self.gpu.pinned(shape, dtype) if self.variant.pinned else np.empty(shape, dtype)

    def _staged(self, frame: np.ndarray) -> np.ndarray:
        staged = self._host(frame.shape, np.uint8)
        staged[:] = frame
        return staged

    def run(self, pictures: int = 0, blocks: Sequence[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Search all pictures (or the first ones) in those before them: vectors int16[p, k, 2], SADs int32[p, k]."""
        last = (pictures or len(self.frames) - 1) + 1
        wanted = list(range(self.n_blocks) if blocks is None else blocks)
        vectors, sads = np.zeros((last - 1, len(wanted), 2), np.int16), np.zeros((last - 1, len(wanted)), np.int32)
        search = getattr(self, f"_{self.variant.search}")
        pending: tuple[int, int, Finish] | None = None
        self._load(0)
        for n in range(1, last):
            self._load(n)
            for k, b in enumerate(wanted):
                x, y = b % self.blocks_across * SIZE, b // self.blocks_across * SIZE
                w, h = min(SIZE, self.width - x), min(SIZE, self.height - y)
                if self.variant.borders == "cpu" and self._crosses(x, y, w, h):
                    scalar.full(
                        self.frames[n],
                        self.frames[n - 1],
                        SIZE,
                        SIZE,
                        self.reach,
                        False,
                        np.array([b]),
                        vectors[n - 1, k : k + 1],
                        sads[n - 1, k : k + 1],
                    )
                    continue
                self._take(pending, vectors, sads)
                self._cut(n, x, y)
                pending = (n - 1, k, search(x, y, w, h))
            self._take(pending, vectors, sads)
            pending = None
        return vectors, sads

    def _take(self, pending: tuple[int, int, Finish] | None, vectors: np.ndarray, sads: np.ndarray) -> None:
        if pending:
            n, k, finish = pending
            vectors[n, k, 0], vectors[n, k, 1], sads[n, k] = finish()

    def _load(self, n: int) -> None:
        """Picture n becomes the current one, the one before it the reference."""
        self.on_gpu.reverse()
        if self.variant.resident:
            self.on_gpu[0].put(self.frames[n], self.streams[0])
        elif n:
            self.padded = np.pad(self.frames[n - 1], self.reach, mode="edge")
            down, right = -self.height % SIZE + SIZE, -self.width % SIZE + SIZE
            self.padded = np.pad(self.padded, ((0, down), (0, right)), mode="edge")
            self.whole = np.pad(self.frames[n], ((0, down), (0, right)))

    def _crosses(self, x: int, y: int, w: int, h: int) -> bool:
        """Whether the search area crosses the picture's border."""
        r = self.reach
        return x < r or y < r or x + w + r - 1 > self.width or y + h + r - 1 > self.height

    def _cut(self, n: int, x: int, y: int) -> None:
        """The block of the current picture and its search area."""
        stride, first = self.stride, self.streams[0]
        if not self.variant.resident:
            self.block.put(np.ascontiguousarray(self.whole[y : y + SIZE, x : x + SIZE]), first)
            self.area.put(np.ascontiguousarray(self.padded[y : y + stride, x : x + stride]), first)
            return
        sizes = [self.width, self.height]
        self._launch("get_block", (SIZE,), (SIZE,), [self.on_gpu[0], *sizes, x, y, SIZE, self.block])
        x, y = x - self.reach, y - self.reach
        self._launch("get_block", (stride,), (SIZE,), [self.on_gpu[1], *sizes, x, y, stride, self.area])

    def _launch(self, kernel: str, grid: tuple, block: tuple, arguments: list, stream: Stream | None = None) -> None:
        self.gpu.launch(MODULE, kernel, grid, block, arguments, stream or self.streams[0])

    def _fetch(self, array: DeviceArray, host: np.ndarray, stream: Stream | None = None) -> np.ndarray:
        array.get(host, stream or self.streams[0])
        self.gpu.synchronize(stream or self.streams[0])
        return host

    def _result(self, number: int, sad: int) -> tuple[int, int, int]:
        return number % self.n - self.reach, number // self.n - self.reach, sad

    # ---- the searches; each returns what waits for the best candidate
    def _each(self, x: int, y: int, w: int, h: int) -> Finish:
        """One launch and one download a candidate; the last sum and the comparison on the CPU."""
        best, number = COST_OUTSIDE, 0
        for k in range(self.n * self.n):
            arguments = [self.block, self.area, self.stride, k % self.n, k // self.n, w, h, self.results]
            self._launch("sad_rows", (1, SIZE), (SIZE,), arguments)
            sad = int(self._fetch(self.results, self.got).sum())
            if sad < best:
                best, number = sad, k
        return lambda: self._result(number, best)

    def _whole(self, x: int, y: int, w: int, h: int) -> Finish:
        """A thread a candidate; the comparison on the CPU."""
        arguments = [self.block, self.area, self.stride, 0, w, h, self.results]
        self._launch("sad_all", (1, self.n), (self.n,), arguments)
        return self._compare

    def _compare(self) -> tuple[int, int, int]:
        got = self._fetch(self.results, self.got).ravel()
        number = int(got.argmin())
        return self._result(number, int(got[number]))

    def _inside(self, x: int, y: int, w: int, h: int) -> Finish:
        """The same without the CPU: candidates that leave the frame get a SAD that never wins."""
        arguments = [self.block, self.area, self.stride, w, h, x - self.reach, y - self.reach, self.width, self.height]
        self._launch("sad_inside", (1, self.n), (self.n,), [*arguments, self.results])
        return self._compare

    def _z(self, x: int, y: int, w: int, h: int) -> Finish:
        """Algorithm 1: a CUDA block of 32 threads in z a candidate."""
        arguments = [self.block, self.area, self.stride, w, h, x - self.reach, y - self.reach, self.width, self.height]
        self._launch("sad_z", (self.n, self.n), (1, 1, SIZE), [*arguments, self.results])
        return self._compare

    def _fork(self) -> list[tuple[Any, int, int]]:
        """Other streams wait for the block and area; each with its first row and number of rows of candidates."""
        self.gpu.record(self.events[-1], self.streams[0])
        for stream in self.streams[1:]:
            self.gpu.wait(stream, self.events[-1])
        count = self.n // len(self.streams)
        return [(stream, s * count, count) for s, stream in enumerate(self.streams)]

    def _streams_sad(self, x: int, y: int, w: int, h: int) -> Finish:
        """The array of SADs shared out over streams; the CPU compares a part while the next ones come."""
        shares = self._fork()
        for stream, first, count in shares:
            arguments = [self.block, self.area, self.stride, first, w, h, self.results]
            self._launch("sad_all", (1, count), (self.n,), arguments, stream)
            self.results[first : first + count].get(self.got[first : first + count], stream)

        def finish() -> tuple[int, int, int]:
            best, number = COST_OUTSIDE, 0
            for stream, first, count in shares:
                self.gpu.synchronize(stream)
                sads = self.got[first : first + count].ravel()
                k = int(sads.argmin())
                if sads[k] < best:
                    best, number = int(sads[k]), first * self.n + k
            return self._result(number, best)

        return finish

    def _streams_result(self, x: int, y: int, w: int, h: int) -> Finish:
        """SADs and minima of rows in streams, then one kernel for the last minimum; only that comes down."""
        first_stream = self.streams[0]
        for event, (stream, first, count) in zip(self.events, self._fork()):
            arguments = [self.block, self.area, self.stride, first, w, h, self.results]
            self._launch("sad_all", (1, count), (self.n,), arguments, stream)
            self._launch("row_minimum", (count,), (self.n,), [self.results, first, self.lines], stream)
            self.gpu.record(event, stream)
            self.gpu.wait(first_stream, event)
        self._launch("last_minimum", (1,), (self.n,), [self.lines, self.best])
        self.best.get(self.got_best, first_stream)

        def finish() -> tuple[int, int, int]:
            self.gpu.synchronize(first_stream)
            key = int(self.got_best[0])
            return self._result(key & (1 << 14) - 1, key >> 14)

        return finish

    def _step(self, x: int, y: int, w: int, h: int) -> Finish:
        """Step search: an iteration a launch, its candidates compared on the CPU, because the next starts at the best."""
        grid, threads_z = self.variant.grid, self.variant.pinned
        name, blocks, threads = "step_block", (1, 1, 1), (grid, grid)
        if threads_z:
            name, blocks, threads = "step_z", (1, grid, grid), (256, 1)
        apart, best, best_x, best_y = self.reach >> SHIFT[grid], COST_OUTSIDE, self.reach, self.reach
        first = True
        while apart >= 1:
            where = [x - self.reach, y - self.reach, self.width, self.height]
            arguments = [self.block, self.area, self.stride, best_x, best_y, apart, w, h, *where, self.results]
            self._launch(name, blocks, threads, arguments)
            got = self._fetch(self.results, self.got).ravel()
            if first:
                best, first = int(got[grid * grid // 2]), False
            k = int(got.argmin())
            if got[k] < best:
                best = int(got[k])
                best_x, best_y = best_x + (k % grid - grid // 2) * apart, best_y + (k // grid - grid // 2) * apart
            apart >>= SHIFT[grid]
        return lambda: (best_x - self.reach, best_y - self.reach, best)
