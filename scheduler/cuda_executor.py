"""Runs stages on a GPU: the loop on one stream, what it does not wait for on a second, copies on two more.

Nothing is allocated once the first pictures are through, and the host waits for nothing but the results of a picture
(`take`). Arrays of `twins` pictures lie on the GPU, so that one is uploaded and one downloaded while a third is in the
loop; a picture's arrays are used again when its download has ended.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..cuda_src.runtime.device import Device, DeviceArray, GpuLost
from ..cuda_src.runtime.recording import Place, Script
from .executor import Step
from .gpu_memory import GpuMemory
from .stages import BESIDE, EVEN, FRAME, HOME, MAIN, ROWS, SLICES, STAGES, TABLE, TICKETS, UP, Stage
from .threads.copy_kernels import OPEN
from .threads.lazy_task import Later, Task
from .trace import GpuClock, Trace

_NOT_TIMED = nullcontext()
MOST_SCRIPTS = 1024
OFTEN = 4  # times that a picture of a kind has come again: more will, so its calls are made fewer
LAST = ("extend_luma", "interpolate")  # of a picture, on MAIN and BESIDE
WAITED_FOR = {*LAST, *(name for stage in TABLE for name in stage.after.split())}


class CudaExecutor(GpuMemory):
    """See Executor. A picture's bits are written on the GPU; what the host does with them it does when it asks for them."""

    twins = 3

    def __init__(
        self, gpu: Device, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None, serial: bool = False
    ) -> None:
        """serial: everything on one stream, which spares the host's thread events."""
        super().__init__(gpu)
        self.serial = serial
        rows, macroblocks = (0, n_rows), (0, slices[-1][1])
        self._parts: dict[str, tuple[int, ...]] = {
            ROWS: rows, EVEN: rows, TICKETS: rows, SLICES: macroblocks, FRAME: (),
        }  # fmt: skip
        with gpu:
            first = gpu.stream()
            self.streams = {
                name: first if self.serial else gpu.stream() for name in (MAIN, BESIDE, UP, HOME)
            }
            self._ended = {name: gpu.event() for name in WAITED_FOR}
            self._uploaded, self._downloaded = ([gpu.event() for _ in range(self.twins)] for _ in range(2))
            self._waits: set[tuple[str, str]] = set()  # of this run: which stream waits for which event of _ended already
            self._clock = GpuClock(gpu, trace, self.streams[MAIN]) if trace is not None and trace.gpu else None
            self._number = 0  # of the picture that is being started
            self._home: dict[Hashable, Any] = {}  # events for the host's waiting, by a picture's place in memory
            self._places: dict[Hashable, Place] = {}
            self._scripts: dict[Any, Script] = {}
            for event in (*self._ended.values(), *self._uploaded, *self._downloaded):
                gpu.record(event, self.streams[MAIN])  # so that the first pictures may wait for them

    @property
    def gates(self) -> bool:
        """Whether `bring` may have one."""
        with self.gpu:
            return self.gpu.gates

    def at_work(self) -> Device:
        """See Executor: the context is this thread's."""
        return self.gpu

    def bring(
        self, number: int, pairs: Iterable[tuple[np.ndarray, DeviceArray]], fills: Iterable[tuple[DeviceArray, int]],
        step: Step, state: Mapping[str, Any], gate: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Start picture `number` beside the loop of the one before: (host array, array on the GPU) to copy, (array, value)
        to fill, and the step that makes planes of them. gate: not before it is open (scheduler/threads/copy_kernels.py).
        """
        gpu, k, up = self.gpu, number % self.twins, self.streams[UP]
        self._number = number
        gpu.wait(up, self._downloaded[k])
        if gate is not None:
            gpu.hold(up, gate, OPEN)
        with self._span(UP, "upload"):
            for host, there in pairs:
                there.put(host, up)
        for array, value in fills:
            array.fill(value, up)
        self.run([step], state, {})
        self._let_in(number)

    def _let_in(self, number: int) -> None:
        """The main stream, for which the others wait, goes on with a picture when its source is there and the last but one,
        whose slot it may have, is home.
        """
        gpu, main, uploaded = self.gpu, self.streams[MAIN], self._uploaded[number % self.twins]
        gpu.record(uploaded, self.streams[UP])
        for event in (uploaded, self._downloaded[(number - 2) % self.twins]):
            gpu.wait(main, event)

    def bring_from_gpu(
        self, number: int, stage: str, pointers: Mapping[str, int], fills: Iterable[tuple[DeviceArray, int]],
        producer: tuple[int | None, bool], state: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """As `bring` for a picture that lies on the GPU. producer: the stream to be ordered after, and whether that stream
        waits until the picture is read; otherwise, and without a stream, the host waits.
        """
        stream, waits = producer
        gpu, k, up = self.gpu, number % self.twins, self.streams[UP]
        self._number = number
        gpu.wait(up, self._downloaded[k])
        if stream is not None:
            self.others().after(up, stream)
        for array, value in fills:
            array.fill(value, up)
        self.run([((stage,), self.load_from_gpu(pointers))], state, {})
        self._let_in(number)
        if stream is None or not waits:
            gpu.synchronize(self._uploaded[k])
        else:
            self.others().before(up, stream)

    def run(self, steps: Sequence[Step], state: Mapping[str, Any], seconds: dict[str, float]) -> None:
        """Start steps over the whole picture, on their streams; see Executor."""
        self._waits.clear()
        for names, more in steps:
            for name in names:
                self._start(STAGES[name], {**state, **more} if more else state)

    def _start(self, stage: Stage, state: Mapping[str, Any]) -> None:
        gpu, stream = self.gpu, self.streams[stage.stream]
        self._wait(stage.stream, stage.after.split())
        with self._span(stage.stream, stage.name):
            stage.launch(state, self._parts[stage.split], stream)
        if stage.name in WAITED_FOR:
            gpu.record(self._ended[stage.name], stream)
            self._waits = {wait for wait in self._waits if wait[1] != stage.name}

    def _wait(self, track: str, stages: Iterable[str]) -> None:
        """Nothing more is done on a stream until these have ended."""
        for name in stages:
            if (track, name) not in self._waits:
                self.gpu.wait(self.streams[track], self._ended[name])
                self._waits.add((track, name))

    def take(self, number: int, pairs: Iterable[tuple[DeviceArray, np.ndarray]], place: Hashable) -> None:
        """See Executor: beside the loop of the next picture."""
        gpu, k, download = self.gpu, number % self.twins, self.streams[HOME]
        self._wait(HOME, LAST)
        with self._span(HOME, "download"):
            for there, host in pairs:
                there.get(host, download)
        gpu.record(self._downloaded[k], download)
        gpu.record(self._event(place), download)

    def _event(self, place: Hashable) -> Any:
        """Of a picture that comes home."""
        if place not in self._home:
            self._home[place] = self.gpu.event()
        return self._home[place]

    @contextmanager
    def once(self, kind: Hashable, place: Hashable, arrays: Iterable[np.ndarray]) -> Iterator[bool]:
        """Around everything from `bring` to `take`. False: it was all done before for this kind, and is done again, for a
        picture at that place.

        Whoever asks says with the kind which picture had the same arrays on the GPU and the same numbers; `arrays`: the
        place's in the host's memory, always in the same order.
        """
        if self._clock is not None:
            yield True
            return
        if place not in self._places:
            self._places[place] = Place(self._event(place), *arrays)
        if kind in self._scripts:
            script = self._scripts[kind]
            script.uses += 1
            script.move(self._places[place])
            if script.uses == OFTEN:
                self.gpu.shorten(script)
            self.gpu.replay(script)
            yield False
        else:
            with self.gpu.writing(self._places[place]) as script:
                yield True
            if len(self._scripts) >= MOST_SCRIPTS:
                self._scripts.clear()
            self._scripts[kind] = script

    def home(self, place: Hashable) -> "_Home":
        """See Executor."""
        return _Home(self.gpu, self._home[place], self._clock)

    @contextmanager
    def _timed(self, clock: GpuClock, track: str, name: str) -> Iterator[None]:
        before = clock.begin(self.streams[track])
        yield
        clock.end(track, name, before, self.streams[track], self._number)

    def _span(self, track: str, name: str) -> AbstractContextManager[None]:
        """Around what a stream is given, for the timeline if there is one."""
        return self._timed(self._clock, track, name) if self._clock else _NOT_TIMED

    def submit(self, function: Callable[..., Any], *args: Any) -> Later:
        """See Executor. The task waits for a picture: its last argument is what `home` gave."""
        home: _Home = args[-1]
        return Later(home.came, function, *args)

    def result(self, future: Task) -> Any:
        """See Executor."""
        return future.result()

    def finish(self) -> None:
        """See GpuMemory. Scripts hold kernels, which go with their modules."""
        super().finish()
        self._scripts.clear()
        self._places.clear()


class _Home:
    """Waits until a picture is home."""

    def __init__(self, gpu: Device, event: Any, clock: GpuClock | None) -> None:
        self._gpu, self._event, self._clock = gpu, event, clock
        self._spans = clock.take() if clock else []

    def __call__(self) -> None:
        with self._gpu:
            self._gpu.synchronize(self._event)
            if self._clock:
                self._clock.resolve(self._spans)

    def came(self) -> bool:
        """Whether it is, or never will be."""
        try:
            with self._gpu:
                return self._gpu.done(self._event)
        except GpuLost:
            return True
