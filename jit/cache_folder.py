"""The cache folders for the compiled kernels of a source folder: kernels are read from each that no other user can write
to, and saved in the first of them that this user can write to.

Candidates: H264LITE_CACHE; NUMBA_CACHE_DIR; the user's cache, which all installations share; __pycache__ beside the sources;
if none of these can be written, a temporary folder.
"""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..version import __version__
from . import cache_checks
from .cache_root import ADVICE, ALONE, VARIABLE, cache_root, temporary_root
from .numba_version import import_numba, is_possible, numba_version

NUMBAS_VARIABLE = "NUMBA_CACHE_DIR"
_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class CacheFolder:
    """folder: where kernels are saved if `writable`, else the first that is read; None if there is none. refused: folders
    not trusted, with the reason. readable: all folders that kernels are read from, in order.
    """

    folder: Path | None
    writable: bool
    refused: tuple[str, ...]
    readable: tuple[Path, ...] = ()


def find_cache_folder(sources: Path) -> CacheFolder:
    """The cache folders for the kernels of `sources` in the current environment; creates those before the writable one."""
    refused: list[str] = []
    readable: list[Path] = []
    chosen: Path | None = None
    for candidates in (_candidates, _temporary):
        for folder in candidates(sources.resolve()) if chosen is None else ():
            if chosen is None:
                with suppress(OSError):
                    folder.mkdir(0o755, parents=True, exist_ok=True)
            try:
                reason = cache_checks.distrust(os.stat(folder))
            except OSError:
                continue
            if not reason and os.access(folder, os.R_OK | os.X_OK):
                readable.append(folder)
                if chosen is None and os.access(folder, os.W_OK):
                    chosen = folder
            elif reason and chosen is None:
                refused.append(f"{folder} {reason}")
    return CacheFolder(chosen or next(iter(readable), None), chosen is not None, tuple(refused), tuple(readable))


def _candidates(sources: Path) -> list[Path]:
    """Folders in order of preference, without the temporary one."""
    numbas, beside, root = os.environ.get(NUMBAS_VARIABLE), sources / "__pycache__", cache_root()
    first = [Path(numbas).absolute() / _hashed(sources)] if numbas else []
    if _is_numbas():  # then Numba chooses
        import_numba()
        from numba.misc.appdirs import AppDirs

        users = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
        return [*first, beside, *([users / _hashed(sources)] if users.is_absolute() else [])]
    if root is not None and os.environ.get(ALONE) == "1":
        return [root / _shared(sources)]
    if root is not None and os.environ.get(VARIABLE):
        first.insert(0, root / _shared(sources))
        root = cache_root(of_user=True)
    return [*first, *([] if root is None else [root / _shared(sources)]), beside]


def _is_numbas() -> bool:
    """Whether kernels are kept in Numba's own cache; judged by its version as long as it is not imported."""
    if "numba" not in sys.modules or not is_possible():
        return not is_possible()
    from .interfaces import why_ordinary

    return bool(why_ordinary())


def _temporary(sources: Path) -> list[Path]:
    root = None if _is_numbas() or os.environ.get(ALONE) == "1" else temporary_root()
    return [] if root is None else [root / _shared(sources)]


def _hashed(sources: Path) -> str:
    """Numba's name for the cache folder of a source folder."""
    import hashlib

    return f"{sources.name}_{hashlib.sha1(str(sources).encode()).hexdigest()}"


def _shared(sources: Path) -> Path:
    """The name in a cache of several installations: the same wherever this package is installed."""
    name = ".".join(sources.relative_to(_ROOT).parts) if sources.is_relative_to(_ROOT) else _hashed(sources)
    return Path("kernels", f"{__version__}-numba-{numba_version()}", name)


@cache
def cache_folder(sources: Path) -> CacheFolder:
    """`find_cache_folder`, cached for each folder; refused folders are reported."""
    choice = find_cache_folder(sources)
    if choice.refused:
        instead = f"kept in {choice.folder}" if choice.writable else f"compiled by every process: set {ADVICE}"
        text = f"{choice.refused[0]}: no compiled kernels are loaded from there; they are {instead}"
        cache_checks.warn_once("folder", text)
    return choice


def second_best(choice: CacheFolder) -> str:
    """A sentence about a folder for kernels that is not the one that the user named, or is temporary; else empty."""
    if not choice.writable or choice.folder is None or choice.refused:
        return ""
    variable = next((name for name in (VARIABLE, NUMBAS_VARIABLE) if os.environ.get(name)), "")
    if variable and not choice.folder.is_relative_to(Path(os.environ[variable]).absolute()):
        return f"{variable}={os.environ[variable]} cannot be written; kernels are kept in {choice.folder}"
    if not variable and choice.folder.is_relative_to(temporary_root() or Path("/nowhere")):
        return f"compiled kernels are kept in {choice.folder}, since no other folder can be written: set {ADVICE}"
    return ""
