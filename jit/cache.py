"""Disk cache of compiled kernels; loads machine code without initialising Numba's compiler.

Numba's own cache registers all functions that compiled code may call, SciPy's included, and parses each kernel's LLVM
bitcode for callers that may be compiled later: most of the time until the first frame. It also fails on files that are
damaged or cannot be written, and loads files that other users may have written (cache_checks.py).
"""

import os
import weakref
from pathlib import Path
from typing import ClassVar

from llvmlite import binding
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.np.numpy_support import as_dtype

from . import IMPORTED, cache_checks, numba_free
from .cache_folder import cache_folder, second_best
from .cache_root import ADVICE
from .kernel_files import KernelFiles, Layers, code_key
from .parts import ClosedLibrary
from .sources import changed, stamp


class _LoadedLibrary(JITCodeLibrary):
    """The machine code of a kernel; its LLVM bitcode is parsed only when another kernel is compiled against it."""

    unparsed: bytes | None = None

    def _get_module_for_linking(self):
        if self.unparsed is not None:
            self._shared_module = binding.parse_bitcode(self.unparsed)
            self._codegen._engine._load_defined_symbols(self._shared_module)
            self.unparsed = None
        return super()._get_module_for_linking()


def _load(codegen, state, names):
    """Replaces JITCodeLibrary._unserialize. names: functions of the library that are called from outside."""
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
    """Numba's interface for the cache folder of a function's kernels."""

    def __init__(self, function, file):
        self._py_file, self._line = file, function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func, py_file):
        """Numba's constructor."""
        return cls(py_func, py_file)

    def ensure_cache_path(self):
        """Does nothing: `cache_folder` has created the folder."""

    def get_cache_path(self):
        """The folder."""
        return str(cache_folder(Path(self._py_file).parent).folder)

    def get_source_stamp(self):
        """Stamp of the source and its imports; Numba's own covers one file and misses changes of callees in other files."""
        return stamp(Path(self._py_file))

    def get_disambiguator(self):
        """Line number: distinguishes functions of the same name."""
        return str(self._line)


class _Results(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012  Numba asks the class

    def reduce(self, data):
        """CompileResult._reduce without what only takes time to load.

        That is environments of callees without constants, which no code reads, and the bitcode of closed kernels, which no
        other kernel is compiled against.
        """
        (name, kind, code), *payload, environments = data._reduce()
        if kind == "object" and isinstance(data.library, ClosedLibrary):
            code = (code[0], b"")
        return ((name, kind, code), *payload, tuple(other for other in environments if other.consts))

    def rebuild(self, target_context, payload):
        """Replaces CompileResult._rebuild, which defines the payload."""
        state, about, environment, signature, objectmode, lifted, annotation, reload_init, environments = payload
        for function in reload_init:
            function()
        library = _load(target_context.codegen(), state, {about.llvm_cpython_wrapper_name, about.llvm_func_name})
        entry_point = target_context.get_executable(library, about, environment)
        for other in environments:
            library.codegen.set_env(other.env_name, other)
        return CompileResult(
            target_context=target_context, typing_context=target_context.typing_context, library=library,
            environment=environment, entry_point=entry_point, fndesc=about, type_annotation=annotation,
            signature=signature, objectmode=objectmode, lifted=lifted, typing_error=None, call_helper=None,
            metadata=None, reload_init=reload_init, referenced_envs=environments,
        )  # fmt: skip


def _described(kind):
    """The kind of arguments of a type, as direct.describe has it; TypeError if it knows no such arguments."""
    if isinstance(kind, types.Array):
        return (as_dtype(kind.dtype).str, kind.ndim, kind.layout, kind.mutable, kind.aligned)
    if isinstance(kind, types.BaseNamedTuple):
        home = kind.instance_class
        return (f"{home.__module__}.{home.__qualname__}", *map(_described, kind.types))
    if isinstance(kind, types.BaseTuple):
        return ("builtins.tuple", *map(_described, kind.types))
    if isinstance(kind, types.Omitted):
        return numba_free.describe_default(kind.value)
    if isinstance(kind, types.NoneType):
        return "none"
    if isinstance(kind, (types.Boolean, types.Integer, types.Float)):
        return as_dtype(kind).str
    raise TypeError(kind)


def _save_direct(function, signature, data):
    """Keeps the code for processes without Numba, unless it needs what only Numba prepares."""
    library = data.library
    if data.reload_init:
        return
    environments = {data.fndesc.env_name: data.environment.consts}
    environments |= {other.env_name: other.consts for other in data._find_referenced_environments() if other.consts}
    try:
        described = [_described(kind) for kind in signature]
    except TypeError:
        return
    module = library._final_module
    needs = [found.name for found in (*module.functions, *module.global_variables) if found.is_declaration]
    numba_free.save(function, described, library._get_compiled_object(), data.fndesc.llvm_cpython_wrapper_name,
                environments, needs)  # fmt: skip


class KernelCache(FunctionCache):
    """Replaces Numba's cache of a function, with the same file names and keys."""

    _impl_class = _Results
    _all: ClassVar[weakref.WeakSet] = weakref.WeakSet()

    def __init__(self, py_func):
        super().__init__(py_func)
        self._folder = cache_folder(Path(py_func.__code__.co_filename).parent)
        name, fresh = self._impl.filename_base, self._impl.locator.get_source_stamp()
        layers = {folder: KernelFiles(os.path.join(folder, name), fresh) for folder in self._folder.readable}
        writable = layers.get(self._folder.folder) if self._folder.writable else None
        self._cache_file = Layers(list(layers.values()), writable)
        # a stamp of the sources on disk must not go with code that was imported before they changed
        if self._folder.folder is None or changed(Path(py_func.__code__.co_filename), since=IMPORTED):
            self.disable()
        else:
            KernelCache._all.add(self)

    def _index_key(self, sig, codegen):
        """Numba's key, after what the code of all kernels depends on."""
        return code_key(codegen), super()._index_key(sig, codegen)

    def load_overload(self, sig, target_context):
        """As Numba's, but initialises only the memory runtime; target_context.refresh() is left to the compiler."""
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except MemoryError:
            raise
        except Exception:  # from another version of a library: compiled again and replaced
            return None

    def save_overload(self, sig, data):
        """Saves a compiled kernel. Failure is reported and not raised: the kernel is in memory."""
        try:
            if self._folder.writable:
                self._save_overload(sig, data)
                _save_direct(self._py_func, sig, data)
                if said := second_best(self._folder):
                    cache_checks.warn_once("place", said)
                return
            problem = f"{self._folder.folder} cannot be written" if self._folder.folder else "there is no folder for them"
        except OSError as error:
            problem = f"{self._cache_path}: {cache_checks.error_text(error)}"
        cache_checks.warn_once("write", f"compiled kernels cannot be kept ({problem}), so every process compiles them again: "
                                f"set {ADVICE}")  # fmt: skip

    @classmethod
    def problems(cls) -> list[str]:
        """Files of all imported kernels that exist and are not loaded, each with the reason."""
        return sorted(problem for kernel in cls._all for problem in kernel._cache_file.problems())
