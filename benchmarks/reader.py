"""VideoReader beside PyAV on one core: frames a second in sequence and at random, by turns, and the time to open a file.

    python benchmarks/reader.py [--rounds 5] [--seeks 40] [--csv FILE] [VIDEO.mp4 ...]

Without videos, encodes clips of H264LITE_SEQUENCES with h264lite's defaults. The process stays on one core; FFmpeg has one
thread. Both give NumPy arrays. `planes`: as decoded; `rgb`: FFmpeg's conversion by swscale. `seeks`: RGB frames at random
indices; PyAV seeks to the keyframe before and decodes up to the time of the frame. Medians of processor time, after a first
round that is not counted and compares the frames; ratio: FFmpeg's time by ours, below 1 where FFmpeg is faster.
"""

import argparse
import csv
import io
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import h264lite
import numpy as np
from h264lite.benchmarks import clips

av = clips.require("av")

Frames = Iterable[Any]
FIELDS = ("clip", "case", "frames", "h264lite", "pyav", "ratio")


def opened(data: bytes) -> tuple[Any, Any]:
    """FFmpeg's container and video stream, of one thread."""
    container = av.open(io.BytesIO(data))
    stream = container.streams.video[0]
    stream.codec_context.thread_count, stream.thread_type = 1, "NONE"
    return container, stream


def their_planes(data: bytes, _: list[int]) -> Frames:
    container, stream = opened(data)
    return (clips.picture_of(frame) for frame in container.decode(stream))


def our_planes(data: bytes, _: list[int]) -> Frames:
    return iter(h264lite.VideoReader(data, format="planes"))


def their_rgb(data: bytes, _: list[int]) -> Frames:
    container, stream = opened(data)
    return (frame.to_ndarray(format="rgb24") for frame in container.decode(stream))


def our_rgb(data: bytes, _: list[int]) -> Frames:
    return iter(h264lite.VideoReader(data))


def their_seeks(data: bytes, indices: list[int]) -> Frames:
    container, stream = opened(data)
    times = sorted(packet.pts for packet in container.demux(stream) if packet.size)
    for index in indices:
        container.seek(times[index], stream=stream)
        yield next(frame for frame in container.decode(stream) if frame.pts >= times[index]).to_ndarray(format="rgb24")


def our_seeks(data: bytes, indices: list[int]) -> Frames:
    reader = h264lite.VideoReader(data)
    return (reader[index] for index in indices)


def their_opening(data: bytes, _: list[int]) -> Frames:
    container, stream = opened(data)
    yield len([packet.pts for packet in container.demux(stream) if packet.size])


def our_opening(data: bytes, _: list[int]) -> Frames:
    yield len(h264lite.VideoReader(data))


CASES: dict[str, tuple[Callable[..., Frames], Callable[..., Frames]]] = {
    "planes": (our_planes, their_planes), "rgb": (our_rgb, their_rgb), "seeks": (our_seeks, their_seeks),
    "opening": (our_opening, their_opening),
}  # fmt: skip


def seconds_of(frames: Callable[..., Frames], data: bytes, indices: list[int]) -> tuple[int, float]:
    """Frames, and processor seconds."""
    begin = time.process_time()
    count = sum(1 for _ in frames(data, indices))
    return count, time.process_time() - begin


def check(case: str, data: bytes, indices: list[int]) -> None:
    """Both give the same frames; RGB but for swscale's roundings."""
    for ours, theirs in zip(*(frames(data, indices) for frames in CASES[case]), strict=True):
        if case == "planes":
            packed = np.concatenate([np.asarray(plane).ravel() for plane in ours]).reshape(theirs.shape)
            assert np.array_equal(packed, theirs), "the same samples"
        elif case != "opening":
            assert np.abs(ours.astype(int) - theirs).mean() < 2, "the same frames"


def videos(args: argparse.Namespace) -> dict[str, bytes]:
    """The files to read, by name."""
    if args.videos:
        return {Path(name).name: Path(name).read_bytes() for name in args.videos}
    by_name = {}
    for name in args.clips.split(","):
        clip = clips.load(name, args.frames)
        words = {"width": clip.width, "height": clip.height, "colormatrix": "smpte170m", "range": "tv"}
        by_name[name] = h264lite.write_video(None, clip.pictures, clip.fps, format="i420", **words)
    return by_name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("videos", nargs="*", metavar="VIDEO")
    parser.add_argument("--clips", default=",".join(clips.SPEED))
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seeks", type=int, default=40)
    parser.add_argument("--csv", help="append rows to this file")
    args = parser.parse_args()

    data = videos(args)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = []
    for name, video in data.items():
        count = len(h264lite.VideoReader(video))
        rng = random.Random(1)
        indices = [rng.randrange(count) for _ in range(args.seeks)]
        for case, both in CASES.items():
            check(case, video, indices)
            seconds = defaultdict(list)
            for _ in range(args.rounds):
                for who, frames in zip(("h264lite", "pyav"), both):
                    done, used = seconds_of(frames, video, indices)
                    seconds[who].append(used)
            ours, theirs = (statistics.median(seconds[who]) for who in ("h264lite", "pyav"))
            rows.append(dict(zip(FIELDS, (name, case, done, f"{ours:.4f}", f"{theirs:.4f}", f"{theirs / ours:.3f}"))))
            print(f"{name:28s} {case:8s}{done:4d}: {ours:.3f} s, PyAV {theirs:.3f} s, ratio {theirs / ours:.3f}", flush=True)
    if args.csv:
        new = not Path(args.csv).exists()
        with open(args.csv, "a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            if new:
                writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
