"""Files that are kept from run to run, as compiled kernels: whole, and of no other user, or else not loaded.

What lies in a cache is run as code. So a file counts only if it belongs to the user, to root or to the owner of these
sources, who may change the code as well, and if no other user may write to it; and only if its checksum is right, since a
crash of the machine or a full disk leaves files that are empty or cut. Else it counts as not there, and is replaced.
"""

import os
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DAMAGED = "is damaged"
_END = b"h264kept"  # of a file, before the checksum of what stands before it
_SUM = 4  # bytes of the checksum
_listener: Callable[[str], object] | None = None
_told: set[str] = set()


@contextmanager
def told(listener: Callable[[str], object]) -> Iterator[None]:
    """Who is told what cannot be kept, a sentence each; else it is a RuntimeWarning."""
    global _listener
    before, _listener, said = _listener, listener, set(_told)
    _told.clear()
    try:
        yield
    finally:
        _listener = before
        _told.update(said)


def tell_once(kind: str, text: str) -> None:
    """The first of each kind: a hundred kernels fail alike."""
    if kind not in _told:
        _told.add(kind)
        if _listener is None:
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        else:
            _listener(text)


def distrust(status: os.stat_result) -> str:
    """Why what lies in a file or folder may be another user's; empty if it cannot. Windows has no such owners."""
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_uid not in (0, os.geteuid(), os.stat(__file__).st_uid):
        return f"belongs to another user (number {status.st_uid})"
    if status.st_mode & 0o002 or (status.st_mode & 0o020 and not _is_own_group(status)):
        return "may be written by other users"
    return ""


def _is_own_group(status: os.stat_result) -> bool:
    """Whether the group is the owner's alone: some systems give each user one, and let it write by default."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return bool(status.st_uid) and group.gr_name == owner.pw_name and not set(group.gr_mem) - {owner.pw_name}


def read(path: Path) -> bytes | None:
    """What `write` wrote; None if it is not there, not whole, or not to be trusted, which is told."""
    data, problem = _look(path)
    if data is None and problem not in ("", DAMAGED):
        tell_once("read", f"{path} {problem}: not loaded")
    return data


def problem_of(path: Path) -> str:
    """Why a file that is there is not loaded; empty if it is, or if there is none."""
    return _look(path)[1]


def _look(path: Path) -> tuple[bytes | None, str]:
    try:
        with open(path, "rb") as file:
            if reason := distrust(os.fstat(file.fileno())):
                return None, reason
            data = file.read()
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"cannot be read ({(error.strerror or str(error)).lower()})"
    body, end = data[: -len(_END) - _SUM], data[-len(_END) - _SUM :]
    return (body, "") if end == _end(body) else (None, DAMAGED)


def write(path: Path, data: bytes) -> None:
    """Another process sees the file whole or not at all; OSError if it cannot be written."""
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
