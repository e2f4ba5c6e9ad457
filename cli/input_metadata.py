"""What an encode keeps of its input beside the samples: times, rotation, sound, colours; and what is said of the rest."""

import shlex
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

from ..encoder.errors import OptionError
from ..encoder.files.names import size_from_name
from ..encoder.files.opening import container_of
from ..encoder.files.output import PacketSink
from ..encoder.files.timecodes import TimesOfFile
from ..encoder.files.times import FrameTimes
from ..encoder.files.video import Source, VideoFormat
from ..encoder.settings.config import Config
from ..encoder.settings.fragments import FragmentTimes
from ..encoder.settings.frame_requests import Request
from ..files import identity
from ..mp4.tags import FileTags


def sound_of(
    name: str, output: str, source: Source, config: Config, reports: dict[str, Any], clock: "OutputTimes", stack: ExitStack
) -> Any:
    """The sound of --audio. It begins with the first frame encoded: of the same file by its own time, else by that of
    --tcfile-in, else by --seek.

    name: of the first input.
    """
    file = reports["audio"]
    if file is None:
        return None
    from ..encoder.files.sound import open_sound  # which encodes without sound do without

    container = container_of(output, reports["muxer"], reports["fragment"])
    of_timecodes = clock.times if isinstance(clock.times, TimesOfFile) else None
    times = source.times if identity(file, 0) == identity(name, 0) else of_timecodes
    is_file = output != "-" and reports["fragment"] is None
    sound = open_sound(
        file, lambda: times.start if times is not None else config.video.seek / config.video.fps, container, is_file
    )
    stack.callback(sound.finish)
    return sound


def warnings_before(name: str, video: VideoFormat, sink: PacketSink, reports: dict[str, Any]) -> list[str]:
    """Warnings of what the output will lack."""
    lines = []
    if video.matrix is not None and not sink.keeps_times:
        lines.append(f"{name} is rotated, which a plain stream cannot say; .mp4, .mkv and .mov keep it")
    if video.has_audio and reports["audio"] is None:
        lines.append(f"{name} has sound, which is left out; --audio {shlex.quote(name)} keeps it, but in a plain stream")
    return lines


def warnings_after(name: str, times: FrameTimes | None, sink: PacketSink, config: Config, count: int) -> list[str]:
    """Warnings that only the whole input allows. count: of frames."""
    lines = []
    if isinstance(times, TimesOfFile) and (missing := times.without_times(count)):
        lines.append(f"the last {missing} of {count} frames have no time in the file of --tcfile-in: each lasts as the last")
    if times is not None and times.is_variable and not sink.keeps_times:
        lines.append(
            f"{name} has a variable frame rate, which a plain stream cannot say: it is {config.video.fps} frames/s "
            "throughout; .mp4, .mkv and .mov keep the times"
        )
    return lines


def tags_from(tags: FileTags, skipped: Fraction) -> FileTags:
    """Metadata and chapters of the part that is encoded: chapters begin so many seconds earlier."""
    begins = [max(Fraction(0), begin - skipped) for begin, _ in tags.chapters]
    over = sum(begin <= 0 for begin in begins) - 1  # chapters that end before the first frame
    chapters = [(begin, title) for begin, (_, title) in zip(begins, tags.chapters)]
    return FileTags(tags.metadata, chapters[max(0, over) :])


class OutputTimes:
    """pts, dts and duration of finished frames, in the units of the output; without times of the input they count frames.

    fragment: seconds of fragments, which begin with keyframes by the times of frames; None: there are none.
    """

    def __init__(self, times: FrameTimes | None, fragment: float | None = None, fps: Fraction = Fraction(25)) -> None:
        self.times = times
        self._keyframes = None if times is None or fragment is None else FragmentTimes(fragment, fps)
        self._entered = 0

    def skipped(self, config: Config) -> Fraction:
        """Seconds of the input before the first frame, which was read: it is at 0 in the output."""
        return config.video.seek / config.video.fps if self.times is None else self.times.start

    def request(self) -> Request | None:
        """What is asked of the next frame, which was read."""
        if self.times is None or self._keyframes is None:
            return None
        self._entered += 1
        return self._keyframes.request(self.times.of(self._entered - 1) * self.times.base)

    def of(self, pts: int, dts: int) -> tuple[int, int]:
        """pts and dts of a frame by those numbers of frames."""
        return (pts, dts) if self.times is None else (self.times.of(pts), self.times.of(dts))

    def duration(self, pts: int) -> int | None:
        """The duration of a frame; None: one frame."""
        return None if self.times is None else self.times.duration(pts)


def notes(name: str, video: VideoFormat, config: Config, option_texts: dict[str, Any]) -> list[str]:
    """Lines on frame rate and size where they are assumed or taken from the file's name, or contradict it."""
    lines, named_size = [], size_from_name(name)
    if finest := next((name for name in ("qp", "crf") if config.values[name] == 0 and name in option_texts), ""):
        lines.append(f"--{finest} 0 is the finest there is, not lossless as in x264")
    is_raw = video.file_type == "raw"
    if is_raw and named_size and named_size != (video.width, video.height):
        lines.append(f"--input-res {video.width}x{video.height} overrides {named_size[0]}x{named_size[1]} of the file's name")
    if "fps" in option_texts and video.fps not in (None, config.video.fps):
        lines.append(f"--fps {config.video.fps} overrides {video.fps} of the {'name' if is_raw else 'input'}")
    elif "tcfile_in" in option_texts and "fps" not in option_texts:
        lines.append(f"{float(config.video.fps):.6g} fps on average by --tcfile-in")
    elif "fps" not in option_texts and video.file_type in ("raw", "images"):
        what = "raw video has" if is_raw else "images have"
        lines.append(
            f"{config.video.fps} fps are assumed: {what} no frame rate; see --fps"
            if video.fps is None
            else f"{config.video.fps} fps by the file's name; --fps overrides it"
        )
    return lines


def check_colours_of_images(options: dict[str, Any]) -> None:
    """OptionError if options contradict the conversion of RGB images, which become BT.709 in limited range."""
    for name, value in (("colormatrix", "bt709"), ("range", "tv")):
        if options[name] != value:
            raise OptionError(f"{options[name]}: images become BT.709 in limited range ({value})", name)
