"""The files of compiled kernels on disk: one index a kernel, one file a version; which source files have theirs."""

import itertools
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numba

from . import trust
from .cache_folder import Stamp, find_cache_folder, stamp
from .interfaces import why_ordinary

_ENDING = f".py{sys.version_info[0]}{sys.version_info[1]}"  # part of Numba's file names


class KernelFiles:
    """The files of a kernel: one for each version, and an index by key. `base`: folder and name without endings."""

    def __init__(self, base: str, fresh: Stamp) -> None:
        self._base, self._made = base, (numba.__version__, fresh)
        self.index = Path(f"{base}.nbi")

    def versions(self):
        """{key: file name}; empty if the index is damaged or belongs to other sources or another version of Numba."""
        found = _unpickled(trust.read(self.index))
        return found[1] if found is not None and found[0] == self._made else {}

    def load(self, key):
        """The saved payload, None if it is missing or damaged."""
        name = self.versions().get(key)
        found = _unpickled(trust.read(self.index.with_name(name))) if name is not None else None
        # The file may hold another key or older sources if two processes wrote at once or one ended between two files.
        return found[1] if found is not None and found[0] == (self._made, key) else None

    def save(self, key, payload):
        """Saves a payload under its key; OSError if it cannot be written."""
        versions = self.versions()
        if key not in versions:
            taken = set(versions.values())
            names = (f"{os.path.basename(self._base)}.{number}.nbc" for number in itertools.count(1))
            versions[key] = next(name for name in names if name not in taken)
            trust.write(self.index, _dumps((self._made, versions)))
        trust.write(self.index.with_name(versions[key]), _dumps(((self._made, key), payload)))

    def flush(self):
        """Empties the index."""
        trust.write(self.index, _dumps((self._made, {})))

    def problems(self) -> list[str]:
        """Files that exist and are not loaded, each with the reason."""
        paths = [self.index, *(self.index.with_name(name) for name in self.versions().values())]
        return [f"{path} {problem}" for path in paths if (problem := trust.problem_of(path))]


def _dumps(found: Any) -> bytes:
    """Numba's pickle, which knows functions; only kernels of cache.py are saved."""
    from numba.core.serialize import dumps

    return dumps(found)


def _unpickled(data):
    """The object, or None if unpickling fails: the file is intact, but from another version of Numba or NumPy."""
    try:
        return None if data is None else pickle.loads(data)
    except MemoryError:
        raise
    except Exception:
        return None


def cached_modules(sources: Path) -> set[str]:
    """Source files of a folder, without ending, that have compiled kernels in the cache, all intact and up to date."""
    folder = find_cache_folder(sources).folder
    intact: set[str] = set()
    broken: set[str] = set()
    try:
        names = os.listdir(folder) if folder is not None else []
    except OSError:
        names = []
    for name in names:  # FILE.KERNEL-LINE.VERSION.nbi
        if folder is not None and name.endswith(f"{_ENDING}.nbi"):
            module = name.partition(".")[0]
            if why_ordinary():  # Numba checks its files itself; those of this class look damaged to it, and reverse
                intact |= {module} if trust.problem_of(folder / name) == trust.DAMAGED else set()
                continue
            files = KernelFiles(str(folder / name[: -len(".nbi")]), stamp(sources))
            codes = [trust.read(folder / version) for version in files.versions().values()]
            if codes:
                (broken if None in codes else intact).add(module)
    return intact - broken
