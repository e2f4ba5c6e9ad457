"""Processor time and rate of the presets, compared with x264's presets; options around each preset.

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.presets [--profile high] [--frames 24] [--rounds 3]
        [--threads 1] [--p-frames] [--around] [--json FILE] [CLIP ...]

One thread of a CPU, constant QP. Rate: BD-rate (PCHIP, luma PSNR of FFmpeg's decode, four quantisers) against x264 with
Baseline's tools of benchmarks/x264.py (SAME_TOOLS), mean over the clips. Speed: frames a second of processor time at QP 27,
the best of the rounds, in which all rows alternate, as a ratio to the same x264; geometric mean. With --threads so many on
both sides (0: as many as each takes by itself), and seconds of the clock in place of processor time.
B frames as in the presets, with --p-frames none. --around also measures each
preset with one option changed, and says what is on the convex hull of time and bits; `h264lite plot presets` draws the file
of --json.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    "partitions": ("none", "p8x8,i8x8", "all"), "weightp": (0, 1), "no_deblock": (True, False), "no_8x8dct": (True, False),
    "no_cabac": (True, False),
}  # fmt: skip
Points = tuple[list[float], list[float]]  # kbit/s, dB
Encode = Callable[[clips.Clip, list, int], bytes]


def ours(threads: int = 1, **options: Any) -> Encode:
    """h264lite with options."""
    return lambda clip, _, qp: h264lite.encode(
        clip.pictures, width=clip.width, height=clip.height, fps=clip.fps, qp=qp, threads=threads, device="cpu", **options
    )


def theirs(preset: str, threads: int = 1, **tools: str) -> Encode:
    """x264 with a preset and options."""
    return lambda clip, frames, qp: x264.run(clip, frames, qp, threads, preset, **tools)[0]


def shortened(name: str, frames: int) -> clips.Clip:
    """The first `frames` frames of a clip at CIF, fewer of a larger one."""
    width, height = map(int, name.split("_")[-2].split("x"))
    return clips.load(name, min(frames, max(4, frames * 352 * 288 // (width * height))))


def bd_rate(reference: Points, found: Points) -> float:
    """Bits beside those of `reference` at equal PSNR, in percent; PCHIP."""
    return float(clips.require("bjontegaard").bd_rate(*reference, *found, method="pchip", min_overlap=0))


def settings(options: dict[str, Any]) -> Config:
    """What options mean."""
    return Config.from_options(width=352, height=288, device="cpu", **options)


def value_of(config: Config, option: str) -> Any:
    """An option's value in LADDERS's terms."""
    if option.startswith("no_"):
        return not getattr(config, {"no_8x8dct": "transform_8x8_mode"}.get(option, option[3:]))
    if option == "partitions":
        return "none" if "p8x8" not in config.partitions else "all" if "p4x4" in config.partitions else "p8x8,i8x8"
    return getattr(config, option)


def around(profile: str) -> dict[str, dict[str, Any]]:
    """Options by name: each preset with one option a step to either side; settings that are equal appear once."""
    found: dict[str, dict[str, Any]] = {}
    known = {preset: settings({"preset": preset, "profile": profile, "qp": 27}) for preset in PRESETS}
    seen = [tuple(value_of(config, option) for option in LADDERS) for config in known.values()]
    for preset, config in known.items():
        for option, values in LADDERS.items():
            at = values.index(value_of(config, option))
            for value in values[max(0, at - 1) : at] + values[at + 1 : at + 2]:
                options = {name: value_of(config, name) for name in LADDERS} | {"profile": profile, option: value}
                try:
                    made = tuple(value_of(settings(options), name) for name in LADDERS)
                except h264lite.OptionError:
                    continue  # no tool of this profile
                if made not in seen:
                    seen.append(made)
                    found[f"{preset} {option}={value}"] = options
    return found


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


def measure(
    clip: clips.Clip, rows: dict[str, Encode], rounds: int, clock: Callable[[], float] = time.process_time
) -> tuple[dict[str, float], dict[str, float]]:
    """Speed beside BASE and BD-rate against it, by row."""
    frames = x264.video_frames(clip)
    reference = points(clip, [rows[BASE](clip, frames, qp) for qp in QPS])
    rates = {
        name: bd_rate(reference, points(clip, [encode(clip, frames, qp) for qp in QPS])) for name, encode in rows.items()
    }
    seconds: dict[str, float] = dict.fromkeys(rows, 1e9)
    for _ in range(rounds):
        for name, encode in rows.items():
            start = clock()
            encode(clip, frames, 27)
            seconds[name] = min(seconds[name], clock() - start)
    return {name: seconds[BASE] / spent for name, spent in seconds.items()}, rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", default=CHOICE, metavar="CLIP")
    parser.add_argument("--profile", default="high")
    parser.add_argument("--frames", type=int, default=24, help="of CIF; fewer of larger clips")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--p-frames", action="store_true", help="without B frames")
    parser.add_argument("--around", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="for `h264lite plot presets`")
    args = parser.parse_args()
    limit = {"profile": args.profile}
    ours_too, theirs_too = ({"bframes": 0}, CONSTANT | P_FRAMES) if args.p_frames else ({}, CONSTANT)
    named: dict[str, dict[str, Any]] = {f"h264lite {preset}": {"preset": preset, **limit, **ours_too} for preset in PRESETS}
    if args.around:
        named |= around(args.profile)
    rows = {BASE: theirs("medium", args.threads, **x264.SAME_TOOLS["baseline"])} | {
        name: ours(args.threads, **options) for name, options in named.items()
    }
    rows |= {f"x264 {preset}": theirs(preset, args.threads, **theirs_too, **limit) for preset in X264_PRESETS}
    clock = time.process_time if args.threads == 1 else time.perf_counter

    speeds: dict[str, list[float]] = {name: [] for name in rows}
    rates: dict[str, list[float]] = {name: [] for name in rows}
    for clip_name in args.clips:
        clip = shortened(clip_name, args.frames)
        for found, values in zip(measure(clip, rows, args.rounds, clock), (speeds, rates)):
            for name, value in found.items():
                values[name].append(value)
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
