"""Frames a second of one GOP with B frames on a GPU, by streams for B frames and by frames in flight.

    python benchmarks/parallel_b_frames.py [--size 1920x1080] [--clip driving_1920x1080_30] [--frames 400] [--rounds 5]
                                   [--streams 0,1,2,3,4] [--in-flight 4] [--crf 23 | --qp 27] [--bframes 3]
                                   [--b-pyramid normal] [--subme 6] [--ref 3]

Frames are in memory, synthetic unless --clip names one of benchmarks/clips.py. All are timed by turns; each line has the best
and the median of the rounds, its share of the first line's median, the processor time of the caller's thread, and the
recordings that the stream has. --streams, --in-flight: lists, all pairs of which are timed; 0 streams: all frames share one.
The constants are B_FRAME_STREAMS in scheduler/cuda_executor.py, IN_FLIGHT_ON_GPU in scheduler/frames/ring.py and, of frames
in flight besides, MOST_AHEAD in scheduler/frames/run_ahead.py.
"""

import argparse
import hashlib
import statistics
import sys
import time
from typing import Any

import numpy as np
from h264lite.benchmarks import clips
from h264lite.benchmarks.cuda_loop import planes, synthetic_pictures
from h264lite.encoder.reordering import ReorderingPipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.cuda_executor import CudaExecutor
from h264lite.scheduler.devices import why_no_cuda
from h264lite.scheduler.frames import ring


def encode(
    pictures: list[np.ndarray], width: int, height: int, count: int, streams: int, in_flight: int, options: dict[str, Any]
) -> tuple[float, float, str, int]:
    """(frames a second, milliseconds of the caller's thread a frame, digest of the stream, number of recordings)."""
    ring.IN_FLIGHT_ON_GPU = in_flight
    config = Config.from_options(width=width, height=height, device="cuda", **options)
    machine = config.machine._replace(gpu_choices={"parallel_b_frames": streams})
    pipeline = ReorderingPipeline(config._replace(machine=machine))
    frames = [planes(picture, width, height) for picture in pictures]
    digest = hashlib.sha256()
    done = []
    for n in range(len(frames)):  # the first frames open the GPU and make recordings
        done += pipeline.encode(tuple(frames[n]))
    start, start_of_thread = time.perf_counter(), time.thread_time()
    for n in range(count):
        done += pipeline.encode(tuple(frames[n % len(frames)]))
    done += pipeline.flush()
    seconds, of_thread = time.perf_counter() - start, time.thread_time() - start_of_thread
    executor = pipeline._pipeline.executor.loop.executor
    assert isinstance(executor, CudaExecutor)
    n_recordings = len(executor._recordings)
    pipeline.close()
    for frame in done:
        digest.update(frame.data)
    return count / seconds, 1000 * of_thread / count, digest.hexdigest(), n_recordings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--clip")
    parser.add_argument("--frames", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", default="0,1,2,3,4")
    parser.add_argument("--in-flight", default="4")
    parser.add_argument("--crf", type=float)
    parser.add_argument("--qp", type=int, default=27)
    parser.add_argument("--bframes", type=int, default=3)
    parser.add_argument("--b-pyramid", default="normal")
    parser.add_argument("--b-adapt", type=int, default=0)
    parser.add_argument("--subme", type=int, default=6)
    parser.add_argument("--ref", type=int, default=3)
    parser.add_argument("--threads", type=int, default=16)
    args = parser.parse_args()
    if missing := why_no_cuda():
        sys.exit(missing)
    if args.clip:
        clip = clips.load(args.clip, 48)
        width, height, pictures = clip.width, clip.height, clip.pictures
    else:
        width, height = map(int, args.size.split("x"))
        pictures = synthetic_pictures(width, height, 24)
    names = "bframes", "b_pyramid", "b_adapt", "subme", "ref", "threads"
    rate = {"qp": args.qp} if args.crf is None else {"crf": args.crf}
    options = {name: getattr(args, name) for name in names} | rate | {"keyint": 10 * args.frames, "no_scenecut": True}
    cases = [(int(streams), int(most)) for streams in args.streams.split(",") for most in args.in_flight.split(",")]
    rates: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
    times: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
    digests, counts = set(), {}
    for _ in range(args.rounds):
        for case in cases:
            fps, of_thread, digest, counts[case] = encode(pictures, width, height, args.frames, *case, options)
            rates[case].append(fps)
            times[case].append(of_thread)
            digests.add(digest)
    first = statistics.median(next(iter(rates.values())))
    for (streams, most), fps in rates.items():
        median = statistics.median(fps)
        print(
            f"{streams} streams, {most} in flight: "
            f"best {max(fps):7.1f} median {median:7.1f} frames/s, {median / first:.3f}; "
            f"thread {statistics.median(times[streams, most]):.2f} ms; {counts[streams, most]} recordings"
        )
    print("the same bytes" if len(digests) == 1 else "THE BYTES DIFFER")
    return int(len(digests) != 1)


if __name__ == "__main__":
    sys.exit(main())
