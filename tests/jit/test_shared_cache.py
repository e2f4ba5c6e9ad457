"""One cache of compiled kernels for all installations of a user: by their sources, wherever they lie."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from h264lite.jit import kernel, numba_free

ROOT = Path(kernel.__file__).resolve().parents[1]
CODE = """
import numpy as np
from h264lite.jit import compiling
from h264lite.jit.atomics import add
with compiling.messages_to(lambda text: None):
    add(np.zeros(1, np.int64), 0, 1)
print(compiling.count())
"""


@pytest.fixture
def compile_in(tmp_path):
    """How many kernels a process compiles that runs one of an installation, a copy of this one's jit/."""

    def start(name, edit=""):
        package = tmp_path / name / "h264lite"
        if not package.exists():
            shutil.copytree(ROOT / "jit", package / "jit", ignore=shutil.ignore_patterns("__pycache__"))
            for file in ("__init__", "version", "console", "uninterrupted", "forks", "process"):
                shutil.copy(ROOT / f"{file}.py", package)
        with open(package / "jit" / "atomics.py", "a") as file:
            file.write(edit)
        environment = os.environ | {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(tmp_path / "user")}
        for variable in ("H264LITE_CACHE", "NUMBA_CACHE_DIR", "H264LITE_CACHE_ALONE"):
            environment.pop(variable, None)
        done = subprocess.run([sys.executable, "-c", CODE], env=environment, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    return start


def test_a_second_installation_compiles_nothing(compile_in, tmp_path):
    assert compile_in("one") == 1 and compile_in("one") == 0
    assert compile_in("two") == 0
    assert not list((tmp_path / "one").rglob("*.nbd")) and len(list((tmp_path / "user").rglob("*.nbd"))) == 1


def test_installations_of_other_sources_do_not_replace_each_others_kernels(compile_in):
    assert compile_in("one") == 1 and compile_in("two", "# other\n") == 1
    assert compile_in("one") == 0 and compile_in("two") == 0


def test_kernels_of_old_sources_are_dropped(compile_in, tmp_path):
    for _ in range(numba_free.MOST_SOURCES + 2):
        assert compile_in("one", "# an edit\n") == 1
    assert len(list((tmp_path / "user").rglob("*.nbd"))) == numba_free.MOST_SOURCES
    assert compile_in("one") == 0
