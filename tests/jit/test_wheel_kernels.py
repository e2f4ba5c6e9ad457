"""Kernels of a wheel: made for a class of processors, loaded without Numba, left alone where they may not fit."""

import os
import shutil
import sys

import pytest
from h264lite.jit import wheel_kernels

from .test_numba_free import EXPECTED, ROOT, USED, run

BEST = next((name for name in reversed(wheel_kernels.CLASSES) if sys.platform == "linux" and os.uname().machine == "x86_64"
             and wheel_kernels.has(name, wheel_kernels.processor()[2])), None)  # fmt: skip
needs_class = pytest.mark.skipif(BEST is None, reason="only on Linux with x86-64 and AVX2")


def run_shipped(tmp_path, **environment):
    """What the script prints with an empty cache, and whether Numba was imported."""
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    return run(tmp_path, USED, **{"H264LITE_CACHE_ALONE": "0", **environment})


def ship(tmp_path, name, folder):
    """Compiles the kernels of the script for a class and puts them where those of the class `folder` are."""
    chosen = dict(zip(wheel_kernels.VARIABLES, (name, wheel_kernels.CLASSES[name])))
    assert run(tmp_path, USED, **chosen) == [f"{EXPECTED} True"]
    target = tmp_path / wheel_kernels.FOLDER / folder
    target.mkdir(parents=True)
    for path in (tmp_path / "cache").rglob("*.nbd"):
        shutil.copyfile(path, target / path.name)
    return target


@needs_class
def test_the_same_results_without_numba(tmp_path):
    files = list(ship(tmp_path, BEST, BEST).iterdir())
    assert len(files) == 3
    assert run_shipped(tmp_path) == [f"{EXPECTED} False"]
    for setting in ({"H264LITE_SIMD": "portable"}, {"H264LITE_CACHE_ALONE": "1"}):
        assert run_shipped(tmp_path, **setting) == [f"{EXPECTED} True"], setting
    files[0].chmod(0o666)
    assert run_shipped(tmp_path) == [f"{EXPECTED} True"], "a file that others can write"
    files[0].chmod(0o644)
    assert run_shipped(tmp_path) == [f"{EXPECTED} False"]
    (tmp_path / "script.py").write_text(USED.replace("factor\n", "(factor + 0)\n"))
    assert run_shipped(tmp_path) == [f"{EXPECTED} True"], "other sources"


WITHOUT = """
import sys
from pathlib import Path

class Missing:  # as if they were not installed
    def find_spec(name, path=None, target=None):
        if name in ("numba", "scipy"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing)
from h264lite.jit import numba_version
numba_version.find_spec = lambda name: None
numba_version.BUNDLE = Path(__file__).parent / "numba"
"""


@needs_class
def test_where_numba_is_not_installed(tmp_path):
    """A wheel's kernels run with what the wheel has of Numba; what would be compiled is told by name."""
    ship(tmp_path, BEST, BEST)
    folder = tmp_path / "site"
    wheel_kernels.bundle(folder / "numba")
    (folder / "sitecustomize.py").write_text(WITHOUT)
    without = {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT.parent)))}
    assert run_shipped(tmp_path, **without) == [f"{EXPECTED} False"]
    (tmp_path / "script.py").write_text(USED.replace("factor\n", "(factor + 0)\n"))
    with pytest.raises(AssertionError, match=r"ModuleNotFoundError: kernels have to be compiled .* pip install 'h264lite"):
        run_shipped(tmp_path, **without)
    shutil.rmtree(folder / "numba")
    (tmp_path / "script.py").write_text(USED)
    with pytest.raises(AssertionError, match="ModuleNotFoundError: kernels have to be compiled"):
        run_shipped(tmp_path, **without)


def test_what_a_wheel_has_of_numba(tmp_path):
    wheel_kernels.bundle(tmp_path)
    names = {path.relative_to(tmp_path).as_posix().partition(".")[0] for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"_dynfunc", "_helperlib", "core/runtime/_nrt_python", "_version", "LICENSE", "LICENSES"}
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 3 << 20


@needs_class
def test_kernels_of_another_class_are_not_loaded(tmp_path):
    other = next(name for name in wheel_kernels.CLASSES if name != BEST)
    if not wheel_kernels.has(other, wheel_kernels.processor()[2]):
        pytest.skip("this processor has one class")
    ship(tmp_path, other, BEST)
    assert run_shipped(tmp_path) == [f"{EXPECTED} True"]


def test_classes_of_processors(tmp_path, monkeypatch):
    monkeypatch.delenv("H264LITE_SIMD", raising=False)
    monkeypatch.delenv("H264LITE_CACHE_ALONE", raising=False)
    v3, v4 = wheel_kernels.CLASSES
    for name in (v3, v4):
        (tmp_path / wheel_kernels.FOLDER / name).mkdir(parents=True)
    both = wheel_kernels.CLASSES[v4]
    for features, name in ((both, v4), (both + ",+sse4.1", v4), (both.replace("+avx512vl", "-avx512vl"), v3),
                           (wheel_kernels.CLASSES[v3], v3)):  # fmt: skip
        class_folder = wheel_kernels.class_folder(tmp_path, features)
        assert class_folder == (tmp_path / wheel_kernels.FOLDER / name, (name, wheel_kernels.CLASSES[name]))
    assert wheel_kernels.class_folder(tmp_path, both.replace("+bmi2", "-bmi2")) is None
    assert wheel_kernels.class_folder(tmp_path / "elsewhere", both) is None
    (tmp_path / wheel_kernels.FOLDER / v4).chmod(0o777)
    wheel_kernels._is_safe.cache_clear()
    assert wheel_kernels.class_folder(tmp_path, both) is None


def test_classes_that_cannot_be_built(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="x86-64-v9: not a class of processors"):
        wheel_kernels.build(["x86-64-v9"])
    monkeypatch.setattr(wheel_kernels, "processor", lambda: ("x86_64-linux", "nehalem", "+sse4.2,-avx2"))
    with pytest.raises(SystemExit, match="this processor has no x86-64-v4"):
        wheel_kernels.build(["x86-64-v4"])
    wheel_kernels.build([])
    assert capsys.readouterr().err.count("the package gets no kernels for it") == len(wheel_kernels.CLASSES)
