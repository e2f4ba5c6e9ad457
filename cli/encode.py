"""`h264lite encode`: encodes a file to a file, with messages and reports."""

import gc
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..console import print_line
from ..encoder.compile_kernels import compile_for
from ..encoder.errors import DeviceLost, Error, InputError, OptionError
from ..encoder.files.left_out import of_tags
from ..encoder.files.opening import open_inputs, open_packets
from ..encoder.files.output import SEGMENT_SECONDS, ByteSink, DisplayOrder, PacketSink, check_distinct, is_playlist
from ..encoder.files.read_ahead import THREADS, ReadAhead
from ..encoder.files.video import RawSource, Source, VideoFormat, check_input_res, take_over
from ..encoder.frames.source import HostSource
from ..encoder.sei import with_messages
from ..encoder.session import Session, open_session
from ..encoder.settings.config import Config
from ..encoder.settings.fragments import with_keyframes
from ..encoder.settings.options import API, BY_NAME, CLI, OPTIONS, read_options
from ..encoder.settings.pass_file import check_frames
from ..encoder.statistics import FrameRow
from ..encoder.warm_up import will_compile
from ..jit import compiling
from ..scheduler.devices import cuda_kernels_will_compile
from ..scheduler.threads.readers import Readers
from ..scheduler.trace import Trace
from . import on_ray
from .input_metadata import (
    OutputTimes,
    check_colours_of_images,
    notes,
    sound_of,
    tags_from,
    warnings_after,
    warnings_before,
)
from .interrupt import Interrupted, StopSignals
from .memory import lines, memory
from .progress import Progress

if TYPE_CHECKING:
    from ..analysis.files import StreamArrays  # imports the decoder
    from ..scheduler.hybrid.planner import Planned
    from .charts.rates import RatePlot

_REPORT_ROWS = tuple(row for row in OPTIONS if row.scope == CLI and row.name not in ("frames", "seek"))
_REPORTS = {row.name for row in _REPORT_ROWS}
_REPORT_FILES = ("dump-yuv", "csv", "mb-csv", "mb-npz", "json", "trace", "trace-png", "rate-png")
FAILED, INTERRUPTED = 1, 130
_SETTINGS = (  # in the summary
    "width", "height", "profile_idc", "level_idc", "device", "threads", "preset", "tune", "qp", "crf", "aq_mode",
    "aq_strength", "keyint", "ref", "merange", "subme", "slices", "partitions", "cabac", "transform_8x8_mode", "cqm",
    "chroma_qp_offset",
)  # fmt: skip
_OF_BUFFER = "captions and user data (--nal-hrd)"
_NOTHING_WRITTEN = "h264lite encode: interrupted before the first frame; nothing was written"


@dataclass(eq=False, repr=False)
class Sinks:
    """The outputs; None = not requested."""

    stream: PacketSink
    reconstruction: ByteSink | None = None
    rows: ByteSink | None = None
    macroblock_rows: ByteSink | None = None
    macroblock_arrays: ByteSink | None = None
    summary: ByteSink | None = None
    timeline: ByteSink | None = None
    chart: ByteSink | None = None
    rates: ByteSink | None = None


@dataclass(eq=False, repr=False)
class Run:
    """The state of one encode."""

    name: str  # of the input, in messages
    source: Source
    session: Session
    sinks: Sinks
    progress: Progress
    quiet: bool
    clock: OutputTimes
    trace: Trace | None = None
    written: int = 0  # access units in the file
    problems: list[str] = field(default_factory=list)
    planned: "Planned | None" = None  # with --verbose and a tuning file
    verbose: bool = False
    rates: "RatePlot | None" = None
    arrays: "StreamArrays | None" = None  # with --mb-csv or --mb-npz
    reconstructions: DisplayOrder = field(default_factory=DisplayOrder)
    told: int = 0  # entries of the source's left_out

    def info(self, text: str) -> None:
        """Print a line of information, unless quiet."""
        if not self.quiet:
            print_line(f"h264lite [info]: {text}")

    def tell(self, text: str) -> None:
        """Print a line of information while frames are encoded, unless quiet."""
        if not self.quiet:
            self.progress.finish()
            self.info(text)

    def warn(self, text: str) -> None:
        """Print a warning about a problem that did not end the encode."""
        self.progress.finish()
        print_line(f"h264lite [warning]: {text}")

    def with_sei(self, data: bytes, index: int) -> bytes:
        """An access unit with the captions and user data of its frame. A buffer that is promised has no room for them."""
        messages = self.source.sei.pop(index, ())
        if messages and self.session.config.hrd.nal_hrd != "none":
            if _OF_BUFFER not in self.source.left_out:
                self.source.left_out.append(_OF_BUFFER)
                self.tell_left_out()
            return data
        return with_messages(data, messages) if messages else data

    def tell_left_out(self) -> None:
        """Warn of what of the input the output lacks, each thing once."""
        if new := self.source.left_out[self.told :]:
            self.told += len(new)
            self.warn(f"{self.name}: left out: {', '.join(new)}")


def _check_files(
    source_names: Sequence[str], output_name: str, option_texts: dict[str, Any], reports: dict[str, Any]
) -> None:
    """OptionError if an output is also an input or another output, or cannot be drawn."""
    inputs = {f"input {k + 1}" if k else "input": name for k, name in enumerate(source_names)}
    inputs |= {name: option_texts[name] for name in ("qpfile", "tuning", "cqm") if option_texts.get(name)}
    outputs = {"output": output_name} | {name: reports[name.replace("-", "_")] for name in _REPORT_FILES}
    if is_playlist(output_name, reports["muxer"]):
        from ..mp4.playlists import init_name  # few need it

        outputs["the first segment"] = init_name(os.path.splitext(output_name)[0])
    outputs["stats"] = option_texts.get("stats", BY_NAME["stats"].default) if option_texts.get("pass_") else None
    check_distinct({**inputs, "audio": reports["audio"], **outputs})
    if reports["trace_png"]:
        from .charts.chart import check_matplotlib

        check_matplotlib("trace-png", "--trace FILE for chrome://tracing")


def _with_segments(output_name: str, option_texts: dict[str, Any]) -> dict[str, Any]:
    """The options with a length of segments, if the output has some."""
    if "fragment" in option_texts or not is_playlist(output_name, option_texts.get("muxer", "auto")):
        return option_texts
    return {**option_texts, "fragment": SEGMENT_SECONDS}


def _open_outputs(
    names: tuple[str, str, str], source: Source, option_texts: dict[str, Any], reports: dict[str, Any], stack: ExitStack
) -> tuple[Config, Sinks, OutputTimes]:
    """The settings for an input, and the outputs. names: of the first input, of all together, of the output."""
    first_name, source_name, output_name = names
    times = source.times if "fps" not in option_texts else None
    config = make_config(source_name, source.format, reports["input_res"], option_texts, times is not None)
    if reports["ray"] is not None:
        on_ray.check_config(config)
    check_frames(config.rate.first_pass, config.rate.stats, expected_frames(source.format, config))
    clock = OutputTimes(times, reports["fragment"], config.video.fps)
    sound = sound_of(first_name, output_name, source, config, reports, stack)
    sinks = open_sinks(output_name, config, reports, stack, source.format, clock, sound)
    if sinks.rows or reports["verbose"]:
        config = config._replace(coding=config.coding._replace(bits_by_kind=True))
    if clock.times is not None and sinks.stream.keeps_times:
        if config.hrd.nal_hrd != "none":
            raise OptionError("is for a constant frame rate, and the input has times: say --fps", "nal-hrd")
        config = config._replace(video=config.video._replace(fixed_frame_rate=False))
    return config, sinks, clock


def _announce(run: Run, config: Config, total: int | None, lines: Iterable[str]) -> None:
    """What is known before the first frame, and the event of the start. total: frames, if known."""
    if not run.sinks.stream.keeps_times:
        run.source.left_out += of_tags(run.source.format.tags)
    run.tell_left_out()
    run.info(start_line(config, run.source.format))
    for line in lines:
        run.info(line)
    if getattr(run.sinks.stream, "waits", False):
        run.info(
            "MP4 that is no file: it waits in memory or a temporary file until the end, since moov comes first; "
            "--fragment writes it as it is made"
        )
    run.progress.event(
        "start",
        width=config.coding.width,
        height=config.coding.height,
        fps=str(config.video.fps),
        frames=total,
        device=config.machine.device,
        reason=config.machine.device_reason,
        level_idc=config.stream.level_idc,
    )


def _compile_kernels(run: Run, config: Config) -> None:
    """Compile the CPU's kernels, so that this is no part of the frames' time; say that those of a GPU will be."""
    if config.machine.device != "cuda" and will_compile(config):
        run.info(f"compiled in {compile_for(config):.0f} s")
    if config.machine.device == "cuda" and cuda_kernels_will_compile(config.coding.has_b_frames):
        run.info("first run on this GPU: its kernels are compiled, once; up to a minute")


def run_encode(
    source_names: Sequence[str], output_name: str, option_texts: dict[str, Any], has_device: Callable[[], None] = lambda: None
) -> int:
    """Encode one file; return the exit code. option_texts: user's text by option name. has_device: called when the encoder
    has its device.
    """
    read_options(option_texts, [row for row in OPTIONS if row.scope != API])  # usage is checked before any file is touched
    option_texts = _with_segments(output_name, option_texts)
    reports = read_options({name: value for name, value in option_texts.items() if name in _REPORTS}, _REPORT_ROWS)
    on_ray.check_options(option_texts)
    _check_files(source_names, output_name, option_texts, reports)
    rates = None
    if reports["rate_png"]:
        from .charts.rates import RatePlot

        rates = RatePlot()
    with StopSignals() as stop, ExitStack() as stack:
        try:
            with stop.waiting():
                source, source_name = open_inputs(source_names, reports["input_res"], reports["demuxer"])
            stack.callback(source.close)
            with stop.waiting():  # a pipe may have no reader yet
                names = source_names[0], source_name, output_name
                config, sinks, clock = _open_outputs(names, source, option_texts, reports, stack)
        except Interrupted:
            print_line(_NOTHING_WRITTEN)
            return INTERRUPTED
        mode = "none" if reports["quiet"] else reports["progress"]
        total = expected_frames(source.format, config)
        progress = Progress(mode, total, config.video.fps)
        quiet = reports["quiet"] or mode == "json"
        run = Run(source_name, source, None, sinks, progress, quiet, clock)  # type: ignore[arg-type]
        run.verbose, run.rates, run.arrays = reports["verbose"], rates, open_arrays(sinks)
        for warning in warnings_before(source_name, source.format, sinks.stream, reports):
            run.warn(warning)
        _announce(run, config, total, notes(source_names[0], source.format, config, option_texts))
        stack.enter_context(compiling.messages_to(run.tell))
        _compile_kernels(run, config)
        run.trace = Trace() if sinks.timeline or sinks.chart else None
        print_plan(run, config, reports["verbose"])
        make = (
            None
            if reports["ray"] is None
            else on_ray.connect(config, option_texts, reports, source, source_names[0], total, stack, run.info, run.warn)
        )
        run.session = open_session(
            config,
            sinks.reconstruction is not None,
            run.warn,
            run.trace,
            total if _by_lanes(source, config) else None,
            total,
            make,
        )
        stack.callback(run.session.close)
        if "numba" not in sys.modules and not gc.get_freeze_count():  # its compiler leaves garbage, as does an encode before
            gc.freeze()  # what there is stays: collections take 15 ms of a short encode without
        has_device()
        progress.restart()
        return _encode(run, stop)


def make_config(
    name: str, video: VideoFormat, input_res: tuple[int, int] | None, option_texts: dict[str, Any], has_times: bool = False
) -> Config:
    """The settings: the user's options, else the input's own values; InputError if the latter are invalid. has_times: each
    frame has its own.
    """
    check_input_res(video, input_res)
    options = {name: value for name, value in option_texts.items() if name not in _REPORTS}
    take_over(video, options)
    if "fragment" in option_texts:
        seconds = BY_NAME["fragment"].value(option_texts["fragment"])
        options = with_keyframes(options, seconds, options.get("fps", BY_NAME["fps"].default), has_times)
    if video.kind == "images":
        check_colours_of_images(options)
    try:
        return Config.from_options(width=video.width, height=video.height, **options)
    except OptionError as error:
        if error.option in ("fps", "sar") and error.option not in option_texts:
            raise InputError(f"{name}: {_of_input(video, error)}") from None
        if video.kind != "raw" and not error.option:
            raise InputError(f"{name}: {error}") from None
        raise


def _of_input(video: VideoFormat, error: OptionError) -> str:
    """What is wrong with the rate or the aspect ratio that the input says, by its own words."""
    what = {"fps": "frame rate", "sar": "sample aspect ratio"}[error.option]
    first, second = video.fps.as_integer_ratio() if error.option == "fps" and video.fps else video.sar or (0, 0)
    return f"{'Y4M' if video.kind == 'y4m' else 'its'} {what} {first}:{second}: {str(error).rpartition(': ')[2]}"


def open_sinks(
    output: str,
    config: Config,
    reports: dict[str, Any],
    stack: ExitStack,
    video: VideoFormat,
    clock: OutputTimes,
    sound: Any,
) -> Sinks:
    """Open all outputs, before any computation."""
    base = clock.times.base if clock.times is not None else None
    sinks = Sinks(
        open_packets(
            output,
            config.video.fps,
            reports["muxer"],
            reports["fragment"],
            sound,
            config.hrd.nal_hrd,
            time_base=base,
            matrix=video.matrix,
            tags=tags_from(video.tags, config),
        )
    )
    stack.callback(sinks.stream.close)
    for role, name in (
        ("reconstruction", reports["dump_yuv"]),
        ("rows", reports["csv"]),
        ("macroblock_rows", reports["mb_csv"]),
        ("macroblock_arrays", reports["mb_npz"]),
        ("summary", reports["json"]),
        ("timeline", reports["trace"]),
        ("chart", reports["trace_png"]),
        ("rates", reports["rate_png"]),
    ):
        if name is not None:
            sink = ByteSink(name)
            stack.callback(sink.close)
            setattr(sinks, role, sink)
    return sinks


def open_arrays(sinks: Sinks) -> "StreamArrays | None":
    """What writes --mb-csv and --mb-npz."""
    if sinks.macroblock_rows is None and sinks.macroblock_arrays is None:
        return None
    from ..analysis.files import CsvFile, NpzFile, StreamArrays

    writers = ((CsvFile, sinks.macroblock_rows), (NpzFile, sinks.macroblock_arrays))
    return StreamArrays([file(sink.write) for file, sink in writers if sink is not None])


def start_line(config: Config, video: VideoFormat) -> str:
    """Size, rate, device and its reason, profile and level, as text."""
    coding, machine, rate, level = config.coding, config.machine, config.video.fps, config.stream.level_idc
    size = f"{coding.width}x{coding.height}"
    if (coding.output_width, coding.output_height) != (coding.width, coding.height):
        size += f", coded as {coding.output_width}x{coding.output_height}"
    fps = f"{rate.numerator}" + (f"/{rate.denominator}" if rate.denominator > 1 else "")
    threads = f"{machine.threads} thread{'s' if machine.threads > 1 else ''}"
    return (
        f"{size}, {video.kind}, {fps} fps; device {machine.device}: {machine.device_reason}, {threads}; "
        f"profile {coding.profile_name}, level {level // 10}.{level % 10}"
    )


def print_plan(run: Run, config: Config, verbose: bool) -> None:
    """Warn about a tuning file that is not used; with --verbose print the plan."""
    if config.machine.tuning_note:
        run.warn(f"{config.machine.tuning_note}; going on without")
    if verbose:
        from ..encoder.settings.device_prediction import planned  # the planner

        run.planned = planned(config.coding, config.machine)
        if run.planned is None:
            run.info("plan: this machine was not measured, so nothing is predicted; h264lite tune does it")
        else:
            for line in run.planned.explain().splitlines():
                run.info(line)


def compare(plan: "Planned", measured: float, several: bool) -> str:
    """Predicted and measured seconds a frame; the prediction is for one GOP at a time."""
    predicted = plan.prediction.seconds
    return (
        f"a frame: predicted {1e3 * predicted:.2f} ms{' one GOP at a time' if several else ''}, measured "
        f"{1e3 * measured:.2f} ms ({100 * (measured / predicted - 1):+.0f} %, with start and end)"
    )


def expected_frames(video: VideoFormat, config: Config) -> int | None:
    """The number of frames to encode; None if the input does not tell."""
    if video.frames is None:
        return config.video.frames or None
    left = max(0, video.frames - config.video.seek)
    return min(left, config.video.frames) if config.video.frames else left


def _encode(run: Run, stop: StopSignals) -> int:
    """Encode all frames and finish the outputs; after a failure too, finished frames are written and reported."""
    config = run.session.config
    failure: BaseException | None = None
    try:
        pipeline = run.session.pipeline
        if pipeline.takes_reads and _by_lanes(run.source, config):
            assert isinstance(run.source, RawSource)
            _feed_numbers(run, stop, run.source)
        elif _any_order(run.source, config) and pipeline.read_ahead():
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
    if run.source.left_over and not stop.asked:
        left = f"{run.source.left_over} bytes left over"
        run.problems.append(f"{run.name}: the last frame is cut off: {left}, {n_written} encoded")
    if not run.written and not stop.asked:
        raise InputError(run.problems[0] if run.problems else _nothing(run, config))
    for warning in warnings_after(run.name, run.clock.times, run.sinks.stream, config):
        run.warn(warning)
    if run.written:
        _finish(run)
    for problem in run.problems:
        print_line(f"h264lite encode: error: {problem}")
    if stop.asked:
        print_line(f"h264lite encode: interrupted; the output holds {n_written}" if run.written else _NOTHING_WRITTEN)
        return INTERRUPTED
    return FAILED if run.problems else 0


def _by_lanes(source: Source, config: Config) -> bool:
    """Whether lanes can read the frames: nothing is decided by samples before."""
    return _any_order(source, config) and not config.decides_by_samples


def _any_order(source: Source, config: Config) -> bool:
    """Whether frames can be read by number, in any order."""
    return isinstance(source, RawSource) and source.any_order and not config.reports.ssim


def _feed_frames(run: Run, stop: StopSignals) -> None:
    """Read and encode frames in order."""
    source, part = run.source, (run.session.config.video.seek, run.session.config.video.frames)
    frames: Iterator[HostSource] = (
        source.buffers(*part, run.session.pipeline.next_buffer) if isinstance(source, RawSource) else source.frames(*part)
    )
    while not stop.asked:
        with stop.waiting():
            frame = next(frames, None)
        if frame is None:
            return
        run.tell_left_out()
        run.session.encode(frame, run.clock.request())
        _write(run)


def _feed_ahead(run: Run, stop: StopSignals, source: RawSource) -> None:
    """Encode frames in order; threads read them into upload buffers while earlier ones are in the loop."""
    reads = map(source.later, _numbers(source, run.session.config))
    with Readers(THREADS) as readers:
        for buffer in ReadAhead(readers).each(reads, run.session.pipeline.next_buffer):
            if stop.asked:
                return
            run.session.encode(buffer)
            _write(run)
    source.left_over = _left_over(source, run.session.config)


def _feed_numbers(run: Run, stop: StopSignals, source: RawSource) -> None:
    """Encode frames by number; the lane that encodes a frame reads it."""
    config, pipeline = run.session.config, run.session.pipeline
    for number in _numbers(source, config):
        while not pipeline.has_room() and not stop.asked:
            run.session.poll()
            _write(run)
        if stop.asked:
            return
        run.session.encode(source.later(number))
        _write(run)
    source.left_over = _left_over(source, config)


def _numbers(source: RawSource, config: Config) -> range:
    """The numbers of the frames to encode."""
    return range(config.video.seek, config.video.seek + (expected_frames(source.format, config) or 0))


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
                if stop.asked:
                    pipeline.cut()
                run.session.poll()
                _write(run)
            run.session.drain()
            _write(run)
            break
        except (InputError, DeviceLost) as error:
            failure = error
            if last:
                break
    return failure


def _write(run: Run) -> None:
    """Write finished frames to all outputs. If one fails, the message says how many frames the stream holds."""
    try:
        for frame, row in run.session.hand_out():
            times = run.clock.of(frame.pts, frame.dts)
            data = run.with_sei(frame.data, frame.index)
            run.sinks.stream.write_packet(data, *times, frame.is_idr, run.clock.duration(frame.pts))
            run.written += 1
            if run.rates:
                run.rates.add(row)
            if run.arrays:
                run.arrays.add(frame.data)
            if run.sinks.reconstruction:
                for planes in run.reconstructions.add(frame.index, frame.reconstruction):
                    run.sinks.reconstruction.write(b"".join(plane.tobytes() for plane in planes))
            if run.sinks.rows:
                head = _csv(FrameRow.header()) if run.written == 1 else b""
                run.sinks.rows.write(head + _csv(row.cells()))
        stats = run.session.stats
        run.progress.update(stats.frames, stats.bytes)
    except Error as error:
        run.progress.finish()
        raise type(error)(f"{error}; the output holds {run.sinks.stream.frames} frames") from None


def _finish(run: Run) -> None:
    """Print the summary and write the files that hold it."""
    stats, seconds = run.session.stats, max(1e-9, run.progress.seconds)
    used = memory(any(name != "cpu" for name in run.session.config.machine.devices))
    for line in [*stats.lines(), *([*stats.why(), *lines(used)] if run.verbose else ())]:
        run.info(line)
    if run.planned is not None and stats.frames:
        run.info(compare(run.planned, seconds / stats.frames, run.session.pipeline.takes_reads))
    if not run.quiet:
        print_line("")
        print_line(f"encoded {stats.frames} frames, {stats.frames / seconds:.2f} fps, {stats.kbps:.2f} kb/s")
    summary = {
        "encode_seconds": seconds,
        "encode_fps": stats.frames / seconds,
        **_settings(run.session.config),
        **stats.summary(),
        **used,
    }
    run.progress.event("end", **summary)
    if run.sinks.timeline and run.trace:
        run.sinks.timeline.write(run.trace.to_json())
    if run.sinks.chart and run.trace:
        from .charts.timeline import draw

        run.sinks.chart.write(draw(run.trace, start_line(run.session.config, run.source.format)))
    if run.sinks.rates and run.rates:
        run.sinks.rates.write(run.rates.draw(stats.fps, start_line(run.session.config, run.source.format)))
    if run.sinks.summary:
        run.sinks.summary.write((json.dumps(summary, indent=2) + "\n").encode())


def _settings(config: Config) -> dict[str, Any]:
    """The settings in the summary."""
    coding, qp = config.coding, config.rate.qp if config.rate.crf is None else None
    values = {**config.values, "profile_idc": coding.profile_idc, "partitions": sorted(coding.partitions), "qp": qp}
    return {name: values[name] for name in _SETTINGS}


def _nothing(run: Run, config: Config) -> str:
    """The reason why there was no frame to encode."""
    if config.video.seek:
        has = f"; it has {run.source.format.frames}" if run.source.format.frames is not None else ""
        return f"{run.name}: no frames after --seek {config.video.seek}{has}"
    return f"{run.name}: no frames to encode"


def _csv(cells: list[str]) -> bytes:
    text = io.StringIO()
    import csv  # few need it

    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
