"""The decorators: helpers are parts of kernels, and functions of their own when Python calls them."""

import numpy as np
from h264lite.standard import jit


@jit.helper
def double(x):
    """A leaf."""
    return 2 * x


@jit.helper
def add_doubles(values):
    """A helper that calls a helper."""
    total = 0
    for i in range(values.size):
        total += double(np.int64(values[i]))
    return total


@jit.kernel
def add_both(values):
    """A kernel."""
    return add_doubles(values) + double(1)


def test_kernels_contain_their_helpers() -> None:
    values = np.arange(10, dtype=np.uint8)
    assert add_both(values) == 92
    assert add_both(values[:0]) == 2


def test_helpers_called_from_python() -> None:
    values = np.arange(200, 210, dtype=np.uint8)
    assert add_doubles(values) == 2 * int(values.sum(dtype=int))
    assert add_doubles(values=values) == 2 * int(values.sum(dtype=int))
    assert double(21) == 42


def test_one_specialisation_for_constants() -> None:
    add_both(np.zeros(3, np.uint8))
    assert len(getattr(double, "nopython_signatures", [1])) == 1
