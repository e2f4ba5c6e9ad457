"""Predicts the time of a plan from the time models: simulates the operations of consecutive frames on in-order engines.

Pure: no clock, no threads. Each device is an engine (for a GPU that works alone each of its streams), and so is each
direction of a link; an operation begins when its engine is free and its needs are over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ..stages import ENTROPY_STAGE, MAIN, SIDE, STAGES
from .plan import HOST, Plan, is_gpu, memory_of
from .residency import NOTHING
from .route import COMPACT, Copy, FrameTraits, Op, Run, route
from .tuning.models import CPU, ENTROPY, ISSUE, LOAD, Models

SIMULATED_FRAMES = 3  # the time between the ends of the last two counts
MEETING_STEPS = 14  # halvings of an interval as long as a frame
MAX_ROUTED_FRAMES = 6  # until the residency repeats
LOADING = "load_i420"  # conversion of samples to planes; with several streams it runs during the frame before
_LOOP = (MAIN, SIDE, "")  # streams that the next frame waits for


@lru_cache(4096)
def cycle(plan: Plan, frame_traits: FrameTraits) -> tuple[tuple[Op, ...], ...]:
    """Operations of a P frame, and of each frame of `then`, in the steady state: the residency before and after is equal."""
    valid, frames = NOTHING, tuple[tuple[Op, ...], ...]()
    for _ in range(MAX_ROUTED_FRAMES):
        after, routed = valid, []
        for frame in frame_traits.frames:
            ops, after = route(plan, frame, after)
            routed.append(ops)
        frames = tuple(routed)
        if after == valid:
            break
        valid = after
    return frames


@dataclass(frozen=True)
class Timeline:
    """Begin and end of each operation of the last frame, in seconds from the end of the frame before.

    frames: with those of `then` in FrameTraits, several; their operations follow one another.
    """

    ops: tuple[Op, ...]
    spans: tuple[tuple[float, float], ...]
    seconds: float  # from frame to frame
    frames: int = 1

    def busy(self) -> dict[tuple[str, ...], float]:
        """Seconds of work a frame by device, (device,), and link, (source, target)."""
        busy: dict[tuple[str, ...], float] = {}
        for op, (begin, end) in zip(self.ops, self.spans):
            key = (op.device,) if isinstance(op, Run) else (op.source, op.target)
            busy[key] = busy.get(key, 0.0) + (end - begin) / self.frames
        return busy

    def stage_seconds(self) -> dict[tuple[str, str], float]:
        """Seconds a frame by (stage, device), summed over the references of a frame."""
        seconds: dict[tuple[str, str], float] = {}
        for op, (begin, end) in zip(self.ops, self.spans):
            if isinstance(op, Run):
                seconds[op.stage, op.device] = seconds.get((op.stage, op.device), 0.0) + (end - begin) / self.frames
        return seconds


Engine = tuple[str, str]


@dataclass(frozen=True)
class _Costs:
    """Seconds and engines of the operations of one frame. meeting: seconds from a copy's end until its rows are used."""

    ops: tuple[Op, ...]
    spent: tuple[float, ...]
    engines: tuple[Engine, ...]
    meeting: float = 0.0

    @classmethod
    def of(cls, ops: tuple[Op, ...], width: int, models: Models, gpu: str | None, streams: str | None) -> "_Costs":
        """width: macroblocks a row; gpu: the GPU that works alone, or None; streams: the same if it has several streams."""
        spent, engines = [], list[Engine]()
        moved: dict[tuple[str, str], int] = {}
        for op in ops:
            if isinstance(op, Copy):
                moved[op.source, op.target] = moved.get((op.source, op.target), 0) + op.bytes
        for op in ops:
            if isinstance(op, Run):
                of_bits = gpu or not models.knows(COMPACT, op.device)  # a GPU alone writes the bits too
                stage = ENTROPY_STAGE if op.stage == COMPACT and of_bits else op.stage
                known = models.knows(stage, op.device)
                spent.append(models.seconds(stage, op.device, op.row1 - op.row0, width) if known else 0.0)
                engines.append((op.device, STAGES[op.stage].stream if op.device == streams else ""))
            else:
                size = moved[op.source, op.target] if gpu else op.bytes  # a GPU alone copies its arrays in one block
                spent.append(models.copy_seconds(op.source, op.target, size) * (op.bytes / size if size else 0.0))
                engines.append((op.source, op.target) if gpu is None or streams else (gpu, ""))
        return cls(ops, tuple(spent), tuple(engines), 0.0 if gpu else models.meeting)


def simulate(plan: Plan, frame_traits: FrameTraits, models: Models, ops: Sequence[Op] | None = None) -> Timeline:
    """Simulate consecutive frames, SIMULATED_FRAMES times those of the traits. ops: of a frame; None: in the steady state."""
    width = frame_traits.size.mb_width
    single = plan.single
    gpu = single if single is not None and is_gpu(single) else None
    streams = gpu if models.streams > 1 else None  # only a GPU that works alone has several streams, by tuning
    frames = [
        _Costs.of(of_frame, width, models, gpu, streams)
        for of_frame in (cycle(plan, frame_traits) if ops is None else (tuple(ops),))
    ]
    loading = models.seconds(LOADING, gpu, frame_traits.size.mb_height, width) if gpu and models.knows(LOADING, gpu) else 0.0
    free: dict[Engine, float] = {}
    ended: dict[str, float] = {}  # end of each stage of the GPU that works alone
    last = before = 0.0
    spans: list[tuple[float, float]] = []
    ready_at = {memory: 0.0 for memory in {HOST, *map(memory_of, plan.devices)}}  # by memory: end of the frame before
    for _ in range(SIMULATED_FRAMES):
        spans, before = [], last
        for costs in frames:
            if gpu is not None and streams is None:
                free[gpu, ""] = free.get((gpu, ""), 0.0) + loading
            spans += _simulate_frame(costs, streams, ready_at, free, ended)
        last = max(ready_at.values())
    ended_at = tuple((a - before, b - before) for a, b in spans)
    return Timeline(tuple(op for costs in frames for op in costs.ops), ended_at, (last - before) / len(frames), len(frames))


def _simulate_frame(
    costs: _Costs, streams: str | None, ready_at: dict[str, float], free: dict[Engine, float], ended: dict[str, float]
) -> list[tuple[float, float]]:
    """Begin and end of each operation of one frame; the last three are changed, see `simulate`."""
    spans: list[tuple[float, float]] = []
    for op, seconds, engine in zip(costs.ops, costs.spent, costs.engines):
        begin = free.get(engine, 0.0)
        for need in op.needs:
            begin = max(begin, spans[need][1] + costs.meeting * isinstance(costs.ops[need], Copy))
        if isinstance(op, Copy):
            if not op.needs and op.array[1] >= 0:  # array of an earlier frame
                begin = max(begin, ready_at[op.source])
        elif op.device == streams:
            for other in STAGES[op.stage].after.split():
                begin = max(begin, ended.get(other, 0.0))
        end = begin + seconds
        spans.append((begin, end))
        free[engine] = end
        if isinstance(op, Run) and op.device == streams:
            ended[op.stage] = end
    for engine, (_, end) in zip(costs.engines, spans):
        if engine[1] in _LOOP:
            ready_at[memory_of(engine[0])] = max(ready_at[memory_of(engine[0])], end)
    return spans


def meeting_of(plan: Plan, frame_traits: FrameTraits, models: Models, seconds: float) -> float:
    """The seconds of a meeting (Models.meeting) with which the simulation of a plan takes `seconds` a frame; 0 if it takes
    them without any, or has none.
    """

    def simulated(meeting: float) -> float:
        return simulate(plan, frame_traits, replace(models, meeting=meeting)).seconds

    low, high = 0.0, seconds
    if plan.single is not None or simulated(0.0) >= seconds:
        return 0.0
    for _ in range(MEETING_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if simulated(middle) < seconds else (low, middle)
    return low


@dataclass(frozen=True)
class Prediction:
    """Predicted seconds a frame. times: seconds by bottleneck; the slowest decides."""

    times: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Seconds a frame."""
        return max(self.times.values())

    @property
    def bound(self) -> str:
        """Name of the slowest part."""
        return max(self.times, key=lambda name: self.times[name])


def predict(plan: Plan, frame_traits: FrameTraits, models: Models, timeline: Timeline | None = None) -> Prediction:
    """Predict a whole encode: the loop, the host thread that issues it, the threads that write bits, the links.

    CPU threads that work in the loop and write bits do both in sequence. A GPU that works alone writes the bits; the rest of
    that work is part of the host thread's time.
    """
    timeline = timeline or simulate(plan, frame_traits, models)
    size, threads, loop = frame_traits.size, models.threads, timeline.seconds
    busy = timeline.busy()
    gpus = [device for device in plan.devices if is_gpu(device) and busy.get((device,))]

    def host(name: str) -> float:
        owners = (CPU, *gpus) if name == ENTROPY else (*gpus, CPU)
        known = [device for device in owners if models.knows(name, device)]
        return models.seconds(name, known[0], size.mb_height, size.mb_width) if known else 0.0

    bits, load, issue = host(ENTROPY) / threads, host(LOAD), host(ISSUE)
    pixels = sum(seconds for key, seconds in busy.items() if len(key) == 1 and not is_gpu(key[0]))
    if plan.single in gpus:
        times = {"loop": loop, "host thread": load + issue}
    elif gpus:
        times = {"bits": bits, "loop": loop, "host thread": load + issue}
        times["processor"] = pixels + bits + (load + issue) / threads
    else:
        times = {"bits": bits, "loop": loop + bits + load + issue}
    for (source, target), seconds in ((key, seconds) for key, seconds in busy.items() if len(key) == 2):
        times[f"copies {source} to {target}"] = seconds
    return Prediction(times)
