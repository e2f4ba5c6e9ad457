"""What the measurements share: the GPU or none, the clips, clocks, and the product's own kernels at the papers' work."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from h264lite.cpu_simd.bundles import SearchResult, SearchStart
from h264lite.cpu_simd.search import full_search as cpu
from h264lite.cpu_simd.search import step_search as cpu_step
from h264lite.cuda_src.runtime.device import Device
from h264lite.cuda_src.search.full_search import full_search


@dataclass
class Clip:
    """Lumas uint8[H, W], as many as were asked for."""

    name: str
    frames: list[np.ndarray]

    @property
    def shape(self) -> tuple[int, int]:
        """(H, W)."""
        height, width = self.frames[0].shape
        return height, width


@dataclass
class Setting:
    """GPU: None on the CPU alone. clip: one that the user named, in place of all. budget: seconds for a slow variant."""

    gpu: Device | None = None
    clip: Clip | None = None
    budget: float = 3.0
    repeats: int = 10
    reach: int = 64  # of paper 000, the largest of paper 004
    timelines: dict[str, list[tuple[str, str, float, float]]] = field(default_factory=dict)  # for the plots

    def clips(self, *names: str, frames: int = 3) -> list[Clip]:
        """Clips of $H264LITE_SEQUENCES by name, or made ones of their sizes; the user's clip in place of them all."""
        if self.clip:
            return [Clip(self.clip.name, self.clip.frames[:frames])]
        return [known_clip(name, frames) for name in names]


def known_clip(name: str, frames: int) -> Clip:
    """`foreman_352x288_30` from $H264LITE_SEQUENCES; where it is not, a moving texture of that size."""
    folder = os.environ.get("H264LITE_SEQUENCES", "")
    paths = [p for p in Path(folder).glob(name + ".*") if p.suffix in (".mkv", ".264", ".yuv")] if folder else []
    if paths:
        return read_clip(str(paths[0]), None, frames, name)
    width, height = map(int, name.split("_")[1].split("x"))
    return synthetic_clip(width, height, frames)


def read_clip(path: str, size: tuple[int, int] | None, frames: int, name: str = "") -> Clip:
    """Lumas of a file that `h264lite encode` takes."""
    from h264lite.encoder.files.opening import open_source

    source = open_source(path, size)
    try:
        lumas = [planes[0].copy() for planes in source.frames(0, frames)]
    finally:
        source.close()
    return Clip(name or Path(path).stem, lumas)


def synthetic_clip(width: int, height: int, frames: int) -> Clip:
    """A texture that moves a few samples a picture, with grain; seeded."""
    rng = np.random.default_rng(1)
    scene = np.full((height + 32, width + 32), 128.0)
    for n, a in ((16, 50), (4, 30), (1, 6)):
        cells = rng.uniform(-a, a, (height // n + 40, width // n + 40))
        scene += np.kron(cells, np.ones((n, n)))[: height + 32, : width + 32]
    origins = [(4 + 3 * n % 29, 4 + 5 * n % 27) for n in range(frames)]
    lumas = [scene[y : y + height, x : x + width] + rng.normal(0, 2, (height, width)) for y, x in origins]
    return Clip(f"made_{width}x{height}", [np.clip(luma, 0, 255).astype(np.uint8) for luma in lumas])


# ---- clocks
def wall(call: Callable[[], Any], repeats: int = 1) -> float:
    """Seconds, the median of `repeats`."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def gpu_time(gpu: Device, call: Callable[[Any], None], repeats: int) -> float:
    """Microseconds of what `call(stream)` gives the stream, by events, the median."""
    stream, start, end = gpu.stream(), gpu.event(timing=True), gpu.event(timing=True)
    times = []
    for k in range(repeats + 2):
        gpu.record(start, stream)
        for _ in range(4):
            call(stream)
        gpu.record(end, stream)
        gpu.synchronize(end)
        if k >= 2:
            times.append(1000 * start.time_till(end) / 4)
    return statistics.median(times)


def spread(items: Sequence[int], count: int) -> list[int]:
    """`count` of them, evenly."""
    return [items[(2 * k + 1) * len(items) // (2 * count)] for k in range(count)]


def sampled(call: Callable[[list[int]], Any], strata: Sequence[Sequence[int]], budget: float) -> tuple[float, bool]:
    """Seconds of `call` on all blocks, and whether it was run on all: else on a share of each stratum, scaled up."""
    total, whole = 0.0, True
    for blocks in filter(None, strata):
        probe = spread(blocks, 1)
        call(probe)
        each = wall(partial(call, probe))
        count = min(len(blocks), max(1, int(budget / len(strata) / each)))
        chosen = spread(blocks, count)
        total += wall(partial(call, chosen)) * len(blocks) / count
        whole &= count == len(blocks)
    return total, whole


# ---- the product
def coded(frame: np.ndarray) -> np.ndarray:
    """Edges repeated to whole macroblocks."""
    height, width = frame.shape
    return np.ascontiguousarray(np.pad(frame, ((0, -height % 16), (0, -width % 16)), mode="edge"))


def sads(cost: np.ndarray, mv: np.ndarray) -> np.ndarray:
    """SADs of partitions from costs at QP 0, where a bit of a vector costs LAMBDA[0] = 1; the predictors are 0."""
    bits = 1 + 2 * np.frexp(np.abs(mv))[1]  # se(v), 9.1.1
    return cost - bits.sum(-1, dtype=np.int32)


@dataclass
class Product:
    """h264lite's own search of 41 partitions of 16x16 about zero vectors, QP 0: vectors cost nothing during the search."""

    frames: list[np.ndarray]
    reach: int

    def __post_init__(self) -> None:
        self.pad = -(-(self.reach + 24) // 16) * 16
        self.sources = [coded(frame) for frame in self.frames]
        self.references = [np.pad(source, self.pad, mode="edge") for source in self.sources]
        self.rows, self.n_mb = self.sources[0].shape[0] // 16, self.sources[0].size // 256
        self.zero = np.zeros((self.n_mb, 2), np.int16)
        self.qp = np.zeros(self.n_mb, np.uint8)
        self.cost, self.mv = np.zeros((self.n_mb, 41), np.int32), np.zeros((self.n_mb, 41, 2), np.int16)

    def on_cpu(self, n: int, grid: int = 0, level: int = cpu.SIMD_LEVEL) -> int:
        """Picture n in the one before it, one thread: the sum of the SADs of 16x16. grid: in steps."""
        start, search_result = SearchStart(self.zero, self.zero), SearchResult(self.cost, self.mv)
        where = self.sources[n], self.references[n - 1], self.pad, start, self.qp, self.reach
        if grid:
            cpu_step.step_search(*where, grid, 0, self.rows, search_result, level)
        else:
            cpu.full_search(*where, 0, self.rows, search_result, level=level)
        return int(sads(self.cost[:, 40], self.mv[:, 40]).sum())

    def clip_on_cpu(self, grid: int = 0) -> tuple[float, int]:
        """Seconds and residue of the clip; the kernel is compiled before."""
        self.on_cpu(1, grid)
        start = time.perf_counter()
        residue = sum(self.on_cpu(n, grid) for n in range(1, len(self.frames)))
        return time.perf_counter() - start, residue

    def clip_on_gpu(self, gpu: Device, repeats: int = 5) -> tuple[float, int]:
        """Seconds with copies from and to pinned memory, and residue, of the clip."""
        stream = gpu.stream()
        sources, references = ([self._pinned(gpu, a) for a in arrays] for arrays in (self.sources, self.references))
        source, reference = gpu.array(sources[0].shape, np.uint8), gpu.array(references[0].shape, np.uint8)
        zero, qp = gpu.upload(self.zero), gpu.upload(self.qp)
        cost, mv = gpu.array(self.cost.shape, np.int32), gpu.array(self.mv.shape, np.int16)
        got_cost, got_mv = gpu.pinned(self.cost.shape, np.int32), gpu.pinned(self.mv.shape, np.int16)

        def clip(residues: list[int] | None = None) -> None:
            for n in range(1, len(self.frames)):
                source.put(sources[n], stream)
                reference.put(references[n - 1], stream)
                start, search_result = SearchStart(zero, zero), SearchResult(cost, mv)
                full_search(source, reference, self.pad, start, qp, self.reach, 0, self.rows, search_result, stream=stream)
                cost.get(got_cost, stream)
                mv.get(got_mv, stream)
                gpu.synchronize(stream)
                if residues is not None:
                    residues.append(int(sads(got_cost[:, 40], got_mv[:, 40]).sum()))

        residues: list[int] = []
        clip(residues)
        return wall(clip, repeats), sum(residues)

    @staticmethod
    def _pinned(gpu: Device, array: np.ndarray) -> np.ndarray:
        staged = gpu.pinned(array.shape, np.uint8)
        staged[:] = array
        return staged
