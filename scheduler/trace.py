"""A timeline in Chrome's trace format (chrome://tracing, Perfetto): streams of the GPU, threads of the host, frames."""

import json
import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..cuda_src.runtime.array import Event, Stream
    from ..cuda_src.runtime.device import Device

GPU, HOST = 1, 2  # process numbers of the format

Span = tuple[int, str, str, float, float, int]
"""GPU or HOST, track, name, begin, seconds, frame."""


class Trace:
    """Spans by track. Times are seconds of time.perf_counter(); several threads may add.

    gpu: GPU stages are timed too, by events, which costs host time.
    """

    def __init__(self, gpu: bool = True, whole: "Trace | None" = None, prefix: str = "") -> None:
        """whole: the timeline that this one adds to; prefix: of its tracks there."""
        self.gpu, self._prefix = gpu, prefix
        self.start: float = time.perf_counter() if whole is None else whole.start
        self.spans: list[Span] = [] if whole is None else whole.spans

    def add(self, process: int, track: str, name: str, begin: float, seconds: float, frame: int = -1) -> None:
        """One span on a track (a stream, a thread) of the GPU or the host."""
        self.spans.append((process, self._prefix + track, name, begin, seconds, frame))

    def with_prefix(self, prefix: str) -> "Trace":
        """A view of this timeline whose tracks get a prefix, for one of several lanes."""
        return Trace(self.gpu, self, prefix)

    def seconds(self, process: int = GPU) -> dict[str, list[float]]:
        """Durations by name."""
        by_name = defaultdict(list)
        for of_process, _, name, _, seconds, _ in list(self.spans):
            if of_process == process:
                by_name[name].append(seconds)
        return dict(by_name)

    def document(self) -> dict[str, object]:
        """The document of the file; times in microseconds from the start."""
        tracks: dict[tuple[int, str], int] = {}
        events: list[dict[str, object]] = []
        for process, track, name, begin, seconds, frame in sorted(self.spans, key=lambda span: span[3]):
            number = tracks.setdefault((process, track), len(tracks))
            event = {"name": name, "ph": "X", "pid": process, "tid": number}
            event |= {"ts": round(1e6 * (begin - self.start), 3), "dur": round(1e6 * seconds, 3)}
            events.append(event | ({"args": {"frame": frame}} if frame >= 0 else {}))
        names: list[dict[str, object]] = [
            {"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}}
            for number, name in ((GPU, "gpu"), (HOST, "host"))
        ]
        for (process, track), number in tracks.items():
            names.append({"name": "thread_name", "ph": "M", "pid": process, "tid": number, "args": {"name": track}})
        return {"traceEvents": names + events, "displayTimeUnit": "ms"}

    def to_json(self) -> bytes:
        """The document as bytes of a file."""
        return json.dumps(self.document()).encode()


class TimedSpan(NamedTuple):
    """A span between two events of a stream."""

    track: str
    name: str
    before: "Event"
    after: "Event"
    frame: int


class GpuClock:
    """Spans of GPU streams from reused timing events, converted to host time by one base event that the host waited for."""

    def __init__(self, gpu: "Device", trace: Trace, stream: "Stream") -> None:
        self.gpu, self.trace = gpu, trace
        self.free: list[Event] = []
        self.open: list[TimedSpan] = []  # spans of the current frame
        self.keeps = False
        self._kept: list[Event] = []
        self._kept_used = 0
        self.base = gpu.event(timing=True)
        gpu.record(self.base, stream)
        gpu.synchronize(self.base)
        self.base_time = time.perf_counter()

    def keep(self, keeps: bool) -> None:
        """keeps: from now on events are those that were used after the last such call, in order; none of them is freed."""
        self.keeps, self._kept_used = keeps, 0

    def begin(self, stream: "Stream") -> "Event":
        """Record and return the event before a span."""
        if self.keeps and self._kept_used < len(self._kept):
            event = self._kept[self._kept_used]
        else:
            event = self.free.pop() if self.free else self.gpu.event(timing=True)
            if self.keeps:
                self._kept.append(event)
        self._kept_used += self.keeps
        return self.gpu.record(event, stream)

    def end(self, track: str, name: str, before: "Event", stream: "Stream", frame: int) -> None:
        """Record the event after a span."""
        self.open.append(TimedSpan(track, name, before, self.begin(stream), frame))

    def take(self) -> list[TimedSpan]:
        """Spans since the last call, for `resolve` once they have ended."""
        taken, self.open = self.open, []
        return taken

    def resolve(self, spans: list[TimedSpan]) -> None:
        """Add ended spans to the trace and free their events."""
        for track, name, before, after, frame in spans:
            begin = self.base_time + self.gpu.seconds(self.base, before)
            self.trace.add(GPU, track, name, begin, self.gpu.seconds(before, after), frame)
            self.free += [before, after]
