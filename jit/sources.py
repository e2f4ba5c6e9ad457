"""What a compiled kernel depends on: the sources that its file imports, directly or not, and the compiler's in jit/."""

import hashlib
import os
import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_IMPORT = re.compile(r"^[ \t]*from[ \t]+(\.+)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)", re.MULTILINE)


@cache
def stamp(file: Path) -> str:
    """SHA-256 over the contents of a source and of all that it imports by relative imports, and of jit/.

    Kernels have no other way to their callees and constants. Times and places of the files do not matter, so that compiled
    kernels can be copied to another installation of the same sources.
    """
    pending, found = [file.resolve(), *_folder().glob("*.py")], set()
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            pending += _read(path)[1]
    lines = sorted(f"{_name(path)} {_read(path)[0]}" for path in found)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _folder() -> Path:
    return _FOLDER


def _name(path: Path) -> str:
    root = _folder().parent
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


@cache
def _read(path: Path) -> tuple[str, list[Path]]:
    """(SHA-256 of a source, the sources of its relative imports)."""
    data = path.read_bytes()
    imports = _IMPORT.findall(data.decode(errors="replace"))
    return hashlib.sha256(data).hexdigest(), [found for words in imports for found in _imported(path, *words)]


def _imported(path: Path, dots: str, module: str, names: str) -> list[Path]:
    """The files of `from {dots}{module} import {names}`: a module, or modules of a folder."""
    place = path.parents[len(dots) - 1].joinpath(*module.split("."))
    beside = _entries(place.parent)
    below = _entries(place) if place.name in beside else frozenset()
    found = [place.with_suffix(".py")] if f"{place.name}.py" in beside else []
    wanted = ("__init__.py", *(f"{name}.py" for name in re.findall(r"\w+", names))) if below else ()
    return found + [place / name for name in wanted if name in below]


@cache
def _entries(folder: Path) -> frozenset[str]:
    """Names of the files and folders in a folder, listed once: a look at each file that may exist takes longer."""
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()
