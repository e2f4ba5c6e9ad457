"""The driver's functions by address: arguments arrive, the first failure ends the rows and is told."""

import ctypes

import numpy as np
from h264lite.cuda_src.native import ARGUMENTS, replay_rows
from h264lite.cuda_src.script import Script

LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)  # as cuLaunchKernel


def rows_of(function, *rows):
    address = ctypes.cast(function, ctypes.c_void_p).value
    return np.array([[address, *row, *[0] * (ARGUMENTS - len(row))] for row in rows], np.int64)


def test_arguments_arrive_in_order():
    seen = []

    @LAUNCH
    def launch(*arguments):
        seen.append(arguments)
        return 0

    row = [1 << 40, *range(1, 8), 2**47 - 1, 1 << 33, 5]
    assert replay_rows(rows_of(launch, row, row[::-1])) == -1
    assert seen[0] == tuple(row)
    assert seen[1][0] == 5 and seen[1][1] == (1 << 33) & 0xFFFFFFFF, "32-bit arguments take the low half"


def test_the_first_failure_ends_it():
    seen = []

    @LAUNCH
    def launch(first, *_):
        seen.append(first)
        return 700 if first == 12 else 0

    failed = replay_rows(rows_of(launch, [10], [11], [12], [13]))
    assert (failed >> 32, failed & 0xFFFFFFFF) == (2, 700)
    assert seen == [10, 11, 12]


def test_a_script_keeps_the_order():
    done = []
    script = Script()
    for k, row in enumerate(([1], [2], None, [3], None)):
        script.add(f"act {k}", lambda k=k: done.append(k), row)
    parts = script.parts()
    assert [names for _, names in parts] == [["act 0", "act 1"], ["act 2"], ["act 3"], ["act 4"]]
    assert parts[0][0].tolist() == [[1], [2]] and parts[2][0].tolist() == [[3]]
    parts[1][0]()
    parts[3][0]()
    assert done == [2, 4]
