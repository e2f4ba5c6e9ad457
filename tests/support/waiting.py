"""Waits for what another thread or process does."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Until the condition holds; AssertionError if that takes longer."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, "waited in vain"
        time.sleep(0.01)


def wait_for_bytes(path: Path, count: int, process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    """Until the file has more than so many bytes; AssertionError if the process that writes it ends before."""

    def has_them() -> bool:
        assert process.poll() is None, "it has ended"
        return path.exists() and path.stat().st_size > count

    wait_for(has_them, seconds)
