"""The decorators that compile all numeric kernels: `kernel`, `closed_kernel`, `quick_kernel`, `helper`.

All but quick kernels are `nogil`, because the scheduler's threads run kernels at the same time. All entries are cached, so
that only the first run compiles. Never `parallel` (the process aborts if two Python threads enter it) and never
`fastmath` (all arithmetic is integer).

In kernels `int(x)` leaves a uint8 a uint8, and the difference of two of them is a uint64: widen samples at the load
with np.int32(x) or np.int64(x).
"""

import sys
import threading
import weakref

_making = threading.RLock()


class Kernel:
    """A function of a decorator. Its first use makes Numba's dispatcher (dispatchers.py): a process uses few of its kernels,
    and each takes 0.5 ms, most of it for the stamp of its sources. As long as Numba is not imported, a call loads the code
    without it, where the cache has it (direct.py).
    """

    def __init__(self, function, kind):
        self.__name__, self.__module__, self.__doc__ = function.__name__, function.__module__, function.__doc__
        self._function, self._kind, self._made, self._versions = function, kind, None, None
        self._addresses = {}  # by direct.key_of of the arguments

    def __call__(self, *args, **kws):
        if "numba" in sys.modules:
            return self.made()(*args, **kws)
        self._without_numba()
        return self(*args, **kws)

    def address(self, *args):
        """Where the code for arguments of these kinds lies, for jit/address_calls.py; 0 if it cannot be had."""
        from . import numba_free

        key = numba_free.key_of(args)
        if key not in self._addresses:
            address = 0 if "numba" in sys.modules else self._without_numba().version(args)[1]
            if not address:
                from . import dispatchers

                address = dispatchers.address(self.made(), args)
            self._addresses[key] = address
        return self._addresses[key]

    def chosen(self, *args):
        """The function that serves calls with arguments of these kinds, for callers that keep it: the choice takes 6 us."""
        return self.made() if "numba" in sys.modules else self._without_numba().version(args)[0]

    def _without_numba(self):
        """numba_free.Versions of the kernel, which serve calls until its dispatcher is made."""
        from . import numba_free

        with _making:
            if self._versions is None:
                self._versions = numba_free.Versions(self._function, self.made)
                if self._made is None:
                    self._call_by(self._versions.call)
        return self._versions

    def __getattr__(self, name):
        """Attributes of Numba's dispatcher, with the type by which Numba resolves a call."""
        return getattr(self.made(), name)

    def made(self):
        """Numba's dispatcher."""
        with _making:  # threads may call a kernel for the first time at once
            if self._made is None:
                from . import dispatchers

                self._made = getattr(dispatchers, self._kind)(self._function)
                self._call_by(self._made)
        return self._made

    def _call_by(self, function):
        # Python looks for `__call__` in the class only: a class of its own calls the function without a detour
        self.__class__ = type(self.__name__, (Kernel,), {"__call__": staticmethod(function)})


_kernels: weakref.WeakSet = weakref.WeakSet()  # without helpers


def _entry(function, kind):
    entry = Kernel(function, kind)
    _kernels.add(entry)
    return entry


def kernel(function):
    """Compiles `function` on first use, one specialisation: constants in a call count as integers, not as literal types."""
    return _entry(function, "kernel")


def closed_kernel(function):
    """Entry point for threads and Python: helpers get private linkage, so LLVM inlines them and drops unused arguments."""
    return _entry(function, "closed_kernel")


def quick_kernel(function):
    """A closed kernel of a few microseconds that keeps the interpreter's lock: reacquiring it would take longer."""
    return _entry(function, "quick_kernel")


def helper(function):
    """A small function that allocates and returns no array: compiled without reference counting of its arguments.

    A `kernel` takes and drops a reference to each array at every call: atomic operations of 5 to 10 ns each.
    """
    return Kernel(function, "helper")


def problems_on_disk() -> list[str]:
    """Files of all imported kernels that exist and are not loaded, each with the reason."""
    from . import dispatchers

    for entry in list(_kernels):
        entry.made()
    return dispatchers.problems_on_disk()
