"""Files and pipes of the commands: complete reads and writes, errors with file names, a test for the same file."""

import errno
import io
import os
import select
import stat
import sys

from .console import Waiting, standard_input, wait_for


def shown(name: str, standard: str) -> str:
    """The file name for messages; for "-" it is `standard`, the name of the standard stream."""
    return standard if name == "-" else name


def opened(name: str, buffer: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Open a file, or standard input ("-"), for reading with a buffer of that many bytes; OSError."""
    return standard_input() if name == "-" else io.BufferedReader(Waiting(name, "rb", name), buffer)


def small_file(name: str | os.PathLike[str], most: int) -> bytes:
    """The contents of a regular file of up to `most` bytes; else OSError or ValueError, without a wait for pipes."""
    with open(name, "rb", opener=lambda path, flags: os.open(path, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"larger than {most} bytes")
    return data


class WholeFile:
    """A file, device, pipe or standard output ("-"), written in pieces; a regular file never keeps part of a piece.

    Opening leaves an existing file unchanged: the first write empties it, so that a command that fails earlier neither
    destroys a file nor leaves an empty one. Every failure is an OSError with the name of the file.

    readable: open it for reading too, where that is allowed, so that `edit` can change what was written.
    """

    def __init__(self, name: str, readable: bool = False):
        self.name = shown(name, "standard output")
        self._created = ""  # a new file: `close` removes it if nothing was written
        self._written = 0  # bytes
        self._started = False
        if name == "-" and sys.stdout is None:
            raise OSError(errno.EBADF, "closed", self.name)
        try:
            self._fd, both = (os.dup(1), False) if name == "-" else self._open_for(name, readable)
            self._regular = stat.S_ISREG(os.fstat(self._fd).st_mode) and name != "-"
            self.editable = self._regular and both
        except (OSError, ValueError) as error:
            raise self._named(error) from None

    def _named(self, error: Exception) -> OSError:
        said = getattr(error, "strerror", None) or str(error)
        return OSError(getattr(error, "errno", None) or errno.EINVAL, said, self.name)

    def _open_for(self, name: str, readable: bool) -> tuple[int, bool]:
        """The descriptor, and whether it can be read too. A pipe is not: its writer would wait for no reader."""
        if readable and (os.path.isfile(name) or not os.path.exists(name)):
            try:
                return self._open(name, os.O_RDWR), True
            except PermissionError:
                pass
        return self._open(name, os.O_WRONLY), False

    def _open(self, name: str, access: int) -> int:
        flags = access | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            return self._create(name, flags)
        except FileExistsError:
            pass
        try:
            return os.open(name, flags)
        except FileNotFoundError:  # a link to a missing file
            return self._create(os.path.realpath(name), flags)

    def _create(self, name: str, flags: int) -> int:
        number = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o666)
        self._created = name
        return number

    def write(self, *parts: bytes | memoryview) -> None:
        """Write all parts; after an error or a signal's exception a regular file is truncated to its earlier length."""
        try:
            if not self._started and self._regular:
                os.ftruncate(self._fd, 0)
            self._started = True
            size = 0
            for part in parts:
                view = memoryview(part).cast("B")
                size += len(view)
                while (taken := self._put(view)) < len(view):
                    view = view[taken:]
            self._written += size
        except BaseException as error:
            if self._regular:
                os.ftruncate(self._fd, self._written)
            if isinstance(error, OSError):
                raise self._named(error) from None
            raise

    def _put(self, view: memoryview) -> int:
        """Write some bytes and return their number; blocks while a pipe is full, even a non-blocking one."""
        while True:
            try:
                return os.write(self._fd, view)
            except BlockingIOError:
                wait_for(self._fd, select.POLLOUT)

    def edit(self) -> io.FileIO:
        """An `editable` file for reading and writing what was written; to be closed before anything else is done with it."""
        return io.FileIO(self._fd, "r+b", closefd=False)

    def close(self) -> None:
        """Close; a second call does nothing. A new file without contents is removed."""
        if self._fd < 0:
            return
        number, self._fd = self._fd, -1
        try:
            os.close(number)
        except OSError as error:
            raise self._named(error) from None
        finally:
            if self._created and not self._written:
                os.unlink(self._created)

    def __enter__(self) -> "WholeFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def error_text(error: BaseException) -> str:
    """The text of an OSError or FFmpeg error, without number and file name."""
    if getattr(error, "errno", None) == errno.EPIPE:
        return "closed by its reader (broken pipe)"
    return (getattr(error, "strerror", None) or str(error)).lower()


def identity(name: str, standard: int) -> tuple[object, ...] | None:
    """A value that is equal for two names of one file; None for devices and pipes, which may be used twice.

    standard: the descriptor of "-", 0 or 1. Standard output has its own identity unless it is a regular file.
    """
    try:
        found = os.fstat(standard) if name == "-" else os.stat(name)
    except (OSError, ValueError):
        return ("standard", standard) if name == "-" else ("path", os.path.realpath(name))
    if stat.S_ISREG(found.st_mode):
        return (found.st_dev, found.st_ino)
    return ("standard", standard) if name == "-" and standard == 1 else None
