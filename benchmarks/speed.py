"""Frames per second and time by stage, compared with x264 with the same tools in alternating rounds.

    H264LITE_SEQUENCES=... python benchmarks/speed.py [--threads 2] [--qp 27] [--preset medium] [--profile high]
        [--device cpu] [CLIP ...]

Each round encodes with h264lite, then with libx264 (through PyAV); medians of the rounds, and their ratio.
"""

import argparse
import statistics
import time

import h264lite
from h264lite.benchmarks import clips, x264


def encode(clip: clips.Clip, **options: object) -> tuple[int, float, dict[str, float]]:
    """Bytes, seconds and seconds by stage of one encode by h264lite."""
    stages: dict[str, float] = {}
    with h264lite.Encoder(width=clip.width, height=clip.height, fps=clip.fps, **options) as encoder:
        start = time.perf_counter()
        size = 0
        for picture in clip.pictures:
            size += sum(len(packet.data) for packet in encoder.encode(picture))
        size += sum(len(packet.data) for packet in encoder.flush())
        seconds = time.perf_counter() - start
        stages = dict(encoder.stats.stage_seconds)
    return size, seconds, stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", default=clips.SPEED, metavar="CLIP")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--qp", type=int, default=27)
    parser.add_argument("--preset", default="medium")
    parser.add_argument("--profile", default="high")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=0)
    args = parser.parse_args()

    tools = x264.SAME_TOOLS[args.profile]
    print("x264:", *(f"{name}={value}" for name, value in tools.items()), f"threads={args.threads}")
    for name in args.clips:
        clip = clips.load(name, args.frames)
        frames = x264.video_frames(clip)
        options = {name: getattr(args, name) for name in ("qp", "threads", "preset", "profile", "device")} | {"bframes": 0}
        encode(clips.Clip(clip.name, clip.width, clip.height, clip.fps, clip.pictures[:2]), **options)  # compile
        ours, theirs, stages = [], [], {}
        for _ in range(args.rounds):
            size, seconds, stages = encode(clip, **options)
            ours.append(seconds)
            data, seconds = x264.run(clip, frames, args.qp, args.threads, **tools)
            theirs.append(seconds)
        n, a, b = len(frames), statistics.median(ours), statistics.median(theirs)
        print(
            f"{name}: h264lite {n / a:.1f} fps, x264 {n / b:.1f} fps, ratio {b / a:.2f}; "
            f"bytes {size} to {len(data)}, ratio {size / len(data):.3f}"
        )
        total = sum(stages.values())
        for stage, spent in sorted(stages.items(), key=lambda item: -item[1]):
            print(f"    {stage:<16}{1e3 * spent / n:8.2f} ms a frame {100 * spent / total:5.1f} %")


if __name__ == "__main__":
    main()
