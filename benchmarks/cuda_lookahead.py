"""The lookahead on a GPU: time by kernel and of a frame, time of the host, and the rate of adaptive beside fixed types.

    H264LITE_SEQUENCES=... python benchmarks/cuda_lookahead.py [--size 1920x1080] [--frames 300] [--repeat 20] [--json FILE]

Frames are those of cuda_loop.py. Kernels: medians of events around ten launches in a row on a busy GPU, each of so many jobs.
A frame: what `--bframes 3` asks for with --b-adapt 1 and 2, from the first launch of a batch to the
sums on the host, alone on the GPU; host: the calls of a frame, which wait for none. Rates: encodes from memory, by turns.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from h264lite.benchmarks.cuda_loop import load, planes
from h264lite.benchmarks.cuda_stages import BATCH, Filler
from h264lite.cpu_simd.bundles import HalfSize
from h264lite.cpu_simd.lookahead.half_size import half_size_arrays
from h264lite.cuda_src.lookahead import lookahead
from h264lite.cuda_src.lookahead.half_size import half_size
from h264lite.cuda_src.runtime.device import Device, DeviceArray
from h264lite.encoder.encoder import Encoder
from h264lite.scheduler.devices import why_no_cuda
from h264lite.scheduler.lookahead.costs import position_between
from h264lite.scheduler.lookahead.gpu_costs import GpuCosts

B_ADAPT = {  # questions about frame n of `--bframes 3`: the most that a frame of --b-adapt 1 asks, and those of 2
    1: ((1, 0), (4, 0), (4, 0, 2), (2, 0, 1)),
    2: ((1, 0), (2, 0), (3, 0), (4, 0), (2, 0, 1), (3, 0, 2), (4, 0, 2)),
}
RATES = (
    ("fixed types", {"b_adapt": 0, "scenecut": 0}),
    ("--b-adapt 1", {"b_adapt": 1, "scenecut": 0}),
    ("--b-adapt 1 --scenecut 40", {"b_adapt": 1, "scenecut": 40}),
    ("--b-adapt 2", {"b_adapt": 2, "scenecut": 40}),
)


class Kernels:
    """Two frames on the GPU, and the jobs of all launches."""

    def __init__(self, gpu: Device, lumas: list[np.ndarray], repeat: int) -> None:
        self.gpu, self.repeat, self.stream = gpu, repeat, gpu.stream()
        height, width = lumas[0].shape
        self.size = mb_width, mb_height = -(-width // 16), -(-height // 16)
        self.filler = Filler(gpu, 16 * mb_width, 16 * mb_height)
        self.luma, n_mb = [gpu.upload(luma) for luma in lumas[:3]], mb_width * mb_height
        self.frames = [self._frame(luma) for luma in self.luma]
        self.intra, self.total = gpu.array((n_mb,), np.uint16), gpu.zeros((1,), np.int64)
        memory = ((lookahead.CAMERA_WORDS,), np.int32), ((2,), np.int16), ((n_mb, 2), np.int16)
        self.memory = [lookahead.SearchMemory(*self._arrays(*memory)) for _ in range(8)]
        self.motions = [lookahead.Motion(*self._arrays(((n_mb, 2), np.int16), ((n_mb,), np.uint16))) for _ in range(8)]
        self.rows: list[dict[str, Any]] = []

    def _arrays(self, *forms: tuple[tuple[int, ...], Any]) -> list[DeviceArray]:
        return [self.gpu.zeros(*form) for form in forms]

    def _frame(self, luma: DeviceArray) -> HalfSize:
        half = HalfSize(*self._arrays(*((array.shape, np.uint8) for array in half_size_arrays(*self.size))))
        half_size(luma, 0, self.size[1], half)
        return half

    def run(self) -> None:
        """Prints a line for each kernel and number of jobs."""
        (mb_width, mb_height), stream, frames = self.size, self.stream, self.frames
        span = mb_width, mb_height, 0, mb_height
        self.time("half_size (3 launches)", 1, lambda: half_size(self.luma[0], 0, mb_height, frames[0], stream))
        self.time(
            "lookahead_intra", 1, lambda: lookahead.lookahead_intra(frames[1], 0, mb_height, self.intra, self.total, stream)
        )
        for count in (1, 3, 6):
            pairs = [(1, 0), (2, 0), (1, 2), (2, 1), (0, 1), (0, 2)][:count]
            jobs = self._table(
                [
                    lookahead.motion_job(frames[a], frames[b], self.intra, memory, motion)
                    for (a, b), memory, motion in zip(pairs, self.memory, self.motions)
                ]
            )
            self.time(
                "lookahead_camera", count, lambda jobs=jobs: lookahead.lookahead_camera(jobs, mb_width, mb_height, stream)
            )
            for kernel in (lookahead.lookahead_search, lookahead.lookahead_refine):
                self.time(kernel.__name__, count, lambda jobs=jobs, kernel=kernel: kernel(jobs, *span, stream=stream))
        for count in (1, 3):
            of, motions = (frames[1], frames[0], frames[2]), (self.motions[0], self.motions[2], self.motions[1])
            jobs = self._table(count * [lookahead.between_job(of, position_between(0, 2, 1), motions)])
            self.time("lookahead_both", count, lambda jobs=jobs: lookahead.lookahead_both(jobs, *span, stream))

    def _table(self, rows: list[list[int]]) -> DeviceArray:
        return self.gpu.upload(np.array(rows, np.int64))

    def time(self, name: str, jobs: int, launch: Callable[[], Any]) -> None:
        gpu, spent = self.gpu, []
        before, after = gpu.event(timing=True), gpu.event(timing=True)
        for _ in range(self.repeat + 2):
            self.filler(self.stream)
            gpu.record(before, self.stream)
            for _ in range(BATCH):
                launch()
            gpu.record(after, self.stream)
            gpu.synchronize(after)
            spent.append(1e6 * gpu.seconds(before, after) / BATCH)
        spent = sorted(spent[2:])
        one = statistics.median(spent)
        self.rows.append({"kernel": name, "jobs": jobs, "us": one, "least": spent[0], "most": spent[-1]})
        print(f"{name:32} {jobs} jobs {one:8.1f} us ({spent[0]:.1f} to {spent[-1]:.1f})", flush=True)


def time_frames(lumas: list[np.ndarray], count: int) -> list[dict[str, Any]]:
    """Whole batches of GpuCosts, a frame each."""
    rows = []
    for b_adapt, wanted in B_ADAPT.items():
        costs, calls, whole = GpuCosts(Device(), lumas[0].shape[1], lumas[0].shape[0]), [], []
        for n in range(count):
            start = time.perf_counter()
            costs.add([lumas[n % len(lumas)]])
            costs.ahead([tuple(n - 4 + k for k in question) for question in wanted] if n >= 4 else [])
            calls.append(time.perf_counter() - start)
            costs.wait()
            whole.append(time.perf_counter() - start)
            costs.forget(n - 4)
        costs.close()
        host, until = (1e6 * statistics.median(some[8:]) for some in (calls, whole))
        print(f"a frame of --b-adapt {b_adapt}: host {host:.0f} us, until its sums are there {until:.0f} us", flush=True)
        rows.append({"b_adapt": b_adapt, "host_us": host, "whole_us": until})
    return rows


def time_encodes(pictures: list[np.ndarray], size: tuple[int, int], count: int, turns: int) -> list[dict[str, Any]]:
    """Frames a second of encodes from memory, by turns; the share of the rate of fixed types."""
    rates_of: dict[str, list[float]] = {name: [] for name, _ in RATES}
    for turn in range(turns + 1):
        for name, options in RATES:
            with Encoder(*size, 30, device="cuda", bframes=3, **options) as encoder:
                start = time.perf_counter()
                for n in range(count):
                    encoder.encode(planes(pictures[n % len(pictures)], *size))
                encoder.flush()
                if turn:  # the first one loads
                    rates_of[name].append(count / (time.perf_counter() - start))
    rates = {name: statistics.median(some) for name, some in rates_of.items()}
    fixed = rates[RATES[0][0]]
    for name, rate in rates.items():
        print(f"{name:28} {rate:8.1f} frames a second, {rate / fixed:.2f} of fixed types")
    return [{"options": name, "fps": rate, "of_fixed": rate / fixed} for name, rate in rates.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    missing = why_no_cuda()
    if missing:
        sys.exit(missing)
    width, height = (int(n) for n in options.size.split("x"))
    name, pictures = load(width, height, min(options.frames, 60))
    pictures = [np.asarray(picture) for picture in (*pictures, *pictures[-2:0:-1])]  # forwards and backwards
    lumas = [np.ascontiguousarray(picture[:height]) for picture in pictures]
    gpu = Device()
    with gpu:
        print(f"{gpu.name}, {name} {width}x{height}")
        kernels = Kernels(gpu, lumas, options.repeat)
        kernels.run()
    device = gpu.name
    gpu.close()
    frames = time_frames(lumas, max(12, min(options.frames, 100)))
    rates = time_encodes(pictures, (width, height), options.frames, options.turns)
    if options.json:
        with open(options.json, "w") as file:
            figures = {"device": device, "size": options.size, "kernels": kernels.rows, "frames": frames, "rates": rates}
            json.dump(figures, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
