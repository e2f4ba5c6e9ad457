"""Standard streams that may be closed or non-blocking: a closed log stream neither ends the program nor changes its exit
code.
"""

import errno
import io
import os
import re
import select
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from .uninterrupted import check_of_file

NONE, ERROR, WARNING, INFO, DEBUG = range(-1, 4)  # levels of messages, with x264's numbers
MESSAGE_LEVELS = {"none": NONE, "error": ERROR, "warning": WARNING, "info": INFO, "debug": DEBUG}
_most = DEBUG  # the level of lines that are printed still


@contextmanager
def levels_up_to(level: int) -> Iterator[None]:
    """Meanwhile `print_line` leaves out lines of higher levels; after NONE all."""
    global _most
    before, _most = _most, min(_most, level)
    try:
        yield
    finally:
        _most = before


def print_line(text: str, end: str = "\n", level: int = ERROR) -> bool:
    """Write to standard error and flush; False if that fails. Unprintable characters of a line are escaped; on a terminal a
    long line is divided between words. level: see `levels_up_to`.
    """
    return level > _most or write(sys.stderr, (folded(one_line(text), sys.stderr) if end == "\n" else text) + end)


def folded(text: str, stream: TextIO) -> str:
    """Text for a stream: on a terminal lines that are longer than it is wide go on below, indented; names are not divided."""
    try:
        columns = shutil.get_terminal_size().columns if stream.isatty() else 0
    except ValueError:  # closed
        columns = 0
    if not columns or len(text) <= columns:
        return text
    return "\n".join(_lines(line, columns) for line in text.split("\n"))


def _lines(line: str, columns: int) -> str:
    label = re.match(r"\s*\S+:  +", line)  # of the tables of `doctor` and `info`: what follows stays in its column
    indent = " " * min(len(label[0]) if label else 2, columns // 2)
    out = [""]
    for word in re.findall(r"\s*\S+", line):
        if len(out[-1]) + len(word) > columns and out[-1].strip():
            out.append(indent + word.lstrip())
        else:
            out[-1] += word
    return "\n".join(out)


def one_line(text: str) -> str:
    """Text with unprintable characters escaped: file names may hold line feeds and control characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def write(stream: TextIO, text: str) -> bool:
    """Write to a text stream and flush; a stream that fails is redirected to the null device, and the result is False."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        silence(stream)
        return False
    return True


def silence(stream: TextIO) -> None:
    """Redirect a stream to the null device, with its buffered text: else Python exits with code 120."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    except OSError:  # the stream has no descriptor
        pass
    finally:
        os.close(nowhere)


def open_missing() -> None:
    """Open the null device for standard streams that were closed at the start: else other files get their descriptors."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, `number`
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")


class Waiting(io.FileIO):
    """A binary file whose reads and writes block even if its descriptor is non-blocking: pipes and terminals become
    non-blocking when one of the processes that share them sets it. `called`: its name in errors.
    """

    def __init__(self, file: str | int, mode: str, called: str) -> None:
        super().__init__(file, mode, closefd=not isinstance(file, int))
        self.called = called

    def readinto(self, buffer: Any) -> int:
        """See io.FileIO; 0 is the end."""
        try:
            while (got := super().readinto(buffer)) is None:
                wait_for(self.fileno(), select.POLLIN)
        except OSError as error:
            check_of_file(error)
            raise OSError(error.errno, error.strerror, self.called) from None
        return got

    def write(self, data: Any) -> int:
        """See io.FileIO; writes at least one byte."""
        while (put := super().write(data)) is None:
            wait_for(self.fileno(), select.POLLOUT)
        return put


def wait_for(number: int, event: int) -> None:
    """Wait until descriptor `number` can be read (select.POLLIN) or written (POLLOUT); signal handlers run meanwhile."""
    poll = select.poll()
    poll.register(number, event)
    poll.poll()


def let_text_wait() -> None:
    """Make non-blocking standard output and error block on writes: else lines are lost."""
    blocking = getattr(os, "get_blocking", lambda number: True)  # absent on Windows, where descriptors block
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not blocking(stream.fileno()):
            bytes_out = io.BufferedWriter(Waiting(stream.fileno(), "wb", name))
            text = io.TextIOWrapper(bytes_out, stream.encoding, stream.errors, line_buffering=stream.line_buffering)
            setattr(sys, name, text)


def standard_input() -> io.BufferedReader:
    """Standard input as bytes, blocking; OSError if it was closed at the start."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "closed", "standard input")
    return io.BufferedReader(Waiting(sys.stdin.fileno(), "rb", "standard input"))
