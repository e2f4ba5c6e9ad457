"""What a compiled kernel depends on: the sources that its file imports, directly or not, and the compiler's in jit/."""

import hashlib
import os
import re
import time
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
# Anywhere, since a look at the beginning of each line takes longer; an import in a comment adds a file, no more
_IMPORT = re.compile(rb"from[ \t]+(\.+)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)")


@cache
def stamp(file: Path) -> str:
    """SHA-256 over the contents of a source and of all that it imports by relative imports, and of jit/.

    Kernels have no other way to their callees and constants. Times and places of the files do not matter, so that compiled
    kernels can be copied to another installation of the same sources.
    """
    root = os.path.dirname(str(_folder())) + os.sep
    lines = sorted(f"{_name(path, root)} {_read(path)[0]}" for path in _imported_files(file))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def changed(file: Path, since: float) -> bool:
    """Whether one of these sources has changed since a time, of time.time(), at which the code was imported.

    A change in the future, by another clock, does not count.
    """
    return any(since < _read(path)[2] <= time.time() for path in _imported_files(file))


@cache
def _imported_files(file: Path) -> frozenset[str]:
    """Paths of the sources of `stamp`."""
    folder = str(_folder())
    pending = [str(file.resolve()), *(os.path.join(folder, name) for name in _entries(folder) if name.endswith(".py"))]
    files: set[str] = set()
    while pending:
        path = pending.pop()
        if path not in files:
            files.add(path)
            pending += _read(path)[1]
    return frozenset(files)


def _folder() -> Path:
    return _FOLDER


def _name(path: str, root: str) -> str:
    return path[len(root) :].replace(os.sep, "/") if path.startswith(root) else os.path.basename(path)


@cache
def _read(path: str) -> tuple[str, list[str], float]:
    """(SHA-256 of a source, the sources of its relative imports, the time of its last change).

    Paths are text: pathlib's take 8 ms of each start.
    """
    with open(path, "rb") as file:
        data, status = file.read(), os.fstat(file.fileno())
    folder = os.path.dirname(path)
    imports = [source for words in _IMPORT.findall(data) for source in _imported(folder, *words)]
    # of the entry in the folder too, where the system knows it: an installer may keep the time of the contents
    return hashlib.sha256(data).hexdigest(), imports, status.st_mtime if os.name == "nt" else status.st_ctime


@cache
def _imported(folder: str, dots: bytes, module: bytes, names: bytes) -> list[str]:
    """The files of `from {dots}{module} import {names}` in a file of a folder: a module, or modules of a folder."""
    for _ in dots[1:]:
        folder = os.path.dirname(folder)
    module_path = os.path.join(folder, *filter(None, module.decode().split(".")))
    parent, name = os.path.split(module_path)
    beside = _entries(parent)
    below = _entries(module_path) if name in beside else frozenset()
    paths = [f"{module_path}.py"] if f"{name}.py" in beside else []
    wanted = ("__init__.py", *(f"{name}.py" for name in re.findall(r"\w+", names.decode(errors="replace")))) if below else ()
    return paths + [os.path.join(module_path, name) for name in wanted if name in below]


@cache
def _entries(folder: str) -> frozenset[str]:
    """Names of the files and folders in a folder, listed once: a look at each file that may exist takes longer."""
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()
