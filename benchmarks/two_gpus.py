"""Frames per second of the command on one GPU and on several, by turns; all streams must have the same bytes.

    H264LITE_SEQUENCES=... python benchmarks/two_gpus.py [--size 1920x1080] [--frames 4800] [--keyint 30] [--rounds 3]

Raw file to stream, in memory if the system has such files (in the page cache else). Frames as in cuda_loop.py. Rows: the
first GPU; all of --devices in one process (H264LITE_WORKERS=0), which one interpreter feeds; all of them, a worker process
each. Each run is a process of its own: the rate that it reports counts from the moment at which the encoder is made, the wall
time has the start and the end in it. Medians over rounds. Without GPUs: --devices cpu,cpu.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from h264lite.benchmarks import cuda_loop
from h264lite.scheduler.devices import count_gpus, gpu_name

LANES, WORKERS = "0", "1"  # H264LITE_WORKERS


def run(source: Path, words: list[str], workers: str) -> dict[str, Any]:
    """Frames a second as the command reports them, wall seconds of its process, and the hash of its stream."""
    report, out = source.with_suffix(".json"), source.with_suffix(".264")
    command = [sys.executable, "-m", "h264lite", "encode", str(source), str(out), "--quiet", "--json", str(report), *words]
    begin = time.perf_counter()
    done = subprocess.run(command, env=os.environ | {"H264LITE_WORKERS": workers}, check=False)
    wall = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"the command failed: {' '.join(command)}")
    with out.open("rb") as file:
        stream = hashlib.file_digest(file, "sha256").hexdigest()
    return {"fps": json.loads(report.read_text())["encode_fps"], "wall": wall, "sha256": stream}


def write_clip(path: Path, width: int, height: int, frames: int) -> str:
    """Write the raw file; the name of its content."""
    clip, pictures = cuda_loop.load(width, height, 60)
    pictures = pictures + pictures[-2:0:-1]  # forwards and backwards: no cut
    with path.open("wb") as file:
        for n in range(frames):
            file.write(pictures[n % len(pictures)].tobytes())
    return str(clip)


def table(rows: list[tuple[str, str, str]], runs_of: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Medians, with the least and the greatest, beside the first row."""
    lines = ["| devices | frames a second | times the first | wall, s | times the first |", "|---" * 5 + "|"]
    first = [statistics.median(run[key] for run in runs_of[rows[0][0]]) for key in ("fps", "wall")]
    for name, _, _ in rows:
        fps, wall = ([run[key] for run in runs_of[name]] for key in ("fps", "wall"))
        lines.append(
            f"| {name} | {statistics.median(fps):.0f} ({min(fps):.0f} to {max(fps):.0f}) | "
            f"{statistics.median(fps) / first[0]:.2f} | {statistics.median(wall):.2f} | "
            f"{first[1] / statistics.median(wall):.2f} |"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--frames", type=int, default=4800)
    parser.add_argument("--keyint", type=int, default=30)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--devices", default="all", help="joined by commas; all: every GPU")
    parser.add_argument("--options", default="--profile baseline --qp 27 --bframes 0", help="of the encode")
    parser.add_argument("--without-lanes", action="store_true", help="leave out the row of one process")
    parser.add_argument("--json")
    args = parser.parse_args()
    gpus = count_gpus() if "cpu" not in args.devices else 0
    names = [f"cuda:{k}" for k in range(gpus)] if args.devices == "all" else args.devices.split(",")
    if len(names) < 2:
        print(f"{len(names)} of several devices: the driver reports {gpus} GPUs")
        return 1
    several = ",".join(names)
    rows = [(names[0], names[0], LANES), (f"{several}, one process", several, LANES), (several, several, WORKERS)]
    if args.without_lanes:
        del rows[1]
    width, height = (int(n) for n in args.size.split("x"))
    words = [*args.options.split(), "--threads", str(args.threads), "--keyint", str(args.keyint)]
    runs_of: dict[str, list[dict[str, Any]]] = {name: [] for name, _, _ in rows}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        source = Path(folder) / f"in_{args.size}.yuv"
        clip = write_clip(source, width, height, args.frames)
        print(
            f"{args.size} {clip}, {args.frames} frames, {os.cpu_count()} cores, {gpus} x {gpu_name() if gpus else 'GPU'}; "
            f"{' '.join(words)}",
            flush=True,
        )
        for _, devices, workers in rows:  # kernels are compiled and files are read once
            run(source, [*words, "--devices", devices, "--frames", str(min(args.frames, 2 * args.keyint))], workers)
        for _ in range(args.rounds):
            for name, devices, workers in rows:
                runs_of[name].append(run(source, [*words, "--devices", devices], workers))
                print(
                    f"    {runs_of[name][-1]['fps']:8.1f} fps, {runs_of[name][-1]['wall']:6.2f} s, {name}, SHA-256 "
                    f"{runs_of[name][-1]['sha256']}",
                    flush=True,
                )
    print("\n" + "\n".join(table(rows, runs_of)))
    streams = {run["sha256"] for runs in runs_of.values() for run in runs}
    print("the same bytes in all runs" if len(streams) == 1 else f"NOT the same bytes: {streams}")
    if args.json:
        Path(args.json).write_text(json.dumps({**vars(args), "runs": runs_of}, indent=1))
    return 0 if len(streams) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
