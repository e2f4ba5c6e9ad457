"""`--me dia`, `hex`, `umh` and `step` compared with the full search: time of the stage and of the encode, size and PSNR.

    H264LITE_SEQUENCES=... python benchmarks/step_search.py [--clip foreman_352x288_30] [--frames 60] [--merange 16,32]

All variants alternate, on one thread; medians of the rounds. Ratios are to the full search of the same range.
"""

import argparse
import statistics

import h264lite
from h264lite.benchmarks import clips
from h264lite.benchmarks.speed import encode

VARIANTS = {me: {"me": me} for me in ("fsbm", "dia", "hex", "umh")}
VARIANTS |= {f"step, {n} x {n}": {"me": "step", "step_grid": n} for n in (3, 7, 13)}


def psnr(clip: clips.Clip, **options: object) -> float:
    """Mean luma PSNR."""
    with h264lite.Encoder(width=clip.width, height=clip.height, fps=clip.fps, **options) as encoder:
        for picture in clip.pictures:
            encoder.encode(picture)
        encoder.flush()
        return float(encoder.stats.summary()["all"]["psnr_mean"]["y"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", default="foreman_352x288_30")
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--merange", default="16,32")
    parser.add_argument("--qp", type=int, default=27)
    args = parser.parse_args()
    clip = clips.load(args.clip, args.frames)
    for merange in map(int, args.merange.split(",")):
        common = {"qp": args.qp, "merange": merange, "threads": 1, "device": "cpu", "bframes": 0}
        seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
        stage: dict[str, list[float]] = {name: [] for name in VARIANTS}
        size = {}
        quality = {name: psnr(clip, **common, **more) for name, more in VARIANTS.items()}  # and compiles
        for _ in range(args.rounds):
            for name, more in VARIANTS.items():
                size[name], spent, stages = encode(clip, **common, **more)
                seconds[name].append(spent)
                stage[name].append(sum(stages.get(f"{method}_search", 0.0) for method in ("full", "pattern", "step")))
        whole, stages = ({name: statistics.median(v) for name, v in times.items()} for times in (seconds, stage))
        for name in VARIANTS:
            print(
                f"+-{merange} {name:14} stage {1e3 * stages[name] / len(clip.pictures):6.2f} ms a frame, "
                f"{stages['fsbm'] / stages[name]:5.2f} times as fast; encode {whole['fsbm'] / whole[name]:.2f}; "
                f"bytes {100 * size[name] / size['fsbm'] - 100:+.2f} %, PSNR {quality[name] - quality['fsbm']:+.3f} dB"
            )


if __name__ == "__main__":
    main()
