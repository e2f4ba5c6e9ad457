"""NVRTC compiles every kernel file as nvcc does; which library is taken, and what is said without one.

Tests that compile need the library: pip install nvidia-cuda-nvrtc-cu12 (or nvidia-cuda-nvrtc).
"""

from pathlib import Path
from types import SimpleNamespace

import pytest
from h264lite.cuda_src.runtime import compiler, nvrtc
from h264lite.encoder.errors import DeviceError
from h264lite.encoder.settings.config import Config
from h264lite.papers import kernels as papers
from h264lite.scheduler import devices

from .test_cuda_compile import report, resources

INSTALL = "pip install nvidia-cuda-nvrtc-cu12"
SPILLS = 16  # bytes; versions of the compiler differ: 8 in one kernel with 13.5, none with 12.9 and 13.0
needs_nvrtc = pytest.mark.skipif(nvrtc.find(None) is None, reason=f"no NVRTC on this machine: {INSTALL}")


@needs_nvrtc
@pytest.mark.parametrize("architecture", (80, 90))
@pytest.mark.parametrize("name", (*compiler.module_names(), *papers.MODULES))
def test_every_kernel_file(name, architecture, tmp_path, capsys):
    """The kernels of nvcc, with as much shared memory, and about as many registers if both are of one version."""
    code, text = nvrtc.find(None).compile(compiler.sources(name), f"sm_{architecture}", ("-Xptxas", "-v"))
    kernels = resources(text)
    assert code.startswith(b"\x7fELF") and kernels
    if name not in papers.MODULES:  # see test_cuda_compile.py
        assert all(spilled <= SPILLS for _, spilled, _ in kernels.values())
    if compiler.find_nvcc():
        compiled = report(name, str(architecture), tmp_path)
        assert {kernel: shared for kernel, (_, _, shared) in kernels.items()} == {k: v[2] for k, v in compiled.items()}
        if compiler.nvcc_version(compiler.find_nvcc()).startswith(f"{nvrtc.find(None).version}."):
            assert all(abs(registers - compiled[kernel][0]) <= 16 for kernel, (registers, *_) in kernels.items())
        with capsys.disabled():
            for kernel, (registers, spilled, _) in kernels.items():
                print(f"\n  sm_{architecture} {name}.{kernel}: {registers} registers, {spilled} bytes spilled; nvcc "
                      f"{compiled[kernel][0]}, {compiled[kernel][1]}", end="")  # fmt: skip


@needs_nvrtc
def test_modules_by_nvrtc_are_kept(tmp_path, monkeypatch):
    """Under the compiler's version; code for a later GPU than the library knows is PTX for the latest that it knows."""
    library = nvrtc.find(None)
    monkeypatch.setenv(compiler.VARIABLE, "nvrtc")
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    code = compiler.load_code("source/ssd", (9, 0))
    (kept,) = (tmp_path / "h264lite" / "cuda").iterdir()
    assert kept.name.startswith(f"source-ssd-sm_90-nvrtc{library.version}-") and compiler.compiled("source/ssd", (9,
                                0)) == kept
    monkeypatch.setattr(nvrtc.Nvrtc, "compile", None)
    assert compiler.load_code("source/ssd", (9, 0)) == code
    monkeypatch.undo()
    assert library.target((9, 0)) == "sm_90" and library.target((99, 0)) == f"compute_{library.architectures[-1]}"
    code, _ = library.compile(compiler.sources("source/ssd"), library.target((99, 0)))
    assert b".entry ssd(" in code and code.endswith(b"\0")
    with pytest.raises(nvrtc.NvrtcError, match=r"does not know compute capability 1\.0"):
        library.target((1, 0))


@needs_nvrtc
def test_what_nvrtc_refuses_is_told(monkeypatch):
    monkeypatch.setenv(compiler.VARIABLE, "nvrtc")
    monkeypatch.setattr(compiler, "sources", lambda name: {"source/ssd.cu": "int nonsense = ;"})
    monkeypatch.setattr(compiler, "compiled", lambda *given: None)
    with pytest.raises(devices.DeviceUnavailable, match=r"NVRTC [\d.]+ refused ssd.cu:\n.*expected an expression"):
        compiler.load_code("source/ssd", (9, 0))


# ---- which one
class Library:
    """An NVRTC of a path; the CUDA version is its last number."""

    def __init__(self, path):
        if "broken" in path:
            raise OSError("cannot open shared object file")
        self.path, self.version = path, path[-2:] + ".1"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Makes a machine: paths of NVRTC by CUDA version, the CUDA version of the driver, with nvcc or without."""

    def make(libraries, driver, nvcc=None):
        nvrtc.find.cache_clear()
        monkeypatch.setattr(nvrtc, "_candidates", lambda: libraries)
        monkeypatch.setattr(compiler, "cuda_version", lambda: driver)
        monkeypatch.setattr(compiler, "_find_nvcc", lambda: nvcc)

    monkeypatch.setattr(nvrtc, "Nvrtc", Library)
    monkeypatch.setattr(compiler, "nvcc_version", lambda nvcc: "13.0.1")
    monkeypatch.setattr(compiler, "STAMP", "none")
    monkeypatch.delenv(compiler.VARIABLE, raising=False)
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    yield make
    nvrtc.find.cache_clear()


BOTH = [(12, "/a/libnvrtc.so.12"), (13, "/b/libnvrtc.so.13")]


def why(names=("source/ssd",)):
    return compiler.why_no_kernels(names, (9, 0))


def test_the_latest_that_the_driver_can_load_is_taken(machine):
    for driver, path in (((13, 0), "/b/libnvrtc.so.13"), ((12, 4), "/a/libnvrtc.so.12"), (None, "/b/libnvrtc.so.13")):
        machine(BOTH, driver)
        assert compiler.find_nvrtc().path == path and why() is None
    machine([*BOTH, (13, "/broken/libnvrtc.so.13")], (13, 0))
    assert compiler.find_nvrtc().path == "/b/libnvrtc.so.13"


def test_nvcc_is_the_first_compiler(machine, monkeypatch):
    machine(BOTH, (13, 0), nvcc="/usr/bin/nvcc")
    assert compiler.compiler_version() == "13.0.1"
    monkeypatch.setenv(compiler.VARIABLE, "nvrtc")
    assert compiler.compiler_version() == "nvrtc13.1"
    monkeypatch.setenv(compiler.VARIABLE, "nvcc")
    assert compiler.find_nvrtc() is None and compiler.compiler_version() == "13.0.1"
    monkeypatch.setenv(compiler.VARIABLE, "gcc")
    assert why() == "H264LITE_CUDA_COMPILER=gcc: use nvcc or nvrtc"
    machine(BOTH, (13, 0))
    monkeypatch.setenv(compiler.VARIABLE, "nvcc")
    assert "there is no nvcc: install the CUDA toolkit" in why()


def test_without_a_compiler_one_line_says_what_to_install(machine, monkeypatch):
    machine([], (12, 4))
    assert why().endswith(f"there is neither nvcc nor NVRTC: {INSTALL}")
    machine(BOTH[1:], (12, 4))
    assert why() == f"NVRTC 13.1 makes code that this driver, for CUDA 12.4, cannot load: {INSTALL}"
    machine(BOTH, (11, 8))
    assert why() == "NVRTC 13.1 makes code that this driver, for CUDA 11.8, cannot load: update the driver"
    monkeypatch.setattr(compiler, "compiled", lambda name, capability: Path(name))
    assert why() is None


def test_a_gpu_without_kernels_is_not_used(machine, monkeypatch):
    """`auto` takes the CPU, with the reason; a GPU that is named is refused."""
    machine([], (12, 4))
    monkeypatch.setattr(devices, "available", lambda: None)
    monkeypatch.setattr(devices, "is_real", lambda: True)
    monkeypatch.setattr(devices, "first_gpu", lambda: SimpleNamespace(capability=(9, 0)))
    config = Config.from_options(width=640, height=480)
    assert config.machine.device == "cpu" and f"neither nvcc nor NVRTC: {INSTALL})" in config.machine.device_reason
    with pytest.raises(DeviceError, match=f"device cuda: the CUDA kernels are not compiled yet, .*: {INSTALL}; use"):
        Config.from_options(width=640, height=480, device="cuda")


def test_where_libraries_lie(tmp_path, monkeypatch):
    for file in ("nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "torch/lib/libnvrtc.so.12",
                 "nvidia/cuda_nvrtc/lib/libnvrtc.alt.so.12", "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9",
                 "nvidia/cuda_nvrtc/bin/nvrtc64_120_0.dll", "nvidia/cuda_nvrtc/bin/nvrtc64_120_0.alt.dll",
                 "toolkit/lib64/libnvrtc.so.12.9.86"):  # fmt: skip
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    monkeypatch.setattr(nvrtc.sys, "path", [str(tmp_path)])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    candidates = [(cuda, path.removeprefix(f"{tmp_path}/")) for cuda, path in nvrtc._candidates() if str(tmp_path) in path]
    assert candidates == [
        (13, "nvidia/cu13/lib/libnvrtc.so.13"), (12, "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
        (12, "nvidia/cuda_nvrtc/bin/nvrtc64_120_0.dll"), (12, "torch/lib/libnvrtc.so.12"),
        (12, "toolkit/lib64/libnvrtc.so.12.9.86"),
    ]  # fmt: skip
