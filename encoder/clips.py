"""Several videos at once: each clip has an encoder of its own in one of a few threads; results come in the clips' order."""

import os
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from queue import SimpleQueue
from typing import Any, NamedTuple, Unpack

from ..process import start_threads
from ..scheduler.hybrid.tuning.tuning_place import cores
from .errors import Error, InputError, OptionError
from .frames.producer import current_stream
from .packet import Packet
from .settings.device import all_gpus, why_no_cuda
from .settings.keywords import EncoderOptions, Rate
from .settings.option_types import read_int, show
from .settings.options import API, CLI, OPTIONS, Option
from .settings.user_options import read_options
from .targets import Target
from .unclosed import finish_at_exit
from .writer import VideoWriter
from .writing_progress import Reported, ReportedProgress

MOST_ON_CPU, ON_GPU = 8, 1  # clips at once, unless the caller says how many; on one GPU more are slower (docs/tried.md)
_WORKERS = Option("workers", "", read_int, None, "", "INT", 1, 256)
_ENCODER_OPTIONS = [row for row in OPTIONS if row.scope not in (API, CLI)]
_OF_ONE_VIDEO = ("audio", "pass_", "pass", "stats", "slow_firstpass")


class ClipResult(NamedTuple):
    """What has become of a clip. data: the bytes of an MP4 where the target is None. error: why the clip has failed; its file
    then holds the frames before, or is not there (VideoWriter).
    """

    target: Target
    data: bytes | None
    error: Exception | None


def write_videos(
    targets: Iterable[Target] | None,
    videos: Iterable[object],
    fps: Rate | Iterable[Rate] = 25,
    *,
    workers: int | None = None,
    layout: str | None = None,
    format: str | None = None,
    value_range: tuple[float, float] | None = None,
    fragment: float | None = None,
    progress: Reported | None = None,
    width: int | None = None,
    height: int | None = None,
    **options: Unpack[EncoderOptions],
) -> Generator[ClipResult, None, None]:
    """Encode clips, `workers` at once, each as by `write_video` and to the same bytes; yields a ClipResult each, in order.

    videos: an iterable of what write_video takes as frames; targets: one for each clip, or None for bytes. fps: of all clips,
    or one for each. workers: by default one for each core, 8 at most, or one for each GPU. Encoders share the cores, unless
    `threads` is given. devices: each clip is encoded on one of them, that of its arrays if it is among them.
    progress: a function, called in the caller's thread while that waits for results, with the frames written of all clips so
    far, their number in all or None while it is unknown, and the bytes of their packets.

    `videos` and `targets` run in the caller's thread, when results are asked for; at most workers + 1 clips are taken and not
    finished, and 2 * workers not yielded. A clip that is a generator of frames runs in a thread of its own. An exception of a
    clip is the `error` of its result, and other clips go on; one of `videos` or `targets` is raised after the results of the
    clips before. An iterator that is closed or dropped, and an interrupt, end the threads: clips under way end after their
    present frame, as those of write_video do after an exception. OptionError, at the call, for options that no clip can have.
    """
    for name, value in (("targets", targets), ("videos", videos)):
        if (value is not None or name == "videos") and not _is_many(value):
            raise OptionError(f"{show(value)}: not an iterable with one for each clip; write_video is for one", name)
    if progress is not None and not callable(progress):
        raise OptionError(f"{show(progress)}: not a function", "progress")
    named: dict[str, Any] = {"videos": videos, "targets": targets, "fps": fps}
    lengths = {name: len(value) for name, value in named.items() if _is_many(value) and hasattr(value, "__len__")}
    if len({*lengths.values()}) > 1:
        raise OptionError(f"one for each clip, but there are {', '.join(f'{n} {name}' for name, n in lengths.items())}")
    for name in (name for name in _OF_ONE_VIDEO if options.get(name) is not None):
        raise OptionError("is for one video: use write_video", name.rstrip("_"))
    arguments = dict(layout=layout, format=format, value_range=value_range, fragment=fragment, width=width, height=height)
    VideoWriter(None, 25 if _is_many(fps) else fps, **arguments, **options)  # type: ignore[arg-type]  # checks, opens nothing
    values = read_options(dict(options), _ENCODER_OPTIONS)
    devices = _names_of(values["devices"] or ())
    if workers is None:
        workers = _workers_for(values["device"], devices)
    workers = _WORKERS.value(workers)
    threads = values["threads"]
    if not threads and not is_for_gpu(values["device"], devices or None):
        threads = max(1, cores() // workers)
    report = None if progress is None else ReportedProgress(progress)
    batch = _Batch(workers, {**arguments, **options, "threads": threads}, devices, report)
    return _results(batch, _clips(videos, targets, fps))


def _is_many(values: object) -> bool:
    """Whether it has one for each clip: no text, file object or number."""
    return (
        isinstance(values, Iterable)
        and not isinstance(values, str | bytes | dict)
        and not hasattr(values, "write")
        and (getattr(values, "shape", None) != ())
    )


def is_for_gpu(device: str, devices: tuple[str, ...] | None) -> bool:
    """Whether the caller asks for a GPU, whose threads are frames in flight."""
    return device == "cuda" if devices is None else "cpu" not in devices


def _names_of(devices: tuple[str, ...]) -> tuple[str, ...]:
    """Names of devices, of each GPU in place of "all" if there is one."""
    return all_gpus() if devices == ("all",) and why_no_cuda() is None else devices


def _workers_for(device: str, devices: tuple[str, ...]) -> int:
    """How many clips at once. devices: named ones, in place of `device`."""
    on_cpu = "cpu" in devices if devices else device == "cpu"
    return min(MOST_ON_CPU, cores()) if on_cpu or why_no_cuda() is not None else max(ON_GPU, len(devices))


@dataclass(eq=False, repr=False)
class _Clip:
    """A clip; without its frames once they are being encoded. stream: of the producer of arrays on a GPU."""

    target: Target
    fps: Rate
    frames: Any
    stream: object
    written: tuple[int, int] = (0, 0)  # frames, and bytes of their packets
    total: int | None = None  # frames, once it is known
    result: ClipResult | None = None
    failure: BaseException | None = None  # no Exception: it ends the batch


def _clips(videos: Iterable[Any], targets: Iterable[Target] | None, fps: Any) -> Iterator[_Clip]:
    """The clips, taken one by one."""
    names: Iterator[Target] = repeat(None) if targets is None else iter(targets)
    rates: Iterator[Rate] = iter(fps) if _is_many(fps) else repeat(fps)
    for frames in videos:
        try:
            clip = _Clip(next(names), next(rates), frames, current_stream(frames))
        except StopIteration:
            raise InputError("there are more clips than targets or rates") from None
        del frames  # else it would be kept as long as the next clip is not taken
        yield clip


def _results(batch: "_Batch", clips: Iterator[_Clip]) -> Generator[ClipResult, None, None]:
    """Take clips as far as there is room, and yield the results of the first ones."""
    waiting: deque[_Clip] = deque()  # taken and not yielded
    failure: Exception | None = None
    is_more = True
    try:
        while True:
            batch.check_process()
            if is_more and batch.unfinished() <= batch.workers and len(waiting) < 2 * batch.workers:
                try:
                    clip = next(clips, None)
                except Exception as error:
                    failure, clip = error, None
                is_more = batch.is_more = clip is not None
                if clip is not None:
                    waiting.append(clip)
                    batch.begin(clip)
            elif not waiting:
                break
            elif waiting[0].failure is not None:
                raise waiting[0].failure
            elif waiting[0].result is not None:
                yield waiting.popleft().result  # type: ignore[misc]
            else:
                batch.wait()
    finally:
        batch.end()
    if failure is not None:
        raise failure


class _Batch:
    """Threads that encode clips. They have no reference to the generator of results, which ends them when it is dropped."""

    def __init__(
        self, workers: int, arguments: dict[str, Any], devices: tuple[str, ...], report: ReportedProgress | None = None
    ) -> None:  # fmt: skip
        """arguments: of each writer; devices: that the threads take in turn, or none."""
        self.workers, self._arguments, self._devices, self._stopped = workers, arguments, devices, False
        self._report, self._is_told = report, False
        self._begun, self._done = list[_Clip](), (0, 0)  # clips that are reported, and the sums of those before them
        self.is_more = True  # clips may follow
        self._process, self._caller = os.getpid(), 0
        self._threads: list[threading.Thread] = []
        self._to_do: SimpleQueue[_Clip | None] = SimpleQueue()
        self._news: SimpleQueue[bool] = SimpleQueue()  # true: a clip is finished; else frames are written
        self._unfinished = 0

    def check_process(self) -> None:
        """Error in a fork, which has none of the threads."""
        if os.getpid() != self._process:
            raise Error(f"process {self._process} has begun these videos, and this is its fork: call write_videos in each")

    def begin(self, clip: _Clip) -> None:
        """Encode a clip in one of the threads, or in this one where the system refuses threads."""
        self._unfinished += 1
        if self._report is not None:
            self._begun.append(clip)
        self._caller = threading.get_ident()
        if self._unfinished > len(self._threads) < self.workers:
            k = len(self._threads)
            thread = threading.Thread(target=self._work, args=(k,), name=f"h264lite clip {k}", daemon=True)
            start_threads([thread], self._threads)
            finish_at_exit(self)
        self._to_do.put(clip)
        if not self._threads:
            self._to_do.put(None)
            self._work(0)
            self._to_do.get()

    def unfinished(self) -> int:
        """How many clips are begun and not finished."""
        for _ in range(self._news.qsize()):
            self.wait()
        return self._unfinished

    def wait(self) -> None:
        """Wait until a clip is finished, or there is progress to report."""
        if self._news.get():
            self._unfinished -= 1
        if self._report is not None:
            self._is_told = False  # before the sums: what comes later is told again
            self._report_sums(self._report)

    def _report_sums(self, report: ReportedProgress) -> None:
        """Over all clips so far."""
        for clip in [clip for clip in self._begun if clip.result is not None or clip.failure is not None]:
            self._done = self._done[0] + clip.written[0], self._done[1] + clip.written[1]
            self._begun.remove(clip)
        frames, size = (sum(counts) for counts in zip(self._done, *(clip.written for clip in self._begun)))
        totals = [clip.total for clip in self._begun]
        report.total = None if self.is_more or None in totals else self._done[0] + sum(filter(None, totals))
        report.show(frames, frames, size)

    def wrote(self, clip: _Clip, frames: int, total: int | None, size: int) -> None:
        """A thread has written frames of a clip: the caller hears of it, once until it looks."""
        clip.written, clip.total = (frames, size), total
        if not self._is_told:
            self._is_told = True
            self._news.put(False)

    def end(self) -> None:
        """End the threads, each after the frame that it encodes, and wait for them; a second call does nothing."""
        self._stopped = True
        self._to_do.put(None)
        if os.getpid() != self._process or threading.get_ident() != self._caller:
            return  # a fork, which has no threads; a collection of garbage in any thread, maybe one of these
        for thread in self._threads:
            thread.join()

    def finish_unclosed(self) -> None:
        """The process ends."""
        self._caller = threading.get_ident()
        self.end()

    def _work(self, k: int) -> None:
        """Encode clips until there is a None, which stays for the other threads. k: number of the thread."""
        device = {"devices": (self._devices[k % len(self._devices)],)} if self._devices else {}
        while (clip := self._to_do.get()) is not None:
            if not self._stopped:
                self._encode(clip, device)
                if clip.result is not None and clip.result.error is not None:
                    _drop_locals(clip.result.error)
            del clip
            self._news.put(True)
        self._to_do.put(None)

    def _encode(self, clip: _Clip, device: dict[str, Any]) -> None:
        """device: the option, if the caller has named several."""
        frames, clip.frames = clip.frames, None
        progress: Any = False if self._report is None else partial(self.wrote, clip)
        try:
            with _Writer(clip.target, clip.fps, progress=progress, **{**self._arguments, **device}) as writer:
                writer.allow(self._devices)
                writer.ends = lambda: self._stopped
                writer.write_all(frames, clip.stream)
            clip.result = ClipResult(clip.target, writer.getvalue() if clip.target is None else None, None)
        except Exception as error:
            clip.result = ClipResult(clip.target, None, error)
        except BaseException as error:
            clip.failure = error


class _Stopped(Exception):
    """The batch has ended."""


class _Writer(VideoWriter):
    """A writer that ends between two frames if it is told to."""

    ends: Callable[[], bool]

    def allow(self, devices: Sequence[str]) -> None:
        """Devices, one of which is taken in place of that of the options, if the first frame lies there."""
        self._feeder.allowed_devices = devices

    def _put_all(self, feed: Callable[[], Iterable[list[Packet]]]) -> None:
        super()._put_all(lambda: self._until_end(feed()))

    def _until_end(self, packets: Iterable[list[Packet]]) -> Iterator[list[Packet]]:
        for some in packets:
            yield some
            if self.ends():
                raise _Stopped

    def finish_unclosed(self) -> None:
        """Its batch ends it."""


def _drop_locals(error: BaseException | None) -> None:
    """Free what the functions that an error has left hold, such as the frames: a caller may keep the error."""
    while error is not None:
        with suppress(RuntimeError):
            traceback.clear_frames(error.__traceback__)
        error = error.__context__
