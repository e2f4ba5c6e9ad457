"""Bits beside x264 on clips that constants are chosen on and on others that judge them: originals, coded before, cut.

    H264LITE_SEQUENCES=... H264LITE_CONFORMANCE=... python -m h264lite.benchmarks.coded_before [--preset medium]
        [--option NAME[=VALUE] ...] [--frames 40] [--jobs 1] [CLIP ...]

BD-rate (PCHIP, mean luma PSNR of FFmpeg's decode, CRF 18, 23, 28, 33) against x264's preset of the same name, both with
`--tune psnr` and one thread; negative = fewer bits. Each clip in three forms: the original; as x264 medium at CRF 16 leaves
it; and that from its third frame on, so that its frame types begin within a run. The set `choose` is for choosing constants,
the set `judge` for judging them: what gains on the first alone is fitted to it. Clips are of $H264LITE_SEQUENCES, decoded
streams of $H264LITE_CONFORMANCE, and a synthetic one; behind the @ of a name is the first frame that is taken. Also printed:
the types of both encoders, K for IDR.
"""

import argparse
import os
import statistics
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import h264lite
import numpy as np
from h264lite.benchmarks import clips, x264
from h264lite.benchmarks.presets import bd_rate

CRFS, CRF_BEFORE, CUT = (33, 28, 23, 18), 16, 2
FORMS = "original", "coded before", "cut"
PAN = "pan"  # the synthetic clip
SETS = {
    "choose": ("foreman_352x288_30@0", "BasketballPass_416x240_50@0", "foreman_176x144_30@0", "mobile_352x288_30@0", PAN),
    "judge": (
        "foreman_352x288_30@50", "BasketballPass_416x240_50@50", "foreman_176x144_30@60", "city_704x576_30@0",
        "CANL1_TOSHIBA_G.264@190", "HCBP2_HHI_A.264@150", "LS_SVA_D.264@400",
    ),
}  # fmt: skip


class Curve(NamedTuple):
    """Of an encoder on one clip, from low rates to high ones."""

    kbits: list[float]
    psnr: list[float]
    types: str  # at CRF 23


def pan(frames: int, width: int = 352, height: int = 288) -> list[np.ndarray]:
    """uint8[H*3/2, W]: a scene with the spectrum of photographs that moves by parts of samples, under grain."""
    rng = np.random.default_rng(62)
    shape = height + 64, width + 192
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(shape[0]), np.fft.rfftfreq(shape[1]), indexing="ij"))
    frequency[0, 0] = 1
    spectrum = np.fft.rfft2(rng.normal(0, 1, shape)) / frequency**1.2
    steps = np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None]
    pictures = []
    for n in range(frames):
        moved = np.fft.irfft2(spectrum * np.exp(2j * np.pi * n * (0.6 * steps[0] + 2.3 * steps[1])), shape)
        luma = 128 + 40 * moved[:height, :width] / 2.5 / np.abs(moved).mean() + rng.normal(0, 1.5, (height, width))
        chroma = np.full((height // 2, width), 128, np.uint8)
        pictures.append(np.concatenate([np.clip(np.rint(luma), 0, 255).astype(np.uint8), chroma]))
    return pictures


def original(name: str, frames: int) -> clips.Clip:
    """A clip by its name in SETS."""
    if name == PAN:
        return clips.Clip(name, 352, 288, 30, pan(frames))
    stem, _, first = name.partition("@")
    if stem in clips.ALL:
        clip = clips.load(stem, int(first) + frames)
    else:
        with clips.require("av").open(str(Path(os.environ["H264LITE_CONFORMANCE"]) / stem)) as container:
            decoded = container.decode(video=0)
            pictures = [clips.picture_of(frame) for frame in islice(decoded, int(first) + frames)]
        clip = clips.Clip(stem, pictures[0].shape[1], pictures[0].shape[0] * 2 // 3, 30, pictures)
    return clips.Clip(name, clip.width, clip.height, clip.fps, clip.pictures[int(first) :])


@lru_cache(3)
def clip_of(name: str, form: str, frames: int) -> clips.Clip:
    """A clip in one of FORMS."""
    if form == FORMS[0]:
        return original(name, frames)
    if form == FORMS[2]:  # of the same stream: x264's differ from run to run
        clip = clip_of(name, FORMS[1], frames)
        return clips.Clip(name, clip.width, clip.height, clip.fps, clip.pictures[CUT:])
    clip = clip_of(name, FORMS[0], frames)
    stream, _ = x264.run(clip, x264.video_frames(clip), None, 1, crf=str(CRF_BEFORE))
    return clips.Clip(name, clip.width, clip.height, clip.fps, x264.decode(stream))


def types_of(stream: bytes) -> str:
    """A letter a frame in display order, K for IDR."""
    import av

    context = av.CodecContext.create("h264", "r")
    frames: list[Any] = []
    for packet in [*context.parse(stream), *context.parse(None), None]:
        frames += context.decode(packet)
    return "".join("K" if frame.key_frame else "?IPB"[int(frame.pict_type)] for frame in frames)


def curve_of(clip: clips.Clip, streams: list[bytes]) -> Curve:
    """streams: of CRFS."""
    kbits = [8 * len(stream) * clip.fps / len(clip.pictures) / 1000 for stream in streams]
    return Curve(kbits, [x264.psnr_y(clip, x264.decode(stream)) for stream in streams], types_of(streams[CRFS.index(23)]))


def measure(name: str, form: str, frames: int, preset: str, options: dict[str, Any]) -> tuple[Curve, Curve]:
    """x264's and ours."""
    clip = clip_of(name, form, frames)
    source = x264.video_frames(clip)
    theirs = [x264.run(clip, source, None, 1, preset, tune="psnr", crf=str(crf))[0] for crf in CRFS]
    size = {"width": clip.width, "height": clip.height, "fps": clip.fps}
    same: dict[str, Any] = {"device": "cpu", "threads": 1, "preset": preset, "tune": "psnr"}
    ours = [h264lite.encode(clip.pictures, **size, **same, crf=crf, **options) for crf in CRFS]
    return curve_of(clip, theirs), curve_of(clip, ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", metavar="CLIP", help="parts of names; else all")
    parser.add_argument("--preset", default="medium")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of h264lite, as in Python")
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    clips.require("bjontegaard")  # before the encodes
    options = {name: value or True for name, _, value in (option.partition("=") for option in args.option)}
    chosen = [
        (set_name, name)
        for set_name, names in SETS.items()
        for name in names
        if not args.clips or any(part in name for part in args.clips)
    ]
    rates: dict[tuple[str, str], list[float]] = {}
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        jobs = {
            (set_name, name, form): pool.submit(measure, name, form, args.frames, args.preset, options)
            for set_name, name in chosen
            for form in FORMS
        }
        for (set_name, name, form), job in jobs.items():
            theirs, ours = job.result()
            rate = bd_rate(theirs[:2], ours[:2])
            rates.setdefault((set_name, form), []).append(rate)
            print(f"{set_name:<8}{name:<28}{form:<14}{rate:>+7.2f} %", flush=True)
            print(f"    x264      {theirs.types}\n    h264lite  {ours.types}")
    for (set_name, form), values in rates.items():
        print(f"{set_name:<8}{form:<14} mean {statistics.mean(values):+.2f} %, worst {max(values):+.2f} %")


if __name__ == "__main__":
    main()
