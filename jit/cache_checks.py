"""Cache files, as of compiled kernels: loaded only if the checksum is right and no other user can have written them.

Cached files are run as code, so a file is trusted only if it belongs to the user, to root or to the owner of these
sources (who may change the code as well), and if no other user may write to it. The checksum is needed because a crash of
the machine or a full disk leaves empty or truncated files. A file that fails either check counts as missing and is replaced.
"""

import os
import stat
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DAMAGED = "is damaged"
_END = b"h264kept"  # end of a file, followed by the checksum of the bytes before this mark
_SUM = 4  # size of the checksum in bytes
_listener: Callable[[str], object] | None = None
_reported: set[str] = set()


@contextmanager
def messages_to(listener: Callable[[str], object]) -> Iterator[None]:
    """Sends messages of `warn_once`, a sentence each, to `listener`; without one they are RuntimeWarnings."""
    global _listener
    before, _listener, said = _listener, listener, set(_reported)
    _reported.clear()
    try:
        yield
    finally:
        _listener = before
        _reported.update(said)


def warn_once(reason: str, text: str) -> None:
    """Reports the first message of each reason: a hundred kernels fail alike."""
    if reason not in _reported:
        _reported.add(reason)
        if _listener is None:
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        else:
            _listener(text)


def distrust(status: os.stat_result) -> str:
    """Why another user may have written a file or folder; empty if none can. Always empty on Windows (no such owners)."""
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_uid not in (0, os.geteuid(), os.stat(__file__).st_uid):
        return f"belongs to another user (number {status.st_uid})"
    if status.st_mode & 0o002 or (status.st_mode & 0o020 and not _is_own_group(status)):
        return "may be written by other users"
    return ""


def _is_own_group(status: os.stat_result) -> bool:
    """Whether the owner is the group's only member: some systems give each user a group with write access by default."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return bool(status.st_uid) and group.gr_name == owner.pw_name and not set(group.gr_mem) - {owner.pw_name}


def read(path: Path) -> bytes | None:
    """The data that `write` wrote; None if missing, damaged, unreadable or not trusted, the last two reported."""
    data, problem = _look(path)
    if data is None and problem not in ("", DAMAGED):
        warn_once("read", f"{path} {problem}: not loaded")
    return data


def error_text(error: OSError) -> str:
    """The text of an error within a sentence, without number and file name."""
    return (error.strerror or str(error)).lower()


def problem_of(path: Path) -> str:
    """Why an existing file is not loaded; empty if it is loaded or does not exist."""
    return _look(path)[1]


def _look(path: Path) -> tuple[bytes | None, str]:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None, "is not a regular file"
            if reason := distrust(status):
                return None, reason
            data = file.read()
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"cannot be read ({error_text(error)})"
    body, end = data[: -len(_END) - _SUM], data[-len(_END) - _SUM :]
    return (body, "") if end == _end(body) else (None, DAMAGED)


def _without_waiting(name: str, flags: int) -> int:
    """A descriptor; a FIFO would wait for a writer for ever."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def write(path: Path, data: bytes) -> None:
    """Writes a file atomically: other processes see it complete or not at all. OSError if it cannot be written."""
    name = f"{path}.tmp.{os.urandom(8).hex()}"
    try:
        with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644), "wb") as file:
            file.write(data)
            file.write(_end(data))
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _end(body: bytes) -> bytes:
    return _END + zlib.crc32(body).to_bytes(_SUM, "little")
