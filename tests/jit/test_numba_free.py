"""Kernels without Numba: the same results, by version; where no file serves, or a setting may matter, Numba has them."""

import os
import subprocess
import sys
import types
from collections import namedtuple
from pathlib import Path

import numba
import numpy as np
import pytest
from h264lite.jit import interfaces, numba_free, numba_version

ROOT = Path(interfaces.__file__).parents[1]
Pair = namedtuple("Pair", "array number")
Other = namedtuple("Other", "array number")
GRID = np.zeros((4, 6), np.uint8)
SERVED = sys.platform == "linux" and os.uname().machine == "x86_64"
needs_linux = pytest.mark.skipif(not SERVED, reason="only on Linux with x86-64")

KERNELS = """
import sys
from collections import namedtuple
import numpy as np
from h264lite.jit.atomics import fetch_add
from h264lite.jit.kernel import closed_kernel, helper, kernel, quick_kernel

Pair = namedtuple("Pair", "array number")

@helper
def larger(value, limit):
    return value if value > limit else limit

@helper
def more(value, number):
    return value if number is None else value + number

@closed_kernel
def total(pair, factor, limit=3):
    sum_of_larger = 0
    for k in range(pair.array.shape[0]):
        sum_of_larger += larger(np.int64(pair.array[k]), limit) * factor
    return more(sum_of_larger, pair.number)

@kernel
def filled(out):
    work = np.empty(4, np.int64)
    for k in range(4):
        work[k] = k * k
    for k in range(out.size):
        out[k] = work[k % 4]

@quick_kernel
def quick(out, at):
    return fetch_add(out, at, 5)

def say(*values):
    print(*values, "numba" in sys.modules)

array = np.arange(6, dtype=np.uint8)
"""
USED = KERNELS + """
out = np.zeros(6, np.int64)
filled(out)
say(total(Pair(array, 7), 2), total(Pair(array, 8), 3), quick(out, 1), *out)
"""
UNKNOWN = USED + """
say(total(Pair(array, None), 2))
wide = array.astype(np.int16)
say(total(Pair(array[::2], 7), 2), total(Pair(wide, 7), 2), total(Pair(array, 7), 2, 4), total(Pair(array, 7), 2))
try:
    total(Pair(3, 7), 2)
except Exception as error:
    print(type(error).__name__)
"""
CHOSEN = USED + """
chosen = total.chosen(Pair(array, 7), 2)
say(chosen(Pair(array, 7), 2), chosen(Pair(array, 8), 3))
"""
EXPECTED = "49 71 1 0 6 4 9 0 1"


def run(tmp_path, script, *names, **environment):
    """Lines that a script prints, in a process of its own with a cache; names: of kernels whose files are damaged before."""
    path, folder = tmp_path / "script.py", tmp_path / "cache"
    if not path.exists():
        path.write_text(USED)
    lines = script[len(USED) :]
    path.with_name("rest.py").write_text("from script import *\n" + lines if lines else "import script\n")
    for name in names:
        for entry in folder.rglob(f"*{name}*.nbd"):
            entry.write_bytes(entry.read_bytes()[:-9])
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "H264LITE_"))}
    variables |= {"PYTHONPATH": str(ROOT.parent), "H264LITE_CACHE": str(folder), "H264LITE_CACHE_ALONE": "1", **environment}
    done = subprocess.run([sys.executable, "rest.py"], env=variables, cwd=tmp_path, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_linux
def test_the_same_results_without_numba(tmp_path):
    assert run(tmp_path, USED) == [f"{EXPECTED} True"], "compiled"
    assert run(tmp_path, USED) == [f"{EXPECTED} False"]
    for setting in ({"NUMBA_OPT": "2"}, {"H264LITE_SIMD": "portable"}):
        assert run(tmp_path, USED, **setting) == [f"{EXPECTED} True"], setting
        assert run(tmp_path, USED, **setting) == [f"{EXPECTED} False"], setting
    assert run(tmp_path, USED, "total") == [f"{EXPECTED} True"], "a damaged file"
    (tmp_path / ".numba_config.yaml").write_text("opt: 2\n")
    assert run(tmp_path, USED) == [f"{EXPECTED} True"]


@needs_linux
def test_arguments_of_other_kinds_reach_numba(tmp_path):
    run(tmp_path, USED)
    first = run(tmp_path, UNKNOWN)
    assert first == [f"{EXPECTED} False", "42 True", "27 49 57 49 True", "TypingError"]
    again = run(tmp_path, UNKNOWN)  # all are kept now, but for what no kernel takes
    assert again == [f"{EXPECTED} False", "42 False", "27 49 57 49 False", "TypingError"]


@needs_linux
def test_a_version_is_chosen_once_for_many_calls(tmp_path):
    assert run(tmp_path, CHOSEN) == [f"{EXPECTED} True", "49 71 True"], "compiled"
    assert run(tmp_path, CHOSEN) == [f"{EXPECTED} False", "49 71 False"]


VALUES = (
    3, -(1 << 62), 2.5, True, None, np.int64(3), np.uint8(3), np.float32(1), GRID, GRID[:, :3], GRID.T, GRID[:1, :3], GRID[0],
    GRID.astype(np.int16), np.broadcast_to(GRID, (2, 4, 6)), Pair(GRID, 1), Pair(GRID, None),
    Other(GRID, 1), (GRID, 1), (1, (GRID, 2.5)), np.zeros((2, 2), bool),
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_kinds_distinguish_what_numba_does(value):
    for other in VALUES:
        assert numba_free.describe(value) != numba_free.describe(other) or numba.typeof(value) == numba.typeof(other)


def test_keys_distinguish_what_kinds_do():
    kinds, keys = (
        [make(value) for value in VALUES] for make in (numba_free.describe, lambda value: numba_free.key_of([value]))
    )
    for k in range(len(VALUES)):
        for other in range(k):
            assert kinds[k] == kinds[other] or keys[k] != keys[other], (VALUES[k], VALUES[other])


@pytest.mark.parametrize("value", (1 << 63, "text", [1], range(3), np.ma.zeros(3)), ids=repr)
def test_what_no_file_describes(value):
    with pytest.raises(numba_free._Unknown):
        numba_free.describe(value)


def test_the_version_of_numba_by_its_files():
    assert numba_version._version_on_disk() == numba.__version__ == numba_version.numba_version()
    assert numba_version.is_tested(numba.__version__)
    assert not any(map(numba_version.is_tested, ("0.59.1", "0.69.0", "", "x")))


def test_machine_code_that_needs_more_is_reported(tmp_path):
    """It would be compiled by each process."""
    new = types.SimpleNamespace
    functions = [new(name=name, is_declaration=True) for name in ("memcpy", "NRT_Free", "fmod", "NRT_other")]
    library = new(_final_module=new(functions=functions, global_variables=[]))
    result = new(reload_init=(), fndesc=None, library=library)
    with pytest.raises(LookupError, match="it calls fmod, NRT_other"):
        numba_free._contents(result)


@needs_linux
def test_kernels_of_numba_and_of_files_in_one_process(tmp_path):
    """A kernel that is compiled calls one that a file has; a call by names."""
    script = USED + "import numba\n" \
        "@numba.njit\ndef both(out):\n    filled(out)\n    return out.sum()\n" \
        "say(total(Pair(array, 7), 2), both(out), total(pair=Pair(array, 7), factor=2))\n"
    assert run(tmp_path, USED) == [f"{EXPECTED} True"]
    assert run(tmp_path, script) == [f"{EXPECTED} False", "49 15 49 True"]
