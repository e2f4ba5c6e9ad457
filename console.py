"""Standard streams, that may be closed: a log that nobody reads does not end the work, and does not change the exit code."""

import errno
import os
import sys
from typing import BinaryIO, TextIO


def say(text: str, end: str = "\n") -> bool:
    """Write a line to standard error at once; whether somebody may read it."""
    return write(sys.stderr, text + end)


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


def standard(mode: str) -> BinaryIO:
    """Standard input ("rb") or output ("wb") as bytes; OSError if it was closed before the start."""
    stream, name = (sys.stdin, "standard input") if mode == "rb" else (sys.stdout, "standard output")
    if stream is None:
        raise OSError(errno.EBADF, "closed", name)
    return stream.buffer
