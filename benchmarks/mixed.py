"""What the macroblock tree is worth on a long clip of different content: `--crf` with it, and with --no-mbtree.

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.mixed [--preset medium] [--tune psnr] [--bframes 3] [--threads 2]
        [--x264] [--json FILE]

All clips of the folder but the smaller foreman, one after the other, each there and back, at 352x288 and 25 frames/s: scaled
to a height of 288 (bicubic) and cropped. BD-PSNR (PCHIP, dB at equal bits over the bits that both have) and BD-rate, by the
mean of the frames' luma PSNR and by that of the mean squared error of all, of what FFmpeg decodes. --x264: the same of
x264.
"""

import argparse
import json
from pathlib import Path

import h264lite
import numpy as np
from h264lite.benchmarks import clips, x264

WIDTH, HEIGHT, FPS = 352, 288, 25
CLIPS = clips.ALL[1:]
RATES = (20, 25, 30)  # --crf


def cropped(name: str) -> list[np.ndarray]:
    """The pictures of a clip at this size, there and back."""
    av = clips.require("av")
    clip = clips.load(name)
    width = max(WIDTH, round(clip.width * HEIGHT / clip.height / 2) * 2)
    left = (width - WIDTH) // 4 * 2
    pictures = []
    for frame in x264.video_frames(clip):
        picture = clips.picture_of(frame.reformat(width, HEIGHT, interpolation=av.video.reformatter.Interpolation.BICUBIC))
        luma, chroma = picture[:HEIGHT], picture[HEIGHT:].reshape(2, HEIGHT // 2, width // 2)
        planes = luma[:, left : left + WIDTH], chroma[:, :, left // 2 : (left + WIDTH) // 2]
        pictures.append(np.concatenate([plane.ravel() for plane in planes]).reshape(-1, WIDTH))
    return pictures + pictures[-2:0:-1]


def psnrs(clip: clips.Clip, data: bytes) -> tuple[float, float]:
    """(mean of the frames' luma PSNR, luma PSNR of the mean squared error), dB."""
    errors = []
    for source, decoded in zip(clip.pictures, x264.decode(data), strict=True):
        difference = source[:HEIGHT].astype(np.int32) - decoded[:HEIGHT]
        errors.append(float(np.mean(difference * difference)))
    decibels = -10 * np.log10(np.maximum(errors, 1e-10) / 255**2)
    return float(np.mean(decibels)), float(-10 * np.log10(np.mean(errors) / 255**2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="medium")
    parser.add_argument("--tune", default="psnr")
    parser.add_argument("--bframes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--x264", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    bjontegaard = clips.require("bjontegaard")

    clip = clips.Clip("mixed", WIDTH, HEIGHT, FPS, [picture for name in CLIPS for picture in cropped(name)])
    seconds = len(clip.pictures) / FPS
    print(f"{len(clip.pictures)} frames, {seconds:.1f} s")
    curves: dict[str, list[tuple[float, float, float]]] = {}

    def measured(encoder: str, has_tree: bool, rate: int) -> bytes:
        if encoder == "x264":
            tools = {"crf": str(rate), "tune": args.tune, "bframes": str(args.bframes), "mbtree": str(int(has_tree))}
            return x264.run(clip, x264.video_frames(clip), None, args.threads, args.preset, **tools)[0]
        return h264lite.encode(
            clip.pictures,
            width=WIDTH,
            height=HEIGHT,
            fps=FPS,
            crf=rate,
            no_mbtree=not has_tree,
            preset=args.preset,
            tune=args.tune,
            bframes=args.bframes,
            threads=args.threads,
            device="cpu",
        )

    for encoder in ("h264lite", *(["x264"] if args.x264 else [])):
        for name, has_tree in (("--no-mbtree", False), ("tree", True)):
            points = curves[f"{encoder} {name}"] = []
            for rate in RATES:
                data = measured(encoder, has_tree, rate)
                points.append((8 * len(data) / seconds / 1000, *psnrs(clip, data)))
                bits, *decibels = points[-1]
                print(
                    f"{encoder:<9}{name:<12} crf {rate} {bits:9.1f} kbit/s",
                    *(f"{one:7.3f}" for one in decibels),
                    "dB",
                    flush=True,
                )
        without, with_tree = (sorted(curves[f"{encoder} {name}"]) for name in ("--no-mbtree", "tree"))
        for k, mean in ((1, "mean of frames"), (2, "mean squared error")):
            given = [[point[j] for point in points] for points in (without, with_tree) for j in (0, k)]
            gain = bjontegaard.bd_psnr(*given, method="pchip", min_overlap=0)
            bits = bjontegaard.bd_rate(*given, method="pchip", min_overlap=0)
            print(f"{encoder}, PSNR by {mean}: tree {gain:+.2f} dB, {bits:+.1f} % bits", flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(curves, indent=1))


if __name__ == "__main__":
    main()
