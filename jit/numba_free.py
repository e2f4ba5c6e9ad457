"""Compiled kernels without Numba: their machine code is loaded by llvmlite and called through Numba's own C modules.

`import numba` takes a fifth to a third of a second, and a process whose kernels are all in the cache needs none of it.
Each version of a kernel that Numba compiles is kept in a file FILE.KERNEL-LINE.py3XX.HASH.STAMP.nbd of plain Python objects:
the types of its arguments, the machine code, names in it and constants. HASH is of the processor and of these types, STAMP of
the sources, so that installations of several sources share a folder. A kernel calls the version for the types of its
arguments; only without such a file, or for arguments that none describes, Numba is imported.

The code calls CPython and a few functions of Numba's C modules `_helperlib` and `_nrt_python`. These modules and
`_dynfunc`, which makes a function of an address, are loaded by their file names, since `import numba._dynfunc` imports
all of Numba. A wheel with compiled kernels has copies of these modules, for where Numba is not installed (wheel_kernels.py).
Where loading is not possible (numba_version.py), kernels are kept in Numba's own cache.
"""

import ctypes
import hashlib
import importlib.machinery
import importlib.util
import inspect
import os
import pickle
import sys
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from . import IMPORTED, cache_checks, wheel_kernels
from .cache_folder import NUMBAS_VARIABLE, cache_folder, find_cache_folder, second_best
from .cache_root import ADVICE
from .numba_version import import_numba, is_possible, numba_folder, numba_version
from .sources import changed, stamp

ENDING = f".py{sys.version_info[0]}{sys.version_info[1]}"  # part of Numba's file names
# Modules of Numba whose functions the code of a kernel may call, beside those of CPython and the C library, and their prefix
_HELPERS = {"numba.core.runtime._nrt_python": "NRT_", "numba._helperlib": "numba_"}
_OF_C = {"memcpy", "memmove", "memset", "sched_yield", "clock_gettime", "usleep"}
MOST_SOURCES = 4  # states of a kernel's sources whose machine code is kept
_SIMPLE = {int: "<i8", float: "<f8", bool: "|b1", type(None): "none"}
_CHOOSE = 0x503  # flags of arrays: C or Fortran contiguous, aligned, writeable
_lock = threading.RLock()
_looked_at: dict[Path, Any] = {}  # what files hold that `modules` has read, for `_saved`
_WRAPPER = "_ZN7cpython"  # how the name of a function for calls from Python begins; "_ZN" in the name of the kernel's own
Constants = dict[str, list[Any]]  # of environments, by the name of the pointer to each
Loaded = tuple[Callable[..., Any], int]  # a function, and the address of its code


class _Unknown(Exception):
    """An argument that no file describes."""


# ---- the types of arguments
def describe(value: Any) -> Any:
    """The type of an argument, by which Numba chooses a version, as text and tuples."""
    cls = type(value)
    if cls is np.ndarray:
        flags = value.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return (value.dtype.str, value.ndim, order, flags.writeable, flags.aligned)
    if cls in _SIMPLE and (cls is not int or -(1 << 63) <= value < 1 << 63):
        return _SIMPLE[cls]
    if cls is tuple or hasattr(cls, "_fields"):
        return (f"{cls.__module__}.{cls.__qualname__}", *map(describe, value))
    if isinstance(value, np.generic) and cls.__module__ == "numpy":
        return value.dtype.str
    raise _Unknown


def describe_default(value: Any) -> Any:
    """The type of an argument that is left out."""
    return ("default", repr(value))


def key_of(values: Iterable[Any]) -> tuple[Any, ...]:
    """What distinguishes all that `describe` does, within a process and faster."""
    key: list[Any] = []
    for value in values:
        cls = type(value)
        if cls is np.ndarray:
            key.append((value.dtype, value.ndim, value.flags.num & _CHOOSE))
        elif cls in _SIMPLE or not isinstance(value, tuple):
            key.append(cls)
        else:
            key.append((cls, key_of(value)))
    return tuple(key)


# ---- files
def _host() -> tuple[str, ...]:
    """What machine code depends on beside its sources: the processor to compile for, and settings."""
    triple, name, features = wheel_kernels.processor()
    chosen, known = os.environ.get("NUMBA_CPU_NAME", ""), {NUMBAS_VARIABLE, *wheel_kernels.VARIABLES}
    names = sorted(name for name in os.environ if name.startswith("NUMBA_") and name not in known)
    settings = [f"{name}={os.environ[name]}" for name in names]
    features = os.environ.get("NUMBA_CPU_FEATURES", "" if chosen else features)
    return triple, chosen or name, features, os.environ.get("H264LITE_SIMD", ""), *settings


def host_of_kernels() -> tuple[str, ...]:
    """See `_host`."""
    return _host()


def _of_class(name: str, features: str) -> tuple[str, ...]:
    return wheel_kernels.processor()[0], name, features, ""


def _file(folder: Path, name: str, host: tuple[str, ...], described: Any, source: Path) -> Path:
    """name: FILE.KERNEL-LINE; host: see _host; source: the file of the kernel."""
    key = hashlib.sha256(repr((host, described)).encode()).hexdigest()[:12]
    return folder / f"{name}{ENDING}.{key}.{short_stamp(source)}.nbd"


def short_stamp(source: Path) -> str:
    """The part of `stamp` in the names of files."""
    return stamp(source)[:12]


def _name(function: Any) -> tuple[Path, str]:
    """(the source file of a function, FILE.KERNEL-LINE)."""
    source, line = Path(function.__code__.co_filename), function.__code__.co_firstlineno
    return source, f"{source.stem}.{function.__qualname__}-{line}"


def keep(function: Any, described: Any, result: Any) -> None:
    """Keep a version for later processes. Failure is reported and not raised: the kernel is in memory.

    described: types of the arguments, as `describe` has them; result: Numba's CompileResult.
    """
    source, name = _name(function)
    if changed(source, since=IMPORTED):  # a stamp of the sources on disk does not go with code that was imported before
        return
    folder = cache_folder(source.parent)
    if folder.folder is not None and folder.writable:
        host = _host()
        key_of_file = (numba_version(), stamp(source), host, described)
        try:
            path = _file(folder.folder, name, host, described, source)
            cache_checks.write(path, pickle.dumps((key_of_file, *_contents(result))))
            _drop_older(path)
            problem, reason = second_best(folder), "folder"
        except OSError as error:
            problem, reason = f"{folder.folder}: {cache_checks.error_text(error)}", "write"
        except (pickle.PicklingError, TypeError, AttributeError, LookupError) as error:
            problem, reason = f"{function.__qualname__}: {error}", "write"
    else:
        problem = f"{folder.folder} cannot be written" if folder.folder else "there is no folder for them"
        reason = "write"
    if reason == "write":
        problem = f"compiled kernels cannot be kept ({problem}), so every process compiles them again: set {ADVICE}"
    if problem:
        cache_checks.warn_once(reason, problem)


def _drop_older(path: Path) -> None:
    """Of files that differ from `path` in their sources only, leave the MOST_SOURCES newest: edits would fill the disk."""
    versions = []
    for other in path.parent.glob(f"{path.name.rsplit('.', 2)[0]}.*.nbd"):
        with suppress(OSError):
            versions.append((other.stat().st_mtime, other))
    for _, other in sorted(versions, reverse=True)[MOST_SOURCES:]:
        with suppress(OSError):
            other.unlink()


def _contents(result: Any) -> tuple[bytes, str, Constants]:
    """(machine code, name of the function for calls from Python, constants of the function, then of kernels that it calls).

    LookupError if the code needs what only Numba prepares.
    """
    library, about = result.library, result.fndesc
    module, known = library._final_module, _helpers()
    needs = [entry.name for entry in (*module.functions, *module.global_variables) if entry.is_declaration]
    needs = [name for name in needs if not (name in known or name in _OF_C or name.startswith(("Py", "_Py", "llvm.")))]
    if needs or result.reload_init:
        raise LookupError(f"it calls {', '.join(needs) or 'what Numba prepares'}")
    environments = {about.env_name: result.environment.consts}
    environments |= {other.env_name: other.consts for other in result._find_referenced_environments() if other.consts}
    return library._get_compiled_object(), about.llvm_cpython_wrapper_name, environments


def _saved(function: Any, described: Any) -> tuple[bytes, str, Constants] | None:
    """What `keep` has kept; None without a fresh and undamaged file."""
    source, name = _name(function)
    if changed(source, since=IMPORTED):
        return None
    key_of_file = numba_version(), stamp(source)
    for folder, host in _places(source.parent, cache_folder(source.parent).readable):
        path = _file(folder, name, host, described, source)
        content = _looked_at.pop(path, None) or _content(path)
        if content is not None and content[0] == (*key_of_file, host, described):
            return content[1], content[2], content[3]
    return None


def _places(sources: Path, folders: Iterable[Path]) -> list[tuple[Path, tuple[str, ...]]]:
    """(folder, what its code depends on): the cache's folders, then that of the package."""
    host = _host()
    candidates = [(folder, host) for folder in folders]
    if not host[4:] and (shipped := wheel_kernels.class_folder(sources, host[2])):
        candidates.append((shipped[0], _of_class(*shipped[1])))
    return candidates


def cached_modules(sources: Path, wanted: Collection[str]) -> set[str]:
    """Those of the `wanted` source files of a folder, named without ending, of which a kernel is kept for this processor."""
    names: set[str] = set()
    folders = find_cache_folder(sources).readable
    for folder, host in _places(sources, folders) if is_possible() else ((folder, ()) for folder in folders):
        with suppress(OSError):
            for name in sorted(os.listdir(folder)):
                file = name.partition(".")[0]
                if file in names or file not in wanted:
                    continue
                if not host and name.endswith(f"{ENDING}.nbi"):  # Numba looks for edits itself
                    if not _numbas_problem(folder / name):
                        names.add(file)
                elif host and name.endswith(".nbd"):
                    content = _looked_at[folder / name] = _content(folder / name)
                    if content is not None and content[0][:3] == (numba_version(), stamp(sources / f"{file}.py"), host):
                        names.add(file)
    return names


def files_of(sources: Path) -> set[str]:
    """Names of all files in the caches of a source folder, those of the package too."""
    names: set[str] = set()
    for folder, _ in _places(sources, find_cache_folder(sources).readable):
        with suppress(OSError):
            names.update(os.listdir(folder))
    return names


def unusable_files(sources: Path) -> list[str]:
    """Files of kernels of a source folder that exist and are not loaded, each with the reason."""
    problems: list[str] = []
    look, endings = (cache_checks.problem_of, (".nbd",)) if is_possible() else (_numbas_problem, (".nbi", ".nbc"))
    for folder in find_cache_folder(sources).readable:
        with suppress(OSError):  # that kernels are compiled again is said already
            paths = [path for path in folder.iterdir() if ENDING in path.suffixes and path.suffix in endings]
            problems += [f"{path} {problem}" for path in paths if (problem := look(path))]
    return problems


def _numbas_problem(path: Path) -> str:
    """See numba_cache.problem_of."""
    import_numba()
    from .numba_cache import problem_of

    return problem_of(path)


def _content(path: Path) -> Any:
    """What a file holds; None if it is missing or damaged."""
    data = cache_checks.read(path)
    with suppress(ValueError, TypeError, EOFError, pickle.UnpicklingError):
        return None if data is None else pickle.loads(data)
    return None


# ---- machine code
@cache
def _module(name: str) -> Any:
    """A C module of Numba, loaded by its file name; ImportError without it. It is not left among sys.modules."""
    if name in sys.modules:
        return sys.modules[name]
    folder, module_path = numba_folder(), name.split(".")[1:]
    for suffix in importlib.machinery.EXTENSION_SUFFIXES if folder is not None else ():
        path = os.path.join(str(folder), *module_path) + suffix
        if os.path.exists(path):
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules.pop(name, None)
            return module
    raise ImportError(f"no {name}")


def _helpers() -> dict[str, int]:
    """Addresses of the functions of Numba's C modules by their names in machine code."""
    return {prefix + name: address for module, prefix in _HELPERS.items()
            for name, address in _module(module).c_helpers.items() if not name.startswith("_")}  # fmt: skip


@cache
def _engine() -> Any:
    """LLVM's engine, with the functions that kernels call."""
    from llvmlite import binding

    for symbol, address in _helpers().items():
        binding.add_symbol(symbol, address)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple = binding.get_process_triple()
    empty = binding.parse_assembly("")
    empty.triple = triple
    machine = binding.Target.from_triple(triple).create_target_machine(jit=True, reloc="default", codemodel="jitdefault")
    return binding.create_mcjit_compiler(empty, machine)


def _load(function: Any, code: bytes, wrapper: str, environments: Constants) -> Loaded:
    """A function of the machine code, and its address without the conversion of arguments."""
    from llvmlite import binding

    engine, maker = _engine(), _module("numba._dynfunc")
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    kept = []
    for name, constants in environments.items():
        kept.append(maker.Environment({}))
        kept[-1].consts.extend(constants)
        ctypes.py_object.from_address(engine.get_global_value_address(name)).value = kept[-1]
    home, text = sys.modules[function.__module__], function.__doc__ or ""
    address = engine.get_function_address(wrapper)
    entry: Callable[..., Any] = maker.make_function(home, function.__name__, text, address, kept[0], (engine, *kept))
    suffix = wrapper.removeprefix(_WRAPPER)
    return entry, engine.get_function_address(f"_ZN{suffix}") if suffix != wrapper else 0


def _find(function: Any, described: tuple[Any, ...]) -> Loaded | None:
    """The version of a kernel for arguments of these types, loaded; None: Numba has to compile it."""
    try:
        saved = _saved(function, described)
        return None if saved is None else _load(function, *saved)
    except (ImportError, AttributeError, KeyError, TypeError, RuntimeError, OSError):  # another Numba or llvmlite
        return None


class Versions:
    """The versions of a kernel in memory. dispatcher: makes Numba's dispatcher."""

    def __init__(self, function: Any, dispatcher: Callable[[], Callable[..., Any]]) -> None:
        self._function, self._dispatcher = function, dispatcher
        self._by_key: dict[tuple[Any, ...], Loaded] = {}
        self._by_description: dict[tuple[Any, ...], Loaded] = {}

    def call(self, *arguments: Any, **named: Any) -> Any:
        """A call of the kernel."""
        if named:
            bound = inspect.signature(self._function).bind(*arguments, **named)
            bound.apply_defaults()
            arguments = bound.args
        key = key_of(arguments)
        return (self._by_key.get(key) or self._choose(key, arguments))[0](*arguments)

    def version(self, arguments: tuple[Any, ...]) -> Loaded:
        """The version for arguments of these types; address 0: it has none."""
        key = key_of(arguments)
        return self._by_key.get(key) or self._choose(key, arguments)

    def _choose(self, key: tuple[Any, ...], arguments: tuple[Any, ...]) -> Loaded:
        version, left_out = None, self._left_out(arguments)
        with suppress(_Unknown):
            described = (*map(describe, arguments), *map(describe_default, left_out))
            with _lock:
                version = self._by_description.get(described) or (_find(self._function, described) if is_possible() else None)
            version = version or self._compile(described, arguments)
        if version is None:
            self._by_key[key] = self._dispatcher(), 0
        else:
            function, address = self._by_description[described] = version
            self._by_key[key] = function if not left_out else lambda *given: function(*given, *left_out), address
        return self._by_key[key]

    def _left_out(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The defaults of arguments that a call leaves out."""
        defaults, count = self._function.__defaults__ or (), self._function.__code__.co_argcount
        return defaults[len(defaults) - count + len(arguments) :] if len(arguments) < count else ()

    def _compile(self, described: tuple[Any, ...], arguments: tuple[Any, ...]) -> Loaded | None:
        """A version by Numba's compiler; None: the dispatcher serves its calls."""
        import_numba()
        from . import dispatchers

        result = dispatchers.compiled(self._dispatcher(), arguments)
        if result is None:
            return None
        if is_possible():
            keep(self._function, described, result)
        return result.entry_point, result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
