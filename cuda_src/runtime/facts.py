"""Properties of the GPUs of this machine, without a context and without compiling."""

import re
from pathlib import Path

from .compiler import cache_folder, compiled, find_nvcc, find_nvrtc, module_names, nvcc_version
from .device import DeviceUnavailable, load_driver
from .driver import way_in_use
from .driver_table import GpuProperties
from .library import cuda_version

_KERNEL_MODULE = Path("/proc/driver/nvidia/version")


way = way_in_use


def gpus() -> list[GpuProperties]:
    """Properties of all GPUs; empty without a driver."""
    try:
        driver = load_driver()
    except DeviceUnavailable:
        return []
    try:
        return [driver.properties(ordinal) for ordinal in range(driver.count())]
    except driver.Error:
        return []


def driver_version() -> str:
    """Version of the NVIDIA driver; empty without one."""
    try:
        match = re.search(r"\s(\d{3,}\.\d+(\.\d+)?)\s", _KERNEL_MODULE.read_text())
        if match:
            return match[1]
    except OSError:
        pass
    version = cuda_version()
    return "" if version is None else f"CUDA {version[0]}.{version[1]}"


def kernels(capability: tuple[int, int]) -> tuple[int, int]:
    """(number of kernel files compiled for a GPU of this compute capability, number of kernel files)."""
    names = module_names()
    return sum(compiled(name, capability) is not None for name in names), len(names)


def nvcc() -> str:
    """Path and version of nvcc; empty without one."""
    path = find_nvcc()
    if path is None:
        return ""
    try:
        return f"{path}, {nvcc_version(path)}"
    except Exception as error:  # a compiler that cannot report its version
        return f"{path}, which fails ({error})"


def nvrtc() -> str:
    """Path and version of the NVRTC that this driver can use; empty without one."""
    library = find_nvrtc()
    return "" if library is None else f"{library.path}, {library.version}"


def cache() -> str:
    """The folder of compiled kernel files."""
    return str(cache_folder())
