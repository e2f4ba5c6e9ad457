"""The cache folder for the compiled kernels of a source folder: the first that the user can write to and others cannot.

Candidates, as with Numba: NUMBA_CACHE_DIR, __pycache__ beside the sources, the user's cache. If none can be written,
kernels are loaded from the first readable one.
"""

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from numba.misc.appdirs import AppDirs

from . import trust

VARIABLE = "NUMBA_CACHE_DIR"
ADVICE = f"{VARIABLE} to a folder that you can write and other users cannot"
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class CacheFolder:
    """folder: None if there is none. writable: whether kernels are saved. refused: folders not trusted, with the reason."""

    folder: Path | None
    writable: bool
    refused: tuple[str, ...]


def find_cache_folder(sources: Path) -> CacheFolder:
    """The cache folder for the kernels of `sources` in the current environment; creates it if possible."""
    refused: list[str] = []
    readable: Path | None = None
    for folder in _candidates(sources):
        try:
            folder.mkdir(0o755, parents=True, exist_ok=True)
        except OSError:
            pass
        try:
            reason = trust.distrust(os.stat(folder))
        except OSError:
            continue
        if reason:
            refused.append(f"{folder} {reason}")
        elif os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return CacheFolder(folder, True, tuple(refused))
        elif readable is None and os.access(folder, os.R_OK | os.X_OK):
            readable = folder
    return CacheFolder(readable, False, tuple(refused))


def _candidates(sources: Path) -> list[Path]:
    """Folders in order of preference, under Numba's names, from the resolved path of the sources."""
    sources = sources.resolve()
    name = f"{sources.name}_{hashlib.sha1(str(sources).encode()).hexdigest()}"
    configured, users = os.environ.get(VARIABLE), Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    found = [Path(configured).absolute() / name] if configured else []
    return [*found, sources / "__pycache__", *([users / name] if users.is_absolute() else [])]  # relative: no home folder


@cache
def cache_folder(sources: Path) -> CacheFolder:
    """`find_cache_folder`, cached for each folder; refused folders are reported."""
    found = find_cache_folder(sources)
    if found.refused:
        instead = f"kept in {found.folder}" if found.writable else f"compiled by every process: set {ADVICE}"
        trust.warn_once("place", f"{found.refused[0]}: no compiled kernels are loaded from there; they are {instead}")
    return found


@cache
def stamp(sources: Path) -> Stamp:
    """What compiled kernels of a folder depend on: (name, mtime in ns, bytes) of the files of it, jit/ and standard/, and of
    the folders in them.
    """
    root = Path(__file__).resolve().parent.parent
    folders = {sources.resolve(), root / "jit", root / "standard"}
    files = {file for folder in folders for pattern in ("*.py", "*/*.py") for file in folder.glob(pattern)}
    return tuple(sorted((f"{file.parent.name}/{file.name}", file.stat().st_mtime_ns, file.stat().st_size) for file in files))
