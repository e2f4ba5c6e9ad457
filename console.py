"""What is said on standard error: a log that nobody reads does not end the work, and does not change the exit code."""

import os
import sys
from typing import TextIO


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
    """If standard error was closed before the start, take one that leads nowhere: a file would get its number, 2."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
