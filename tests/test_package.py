"""What is installed: the wheel has all files of the package and only those, from a checkout and from its source archive."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("setuptools", minversion="77")
ROOT = Path(__file__).resolve().parent.parent
INSTALLED = (".py", ".cu", ".cuh", ".js", ".css", ".html", "py.typed")
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
OUTSIDE = re.compile(r"(^|/)(\.(?!ci|gitignore)[^/]*|__pycache__|out|build|dist|[^/]*\.egg-info)(/|$)|\.fatbin$")


def checkout(folder):
    """The files of a clean clone, with new ones that git does not ignore; without git by a walk."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    walk = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
    for name in done.stdout.split("\n") if done.returncode == 0 else (name for name in walk if not OUTSIDE.search(name)):
        if name and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def build(folder, what, out, **variables):
    environment = os.environ | {"H264LITE_FATBIN": "0", "H264LITE_KERNELS": "0", **variables}
    command = [sys.executable, "-c", BUILD, what, str(out)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return out / done.stdout.split()[-1]


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def contents(wheel):
    """{name: bytes} of the files of a wheel, without its own record."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return checkout(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def wheel(clone, tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    (clone / "build" / "lib" / "h264lite").mkdir(parents=True)
    (clone / "build" / "lib" / "h264lite" / "gone.py").write_text("of an earlier build")
    return build(clone, "build_wheel", out)


def test_a_wheel_has_the_files_of_the_package_and_no_others(clone, wheel):
    packed = {name for name in contents(wheel) if ".dist-info/" not in name}
    folders = {"", *(f"{path.parent.relative_to(clone).as_posix()}/" for path in clone.rglob("__init__.py"))} - {"./"}
    folders = {folder for folder in folders if not folder.startswith(("tests/", "papers/", "build/"))} | {"report/page/"}
    expected = {f"h264lite/{name}" for name in files(clone)
                if name[: name.rfind("/") + 1] in folders and name.endswith(INSTALLED) and name != "setup.py"}
    assert packed == expected
    for name in ("py.typed", "cuda_src/intra/intra.cu", "cuda_src/simd.cuh", "samples/make_clip.py",
                 "report/page/main.js"):  # fmt: skip
        assert f"h264lite/{name}" in packed


def extras_of(folder):
    """Names of the extras in setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read(folder / "setup.cfg")
    return set(setup["options.extras_require"])


def test_the_metadata_is_that_of_the_project(clone, wheel):
    packed = contents(wheel)
    (folder,) = {name.split("/")[0] for name in packed if ".dist-info/" in name}
    lines = packed[f"{folder}/METADATA"].decode().splitlines()
    from h264lite.version import __version__

    assert f"Version: {__version__}" in lines and "License-Expression: MIT" in lines and "Requires-Python: >=3.11" in lines
    assert {line.partition(": ")[2] for line in lines if line.startswith("Provides-Extra")} == extras_of(clone)
    assert needed(lines) == {"numpy", "numba", "llvmlite", "scipy"}
    assert b"h264lite = h264lite.__main__:main" in packed[f"{folder}/entry_points.txt"]
    assert any(name.startswith(folder) and name.endswith("LICENSE") for name in packed)


def needed(metadata):
    """Names of the packages that come with this one."""
    lines = [line.partition(": ")[2] for line in metadata if line.startswith("Requires-Dist") and "extra ==" not in line]
    return {re.split(r"[<>=]", line)[0] for line in lines}


def test_a_wheel_with_kernels_asks_for_no_compiler(clone, tmp_path):
    """tests/installed.sh builds one and uses it."""
    folder = build(clone, "prepare_metadata_for_build_wheel", tmp_path, H264LITE_KERNELS="x86-64-v3")
    lines = (folder / "METADATA").read_text().splitlines()
    assert needed(lines) == {"numpy", "llvmlite"}
    assert {re.split("[<;]", line)[0] for line in lines if line.endswith('extra == "compile"')} == {
        "Requires-Dist: numba", "Requires-Dist: scipy"}  # fmt: skip


def test_every_extra_is_documented(clone):
    text = (clone / "docs" / "install.md").read_text()
    for name in extras_of(clone):
        assert f"`{name}`" in text, name


def test_a_source_archive_has_the_checkout_and_gives_the_same_wheel(clone, wheel, tmp_path):
    before = files(clone)
    with tarfile.open(build(clone, "build_sdist", tmp_path)) as archive:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.2 has no filters
        archive.extractall(tmp_path / "source", **safely)
    (source,) = (tmp_path / "source").iterdir()
    tree = {name for name in before if not name.startswith("build/") and ".egg-info/" not in name}
    assert {name for name in files(source) if ".egg-info/" not in name} - {"PKG-INFO"} == tree
    assert contents(build(source, "build_wheel", tmp_path)) == contents(wheel)


SUB_INTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
number = interpreters.create()
said = []
for run in (interpreters.run_string, getattr(interpreters, "exec", None)):
    try:
        said.append(run(number, f"import sys; sys.path[:] = {sys.path!r}; import h264lite") if run else "")
    except Exception as error:
        said.append(error)
interpreters.destroy(number)
import h264lite
print(said, h264lite.__version__)
"""


def test_a_free_threaded_python_is_refused_by_name():
    text = f"import sys; sys.path[:] = {sys.path!r}; sys.abiflags = 't'; import h264lite"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "this one is free-threaded" in run.stderr


def test_a_sub_interpreter_is_refused_by_name():
    """NumPy and Numba work in one interpreter of a process; the first kernel would wait for ever in another one."""
    text = f"import sys; sys.path[:] = {sys.path!r}\n{SUB_INTERPRETER}"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "main interpreter of a process only" in run.stdout, run.stdout + run.stderr
