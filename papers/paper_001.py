"""Paper 001: variable block sizes in three scenarios of streams, and how copies and kernels overlap in them."""

from functools import partial

import numpy as np
from h264lite.scheduler.trace import GPU, GpuClock, Trace

from . import published
from .kernels import streams
from .setting import Clip, Product, Setting, wall
from .table import PRINT, Table

CLIPS = ("foreman_352x288_30", "driving_1920x1080_30")
PICTURES, STREAMS = 13, 4
COPIES = ("upload", "download")


def overlap(spans: list[tuple[str, str, float, float]]) -> float:
    """The share of the copies' time (0 to 1) during which a kernel of another stream runs; spans: track, name, begin, end."""
    kernels = [(track, a, b) for track, name, a, b in spans if name == "kernel"]
    total = shared = 0.0
    for track, name, a, b in spans:
        if name in COPIES:
            total += b - a
            overlaps = sorted((max(a, c), min(b, d)) for other, c, d in kernels if other != track and c < b and d > a)
            end = a
            for c, d in overlaps:
                shared += max(0.0, d - max(c, end))
                end = max(end, d)
    return shared / total if total else 0.0


def timeline(setting: Setting, clip: Clip, scenario: str) -> list[tuple[str, str, float, float]]:
    """(stream, what, begin, end), seconds from the first span's begin."""
    gpu, trace = setting.gpu, Trace()
    assert gpu is not None
    clock = GpuClock(gpu, trace, gpu.stream())
    work = streams.Scenarios(gpu, clip.frames, STREAMS, clock)
    for _ in range(2):  # the second time without allocations
        trace.spans.clear()
        work.run(scenario)
        clock.resolve(clock.take())
    work.close()
    spans = [(track, name, begin, begin + seconds) for where, track, name, begin, seconds, _ in trace.spans if where == GPU]
    first = min((span[2] for span in spans), default=0.0)
    return [(track, name, a - first, b - first) for track, name, a, b in spans]


def run(setting: Setting) -> list[Table]:
    """Times and overlap of the scenarios; without a GPU only what is in print."""
    columns = ["scenario", PRINT + "time, scenario 1 = 1"]
    rows: list[list] = [[f"{n[-1]}: {how}", published.SCENARIOS[n]] for n, how in streams.SCENARIOS.items()]
    last: list[float | None] = [None] * len(rows)
    for clip in setting.clips(*CLIPS, frames=PICTURES):
        size = f"{clip.shape[1]}x{clip.shape[0]}"
        columns += [f"{size}, ms a picture", f"{size}, scenario 1 = 1", f"{size}, copies beside kernels, %"]
        if not setting.gpu:
            rows = [[*row, None, None, None] for row in rows]
            continue
        work = streams.Scenarios(setting.gpu, clip.frames, STREAMS)
        times, keys = {}, {}
        for name in streams.SCENARIOS:
            keys[name] = work.run(name)
            times[name] = wall(partial(work.run, name), setting.repeats) / (len(clip.frames) - 1)
            setting.timelines[f"{size} {name}"] = timeline(setting, clip, name)
        assert all(np.array_equal(keys["scenario-1"], other) for other in keys.values())
        work.close()
        product = Product(clip.frames, 16).clip_on_gpu(setting.gpu)[0] / (len(clip.frames) - 1)
        for k, (row, name) in enumerate(zip(rows, streams.SCENARIOS)):
            row += [1000 * times[name], times[name] / times["scenario-1"], 100 * overlap(setting.timelines[f"{size} {name}"])]
            last[k] = times[name] / product
    columns += ["h264lite is faster by"]
    rows = [[*row, value] for row, value in zip(rows, last)]
    return [Table("001", "Run times of the three scenarios", columns, rows, [c for c in columns if "= 1" in c])]
