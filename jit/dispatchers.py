"""Numba's dispatchers of the functions in kernel.py, each made at its first use: options, cache, events of compilations."""

import functools
import weakref

from numba import njit
from numba.core import event, types

from . import cache_checks, compiling
from .interfaces import why_ordinary

if not why_ordinary():
    from numba.core.types import unliteral

    from .cache import KernelCache
    from .parts import ClosedCompiler, PartCompiler, part


def kernel(function):
    """See kernel.py."""
    if why_ordinary():
        return _ordinary(function, nogil=True, cache=True)
    return _cached(njit(nogil=True, error_model="numpy")(function))


def closed_kernel(function):
    """See kernel.py."""
    if why_ordinary():
        return _ordinary(function, nogil=True, cache=True)
    return _cached(njit(pipeline_class=ClosedCompiler, nogil=True, error_model="numpy")(function))


def quick_kernel(function):
    """See kernel.py."""
    if why_ordinary():
        return _ordinary(function, cache=True)
    return _cached(njit(pipeline_class=ClosedCompiler, error_model="numpy")(function))


def helper(function):
    """See kernel.py."""
    if why_ordinary():
        return _ordinary(function, nogil=True)
    options = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = _one_specialisation(njit(pipeline_class=PartCompiler, **options)(function))
    if not _is_compiled(dispatcher):
        return dispatcher
    return part(dispatcher, functools.cache(lambda: kernel(function)))


def address(dispatcher, args):
    """Where the code of a kernel for arguments of these kinds lies, compiled if need be; 0 if it is not ours."""
    if why_ordinary() or not _is_compiled(dispatcher):
        return 0
    missing = dispatcher.py_func.__code__.co_argcount - len(args)
    left_out = dispatcher.py_func.__defaults__[-missing:] if missing else ()
    kinds = (*map(dispatcher.typeof_pyval, args), *map(types.Omitted, left_out))
    dispatcher.compile(kinds)
    overload = dispatcher.overloads[kinds]
    return overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name)


def _is_compiled(dispatcher):
    return hasattr(dispatcher, "py_func")  # else NUMBA_DISABLE_JIT: the function itself


def _ordinary(function, **options):
    """An ordinary njit function, reported once; uncached where Numba finds no folder for its files."""
    cache_checks.warn_once("numba", why_ordinary())
    try:
        dispatcher = njit(error_model="numpy", **options)(function)
    except RuntimeError:
        dispatcher = njit(error_model="numpy", **options | {"cache": False})(function)
    return _counted(dispatcher)


def _counted(dispatcher):
    if _is_compiled(dispatcher):
        _kernels.add(dispatcher)
    return dispatcher


class _Listener(event.Listener):
    """Numba's events about compilations; those of other libraries do not count."""

    def on_start(self, event):
        """See Numba."""
        if event.data["dispatcher"] in _kernels:
            compiling.begins()

    def on_end(self, event):
        """See Numba; an error ends a compilation too."""
        if event.data["dispatcher"] in _kernels:
            compiling.ends()


_kernels: weakref.WeakSet = weakref.WeakSet()
event.register("numba:compile", _Listener())


def problems_on_disk() -> list[str]:
    """Files of all kernels with a dispatcher that exist and are not loaded, each with the reason."""
    return [] if why_ordinary() else KernelCache.problems()


def _cached(dispatcher):
    """Attaches KernelCache; without a usable folder it is disabled, which is reported at the first compilation."""
    if _is_compiled(dispatcher):
        dispatcher._cache = KernelCache(dispatcher.py_func)
    return _one_specialisation(_counted(dispatcher))


def _one_specialisation(dispatcher):
    if not _is_compiled(dispatcher):
        return dispatcher
    get_call_template = dispatcher.get_call_template

    def without_literals(args, kws):
        # Numba tries literal types first and would compile another version for every constant in a call.
        return get_call_template(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = without_literals
    return dispatcher
