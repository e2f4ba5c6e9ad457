"""Numba's own cache: damaged files are compiled again, a full disk is told, and doctor says which files are damaged."""

import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from h264lite.jit import cache_checks, numba_cache

from .test_cache_checks import HOW, break_it

ROOT = Path(numba_cache.__file__).parents[2]
KERNEL = """
import numpy as np
from h264lite.jit import cache_checks, numba_free
from h264lite.jit.kernel import kernel

@kernel
def total(values):
    return values.sum()
LOOK
with cache_checks.messages_to(lambda text: print("told:", text)):
    print(total(np.arange(4)), sum(total.stats.cache_hits.values()))
"""
FULL = """
from numba.core import caching
def full(self, path):
    raise OSError(28, "No space left")
caching.IndexDataCacheFile._open_for_write = full
"""
LOOK = """
from pathlib import Path
room = Path("room").resolve()
print(*numba_free.unusable_files(room), numba_free.cached_modules(room, {"k"}))
"""


@pytest.fixture
def run(tmp_path):
    """Runs a program with Numba's cache, as a file of settings asks for: the lines it says."""
    (tmp_path / ".numba_config.yaml").touch()
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "k.py").write_text(KERNEL.replace("LOOK", LOOK))

    def start(before=""):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-W", "ignore", "-c", f"{before}\nimport runpy; runpy.run_path('room/k.py')"]
        done = subprocess.run(command, env=environment, text=True, capture_output=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return start


def files(folder, ending):
    return list((folder / "cache").rglob(f"*.{ending}"))


@pytest.mark.parametrize("how, ending", (("empty", "nbi"), ("cut", "nbi"), ("garbage", "nbc")))
def test_damaged_files_are_compiled_again(run, tmp_path, how, ending):
    """And told by what doctor asks, until then."""
    run()
    (path,) = files(tmp_path, ending)
    path.write_bytes(break_it(path.read_bytes(), how, random.Random(5)))
    assert run() == [f"{path} is damaged " + ("set()" if ending == "nbi" else "{'k'}"), "6 0"]
    assert run() == ["{'k'}", "6 1"]


def test_a_full_disk_is_told(run, tmp_path):
    _, told, result = run(FULL)
    assert result == "6 0" and "cannot be kept" in told and "no space left" in told and "NUMBA_CACHE_DIR" in told
    assert not files(tmp_path, "nbc")


def test_a_full_disk_with_a_damaged_index_is_told(run, tmp_path):
    run()
    (path,) = files(tmp_path, "nbi")
    path.write_bytes(b"")
    said, told, result = run(FULL)
    assert said == f"{path} is damaged set()" and result == "6 0" and "no space left" in told


@pytest.mark.parametrize("how", HOW)
def test_what_cannot_be_read_is_said(tmp_path, how):
    """Whatever the bytes are, nothing is run; changed bits and what is added may be pickles as well."""
    path, rng = tmp_path / "k.nbc", random.Random(how)
    whole = pickle.dumps(("0.1", [1, 2.5, "text", b"code" * 50, {"a": None}]))
    path.write_bytes(whole)
    assert numba_cache.problem_of(path) == ""
    for _ in range(300):
        path.write_bytes(break_it(whole, how, rng))
        problem = numba_cache.problem_of(path)
        assert problem == cache_checks.DAMAGED or (how in ("bit", "longer") and not problem)
    path.unlink()
    assert re.match(r"cannot be read \(no such file", numba_cache.problem_of(path))
