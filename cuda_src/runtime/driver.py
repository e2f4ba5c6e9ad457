"""PyCUDA's driver, or the tests' stand-in, and which GPUs it reports; takes no context."""

import importlib
from types import ModuleType
from typing import Any

OLDEST = (8, 0)  # compute capability


class DeviceUnavailable(Exception):
    """There is no GPU to use: no driver, no PyCUDA, no device, too old a device."""


class DeviceMemoryError(Exception):
    """The GPU's memory does not hold what was asked for."""


class GpuLost(Exception):
    """The GPU failed while it worked: its context is unusable for the rest of the process."""


_driver: Any = None


def use_driver(driver: Any) -> None:
    """Takes `driver` in place of pycuda.driver (the tests' stand-in; None: back to PyCUDA)."""
    global _driver
    _driver = driver


def is_real() -> bool:
    """Whether no stand-in is in use."""
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
    """How many GPUs the driver reports; 0 without a driver."""
    try:
        return count_gpus(load_driver())
    except DeviceUnavailable:
        return 0


def available() -> str | None:
    """None if a GPU can be used, else why not. Takes no context."""
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
