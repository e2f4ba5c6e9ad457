"""What each tool is worth without B frames: preset medium without one tool at a time, and with one more.

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.tools [--frames 60] [--preset medium] [--json FILE] [CLIP ...]

BD-rate (PCHIP, luma PSNR of FFmpeg's decode, QP 22, 27, 32, 37) against the preset: positive = more bits. Time: processor
time of all these encodes by one thread of a CPU, beside the preset's. Clips larger than CIF have fewer frames, by their size.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from h264lite.benchmarks.presets import Row, bd_rate, count_of, shortened
from h264lite.benchmarks.rate_distortion import QPS, points

LADDER = ("foreman_352x288_30", "BasketballPass_416x240_50", "mobile_352x288_30", "city_704x576_30", "driving_1920x1080_30")
ROWS: dict[str, dict[str, Any]] = {
    "": {},
    "no CABAC (decisions by bits of CAVLC)": {"no_cabac": True, "subme": 6},
    "no 8x8 transform": {"no_8x8dct": True},
    "no Intra 8x8": {"partitions": "p8x8,p4x4,i4x4"},
    "no trellis": {"trellis": 0},
    "no decisions by cost: subme 5": {"subme": 5},
    "subme 4": {"subme": 4},
    "no partitions below 8x8": {"partitions": "p8x8,i8x8,i4x4"},
    "no partitions below 16x16": {"partitions": "i8x8,i4x4"},
    "no deblocking": {"no_deblock": True},
    "range 8": {"merange": 8},
    "with subme 7": {"subme": 7},
    "with ref 2": {"ref": 2},
    "with ref 3": {"ref": 3},
    "no weightp": {"weightp": 0},
    "with range 32": {"merange": 32},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", default=LADDER, metavar="CLIP")
    parser.add_argument("--frames", type=int, default=60, help="of CIF")
    parser.add_argument("--preset", default="medium")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()

    rates_of: dict[str, list[float]] = {name: [] for name in ROWS}
    spent: dict[str, list[float]] = {name: [] for name in ROWS}
    for clip_name in args.clips:
        (clip, _), reference = shortened(clip_name, count_of(clip_name, args.frames), False), None
        for name, options in ROWS.items():
            row = Row(True, args.preset, {"bframes": 0, **options})
            start = time.process_time()
            streams = [row.encode(clip, [], qp, 1) for qp in QPS]
            spent[name].append(time.process_time() - start)
            curve = points(clip, streams)
            reference = reference or curve
            rates_of[name].append(bd_rate(reference, curve))
    print("|", " | ".join(("", "mean", *(name.rpartition("_")[0] for name in args.clips), "time")), "|")
    for name, rates in rates_of.items():
        ratio = statistics.geometric_mean(mine / base for mine, base in zip(spent[name], spent[""]))
        print("|", " | ".join((name, *(f"{one:+.1f}" for one in (statistics.mean(rates), *rates)), f"{ratio:.2f}")), "|")
    if args.json:
        Path(args.json).write_text(json.dumps({name: (rates_of[name], spent[name]) for name in ROWS}, indent=1))


if __name__ == "__main__":
    main()
