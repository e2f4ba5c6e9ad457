"""Output: files, pipes and containers that end after a complete access unit even after errors."""

from collections.abc import Iterator
from typing import Any, Protocol

from ...files import WholeFile, error_text, identity, is_special, shown
from ...uninterrupted import Uninterrupted, check_of_file
from ..errors import OptionError, OutputError
from .names import ending_of

ENDINGS = {
    **dict.fromkeys((".264", ".h264", ".avc", ".h26l", ".26l", ".jsv", ".jvt", ".bit", ".bin"), "raw"),
    **dict.fromkeys((".mp4", ".m4v"), "mp4"),
    ".mkv": "mkv",
    ".mov": "mov",
    ".m3u8": "hls",
    ".mpd": "dash",
}
SEGMENT_SECONDS = 4.0  # if nothing is said
PLAYLISTS = ("hls", "dash")  # muxers that write segments beside the file
# Roles of files that are read, input 2 and so on too: two of them may be one file
_READ = ("input", "clip", "audio", "qpfile", "tuning", "cqm")


class PacketSink(Protocol):
    """A sink of access units."""

    keeps_times: bool  # whether pts and dts, and rotation, are in the file

    @property
    def frames(self) -> int:
        """The number of frames that the file is sure to hold, if an error ends it now."""

    def write_packet(self, data: bytes, pts: int, dts: int, is_keyframe: bool, duration: int | None = None) -> None:
        """Write one access unit, Annex B; times in frames, or units of the sink's time base. duration: of the last frame."""

    def flush(self, following: int | None = None) -> None:
        """Write the packets so far, where fragments can end anywhere. following: dts of the next one; None: unknown."""

    def close(self) -> None:
        """Finish the file; a new file without packets is removed."""

    def discard(self) -> None:
        """In place of `close`: leave nothing of it on the disk. What devices, pipes and objects have got stays there."""


class ByteSink(WholeFile):
    """A WholeFile that raises OutputError."""

    keeps_times = False

    def __init__(self, name: str, readable: bool = False):
        self.frames = 0
        try:
            super().__init__(name, readable)
        except OSError as error:
            raise _output_error(error) from None

    def write(self, *chunks: bytes | memoryview) -> None:
        """See WholeFile."""
        try:
            WholeFile.write(self, *chunks)
        except OSError as error:
            raise _output_error(error) from None

    def write_packet(self, data: bytes, pts: int, dts: int, is_keyframe: bool, duration: int | None = None) -> None:
        """See PacketSink."""
        self.write(data)
        self.frames += 1

    def flush(self, following: int | None = None) -> None:
        """See PacketSink: nothing waits."""

    def close(self) -> None:
        """See PacketSink."""
        try:
            super().close()
        except OSError as error:
            raise _output_error(error) from None

    def discard(self, emptied: bool = False) -> None:
        """See PacketSink; emptied: see WholeFile. An interrupt cannot cut it."""
        try:
            Uninterrupted().run(lambda: WholeFile.discard(self, emptied))
        except OSError as error:
            raise _output_error(error) from None


class DisplayOrder:
    """Puts frames that come in coding order into display order, for outputs that have no times; holds no more than the
    encoder reorders.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, Any] = {}
        self._next = 0

    def add(self, index: int, frame: object) -> Iterator[Any]:
        """The next frame in coding order, with its display index. Yields the frames whose turn has come."""
        self._waiting[index] = frame
        while self._next in self._waiting:
            self._next += 1
            yield self._waiting.pop(self._next - 1)

    def rest(self) -> Iterator[Any]:
        """No frame follows: yields those that wait for one that was not coded."""
        for index in sorted(self._waiting):
            yield self._waiting.pop(index)


def muxer_of(name: str) -> str:
    """raw (Annex B), mp4, mkv, mov, hls or dash by the ending of a name; OptionError. Devices, pipes and "-" are raw."""
    ending = ending_of(name)
    if ending in ENDINGS:
        return ENDINGS[ending]
    if name == "-" or is_special(name):
        return "raw"
    what = f"{ending} is no output format" if ending else "no ending, so no output format"
    raise OptionError(f"{name}: {what}: choose .264, .mp4, .mkv or .mov, or say --muxer on the command line")


def is_playlist(name: str, muxer: str = "auto") -> bool:
    """Whether segments are written beside the file. muxer: the option."""
    return (ENDINGS.get(ending_of(name)) if muxer == "auto" else muxer) in PLAYLISTS


def _output_error(error: OSError) -> OutputError:
    check_of_file(error)
    return OutputError(f"{error.filename}: {error_text(error)}")


def check_distinct(named: dict[str, str | None]) -> None:
    """OptionError if two roles have the same file, such as input and output. `named`: role -> file name or None."""
    seen: dict[tuple[object, ...], str] = {}
    for role, name in named.items():
        if name is None:
            continue
        reads = role.startswith(_READ)
        key = identity(name, 0 if reads else 1)
        if key is not None and seen.setdefault(key, role) != role and not (reads and seen[key].startswith(_READ)):
            file = shown(name, "standard input" if reads else "standard output")
            raise OptionError(f"{role} and {seen[key]} are the same: {file}")
