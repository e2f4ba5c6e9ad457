"""Kernels called by address are the same kernels, with arrays, numbers, bundles, None and arguments that are left out."""

import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from h264lite.jit.address_calls import MOST_WORDS, Prepared, address_of, calls_of, run_calls, words_of
from h264lite.jit.kernel import closed_kernel

Bundle = namedtuple("Bundle", ("array", "number", "nothing"))
HERE = Path(__file__).parent
FAR_TOO_MUCH = 1 << 60  # bytes


@closed_kernel
def weigh(bundle, factor, flag, plane, out, more=3):
    """Writes a sum of all arguments to out, int64[2]."""
    array, number, nothing = bundle
    total = np.int64(0)
    for k in range(array.shape[0]):
        for j in range(array.shape[1]):
            total += array[k, j] * (k + 7 * j + 1)
    out[0] += factor * total + number + more + (nothing is None)
    out[1] = plane.shape[0] * 1000 + np.int64(plane[1, 2]) + 5 * flag


@closed_kernel
def allocate(n, out):
    """Writes the size of an array of n bytes to out, int64[1]."""
    out[0] = np.empty(n, np.uint8).size


@Prepared
def twice(bundle, factor, out):
    """weigh, then weigh with another factor."""
    plane = np.arange(12, dtype=np.uint8).reshape(3, 4)
    return [(weigh, (bundle, factor, True, plane, out)), (weigh, (bundle, -2 * factor, False, plane, out, 40))]


def run(calls, first=0, end=None):
    """(what run_calls returns, times)."""
    rows, words = [], []
    for address, arguments in calls:
        rows.append((address, len(words)))
        words += [word for value in arguments for word in words_of(value)]
    times = np.zeros((len(rows), 2), np.int64)
    end = len(rows) if end is None else end
    return run_calls(np.array(rows), np.array(words + [0] * MOST_WORDS), first, end, times), times


def bundle():
    return Bundle(np.arange(60, dtype=np.int32).reshape(6, 10)[1:4, 2::3], 11, None)  # rows and columns apart


def addressed(function, arguments):
    """(address, arguments) of its calls."""
    return [(address_of(called, given), given) for called, given in calls_of(function, arguments)]


def test_they_do_what_calls_from_python_do():
    expected, written = np.zeros(2, np.int64), np.zeros(2, np.int64)
    twice(bundle(), 5, expected)
    given = bundle()  # words hold no reference
    calls = addressed(twice, (given, 5, written))
    failed, times = run(calls)
    assert failed == -1 and expected.any() and (written == expected).all()
    assert (np.diff(times.reshape(-1)) >= 0).all() and (times > 0).all()
    again = np.zeros(2, np.int64)
    assert run(addressed(twice, (given, 5, again)), 1)[0] == -1 and again[0] != expected[0]  # the second call alone


def test_the_first_failure_ends_them():
    out, small = np.zeros(1, np.int64), np.zeros(1, np.int64)
    calls = [*addressed(allocate, (5, small)), *addressed(allocate, (FAR_TOO_MUCH, out)), *addressed(allocate, (7, small))]
    assert run(calls)[0] == 1 and small[0] == 5 and out[0] == 0


def test_other_functions_have_no_address():
    assert address_of(lambda n: n, (3,)) == 0
    with pytest.raises(ValueError, match="is no argument of a stage"):
        words_of(1.5)


SCRIPT = """
import sys
import test_address_calls
test_address_calls.test_they_do_what_calls_from_python_do()
print("numba" in sys.modules)
"""


def test_without_numba():
    """In the second process the code comes from the cache (jit/numba_free.py)."""
    command = [sys.executable, "-c", SCRIPT]
    said = [subprocess.run(command, cwd=HERE, capture_output=True, text=True) for _ in range(2)]
    assert [one.returncode for one in said] == [0, 0], said
    assert said[1].stdout.split()[-1] == "False"
