"""Arrays between pages without access: what reads or writes beyond an array ends the process with SIGSEGV.

`install("right", picture, scaling)` lets modules get such arrays from np.zeros, empty, full and ones and their likes.
An array ends where the next page begins ("right"), or begins where the page before it ends ("left"). Modules of
kernels must have compiled them before: Numba does not know a stand-in for NumPy.
"""

import ctypes
import mmap
from types import ModuleType

import numpy as np

SIDES = ("right", "left", "none")
PAGE = mmap.PAGESIZE
NO_ACCESS = 0  # PROT_NONE


def array(shape: int | tuple[int, ...], dtype: object, side: str) -> np.ndarray:
    """Zeros of any shape and dtype between pages without access, adjacent at `side`."""
    kind = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    count = int(np.prod(shape, dtype=np.int64))
    body = max(1, -(-count * kind.itemsize // PAGE)) * PAGE
    memory = mmap.mmap(-1, body + 2 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (start, start + PAGE + body):
        if _protect(page, PAGE, NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect failed")
    offset = PAGE + (body - count * kind.itemsize if side == "right" else 0)
    return np.frombuffer(memory, kind, count, offset).reshape(shape)


def _protect(address: int, size: int, access: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return int(libc.mprotect(address, size, access))


class GuardedNumpy:
    """Stands in for NumPy in a module: new arrays are guarded; fail_after lets an allocation fail."""

    def __init__(self, side: str) -> None:
        self.side = side
        self.fail_after: int | None = None  # so many allocations succeed, then one MemoryError

    def __getattr__(self, name: str) -> object:
        return getattr(np, name)

    def empty(self, shape, dtype=float):  # type: ignore[no-untyped-def]
        """np.empty, with zeros in it; and the one place where memory runs out."""
        if self.fail_after is not None:
            self.fail_after -= 1
            if self.fail_after < 0:
                self.fail_after = None
                raise MemoryError("of the fuzzer")
        if self.side == "none":
            return np.zeros(shape, dtype)
        return array(shape, dtype, self.side)

    zeros = empty

    def full(self, shape, value, dtype=None):  # type: ignore[no-untyped-def]
        """np.full."""
        result = self.empty(shape, np.asarray(value).dtype if dtype is None else dtype)
        result.fill(value)
        return result

    def ones(self, shape, dtype=float):  # type: ignore[no-untyped-def]
        """np.ones."""
        return self.full(shape, 1, dtype)

    def zeros_like(self, other, dtype=None):  # type: ignore[no-untyped-def]
        """np.zeros_like."""
        return self.empty(other.shape, other.dtype if dtype is None else dtype)

    empty_like = zeros_like

    def full_like(self, other, value, dtype=None):  # type: ignore[no-untyped-def]
        """np.full_like."""
        return self.full(other.shape, value, other.dtype if dtype is None else dtype)


def install(side: str, *modules: ModuleType) -> GuardedNumpy:
    """Give modules this NumPy; `side` "none" leaves arrays as they are."""
    numpy = GuardedNumpy(side)
    for module in modules:
        module.np = numpy  # type: ignore[attr-defined]
    return numpy
