"""Files and pipes of the commands: complete reads and writes, errors with file names, a test for the same file."""

import errno
import io
import os
import select
import stat
import sys
from contextlib import suppress

from .console import Waiting, standard_input, wait_for
from .uninterrupted import check_of_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def shown(name: str, standard: str) -> str:
    """The file name for messages; for "-" it is `standard`, the name of the standard stream."""
    return standard if name == "-" else name


def opened(name: str, buffer: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Open a file, or standard input ("-"), for reading with a buffer of that many bytes; OSError."""
    return standard_input() if name == "-" else io.BufferedReader(Waiting(name, "rb", name), buffer)


def small_file(name: str | os.PathLike[str], most: int, may_wait: bool = False) -> bytes:
    """The contents of a file of up to `most` bytes; OSError, or ValueError with the reason.

    may_wait: devices and pipes are read too, a pipe up to its end; else they are refused, without a wait for their writer.
    """
    flags = 0 if may_wait else getattr(os, "O_NONBLOCK", 0)
    with open(name, "rb", opener=lambda path, mode: os.open(path, mode | flags)) as file:
        if not may_wait and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        data = bytearray()
        while len(data) <= most and (piece := file.read(min(1 << 20, most + 1 - len(data)))):
            data += piece
    if len(data) > most:
        raise ValueError(f"larger than {most >> 20} MiB" if most >= 1 << 20 else f"larger than {most} bytes")
    return bytes(data)


class WholeFile:
    """A file, device, pipe or standard output ("-"), written in pieces; a regular file never keeps part of a piece.

    Opening leaves an existing file unchanged: the first write empties it, so that a command that fails earlier neither
    destroys a file nor leaves an empty one. A regular file has one WholeFile at a time. Every failure is an OSError with the
    name of the file.

    readable: open it for reading too, where that is allowed, so that `edit` can change what was written. said: the name for
    messages.
    """

    def __init__(self, name: str, readable: bool = False, said: str = ""):
        self.name = said or shown(name, "standard output")
        self._path, self._fd = name, -1
        self._created = ""  # a new file: `close` removes it if nothing was written
        self._written = 0  # bytes
        self._started = self._regular = False
        self._process = os.getpid()
        if name == "-" and sys.stdout is None:
            raise OSError(errno.EBADF, "closed", self.name)
        try:
            self._fd, both = (os.dup(1), False) if name == "-" else self._open_for(name, readable)
            self._regular = stat.S_ISREG(os.fstat(self._fd).st_mode) and name != "-"
            self.editable = self._regular and both
            if self._regular:
                self._lock()
        except BaseException as error:
            if self._fd >= 0:
                self.close()
            elif self._created:  # opened, but the number of its descriptor is lost
                self._remove()
            if isinstance(error, OSError | ValueError):
                raise self._named(error) from None
            raise

    def _lock(self) -> None:
        """OSError if another WholeFile, of any process, has the file open. File systems without locks allow it."""
        try:
            if fcntl is not None:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._created = ""  # it is the other's
            raise OSError(errno.EBUSY, "another writer has it open") from None
        except OSError as error:
            check_of_file(error)

    def _named(self, error: Exception) -> OSError:
        check_of_file(error)
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
        if os.path.lexists(name):
            raise FileExistsError
        self._created = name  # before it exists, so that an interrupt leaves no file behind
        try:
            return os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as error:
            check_of_file(error)
            self._created = ""
            raise

    def write(self, *pieces: bytes | memoryview) -> None:
        """Write all pieces; after an error or a signal's exception a regular file is truncated to its earlier length."""
        try:
            if not self._started and self._regular:
                os.ftruncate(self._fd, 0)
            self._started = True
            size = 0
            for piece in pieces:
                view = memoryview(piece).cast("B")
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
                taken = os.write(self._fd, view)
            except BlockingIOError:
                wait_for(self._fd, select.POLLOUT)
                continue
            if not taken and view:
                raise OSError(errno.EIO, "it takes no bytes")
            return taken

    def edit(self) -> io.FileIO:
        """An `editable` file for reading and writing what was written; to be closed before anything else is done with it."""
        return io.FileIO(self._fd, "r+b", closefd=False)

    def close(self) -> None:
        """Close; a second call does nothing. A new file without contents is removed."""
        if self._fd < 0:
            return
        is_empty = bool(self._created) and not os.fstat(self._fd).st_size
        number, self._fd = self._fd, -1
        try:
            self._close(number)
        except OSError as error:
            raise self._named(error) from None
        finally:
            if is_empty:
                self._remove()

    def discard(self, emptied: bool = False) -> None:
        """Close and remove it, whatever it holds: a new file, and an existing one whose old contents are gone (emptied: by
        others than `write`). Devices and pipes stay. A second call does nothing.
        """
        if self._fd < 0:
            return
        is_overwritten = self._regular and (self._started or emptied)
        path = self._created or (os.path.realpath(self._path) if is_overwritten else "")
        self._created = ""  # it may be another file's name by the time of `close`
        is_left = bool(path) and self._is_at(path)
        try:
            if is_left:
                with suppress(PermissionError):  # Windows removes no open file
                    os.unlink(path)
                    is_left = False
        finally:
            self.close()
            if is_left:
                os.unlink(path)

    def _is_at(self, path: str) -> bool:
        """Whether the open file still has this name."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(path))
        except OSError as error:
            check_of_file(error)
            return False

    def _close(self, number: int) -> None:
        try:
            if fcntl is not None and self._regular:
                fcntl.flock(number, fcntl.LOCK_UN)  # a forked process may have it open too
        except OSError as error:
            check_of_file(error)
        finally:
            os.close(number)

    def _remove(self) -> None:
        try:
            os.unlink(self._created)
        except FileNotFoundError:
            pass

    def __del__(self) -> None:
        """An interrupt may lose the object before `close`: a new file without contents goes. A fork leaves it as it is."""
        if getattr(self, "_fd", -1) >= 0 and self._process == os.getpid():
            self.close()

    def __enter__(self) -> "WholeFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Replacement:
    """A file that gets its contents all at once: they are written to `temporary`, and `finish` puts that in its place.

    temporary: a new file in the same folder under an unpredictable name; of a device, a pipe or "-" it is the name itself,
    which is written directly. A link stays, and its target is replaced. Mode and owner of an existing file are kept. OSError
    with the name that was given, if it could not be written or replaced.
    """

    def __init__(self, name: str):
        self.name, self.temporary, self._target = name, name, ""
        if name == "-" or is_special(name):
            return
        try:
            target = os.path.realpath(name)
            if os.path.lexists(target):
                WholeFile(target).close()
            before = os.stat(target) if os.path.exists(target) else None
            folder, file = os.path.split(target)
            stem, ending = os.path.splitext(file)
            temporary = os.path.join(folder, f".{stem[:40]}.{os.urandom(8).hex()}{ending[:10]}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
            os.close(os.open(temporary, flags, 0o666 if before is None else 0o600))
            self.temporary, self._target = temporary, target
            if before is not None:
                with suppress(OSError, AttributeError):  # file systems and Windows without owners
                    os.chown(temporary, before.st_uid, before.st_gid)
                os.chmod(temporary, stat.S_IMODE(before.st_mode) & 0o777)
        except BaseException as error:
            self.discard()
            if not isinstance(error, OSError | ValueError):
                raise
            check_of_file(error)
            said = getattr(error, "strerror", None) or str(error)
            raise OSError(getattr(error, "errno", None) or errno.EINVAL, said, name) from None

    def finish(self) -> None:
        """`temporary` is complete and closed: it takes its place."""
        if self._target:
            try:
                os.replace(self.temporary, self._target)
            except OSError as error:
                check_of_file(error)
                raise OSError(error.errno, error.strerror or str(error), self.name) from None
            self._target = ""

    def discard(self) -> None:
        """Remove `temporary`, unless it has taken its place; a second call does nothing."""
        target, self._target = self._target, ""
        if target:
            with suppress(OSError):
                os.unlink(self.temporary)


def replace_file(name: str, data: bytes) -> None:
    """Write a file whole or not at all; see Replacement. OSError."""
    replacement = Replacement(name)
    try:
        with WholeFile(replacement.temporary, said=name) as file:
            file.write(data)
        replacement.finish()
    finally:
        replacement.discard()


def check_replaceable(name: str) -> None:
    """OSError if `replace_file` could not write this file now; nothing changes."""
    if not is_special(name):
        Replacement(name).discard()
    elif os.path.isdir(name) or not os.access(name, os.W_OK):
        number = errno.EISDIR if os.path.isdir(name) else errno.EACCES
        raise OSError(number, os.strerror(number), name)


def is_special(name: str | os.PathLike[str]) -> bool:
    """Whether it exists and is no regular file (a device, a pipe, a folder), or is a name of an open stream."""
    return is_stream(name) or (os.path.exists(name) and not os.path.isfile(name))


def is_stream(name: str | os.PathLike[str]) -> bool:
    """Whether it is a name that the system gives an open file, such as /dev/stdout: what it is says nothing of the name."""
    path = os.path.abspath(name)
    return path in ("/dev/stdin", "/dev/stdout", "/dev/stderr") or path.startswith(("/dev/fd/", "/proc/"))


def error_text(error: BaseException) -> str:
    """The text of an OSError or FFmpeg error, without number and file name; which folder is missing."""
    number, name = getattr(error, "errno", None), getattr(error, "filename", None)
    if number == errno.EPIPE:
        return "closed by its reader (broken pipe)"
    if number == errno.ENOENT and isinstance(name, str) and (folder := os.path.dirname(name)) and not os.path.exists(folder):
        return f"there is no folder {folder}"
    return (getattr(error, "strerror", None) or str(error)).lower()


def identity(name: str, standard: int) -> tuple[object, ...] | None:
    """A value that is equal for two names of one file; None for devices and pipes, which may be used twice.

    standard: the descriptor of "-", 0 or 1. Standard output has its own identity unless it is a regular file.
    """
    try:
        status = os.fstat(standard) if name == "-" else os.stat(name)
    except (OSError, ValueError):
        return ("standard", standard) if name == "-" else ("path", os.path.realpath(name))
    if stat.S_ISREG(status.st_mode):
        return (status.st_dev, status.st_ino)
    return ("standard", standard) if name == "-" and standard == 1 else None
