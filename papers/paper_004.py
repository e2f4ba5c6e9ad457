"""Paper 004: the inter loop's choices one beside the other, and the time of each module on CPU and GPU."""

# ruff: noqa: B023  a lambda is called in the round of the loop that makes it
import statistics
from functools import partial
from typing import Any

import numpy as np
from h264lite.cpu_simd.bundles import Deblocking, Planes, Quantiser, SearchResult, SearchStart, StrengthData
from h264lite.cpu_simd.simd.vector import PORTABLE, SIMD_LEVEL, WIDE
from h264lite.cuda_src.inter.interpolate import interpolate
from h264lite.cuda_src.loopfilter.deblock import deblock
from h264lite.cuda_src.runtime.device import Device
from h264lite.cuda_src.search.full_search import full_search
from h264lite.cuda_src.search.subpel_refine import subpel_refine
from h264lite.standard.macroblock import LAST_INTRA, I_4x4, P_16x16

from .kernels import loop, scalar, wavefront
from .setting import Clip, Product, Setting, gpu_time, sads, wall
from .table import Table

CLIPS = ("foreman_352x288_30", "crowd_run_1280x720_50", "driving_1920x1080_30")
REACHES = (16, 32, 64)
CASES = ((0, 16, 1), (0, 32, 1), (0, 16, 4), (1, 16, 1), (2, 16, 1), (2, 32, 1), (2, 16, 4))  # clip, range, references
MODULES = ("interpolate", "search_centre", "full_search", "subpel_refine", "intra_estimate", "mode_decision",
           "inter_residual", "intra", "deblock", "entropy")  # fmt: skip


class Work:
    """Two pictures on the GPU, with half-sample planes, and arrays for what is found."""

    def __init__(self, gpu: Device, clip: Clip, reach: int) -> None:
        self.gpu, product = gpu, Product(clip.frames[:2], reach)
        self.pad, self.rows, n = product.pad, product.rows, product.n_mb
        self.source = gpu.upload(product.sources[1])
        luma = np.zeros((4, *product.references[0].shape), np.uint8)
        luma[0] = product.references[0]
        self.luma = gpu.upload(luma)
        interpolate(self.luma, self.pad, 0, self.rows)
        self.zero = gpu.upload(product.zero)
        self.qp = gpu.upload(product.qp)
        self.cost, self.mv = gpu.array((n, 41), np.int32), gpu.array((n, 41, 2), np.int16)
        self.refined = gpu.array((n, 41, 2), np.int16)
        self.reach = reach

    def product(self, stream: Any = None) -> None:
        """h264lite's search."""
        start, target = SearchStart(self.zero, self.zero), SearchResult(self.cost, self.mv)
        full_search(self.source, self.luma[0], self.pad, start, self.qp, self.reach, 0, self.rows, target, stream=stream)

    def close(self) -> None:
        """Gives the arrays back."""
        self.gpu.synchronize()
        self.gpu.release(self.source, self.luma, self.zero, self.qp, self.cost, self.mv, self.refined)


def run(setting: Setting) -> list[Table]:
    """Search, refinement, deblocking, the CPU's vectors, the modules."""
    clips = setting.clips(*CLIPS, frames=7)
    tables = [_cpu_searches(clips)]
    if setting.gpu:
        tables = [_searches(setting, clips), _refinement(setting, clips), _deblocking(setting, clips), *tables]
    return [*tables, _modules(setting, clips)]


def _size(clip: Clip) -> str:
    return f"{clip.shape[1]}x{clip.shape[0]}"


def _searches(setting: Setting, clips: list[Clip]) -> Table:
    gpu = setting.gpu
    assert gpu is not None
    columns = ["size, range", "no reuse, us", "reuse, whole window, us", "reuse, tiles, us", "reuse is faster by",
               "whole window is faster by", "h264lite, us", "h264lite is faster by"]  # fmt: skip
    rows: list[list] = []
    for clip in clips:
        for reach in [r for r in REACHES if r <= setting.reach] or [setting.reach]:
            work = Work(gpu, clip, reach)
            times, fields = {}, []
            for name in loop.SEARCHES:
                times[name] = gpu_time(
                    gpu,
                    lambda s, n=name: loop.search(  # type: ignore[misc]
                        n, work.source, work.luma[0], work.pad, reach, work.cost, work.mv, s
                    ),
                    setting.repeats,
                )
                fields.append((work.cost.get(), work.mv.get()))
            product_time = gpu_time(gpu, work.product, setting.repeats)
            fields.append((sads(work.cost.get(), work.mv.get()), work.mv.get()))
            assert all(np.array_equal(a, b) for other in fields[:-1] for a, b in zip(other, fields[-1]))
            best = min(times["whole"], times["tiles"])
            rows.append(
                [
                    f"{_size(clip)}, +-{reach}",
                    *times.values(),
                    times["anew"] / times["whole"],
                    times["tiles"] / times["whole"],
                    product_time,
                    best / product_time,
                ]
            )
            work.close()
    return Table("004-search", "Full search: SAD reuse, and what of the window is cached", columns, rows, columns[1:4])


def _refinement(setting: Setting, clips: list[Clip]) -> Table:
    gpu = setting.gpu
    assert gpu is not None
    columns = ["size", "seven streams, us", "one launch, us", "one launch is faster by", "h264lite, SAD and SAD, us",
               "h264lite is faster by"]  # fmt: skip
    rows: list[list] = []
    streams = [gpu.stream() for _ in loop.COUNTS]
    for clip in clips:
        work = Work(gpu, clip, 16)
        work.product()
        times = []
        for own_streams in (streams, ()):
            times.append(
                gpu_time(
                    gpu,
                    lambda s, own_streams=own_streams: loop.refine(  # type: ignore[misc]
                        work.source, work.luma, work.pad, work.mv, work.cost, work.refined, own_streams, s
                    ),
                    setting.repeats,
                )
            )
        work.product()
        vectors = work.mv.get()

        def product(s: Any, work: Work = work) -> None:
            target = SearchResult(work.cost, work.mv)
            subpel_refine(work.source, work.luma, work.pad, work.zero, work.qp, 2, 0, work.rows, target, 15, s)

        fused = gpu_time(gpu, product, setting.repeats)
        work.mv.put(vectors)
        rows.append([_size(clip), *times, times[0] / times[1], fused, min(times) / fused])
        work.close()
    return Table("004-refinement", "Sub-sample refinement: seven streams against one launch", columns, rows, columns[1:3])


def _deblocking(setting: Setting, clips: list[Clip]) -> Table:
    gpu = setting.gpu
    assert gpu is not None
    columns = ["size", "wavefront, us", "tiles (h264lite), us", "tiles are faster by"]
    rows: list[list] = []
    for clip in clips:
        product, rng = Product(clip.frames[:2], 16), np.random.default_rng(1)
        luma = product.sources[1]
        n, rows_of_mb = product.n_mb, product.rows
        half = np.ascontiguousarray(luma[::2, ::2])
        planes = [gpu.upload(p) for p in (luma, half, half)]
        mb_type = np.where(rng.random(n) < 0.05, I_4x4, P_16x16).astype(np.uint8)
        state = [gpu.upload(a) for a in (
            mb_type, np.where(mb_type <= LAST_INTRA, -1, 0).astype(np.int8).repeat(4).reshape(n, 4),
            rng.integers(-3, 4, (n, 1, 2)).repeat(16, 1).astype(np.int16), (rng.random((n, 24)) < 0.3).astype(np.uint8),
            np.zeros(n, np.uint8), np.full(n, 27, np.uint8))]  # fmt: skip
        slices, out = gpu.upload(np.zeros(n, np.int32)), [gpu.array(p.shape, np.uint8) for p in planes]
        times, deblocked = [], []
        whole = partial(wavefront.deblock, planes, state, (0, 0, 0), 0, slices, out)
        choice = Quantiser(state[5], 0), Deblocking(0, 0, 0), slices, 0, rows_of_mb
        tiles = partial(deblock, Planes(*planes), StrengthData(*state[:5]), *choice, Planes(*out))
        for call in (whole, tiles):
            times.append(gpu_time(gpu, call, setting.repeats))
            deblocked.append([p.get() for p in out])
        assert all(np.array_equal(a, b) for a, b in zip(*deblocked))
        rows.append([_size(clip), *times, times[0] / times[1]])
        gpu.synchronize()
        gpu.release(*planes, *state, slices, *out)
    return Table("004-deblocking", "Deblocking: wavefront against tiles", columns, rows, columns[1:3])


def _cpu_searches(clips: list[Clip]) -> Table:
    levels = {"portable": PORTABLE, "AVX2": 1, "widest": SIMD_LEVEL}
    widest = "AVX-512" if SIMD_LEVEL == WIDE else "widest here"
    columns = ["size", "plain loops, 16x16 only, ms", "plain vectors, ms", "AVX2, ms", f"{widest} (h264lite), ms",
               "vectors beside plain loops"]  # fmt: skip
    rows: list[list] = []
    for clip in clips:
        product, blocks = Product(clip.frames[:2], 16), np.arange(-(-clip.shape[1] // 16) * -(-clip.shape[0] // 16))
        sads, vectors = np.zeros(len(blocks), np.int32), np.zeros((len(blocks), 2), np.int16)

        def plain(clip: Clip = clip, blocks: np.ndarray = blocks, out: tuple = (vectors, sads)) -> None:
            scalar.full(clip.frames[1], clip.frames[0], 16, 16, 16, False, blocks, *out)

        plain()
        times, sums = [1000 * wall(plain, 2)], []
        for level in levels.values():
            level = min(level, SIMD_LEVEL)
            sums.append(product.on_cpu(1, level=level))
            times.append(1000 * wall(lambda p=product, v=level: p.on_cpu(1, level=v), 3))  # type: ignore[misc]
        assert len(set(sums)) == 1
        rows.append([_size(clip), *times, times[0] / times[-1]])
    return Table("004-cpu", "Full search on the CPU: plain against vector instructions", columns, rows, columns[1:5])


def modules(clip: Clip, reach: int, references: int, gpu: bool) -> dict[str, float]:
    """Milliseconds a P picture of each stage, median: kernels on the GPU by its timeline, or one CPU thread."""
    from h264lite.encoder.pipeline import Pipeline
    from h264lite.encoder.settings.config import Config
    from h264lite.scheduler.trace import GPU, Trace

    height, width = clip.shape
    config = Config.from_options(
        width=width,
        height=height,
        fps=30,
        qp=27,
        merange=reach,
        ref=references,
        profile="baseline",
        device="cuda" if gpu else "cpu",
        **({} if gpu else {"threads": 1}),
    )
    trace = Trace() if gpu else None
    pipeline = Pipeline(config, trace=trace)
    chroma = np.full(((height + 1) // 2, (width + 1) // 2), 128, np.uint8)
    done = []
    for frame in clip.frames[: references + 3]:
        done += pipeline.encode((np.ascontiguousarray(frame), chroma, chroma))
    done += pipeline.flush()
    pipeline.close()
    seconds_by_stage: dict[str, list[float]] = {}
    for picture in done[references:]:
        for name, spent in picture.stage_seconds.items():
            seconds_by_stage.setdefault(name, []).append(spent)
    if trace:
        entropy = seconds_by_stage.get("entropy", [])
        seconds_by_stage = {"entropy": entropy} if entropy else {}
        for process, _, name, _, seconds, number in trace.spans:
            if process == GPU and number >= references:
                seconds_by_stage.setdefault(name, []).append(seconds)
    return {name: 1000 * statistics.median(values) for name, values in seconds_by_stage.items()}


def _modules(setting: Setting, clips: list[Clip]) -> Table:
    columns, cells = ["module"], []
    for k, reach, references in CASES:
        if k < len(clips):
            for gpu in (False, True) if setting.gpu else (False,):
                columns.append(f"{_size(clips[k])} +-{reach} ref {references}, {'GPU' if gpu else 'CPU'}")
                cells.append(modules(clips[k], reach, references, gpu))
    rows: list[list] = [[name, *(case.get(name) for case in cells)] for name in MODULES]
    rows.append(["all but entropy", *(sum(case.get(name, 0.0) for name in MODULES[:-1]) for case in cells)])
    return Table("004-modules", "Time of each module", columns, rows)
