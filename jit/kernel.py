"""The decorators that compile all numeric kernels: `kernel`, `closed_kernel`, `quick_kernel`, `helper`.

All but quick kernels are `nogil`, because the scheduler's threads run kernels at the same time. All entries are cached, so
that only the first run compiles. Never `parallel` (the process aborts if two Python threads enter it) and never
`fastmath` (all arithmetic is integer).

In kernels `int(x)` leaves a uint8 a uint8, and the difference of two of them is a uint64: widen samples at the load
with np.int32(x) or np.int64(x).
"""

import threading

from .numba_version import is_possible

_making = threading.RLock()


class Kernel:
    """A function of a decorator. Calls take the version for the types of their arguments, from the cache or compiled
    (numba_free.py). Numba's dispatcher (dispatchers.py) is made when something is compiled, or where Numba has its own cache.
    """

    def __init__(self, function, decorator):
        self.__name__, self.__module__, self.__doc__ = function.__name__, function.__module__, function.__doc__
        self._function, self._decorator, self._dispatcher, self._versions = function, decorator, None, None
        self._addresses = {}  # by numba_free.key_of of the arguments

    def __call__(self, *args, **kws):
        with _making:
            if type(self) is Kernel:  # threads may call a kernel for the first time at once
                called = Kernel(self._function, "kernel") if self._decorator == "helper" else self  # it has no code
                self._call_by(called.versions().call if is_possible() else called.dispatcher())
        return self(*args, **kws)

    def address(self, *args):
        """Where the code for arguments of these types lies, for jit/address_calls.py; 0 if it cannot be had."""
        from . import numba_free

        key = numba_free.key_of(args)
        if key not in self._addresses:
            self._addresses[key] = self.versions().version(args)[1]
        return self._addresses[key]

    def chosen(self, *args):
        """The function that serves calls with arguments of these types, for callers that keep it: to choose takes time."""
        return self.versions().version(args)[0]

    def versions(self):
        """numba_free.Versions of the kernel."""
        from . import numba_free

        with _making:
            if self._versions is None:
                self._versions = numba_free.Versions(self._function, self.dispatcher)
        return self._versions

    def __getattr__(self, name):
        """Attributes of Numba's dispatcher, with the type by which Numba resolves a call."""
        return getattr(self.dispatcher(), name)

    def dispatcher(self):
        """Numba's dispatcher."""
        with _making:
            if self._dispatcher is None:
                from . import dispatchers

                self._dispatcher = getattr(dispatchers, self._decorator)(self._function)
        return self._dispatcher

    def _call_by(self, function):
        # Python looks for `__call__` in the class only: a class of its own calls the function without a detour
        self.__class__ = type(self.__name__, (Kernel,), {"__call__": staticmethod(function)})


class OneVersion:
    """`call` is a kernel for callers whose arguments are of the same types in every call: they choose its version once."""

    def __init__(self, kernel):
        self._kernel, self.call = kernel, self._choose

    def _choose(self, *args):
        self.call = self._kernel.chosen(*args)
        return self.call(*args)


def kernel(function):
    """Compiles `function` on first use, one specialisation: constants in a call count as integers, not as literal types."""
    return Kernel(function, "kernel")


def closed_kernel(function):
    """Entry point for threads and Python: helpers get private linkage, so LLVM inlines them and drops unused arguments."""
    return Kernel(function, "closed_kernel")


def quick_kernel(function):
    """A closed kernel of a few microseconds that keeps the interpreter's lock: reacquiring it would take longer."""
    return Kernel(function, "quick_kernel")


def helper(function):
    """A small function that allocates and returns no array: compiled without reference counting of its arguments.

    A `kernel` takes and drops a reference to each array at every call: atomic operations of 5 to 10 ns each.
    """
    return Kernel(function, "helper")
