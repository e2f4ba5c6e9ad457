"""Raw video input: I420 and Y4M files or pipes, frame by frame into one reused buffer."""

import io
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from typing import BinaryIO, Protocol

import numpy as np

from ...mp4.tags import FileTags
from ...standard.sample_format import chroma_shape
from ...uninterrupted import check_of_file
from ..errors import InputError, OptionError
from ..sei import Message
from ..settings.option_types import OptionValues
from .output import error_text
from .read_ahead import FileRead, FileReader, Read
from .times import FrameTimes

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]  # y uint8[h, w], u and v uint8[(h+1)//2, (w+1)//2]

Y4M_MAGIC = b"YUV4MPEG2"
# options of the ffmpeg lines that refusals of inputs give
TO_420 = "-pix_fmt yuv420p"
RGB_TO_420 = (
    "-vf scale=out_color_matrix=bt709:out_range=tv -pix_fmt yuv420p -color_range tv -colorspace bt709 "
    "-color_primaries bt709 -color_trc bt709"
)
TO_PROGRESSIVE = "-vf bwdif=send_frame"
LONGEST_Y4M_LINE = 4096  # bytes: a longer header is refused
# The names of 8-bit 4:2:0 differ in the position of chroma samples, which changes no sample value.
_CHROMA_420 = ("420", "420jpeg", "420mpeg2", "420paldv")


@dataclass(frozen=True, eq=False, repr=False)
class VideoFormat:
    """The format of a source; None = unknown."""

    width: int
    height: int
    fps: Fraction | None = None
    sar: tuple[int, int] | None = None
    full_range: bool | None = None
    frames: int | None = None  # None for a pipe
    file_type: str = "raw"
    colours: dict[str, str | None] = field(default_factory=dict)  # options colorprim, transfer, colormatrix, HDR
    matrix: tuple[int, ...] | None = None  # of tkhd, for rotated video
    has_audio: bool = False
    tags: FileTags = field(default_factory=FileTags)


def take_over(video: VideoFormat, options: OptionValues) -> None:
    """Put the input's own values into `options` where the user said nothing."""
    if video.fps is not None:
        options.setdefault("fps", video.fps)
    if video.sar is not None:
        options.setdefault("sar", video.sar)
    if video.full_range is not None and options.get("range", "auto") == "auto":
        options["range"] = "pc" if video.full_range else "tv"
    for name, value in video.colours.items():
        if value is not None:
            options.setdefault(name, value)


def check_input_res(video: VideoFormat, input_res: tuple[int, int] | None) -> None:
    """OptionError if the size `input_res` differs from that of the file."""
    if input_res and input_res != (video.width, video.height):
        raise OptionError(
            f"{input_res[0]}x{input_res[1]} contradicts the input, which is {video.width}x{video.height}", "input-res"
        )


class Source(Protocol):
    """A video to read: its format, then its frames."""

    format: VideoFormat
    left_over: int  # bytes of an incomplete last frame, known after the last frame
    times: FrameTimes | None  # of the frames read so far; None: the format's rate is all
    sei: dict[int, list[Message]]  # of the frames read so far, by their number from the first one on
    left_out: list[str]  # what the output lacks of the input, but for sound, in words; grows with the frames

    def frames(self, seek: int, count: int) -> Iterator[Planes]:
        """Frames seek .. seek + count - 1 (count 0 = all); the planes are overwritten by the next frame."""

    def close(self) -> None:
        """Close the file."""


def frame_bytes(width: int, height: int) -> int:
    """Bytes of one I420 frame; chroma sizes are rounded up."""
    return width * height + 2 * prod(chroma_shape(height, width))


def split_planes(buffer: np.ndarray, width: int, height: int) -> Planes:
    """Views of the three planes in one I420 frame, uint8[frame_bytes]."""
    shape = chroma_shape(height, width)
    luma, chroma = width * height, prod(shape)
    return (
        buffer[:luma].reshape(height, width),
        buffer[luma : luma + chroma].reshape(shape),
        buffer[luma + chroma : luma + 2 * chroma].reshape(shape),
    )


class RawSource:
    """Consecutive I420 frames, with or without Y4M frame headers."""

    times: FrameTimes | None = None

    def __init__(self, file: BinaryIO, name: str, video: VideoFormat, frame_headers: bool = False):
        self._file, self._name, self.format = file, name, video
        self._frame_headers = frame_headers
        self._size = frame_bytes(video.width, video.height)
        self.left_over = 0
        self.left_out: list[str] = []
        self.sei: dict[int, list[Message]] = {}
        self._begin = 0 if video.frames is None else file.tell()

    def frames(self, seek: int = 0, count: int = 0) -> Iterator[Planes]:
        """See Source."""
        return (split_planes(buffer, self.format.width, self.format.height) for buffer in self.buffers(seek, count))

    def buffers(
        self, seek: int, count: int, next_buffer: Callable[[], np.ndarray | None] = lambda: None
    ) -> Iterator[np.ndarray]:
        """`frames` as uint8[n]. Frames before `seek` are skipped by a seek, or read if that is impossible.

        next_buffer: gives the buffer for the next frame; None: any.
        """
        own_buffer = np.empty(self._size, np.uint8)
        if seek and not self._frame_headers and self._seek(seek):
            seek = 0
        number = 0
        while not count or number < seek + count:
            buffer = next_buffer()
            if buffer is None:
                buffer = own_buffer
            if not self._read_frame(buffer.data, number):
                return
            if number >= seek:
                yield buffer
            number += 1

    def later(self, number: int) -> Read:
        """The Read of frame `number`, for any thread and order; only for a file with `any_order`."""
        file = self._file.fileno()
        return FileRead(file, self._begin + number * self._size, number, FileReader(file, self._name))

    @property
    def any_order(self) -> bool:
        """Whether frames can be read in any order: true for a raw file of known length."""
        return self.format.frames is not None and not self._frame_headers and hasattr(os, "preadv")

    def trailing_bytes(self) -> int:
        """Bytes after the last complete frame of a file with `any_order`."""
        assert self.format.frames is not None
        return os.fstat(self._file.fileno()).st_size - self._begin - self.format.frames * self._size

    def _seek(self, frames: int) -> bool:
        try:
            if not self._file.seekable():
                return False
            here, end = self._file.tell(), self._file.seek(0, io.SEEK_END)
            self._file.seek(min(here + frames * self._size, end))
        except (OSError, ValueError) as error:
            check_of_file(error)
            return False
        return True

    def _read_frame(self, view: memoryview, number: int) -> bool:
        """Fill `view`; False at the end. The size of an incomplete frame is left in `left_over`."""
        extra = 0
        try:
            if self._frame_headers:
                line = self._file.readline(LONGEST_Y4M_LINE)
                if not line:
                    return False
                extra = len(line)
                if not line.endswith(b"\n") and b"FRAME".startswith(line[:5]):
                    self.left_over = extra
                    return False
                check_frame_header(line, self._name, number)
            got = 0
            while got < len(view):
                n_read = self._file.readinto(view[got:])  # type: ignore[attr-defined]
                if not n_read:
                    break
                got += n_read
        except OSError as error:
            check_of_file(error)
            raise InputError(f"{self._name}: {error_text(error)} while reading frame {number}") from None
        if got < len(view):
            self.left_over = got + extra
            return False
        return True

    def close(self) -> None:
        """See Source."""
        self._file.close()


def check_frame_header(line: bytes, name: str, number: int) -> None:
    """InputError if a Y4M frame header is invalid or declares an interlaced frame."""
    if not line.startswith(b"FRAME") or not line.endswith(b"\n") or line[5:6] not in (b" ", b"\n"):
        raise InputError(f"{name}: frame {number} has no FRAME header; the file is damaged, or not Y4M")
    for parameter in line[5:].split():
        if parameter.startswith(b"I") and parameter[1:2] not in (b"p", b"?"):
            said = parameter.decode(errors="replace")
            raise InputError(f"{name}: frame {number} is interlaced ({said}): not supported")


def parse_y4m_header(line: bytes, name: str) -> VideoFormat:
    """The stream header of a Y4M file, all parameters: W H F I A C X."""
    if not line.startswith(Y4M_MAGIC + b" ") or not line.endswith(b"\n"):
        raise InputError(f"{name}: not a Y4M file (it must begin with {Y4M_MAGIC.decode()} and a header line)")
    fields = {"W": "", "H": "", "F": "", "I": "", "A": "", "C": ""}
    full_range = None
    for word in line[len(Y4M_MAGIC) :].decode("ascii", "replace").split():
        letter, text = word[0], word[1:]
        if letter == "X":
            if text.startswith("COLORRANGE="):
                full_range = {"FULL": True, "LIMITED": False}.get(text.split("=")[1].upper())
        elif letter in fields:
            fields[letter] = text
        else:
            raise InputError(f"{name}: unknown Y4M parameter {word!r}")
    size = []
    for letter, what in (("W", "width"), ("H", "height")):
        if not re.fullmatch(r"\d{1,9}", fields[letter]) or int(fields[letter]) == 0:
            raise InputError(f"{name}: Y4M {what} {fields[letter] or 'missing'!r} is not a size")
        size.append(int(fields[letter]))
    if fields["C"] and fields["C"] not in _CHROMA_420:
        raise InputError(
            f"{name}: Y4M chroma format C{fields['C']} is not supported; only 8-bit 4:2:0 (C420) is; "
            + converting(name, TO_420, "yuv420p", ".y4m")
        )
    if fields["I"] not in ("", "p", "?"):
        raise InputError(
            f"{name}: interlaced Y4M (I{fields['I']}) is not supported; only progressive is; "
            + converting(name, TO_PROGRESSIVE, "progressive", ".y4m")
        )
    fps, sar = _ratio(fields["F"], "frame rate", name), _ratio(fields["A"], "aspect ratio", name)
    return VideoFormat(size[0], size[1], Fraction(*fps) if fps else None, sar, full_range, file_type="y4m")


def _ratio(text: str, what: str, name: str) -> tuple[int, int] | None:
    """A Y4M ratio "N:D"; None when absent or 0:0 (unknown)."""
    if not text:
        return None
    match = re.fullmatch(r"(\d{1,10}):(\d{1,10})", text)
    if not match:
        raise InputError(f"{name}: Y4M {what} {text!r} is not a ratio N:D")
    first, second = int(match[1]), int(match[2])
    return (first, second) if first and second else None


def with_length(file: BinaryIO, name: str, video: VideoFormat) -> VideoFormat:
    """`video` with the number of complete frames, if the length of the file is known."""
    try:
        if name == "-" or not file.seekable():
            return video
        here = file.tell()
        left = file.seek(0, io.SEEK_END) - here
        file.seek(here)
    except (OSError, ValueError) as error:
        check_of_file(error)
        return video
    header = len(b"FRAME\n") if video.file_type == "y4m" else 0
    return replace(video, frames=left // (frame_bytes(video.width, video.height) + header))


def converting(name: str, words: str, suffix: str, ending: str = ".mkv") -> str:
    """The line that converts a file without loss but for what `words` say. ending: of the new file, .mkv or .y4m."""
    converted = f"{os.path.splitext(name)[0]}_{suffix}{ending}"
    coder = " -c:v ffv1" if ending == ".mkv" else ""
    return f"convert it: ffmpeg -i {shlex.quote(name)} {words}{coder} {shlex.quote(converted)}"
