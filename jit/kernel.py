"""The decorators that compile all numeric kernels: `kernel`, `closed_kernel`, `quick_kernel`, `helper`.

All but quick kernels are `nogil`, because the scheduler's threads run kernels at the same time. All entries are cached, so
that only the first run compiles. Never `parallel` (the process aborts if two Python threads enter it) and never
`fastmath` (all arithmetic is integer).

In kernels `int(x)` leaves a uint8 a uint8, and the difference of two of them is a uint64: widen samples at the load
with np.int32(x) or np.int64(x).
"""

import functools
import weakref

from numba import njit
from numba.core import config, event

from . import compiling, trust
from .interfaces import why_ordinary

if not why_ordinary():
    from numba.core.types import unliteral

    from .cache import KernelCache
    from .parts import ClosedCompiler, PartCompiler, part


def kernel(function):
    """Compiles `function` on first use, one specialisation: constants in a call count as integers, not as literal types."""
    if why_ordinary():
        return _ordinary(function, nogil=True, cache=True)
    return _cached(njit(nogil=True, error_model="numpy")(function))


def closed_kernel(function):
    """Entry point for threads and Python: helpers get private linkage, so LLVM inlines them and drops unused arguments."""
    if why_ordinary():
        return _ordinary(function, nogil=True, cache=True)
    return _cached(njit(pipeline_class=ClosedCompiler, nogil=True, error_model="numpy")(function))


def quick_kernel(function):
    """A closed kernel of a few microseconds that keeps the interpreter's lock: reacquiring it would take longer."""
    if why_ordinary():
        return _ordinary(function, cache=True)
    return _cached(njit(pipeline_class=ClosedCompiler, error_model="numpy")(function))


def helper(function):
    """A small function that allocates and returns no array: compiled without reference counting of its arguments.

    A `kernel` takes and drops a reference to each array at every call: atomic operations of 5 to 10 ns each.
    """
    if why_ordinary():
        return _ordinary(function, nogil=True)
    return function if config.DISABLE_JIT else _Helper(function)


class _Helper:
    """A helper; Numba's function is made at its first use, which kernels from the cache do not need: 0.1 ms each."""

    def __init__(self, function):
        self.__name__, self.__module__, self.__doc__ = function.__name__, function.__module__, function.__doc__
        self.py_func = function

    @functools.cached_property
    def _dispatcher(self):
        options = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        dispatcher = _one_specialisation(njit(pipeline_class=PartCompiler, **options)(self.py_func))
        return part(dispatcher, functools.cache(lambda: kernel(self.py_func)))

    @property
    def _numba_type_(self):
        """The type by which Numba resolves a call."""
        return self._dispatcher._numba_type_

    def __call__(self, *args, **kws):
        return self._dispatcher(*args, **kws)


def _ordinary(function, **options):
    """An ordinary njit function, reported once; uncached where Numba finds no folder for its files."""
    trust.warn_once("numba", why_ordinary())
    try:
        dispatcher = njit(error_model="numpy", **options)(function)
    except RuntimeError:
        dispatcher = njit(error_model="numpy", **options | {"cache": False})(function)
    return _counted(dispatcher)


def _counted(dispatcher):
    if hasattr(dispatcher, "py_func"):  # else NUMBA_DISABLE_JIT
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
    """Files of all imported kernels that exist and are not loaded, each with the reason."""
    return [] if why_ordinary() else KernelCache.problems()


def _cached(dispatcher):
    """Attaches KernelCache; without a usable folder it is disabled, which is reported at the first compilation."""
    if hasattr(dispatcher, "py_func"):  # else NUMBA_DISABLE_JIT
        dispatcher._cache = KernelCache(dispatcher.py_func)
    return _one_specialisation(_counted(dispatcher))


def _one_specialisation(dispatcher):
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT
        return dispatcher
    get_call_template = dispatcher.get_call_template

    def without_literals(args, kws):
        # Numba tries literal types first and would compile another version for every constant in a call.
        return get_call_template(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = without_literals
    return dispatcher
