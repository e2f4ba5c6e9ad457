"""Rate-distortion points and BD-rate against x264 with the same tools (package `bjontegaard`, Akima).

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.rate_distortion [--preset medium] [--profile high]
        [--frames 0] [CLIP ...]

Luma PSNR is the mean over frames, of what FFmpeg decodes from either stream. Positive BD-rate = more bits than x264.
"""

import argparse

import h264lite
from h264lite.benchmarks import clips, x264

QPS = (22, 27, 32, 37)


def points(clip: clips.Clip, streams: list[bytes]) -> tuple[list[float], list[float]]:
    """(kbit/s, dB) of each stream, lowest rate first."""
    seconds = len(clip.pictures) / clip.fps
    rate = [8 * len(data) / seconds / 1000 for data in streams]
    psnr = [x264.psnr_y(clip, x264.decode(data)) for data in streams]
    return rate[::-1], psnr[::-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", default=clips.ALL, metavar="CLIP")
    parser.add_argument("--preset", default="medium")
    parser.add_argument("--profile", default="high")
    parser.add_argument("--x264-preset", default="medium", help="with the tools of the line below")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    clips.require("bjontegaard")  # before the encodes

    tools = x264.SAME_TOOLS[args.profile]
    print("x264:", *(f"{name}={value}" for name, value in tools.items()))
    rates = []
    for name in args.clips:
        clip = clips.load(name, args.frames)
        frames = x264.video_frames(clip)
        pictures = clip.pictures
        ours = [
            h264lite.encode(
                pictures,
                width=clip.width,
                height=clip.height,
                fps=clip.fps,
                qp=qp,
                preset=args.preset,
                profile=args.profile,
                threads=args.threads,
                device=args.device,
            )
            for qp in QPS
        ]
        theirs = [x264.run(clip, frames, qp, args.threads, args.x264_preset, **tools)[0] for qp in QPS]
        our_points, their_points = points(clip, ours), points(clip, theirs)
        bd_rate = clips.require("bjontegaard").bd_rate(*their_points, *our_points, method="akima")
        rates.append(bd_rate)
        print(f"{name}: BD-rate {bd_rate:+.2f} %", flush=True)
        for label, (rate, psnr) in (("h264lite", our_points), ("x264", their_points)):
            print(f"    {label:<9}", *(f"{r:9.1f} kb/s {p:6.3f} dB" for r, p in zip(rate, psnr)))
    print(f"mean BD-rate {sum(rates) / len(rates):+.2f} % over {len(rates)} clips")


if __name__ == "__main__":
    main()
