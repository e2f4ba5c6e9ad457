"""Frames per second of the command by number of GOPs at once: one GPU and two.

    H264LITE_SEQUENCES=... python benchmarks/two_gpus.py [--size 1920x1080] [--frames 600] [--keyint 30] [--rounds 3]

Raw file to stream, in memory if the system has such files. Frames as in cuda_loop.py. Medians over rounds, in which all
settings alternate; all streams must be equal. --devices: other rows than the default ones for the available GPUs.
"""

import argparse
import hashlib
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from h264lite.benchmarks import cuda_loop
from h264lite.scheduler.devices import count_gpus, gpu_name

ROWS = ("cuda:0", "cuda:1", "cuda:0,cuda:1")
GOPS = ("1", "2", "3", "4", "auto")


def possible(devices: str, gops: str) -> bool:
    """Whether there is at least one GOP for each device."""
    return gops == "auto" or int(gops) >= len(devices.split(","))


def there(devices: str, gpus: int) -> bool:
    """Whether the machine has these GPUs."""
    return all(name == "cpu" or int(name.partition(":")[2]) < gpus for name in devices.split(","))


def measure(source: Path, rows: list[str], words: list[str], rounds: int) -> tuple[dict[str, dict[str, list[float]]], str]:
    """(frames a second by devices and GOPs at once, the hash of all streams)."""
    rates: dict[str, dict[str, list[float]]] = {devices: {} for devices in rows}
    hashes: dict[str, str] = {}
    for _ in range(rounds):
        for devices in rows:
            for gops in filter(lambda gops, devices=devices: possible(devices, gops), GOPS):  # type: ignore[misc]
                rate = cuda_loop.run_command(source, [*words, "--devices", devices, "--gops", gops])
                rates[devices].setdefault(gops, []).append(rate)
                stream = hashlib.sha256(source.with_suffix(".264").read_bytes()).hexdigest()
                hashes.setdefault(stream, f"{devices}, {gops} GOPs")
                if len(hashes) > 1:
                    sys.exit(f"not the same bytes: {' and '.join(hashes.values())}")
    return rates, next(iter(hashes))


def table(rates: dict[str, dict[str, list[float]]]) -> list[str]:
    """The table: median, minimum and maximum."""
    lines = [f"| devices | {' | '.join(f'gops {gops}' for gops in GOPS)} |", "|---" * (1 + len(GOPS)) + "|"]
    for devices, of_row in rates.items():
        cells = [
            f"{statistics.median(found):.0f} ({min(found):.0f} to {max(found):.0f})" if (found := of_row.get(gops)) else ""
            for gops in GOPS
        ]
        lines.append(f"| {devices} | {' | '.join(cells)} |")
    return lines


def best(of_row: dict[str, list[float]]) -> float:
    """The highest median."""
    return max(statistics.median(found) for found in of_row.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--keyint", type=int, default=30)
    parser.add_argument("--qp", type=int, default=27)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--devices", nargs="+", help=f"rows of the table; {' '.join(ROWS)}")
    parser.add_argument("--json")
    args = parser.parse_args()
    gpus = count_gpus()
    rows = [row for row in args.devices or ROWS if there(row, gpus)]
    for row in args.devices or ROWS:
        if row not in rows:
            print(f"without {row}: the driver reports {gpus} GPUs")
    if not rows:
        return 1
    width, height = (int(n) for n in args.size.split("x"))
    kind, pictures = cuda_loop.load(width, height, 60)
    pictures = pictures + pictures[-2:0:-1]  # forwards and backwards: no cut
    words = ["--qp", str(args.qp), "--bframes", "0", "--threads", str(args.threads), "--keyint", str(args.keyint)]
    print(f"{args.size} {kind}, {args.frames} frames, {os.cpu_count()} cores, {gpus} x {gpu_name() if gpus else 'GPU'}")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        source = Path(folder) / f"in_{args.size}.yuv"
        with source.open("wb") as file:
            for n in range(args.frames):
                file.write(pictures[n % len(pictures)].tobytes())
        for row in rows:
            cuda_loop.run_command(source, [*words, "--devices", row, "--frames", str(min(args.frames, 2 * args.keyint))])
        print("measured, after each was run once:")
        rates, stream = measure(source, rows, words, args.rounds)
    print("\n" + "\n".join(table(rates)))
    one, two = rates.get(ROWS[0]), rates.get("cuda:0,cuda:1")
    if one and two:
        print(f"two GPUs: {best(two) / best(one):.2f} times one, the best of each")
    print(f"SHA-256 of all streams: {stream}")
    if args.json:
        found: dict[str, Any] = {"size": args.size, "clip": kind, "frames": args.frames, "keyint": args.keyint, "qp": args.qp}
        Path(args.json).write_text(json.dumps({**found, "fps": rates, "sha256": stream}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
