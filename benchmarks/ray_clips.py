"""Short clips by `map_batches(h264lite.ray.Encode)` beside single warm encoders in as many processes: the share of the rate.

    python benchmarks/ray_clips.py --clips 200 --size 320x240 --frames 48 --workers 16

The clips lie in Ray's object store, and in the memory of the processes; neither start nor first compilation counts.
"""

import argparse
import multiprocessing
import os
import time
from typing import Any

import h264lite
import numpy as np
from h264lite.ray import Encode
from h264lite.samples.make_clip import make_frames

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


def clip_of(width: int, height: int, frames: int, seed: int) -> np.ndarray:
    """uint8[T, H, W, 3], grey."""
    return np.stack([np.repeat(y[..., None], 3, 2) for y, _, _ in make_frames(width, height, frames, seed)])


def alone(number: int, shape: tuple[int, int, int], clips: int, options: dict[str, Any], gate: Any, results: Any) -> None:
    """A process: clips per second of its warm encoder while all processes encode."""
    clip = clip_of(*shape, number)
    h264lite.write_video(None, clip, **options)
    gate.wait()
    begun = time.perf_counter()
    for _ in range(clips):
        h264lite.write_video(None, clip, **options)
    results.put(clips / (time.perf_counter() - begun))


def sum_of_single(workers: int, shape: tuple[int, int, int], clips: int, options: dict[str, Any]) -> float:
    """Clips per second of so many processes together."""
    context = multiprocessing.get_context("spawn")
    gate, results = context.Barrier(workers), context.Queue()
    share = max(1, clips // workers)
    all_of = [context.Process(target=alone, args=(k, shape, share, options, gate, results)) for k in range(workers)]
    for process in all_of:
        process.start()
    rate = sum(results.get() for _ in all_of)
    for process in all_of:
        process.join()
    return rate


class Timed(Encode):
    """With columns that say which process encoded a batch, and when."""

    def __call__(self, batch: Any) -> dict[str, Any]:
        """See Encode."""
        begun = time.time()
        columns = super().__call__(batch)
        rows = len(columns["video"])
        said = {"process": os.getpid(), "begun": begun, "ended": time.time()}
        return columns | {name: np.full(rows, value) for name, value in said.items()}


def by_ray(workers: int, shape: tuple[int, int, int], clips: int, options: dict[str, Any]) -> float:
    """Clips per second of map_batches: the sum over actors of their rate from their first batch to the end of their last
    one, with all waits between. The consumer's clock would not do: results queue up before it sees them.
    """
    import ray

    some = [clip_of(*shape, k) for k in range(workers)]
    rows = [{"id": k, "frames": some[k % workers]} for k in range(clips)]
    dataset = ray.data.from_items(rows, override_num_blocks=max(1, clips // 4))
    dataset = dataset.materialize().map_batches(
        Timed, fn_constructor_kwargs=options, concurrency=workers, num_cpus=1, batch_size=4
    )
    spans: dict[int, list[tuple[float, float]]] = {}  # of each row's batch, by process
    for row in dataset.iter_rows():
        spans.setdefault(int(row["process"]), []).append((row["begun"], row["ended"]))
    return sum(len(some) / (max(end for _, end in some) - min(begin for begin, _ in some)) for some in spans.values())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=200)
    parser.add_argument("--size", default="320x240", metavar="WxH")
    parser.add_argument("--frames", type=int, default=24)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--preset", default="medium")
    given = parser.parse_args()
    import ray

    width, height = map(int, given.size.split("x"))
    shape, options = (width, height, given.frames), {"preset": given.preset, "device": "cpu", "threads": 1}
    ray.init("local", num_cpus=given.workers + 1, include_dashboard=False, log_to_driver=False)
    single, mapped = [], []
    for _ in range(given.turns):
        single.append(sum_of_single(given.workers, shape, given.clips, options))
        mapped.append(by_ray(given.workers, shape, given.clips, options))
    a, b = max(single), max(mapped)
    print(
        f"{given.workers} workers, {given.clips} clips of {given.frames} frames, {given.size}: single encoders {a:.1f} "
        f"clips/s together, map_batches {b:.1f} clips/s: {b / a:.2f}"
    )


if __name__ == "__main__":
    main()
