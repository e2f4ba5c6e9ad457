"""Times the CUDA stages one by one with events: median microseconds a launch, ten launches in a row on a busy GPU.

    python benchmarks/cuda_stages.py [--size 1920x1088] [--repeat 50] [--merange 16] [--json FILE]

The frames are synthetic (moving texture with noise); each stage runs alone, inputs resident on the GPU. With a real clip:
cuda_kernels.py.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from h264lite.cpu_simd.bundles import (
    Coarse,
    CodingTools,
    Deblocking,
    DecisionSettings,
    Entries,
    InputPlanes,
    InputRgb,
    IntraChoice,
    LumaReferences,
    Macroblocks,
    Motion,
    OtherCosts,
    Planes,
    PreviousMotion,
    Quantiser,
    References,
    Residual,
    Searches,
    SearchResult,
    SearchStart,
    SliceCounts,
    SliceOrder,
    StrengthData,
)
from h264lite.cpu_simd.layout import COARSE_PAD, ENTRY_BYTES, HEADER_BITS
from h264lite.cuda_src.decide.mode_decision import mark_skipped, mode_decision
from h264lite.cuda_src.entropy.entropy import write_slices
from h264lite.cuda_src.inter.interpolate import extend_borders, interpolate
from h264lite.cuda_src.intra.intra import intra
from h264lite.cuda_src.intra.intra_estimate import intra_estimate
from h264lite.cuda_src.loopfilter.deblock import deblock
from h264lite.cuda_src.residual.compact import compact, index_length
from h264lite.cuda_src.residual.inter_residual import inter_residual
from h264lite.cuda_src.runtime import device as device_module
from h264lite.cuda_src.runtime.device import DeviceArray
from h264lite.cuda_src.search.full_search import full_search
from h264lite.cuda_src.search.search_centre import search_centre, subsample
from h264lite.cuda_src.search.subpel_refine import subpel_refine
from h264lite.cuda_src.source.convert import load_i420, load_rgb
from h264lite.cuda_src.source.ssd import ssd
from h264lite.scheduler.devices import why_no_cuda
from h264lite.standard.macroblock import LAST_INTRA, I_4x4, P_16x16

BATCH = 10  # launches between two events


class Filler:
    """Keeps a GPU busy for a millisecond or two, so that the host gets ahead of it: a full search over +-64 of nothing."""

    def __init__(self, gpu: device_module.Device, width: int, height: int) -> None:
        n, far = width * height // 256, gpu.zeros((height + 192, width + 192), np.uint8)
        zero = gpu.zeros((n, 2), np.int16)
        qp = gpu.upload(np.full(n, 24, np.uint8))
        source, start = gpu.zeros((height, width), np.uint8), SearchStart(zero, zero)
        search_result = SearchResult(gpu.array((n, 41), np.int32), gpu.array((n, 41, 2), np.int16))
        self.search = (source, far, 96, start, qp, 64, 0, height // 16, search_result)

    def __call__(self, stream: Any) -> None:
        full_search(*self.search, stream=stream)


class Bench:
    """Inputs on the GPU for one frame size, and one table line for each stage."""

    def __init__(self, gpu: device_module.Device, width: int, height: int, merange: int, repeat: int) -> None:
        self.gpu, self.width, self.height, self.repeat, self.merange = gpu, width, height, repeat, merange
        self.stream = gpu.stream()
        self.pad = -(-(merange + 24) // 16) * 16
        self.rows: list[dict[str, Any]] = []
        rng = np.random.default_rng(1)
        texture = np.cumsum(np.cumsum(rng.normal(0, 2, (height + 64, width + 64)), 0), 1)
        texture = (texture - texture.min()) / np.ptp(texture) * 200 + rng.normal(0, 4, texture.shape)
        self.first = np.clip(texture[:height, :width], 0, 255).astype(np.uint8)
        self.second = np.clip(texture[3 : height + 3, 5 : width + 5] + rng.normal(0, 2, (height, width)), 0, 255)
        self.second = self.second.astype(np.uint8)
        self.rng = rng
        self.n_mb = width * height // 256
        self.occupy = Filler(gpu, width, height)

    def time(self, name: str, call: Callable[[], None], floor: str = "") -> None:
        start, end = self.gpu.event(timing=True), self.gpu.event(timing=True)
        times = []
        for k in range(self.repeat + 3):
            self.occupy(self.stream)  # the host is ahead of the GPU, so that the time between the events is GPU time only
            start.record(self.stream)
            for _ in range(BATCH):
                call()
            end.record(self.stream)
            end.synchronize()
            if k >= 3:
                times.append(1000 * start.time_till(end) / BATCH)
        one = statistics.median(times)
        row = {"stage": name, "median_us": round(one, 1), "least_us": round(min(times), 1)}
        row["goal"] = floor
        self.rows.append(row)
        print(f"{name:34s} {one:8.1f} {min(times):8.1f}   {floor}", flush=True)

    def qp(self) -> Any:
        """QP 27 for each macroblock."""
        return self.gpu.upload(np.full(self.n_mb, 27, np.uint8))

    def run(self) -> None:
        gpu, pad, stream = self.gpu, self.pad, self.stream
        rows = self.height // 16
        luma = np.zeros((4, self.height + 2 * pad, self.width + 2 * pad), np.uint8)
        luma[0] = np.pad(self.first, pad, mode="edge")
        on_gpu = gpu.upload(luma)
        source = gpu.upload(self.second)
        zero = gpu.upload(np.zeros((self.n_mb, 2), np.int16))
        qp = self.qp()
        cost = gpu.array((self.n_mb, 41), np.int32)
        mv = gpu.array((self.n_mb, 41, 2), np.int16)
        start, result = SearchStart(zero, zero), SearchResult(cost, mv)
        print(f"{'stage':34s} {'median':>8s} {'least':>8s}   goal (us)")
        self.time("extend_borders", lambda: extend_borders(on_gpu[0], pad, stream=stream))
        self.time("interpolate", lambda: interpolate(on_gpu, pad, 0, rows, stream=stream), "25")
        for merange in sorted({16, self.merange}):
            self.time(
                f"full_search +-{merange}",
                lambda r=merange: full_search(source, on_gpu[0], pad, start, qp, r, 0, rows, result, stream=stream),
                "70, 55" if merange == 16 else "",
            )
        full_search(source, on_gpu[0], pad, start, qp, 16, 0, rows, result, stream=stream)
        searched, vectors = cost.get(stream=stream), mv.get(stream=stream)
        for subme in (1, 2, 3, 4, 5):
            cost.put(searched, stream)
            mv.put(vectors, stream)

            def refine(level: int = subme) -> None:
                subpel_refine(source, on_gpu, pad, zero, qp, level, 0, rows, result, stream=stream)

            self.time(f"subpel_refine, subme {subme}", refine, "100" if subme == 5 else "")
        self.decide(rows, source, on_gpu, zero, cost, mv)
        self.intra(rows, source)
        self.deblock(rows)

    def decide(self, rows: int, source: Any, luma: Any, zero: Any, cost: Any, mv: Any) -> None:
        """Centres, mode decision and residual, from the results of search and refinement."""
        gpu, n, pad, stream = self.gpu, self.n_mb, self.pad, self.stream
        chroma = [np.ascontiguousarray(p[::2, ::2]) for p in (self.first, self.second)]
        size = self.height // 4 + 2 * COARSE_PAD, self.width // 4 + 2 * COARSE_PAD
        coarse = Coarse(*(gpu.array(size, np.uint8) for _ in range(2)))
        start = SearchStart(gpu.array((n, 2), np.int16), gpu.array((n, 2), np.int16))
        still = gpu.upload(np.zeros((n, 4), np.int8)), gpu.upload(np.zeros((n, 16, 2), np.int16))
        prior = PreviousMotion(*still, *(gpu.upload(np.ones(1, np.int32)) for _ in range(2)), gpu.array((2,), np.int16))
        chosen = [gpu.array((n, 4), np.int8), gpu.array((n, 16, 2), np.int16)]
        mb_type, sub, cbp = gpu.array((n,), np.uint8), gpu.array((n, 4), np.uint8), gpu.array((n,), np.uint8)
        motion = Motion(mb_type, sub, *chosen)
        slots, slices = gpu.upload(np.zeros(1, np.int32)), gpu.upload(np.zeros(n, np.int32))
        intra, qp = gpu.upload(np.full(n, 100000, np.int32)), self.qp()
        self.time("subsample", lambda: subsample(source, luma[0], pad, 0, rows, coarse, stream=stream))
        self.time(
            "search_centre",
            lambda: search_centre(source, luma[0], pad, coarse, prior, qp, 16, 128, 0, rows, start, stream=stream),
        )
        searches, settings = Searches(cost.reshape(1, n, 41), mv.reshape(1, n, 41, 2), zero), DecisionSettings(5, 1, 128, 31)
        width, pool = self.width // 16, luma.reshape(1, *luma.shape)
        self.time(
            "mode_decision",
            lambda: mode_decision(
                source,
                LumaReferences(pool, slots, pad, 1),
                searches,
                OtherCosts(intra, intra),
                slices,
                qp,
                settings,
                None,
                0,
                rows,
                motion,
                stream=stream,
            ),
        )
        sources = Planes(source, *(gpu.upload(chroma[1]) for _ in range(2)))
        refs = np.stack([np.pad(chroma[0], pad // 2, mode="edge")] * 2)[None]
        rec = Planes(*(gpu.array(p.shape, np.uint8) for p in sources))
        residual = Residual(gpu.array((n, 27, 16), np.int16), gpu.array((n, 24), np.uint8), gpu.array((n,), np.uint8), cbp)
        weights, quantiser = gpu.upload(np.zeros(9, np.int32)), Quantiser(qp, 0)
        references = References(pool, gpu.upload(refs), slots, slots, weights, pad, 1)
        self.time(
            "inter_residual",
            lambda: inter_residual(
                sources, references, motion, quantiser, CodingTools(1, 0, 0), 0, rows, rec, residual, stream=stream
            ),
            "40",
        )
        self.time("mark_skipped", lambda: mark_skipped(slices, *chosen, cbp, width, 0, rows, mb_type, stream=stream))
        layout = gpu.upload(np.array([0, n], np.int32)), gpu.upload(np.array([27, *[0] * (HEADER_BITS - 1), 40], np.int32))
        modes, mode = gpu.upload(np.full((n, 16), 2, np.int8)), gpu.upload(np.zeros(n, np.uint8))
        macroblocks = Macroblocks(*motion[:4], modes, mode, mode, cbp, qp, *residual[:3])
        home = gpu.pinned((rows * (width + 1) * ENTRY_BYTES,), np.uint8)  # as in an encode, the host's
        data, sizes = DeviceArray(gpu, home.ctypes.data, home.shape, home.dtype, home), gpu.array((rows,), np.int32)
        bins = gpu.array((rows,), np.int32)
        self.time(
            "write_slices",
            lambda: write_slices(
                slices,
                *layout,
                Entries(1, None),
                width,
                sources,
                macroblocks,
                CodingTools(1, 0, 0),
                data,
                SliceCounts(sizes, bins),
                stream,
            ),
            "10 to 20",
        )
        print(f"    {int(sizes.get()[0]) / 1000:.0f} kbit")

    def intra(self, rows: int, source: Any) -> None:
        """Intra in I and P frames; input and output."""
        gpu, n, stream, width = self.gpu, self.n_mb, self.stream, self.width // 16
        planes = [source, *(gpu.upload(np.ascontiguousarray(self.second[::2, ::2])) for _ in range(2))]
        rec = [gpu.upload(p.get()) for p in planes]
        cost, slices = gpu.array((n,), np.int32), gpu.upload(np.zeros(n, np.int32))
        qp, modes = self.qp(), gpu.array((n, 16), np.int8)
        mode, chroma, cbp = (gpu.array((n,), np.uint8) for _ in range(3))
        levels, total, flags = gpu.array((n, 27, 16), np.int16), gpu.array((n, 24), np.uint8), gpu.array((n,), np.uint8)
        inter = gpu.upload(np.full((1, n, 41), 1 << 20, np.int32))
        given = gpu.array((n, 16), np.uint8)
        self.time(
            "intra_estimate",
            lambda: intra_estimate(source, qp, inter, 1, slices, CodingTools(1, 0, 0), 0, rows, cost, given, stream=stream),
        )
        for share, n_ref in ((0.05, 1), (0.3, 1), (1.0, 0)):
            types = gpu.upload(np.where(self.rng.random(n) < share, 0, 4).astype(np.uint8))
            coding = Quantiser(qp, 0), CodingTools(1, 0, 0), Planes(*rec), Residual(levels, total, flags, cbp)
            results = IntraChoice(types, modes, mode, chroma), *coding
            self.time(
                f"intra, {100 * share:.0f} % of macroblocks",
                lambda r=results, n_ref=n_ref: intra(
                    Planes(*planes), SliceOrder(slices, None), n_ref, given, 0, n, *r, stream=stream
                ),
            )
        index, blocks = gpu.array((index_length(width, rows),), np.uint32), gpu.array((27 * n, 16), np.int16)
        self.time("compact", lambda: compact(types, cbp, total, levels, width, index, blocks, stream=stream))
        errors = gpu.array((rows,), np.int64)
        high, wide = self.height, self.width
        self.time("ssd, luma", lambda: ssd(source, rec[0], 0, high, wide, 16, 0, rows, errors, stream=stream))
        params = gpu.upload(np.array([27], np.int32))
        i420 = InputPlanes(*planes, wide, wide // 2, 1)
        self.time("load_i420", lambda: load_i420(i420, wide, high, params, Planes(*rec), qp, stream=stream))
        self.time_rgb(params, Planes(*rec), qp)

    def time_rgb(self, params: DeviceArray, out: Planes, qp: DeviceArray) -> None:
        """RGB in rows of pixels and in planes, as users have it."""
        gpu, high, wide = self.gpu, self.height, self.width
        flag, scale = gpu.upload(np.zeros(1, np.int32)), int(np.float32(255).view(np.int32))
        for dtype, size, planar in (("uint8", 1, False), ("uint8", 1, True), ("bfloat16", 2, True), ("float32", 4, False)):
            samples = gpu.upload(np.zeros(3 * size * high * wide, np.uint8))
            colour, step = (size * high * wide, size) if planar else (size, 3 * size)
            colours = [DeviceArray(gpu, samples.ptr + k * colour, (1,), np.uint8, samples) for k in range(3)]
            rgb = InputRgb(*colours, dtype, step, step * wide, 0, scale, flag)
            name = f"load_rgb, {dtype}{', planes' if planar else ''}"
            self.time(name, lambda rgb=rgb: load_rgb(rgb, wide, high, params, out, qp, stream=self.stream))

    def deblock(self, rows: int) -> None:
        gpu, rng, n = self.gpu, self.rng, self.n_mb
        chroma = [np.ascontiguousarray(self.second[::2, ::2]) for _ in range(2)]
        rec = [gpu.upload(p) for p in (self.second, *chroma)]
        pad = self.pad
        borders = (pad, pad // 2, pad // 2)
        out = [gpu.array((p.shape[0] + 2 * b, p.shape[1] + 2 * b), np.uint8) for p, b in zip(rec, borders)]
        mb_type = np.where(rng.random(n) < 0.05, I_4x4, P_16x16).astype(np.uint8)
        state = [
            mb_type,
            np.where(mb_type <= LAST_INTRA, -1, 0).astype(np.int8).repeat(4).reshape(n, 4),
            rng.integers(-3, 4, (n, 1, 2)).repeat(16, 1).astype(np.int16),
            (rng.random((n, 24)) < 0.3).astype(np.uint8),
            np.zeros(n, np.uint8),
            np.full(n, 27, np.uint8),
        ]
        *arrays, qp = (gpu.upload(a) for a in state)
        how = Quantiser(qp, 0), Deblocking(0, 0, 0)
        arguments = Planes(*rec), StrengthData(*arrays), *how, gpu.upload(np.zeros(n, np.int32))
        self.time("deblock", lambda: deblock(*arguments, 0, rows, Planes(*out), stream=self.stream), "30")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1920x1088")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--merange", type=int, default=16)
    parser.add_argument("--json")
    options = parser.parse_args()
    missing = why_no_cuda()
    if missing:
        sys.exit(missing)
    width, height = (int(n) for n in options.size.split("x"))
    gpu = device_module.Device()
    with gpu:
        print(f"{gpu.name}, {gpu.multiprocessors} multiprocessors, {width}x{height}")
        bench = Bench(gpu, width, height, options.merange, options.repeat)
        bench.run()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": gpu.name, "size": options.size, "stages": bench.rows}, file, indent=1)
    gpu.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
