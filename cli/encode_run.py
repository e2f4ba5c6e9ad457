"""One run of `h264lite encode`: its state and its outputs, which are opened before any computation, get each finished frame,
and at the end the summary.
"""

import io
import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..console import INFO, WARNING, print_line
from ..encoder.errors import Error
from ..encoder.files.opening import open_packets
from ..encoder.files.output import ByteSink, DisplayOrder, PacketSink
from ..encoder.files.video import Source, VideoFormat
from ..encoder.sei import with_messages
from ..encoder.session import Session
from ..encoder.settings.config import Config
from ..encoder.statistics import FrameRow
from ..scheduler.trace import Trace
from .input_metadata import OutputTimes, tags_from
from .memory import lines, memory
from .progress import Progress

if TYPE_CHECKING:
    from ..analysis.files import StreamArrays  # imports the decoder
    from ..scheduler.hybrid.planner import Planned
    from .charts.rates import RatePlot

_SETTINGS = (  # in the summary
    "width", "height", "profile_idc", "level_idc", "device", "threads", "preset", "tune", "qp", "crf", "aq_mode",
    "aq_strength", "keyint", "ref", "merange", "subme", "slices", "partitions", "cabac", "transform_8x8_mode", "cqm",
    "chroma_qp_offset",
)  # fmt: skip
_OF_BUFFER = "captions and user data (--nal-hrd)"


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
            print_line(f"h264lite [info]: {text}", level=INFO)

    def tell(self, text: str) -> None:
        """Print a line of information while frames are encoded, unless quiet."""
        if not self.quiet:
            self.progress.finish()
            self.info(text)

    def warn(self, text: str) -> None:
        """Print a warning about a problem that did not end the encode."""
        self.progress.finish()
        print_line(f"h264lite [warning]: {text}", level=WARNING)

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
            tags=lambda: tags_from(video.tags, clock.skipped(config)),
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
        f"{size}, {video.file_type}, {fps} fps; device {machine.device}: {machine.device_reason}, {threads}; "
        f"profile {coding.profile_name}, level {level // 10}.{level % 10}"
    )


def write(run: Run) -> None:
    """Write finished frames to all outputs. If one fails, the message says how many frames the stream holds."""
    try:
        stats = run.session.stats
        for frame in run.session.hand_out():
            times = run.clock.of(frame.pts, frame.dts)
            data = run.with_sei(frame.data, frame.index)
            run.sinks.stream.write_packet(data, *times, frame.is_idr, run.clock.duration(frame.pts))
            run.written += 1
            if run.rates:
                run.rates.add(stats.row(frame))
            if run.arrays:
                run.arrays.add(frame.data)
            if run.sinks.reconstruction:
                for planes in run.reconstructions.add(frame.index, frame.reconstruction):
                    run.sinks.reconstruction.write(b"".join(plane.tobytes() for plane in planes))
            if run.sinks.rows:
                head = _csv(FrameRow.header()) if run.written == 1 else b""
                run.sinks.rows.write(head + _csv(stats.row(frame).cells()))
        run.progress.update(stats.frames, stats.bytes)
    except Error as error:
        run.progress.finish()
        raise type(error)(f"{error}; the output holds {run.sinks.stream.frames} frames") from None


def finish(run: Run) -> None:
    """Print the summary and write the files that hold it."""
    stats, seconds = run.session.stats, max(1e-9, run.progress.seconds)
    used = memory(any(name != "cpu" for name in run.session.config.machine.devices))
    rates = run.session.pipeline.rates
    for line in [*stats.lines(), *_rates(rates), *([*stats.why(), *lines(used)] if run.verbose else ())]:
        run.info(line)
    if run.planned is not None and stats.frames:
        run.info(_compared(run.planned, seconds / stats.frames, run.session.pipeline.takes_reads))
    if not run.quiet:
        print_line("", level=INFO)
        print_line(f"encoded {stats.frames} frames, {stats.frames / seconds:.2f} fps, {stats.kbps:.2f} kb/s", level=INFO)
    summary = {
        "encode_seconds": seconds,
        "encode_fps": stats.frames / seconds,
        **_settings(run.session.config),
        **stats.summary(),
        **({"rates": {name: {"frames": frames, "fps": fps} for name, (frames, fps) in rates.items()}} if rates else {}),
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


def _rates(rates: dict[str, tuple[int, float]]) -> list[str]:
    """What each device has encoded, as lines."""
    return [f"{name}: {frames} frames in GOPs of its own, {fps:.1f} a second" for name, (frames, fps) in rates.items()]


def _compared(plan: "Planned", measured: float, several: bool) -> str:
    """Predicted and measured seconds a frame; the prediction is for one GOP at a time."""
    predicted = plan.prediction.seconds
    return (
        f"a frame: predicted {1e3 * predicted:.2f} ms{' one GOP at a time' if several else ''}, measured "
        f"{1e3 * measured:.2f} ms ({100 * (measured / predicted - 1):+.0f} %, with start and end)"
    )


def _settings(config: Config) -> dict[str, Any]:
    """The settings in the summary."""
    coding, qp = config.coding, config.rate.qp if config.rate.crf is None else None
    values = {**config.values, "profile_idc": coding.profile_idc, "partitions": sorted(coding.partitions), "qp": qp}
    return {name: values[name] for name in _SETTINGS}


def _csv(cells: list[str]) -> bytes:
    text = io.StringIO()
    import csv  # few need it

    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
