"""The frames of one run of `h264lite encode`: read in order, ahead or by number, encoded and written."""

from collections.abc import Callable, Iterator

from ..console import print_line
from ..encoder.errors import DeviceLost, InputError
from ..encoder.files.read_ahead import THREADS, Read, ReadAhead
from ..encoder.files.video import RawSource, Source, VideoFormat
from ..encoder.frames.source import HostSource
from ..encoder.gops.gops import reads_again
from ..encoder.gops.shared_gops import shares_gops
from ..encoder.settings.config import Config
from ..scheduler.threads.readers import Readers
from .encode_run import Run, finish, write
from .input_metadata import warnings_after
from .interrupt import INTERRUPTED, Interrupted, StopSignals

FAILED = 1  # exit code
NOTHING_WRITTEN = "h264lite encode: interrupted before the first frame; nothing was written"


def encode_frames(run: Run, stop: StopSignals) -> int:
    """Encode all frames and finish the outputs; after a failure too, finished frames are written and reported."""
    config = run.session.config
    failure: BaseException | None = None
    try:
        pipeline = run.session.pipeline
        if pipeline.takes_reads and by_lanes(run.source, config):
            assert isinstance(run.source, RawSource)
            _feed_numbers(run, stop, run.source)
        elif _any_order(run.source, config) and pipeline.read_ahead(_later(run.source, config)):
            assert isinstance(run.source, RawSource)
            _feed_ahead(run, stop, run.source)
        else:
            _feed_frames(run, stop)
    except Interrupted:
        pass
    except (InputError, MemoryError, DeviceLost) as error:  # no fault of the output: finish it
        failure = error
    failure = _drain(run, stop, failure)
    run.sinks.stream.close()
    for planes in run.reconstructions.rest():
        run.sinks.reconstruction.write(b"".join(plane.tobytes() for plane in planes))  # type: ignore[union-attr]
    if run.arrays and run.written:
        run.arrays.close()
    run.progress.finish()
    n_written = f"{run.written} frame{'s' if run.written != 1 else ''}"
    if failure is not None:
        raise type(failure)(f"{failure}; the output holds {n_written}") from None
    if run.source.left_over and not stop.is_requested:
        left = f"{run.source.left_over} bytes left over"
        run.problems.append(f"{run.name}: the last frame is cut off: {left}, {n_written} encoded")
    if not run.written and not stop.is_requested:
        raise InputError(run.problems[0] if run.problems else _nothing(run, config))
    for warning in warnings_after(run.name, run.clock.times, run.sinks.stream, config, run.written):
        run.warn(warning)
    if run.written:
        finish(run)
    for problem in run.problems:
        print_line(f"h264lite encode: error: {problem}")
    if stop.is_requested:
        print_line(f"h264lite encode: interrupted; the output holds {n_written}" if run.written else NOTHING_WRITTEN)
        return INTERRUPTED
    return FAILED if run.problems else 0


def by_lanes(source: Source, config: Config) -> bool:
    """Whether lanes can read the frames: nothing is decided by samples before."""
    return _any_order(source, config) and not config.decides_by_samples


def several_gops(source: Source, config: Config) -> bool:
    """Whether the automatic number of GOPs at once is not one: lanes read the frames."""
    return by_lanes(source, config) or (_any_order(source, config) and (reads_again(config) or shares_gops(config)))


def _any_order(source: Source, config: Config) -> bool:
    """Whether frames can be read by number, in any order."""
    return isinstance(source, RawSource) and source.any_order and not config.reports.ssim


def expected_frames(video: VideoFormat, config: Config) -> int | None:
    """The number of frames to encode; None if the input does not tell."""
    if video.frames is None:
        return config.video.frames or None
    left = max(0, video.frames - config.video.seek)
    return min(left, config.video.frames) if config.video.frames else left


def _feed_frames(run: Run, stop: StopSignals) -> None:
    """Read and encode frames in order."""
    source, bounds = run.source, (run.session.config.video.seek, run.session.config.video.frames)
    frames: Iterator[HostSource] = (
        source.buffers(*bounds, run.session.pipeline.next_buffer) if isinstance(source, RawSource) else source.frames(*bounds)
    )
    while not stop.is_requested:
        with stop.waiting():
            frame = next(frames, None)
        if frame is None:
            return
        run.tell_left_out()
        run.session.encode(frame, run.clock.request())
        write(run)


def _feed_ahead(run: Run, stop: StopSignals, source: RawSource) -> None:
    """Encode frames in order; threads read them into upload buffers while earlier ones are in the loop."""
    reads = map(source.later, _numbers(source, run.session.config))
    with Readers(THREADS) as readers:
        for buffer in ReadAhead(readers).each(reads, run.session.pipeline.next_buffer):
            if stop.is_requested:
                return
            run.session.encode(buffer)
            write(run)
    source.left_over = _left_over(source, run.session.config)


def _feed_numbers(run: Run, stop: StopSignals, source: RawSource) -> None:
    """Encode frames by number; the lane that encodes a frame reads it."""
    config, pipeline = run.session.config, run.session.pipeline
    for number in _numbers(source, config):
        while not pipeline.has_room() and not stop.is_requested:
            run.session.poll()
            write(run)
        if stop.is_requested:
            return
        run.session.encode(source.later(number))
        write(run)
    source.left_over = _left_over(source, config)


def _numbers(source: RawSource, config: Config) -> range:
    """The numbers of the frames to encode."""
    return range(config.video.seek, config.video.seek + (expected_frames(source.format, config) or 0))


def _later(source: Source, config: Config) -> Callable[[int], Read]:
    """The Read of each frame by its number from the first one to encode on."""
    assert isinstance(source, RawSource)
    later, first = source.later, config.video.seek
    return lambda k: later(first + k)


def _left_over(source: RawSource, config: Config) -> int:
    """Bytes after the last complete frame, if the requested frames reach that far."""
    video = config.video
    return source.trailing_bytes() if not video.frames or video.seek + video.frames > (source.format.frames or 0) else 0


def _drain(run: Run, stop: StopSignals, failure: BaseException | None) -> BaseException | None:
    """Write the frames in flight; return the last failure."""
    pipeline = run.session.pipeline
    pipeline.end()
    for last in (False, True):  # a device's failure is raised once; then the finished frames follow
        try:
            while pipeline.busy():
                if stop.is_requested:
                    pipeline.cut()
                run.session.poll()
                write(run)
            run.session.drain()
            write(run)
            break
        except (InputError, DeviceLost) as error:
            failure = error
            if last:
                break
    return failure


def _nothing(run: Run, config: Config) -> str:
    """The reason why there was no frame to encode."""
    if config.video.seek:
        has = f"; it has {run.source.format.frames}" if run.source.format.frames is not None else ""
        return f"{run.name}: no frames after --seek {config.video.seek}{has}"
    return f"{run.name}: no frames to encode"
