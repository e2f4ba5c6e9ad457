"""Full search on one core: 1080p, 32 x 32 candidates, 41 partitions, with motion cost; and the ratio to a prototype.

    python benchmarks/full_search.py [--prototype FILE]     (or H264LITE_PROTOTYPE=FILE)

FILE is a Python file with `frame_search(cur, ref, W, H, stride, R, sads, positions)` that searches 2R x 2R candidates of
41 partitions without motion cost. All alternate in one process on one thread with a loop of SAD instructions, the ceiling
of this machine; medians of CPU time, and of the ratios within a round.
"""

import argparse
import importlib.util
import os
import statistics
import time

os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np
from h264lite.benchmarks.ceiling import SADS, Ceilings
from h264lite.cpu_simd.bundles import SearchResult, SearchStart
from h264lite.cpu_simd.search.full_search import full_search
from h264lite.cpu_simd.simd.vector import NATIVE, PORTABLE, SIMD_LEVEL, WIDE

WIDTH, HEIGHT, MERANGE, PAD = 1920, 1088, 16, 48


def pictures(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A source and a padded reference: smooth noise, moved by (-7, 4), with noise of its own."""
    rng = np.random.default_rng(seed)
    shape = HEIGHT + 2 * PAD, WIDTH + 2 * PAD
    base = np.zeros(shape)
    for scale in (32, 16, 8, 4):
        noise = rng.normal(0, scale, (shape[0] // scale + 1, shape[1] // scale + 1))
        base += np.kron(noise, np.ones((scale, scale)))[: shape[0], : shape[1]]
    base = np.clip(128 + base, 0, 255)
    source = base[PAD + 4 : PAD + 4 + HEIGHT, PAD - 7 : PAD - 7 + WIDTH] + rng.normal(0, 2, (HEIGHT, WIDTH))
    return source.clip(0, 255).astype(np.uint8), base.astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prototype", default=os.environ.get("H264LITE_PROTOTYPE"), help="a file with frame_search()")
    parser.add_argument("--portable", action="store_true", help="time the portable path as well")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    source, reference = pictures()
    n_mb = WIDTH * HEIGHT // 256
    start = SearchStart(*np.zeros((2, n_mb, 2), np.int16))
    search_result = SearchResult(np.zeros((n_mb, 41), np.int32), np.zeros((n_mb, 41, 2), np.int16))
    qp = np.full(n_mb, 24, np.uint8)

    def ours(level: int) -> None:
        full_search(source, reference, PAD, start, qp, MERANGE, 0, HEIGHT // 16, search_result, level=level)

    runs = {"h264lite": lambda: ours(SIMD_LEVEL)}
    if SIMD_LEVEL == WIDE:
        runs["h264lite, AVX2"] = lambda: ours(NATIVE)
    if args.portable:
        runs["h264lite, portable"] = lambda: ours(PORTABLE)
    if args.prototype:
        spec = importlib.util.spec_from_file_location("prototype", args.prototype)
        assert spec and spec.loader
        prototype = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(prototype)
        window = np.ascontiguousarray(reference[PAD - MERANGE :, PAD - MERANGE :])
        shape = HEIGHT // 16, WIDTH // 16, 41
        sads, positions = np.zeros(shape, np.uint16), np.zeros(shape, np.uint16)
        flat = source.reshape(-1), window.reshape(-1), WIDTH, HEIGHT, window.shape[1], MERANGE, sads, positions
        runs["prototype"] = lambda: prototype.frame_search(*flat)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for name in runs:
        runs[name]()  # compiles
    ceilings = Ceilings()
    for _ in range(args.rounds):
        ceilings.measure()
        for name, run in runs.items():
            before = time.process_time()
            run()
            times[name].append(time.process_time() - before)
    median = {name: statistics.median(values) for name, values in times.items()}
    floor = SADS["full_search"] * n_mb * ceilings.sad()
    print(ceilings.text())
    for name, value in median.items():
        print(f"{name:20} {1e3 * value:7.1f} ms of processor time a frame, {100 * floor / value:5.1f} % of the ceiling")
    for name in median if "prototype" in median else ():
        ratio = statistics.median(a / b for a, b in zip(times["prototype"], times[name]))
        print(f"prototype's time / {name}'s: {ratio:.2f}")


if __name__ == "__main__":
    main()
