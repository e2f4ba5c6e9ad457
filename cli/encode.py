"""`h264lite encode`: encodes a file to a file; here what comes before the first frame: options, input, settings, messages."""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from ..console import DEBUG, INFO, WARNING, print_line
from ..encoder.errors import InputError, OptionError
from ..encoder.files.left_out import of_tags
from ..encoder.files.opening import open_inputs
from ..encoder.files.output import SEGMENT_SECONDS, check_distinct, is_playlist
from ..encoder.files.timecodes import TimesOfFile, read_timecodes
from ..encoder.files.video import Source, VideoFormat, check_input_res, take_over
from ..encoder.gops.shared_gops import shares_gops
from ..encoder.prepare_kernels import prepare
from ..encoder.session import Session, open_session
from ..encoder.settings.config import Config
from ..encoder.settings.fragments import with_keyframes
from ..encoder.settings.options import API, BY_NAME, CLI, OPTIONS
from ..encoder.settings.pass_file import check_frames
from ..encoder.settings.user_options import read_options
from ..encoder.warm_up import will_compile
from ..jit import compiling
from ..scheduler.devices import cuda_kernels_will_compile
from ..scheduler.trace import Trace
from . import on_ray
from .encode_frames import NOTHING_WRITTEN, encode_frames, expected_frames, several_gops
from .encode_run import Run, Sinks, open_arrays, open_sinks, start_line
from .input_metadata import OutputTimes, check_colours_of_images, notes, sound_of, warnings_before
from .interrupt import INTERRUPTED, Interrupted, StopSignals
from .progress import Progress

_REPORT_ROWS = tuple(row for row in OPTIONS if row.scope == CLI and row.name not in ("frames", "seek"))
_REPORTS = {row.name for row in _REPORT_ROWS}
_REPORT_FILES = ("dump-yuv", "csv", "mb-csv", "mb-npz", "json", "trace", "trace-png", "rate-png")


def _check_files(
    source_names: Sequence[str], output_name: str, option_texts: dict[str, Any], reports: dict[str, Any]
) -> None:
    """OptionError if an output is also an input or another output, or cannot be drawn."""
    inputs = {f"input {k + 1}" if k else "input": name for k, name in enumerate(source_names)}
    inputs |= {name: option_texts[name] for name in ("qpfile", "tuning", "cqm", "tcfile_in") if option_texts.get(name)}
    outputs = {"output": output_name} | {name: reports[name.replace("-", "_")] for name in _REPORT_FILES}
    if is_playlist(output_name, reports["muxer"]):
        from ..mp4.playlists import init_name, sound_stem  # few need it

        stem = os.path.splitext(output_name)[0]
        outputs |= {"the first segment": init_name(stem), "the first segment of the sound": init_name(sound_stem(stem))}
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
    timecodes = None if reports["tcfile_in"] is None else read_timecodes(reports["tcfile_in"])
    if timecodes is not None:
        option_texts = {"fps": timecodes.fps} | option_texts
    times = source.times if "fps" not in option_texts else None
    has_times = times is not None or timecodes is not None
    config = make_config(source_name, source.format, reports["input_res"], option_texts, has_times)
    if timecodes is not None:
        times = TimesOfFile(timecodes, config.video.fps, config.video.seek)
    if reports["ray"] is not None:
        on_ray.check_config(config)
    check_frames(config.rate.first_pass, config.rate.stats, expected_frames(source.format, config))
    clock = OutputTimes(times, reports["fragment"], config.video.fps)
    sound = sound_of(first_name, output_name, source, config, reports, clock, stack)
    sinks = open_sinks(output_name, config, reports, stack, source.format, clock, sound)
    if sinks.rows or reports["verbose"]:
        config = config._replace(coding=config.coding._replace(bits_by_kind=True))
    if clock.times is not None and sinks.stream.keeps_times:
        if config.hrd.nal_hrd != "none":
            without = "say --fps" if timecodes is None else "leave out --tcfile-in"
            raise OptionError(f"is for a constant frame rate, and the frames have times: {without}", "nal-hrd")
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
    if config.machine.device != "cuda" and not prepare(config) and will_compile(config):
        from ..encoder.compile_kernels import compile_for

        gc.enable()  # paused so far: the compiler leaves garbage
        run.info(f"compiled in {compile_for(config):.0f} s")
    if config.machine.device == "cuda" and cuda_kernels_will_compile(config.coding.has_b_frames):
        run.info("first run on this GPU: its kernels are compiled, once; up to a minute")


def _session(
    run: Run, config: Config, option_texts: dict[str, Any], reports: dict[str, Any], first_name: str, total: int | None,
    stack: ExitStack,
) -> Session:  # fmt: skip
    """The encode, here or on a cluster. total: frames, if known."""
    source, make = run.source, None
    if reports["ray"] is not None:
        make = on_ray.connect(config, option_texts, reports, source, first_name, total, stack, run.info, run.warn)
    in_any_order = total if several_gops(source, config) else None
    return open_session(config, run.sinks.reconstruction is not None, run.warn, run.trace, in_any_order, total, make)


def run_encode(
    source_names: Sequence[str], output_name: str, option_texts: dict[str, Any], has_device: Callable[[], None] = lambda: None
) -> int:
    """Encode one file; return the exit code. option_texts: user's text by option name. has_device: called when the encoder
    has its device.
    """
    read_options(option_texts, [row for row in OPTIONS if row.scope != API])  # usage is checked before any file is touched
    option_texts = _with_segments(output_name, option_texts)
    reports = read_options({name: value for name, value in option_texts.items() if name in _REPORTS}, _REPORT_ROWS)
    level = min(reports["log_level"], WARNING) if reports["quiet"] else reports["log_level"]
    reports["verbose"] = reports["verbose"] or level == DEBUG
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
            mode = "none" if level < INFO else reports["progress"]
            total = expected_frames(source.format, config)
            progress = Progress(mode, total, config.video.fps)
            quiet = level < INFO or mode == "json"
            run = Run(source_name, source, None, sinks, progress, quiet, clock)  # type: ignore[arg-type]
            run.verbose, run.rates, run.arrays = reports["verbose"], rates, open_arrays(sinks)
            for warning in warnings_before(source_name, source.format, sinks.stream, reports):
                run.warn(warning)
            _announce(run, config, total, notes(source_names[0], source.format, config, option_texts))
            stack.enter_context(compiling.messages_to(run.tell))
            with stop.waiting():  # it may take minutes
                _compile_kernels(run, config)
            run.trace = Trace() if sinks.timeline or sinks.chart else None
            print_plan(run, config, reports["verbose"])
            run.session = _session(run, config, option_texts, reports, source_names[0], total, stack)
            stack.callback(run.session.close)
            # the compiler of Numba leaves garbage, and so does an encode before
            if "numba" not in sys.modules and not gc.get_freeze_count():
                gc.freeze()  # what there is stays: collections take 15 ms of a short encode without
            has_device()
            progress.restart()
        except Interrupted:
            print_line(NOTHING_WRITTEN)
            return INTERRUPTED
        return encode_frames(run, stop)


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
    if video.file_type == "images":
        check_colours_of_images(options)
    try:
        return Config.from_options(width=video.width, height=video.height, **options)
    except OptionError as error:
        if error.option in ("fps", "sar") and error.option not in option_texts:
            raise InputError(f"{name}: {_of_input(video, error)}") from None
        if video.file_type != "raw" and not error.option:
            raise InputError(f"{name}: {error.command_text}") from None
        raise


def _of_input(video: VideoFormat, error: OptionError) -> str:
    """What is wrong with the rate or the aspect ratio that the input says, by its own words."""
    what = {"fps": "frame rate", "sar": "sample aspect ratio"}[error.option]
    first, second = video.fps.as_integer_ratio() if error.option == "fps" and video.fps else video.sar or (0, 0)
    return f"{'Y4M' if video.file_type == 'y4m' else 'its'} {what} {first}:{second}: {str(error).rpartition(': ')[2]}"


def print_plan(run: Run, config: Config, verbose: bool) -> None:
    """Warn about a tuning file that is not used; with --verbose print the plan."""
    if config.machine.tuning_note:
        run.warn(f"{config.machine.tuning_note}; going on without")
    if verbose:
        from ..encoder.settings.device_prediction import planned  # the planner

        if several_gops(run.source, config) and shares_gops(config):
            run.info("plan: GOPs go to the GPU and the CPU by their rates; for a stream of one GOP:")
        run.planned = planned(config.coding, config.machine)
        if run.planned is None:
            run.info("plan: this machine was not measured, so nothing is predicted; h264lite tune does it")
        else:
            for line in run.planned.explain().splitlines():
                run.info(line)
