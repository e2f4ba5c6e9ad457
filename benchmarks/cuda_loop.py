"""The whole loop on a GPU: time by stage, of a P frame, and of the command, compared with x264 ultrafast on this machine.

    H264LITE_SEQUENCES=... python benchmarks/cuda_loop.py [--size 1920x1080] [--frames 600] [--json FILE] [--trace FILE]

Frames are those of the driving clip, forwards and backwards, or synthetic if the size differs or the clip is missing.
Stage times: medians of events over the P frames of a run. Loop: frames already in flight, one after the other, from first
to last stage, and from the last stage of a frame to that of the next; also whole frames of several GOPs at once, with no
other work for the host. Command: raw file to stream, with all streams and with one. x264 gets its frames from memory.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from h264lite.cli.cli import main as command
from h264lite.cuda_src.runtime.device import OFTEN
from h264lite.cuda_src.runtime.recording import Recording
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.cuda_executor import CudaExecutor
from h264lite.scheduler.devices import why_no_cuda
from h264lite.scheduler.hybrid.tuning.models import guess
from h264lite.scheduler.hybrid.tuning.tuning_file import Machine, Tuning, save
from h264lite.scheduler.stages import D2H, H2D, MAIN, SIDE, STAGES
from h264lite.scheduler.trace import GPU, HOST, Trace

CLIP = "driving_1920x1080_30"
REPLAYS = 20


def synthetic_pictures(width: int, height: int, count: int) -> list[np.ndarray]:
    """Synthetic frames: a moving texture with noise, uint8[H * 3 // 2, W] I420."""
    rng = np.random.default_rng(1)
    base = np.cumsum(np.cumsum(rng.normal(0, 2, (height + 64, width + 64)), 0), 1)
    base = (base - base.min()) / np.ptp(base) * 200 + rng.normal(0, 4, base.shape)
    pictures = []
    for n in range(count):
        x, y = 3 * n % 40, 2 * n % 30
        luma = base[y : y + height, x : x + width] + rng.normal(0, 2, (height, width))
        chroma = np.full((height // 2, width), 128)
        pictures.append(np.clip(np.concatenate([luma, chroma]), 0, 255).astype(np.uint8))
    return pictures


def load(width: int, height: int, count: int) -> tuple[str, list[np.ndarray]]:
    """(description, frames)."""
    if (width, height) == (1920, 1080) and os.environ.get("H264LITE_SEQUENCES"):
        from h264lite.benchmarks import clips

        return CLIP, clips.load(CLIP, count).pictures
    return "made up", synthetic_pictures(width, height, min(count, 24))


def planes(picture: np.ndarray, width: int, height: int) -> tuple[np.ndarray, ...]:
    flat, luma, chroma = picture.ravel(), width * height, width * height // 4
    shape = height // 2, width // 2
    u, v = flat[luma : luma + chroma].reshape(shape), flat[luma + chroma :].reshape(shape)
    return picture[:height], u, v


def settings(width: int, height: int, options: dict[str, Any], streams: int = 4) -> Config:
    """The settings of an encode on a GPU."""
    config = Config.from_options(width=width, height=height, device="cuda", **options)
    return config._replace(machine=config.machine._replace(gpu_choices={"streams": streams}))


def run_loop(pictures: list, width: int, height: int, count: int, options: dict[str, Any], streams: int = 4) -> Trace:
    """The timeline of an encode from memory."""
    trace = Trace()
    pipeline = Pipeline(settings(width, height, options, streams), trace=trace)
    for n in range(count):
        pipeline.encode(planes(pictures[n % len(pictures)], width, height))
    pipeline.flush()
    pipeline.close()
    return trace


def closed_loop(pictures: list, width: int, height: int, options: dict[str, Any], streams: int) -> tuple[float, float, float]:
    """Microseconds of P frames' stages with all they wait for, median, least, most: each again and again, the host ahead.

    Again from the same source, references and vectors before, so with the same results.
    """
    pipeline = Pipeline(settings(width, height, options, streams))
    executor = pipeline.executor.loop.executor
    assert isinstance(executor, CudaExecutor)
    times = []
    for n in range(40):
        executor.drop_recordings()  # so that the frame's recording is the only one, recorded before or not
        pipeline.encode(planes(pictures[n], width, height))
        pipeline.flush()
        if n < 4:
            continue
        (whole,) = executor._recordings.values()
        recording = without_the_source(whole)
        gpu, main = executor.gpu, executor.streams[MAIN]
        with gpu:
            begin, end = gpu.event(timing=True), gpu.event(timing=True)
            for _ in range(3):
                gpu.replay(recording)
            gpu.record(begin, main)
            for _ in range(REPLAYS):
                gpu.replay(recording)
            gpu.record(end, main)
            gpu.synchronize(end)
            times.append(1e3 * begin.time_till(end) / REPLAYS)
            gpu.synchronize()
    pipeline.close()
    return statistics.median(times), min(times), max(times)


def at_once(pictures: list, width: int, height: int, options: dict[str, Any], lanes: int) -> float:
    """Microseconds a frame with `lanes` GOPs in turn, if the host only replays recordings of whole frames, with uploads and
    downloads, in the order of the encode, repeatedly. The minimum of three runs.
    """
    pipelines = [Pipeline(settings(width, height, options)) for _ in range(lanes)]
    replays: list[list[tuple[Any, ...]]] = [[] for _ in pipelines]  # arguments of the last frames' replays
    for k, pipeline in enumerate(pipelines):
        executor = pipeline.executor.loop.executor
        assert isinstance(executor, CudaExecutor)
        period = math.lcm(CudaExecutor.frames_on_device, pipeline.config.coding.ref + 1)  # of arrays and slots
        replay = executor.replay
        for n in range(1 + OFTEN * period):
            if n == 1 + (OFTEN - 1) * period:
                vars(executor)["replay"] = lambda *given, k=k, replay=replay: replays[k].append(given) or replay(*given)
            pipeline.encode(planes(pictures[(n + 7 * k) % len(pictures)], width, height))
        pipeline.flush()
        vars(executor).pop("replay")
    executors = [pipeline.executor.loop.executor for pipeline in pipelines]
    gpu = executors[0].gpu  # type: ignore[union-attr]
    rounds = list(zip(*replays, strict=True))
    times = []
    with gpu:
        for _ in range(3):
            gpu.synchronize()
            start = time.perf_counter()
            for _ in range(REPLAYS):
                for frames in rounds:
                    for executor, given in zip(executors, frames):
                        executor.replay(*given)  # type: ignore[union-attr]
            gpu.synchronize()
            times.append(1e6 * (time.perf_counter() - start) / (REPLAYS * len(rounds) * lanes))
    for pipeline in pipelines:
        pipeline.close()
    return min(times)


def without_the_source(recording: Recording) -> Recording:
    """The part of a recording after the source's conversion: a repeated upload would wait for the same frame's download."""
    kernels = list(recording.launches())
    loaded = [name for _, name, _ in kernels].index("load_planes")
    return recording.subset(recording.commands[kernels[loaded + 1][0] :])


def summary(trace: Trace, first: int) -> dict[str, Any]:
    """Medians in microseconds over the frames from `first` on, all of them P frames."""
    spans = [span for span in trace.spans if span[5] >= first]
    gpu = [span for span in spans if span[0] == GPU]
    stages = {}
    for name in dict.fromkeys(span[2] for span in gpu):
        stages[name] = statistics.median(1e6 * span[4] for span in gpu if span[2] == name)
    begins: dict[int, float] = {}
    ends: dict[int, float] = {}
    for _, track, _, begin, seconds, frame in gpu:
        if track in (MAIN, SIDE):
            begins[frame] = min(begins.get(frame, begin), begin)
            ends[frame] = max(ends.get(frame, 0.0), begin + seconds)
    host = {
        name: statistics.median(1e6 * span[4] for span in spans if span[0] == HOST and span[2] == name)
        for name in ("load", "loop", "entropy")
    }
    order = sorted(ends)
    return {
        "stages_us": {name: round(value, 1) for name, value in stages.items()},
        "stream": {name: STAGES[name].stream if name in STAGES else {"upload": H2D}.get(name, D2H) for name in stages},
        "frame_first_to_last_us": round(statistics.median(1e6 * (ends[n] - begins[n]) for n in order), 1),
        "frame_period_us": round(statistics.median(1e6 * (ends[b] - ends[a]) for a, b in zip(order, order[1:])), 1),
        "host_us": {name: round(value, 1) for name, value in host.items()},
    }


def print_summary(title: str, figures: dict[str, Any]) -> None:
    print(f"\n{title}")
    for name, value in sorted(figures["stages_us"].items(), key=lambda item: (figures["stream"][item[0]], -item[1])):
        print(f"    {figures['stream'][name]:10s} {name:18s} {value:9.1f} us")
    loop = sum(value for name, value in figures["stages_us"].items() if figures["stream"][name] == MAIN)
    print(
        f"    sum of the main stream {loop:9.1f} us; first stage to last {figures['frame_first_to_last_us']} us; from frame "
        f"to frame {figures['frame_period_us']} us"
    )
    print("    host, us a frame:", ", ".join(f"{name} {value}" for name, value in figures["host_us"].items()))


def run_command(source: Path, words: list[str]) -> float:
    """Frames per second of the command, as it reports them."""
    report = source.with_suffix(".json")
    out = source.with_suffix(".264")
    start = time.perf_counter()
    if command(["encode", str(source), str(out), "--quiet", "--json", str(report), *words]):
        sys.exit("the command failed")
    wall = time.perf_counter() - start
    stats = json.loads(report.read_text())
    print(
        f"    {stats['encode_fps']:8.1f} fps ({stats['frames'] / wall:.1f} with start and end), {stats['kbps']:.0f} kb/s   "
        f"{' '.join(words)}",
        flush=True,
    )
    return float(stats["encode_fps"])


def run_x264(pictures: list, width: int, height: int, count: int, threads: int, qp: int) -> dict[str, float]:
    try:
        from h264lite.benchmarks import clips, x264

        some = clips.Clip("", width, height, 30, [pictures[n % len(pictures)] for n in range(min(count, 60))])
        frames = x264.video_frames(some)
    except ImportError:
        print("    no PyAV, no x264")
        return {}
    rates = {}
    for preset in ("ultrafast", "superfast", "medium"):
        encoder = x264.X264(some, qp, threads, preset)
        rounds = count // len(frames)
        start = time.perf_counter()
        size = 0
        for n in range(rounds * len(frames)):
            frame = frames[n % len(frames)]
            frame.pts = n
            size += sum(packet.size for packet in encoder.context.encode(frame))
        size += sum(packet.size for packet in encoder.context.encode(None))
        rates[preset] = rounds * len(frames) / (time.perf_counter() - start)
        kbps = size * 8 * 30 / 1000 / rounds / len(frames)
        print(f"    {rates[preset]:8.1f} fps, {kbps:.0f} kb/s   x264 {preset}, qp {qp}, {threads} threads", flush=True)
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--qp", type=int, default=27)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--subme", type=int, default=4)
    parser.add_argument("--profile", default="high")
    parser.add_argument("--no-cabac", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--trace")
    args = parser.parse_args()
    missing = why_no_cuda()
    if missing:
        sys.exit(missing)
    width, height = (int(n) for n in args.size.split("x"))
    clip, pictures = load(width, height, 60)
    pictures = pictures + pictures[-2:0:-1]  # forwards and backwards: no cut
    options = {"qp": args.qp, "threads": args.threads, "subme": args.subme, "profile": args.profile, "bframes": 0}
    options["no_cabac"] = args.no_cabac
    results: dict[str, Any] = {"size": args.size, "clip": clip, **options}
    run_loop(pictures, width, height, 8, options)  # compiles
    for title, streams in (("all streams", 4), ("one stream", 1)):
        trace = run_loop(pictures, width, height, 80, options, streams)
        results[title] = summary(trace, 10)
        print_summary(f"{args.size} {clip}, qp {args.qp}, {title}", results[title])
        if args.trace and streams > 1:
            Path(args.trace).write_bytes(trace.to_json())
    for title, streams in (("all streams", 4), ("one stream", 1)):
        loop = results.setdefault("closed_loop_us", {})[title] = closed_loop(pictures, width, height, options, streams)
        print("closed loop of a P frame, {}: {:.0f} us ({:.0f} to {:.0f})".format(title, *loop), flush=True)
    for lanes in (1, 2, 3):
        spent = results.setdefault("at_once_us", {})[lanes] = at_once(pictures, width, height, options, lanes)
        print(f"whole pictures of {lanes} GOP{'s' if lanes > 1 else ''} at once: {spent:.0f} us a picture", flush=True)
    print(f"\nThe command, {args.frames} frames from a file")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        source = Path(folder) / f"in_{args.size}.yuv"
        with source.open("wb") as file:
            for n in range(args.frames):
                file.write(pictures[n % len(pictures)].tobytes())
        words = ["--qp", str(args.qp), "--bframes", "0", "--subme", str(args.subme), "--threads", str(args.threads)]
        words += ["--profile", args.profile]
        words += ["--no-cabac"] * args.no_cabac
        one_stream = Path(folder) / "one_stream.toml"
        save(Tuning(Machine.here(), guess(("cpu", "cuda:0"), os.cpu_count() or 1), pins={"streams": 1}), one_stream)
        for title, more in (
            ("cuda", ["--device", "cuda"]),
            ("cuda again", ["--device", "cuda"]),
            ("cuda, one stream", ["--device", "cuda", "--tuning", str(one_stream)]),
            ("cuda, ultrafast", ["--device", "cuda", "--preset", "ultrafast"]),
            ("auto", ["--device", "auto"]),
            ("cpu", ["--device", "cpu", "--frames", str(min(args.frames, 60))]),
        ):
            results.setdefault("command_fps", {})[title] = run_command(source, [*words, *more])
    print("\nx264 from memory")
    results["x264_fps"] = run_x264(pictures, width, height, args.frames, args.threads or os.cpu_count() or 1, args.qp)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
