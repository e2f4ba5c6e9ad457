"""Standard streams, that may be closed or non-blocking: a log that nobody reads does not end the work, and does not change
the exit code.
"""

import errno
import io
import os
import select
import sys
from typing import Any, TextIO


def say(text: str, end: str = "\n") -> bool:
    """Write a line to standard error at once; whether somebody may read it. What is no line (`end`) is written as it is."""
    return write(sys.stderr, (one_line(text) if end == "\n" else text) + end)


def one_line(text: str) -> str:
    """Text with escapes for what cannot be printed: names of files may hold line feeds and control characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def write(stream: TextIO, text: str) -> bool:
    """The same to any stream of text; one that is closed at its other end goes nowhere from then on."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        silence(stream)
        return False
    return True


def silence(stream: TextIO) -> None:
    """Let what is still buffered, and what follows, go nowhere: else Python ends with code 120 over it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    except OSError:  # no file behind it
        pass
    finally:
        os.close(nowhere)


def open_missing() -> None:
    """What leads nowhere for standard streams that were closed before the start: files would get their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the least number that is free, this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")


class Waiting(io.FileIO):
    """A file of bytes that waits where a non-blocking one says that nothing has come yet, or that nothing fits: pipes and
    terminals are non-blocking as soon as one of the processes that share them wants it. `called`: its name in errors.
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
            raise OSError(error.errno, error.strerror, self.called) from None
        return got

    def write(self, data: Any) -> int:
        """See io.FileIO; at least one byte."""
        while (put := super().write(data)) is None:
            wait_for(self.fileno(), select.POLLOUT)
        return put


def wait_for(number: int, event: int) -> None:
    """Until descriptor `number` can be read (select.POLLIN) or written (POLLOUT); handlers of signals run meanwhile."""
    poll = select.poll()
    poll.register(number, event)
    poll.poll()


def let_text_wait() -> None:
    """Standard output and error wait where they are non-blocking: else lines are lost."""
    blocking = getattr(os, "get_blocking", lambda number: True)  # Windows has no other
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not blocking(stream.fileno()):
            bytes_out = io.BufferedWriter(Waiting(stream.fileno(), "wb", name))
            text = io.TextIOWrapper(bytes_out, stream.encoding, stream.errors, line_buffering=stream.line_buffering)
            setattr(sys, name, text)


def standard_input() -> io.BufferedReader:
    """Standard input as bytes, which waits; OSError if it was closed before the start."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "closed", "standard input")
    return io.BufferedReader(Waiting(sys.stdin.fileno(), "rb", "standard input"))
