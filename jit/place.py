"""Where compiled kernels of a folder of sources are kept: the first place that the user may write to and other users may not.

As with Numba: NUMBA_CACHE_DIR, __pycache__ beside the sources, the user's cache. Where none of them can be written, kernels
are loaded from the first that can be read.
"""

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from numba.misc.appdirs import AppDirs

from . import kept

VARIABLE = "NUMBA_CACHE_DIR"
ADVICE = f"{VARIABLE} to a folder that you can write and other users cannot"
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Place:
    """folder: None if there is none. writable: whether kernels are kept there. refused: folders of other users, and why."""

    folder: Path | None
    writable: bool
    refused: tuple[str, ...]


def find_place(sources: Path) -> Place:
    """Of the kernels of a folder, as the environment is now."""
    refused: list[str] = []
    readable: Path | None = None
    for folder in _candidates(sources):
        try:
            folder.mkdir(0o755, parents=True, exist_ok=True)
        except OSError:
            pass
        try:
            reason = kept.distrust(os.stat(folder))
        except OSError:
            continue
        if reason:
            refused.append(f"{folder} {reason}")
        elif os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return Place(folder, True, tuple(refused))
        elif readable is None and os.access(folder, os.R_OK | os.X_OK):
            readable = folder
    return Place(readable, False, tuple(refused))


def _candidates(sources: Path) -> list[Path]:
    """Numba's names, whichever way leads to the sources."""
    sources = sources.resolve()
    name = f"{sources.name}_{hashlib.sha1(str(sources).encode()).hexdigest()}"
    given, users = os.environ.get(VARIABLE), Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    found = [Path(given).absolute() / name] if given else []
    return [*found, sources / "__pycache__", *([users / name] if users.is_absolute() else [])]  # else there is no home


@cache
def place(sources: Path) -> Place:
    """`find_place`, once; refused folders are told."""
    found = find_place(sources)
    if found.refused:
        instead = f"kept in {found.folder}" if found.writable else f"compiled by every process: set {ADVICE}"
        kept.tell_once("place", f"{found.refused[0]}: no compiled kernels are loaded from there; they are {instead}")
    return found


@cache
def stamp(sources: Path) -> Stamp:
    """What the compiled kernels of a folder depend on: times and sizes of its files and those of folders in it, of jit/ and
    of standard/.
    """
    root = Path(__file__).resolve().parent.parent
    folders = {sources.resolve(), root / "jit", root / "standard"}
    files = {file for folder in folders for pattern in ("*.py", "*/*.py") for file in folder.glob(pattern)}
    return tuple(sorted((f"{file.parent.name}/{file.name}", file.stat().st_mtime_ns, file.stat().st_size) for file in files))
