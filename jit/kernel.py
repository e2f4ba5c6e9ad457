"""How every numeric kernel of the project is compiled: `kernel`, `closed_kernel`, `quick_kernel`, `helper`.

`nogil` but for quick ones, because the scheduler's threads run kernels side by side; cached, so that only the first run
compiles; never
`parallel` (it aborts the process when two Python threads meet in it) and never `fastmath` (all arithmetic is integer).

In kernels `int(x)` leaves a uint8 a uint8, and the difference of two of them is a uint64: widen samples at the load
with np.int32(x) or np.int64(x).
"""

import functools

from numba import njit
from numba.core.types import unliteral

from .cache import KernelCache
from .parts import ClosedCompiler, PartCompiler, part


def kernel(function):
    """Compiles `function` on first use, once for all: constants in a call count as integers, not as types."""
    return _cached(njit(nogil=True, error_model="numpy")(function))


def closed_kernel(function):
    """A kernel that keeps its helpers for itself, which makes calls between them cheap: what threads and Python call."""
    return _cached(njit(pipeline_class=ClosedCompiler, nogil=True, error_model="numpy")(function))


def quick_kernel(function):
    """A closed kernel of a few microseconds, which keeps the interpreter's lock: getting it back would take longer."""
    return _cached(njit(pipeline_class=ClosedCompiler, error_model="numpy")(function))


def helper(function):
    """A kernel for small functions that allocate no array and return none: it counts no references to its arguments.

    A kernel takes and drops a reference to each array at every call, which is an atomic operation: 5 to 10 ns each.
    """
    options = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = _one_specialisation(njit(pipeline_class=PartCompiler, **options)(function))
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT
        return dispatcher
    return part(dispatcher, functools.cache(lambda: kernel(function)))


def _cached(dispatcher):
    """With the cache of this project; without one where no folder can be used, which is told when something was compiled."""
    if hasattr(dispatcher, "py_func"):  # else NUMBA_DISABLE_JIT
        dispatcher._cache = KernelCache(dispatcher.py_func)
    return _one_specialisation(dispatcher)


def _one_specialisation(dispatcher):
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT
        return dispatcher
    get_call_template = dispatcher.get_call_template

    def without_literals(args, kws):
        # Numba tries the types of literals first, and would compile one more version for every constant in a call.
        return get_call_template(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = without_literals
    return dispatcher
