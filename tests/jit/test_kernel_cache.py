"""Compiled kernels on disk: what is damaged or of others is compiled again; where nothing can be kept the work goes on."""

import errno
import json
import os
import pickle
import random
import re
import subprocess
import sys
import threading
from pathlib import Path

import numba
import pytest
from h264lite.cli import cli
from h264lite.cli import doctor as doctor_command
from h264lite.encoder import warm_up as first_run
from h264lite.encoder.settings.config import Config
from h264lite.jit import cache_checks, compiling, numba_free
from h264lite.jit import cache_folder as cache_folders
from h264lite.jit import kernel as jit
from h264lite.jit.sources import stamp
from h264lite.scheduler.stages import CPU, files

from ..support.steady import steady
from .test_cache_checks import HOW, break_it

NUMBA = numba.__version__
KERNEL = """
import numpy as np
from h264lite.jit import cache_checks, compiling, kernel as jit, cache_folder as cache_folders

def ramp(n):
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = 3 * i
    return out

with cache_checks.messages_to(lambda text: print("told:", text)):
    ramp = jit.kernel(ramp)
    total = int(np.sum(ramp(5)))
print(total, 1 - compiling.count())
"""


class Planted:
    """What a cache of another user may hold: it does something when it is unpickled."""

    def __reduce__(self):
        return exec, ("import threading; threading.planted = True",)


@pytest.fixture(scope="module", autouse=True)
def all_kernels():
    """Imported before tests choose folders, which would hold for other tests as well."""
    doctor_command.kernel_problems()


def test_what_others_planted_is_not_unpickled(tmp_path):
    path = tmp_path / "k.nbd"
    cache_checks.write(path, pickle.dumps(Planted()))
    path.chmod(0o666)
    with cache_checks.messages_to(lambda text: None):
        assert numba_free._content(path) is None
    assert not hasattr(threading, "planted")


@pytest.fixture
def run(tmp_path):
    """Runs a kernel in a process of its own, kernels kept in tmp_path/cache: the lines it says."""
    (tmp_path / "k.py").write_text(KERNEL)
    root = str(Path(jit.__file__).parents[2])

    def start(before="", **variables):
        places = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "XDG_CACHE_HOME": str(tmp_path / "user")}
        environment = os.environ | places | {"PYTHONPATH": root} | variables
        command = [sys.executable, "-c", f"{before}\nimport runpy; runpy.run_path({str(tmp_path / 'k.py')!r})"]
        done = subprocess.run(command, env=environment, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        compiled = [line for line in done.stderr.splitlines() if line == f"h264lite [info]: {compiling.TEXT}"]
        assert len(compiled) == done.stdout.split()[-1].count("0")
        return [line for line in (done.stdout + done.stderr).splitlines() if line not in compiled]

    return start


def test_sources_that_changed_after_their_import(run, tmp_path):
    """Kernels of the code in memory are not kept under the stamp of the code on disk, nor loaded by it."""
    path = str(tmp_path / "k.py")
    edit = f"import os, time\nfrom h264lite.jit import kernel\ntime.sleep(0.05)\nos.utime({path!r})"
    assert run(edit) == ["30 0"] and not list(tmp_path.glob("cache/**/*.nbd"))
    assert run() == ["30 0"] and run(edit) == ["30 0"] and run() == ["30 1"]


def test_threads_that_use_a_kernel_for_the_first_time_make_one():
    kernel, gate, dispatchers = jit.kernel(lambda n: n + 1), threading.Barrier(8), []

    def use():
        gate.wait()
        dispatchers.append(kernel.dispatcher())

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(dispatchers) == 8 and len(set(map(id, dispatchers))) == 1


@pytest.mark.parametrize("how", HOW)
def test_a_process_with_a_damaged_cache(run, tmp_path, how):
    assert run() == ["30 0"] and run() == ["30 1"]
    (path,) = (tmp_path / "cache").glob("*/k.ramp*.nbd")
    path.write_bytes(break_it(path.read_bytes(), how, random.Random(how)))
    assert run() == ["30 0"] and run() == ["30 1"]


def test_a_process_with_the_cache_of_another_user(run, tmp_path):
    assert run() == ["30 0"]
    (folder,) = (tmp_path / "cache").iterdir()
    folder.chmod(0o777)
    told, result = run()
    why = f"{folder} may be written by other users: no compiled kernels are loaded from there"
    assert result == "30 0" and told.startswith(f"told: {why}; they are kept in {tmp_path / 'user'}")
    assert run()[1] == "30 1"  # from there


def test_a_process_on_a_full_disk(run, tmp_path):
    """It says which folder, once, and goes on."""
    told, result = run("""
from h264lite.jit import cache_checks
def full(path, data):
    raise OSError(28, 'No space left')
cache_checks.write = full
""")
    (folder,) = (tmp_path / "cache").iterdir()
    assert result == "30 0" and told.startswith(f"told: compiled kernels cannot be kept ({folder}: no space left), so every")


def test_a_process_that_can_write_nowhere(run, tmp_path):
    nowhere = ("from h264lite.jit import cache_folder as p\n"
               "p.find_cache_folder = lambda sources: p.CacheFolder(None, False, ())")  # fmt: skip
    for _ in range(2):
        told, result = run(nowhere)
        assert result == "30 0" and told.startswith("told: compiled kernels cannot be kept (there is no folder for them)")
    assert not (tmp_path / "cache").exists()


# ---- first run
@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A cache as it is once all kernels of the encoder are compiled."""
    monkeypatch.setattr(cache_folders, "_candidates", lambda sources: [tmp_path / "cache" / sources.name])
    place = first_run.kernel_cache_folder()
    for module in sorted(files(CPU, True) | first_run._needed(Config.from_options(width=32, height=32, device="cpu"))):
        folder, _, file = module.partition("/")
        saved = cache_folders.find_cache_folder(first_run._KERNELS / folder).folder
        keep(saved, f"{file}.one-7", first_run._KERNELS / f"{module}.py")
    return place.folder.parent


def keep(folder, name, source):
    """A version of a kernel as `numba_free.keep` leaves it."""
    host = numba_free._host()
    contents = (NUMBA, stamp(source), host, ()), b"", "", {}
    cache_checks.write(numba_free._file(folder, name, host, (), source), pickle.dumps(contents))


def test_whether_kernels_will_be_compiled(kernels):
    assert not first_run.will_compile()
    (kernels / "intra" / f"stale.old-1{numba_free.ENDING}.0.nbd").write_bytes(b"left behind")
    assert not first_run.will_compile()
    for name in ("intra/intra.one-7*", "entropy/entropy.one-7*"):
        (path,) = kernels.glob(name)
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        assert first_run.will_compile()
        path.write_bytes(whole)
        assert not first_run.will_compile()
    for path in kernels.rglob("step_search*"):
        path.unlink()
    assert not first_run.will_compile()  # compiled when it is asked for
    for path in kernels.rglob("deblock*.nbd"):
        path.unlink()
    assert first_run.will_compile()


def test_kernels_of_other_processors_and_settings_do_not_count(kernels, monkeypatch):
    """As in a cache that was copied to another machine."""
    for name, value in (("H264LITE_SIMD", "portable"), ("NUMBA_OPT", "2"), ("NUMBA_CPU_NAME", "nehalem")):
        monkeypatch.setenv(name, value)
        assert first_run.will_compile(), name
        monkeypatch.delenv(name)
        assert not first_run.will_compile(), name
    monkeypatch.setattr(numba_free.wheel_kernels, "processor", lambda: ("x86_64", "another", "+sse2"))
    assert first_run.will_compile()


@pytest.mark.parametrize("options, file", [({"me": "step"}, "step_search"), ({"me": "hex"}, "pattern_search"),
                                           ({"subme": 6}, "rd_candidates"),
                                           ({"subme": 6, "profile": "baseline"}, "rd_decision")])  # fmt: skip
def test_kernels_that_an_option_needs(kernels, options, file):
    config = Config.from_options(width=64, height=64, device="cpu", **steady(options))
    assert not first_run.will_compile(config)
    for path in kernels.rglob(f"{file}*"):
        path.unlink()
    assert first_run.will_compile(config) and first_run.will_compile() == (file == "rd_candidates")  # of the defaults


def test_kernels_are_read_from_several_folders(tmp_path, monkeypatch):
    """As where an image has those of the package compiled, and its user another cache. Times and places do not matter."""
    folders = [tmp_path / "image", tmp_path / "user"]
    monkeypatch.setattr(cache_folders, "_candidates", lambda sources: folders)
    for k, (folder, name) in enumerate(zip(folders, "ab")):
        folder.mkdir()
        (tmp_path / f"{name}.py").write_text("one = 1")
        os.utime(tmp_path / f"{name}.py", (k * 4e9, k * 4e9))
        keep(folder, f"{name}.k-1", tmp_path / f"{name}.py")
    assert numba_free.cached_modules(tmp_path, "abc") == {"a", "b"}
    assert numba_free.cached_modules(tmp_path, "b") == {"b"}
    access = os.access
    monkeypatch.setattr(cache_folders.os, "access", lambda path, mode: access(path, mode) and not (
        path == folders[0] and mode & os.W_OK))  # fmt: skip
    assert cache_folders.find_cache_folder(tmp_path) == cache_folders.CacheFolder(folders[1], True, (), tuple(folders))


# ---- doctor
def test_doctor_looks_into_every_folder_of_kernels():
    """Each folder of the package with an entry that is cached."""
    root, entry = first_run._KERNELS.parent, re.compile(r"^@(kernel|closed_kernel|quick_kernel)$", re.MULTILINE)
    outside = {"tests", "benchmarks", "papers"}  # of the checkout, or for developers
    rooms = {path.parent for path in root.glob("*/__init__.py") if path.parent.name not in outside}
    sources = [path for room in rooms for path in room.rglob("*.py")]
    holding = {path.parent.relative_to(root).as_posix() for path in sources if entry.search(path.read_text())}
    assert {name for name in holding if not name.startswith("cpu_simd/")} == set(doctor_command.OTHER_KERNELS)


@pytest.mark.parametrize("name", ("cpu_simd/intra/intra", *(f"{folder}/k" for folder in doctor_command.OTHER_KERNELS)))
def test_doctor_tells_of_damaged_kernels(kernels, capsys, name):
    folder = cache_folders.find_cache_folder((first_run._KERNELS.parent / name).parent).folder
    path = folder / f"k.one-7{numba_free.ENDING}.0.nbd"
    path.write_bytes(b"")
    assert cli.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert f"problem: {path} is damaged: not loaded, and compiled again" in said and "all is well" not in said


def test_doctor_tells_how_many_kernels_are_compiled(monkeypatch, tmp_path):
    """Of an empty cache of the user; then of one with a kernel that was compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    monkeypatch.setenv("H264LITE_CACHE_ALONE", "1")
    facts = doctor_command.examine()
    processor = facts["processor"]
    assert not processor["compiled"] and processor["kernels"] > 40 and processor["kernels_compiled"] == 0
    words = f"0 of {processor['kernels']} of the defaults compiled; the first encode compiles the rest, in about "
    assert any(words in line for line in doctor_command.lines(facts)) and 5 < processor["seconds_to_compile"] < 200
    code = "import numpy as np; from h264lite.jit.atomics import add; add(np.zeros(1, np.int64), 0, 1)"
    environment = os.environ | {"PYTHONPATH": str(Path(jit.__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    assert doctor_command.examine()["processor"]["kernels_compiled"] == 1
    processor |= {"compiled": True, "kernels_compiled": processor["kernels"]}
    line = next(line for line in doctor_command.lines(facts) if line.startswith("CPU kernels"))
    assert f"compiled, all {processor['kernels']} of the defaults, in {tmp_path}" in line


def test_doctor_prints_a_reason_once(monkeypatch):
    why = "no driver (libcuda.so.1 cannot be loaded)"
    monkeypatch.setattr(doctor_command, "why_no_cuda", lambda: why)
    facts = doctor_command.examine()
    for choice in facts["would_use"].values():
        choice |= {"device": "cpu", "why": f"no usable GPU ({why})"}
    said = "\n".join(line for line in doctor_command.lines(facts) if not line.startswith("problem"))
    assert said.count(why) == 1 and said.count("device cpu: no usable GPU,") == 2


def test_doctor_tells_of_folders_of_others(kernels, capsys, monkeypatch):
    (kernels / "cpu_simd").chmod(0o777)
    assert cli.main(["doctor", "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    problem = next(text for text in facts["problems"] if str(kernels) in text)
    assert "may be written by other users" in problem and problem.endswith("that you can write and other users cannot")


def test_doctor_tells_where_nothing_can_be_kept(monkeypatch, tmp_path):
    for folder, words in ((None, "no folder for kernels"), (tmp_path, str(tmp_path))):
        monkeypatch.setattr(first_run, "find_cache_folder", lambda sources, f=folder: cache_folders.CacheFolder(f, False, ()))
        monkeypatch.setattr(numba_free, "find_cache_folder", first_run.find_cache_folder)
        facts = doctor_command.examine()
        assert not facts["processor"]["compiled"]
        assert any(text.startswith(f"{words} c") and "every process compiles again" in text for text in facts["problems"])


def test_doctor_tells_of_a_full_disk(kernels, capsys, monkeypatch):
    """Also where some kernel of each file is kept, so that none seems to be missing."""
    usage = doctor_command.shutil.disk_usage(kernels)
    monkeypatch.setattr(doctor_command.shutil, "disk_usage", lambda folder: usage._replace(free=90 << 10))
    assert cli.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert f"problem: {kernels / 'cpu_simd'}: 90 KiB of the disk are free, too little for all compiled kernels" in said
    monkeypatch.setattr(doctor_command.shutil, "disk_usage", lambda folder: usage._replace(free=1 << 30))
    assert not doctor_command._full_disk(first_run.kernel_cache_folder())


def test_doctor_tells_of_a_variable_that_is_of_no_use(monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nothing")
    monkeypatch.setattr(doctor_command, "will_compile", lambda: True)
    assert any(text.startswith("NUMBA_CACHE_DIR=/proc/nothing cannot be") for text in doctor_command.examine()["problems"])


def test_an_error_of_the_disk_is_told_once(tmp_path, monkeypatch):
    """For all kernels that are compiled, and by the command as a line."""
    kernel = jit.kernel(lambda n: n)
    told = []

    def full(*_):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(cache_checks, "write", full)
    with cache_checks.messages_to(told.append):
        for value in (1, 2.0, True):
            assert kernel(value) == value
    assert len(told) == 1 and "disk quota exceeded" in told[0] and "tests.jit: disk" in told[0]
