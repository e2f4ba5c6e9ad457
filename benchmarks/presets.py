"""Time and rate of the presets, compared with x264's presets restricted to Constrained Baseline and constant QP.

    H264LITE_SEQUENCES=... python benchmarks/presets.py [--threads 2] [--frames 30] [--device cpu] [--processor] [--png FILE]
        [CLIP ...]

Rate: BD-rate over four quantisers against x264 with the tools of benchmarks/x264.py (SAME_TOOLS), mean over the clips.
Time: frames per second at QP 27, median of three rounds in which all presets alternate, as a ratio to the same x264.
--processor measures CPU time instead, for machines with other work; use --threads 1, since threads wait. --png draws speed
against size.
"""

import argparse
import statistics
import time

import h264lite
from h264lite.benchmarks import clips, x264
from h264lite.benchmarks.rate_distortion import QPS, points
from h264lite.encoder.settings.options import PRESETS

X264_PRESETS = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
BASELINE = {"profile": "baseline", "8x8dct": 0}


def encoders(args: argparse.Namespace) -> dict:
    """Name -> function of a clip, its frames for x264 and a quantiser that gives the stream."""

    def ours(preset: str):  # type: ignore[no-untyped-def]
        return lambda clip, _, qp: h264lite.encode(
            clip.pictures, width=clip.width, height=clip.height, fps=clip.fps, qp=qp, preset=preset, threads=args.threads,
            device=args.device,
        )  # fmt: skip

    def theirs(preset: str, tools: dict):  # type: ignore[no-untyped-def]
        return lambda clip, frames, qp: x264.run(clip, frames, qp, args.threads, preset, **tools)[0]

    named = {"x264 same tools": theirs("medium", x264.SAME_TOOLS)}
    named |= {f"h264lite {preset}": ours(preset) for preset in PRESETS}
    return named | {f"x264 {preset}": theirs(preset, BASELINE) for preset in X264_PRESETS}


def draw(name: str, speeds: dict[str, float], rates: dict[str, float], title: str) -> None:
    """PNG file `name`: a curve of presets for each encoder."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    for encoder, colour in (("h264lite", "tab:blue"), ("x264", "tab:gray")):
        presets = [preset for preset in speeds if preset.split()[0] == encoder and "same tools" not in preset]
        found = [(speeds[preset], 100 + rates[preset]) for preset in presets]
        axes.plot(*zip(*found), "o-", color=colour, markersize=4, label=encoder)
        for preset, point in zip(presets, found):
            offset, side = ((4, 4), "left") if encoder == "h264lite" else ((-4, -9), "right")
            axes.annotate(preset.split()[1], point, offset, textcoords="offset points", fontsize=7, color=colour, ha=side)
    axes.set(
        xscale="log",
        xlabel="speed, x264 with the same tools = 1",
        ylabel="bits at equal PSNR, %",
        title=title,
        ylim=(80, 130),
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(name, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", default=("foreman_352x288_30", "city_704x576_30"), metavar="CLIP")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--png", metavar="FILE")
    args = parser.parse_args()
    clock = time.process_time if args.processor else time.perf_counter

    named = encoders(args)
    rates: dict[str, list[float]] = {name: [] for name in named}
    speeds: dict[str, list[float]] = {name: [] for name in named}
    for clip_name in args.clips:
        clip = clips.load(clip_name, args.frames)
        frames = x264.video_frames(clip)
        reference = points(clip, [named["x264 same tools"](clip, frames, qp) for qp in QPS])
        for name, encode in named.items():
            found = points(clip, [encode(clip, frames, qp) for qp in QPS])  # the first one compiles
            rates[name].append(clips.require("bjontegaard").bd_rate(*reference, *found, method="akima"))
        seconds: dict[str, list[float]] = {name: [] for name in named}
        for _ in range(3):
            for name, encode in named.items():
                start = clock()
                encode(clip, frames, 27)
                seconds[name].append(clock() - start)
        base = statistics.median(seconds["x264 same tools"])
        for name, spent in seconds.items():
            speeds[name].append(base / statistics.median(spent))
    print(f"{'preset':<22}{'speed':>8}{'BD-rate':>10}   ({', '.join(args.clips)}; {args.threads} threads, {args.device})")
    speed, rate = ({name: statistics.mean(found) for name, found in all_found.items()} for all_found in (speeds, rates))
    for name in named:
        print(f"{name:<22}{speed[name]:>7.2f}x{rate[name]:>+9.2f} %", flush=True)
    if args.png:
        draw(
            args.png,
            speed,
            rate,
            "Constrained Baseline, constant QP, one thread of a CPU" if args.threads == 1 else args.device,
        )


if __name__ == "__main__":
    main()
