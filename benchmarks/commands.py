"""Whole commands on short clips beside the program x264, by turns: start-up counts.

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.commands [--frames 60] [--rounds 7] [--threads 2] [CLIP ...]

Raw files in, Annex B out, both in a temporary folder; clips that are shorter run there and back. Rows: x264's defaults
beside ours (medium, CRF 23, B frames), and medium at QP 27 with the same tools and full search (benchmarks/x264.py), P
frames alone and with 3 B frames. Seconds: the median of the rounds.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from h264lite.benchmarks import clips, x264

CHOICE = ("foreman_352x288_30", "crowd_run_1280x720_50")
FLAGS = ("profile", "no-psy", "bframes", "8x8dct")  # x264's defaults, or said below
SAME = {name: value for name, value in x264.SAME_TOOLS["high"].items() if name not in FLAGS}
CONSTANT = ["--qp", "27", "--no-psy", "--aq-mode", "0", "--no-mbtree"]
CONSTANT += [word for name, value in SAME.items() for word in (f"--{name}", value)]
ROWS: dict[str, tuple[list[str], list[str]]] = {  # ours, x264's
    "defaults": ([], []),
    "QP 27, P frames": (["--qp", "27", "--bframes", "0"], [*CONSTANT, "--bframes", "0", "--no-scenecut"]),
    "QP 27, 3 B frames": (["--qp", "27"], [*CONSTANT, "--bframes", "3"]),
}


def there_and_back(pictures: list, frames: int) -> list:
    """So many pictures of a clip that turns at its ends."""
    period = pictures + pictures[-2:0:-1]
    return [period[k % len(period)] for k in range(frames)]


def seconds_of(command: list[str]) -> float:
    """Of one run; an error ends the benchmark."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=600)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", default=CHOICE, metavar="CLIP")
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if shutil.which("x264") is None:
        raise SystemExit("no program x264 (Debian: apt-get install x264)")
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        print("PYTHONDONTWRITEBYTECODE is set: each start compiles all sources of Python anew")
    for name in args.clips:
        clip = clips.load(name)
        with tempfile.TemporaryDirectory() as folder:
            raw, out = Path(folder, f"clip_{clip.width}x{clip.height}.yuv"), Path(folder, "out.264")
            raw.write_bytes(b"".join(picture.tobytes() for picture in there_and_back(clip.pictures, args.frames)))
            fps, threads = str(clip.fps), str(args.threads)
            size = ["--input-res", f"{clip.width}x{clip.height}", "--fps", fps]
            for row, (ours, theirs) in ROWS.items():
                commands = {
                    "h264lite": [sys.executable, "-m", "h264lite", "encode", str(raw), str(out), "--threads", threads,
                                 "--fps", fps, "--device", "cpu", "--quiet", *ours],
                    "x264": ["x264", "--quiet", "--threads", threads, *size, *theirs, "-o", str(out), str(raw)],
                }  # fmt: skip
                spent: dict[str, list[float]] = {program: [] for program in commands}
                written = {}
                for _ in range(args.rounds):
                    for program, command in commands.items():
                        spent[program].append(seconds_of(command))
                        written[program] = out.stat().st_size
                mine, other = (statistics.median(values) for values in spent.values())
                print(
                    f"{name}, {args.frames} frames, {row}: {mine:.3f} s beside {other:.3f} ({other / mine:.2f}), "
                    f"{written['h264lite']} bytes beside {written['x264']}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
