"""PyCUDA's driver or the stand-in of the tests, and the GPUs that it reports. Creates no context."""

import importlib
from types import ModuleType
from typing import Any

OLDEST = (8, 0)  # compute capability


class DeviceUnavailable(Exception):
    """No GPU can be used: no driver, no PyCUDA, no device, or a device that is too old."""


class DeviceMemoryError(Exception):
    """The memory of the GPU is too small for a request."""


class GpuLost(Exception):
    """The GPU failed while it worked: its context is unusable for the rest of the process."""


_driver: Any = None


def use_driver(driver: Any) -> None:
    """Use `driver` instead of pycuda.driver (the stand-in of the tests; None: PyCUDA again)."""
    global _driver
    _driver = driver


def is_real() -> bool:
    """Whether PyCUDA is used, and no stand-in."""
    return _driver is None


def load_driver() -> Any:
    if _driver is not None:
        return _driver
    try:
        driver: ModuleType = importlib.import_module("pycuda.driver")
    except ImportError as error:
        if "libcuda" in str(error):
            raise DeviceUnavailable(f"no NVIDIA driver on this machine ({error})") from None
        raise DeviceUnavailable(f"PyCUDA is not usable ({error}): pip install pycuda") from None
    return driver


def count_gpus(driver: Any) -> int:
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
