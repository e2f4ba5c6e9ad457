"""Where this machine's tuning file lies: what an encode without such a file has to know."""

import os
from pathlib import Path

from ....jit.cache_root import cache_root


class TuningError(Exception):
    """A tuning file cannot be used. foreign: it is valid, but of another machine or version."""

    def __init__(self, text: str, foreign: bool = False) -> None:
        super().__init__(text)
        self.foreign = foreign


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_file() -> Path:
    """The user's own tuning file, in `cache_root`; TuningError for a user without a home folder."""
    root = cache_root()
    if root is None:
        raise TuningError("no home folder for the tuning file: set HOME or H264LITE_CACHE")
    return root / "tuning.toml"


def may_exist(path: Path) -> bool:
    """Whether the file exists, or cannot be looked up: then reading it gives the error."""
    try:
        return path.exists()
    except OSError:
        return True
