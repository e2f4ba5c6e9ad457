"""The driver's library: whether there is one, what it says without a package; and the errors of GPUs."""

import ctypes
import sys

LIBRARY = {"win32": "nvcuda.dll"}.get(sys.platform, "libcuda.so.1")


class DeviceUnavailable(Exception):
    """No GPU can be used: no driver, no way to it, no device, or a device that is too old."""


class DeviceMemoryError(Exception):
    """The memory of the GPU is too small for a request."""


class GpuLost(Exception):
    """The GPU failed while it worked: its context is unusable for the rest of the process."""


def driver_library() -> ctypes.CDLL | None:
    """The driver's library; None without a driver."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


def why_no_gpu() -> str:
    """Why no way to the driver leads to a GPU; empty if there is a GPU. Needs neither PyCUDA nor cuda-bindings."""
    library, count = driver_library(), ctypes.c_int()
    if library is None:
        return f"no NVIDIA driver on this machine ({LIBRARY} cannot be loaded)"
    code = library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count))
    if code or not count.value:
        return "the NVIDIA driver reports no device" + (f" (CUDA error {code})" if code else "")
    return ""


def cuda_version() -> tuple[int, int] | None:
    """The latest CUDA version that the driver of this machine supports; None without a driver."""
    library, number = driver_library(), ctypes.c_int()
    if library is None or library.cuDriverGetVersion(ctypes.byref(number)):
        return None
    return number.value // 1000, number.value % 1000 // 10
