"""Speed of the presets on a GPU and on a CPU, and of x264's on the same cores: the speeds of README.md's picture.

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.preset_speeds [--devices cuda,cpu] [--frames 300] [--rounds 2]
        [--csv benchmarks/results/presets.csv]

1080p (driving, forwards and backwards) from memory, constant QP 27, High profile with the presets' B frames; the best of the
rounds, in which all rows alternate, after one round that compiles. CPU rows and x264 have all cores. Writes frames a second
into the CSV, whose bits (BD-rate of benchmarks/presets.py, mean of six clips) stay; benchmarks/draw_presets.py draws it.
"""

import argparse
import csv
import os
import time
from collections.abc import Callable
from pathlib import Path

import h264lite
from h264lite.benchmarks import x264
from h264lite.benchmarks.presets import CONSTANT, shortened

RESULTS = Path(__file__).resolve().parent / "results" / "presets.csv"
CLIP, QP = "driving_1920x1080_30", 27
FIELDS = ("encoder", "device", "preset", "bits_percent", "speed", "fps", "clip")
REFERENCE = ("x264", "cpu", "medium")  # whose speed is 1


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of the CSV."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cuda,cpu")
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--csv", type=Path, default=RESULTS)
    args = parser.parse_args()
    clip, frames = shortened(CLIP, args.frames, True)
    cores = len(os.sched_getaffinity(0))

    def ours(device: str, preset: str) -> Callable[[], object]:
        return lambda: h264lite.encode(
            clip.pictures, width=clip.width, height=clip.height, fps=clip.fps, qp=QP, device=device, preset=preset
        )

    def theirs(preset: str) -> Callable[[], object]:
        return lambda: x264.run(clip, frames, QP, cores, preset, profile="high", **CONSTANT)

    rows = read_rows(args.csv)
    bits = {(row["encoder"], row["preset"]): row["bits_percent"] for row in rows}
    encodes: dict[tuple[str, str, str], Callable[[], object]] = {}
    for encoder, preset in bits:
        if encoder == "x264":
            encodes[encoder, "cpu", preset] = theirs(preset)
            continue
        for device in args.devices.split(","):
            encodes[encoder, device, preset] = ours(device, preset)
    fps = dict.fromkeys(encodes, 0.0)
    for number in range(1 + args.rounds):
        for key, encode in encodes.items():
            start = time.perf_counter()
            encode()
            spent = time.perf_counter() - start
            if number:
                fps[key] = max(fps[key], len(clip.pictures) / spent)
            print(f"round {number}, {' '.join(key)}: {len(clip.pictures) / spent:.1f} frames/s", flush=True)
    with open(args.csv, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for (encoder, device, preset), rate in fps.items():
            writer.writerow(
                {"encoder": encoder, "device": device, "preset": preset, "bits_percent": bits[encoder, preset],
                 "speed": f"{rate / fps[REFERENCE]:.3f}", "fps": f"{rate:.1f}", "clip": f"1080p, {cores} cores"}
            )  # fmt: skip


if __name__ == "__main__":
    main()
