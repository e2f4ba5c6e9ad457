"""Decoded frames per second on one core, compared with FFmpeg (one thread, through PyAV) on the same stream and run.

    python benchmarks/decoder.py [--rounds 5] [--walks] [STREAM.264 ...]

Without streams, encodes clips of H264LITE_SEQUENCES with h264lite (--qp, --preset, --frames) and with libx264's Baseline
and High profiles. The first decode, which may compile, is not counted; then the two decoders alternate. Medians of
CPU time, which other work on the machine affects less than wall-clock time; --clock measures wall-clock time.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import h264lite
from h264lite.benchmarks import clips, x264
from h264lite.decoder import picture_decoding

av = clips.require("av")

WALKS = ("parse_slice", "derive_motion", "reconstruct_slice", "deblock_picture")


def ours(data: bytes) -> int:
    """Frames decoded by h264lite."""
    decoder = h264lite.Decoder()
    return sum(1 for call in (lambda: decoder.decode(data), decoder.flush) for _ in call())


def theirs(data: bytes) -> int:
    """Frames decoded by FFmpeg on one thread."""
    context = av.CodecContext.create("h264", "r")
    context.thread_count, context.thread_type = 1, "NONE"
    packets = [*context.parse(data), *context.parse(None)]
    return sum(len(context.decode(packet)) for packet in [*packets, None])


def timed(seconds: dict[str, float], clock: Callable[[], float], name: str) -> None:
    """Makes a walk of the decoder add its time to `seconds`."""
    walk = getattr(picture_decoding, name)

    def measured(*arguments: object) -> object:
        start = clock()
        result = walk(*arguments)
        seconds[name] += clock() - start
        return result

    setattr(picture_decoding, name, measured)


def streams(args: argparse.Namespace) -> dict[str, bytes]:
    """The streams to decode, by name."""
    if args.streams:
        return {Path(name).name: Path(name).read_bytes() for name in args.streams}
    by_name = {}
    for name in clips.SPEED:
        clip = clips.load(name, args.frames)
        options = {"width": clip.width, "height": clip.height, "fps": clip.fps, "qp": args.qp, "preset": args.preset}
        with h264lite.Encoder(**options) as encoder:
            packets = [packet for picture in clip.pictures for packet in encoder.encode(picture)] + encoder.flush()
        by_name[f"{name}, h264lite"] = b"".join(packet.data for packet in packets)
        frames = x264.video_frames(clip)
        for profile, options in (("baseline", {"ref": "1"}), ("high", {"bframes": "3"})):
            by_name[f"{name}, x264 {profile}"] = x264.run(clip, frames, args.qp, 2, profile=profile, **options)[0]
    return by_name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*", metavar="STREAM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--walks", action="store_true", help="time by walk too")
    parser.add_argument("--clock", action="store_true", help="wall clock in place of processor time")
    parser.add_argument("--qp", type=int, default=27)
    parser.add_argument("--preset", default="medium")
    parser.add_argument("--frames", type=int, default=30)
    args = parser.parse_args()

    clock = time.perf_counter if args.clock else time.process_time
    by_walk: dict[str, float] = defaultdict(float)
    for name, data in streams(args).items():
        assert ours(data) == theirs(data), f"{name}: as many frames"
        if args.walks and not by_walk:
            for walk in WALKS:
                timed(by_walk, clock, walk)
        rounds: dict[str, list[float]] = defaultdict(list)
        for _ in range(args.rounds):
            for who, decode in (("h264lite", ours), ("FFmpeg", theirs)):
                by_walk.clear()
                start = clock()
                frames = decode(data)
                rounds[who].append(clock() - start)
                for walk, seconds in by_walk.items():
                    rounds[walk].append(seconds)
        middle = {who: statistics.median(seconds) for who, seconds in rounds.items()}
        print(
            f"{name}: {frames} frames, {8 * len(data) / frames / 1000:.0f} kbit a frame;"
            f" h264lite {frames / middle['h264lite']:.1f} fps, FFmpeg {frames / middle['FFmpeg']:.1f} fps,"
            f" ratio {middle['FFmpeg'] / middle['h264lite']:.3f}"
        )
        for walk in WALKS if args.walks else ():
            print(f"    {walk:<18}{1e3 * middle.get(walk, 0) / frames:8.2f} ms a frame")


if __name__ == "__main__":
    main()
