"""Kernels from Numba's cache on disk, without what only its compiler needs.

Numba's own way fills the tables of all functions that compiled code may call, with SciPy's among them, and parses each
kernel's intermediate code for callers that might be compiled against it: most of the time until the first picture. And it
fails where a file is damaged or cannot be written, and loads what other users may have written (kept.py).
"""

import itertools
import os
import pickle
import sys
import weakref
from pathlib import Path
from typing import ClassVar

import numba
from llvmlite import binding
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from . import kept
from .place import ADVICE, Stamp, find_place, place, stamp

_ENDING = f".py{sys.version_info[0]}{sys.version_info[1]}"  # of Numba's names


class _LoadedLibrary(JITCodeLibrary):
    """The machine code of a kernel. Its intermediate code is parsed when something is compiled against it."""

    unparsed: bytes | None = None

    def _get_module_for_linking(self):
        if self.unparsed is not None:
            self._shared_module = binding.parse_bitcode(self.unparsed)
            self._codegen._engine._load_defined_symbols(self._shared_module)
            self.unparsed = None
        return super()._get_module_for_linking()


def _load(codegen, state, names):
    """JITCodeLibrary._unserialize; names: functions in the library to be called from outside."""
    name, kind, data = state
    if kind != "object":
        return codegen.unserialize_library(state)
    library = codegen.create_library(name)
    library.__class__ = _LoadedLibrary
    library.enable_object_caching()
    library._set_compiled_object(data[0])
    library.unparsed = data[1]
    library._finalize_final_module()
    codegen._engine._defined_symbols |= names
    return library


class _Locator(_CacheLocator):
    """Numba asks it where the kernels of a function are kept."""

    def __init__(self, function, file):
        self._py_file, self._line = file, function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func, py_file):
        """Numba's way to make one."""
        return cls(py_func, py_file)

    def ensure_cache_path(self):
        """It is there."""

    def get_cache_path(self):
        """The folder."""
        return str(place(Path(self._py_file).parent).folder)

    def get_source_stamp(self):
        """Numba's own looks at a kernel's own file alone, and would go on with callees that have changed since."""
        return stamp(Path(self._py_file).parent)

    def get_disambiguator(self):
        """Of functions of the same name."""
        return str(self._line)


class _Results(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012  Numba asks the class

    def rebuild(self, target_context, payload):
        """CompileResult._rebuild, which see for the payload."""
        state, about, environment, signature, objectmode, lifted, annotation, reload_init, environments = payload
        for function in reload_init:
            function()
        library = _load(target_context.codegen(), state, {about.llvm_cpython_wrapper_name})
        entry_point = target_context.get_executable(library, about, environment)
        for other in environments:
            library.codegen.set_env(other.env_name, other)
        return CompileResult(
            target_context=target_context, typing_context=target_context.typing_context, library=library,
            environment=environment, entry_point=entry_point, fndesc=about, type_annotation=annotation,
            signature=signature, objectmode=objectmode, lifted=lifted, typing_error=None, call_helper=None,
            metadata=None, reload_init=reload_init, referenced_envs=environments,
        )  # fmt: skip


class KernelFiles:
    """The versions of a kernel, a file each, and an index of them by their keys; `base`: folder and name without endings."""

    def __init__(self, base: str, fresh: Stamp) -> None:
        self._base, self._made = base, (numba.__version__, fresh)
        self.index = Path(f"{base}.nbi")

    def versions(self):
        """{key: name of its file}; none that were made from other sources or by another Numba, or of a damaged index."""
        found = _unpickled(kept.read(self.index))
        return found[1] if found is not None and found[0] == self._made else {}

    def load(self, key):
        """What was saved, None if it is not there or damaged."""
        name = self.versions().get(key)
        found = _unpickled(kept.read(self.index.with_name(name))) if name is not None else None
        # Another, where two processes wrote at once or one ended between its files: of another key, or of older sources.
        return found[1] if found is not None and found[0] == (self._made, key) else None

    def save(self, key, payload):
        """OSError if it cannot be written."""
        versions = self.versions()
        if key not in versions:
            taken = set(versions.values())
            names = (f"{os.path.basename(self._base)}.{number}.nbc" for number in itertools.count(1))
            versions[key] = next(name for name in names if name not in taken)
            kept.write(self.index, dumps((self._made, versions)))
        kept.write(self.index.with_name(versions[key]), dumps(((self._made, key), payload)))

    def flush(self):
        """Forget all versions."""
        kept.write(self.index, dumps((self._made, {})))

    def problems(self) -> list[str]:
        """Which files are there and not loaded, and why."""
        paths = [self.index, *(self.index.with_name(name) for name in self.versions().values())]
        return [f"{path} {problem}" for path in paths if (problem := kept.problem_of(path))]


def _unpickled(data):
    """None for what cannot be: written by another Numba or NumPy, since it is whole."""
    try:
        return None if data is None else pickle.loads(data)
    except MemoryError:
        raise
    except Exception:
        return None


class KernelCache(FunctionCache):
    """Numba's cache of a function: the same names and keys."""

    _impl_class = _Results
    _all: ClassVar[weakref.WeakSet] = weakref.WeakSet()

    def __init__(self, py_func):
        super().__init__(py_func)
        self._place = place(Path(py_func.__code__.co_filename).parent)
        base = os.path.join(self._cache_path, self._impl.filename_base)
        self._cache_file = KernelFiles(base, self._impl.locator.get_source_stamp())
        if self._place.folder is None:
            self.disable()
        else:
            KernelCache._all.add(self)

    def load_overload(self, sig, target_context):
        """Numba's, but of target_context.refresh() only what allocates memory; the compiler does it whole when called."""
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except MemoryError:
            raise
        except Exception:  # made by another version of a library: it is compiled again, and replaced
            return None

    def save_overload(self, sig, data):
        """The compiled kernel is in memory: the work goes on where it cannot be kept."""
        try:
            if self._place.writable:
                self._save_overload(sig, data)
                return
            problem = f"{self._place.folder} cannot be written" if self._place.folder else "there is no folder for them"
        except OSError as error:
            problem = f"{self._cache_path}: {(error.strerror or str(error)).lower()}"
        kept.tell_once("write", f"compiled kernels cannot be kept ({problem}), so every process compiles them again: "
                                f"set {ADVICE}")  # fmt: skip

    @classmethod
    def problems(cls) -> list[str]:
        """Files of all kernels that were imported which are there and not loaded, and why."""
        return sorted(problem for kernel in cls._all for problem in kernel._cache_file.problems())


def whole_modules(sources: Path) -> set[str]:
    """Files of a folder, without ending, of which compiled kernels are kept, as the sources are now, and whole."""
    folder = find_place(sources).folder
    whole: set[str] = set()
    broken: set[str] = set()
    try:
        names = os.listdir(folder) if folder is not None else []
    except OSError:
        names = []
    for name in names:  # FILE.KERNEL-LINE.VERSION.nbi
        if folder is not None and name.endswith(f"{_ENDING}.nbi"):
            files = KernelFiles(str(folder / name[: -len(".nbi")]), stamp(sources))
            codes = [kept.read(folder / version) for version in files.versions().values()]
            if codes:
                (broken if None in codes else whole).add(name.partition(".")[0])
    return whole - broken
