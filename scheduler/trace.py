"""A timeline in Chrome's trace format (chrome://tracing, Perfetto): streams of the GPU, threads of the host, frames."""

import json
import time
from collections import defaultdict
from typing import Any

GPU, HOST = 1, 2  # process numbers of the format

Span = tuple[int, str, str, float, float, int]
"""GPU or HOST, track, name, begin, seconds, frame."""


class Trace:
    """Spans by track. Times are seconds of time.perf_counter(); several threads may add.

    gpu: GPU stages are timed too, by events, which costs host time.
    """

    def __init__(self, gpu: bool = True) -> None:
        self.gpu = gpu
        self.start = time.perf_counter()
        self.spans: list[Span] = []

    def add(self, process: int, track: str, name: str, begin: float, seconds: float, frame: int = -1) -> None:
        """One span on a track (a stream, a thread) of the GPU or the host."""
        self.spans.append((process, track, name, begin, seconds, frame))

    def part(self, prefix: str) -> "Trace":
        """A view of this timeline whose tracks get a prefix, for one of several lanes."""
        return _Part(self, prefix)

    def seconds(self, process: int = GPU) -> dict[str, list[float]]:
        """Durations by name."""
        by_name = defaultdict(list)
        for kind, _, name, _, seconds, _ in list(self.spans):
            if kind == process:
                by_name[name].append(seconds)
        return dict(by_name)

    def document(self) -> dict[str, Any]:
        """The document of the file; times in microseconds from the start."""
        tracks: dict[tuple[int, str], int] = {}
        events: list[dict[str, Any]] = []
        for process, track, name, begin, seconds, frame in sorted(self.spans, key=lambda span: span[3]):
            number = tracks.setdefault((process, track), len(tracks))
            event = {"name": name, "ph": "X", "pid": process, "tid": number}
            event |= {"ts": round(1e6 * (begin - self.start), 3), "dur": round(1e6 * seconds, 3)}
            events.append(event | ({"args": {"frame": frame}} if frame >= 0 else {}))
        names: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}}
            for number, name in ((GPU, "gpu"), (HOST, "host"))
        ]
        for (process, track), number in tracks.items():
            names.append({"name": "thread_name", "ph": "M", "pid": process, "tid": number, "args": {"name": track}})
        return {"traceEvents": names + events, "displayTimeUnit": "ms"}

    def to_json(self) -> bytes:
        """The document as bytes of a file."""
        return json.dumps(self.document()).encode()


class _Part(Trace):
    """Tracks with a prefix in another timeline."""

    def __init__(self, trace: Trace, prefix: str) -> None:
        vars(self).update(vars(trace))
        self._prefix = prefix

    def add(self, process: int, track: str, name: str, begin: float, seconds: float, frame: int = -1) -> None:
        """See Trace."""
        super().add(process, self._prefix + track, name, begin, seconds, frame)


class GpuClock:
    """Spans of GPU streams from reused timing events, converted to host time by one base event that the host waited for."""

    def __init__(self, gpu: Any, trace: Trace, stream: Any) -> None:
        self.gpu, self.trace = gpu, trace
        self.free: list[Any] = []
        self.open: list[tuple[str, str, Any, Any, int]] = []  # spans of the current frame
        self.base = gpu.event(timing=True)
        gpu.record(self.base, stream)
        gpu.synchronize(self.base)
        self.base_time = time.perf_counter()

    def begin(self, stream: Any) -> Any:
        """Record and return the event before a span."""
        event = self.free.pop() if self.free else self.gpu.event(timing=True)
        return self.gpu.record(event, stream)

    def end(self, track: str, name: str, before: Any, stream: Any, frame: int) -> None:
        """Record the event after a span."""
        self.open.append((track, name, before, self.begin(stream), frame))

    def take(self) -> list[tuple[str, str, Any, Any, int]]:
        """Spans since the last call, for `resolve` once they have ended."""
        taken, self.open = self.open, []
        return taken

    def resolve(self, spans: list[tuple[str, str, Any, Any, int]]) -> None:
        """Add ended spans to the trace and free their events."""
        for track, name, before, after, frame in spans:
            begin = self.base_time + self.gpu.seconds(self.base, before)
            self.trace.add(GPU, track, name, begin, self.gpu.seconds(before, after), frame)
            self.free += [before, after]
