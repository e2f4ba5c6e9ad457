"""Time of the CUDA kernels within P frames of a real clip: microseconds a frame, by stage, compared with the targets.

    H264LITE_SEQUENCES=... python benchmarks/cuda_kernels.py [--clip driving_1920x1080_30] [--pictures 24] [--qp 27]
        [--merange 16] [--preset medium] [--profile high] [--subme N] [--json FILE]

A frame is encoded; then its driver calls are issued again in the same order, each kernel with the same source, vectors,
modes and residuals, ten times in a row between two events on its own stream, with nothing else on the GPU.
Launches are programmatic as in an encode, so that the start of a launch overlaps the end of the previous one. Such a row
has no waits for other stages and its data are in the cache: the sums are less than the time of a frame (cuda_loop.py).
The host stays ahead, because a long search precedes the first event. A kernel that changes its input (refinement) follows
the kernel that wrote it, whose time alone is subtracted. Kernels of one stage, and repeated kernels of a frame, are summed;
median, minimum and maximum are over frames; the figure of a frame is the median of three rows.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from h264lite.benchmarks import clips
from h264lite.benchmarks.cuda_loop import planes
from h264lite.benchmarks.cuda_stages import BATCH, Filler
from h264lite.cuda_src.entropy.cabac import KERNELS as CABAC_KERNELS
from h264lite.cuda_src.runtime.recording import Command, Recording
from h264lite.cuda_src.search.subpel_refine import KERNELS as REFINEMENTS
from h264lite.encoder.encoded_frame import EncodedFrame
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.cuda_executor import CudaExecutor
from h264lite.scheduler.devices import why_no_cuda
from h264lite.scheduler.stages import MAIN, SIDE

ROUNDS = 3  # rows of a kernel in a frame
FIRST = 4  # first frame measured; earlier frames allocate arrays and load compiled code


class Row(NamedTuple):
    """A line of the table: kernels of one stage. on: the stream, if another stage has the same kernel on another stream."""

    stage: str
    kernels: tuple[str, ...]
    aim: float | None = None  # us
    on: str = ""


TABLE = (
    Row("load_i420", ("load_planes",)),
    Row("search_centre", ("subsample", "search_centre")),
    Row("full_search", tuple(f"full_search{variant}" for variant in ("_16", "_large_16", "", "_large")), 70),
    Row("subpel_refine", REFINEMENTS[1:], 100),
    Row("neighbour_vectors", ("neighbour_vectors", "take_whole")),
    Row("intra_estimate", ("intra_estimate", "intra_estimate_8x8")),
    Row("rd_candidates", ("rd_candidates",)),
    Row("mode_decision", ("mode_decision",)),
    Row("inter_residual", tuple(f"inter_residual{variant}" for variant in ("", "_8x8", "_trellis", "_8x8_trellis")), 40),
    Row("intra", ("intra_fixed_modes", "intra_fixed_modes_8x8", "intra_cost", "intra_8x8_cost")),
    Row("deblock", ("deblock_strengths", "deblock_tiles"), 30),
    Row("extend_luma", ("extend_borders",), on=MAIN),
    Row("extend_chroma", ("extend_borders",), on=SIDE),
    Row("interpolate", ("interpolate",), 25),
    Row("mark_skipped", ("mark_skipped",)),
    Row("ssd", ("ssd",)),
    Row("write_slices", ("code_macroblocks", "place_macroblocks", "pack_slices", *CABAC_KERNELS)),
)
# Kernels that change their input
IN_PLACE = (*REFINEMENTS[1:], "neighbour_vectors", "rd_candidates", "sum_contexts", "add_codes")


class Timed(NamedTuple):
    """The time of a kernel of a frame."""

    kernel: str
    stream: str
    us: float


def stage_of(kernel: str, stream: str) -> str:
    """The table line of a kernel; a kernel that is in no line gets its own."""
    return next((row.stage for row in TABLE if kernel in row.kernels and row.on in ("", stream)), kernel)


def by_stage(picture: Iterable[Timed]) -> dict[str, dict[str, float]]:
    """Microseconds of a frame by stage and kernel, in the order of the table; kernels that are not in the table last."""
    stages: dict[str, dict[str, float]] = {row.stage: {} for row in TABLE}
    for kernel, stream, us in picture:
        kernels = stages.setdefault(stage_of(kernel, stream), {})
        kernels[kernel] = kernels.get(kernel, 0.0) + us
    return {stage: kernels for stage, kernels in stages.items() if kernels}


def lines_of(pictures: list[list[Timed]]) -> list[dict[str, Any]]:
    """The table over all frames: stage, kernels with their medians, stream, median, minimum, maximum, aim; microseconds."""
    aims = {row.stage: row.aim for row in TABLE}
    streams = {stage_of(kernel, stream): stream for picture in pictures for kernel, stream, _ in picture}
    whole = [by_stage(picture) for picture in pictures]
    lines = []
    for stage in by_stage([timed for picture in pictures for timed in picture]):
        each = [picture[stage] for picture in whole if stage in picture]
        sums = [sum(kernels.values()) for kernels in each]
        names = dict.fromkeys(name for kernels in each for name in kernels)
        medians = {name: statistics.median(kernels.get(name, 0.0) for kernels in each) for name in names}
        lines.append({
            "stage": stage, "kernels": {name: round(us, 1) for name, us in medians.items()}, "stream": streams[stage],
            "median_us": round(statistics.median(sums), 1), "least_us": round(min(sums), 1), "most_us": round(max(sums), 1),
            "aim_us": aims.get(stage), "pictures": len(each),
        })  # fmt: skip
    return lines


class Bench:
    """Times the kernels of frames encoded by a pipeline on a GPU."""

    def __init__(self, pipeline: Pipeline, batch: int = BATCH, rounds: int = ROUNDS, fill: bool = True) -> None:
        executor = pipeline.executor.loop.executor
        assert isinstance(executor, CudaExecutor)
        self.pipeline, self.executor, self.gpu = pipeline, executor, executor.gpu
        self.batch, self.rounds = batch, rounds
        self.frames: list[EncodedFrame] = []
        self.late = self.timed = 0  # rows whose first event came before the host had issued all launches; all rows
        config = pipeline.config
        with self.gpu:
            self.filler = Filler(self.gpu, 16 * config.coding.mb_width, 16 * config.coding.mb_height) if fill else None
            self.begin, self.end = (self.gpu.event(timing=True) for _ in range(2))

    def encode(self, *samples: np.ndarray) -> None:
        """Encodes a frame, alone on the GPU."""
        self.frames += self.pipeline.encode(tuple(samples)) + self.pipeline.flush()

    def picture(self, *samples: np.ndarray) -> list[Timed]:
        """Encodes a frame, then times its kernels; returns nothing for an I frame."""
        self.executor.drop_recordings()  # so that the frame's recording is the only one, recorded before or not
        self.encode(*samples)
        (recording,) = self.executor._recordings.values()
        if not any(name.startswith("full_search") for _, name, _ in recording.launches()):
            return []
        with self.gpu:
            return list(self._walk(recording))

    def _walk(self, recording: Recording) -> Iterator[Timed]:
        """All from the source's conversion on again, in order, so that each kernel finds what it found before."""
        kernels = {k: (name, stream) for k, name, stream in recording.launches()}
        names = {stream.handle: name for name, stream in self.executor.streams.items()}
        first, before = next(iter(kernels)), None
        for k in range(first, len(recording.commands)):
            command = recording.commands[k]
            if k not in kernels:
                self.gpu.replay(recording.subset([command]))
                continue
            name, stream = kernels[k]
            if name in IN_PLACE:
                assert before is not None and before[1] == stream, f"{name} follows no kernel of its stream"
                us = self._time(recording, [before[0], command], stream) - self._time(recording, [before[0]], stream)
                self.gpu.replay(recording.subset(recording.commands[first : k + 1]))  # what it changes is made again
            else:
                us = self._time(recording, [command], stream)
            before = command, stream
            yield Timed(name, names[stream], us)

    def _time(self, recording: Recording, commands: list[Command], queue: int) -> float:
        """Microseconds of a recording's commands on the stream with this handle, issued repeatedly, alone on the GPU."""
        gpu, row, times = self.gpu, recording.subset(commands * self.batch), []
        stream = next(stream for stream in self.executor.streams.values() if stream.handle == queue)
        gpu.replay(row)
        for _ in range(self.rounds):
            gpu.synchronize()
            if self.filler is not None:
                self.filler(stream)
            gpu.record(self.begin, stream)
            gpu.replay(row)
            gpu.record(self.end, stream)
            self.late += gpu.done(self.begin)
            self.timed += 1
            gpu.synchronize(self.end)
            times.append(1e6 * gpu.seconds(self.begin, self.end) / self.batch)
        return statistics.median(times)


def print_table(lines: list[dict[str, Any]]) -> None:
    """Prints one line for each stage, and the sum of each stream."""
    print(f"{'stage':16s} {'stream':10s} {'median':>8s} {'least':>8s} {'most':>8s} {'aim':>5s}   us a picture; kernels")
    for line in lines:
        aim = "" if line["aim_us"] is None else f"{line['aim_us']:.0f}"
        kernels = " + ".join(f"{name} {us}" for name, us in line["kernels"].items())
        times = " ".join(f"{line[name]:8.1f}" for name in ("median_us", "least_us", "most_us"))
        print(f"{line['stage']:16s} {line['stream']:10s} {times} {aim:>5s}   {kernels}")
    for stream in dict.fromkeys(line["stream"] for line in lines):
        print(f"{'sum':16s} {stream:10s} {sum(line['median_us'] for line in lines if line['stream'] == stream):8.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", default="driving_1920x1080_30")
    parser.add_argument("--pictures", type=int, default=24)
    parser.add_argument("--qp", type=int, default=27)
    parser.add_argument("--merange", type=int, default=16)
    parser.add_argument("--preset", default="medium")
    parser.add_argument("--profile", default="high")
    parser.add_argument("--subme", type=int)
    parser.add_argument("--json")
    args = parser.parse_args()
    missing = why_no_cuda()
    if missing:
        sys.exit(missing)
    clip = clips.load(args.clip, FIRST + args.pictures)
    pictures = clip.pictures + clip.pictures[-2:0:-1]  # forwards and backwards: no cut
    options = {"qp": args.qp, "merange": args.merange, "preset": args.preset, "ref": 1, "profile": args.profile, "bframes": 0}
    if args.subme is not None:
        options["subme"] = args.subme
    pipeline = Pipeline(Config.from_options(width=clip.width, height=clip.height, device="cuda", **options))
    bench = Bench(pipeline)
    timed_pictures = []
    for n in range(FIRST + args.pictures):
        samples = planes(pictures[n % len(pictures)], clip.width, clip.height)
        if n < FIRST:
            bench.encode(*samples)
        elif timed := bench.picture(*samples):
            timed_pictures.append(timed)
    lines = lines_of(timed_pictures)
    about = {"device": bench.gpu.name, "clip": args.clip, "pictures": len(timed_pictures), **options}
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print_table(lines)
    if bench.late:
        print(f"the GPU was ahead of the host in {bench.late} of {bench.timed} rows: these tell the host's time as well")
    if args.json:
        Path(args.json).write_text(json.dumps({**about, "rows": bench.timed, "late": bench.late, "stages": lines}, indent=1))
    pipeline.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
