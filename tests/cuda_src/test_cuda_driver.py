"""Which way leads to the driver, what is said where none does, and NVIDIA's package over the emulated GPUs."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.cuda_src.runtime import driver as driver_module
from h264lite.cuda_src.runtime import library as library_module
from h264lite.cuda_src.runtime.bindings import Bindings
from h264lite.cuda_src.runtime.pycuda_driver import PyCuda

from ..cuda_emulator import libcuda
from ..cuda_emulator.bindings import EmulatedBindings, ThroughBindings
from ..cuda_emulator.driver import EmulatedDriver
from ..support import round_trip

PYCUDA, BINDINGS = "pycuda.driver", "cuda.bindings.driver"
INSTALL = "pip install cuda-bindings nvidia-cuda-nvrtc-cu12"


class Library:
    """libcuda of a machine with so many GPUs."""

    def __init__(self, gpus=1, cuda=12040):
        self.gpus, self.cuda = gpus, cuda

    def cuInit(self, flags):
        return 0 if self.gpus else 100

    def cuDeviceGetCount(self, count):
        count._obj.value = self.gpus
        return 0

    def cuDriverGetVersion(self, version):
        version._obj.value = self.cuda
        return 0


@pytest.fixture
def machine(monkeypatch):
    """Makes a machine: modules by name (or the text of the ImportError of an installed one), libcuda, path of nvcc."""

    def make(modules, library, nvcc=None):
        def import_module(name):
            module = modules.get(name, f"No module named '{name}'")
            if isinstance(module, str):
                raise ImportError(module)
            return module

        def find_spec(name):
            if name.startswith("cuda.") and BINDINGS not in modules:
                raise ModuleNotFoundError("No module named 'cuda'")  # as importlib does for the parent
            return next((module for module in modules if module.startswith(name)), None)

        monkeypatch.setattr(driver_module.importlib, "import_module", import_module)
        monkeypatch.setattr(driver_module.importlib.util, "find_spec", find_spec)
        monkeypatch.setattr(driver_module.shutil, "which", lambda name: nvcc)
        for module in (driver_module, library_module):
            monkeypatch.setattr(module, "driver_library", lambda: library)

    monkeypatch.delenv(driver_module.VARIABLE, raising=False)
    device_module.use_driver(None)
    return make


def reason():
    with pytest.raises(device_module.DeviceUnavailable) as failed:
        device_module.Device()
    assert device_module.available() == str(failed.value) and device_module.count() == 0
    return str(failed.value)


def test_pycuda_is_the_first_way(machine, monkeypatch):
    pycuda, package = ModuleType(PYCUDA), EmulatedBindings(EmulatedDriver())
    pycuda.Error, pycuda.MemoryError = OSError, BlockingIOError
    machine({PYCUDA: pycuda, BINDINGS: package}, Library())
    first = device_module.load_driver()
    assert isinstance(first, PyCuda) and first._cuda is pycuda and driver_module.installed() == ["pycuda", "bindings"]
    monkeypatch.setenv(driver_module.VARIABLE, "bindings")
    second = device_module.load_driver()
    assert isinstance(second, Bindings) and second._cuda is package and driver_module.installed() == ["bindings"]
    monkeypatch.setenv(driver_module.VARIABLE, "pycuda")
    assert device_module.load_driver() is first
    monkeypatch.setenv(driver_module.VARIABLE, "cupy")
    assert reason() == "H264LITE_CUDA_DRIVER=cupy: use pycuda or bindings" and driver_module.installed() == []


@pytest.mark.parametrize("pycuda", [{}, {PYCUDA: "libcurand.so.10: cannot open shared object file"}])
def test_without_pycuda_the_package_of_nvidia_is_taken(machine, pycuda):
    machine({**pycuda, BINDINGS: EmulatedBindings(EmulatedDriver(devices=2))}, Library())
    assert isinstance(device_module.load_driver(), Bindings)
    assert device_module.count() == 2 and device_module.available() is None


@pytest.mark.parametrize("modules", [{}, {PYCUDA: "libcuda.so.1: cannot open"}, {BINDINGS: SimpleNamespace()}])
def test_no_driver_says_so(machine, modules):
    """And nothing of packages, which would not help."""
    machine(modules, None)
    assert reason().startswith("no NVIDIA driver on this machine (libcuda.so.1") and "pip" not in reason()


def test_no_gpu_says_so(machine):
    machine({}, Library(gpus=0))
    assert reason() == "the NVIDIA driver reports no device (CUDA error 100)"


def test_what_to_install(machine, monkeypatch):
    machine({}, Library())
    assert reason() == f"neither pycuda nor cuda-bindings is installed: {INSTALL}"
    machine({}, Library(), nvcc="/usr/bin/nvcc")
    assert reason() == "neither pycuda nor cuda-bindings is installed: pip install pycuda"
    machine({PYCUDA: "libcurand.so.10: cannot open"}, Library())
    assert reason() == f"pycuda cannot be imported (libcurand.so.10: cannot open): {INSTALL}"
    machine({}, Library(), nvcc="/usr/bin/nvcc")
    monkeypatch.setenv(driver_module.VARIABLE, "bindings")
    assert reason() == f"no cuda-bindings is installed: {INSTALL}"


def test_a_driver_without_a_function_is_named(machine):
    class Old(EmulatedBindings):
        def cuInit(self, flags):
            raise RuntimeError("function cuInit is not found")

    machine({BINDINGS: Old(EmulatedDriver())}, Library())
    assert reason() == "the NVIDIA driver reports no usable device (cuInit: function cuInit is not found)"


def test_the_version_of_the_driver(machine):
    machine({}, Library(cuda=12040))
    assert library_module.cuda_version() == (12, 4)
    machine({}, None)
    assert library_module.cuda_version() is None


def test_errors_have_kinds_and_texts():
    for way in (ThroughBindings, lambda emulated: emulated):
        driver = way(EmulatedDriver(memory=1 << 20))
        with pytest.raises(driver.MemoryError, match=r"cuMemAlloc failed: .*out of memory"):
            driver.allocate(1 << 21)
        calls = driver.calls()
        calls.load({"source/ssd": b"source/ssd"})
        with pytest.raises(driver.Error, match="cuModuleGetFunction failed: no kernel nothing"):
            calls.function("source/ssd", "nothing", 0)
        assert issubclass(driver.MemoryError, driver.Error)


def test_a_context_frees_its_streams():
    """And one of a lost GPU nothing."""
    emulated = EmulatedDriver()
    driver = ThroughBindings(emulated)
    for lost in (False, True):
        context = driver.retain(0)
        context.push()
        context.stream(), context.urgent_stream()
        context.pop()
        assert len(driver._cuda._objects) == 2 and emulated.gpus[0].holders == 1
        context.abandon() if lost else context.detach()
        assert len(driver._cuda._objects) == 2 * lost and emulated.gpus[0].holders == lost
        with pytest.raises(driver.Error, match="released before"):
            context.detach()


@pytest.mark.parametrize("way", [ThroughBindings, lambda emulated: emulated])
def test_each_module_is_loaded_once(monkeypatch, way):
    """Calls, recordings and graphs take their kernels from it."""
    emulated, loaded, clip = EmulatedDriver(), [], round_trip.noise_clip(32, 32, 12, 5)
    load = emulated.load_emulated
    monkeypatch.setattr(emulated, "load_emulated", lambda name: loaded.append(name) or load(name))
    expected = round_trip.encode(clip, 32, 32, device="cpu", qp=30, bframes=0)[0]
    device_module.use_driver(way(emulated))
    try:
        assert round_trip.encode(clip, 32, 32, device="cuda", qp=30, bframes=0)[0] == expected
    finally:
        device_module.use_driver(None)
    assert emulated.graph_launches and len(loaded) == len(set(loaded)) and not emulated.libcuda.objects


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda-bindings is not installed")
def test_an_encode_through_the_package(tmp_path):
    """cuda-bindings accepts the calls of bindings.py: a libcuda.so.1 that leads to the emulated GPUs."""
    streams = []
    for device in ("cuda", "cpu"):
        command = [sys.executable, str(Path(libcuda.__file__)), str(tmp_path / device), device]
        said = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert said.returncode == 0, said.stderr[-2000:]
        assert said.stdout.endswith("launches, 0 allocations left\n") and (device == "cuda") != said.stdout.startswith("0 ")
        streams.append((tmp_path / device).read_bytes())
    assert streams[0] == streams[1]
