"""Numba's dispatchers of the functions in kernel.py, each made when it compiles: options, events, Numba's own cache."""

import weakref

from numba import njit
from numba.core import event, types

from . import cache_checks, compiling, numba_cache
from .interfaces import why_ordinary
from .numba_version import is_possible

if not why_ordinary():
    from numba.core.types import unliteral

    from .parts import ClosedCompiler, PartCompiler


def kernel(function):
    """See kernel.py."""
    return _entry(function, nogil=True)


def closed_kernel(function):
    """See kernel.py."""
    return _entry(function, closed=True, nogil=True)


def quick_kernel(function):
    """See kernel.py."""
    return _entry(function, closed=True)


def helper(function):
    """See kernel.py."""
    if why_ordinary():
        return _ordinary(function, nogil=True)
    options = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = _one_specialisation(njit(pipeline_class=PartCompiler, **options)(function))
    dispatcher._insert = lambda *args, **kws: None  # it has no machine code
    return dispatcher


def compiled(dispatcher, arguments):
    """Numba's CompileResult of a kernel for arguments of these types; None: its dispatcher serves calls."""
    if why_ordinary() or not _is_compiled(dispatcher):
        return None
    missing = dispatcher.py_func.__code__.co_argcount - len(arguments)
    left_out = dispatcher.py_func.__defaults__[-missing:] if missing else ()
    signature = (*map(dispatcher.typeof_pyval, arguments), *map(types.Omitted, left_out))
    dispatcher.compile(signature)
    return dispatcher.overloads[signature]


def _is_compiled(dispatcher):
    return hasattr(dispatcher, "py_func")  # else NUMBA_DISABLE_JIT: the function itself


def _entry(function, closed=False, **options):
    if closed and not why_ordinary():
        options["pipeline_class"] = ClosedCompiler
    dispatcher = _ordinary(function, **options)
    if not _is_compiled(dispatcher):
        return dispatcher
    if why_ordinary() or not is_possible():
        numba_cache.enable(dispatcher)
    return dispatcher if why_ordinary() else _one_specialisation(dispatcher)


def _ordinary(function, **options):
    """A function of njit whose compilations count; another way than ours is reported once."""
    if reason := why_ordinary():
        cache_checks.warn_once("numba", reason)
    dispatcher = njit(error_model="numpy", **options)(function)
    if _is_compiled(dispatcher):
        _kernels.add(dispatcher)
    return dispatcher


class _Listener(event.Listener):
    """Numba's events about compilations; those of other libraries do not count."""

    def on_start(self, event):
        """See Numba."""
        if event.data["dispatcher"] in _kernels:
            compiling.begins(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        """See Numba; an error ends a compilation too."""
        if event.data["dispatcher"] in _kernels:
            compiling.ends()


_kernels: weakref.WeakSet = weakref.WeakSet()
event.register("numba:compile", _Listener())


def _one_specialisation(dispatcher):
    if not _is_compiled(dispatcher):
        return dispatcher
    get_call_template = dispatcher.get_call_template

    def without_literals(args, kws):
        # Numba tries literal types first and would compile another version for every constant in a call.
        return get_call_template(tuple(map(unliteral, args)), {name: unliteral(t) for name, t in kws.items()})

    dispatcher.get_call_template = without_literals
    return dispatcher
