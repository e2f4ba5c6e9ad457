"""Time of CABAC on a GPU within frames of a real clip: microseconds a frame of each kernel, of the bins, of the engine.

    H264LITE_SEQUENCES=... python benchmarks/cuda_cabac.py [--clip driving_1920x1080_30] [--frames 12] [--qp 27]
        [--keyint 250] [--slices 1] [--profile main] [--json FILE]

A frame is encoded; then the launches of write_slices are issued again as in an encode, alone on the GPU: the first,
the first two and so on, ten times in a row between two events. A kernel's time is the difference to the row before, so it is
what the kernel adds, with the overlap of launches; the whole is the last row. The frames of a keyint of 1 are I frames.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from h264lite.benchmarks import clips
from h264lite.benchmarks.cuda_kernels import FIRST, Bench
from h264lite.benchmarks.cuda_loop import planes
from h264lite.cuda_src.entropy.cabac import KERNELS
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.devices import why_no_cuda

BINS = 3  # kernels that make the bins; the others are the engine


def times_of(bench: Bench, samples: list) -> list[float]:
    """Encodes a frame; microseconds of the first kernel of write_slices, of the first two, and so on."""
    bench.executor.drop_recordings()  # so that the frame's recording is the only one, recorded before or not
    bench.encode(*samples)
    (recording,) = bench.executor._recordings.values()
    launches = [(recording.commands[k], name, stream) for k, name, stream in recording.launches() if name in KERNELS]
    assert tuple(name for _, name, _ in launches) == KERNELS
    commands, stream = [command for command, _, _ in launches], launches[0][2]
    with bench.gpu:
        return [bench._time(recording, commands[: n + 1], stream) for n in range(len(commands))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", default="driving_1920x1080_30")
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--qp", type=int, default=27)
    parser.add_argument("--keyint", type=int, default=250)
    parser.add_argument("--slices", type=int, default=1)
    parser.add_argument("--profile", default="main")
    parser.add_argument("--json")
    args = parser.parse_args()
    missing = why_no_cuda()
    if missing:
        sys.exit(missing)
    clip = clips.load(args.clip, FIRST + args.frames)
    options = {"qp": args.qp, "keyint": args.keyint, "slices": args.slices, "profile": args.profile, "ref": 1, "bframes": 0}
    pipeline = Pipeline(Config.from_options(width=clip.width, height=clip.height, device="cuda", **options))
    bench = Bench(pipeline)
    rows = []
    for n, picture in enumerate(clip.pictures):
        samples = list(planes(picture, clip.width, clip.height))
        if n < FIRST:
            bench.encode(*samples)
        else:
            rows.append(times_of(bench, samples))
    sizes = [len(frame.data) for frame in bench.frames[FIRST:]]
    medians = [statistics.median(row[k] for row in rows) for k in range(len(KERNELS))]
    each = {name: round(us - before, 1) for name, us, before in zip(KERNELS, medians, [0.0, *medians])}
    whole = [row[-1] for row in rows]
    engine = [row[-1] - row[BINS - 1] for row in rows]
    result = {
        "device": bench.gpu.name, "clip": args.clip, "frames": len(rows), **options,
        "bytes": round(statistics.median(sizes)), "kernels": each,
    }  # fmt: skip
    result |= {"engine_us": round(statistics.median(engine), 1), "whole_us": round(statistics.median(whole), 1)}
    result |= {"whole_least_us": round(min(whole), 1), "whole_most_us": round(max(whole), 1)}
    print(", ".join(f"{name} {value}" for name, value in result.items() if name != "kernels"))
    for name, us in each.items():
        print(f"{name:16s} {us:8.1f}")
    if bench.late:
        print(f"the GPU was ahead of the host in {bench.late} of {bench.timed} rows: these tell the host's time as well")
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1))
    pipeline.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
