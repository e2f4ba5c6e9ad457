"""The way to the driver: PyCUDA, NVIDIA's cuda-bindings or the stand-in of the tests; the GPUs that it reports.

Creates no context. H264LITE_CUDA_DRIVER=pycuda|bindings takes that way; else PyCUDA is taken where it can be imported.
"""

import importlib
import importlib.util
import os
import shutil
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from .library import LIBRARY, DeviceUnavailable, driver_library, why_no_gpu

if TYPE_CHECKING:
    from .driver_table import Driver, GpuProperties

OLDEST = (8, 0)  # compute capability
VARIABLE = "H264LITE_CUDA_DRIVER"
PYCUDA, BINDINGS = "pycuda", "bindings"
MODULES = {PYCUDA: "pycuda.driver", BINDINGS: "cuda.bindings.driver"}  # in order of preference
PACKAGES = {PYCUDA: "pycuda", BINDINGS: "cuda-bindings"}
INSTALL = "pip install cuda-bindings nvidia-cuda-nvrtc-cu12"  # needs no CUDA toolkit

_driver: "Driver | None" = None
_begun_by = 0  # the process in which the driver was first used


def use_driver(driver: "Driver | None") -> None:
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


def load_driver() -> "Driver":
    """The way to the driver, the same each time. DeviceUnavailable says what is missing."""
    return _driver if _driver is not None else _choose()[1]


def way_in_use() -> str:
    """Name and version of the package that leads to the driver; empty if there is none, or a stand-in."""
    from importlib.metadata import PackageNotFoundError, version

    package = ""
    with suppress(DeviceUnavailable, PackageNotFoundError):
        package = PACKAGES[_choose()[0]] if is_real() else ""
        package += f" {version(package)}" if package else ""
    return package


def _choose() -> tuple[str, "Driver"]:
    """(name of the first way that can be imported, that way)."""
    wanted, reasons = ways(), []
    for way in wanted:
        try:
            return way, _load(way)
        except ImportError as error:
            if "libcuda" in str(error):
                raise DeviceUnavailable(f"no NVIDIA driver on this machine ({error})") from None
            if way in installed():
                reasons.append(f"{PACKAGES[way]} cannot be imported ({error})")
    raise DeviceUnavailable(why_no_gpu() or _advice(wanted, reasons))


def _load(way: str) -> "Driver":
    if way == BINDINGS and driver_library() is None:  # which cuda-bindings loads at the first call; its import takes 25 ms
        raise ImportError(f"{LIBRARY} cannot be loaded")
    return _way_through(way, importlib.import_module(MODULES[way]))


@cache
def _way_through(way: str, module: object) -> "Driver":
    if way == PYCUDA:
        from .pycuda_driver import PyCuda

        return PyCuda(module)
    from .bindings import Bindings

    return Bindings(module)


def _advice(wanted: list[str], reasons: list[str]) -> str:
    """What is missing between this machine's GPU and the encoder, and the line that installs it."""
    names = " nor ".join(PACKAGES[way] for way in wanted)
    missing = "; ".join(reasons) or f"{'neither ' if len(wanted) > 1 else 'no '}{names} is installed"
    compiles = shutil.which("nvcc") is not None  # PyCUDA is compiled when it is installed
    return f"{missing}: {'pip install pycuda' if compiles and PYCUDA in wanted else INSTALL}"


# ---- GPUs
def count_gpus(driver: "Driver") -> int:
    """Number of GPUs that the driver reports, by its first use in a process; DeviceUnavailable, in a fork of one too."""
    global _begun_by
    _begun_by = _begun_by or os.getpid()
    if _begun_by != os.getpid():
        raise DeviceUnavailable(
            f"process {_begun_by} has used the GPU before it was forked into this one, where CUDA "
            "cannot work: start processes by spawn, or before the first encoder"
        )
    try:
        return driver.count()
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
        gpu = first_gpu()
    except DeviceUnavailable as error:
        return str(error)
    return too_old(gpu) if gpu.capability < OLDEST else None


def first_gpu() -> "GpuProperties":
    """Properties of the driver's device 0. DeviceUnavailable says why there is none."""
    driver = load_driver()
    if not count_gpus(driver):
        raise DeviceUnavailable("the NVIDIA driver reports no device")
    return driver.properties(0)


def too_old(gpu: "GpuProperties") -> str:
    major, minor = gpu.capability
    return f"{gpu.name} has compute capability {major}.{minor}; {OLDEST[0]}.{OLDEST[1]} or later is needed"
