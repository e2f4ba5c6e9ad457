"""Speed and rate of the presets, compared with x264's presets; options around each preset.

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.presets [--profile high] [--frames 24] [--timed-frames N]
        [--rounds 3] [--threads 1] [--jobs 1] [--presets NAME ...] [--p-frames] [--around] [--rates FILE] [--json FILE]
        [CLIP ...]

Constant QP. Rate: BD-rate (PCHIP, luma PSNR of FFmpeg's decode, four quantisers) against x264 with Baseline's tools of
benchmarks/x264.py (SAME_TOOLS), mean over the clips; one thread each, --jobs of them at a time. --rates: a file of rates,
which is read if it exists, else written: rates do not depend on the machine. Speed: frames a second of processor time at
QP 27, the best of the rounds, in which all rows alternate, as a ratio to the same x264; geometric mean. With --threads so
many on both sides (0: as many as each takes by itself), and seconds of the clock in place of processor time.
--timed-frames: of a clip that runs forwards and backwards. B frames as in the presets, with --p-frames none. --around also
measures each preset with one option changed, and says what is on the convex hull of time and bits; `h264lite plot presets`
draws files of --json.
"""

import argparse
import json
import math
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import h264lite
from h264lite.benchmarks import clips, x264
from h264lite.benchmarks.rate_distortion import QPS, points
from h264lite.encoder.settings.config import Config
from h264lite.encoder.settings.presets import PRESETS

CHOICE = ("foreman_352x288_30", "BasketballPass_416x240_50", "mobile_352x288_30", "crowd_run_1280x720_50")
X264_PRESETS = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
CONSTANT, P_FRAMES = {"no-psy": "1"}, {"bframes": "0", "scenecut": "0"}
BASE = "x264 same tools"
# Values of each option in the order of their time: --around takes those beside the preset's own
LADDERS: dict[str, tuple[Any, ...]] = {
    "subme": tuple(range(8)), "trellis": (0, 1), "ref": (1, 2, 3, 4, 6, 8), "merange": (4, 8, 16, 24, 32),
    "partitions": ("none", "p8x8,i8x8", "all"), "weightp": (0, 1, 2), "no_deblock": (True, False), "no_8x8dct": (True, False),
    "no_cabac": (True, False),
}  # fmt: skip
LEAST_TIMED = 48  # so that threads have frames beside each other
Points = tuple[list[float], list[float]]  # kbit/s, dB


class Row(NamedTuple):
    """An encoder with options."""

    is_ours: bool
    preset: str
    options: dict[str, Any]

    def encode(self, clip: clips.Clip, frames: list, qp: int, threads: int) -> bytes:
        """frames: those of the clip for x264."""
        if not self.is_ours:
            return x264.run(clip, frames, qp, threads, self.preset, **self.options)[0]
        return h264lite.encode(
            clip.pictures,
            width=clip.width,
            height=clip.height,
            fps=clip.fps,
            qp=qp,
            threads=threads,
            device="cpu",
            preset=self.preset,
            **self.options,
        )


def count_of(name: str, frames: int, least: int = 4) -> int:
    """Frames of a clip where one of CIF has `frames`: fewer of a larger one; 0: all."""
    width, height = map(int, name.split("_")[-2].split("x"))
    return min(frames, max(least, frames * 352 * 288 // (width * height)))


@lru_cache(2)
def shortened(name: str, count: int, repeats: bool) -> tuple[clips.Clip, list]:
    """The first frames of a clip; the same for x264. repeats: those that are missing are the others backwards and so on."""
    clip = clips.load(name, count)
    if repeats:
        turn = clip.pictures + clip.pictures[-2:0:-1]
        clip.pictures[:] = [turn[k % len(turn)] for k in range(count)]
    return clip, x264.video_frames(clip)


def bd_rate(reference: Points, curve: Points) -> float:
    """Bits beside those of `reference` at equal PSNR, in percent; PCHIP."""
    return float(clips.require("bjontegaard").bd_rate(*reference, *curve, method="pchip", min_overlap=0))


def settings(options: dict[str, Any]) -> Config:
    """What options mean."""
    return Config.from_options(width=352, height=288, device="cpu", **options)


def value_of(config: Config, option: str) -> Any:
    """An option's value in LADDERS's terms."""
    if option.startswith("no_"):
        return not config.values[{"no_8x8dct": "transform_8x8_mode"}.get(option, option[3:])]
    if option == "partitions":
        names = config.coding.partitions
        return "none" if "p8x8" not in names else "all" if "p4x4" in names else "p8x8,i8x8"
    return config.values[option]


def around(profile: str) -> dict[str, dict[str, Any]]:
    """Options by name: each preset with one option a step to either side; settings that are equal appear once."""
    rows: dict[str, dict[str, Any]] = {}
    known = {preset: settings({"preset": preset, "profile": profile, "qp": 27}) for preset in PRESETS}
    seen = [tuple(value_of(config, option) for option in LADDERS) for config in known.values()]
    for preset, config in known.items():
        for option, values in LADDERS.items():
            at = values.index(value_of(config, option))
            for value in values[max(0, at - 1) : at] + values[at + 1 : at + 2]:
                options = {name: value_of(config, name) for name in LADDERS} | {"profile": profile, option: value}
                try:
                    ladder_values = tuple(value_of(settings(options), name) for name in LADDERS)
                except h264lite.OptionError:
                    continue  # no tool of this profile
                if ladder_values not in seen:
                    seen.append(ladder_values)
                    rows[f"{preset} {option}={value}"] = options
    return rows


def hull(rows: dict[str, tuple[float, float]]) -> list[str]:
    """Names of the rows on the lower convex hull of the logarithm of time and bits, the fastest first; rows: speed, bits."""
    at = sorted((-math.log(speed), bits, name) for name, (speed, bits) in rows.items())
    corners: list[tuple[float, float, str]] = []
    for x, y, name in at:
        while len(corners) > 1 and (corners[-1][1] - corners[-2][1]) * (x - corners[-2][0]) >= (y - corners[-2][1]) * (
            corners[-1][0] - corners[-2][0]
        ):
            corners.pop()
        corners.append((x, y, name))
    lowest = min(range(len(corners)), key=lambda n: corners[n][1])
    return [name for _, _, name in corners[: lowest + 1]]


def point(name: str, count: int, row: Row, qp: int) -> Points:
    """Of one encode."""
    clip, frames = shortened(name, count, False)
    return points(clip, [row.encode(clip, frames, qp, 1)])


def rates_of(names: list[str], rows: dict[str, Row], frames: int, jobs: int) -> dict[str, dict[str, float]]:
    """BD-rate against BASE by row and clip."""
    clips.require("bjontegaard")
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        encodes = {
            (name, row): [pool.submit(point, name, count_of(name, frames), options, qp) for qp in reversed(QPS)]
            for name in names
            for row, options in rows.items()
        }
        curves = {key: _curve([one.result() for one in ones]) for key, ones in encodes.items()}
    return {row: {name: bd_rate(curves[name, BASE], curves[name, row]) for name in names} for row in rows}


def _curve(encodes: list[Points]) -> Points:
    return [rate for (rate,), _ in encodes], [psnr for _, (psnr,) in encodes]


def speeds_of(name: str, rows: dict[str, Row], count: int, rounds: int, threads: int) -> dict[str, float]:
    """Speed beside BASE, by row."""
    clip, frames = shortened(name, count, True)
    clock = time.process_time if threads == 1 else time.perf_counter
    seconds: dict[str, float] = dict.fromkeys(rows, 1e9)
    for _ in range(rounds):
        for row, options in rows.items():
            start = clock()
            options.encode(clip, frames, 27, threads)
            seconds[row] = min(seconds[row], clock() - start)
    print(f"{name}, {count} frames:", ", ".join(f"{row} {count / spent:.1f}" for row, spent in seconds.items()), flush=True)
    return {row: seconds[BASE] / spent for row, spent in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", default=CHOICE, metavar="CLIP")
    parser.add_argument("--profile", default="high")
    parser.add_argument("--frames", type=int, default=24, help="of CIF; fewer of larger clips; 0: whole clips")
    parser.add_argument("--timed-frames", type=int, help=f"the same for speed, but {LEAST_TIMED} and more")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="encodes at a time where rates are measured")
    parser.add_argument("--presets", nargs="+", choices=tuple(PRESETS), default=tuple(PRESETS), metavar="NAME")
    parser.add_argument("--p-frames", action="store_true", help="without B frames")
    parser.add_argument("--around", action="store_true")
    parser.add_argument("--rates", metavar="FILE", help="read rates, or write them where it does not exist")
    parser.add_argument("--json", metavar="FILE", help="for `h264lite plot presets`")
    args = parser.parse_args()
    limit = {"profile": args.profile}
    ours_too, theirs_too = ({"bframes": 0}, CONSTANT | P_FRAMES) if args.p_frames else ({}, CONSTANT)
    named = {f"h264lite {preset}": Row(True, preset, limit | ours_too) for preset in args.presets}
    if args.around:
        named |= {name: Row(True, "medium", options) for name, options in around(args.profile).items()}
    rows = {BASE: Row(False, "medium", x264.SAME_TOOLS["baseline"])} | named
    rows |= {f"x264 {preset}": Row(False, preset, theirs_too | limit) for preset in X264_PRESETS if preset in args.presets}

    if args.rates and Path(args.rates).exists():
        by_clip = json.loads(Path(args.rates).read_text())
    else:
        by_clip = rates_of(args.clips, rows, args.frames, args.jobs)
        if args.rates:
            Path(args.rates).write_text(json.dumps(by_clip, indent=1))
    rates = {row: [by_clip[row][clip] for clip in args.clips] for row in rows}
    speeds: dict[str, list[float]] = {name: [] for name in rows}
    for clip in args.clips:
        count = count_of(clip, args.timed_frames, LEAST_TIMED) if args.timed_frames else count_of(clip, args.frames or 24)
        for name, value in speeds_of(clip, rows, count, args.rounds, args.threads).items():
            speeds[name].append(value)
    result = {name: (statistics.geometric_mean(speeds[name]), statistics.mean(rates[name])) for name in rows}
    best = hull({name: result[name] for name in named})
    print(f"{'':<32}{'speed':>8}{'BD-rate':>10}   ({', '.join(args.clips)})")
    for name, (speed, rate) in sorted(result.items(), key=lambda row: -row[1][0]):
        print(
            f"{'*' if name in best else ' '} {name:<30}{speed:>7.2f}x{rate:>+9.2f} %  ",
            *(f"{one:+.1f}" for one in rates[name]),
        )
    if args.json:
        Path(args.json).write_text(json.dumps({name: (speeds[name], rates[name]) for name in rows}, indent=1))


if __name__ == "__main__":
    main()
