"""The files of compiled kernels on disk: one index a kernel, one file a version; which kernels have theirs."""

import errno
import itertools
import os
import pickle
import sys
from collections.abc import Collection, Container, Iterator
from pathlib import Path
from typing import Any

from . import cache_checks, numba_free
from .cache_folder import find_cache_folder
from .numba_version import import_numba, numba_version
from .sources import stamp

_CHANGE_CODE = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")  # settings of Numba


def code_key(codegen: Any) -> tuple[Any, ...]:
    """What the code of all kernels depends on: processor, and settings of Numba and of cpu_simd/simd/vector.py."""
    from numba import config

    settings = (str(getattr(config, name, None)) for name in _CHANGE_CODE)
    return (codegen.magic_tuple(), os.environ.get("H264LITE_SIMD", ""), *settings)


class KernelFiles:
    """The files of a kernel: one for each version, and an index by key. `base`: folder and name without endings."""

    def __init__(self, base: str, fresh: str) -> None:
        self._base, self._made = base, (numba_version(), fresh)
        self.index = Path(f"{base}.nbi")

    def versions(self):
        """{key: file name}; empty if the index is damaged or belongs to other sources or another version of Numba."""
        index = _unpickled(cache_checks.read(self.index))
        return index[1] if index is not None and index[0] == self._made else {}

    def load(self, key):
        """The saved payload, None if it is missing or damaged."""
        name = self.versions().get(key)
        payload = _unpickled(cache_checks.read(self.index.with_name(name))) if name is not None else None
        # The file may hold another key or older sources if two processes wrote at once or one ended between two files.
        return payload[1] if payload is not None and payload[0] == (self._made, key) else None

    def save(self, key, payload):
        """Saves a payload under its key; OSError if it cannot be written."""
        versions = self.versions()
        if key not in versions:
            taken = set(versions.values())
            names = (f"{os.path.basename(self._base)}.{number}.nbc" for number in itertools.count(1))
            versions[key] = next(name for name in names if name not in taken)
            cache_checks.write(self.index, _dumps((self._made, versions)))
        cache_checks.write(self.index.with_name(versions[key]), _dumps(((self._made, key), payload)))

    def flush(self):
        """Empties the index."""
        cache_checks.write(self.index, _dumps((self._made, {})))

    def problems(self) -> list[str]:
        """Files that exist and are not loaded, each with the reason."""
        paths = [self.index, *(self.index.with_name(name) for name in self.versions().values())]
        return [f"{path} {problem}" for path in paths if (problem := cache_checks.problem_of(path))]


class Layers:
    """The files of a kernel in several folders: loaded from the first that has them, saved in `writable`."""

    def __init__(self, readable: list[KernelFiles], writable: KernelFiles | None) -> None:
        self._readable, self._writable = readable, writable

    def load(self, key):
        """See KernelFiles."""
        return next((found for files in self._readable if (found := files.load(key)) is not None), None)

    def save(self, key, payload):
        """See KernelFiles; OSError without a writable folder."""
        if self._writable is None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        self._writable.save(key, payload)

    def flush(self):
        """Empties the index of the writable folder."""
        if self._writable is not None:
            self._writable.flush()

    def problems(self) -> list[str]:
        """See KernelFiles."""
        return [problem for files in self._readable for problem in files.problems()]


def _dumps(value: Any) -> bytes:
    """Numba's pickle, which knows functions; only kernels of cache.py are saved."""
    import_numba()
    from numba.core.serialize import dumps

    return dumps(value)


def _unpickled(data):
    """The object, or None if unpickling fails: the file is intact, but from another version of Numba or NumPy."""
    try:
        return None if data is None else pickle.loads(data)
    except MemoryError:
        raise
    except Exception:
        return None


def cached_modules(sources: Path, wanted: Collection[str]) -> set[str]:
    """Those of the `wanted` source files of a folder that have compiled kernels for this processor, all intact and fresh.

    Files are named without ending.
    """
    folders = find_cache_folder(sources).readable
    if "numba" not in sys.modules and (ready := numba_free.modules(sources, folders, wanted)) >= set(wanted):
        return ready
    entries = [entry for folder in folders for entry in _found_in(folder, sources, wanted)]
    intact = {kernel for kernel, usable in entries if usable}
    broken = {kernel for kernel, _ in entries} - intact
    return {_module(kernel) for kernel in intact} - {_module(kernel) for kernel in broken}


def _module(kernel: str) -> str:
    return kernel.partition(".")[0]


def _found_in(folder: Path, sources: Path, wanted: Container[str]) -> Iterator[tuple[str, bool]]:
    """(FILE.FUNCTION of each kernel of `wanted` files with up-to-date files, whether they can be loaded here)."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    import_numba()
    from numba.core.registry import cpu_target

    from .interfaces import why_ordinary

    here = None if why_ordinary() else code_key(cpu_target.target_context.codegen())
    for name in names:  # FILE.KERNEL-LINE.VERSION.nbi
        kernel = name.rpartition("-")[0]
        if not name.endswith(f"{numba_free.ENDING}.nbi") or _module(kernel) not in wanted:
            continue
        path, source = folder / name, sources / f"{_module(kernel)}.py"
        if not source.is_file():
            continue
        if here is None:  # Numba checks its files itself; those of this class look damaged to it, and reverse
            if cache_checks.problem_of(path) == cache_checks.DAMAGED:
                yield kernel, True
        elif versions := KernelFiles(str(path)[: -len(".nbi")], stamp(source)).versions():
            codes = [cache_checks.read(path.with_name(code)) for key, code in versions.items() if key[0] == here]
            yield kernel, bool(codes) and None not in codes
