"""The way to the driver: PyCUDA, NVIDIA's cuda-bindings or the stand-in of the tests; the GPUs that it reports.

Creates no context. H264LITE_CUDA_DRIVER=pycuda|bindings takes that way; else PyCUDA is taken where it can be imported.
"""

import ctypes
import importlib
import importlib.util
import os
import shutil
import sys
from contextlib import suppress
from typing import Any

OLDEST = (8, 0)  # compute capability
LIBRARY = {"win32": "nvcuda.dll"}.get(sys.platform, "libcuda.so.1")
VARIABLE = "H264LITE_CUDA_DRIVER"
PYCUDA, BINDINGS = "pycuda", "bindings"
MODULES = {PYCUDA: "pycuda.driver", BINDINGS: "cuda.bindings.driver"}  # in order of preference
PACKAGES = {PYCUDA: "pycuda", BINDINGS: "cuda-bindings"}
INSTALL = "pip install cuda-bindings nvidia-cuda-nvrtc-cu12"  # needs no CUDA toolkit


class DeviceUnavailable(Exception):
    """No GPU can be used: no driver, no way to it, no device, or a device that is too old."""


class DeviceMemoryError(Exception):
    """The memory of the GPU is too small for a request."""


class GpuLost(Exception):
    """The GPU failed while it worked: its context is unusable for the rest of the process."""


_driver: Any = None
_begun_by = 0  # the process in which the driver was first used


def use_driver(driver: Any) -> None:
    """Use `driver` (the stand-in of the tests; None: the driver of this machine again)."""
    global _driver
    _driver = driver


def is_real() -> bool:
    """Whether the driver of this machine is used, and no stand-in."""
    return _driver is None


def ways() -> list[str]:
    """The ways to try, in order. DeviceUnavailable if the environment names another."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted and wanted not in MODULES:
        raise DeviceUnavailable(f"{VARIABLE}={wanted}: use {' or '.join(MODULES)}")
    return [wanted] if wanted else list(MODULES)


def installed() -> list[str]:
    """The ways to try whose packages are installed, in order; none if the environment names another. Imports none."""
    packages = []
    with suppress(DeviceUnavailable):
        for way in ways():
            with suppress(ImportError, ValueError):  # of the parent package
                if importlib.util.find_spec(MODULES[way].rpartition(".")[0]) is not None:
                    packages.append(way)
    return packages


def load_driver() -> Any:
    """The module pycuda.driver, or bindings.py with the same names. DeviceUnavailable says what is missing."""
    return _driver if _driver is not None else _choose()[1]


def way_in_use() -> str:
    """Name and version of the package that leads to the driver; empty if there is none, or a stand-in."""
    from importlib.metadata import PackageNotFoundError, version

    package = ""
    with suppress(DeviceUnavailable, PackageNotFoundError):
        package = PACKAGES[_choose()[0]] if is_real() else ""
        package += f" {version(package)}" if package else ""
    return package


def _choose() -> tuple[str, Any]:
    """(the first way that can be imported, what it imports)."""
    wanted, reasons = ways(), []
    for way in wanted:
        try:
            return way, _load(way)
        except ImportError as error:
            if "libcuda" in str(error):
                raise DeviceUnavailable(f"no NVIDIA driver on this machine ({error})") from None
            if way in installed():
                reasons.append(f"{PACKAGES[way]} cannot be imported ({error})")
    raise DeviceUnavailable(_why_no_gpu() or _advice(wanted, reasons))


def _load(way: str) -> Any:
    if way == PYCUDA:
        return importlib.import_module(MODULES[way])
    if _library() is None:  # which cuda-bindings loads at the first call; its import takes 25 ms
        raise ImportError(f"{LIBRARY} cannot be loaded")
    module = importlib.import_module(MODULES[way])
    from . import bindings

    bindings.use(module)
    return bindings


def _advice(wanted: list[str], reasons: list[str]) -> str:
    """What is missing between this machine's GPU and the encoder, and the line that installs it."""
    names = " nor ".join(PACKAGES[way] for way in wanted)
    missing = "; ".join(reasons) or f"{'neither ' if len(wanted) > 1 else 'no '}{names} is installed"
    compiles = shutil.which("nvcc") is not None  # PyCUDA is compiled when it is installed
    return f"{missing}: {'pip install pycuda' if compiles and PYCUDA in wanted else INSTALL}"


# ---- the driver itself
def _library() -> Any:
    """The driver's library; None without a driver."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


def _why_no_gpu() -> str:
    """Why no way to the driver leads to a GPU; empty if there is a GPU. Needs neither PyCUDA nor cuda-bindings."""
    library, count = _library(), ctypes.c_int()
    if library is None:
        return f"no NVIDIA driver on this machine ({LIBRARY} cannot be loaded)"
    code = library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count))
    if code or not count.value:
        return "the NVIDIA driver reports no device" + (f" (CUDA error {code})" if code else "")
    return ""


def cuda_version() -> tuple[int, int] | None:
    """The latest CUDA version that the driver of this machine supports; None without a driver."""
    library, number = _library(), ctypes.c_int()
    if library is None or library.cuDriverGetVersion(ctypes.byref(number)):
        return None
    return number.value // 1000, number.value % 1000 // 10


# ---- GPUs
def count_gpus(driver: Any) -> int:
    """Number of GPUs that the driver reports, by its first use in a process; DeviceUnavailable, in a fork of one too."""
    global _begun_by
    _begun_by = _begun_by or os.getpid()
    if _begun_by != os.getpid():
        raise DeviceUnavailable(f"process {_begun_by} has used the GPU before it was forked into this one, where CUDA "
                                "cannot work: start processes by spawn, or before the first encoder")
    try:
        driver.init()
        return int(driver.Device.count())
    except driver.Error as error:
        raise DeviceUnavailable(f"the NVIDIA driver reports no usable device ({error})") from None


def count() -> int:
    """Number of GPUs that the driver reports; 0 without a driver."""
    try:
        return count_gpus(load_driver())
    except DeviceUnavailable:
        return 0


def available() -> str | None:
    """None if a GPU can be used, else the reason. Creates no context."""
    try:
        driver = load_driver()
        if not count_gpus(driver):
            return "the NVIDIA driver reports no device"
        gpu = driver.Device(0)
        if tuple(gpu.compute_capability()) < OLDEST:
            return too_old(gpu)
    except DeviceUnavailable as error:
        return str(error)
    return None


def first_gpu() -> Any:
    """The driver's device 0, without a context."""
    driver = load_driver()
    if not count_gpus(driver):
        raise DeviceUnavailable("the NVIDIA driver reports no device")
    return driver.Device(0)


def too_old(gpu: Any) -> str:
    major, minor = gpu.compute_capability()
    return f"{gpu.name()} has compute capability {major}.{minor}; {OLDEST[0]}.{OLDEST[1]} or later is needed"
