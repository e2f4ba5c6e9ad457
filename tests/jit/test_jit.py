"""The decorators: helpers are parts of kernels, and functions of their own when Python calls them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from h264lite.jit import kernel as jit
from h264lite.jit import parts as jit_parts
from h264lite.jit import sources
from numba import njit

KERNELS = """
import sys
import numpy as np
from h264lite.jit import compiling
from h264lite.jit.kernel import kernel

@kernel
def ramp(n):
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = 3 * i
    return out

@kernel
def total(n):
    return 10 * ramp(n)[1]

for name in sys.argv[1:]:
    function = globals()[name]
    before = compiling.count()
    print(name, int(np.sum(function(5))), compiling.count() - before)
"""

SHARED = """
import sys
import numpy as np
from h264lite.jit.intrinsics import outlined
from h264lite.jit.kernel import closed_kernel, helper, kernel

@helper
def turn(values):
    outlined()
    for i in range(values.size):
        values[i] = 100 - values[i]

@helper
def turn_twice(values):
    turn(values)
    for i in range(values.size):
        values[i] *= 2
    turn(values)

@closed_kernel
def closed(values):
    turn_twice(values)

@kernel
def shared(values):
    turn_twice(values)

values = np.arange(4)
for name in sys.argv[1:]:
    globals()[name](values)
print(*values)
"""


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


@jit.closed_kernel
def add_both_alone(values):
    """A kernel that keeps its helpers."""
    return add_doubles(values) + double(1)


def test_closed_kernels() -> None:
    values = np.arange(10, dtype=np.uint8)
    assert add_both_alone(values) == 92
    if not hasattr(add_both_alone, "py_func"):
        pytest.skip("without compilation")
    shared, kept = njit(add_both.py_func), njit(pipeline_class=jit_parts.ClosedCompiler)(add_both_alone.py_func)
    code = []
    for kernel in (shared, kept):
        kernel(values)
        code.append("".join(kernel.inspect_llvm().values()))
    assert "define linkonce_odr" in code[0] and "define linkonce_odr" not in code[1]


@pytest.mark.parametrize("order", ["closed turn_twice", "closed shared", "shared closed turn_twice"])
def test_what_a_closed_kernel_makes_of_a_helper_is_called_by_no_other(order, tmp_path) -> None:
    """In the kernel it takes fewer arguments. In a process of its own, since a wrong call ends it."""
    (tmp_path / "shared.py").write_text(SHARED)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(Path(jit.__file__).parents[2])}
    values = np.arange(4)
    for _ in order.split():
        values = 100 - 2 * (100 - values)
    for _ in range(2):  # compiled, from the cache
        command = [sys.executable, str(tmp_path / "shared.py"), *order.split()]
        done = subprocess.run(command, env=environment, text=True, capture_output=True)
        assert (done.returncode, done.stdout.split()) == (0, [str(value) for value in values])


def test_helpers_called_from_python() -> None:
    values = np.arange(200, 210, dtype=np.uint8)
    assert add_doubles(values) == 2 * int(values.sum(dtype=int))
    assert add_doubles(values=values) == 2 * int(values.sum(dtype=int))
    assert double(21) == 42


def test_one_specialisation_for_constants() -> None:
    njit(add_both.py_func)(np.zeros(3, np.uint8))
    assert len(getattr(double, "nopython_signatures", [1])) == 1


def test_kernels_from_the_cache(tmp_path: Path) -> None:
    """They need no compiler, and something new may be compiled against them."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(Path(jit.__file__).parents[2])}

    def run(*names: str) -> str:
        command = [sys.executable, str(tmp_path / "kernels.py"), *names]
        return subprocess.run(command, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout

    assert run("ramp") == "ramp 30 1\n"
    assert run("ramp") == "ramp 30 0\n"
    assert run("ramp", "total") == "ramp 30 0\ntotal 30 2\n"
    assert run("total", "ramp") == "total 30 0\nramp 30 0\n"


def test_an_edit_wherever_a_kernel_depends_gives_it_a_new_entry(tmp_path, monkeypatch):
    """In a file that it imports, directly or not, and in jit/; not elsewhere, at no other time, and in no other place."""
    texts = {
        "jit/kernel": "", "standard/__init__": "", "standard/tables": "A = 1", "standard/levels": "",
        "cpu_simd/cost": "from ..standard import (\n    tables,  # of the standard\n)", "cpu_simd/unused": "",
        "cpu_simd/simd/blocks": "from ..late import b", "cpu_simd/late": "",
        "cpu_simd/search": "from .cost import a\ndef f():\n    from .simd import blocks, lanes\nfrom . import nothing",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(sources, "_folder", lambda: tmp_path / "jit")

    def stamp():
        sources._read.cache_clear(), sources._imported_files.cache_clear()
        return sources.stamp.__wrapped__(tmp_path / "cpu_simd" / "search.py")

    before = stamp()
    for name in texts:
        (tmp_path / f"{name}.py").write_text(texts[name] + "\n# edited")
        assert (stamp() != before) == (name not in ("standard/levels", "cpu_simd/unused")), name
        before = stamp()
    os.utime(tmp_path / "cpu_simd" / "cost.py", (1, 1))
    assert stamp() == before
    monkeypatch.setattr(sources, "_folder", lambda: tmp_path / "moved" / "jit")
    (tmp_path / "moved").mkdir()
    for folder in ("jit", "standard", "cpu_simd"):
        (tmp_path / folder).rename(tmp_path / "moved" / folder)
    sources._read.cache_clear(), sources._imported_files.cache_clear()
    assert sources.stamp.__wrapped__(tmp_path / "moved" / "cpu_simd" / "search.py") == before


def test_stamps_of_the_package_find_its_imports():
    """Those of a stage: helpers, vectors, tables."""
    paths, pending = set(), [str(Path(sources.__file__).parents[1] / "cpu_simd" / "intra" / "intra.py")]
    while pending:
        path = pending.pop()
        if path not in paths:
            paths.add(path)
            pending += sources._read(path)[1]
    names = {f"{path.parent.name}/{path.stem}" for path in map(Path, paths)}
    assert {"residual/transform", "simd/vector", "standard/tables", "jit/kernel"} <= names
    assert "search/step_search" not in names
