"""Bits at equal PSNR and SSIM of presets and of single tools, all beside x264 with Baseline's tools: the ladder.

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.ladder [--device cuda] [--jobs 16] [--json FILE] [ROW ...]

Five clips, at most 60 frames of each, QP 22, 27, 32, 37 (CRF four lower). PSNR: of luma as FFmpeg decodes it, mean of the
frames. SSIM: of luma, uniform windows of 8x8 samples, of every fourth frame, mean of -10 log10(1 - SSIM). BD-rate: PCHIP;
mean over the clips; negative = fewer bits. Base: libx264 with CAVLC, P frames, one reference, full search of 16 samples, all
partitions, subme 5, no trellis. Rows are measured in as many processes as --jobs says, each with one thread.
"""

import argparse
import json
import multiprocessing
import statistics
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import h264lite
import numpy as np
from h264lite.benchmarks import clips, x264
from h264lite.benchmarks.presets import bd_rate
from h264lite.encoder.settings.presets import PRESETS

CLIPS = ("BasketballPass_416x240_50", "city_704x576_30", "driving_1920x1080_30", "foreman_352x288_30", "mobile_352x288_30")
QPS, CRF_BELOW = (22, 27, 32, 37), 4
FRAMES, SSIM_EVERY, WINDOW = 60, 4, 8
BASE = "x264, Baseline's tools"
P, B = {"bframes": 0}, {"bframes": 3}
RATE = {"crf": True}  # QPs of a constant rate factor
TOOLS: dict[str, dict[str, Any]] = {
    "no CABAC": {"no_cabac": True}, "no 8x8 transform": {"no_8x8dct": True}, "no Intra 8x8": {"partitions": "p8x8,p4x4,i4x4"},
    "no partitions below 16x16": {"partitions": "i8x8,i4x4"}, "no trellis": {"trellis": 0}, "subme 5": {"subme": 5},
    "subme 7": {"subme": 7}, "no deblocking": {"no_deblock": True}, "merange 8": {"merange": 8}, "ref 2": {"ref": 2},
    "ref 3": {"ref": 3}, "weightp 0": {"weightp": 0}, "no pyramid": {"b_pyramid": "none"}, "b-adapt 0": {"b_adapt": 0},
    "b-adapt 2": {"b_adapt": 2}, "no weightb": {"no_weightb": True}, "pbratio 1.3": {"pbratio": 1.3},
    "bframes 1": {"bframes": 1}, "bframes 2": {"bframes": 2}, "bframes 8, dyadic": {"bframes": 8, "b_pyramid": "dyadic"},
}  # fmt: skip
RATES: dict[str, dict[str, Any]] = {
    "tune psnr": {"tune": "psnr"}, "tune ssim": {"tune": "ssim"}, "no-mbtree": {"no_mbtree": True},
    "aq-mode 2": {"aq_mode": 2}, "aq-mode 3": {"aq_mode": 3}, "qcomp 0.7": {"qcomp": 0.7},
}  # fmt: skip


class Point(NamedTuple):
    """Of one stream."""

    kbits: float  # a second
    psnr: float
    ssim: float


def rows() -> dict[str, dict[str, Any]]:
    """Options by the name of the row."""
    rows: dict[str, dict[str, Any]] = {}
    for preset in PRESETS:
        rows[preset] = {"preset": preset, **P}
        if preset != "ultrafast":
            rows[f"{preset}, B frames"] = {"preset": preset}
            rows[f"{preset}, B frames, CRF"] = {"preset": preset, **RATE}
    rows |= {f"medium, 3 B frames: {name}": {**B, **options} for name, options in TOOLS.items()}
    return rows | {f"medium, 3 B frames, CRF: {name}": {**B, **RATE, **options} for name, options in RATES.items()}


@lru_cache(1)
def clip_of(name: str) -> clips.Clip:
    """The first frames of a clip."""
    return clips.load(name, FRAMES)


def ssim(a: np.ndarray, b: np.ndarray) -> float:
    """Mean SSIM of two planes, uint8[H, W], over all uniform windows that lie inside."""
    from scipy.ndimage import uniform_filter

    x, y = a.astype(np.float64), b.astype(np.float64)
    mean_x, mean_y = uniform_filter(x, WINDOW), uniform_filter(y, WINDOW)
    var_x, var_y = uniform_filter(x * x, WINDOW) - mean_x**2, uniform_filter(y * y, WINDOW) - mean_y**2
    both = uniform_filter(x * y, WINDOW) - mean_x * mean_y
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    ssim_map = (2 * mean_x * mean_y + c1) * (2 * both + c2) / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))
    inside = WINDOW // 2
    return float(ssim_map[inside : 1 - inside, inside : 1 - inside].mean())


def judged(clip: clips.Clip, stream: bytes) -> Point:
    """What FFmpeg decodes of a stream, beside the clip."""
    psnr, similar = [], []
    for n, (source, decoded) in enumerate(zip(clip.pictures, x264.decode(stream), strict=True)):
        a, b = source[: clip.height], decoded[: clip.height]
        error = np.square(a.astype(np.int32) - b).mean()
        psnr.append(10 * np.log10(255**2 / max(error, 1e-9)))
        if n % SSIM_EVERY == 0:
            similar.append(-10 * np.log10(1 - ssim(a, b)))
    kbits = 8 * len(stream) * clip.fps / len(clip.pictures) / 1000
    return Point(kbits, float(np.mean(psnr)), float(np.mean(similar)))


def measure(job: tuple[str, dict[str, Any], str, int, str]) -> tuple[str, str, int, Point]:
    """(row, clip, QP) and its point. job: (row, options, clip, QP, device)."""
    row, options, name, qp, device = job
    clip = clip_of(name)
    if row == BASE:
        tools = {**x264.SAME_TOOLS["baseline"], "scenecut": "0", "keyint": "250", "tune": "psnr"}
        stream = x264.X264(clip, qp, 1, **tools).encode(x264.video_frames(clip))
    else:
        options = dict(options)
        quality = {"crf": qp - CRF_BELOW} if options.pop("crf", False) else {"qp": qp}
        size = {"width": clip.width, "height": clip.height, "fps": clip.fps}
        stream = h264lite.encode(clip.pictures, **size, device=device, threads=1, **quality, **options)
    return row, name, qp, judged(clip, stream)


def rate(base: dict[int, Point], curve: dict[int, Point], by: str) -> float:
    """BD-rate in percent; by: psnr or ssim."""
    lines = [sorted(points.values(), key=lambda point: point.kbits) for points in (base, curve)]
    first, second = (([p.kbits for p in line], [getattr(p, by) for p in line]) for line in lines)
    return bd_rate(first, second)


def measured(jobs: list[Any], processes: int) -> Iterator[tuple[str, dict[str, dict[int, Point]]]]:
    """Rows as they become complete: points by clip and QP. The base comes first."""
    curves: dict[str, dict[str, dict[int, Point]]] = {}
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for row, name, qp, point in pool.imap(measure, jobs, 1):
            of_row = curves.setdefault(row, {})
            of_row.setdefault(name, {})[qp] = point
            if sum(map(len, of_row.values())) == len(CLIPS) * len(QPS):
                yield row, curves.pop(row)


def main() -> None:
    known = rows()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="names of rows, or parts of them; else all")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    clips.require("bjontegaard")  # before the encodes
    chosen = {row: options for row, options in known.items() if not args.rows or any(word in row for word in args.rows)}
    jobs = [
        (row, options, name, qp, args.device) for row, options in {BASE: {}, **chosen}.items() for name in CLIPS for qp in QPS
    ]
    print("| | PSNR | " + " | ".join(name.split("_")[0] for name in CLIPS) + " | SSIM |\n|---|" + (len(CLIPS) + 2) * "---|")
    document: dict[str, Any] = {}
    base: dict[str, dict[int, Point]] = {}
    for row, points in measured(jobs, args.jobs):
        base = base or points
        by_psnr = [rate(base[name], points[name], "psnr") for name in CLIPS]
        by_ssim = [rate(base[name], points[name], "ssim") for name in CLIPS]
        each = " | ".join(f"{value:+.1f}" for value in by_psnr)
        print(f"| {row} | {statistics.mean(by_psnr):+.1f} % | {each} | {statistics.mean(by_ssim):+.1f} % |", flush=True)
        document[row] = {"psnr": by_psnr, "ssim": by_ssim, "points": points}
        if args.json:
            args.json.write_text(json.dumps(document))


if __name__ == "__main__":
    main()
