"""Frames per second by threads, GOPs at once and worker processes on a CPU, beside x264's frame threads.

    python benchmarks/scaling.py [--seconds 150] [--frames 120,48,24] [--only threads,lanes,workers,x264] [CLIP ...]

CLIP: a clip of $H264LITE_SEQUENCES, or a raw I420 file with a name like city_704x576_30.yuv. Frames lie in memory.
Each clip is encoded with the default options and with `--qp 27 --bframes 0`; "auto" gives no number of threads. Lanes and
workers have GOPs of an eighth of the clip. Times are the least of up to three rounds; the number in brackets is processor
time over time. All variants of a group must give the same bytes, else the program ends with an error.
"""

import argparse
import hashlib
import os
import re
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import h264lite
import numpy as np
from h264lite.benchmarks import clips, x264

OPTIONS = {"defaults": {}, "--qp 27 --bframes 0": {"qp": 27, "bframes": 0}}
X264 = {"defaults": (None, {}), "--qp 27 --bframes 0": (27, {"bframes": "0"})}
CLIPS, FRAMES = ("foreman_352x288_30", "city_704x576_30", "driving_1920x1080_30"), "120,48,24"
COUNTS = 1, 2, 4, 8, 16
GOPS = 8  # of a clip, for lanes and workers
ENOUGH = 0.6  # seconds of a variant, after which it is not repeated


class Variant(NamedTuple):
    """A way to use the cores."""

    name: str
    options: dict[str, object]
    short_gops: bool = False
    workers: bool = False


def variants(groups: set[str], cores: int) -> list[Variant]:
    """All that this machine has cores for, and twice as many at the most."""
    counts = [n for n in COUNTS if n <= 2 * cores]
    rows = []
    if "threads" in groups:
        rows = [*(Variant(f"threads {n}", {"threads": n}) for n in counts), Variant("auto", {})]
    if "lanes" in groups:
        rows += [Variant(f"lanes {n}", {"gops": n, "threads": max(n, cores)}, True) for n in counts if n > 2]
    if "workers" in groups:
        rows += [
            Variant(f"workers {n}", {"devices": ",".join(["cpu"] * n), "threads": max(n, cores)}, True, True)
            for n in counts
            if n in (4, 16)
        ]
    return rows


def raw_clip(path: Path, frames: int) -> clips.Clip:
    """A raw file whose name ends with its size and rate."""
    match = re.search(r"_(\d+)x(\d+)_(\d+)$", path.stem)
    if match is None:
        sys.exit(f"{path}: the name ends with no size and rate, such as _352x288_30")
    width, height, fps = map(int, match.groups())
    pictures = np.fromfile(path, np.uint8, frames * width * height * 3 // 2).reshape(-1, height * 3 // 2, width)
    return clips.Clip(path.stem, width, height, fps, list(pictures))


def encode(clip: clips.Clip, variant: Variant, options: dict[str, object]) -> tuple[str, float, float]:
    """SHA-256 of the stream, seconds, seconds of all cores."""
    keyint = {"keyint": max(2, len(clip.pictures) // GOPS)} if variant.short_gops else {}
    os.environ["H264LITE_WORKERS"] = "1" if variant.workers else "0"
    given = {"device": "cpu", **options, **variant.options, **keyint}
    if variant.workers:
        del given["device"]
    with h264lite.Encoder(width=clip.width, height=clip.height, fps=clip.fps, **given) as encoder:
        packets = encoder.encode(clip.pictures[0])  # not timed: threads and arrays are made, but frames may be begun
        begin, busy = time.perf_counter(), processor_time()
        for picture in clip.pictures[1:]:
            packets += encoder.encode(picture)
        packets += encoder.flush()
        seconds, busy = time.perf_counter() - begin, processor_time() - busy
    return hashlib.sha256(b"".join(packet.data for packet in packets)).hexdigest(), seconds, busy


def processor_time() -> float:
    """Of this process; worker processes are counted when they have ended, too late."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(clip: clips.Clip, variant: Variant, options: dict[str, object]) -> tuple[str, float, float]:
    """`encode`, the fastest of up to three."""
    best, spent = encode(clip, variant, options), 0.0
    for _ in range(2):
        spent += best[1]
        if spent > ENOUGH:
            break
        best = min(best, encode(clip, variant, options), key=lambda run: run[1])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", default=CLIPS, metavar="CLIP")
    parser.add_argument("--frames", default=FRAMES, help="of each clip")
    parser.add_argument("--seconds", type=float, default=150, help="after which no variant begins")
    parser.add_argument("--only", default="threads,lanes,workers,x264")
    args = parser.parse_args()
    begin, groups, cores = time.perf_counter(), set(args.only.split(",")), len(os.sched_getaffinity(0))
    counts = [int(n) for n in args.frames.split(",")]
    print(f"{cores} cores; frames a second (cores in use)", flush=True)
    for number, name in enumerate(args.clips):
        frames = counts[min(number, len(counts) - 1)]
        clip = raw_clip(Path(name), frames) if name.endswith(".yuv") else clips.load(name, frames)
        for title, options in OPTIONS.items():
            print(f"{clip.name}, {len(clip.pictures)} frames, {title}", flush=True)
            few = replace(clip, pictures=clip.pictures[:8])
            encode(few, Variant("", {}), options)  # compiles
            hashes: dict[bool, str] = {}
            for variant in variants(groups, cores):
                if time.perf_counter() - begin > args.seconds:
                    break
                digest, seconds, busy = measure(clip, variant, options)
                of_workers = "" if variant.workers else f" ({busy / seconds:.1f})"
                print(f"    {variant.name:<12}{(len(clip.pictures) - 1) / seconds:8.1f}{of_workers}", flush=True)
                if hashes.setdefault(variant.short_gops, digest) != digest:
                    sys.exit(f"{variant.name}: another stream")
            if "x264" in groups:
                of_x264(clip, title)
    print(f"{time.perf_counter() - begin:.0f} s")


def of_x264(clip: clips.Clip, title: str) -> None:
    """Preset medium, with its own tools."""
    try:
        frames = x264.video_frames(clip)
    except ModuleNotFoundError:
        print("    x264: av is not installed")
        return
    qp, tools = X264[title]
    for threads in (1, 4, 16):
        spent = min(x264.run(clip, frames, qp, threads, **tools)[1] for _ in range(2))
        print(f"    x264, {threads:<6}{len(frames) / spent:8.1f}", flush=True)


if __name__ == "__main__":
    main()
