"""Bytes out: files and pipes that end whole, whatever happens on the way."""

import errno
import os
import stat
import sys
from fractions import Fraction
from typing import Protocol

from .errors import OptionError, OutputError

CONTAINERS = (".mp4", ".m4v", ".mkv")
_FOREIGN = (".avi", ".mov", ".webm", ".flv", ".ts", ".y4m", ".yuv", ".mpg", ".ogg", ".gif", ".png", ".jpg")


class PacketSink(Protocol):
    """Where access units go."""

    def write_packet(self, data: bytes, pts: int, is_keyframe: bool) -> None:
        """One access unit, Annex B; pts in frames."""

    def close(self) -> None:
        """Finish the file; without a packet nothing of it stays behind."""


class ByteSink:
    """A file, device or pipe written piece by piece, each whole or not at all where the file can be cut.

    Opening changes nothing of a file that exists: it is emptied by the first write, so that an encode that fails
    before its first frame neither destroys a file nor leaves an empty one.
    """

    def __init__(self, name: str):
        self.name = "standard output" if name == "-" else name
        self._path = None if name == "-" else name
        self._created = False
        self._written = 0  # bytes
        self._started = False
        if name == "-" and sys.stdout is None:
            raise OutputError(f"{self.name}: closed")
        try:
            self._fd = os.dup(1) if name == "-" else self._open(name)
            self._regular = stat.S_ISREG(os.fstat(self._fd).st_mode) and name != "-"
        except (OSError, ValueError) as error:
            raise OutputError(f"{self.name}: {words(error)}") from None

    def _open(self, name: str) -> int:
        flags = os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            fd = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o666)
            self._created = True
        except FileExistsError:
            fd = os.open(name, flags)
        return fd

    def write(self, data: bytes | memoryview) -> None:
        """All of `data`; on failure the file is cut back to what was whole before."""
        try:
            if not self._started and self._regular:
                os.ftruncate(self._fd, 0)
            self._started = True
            view = memoryview(data).cast("B")
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            if self._regular:
                os.ftruncate(self._fd, self._written)
            raise OutputError(f"{self.name}: {words(error)}") from None
        self._written += len(data)

    def write_packet(self, data: bytes, pts: int, is_keyframe: bool) -> None:
        """See PacketSink."""
        self.write(data)

    def close(self) -> None:
        """See PacketSink. Called twice it does nothing."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        try:
            os.close(fd)
        except OSError as error:
            raise OutputError(f"{self.name}: {words(error)}") from None
        finally:
            if self._created and not self._written and self._path:
                os.unlink(self._path)


def words(error: BaseException) -> str:
    """What an OSError, or FFmpeg's, says, without its number and file name."""
    if getattr(error, "errno", None) == errno.EPIPE:
        return "closed by its reader (broken pipe)"
    return (getattr(error, "strerror", None) or str(error)).lower()


def open_packets(name: str, fps: Fraction) -> PacketSink:
    """The sink for the stream: Annex B, or a container by the ending of the name."""
    ending = os.path.splitext(name)[1].lower()
    if ending in _FOREIGN:
        raise OptionError(f"{name}: {ending} is no output format; .264, .h264, .bin (Annex B), .mp4 and .mkv are")
    if ending in CONTAINERS:
        from .output_av import ContainerSink

        return ContainerSink(name, fps)
    return ByteSink(name)


def check_distinct(named: dict[str, str | None]) -> None:
    """Refuse two roles for one file, such as an output that is the input. `named`: role -> file name or None."""
    seen: dict[tuple[object, ...], tuple[str, str]] = {}
    for role, name in named.items():
        if name is None or (name == "-" and role in ("input", "clip")):
            continue
        key = _identity(name)
        if key is None:
            continue
        if key in seen:
            other_role, _ = seen[key]
            raise OptionError(f"{role} and {other_role} are the same: {'standard output' if name == '-' else name}")
        seen[key] = role, name


def _identity(name: str) -> tuple[object, ...] | None:
    """Equal for two names of one file; None for devices and pipes, which may be used twice."""
    if name == "-":
        return ("stdout",)
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return ("path", os.path.realpath(name))
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
