"""nvcc takes every kernel file for every architecture; registers, spills and shared memory; wheels; the cache of modules."""

import errno
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile

import pytest
from h264lite.cuda_src.runtime import compiler
from h264lite.jit import cache_checks
from h264lite.jit import compiling as compilations
from h264lite.papers import kernels as papers

from ..jit.test_cache_checks import HOW, break_it

needs_nvcc = pytest.mark.skipif(compiler.find_nvcc() is None, reason="no nvcc on this machine")


def find_no_compiler(monkeypatch):
    """As on a machine with neither nvcc nor NVRTC."""
    monkeypatch.setattr(compiler, "find_nvcc", lambda: None)
    monkeypatch.setattr(compiler, "find_nvrtc", lambda: None)


def report(name, architecture, folder):
    """{kernel: (registers, bytes spilled, bytes of shared memory)}"""
    include = compiler.write_headers(folder)
    target = ["-cubin", f"-arch=sm_{architecture}"]
    output = folder / f"{name.replace('/', '-')}.cubin"
    return resources(compiler.run_nvcc(name, target, output, include, ("-Xptxas", "-v")))


def resources(text):
    """`report` from what the assembler says."""
    kernels = {}
    for part in re.split(r"Compiling entry function '", text)[1:]:
        kernel = part.split("'")[0]
        # an entry's own properties come first
        spill = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        used = re.search(r"Used (\d+) registers.*", part)
        shared = re.search(r"(\d+) bytes smem", used[0])
        kernels[kernel] = int(used[1]), int(spill[1]) + int(spill[2]), int(shared[1]) if shared else 0
    return kernels


SOME = {"decide/mode_decision", "search/subpel_refine", "loopfilter/deblock"}  # nvcc takes minutes for all


@needs_nvcc
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SOME else pytest.mark.slow)
        for name in (*compiler.module_names(), *papers.MODULES)
    ],
)
def test_no_kernel_spills(name, tmp_path, capsys):
    """On the GPU that the figures are for; other architectures in the slow test."""
    kernels = report(name, "90", tmp_path)
    assert kernels
    with capsys.disabled():
        for kernel, (registers, spilled, shared) in kernels.items():
            print(f"\n  sm_90 {name}.{kernel}: {registers} registers, {spilled} bytes spilled, {shared} shared", end="")
    assert not any(spilled for _, spilled, _ in kernels.values())


ONE_REGISTER = 12  # bytes: stored once and loaded twice


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("architecture", compiler.ARCHITECTURES)
def test_every_architecture(architecture, tmp_path):
    for name in (*compiler.module_names(), *papers.MODULES):
        kernels = report(name, architecture, tmp_path)
        print({k: v for k, v in kernels.items()})
        hot = name not in papers.MODULES  # those repeat what is in print, and were timed on one GPU
        spilling = [kernel for kernel, (_, spilled, _) in kernels.items() if spilled > ONE_REGISTER and hot]
        assert not spilling, (architecture, kernels)


@needs_nvcc
def test_fatbins_are_taken_while_the_sources_stand(tmp_path, monkeypatch):
    """Without nvcc, too; and no longer when the source has changed."""
    name = "source/ssd"
    for path in compiler.HERE.glob("**/*.cu*"):
        place = tmp_path / path.relative_to(compiler.HERE)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(path.read_bytes())
    monkeypatch.setattr(compiler, "HERE", tmp_path)
    compiler.module_key.cache_clear()
    compiler.build_fatbins(("80", "90"), [name])
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path / "cache"))
    find_no_compiler(monkeypatch)
    for capability in ((8, 0), (9, 0), (12, 0)):  # the last by PTX
        assert compiler.load_code(name, capability) == (tmp_path / f"{name}.fatbin").read_bytes()
    with (tmp_path / f"{name}.cu").open("a") as file:
        file.write("// changed\n")
    compiler._source.cache_clear()
    compiler.module_key.cache_clear()
    with pytest.raises(compiler.CompileError, match="neither nvcc nor NVRTC: pip install nvidia-cuda-nvrtc-cu12"):
        compiler.load_code(name, (9, 0))
    compiler.module_key.cache_clear()


def build(into, monkeypatch, **variables):
    """Names and contents of the files in a wheel that is made from this checkout."""
    pytest.importorskip("setuptools"), pytest.importorskip("wheel")
    source = into / "source"
    ignore = shutil.ignore_patterns(".*", "build", "dist", "out", "__pycache__", "*.egg-info", "*.fatbin", "tests", "docs")
    shutil.copytree(compiler.HERE.parent, source, ignore=ignore)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    code = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(into)], cwd=source, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    with zipfile.ZipFile(next(into.glob("*.whl"))) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}, done.stderr + done.stdout


def test_a_wheel_without_kernels(tmp_path, monkeypatch):
    """Which is what pip makes if nothing is asked for, with nvcc too: kernels for all GPUs take minutes."""
    monkeypatch.delenv("H264LITE_FATBIN", raising=False)
    files, _ = build(tmp_path, monkeypatch)
    assert "h264lite/setup.py" not in files
    assert "h264lite/cuda_src/intra/intra.cu" in files and not any(name.endswith(".fatbin") for name in files)


def test_without_nvcc_a_build_goes_on(monkeypatch, capsys):
    find_no_compiler(monkeypatch)
    assert compiler.main(["--if-nvcc"]) == 0
    assert "compiled where they are first used" in capsys.readouterr().err
    assert compiler.main(["--arch", "90"]) == 1
    assert "neither nvcc nor NVRTC" in capsys.readouterr().err


@needs_nvcc
@pytest.mark.slow
def test_a_wheel_with_kernels(tmp_path, monkeypatch):
    files, _ = build(tmp_path, monkeypatch, H264LITE_FATBIN="90")
    stamp = json.loads(files[f"h264lite/cuda_src/{compiler.STAMP}"])
    assert stamp == {name: compiler.module_key(name) for name in compiler.module_names()}
    assert all(len(files[f"h264lite/cuda_src/{name}.fatbin"]) > 1000 for name in stamp)


# ---- the cache of compiled modules
@pytest.fixture
def compiling(tmp_path, monkeypatch):
    """(the cache, calls of the compiler so far), with a compiler that writes down which call it was."""
    calls = []

    def run_nvcc(name, target, output, include, extra=()):
        calls.append(name)
        output.write_bytes(f"{name} {len(calls)}".encode())
        return ""

    monkeypatch.setattr(compiler, "run_nvcc", run_nvcc)
    find_no_compiler(monkeypatch)
    monkeypatch.setattr(compiler, "STAMP", "none")
    monkeypatch.setattr(compiler, "_cached_name", lambda name, arch, version: f"{name.replace('/', '-')}-{arch}.cubin")
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "h264lite" / "cuda", calls


def test_modules_are_compiled_once(compiling):
    cache, calls = compiling
    names = ["source/ssd", "intra/intra"]
    assert compiler.load_codes(names, (9, 0)) == compiler.load_codes(names, (9, 0))
    assert sorted(calls) == sorted(names)
    assert sorted(os.listdir(cache)) == ["intra-intra-sm_90.cubin", "source-ssd-sm_90.cubin"]


@pytest.mark.parametrize("how", HOW)
def test_damaged_modules_are_replaced(compiling, how):
    """And count as not compiled before."""
    (cache, calls), rng = compiling, random.Random(how)
    for k in range(20):
        compiler.load_code("source/ssd", (9, 0))
        path = cache / "source-ssd-sm_90.cubin"
        path.write_bytes(break_it(path.read_bytes(), how, rng))
        assert compiler.compiled("source/ssd", (9, 0)) is None
        assert compiler.load_code("source/ssd", (9, 0)) == f"source/ssd {k + 2}".encode()
        assert compiler.compiled("source/ssd", (9, 0)) == path
    assert len(calls) == 21


def test_modules_of_other_users_are_not_loaded(compiling):
    cache, calls = compiling
    told = []
    with cache_checks.messages_to(told.append):
        compiler.load_code("source/ssd", (9, 0))
        (cache / "source-ssd-sm_90.cubin").chmod(0o666)
        assert compiler.load_code("source/ssd", (9, 0)) == b"source/ssd 2"
        assert told == [f"{cache / 'source-ssd-sm_90.cubin'} may be written by other users: not loaded"]
        cache.chmod(0o777)
        assert compiler.load_code("source/ssd", (9, 0)) == compiler.load_code("source/ssd", (9, 0)) == b"source/ssd 3"
    folder = compiler.cache_folder()
    assert folder.is_relative_to(tempfile.gettempdir()) and folder == compiler.cache_folder() and len(calls) == 3
    assert len(told) == 2 and told[1].startswith(f"{cache} may be written by other users") and "set H264LITE_CACHE" in told[1]


def test_a_full_disk_under_the_cache(compiling, monkeypatch):
    """What was compiled is used, and one line names the folder."""
    cache, calls = compiling
    told = []

    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache_checks, "write", full)
    with cache_checks.messages_to(told.append):
        assert compiler.load_codes(["source/ssd", "intra/intra", "loopfilter/deblock"], (9, 0))
    assert len(calls) == 3 and len(told) == 1 and f"({cache}: no space left on device)" in told[0]


def test_without_threads_modules_are_compiled_in_turn(compiling, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert compiler.load_codes(["source/ssd", "intra/intra"], (9, 0)) == [b"source/ssd 1", b"intra/intra 2"]


def test_missing_files_are_compiled_at_once_with_a_counter(monkeypatch):
    """Each once, the longest first, as many at once as there are processors."""
    names, running, most, order, said = ["source/ssd", "intra/intra", "loopfilter/deblock"], [0], [0], [], []
    both = threading.Barrier(2)

    def code(name, capability):
        order.append(name)
        running[0] += 1
        most[0] = max(most[0], running[0])
        if len(order) <= 2:
            both.wait(10)
        running[0] -= 1
        return name.encode()

    sizes = {"source/ssd": 1, "intra/intra": 9, "loopfilter/deblock": 5}
    monkeypatch.setattr(compiler, "load_code", code)
    monkeypatch.setattr(compiler, "is_kept", lambda name, capability: False)
    monkeypatch.setattr(compiler, "sources", lambda name: {name: "x" * sizes[name]})
    monkeypatch.setattr(compiler.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(compiler, "EACH", 0.0)
    with compilations.messages_to(said.append):
        assert compiler.load_codes(names, (9, 0)) == [name.encode() for name in names]
    assert sorted(order) == sorted(names) and order[-1] == "source/ssd" and most[0] == 2
    assert [text.partition(",")[0] for text in said] == [f"compiling GPU kernel files: {k} of 3" for k in (1, 2)]


def test_a_file_that_is_refused_ends_the_others(monkeypatch):
    begun = []

    def code(name, capability):
        begun.append(name)
        raise compiler.CompileError(f"nvcc refused {name}.cu")

    monkeypatch.setattr(compiler, "load_code", code)
    monkeypatch.setattr(compiler, "is_kept", lambda name, capability: False)
    monkeypatch.setattr(compiler.os, "cpu_count", lambda: 1)
    with pytest.raises(compiler.CompileError, match="nvcc refused"):
        compiler.load_codes(compiler.module_names(), (9, 0))
    assert len(begun) < 4


@pytest.mark.parametrize("text", ["", "{", "[1]", "\0"])
def test_a_damaged_list_of_a_release_is_not_believed(tmp_path, monkeypatch, text):
    monkeypatch.setattr(compiler, "HERE", tmp_path)
    monkeypatch.setattr(compiler, "module_key", lambda name: "key")
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "ssd.fatbin").write_bytes(b"code")
    (tmp_path / compiler.STAMP).write_text(json.dumps({"source/ssd": "key"}))
    assert compiler.compiled("source/ssd", (9, 0)) == tmp_path / "source" / "ssd.fatbin"
    (tmp_path / compiler.STAMP).write_text(text)
    assert compiler.compiled("source/ssd", (9, 0)) is None


def test_nvcc_is_asked_for_its_version_once_for_each_file_of_it(tmp_path, monkeypatch):
    """Later processes find the answer with the compiled modules."""
    questions, nvcc = [], tmp_path / "nvcc"
    nvcc.write_text("one")
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "_ask_nvcc", lambda path: questions.append(path) or f"12.{len(questions)}")
    versions = [compiler.nvcc_version.__wrapped__(str(nvcc)) for _ in range(3)]
    assert versions == ["12.1"] * 3 and len(questions) == 1
    nvcc.write_text("another")
    assert compiler.nvcc_version.__wrapped__(str(nvcc)) == "12.2"
    (kept,) = (
        path for path in (tmp_path / "cache" / "h264lite" / "cuda").glob("*.version") if cache_checks.read(path) == b"12.2"
    )
    kept.write_bytes(b"damaged")
    assert compiler.nvcc_version.__wrapped__(str(nvcc)) == "12.3"
