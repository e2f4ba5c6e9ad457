"""Keeps the GPU of the last encoder that was closed, with its kernels and memory, for the next encoder of the process.

So a later encoder neither loads kernels nor allocates or registers memory. At most one GPU is kept, up to a limit of memory,
and none that failed.
"""

import atexit
import os
import threading

from .device import Device, GpuLost
from .driver import is_real, load_driver

MOST_GPU_MEMORY, MOST_HOST_MEMORY = 256 << 20, 64 << 20  # bytes that are kept
_lock = threading.Lock()
_kept: tuple[int, Device] | None = None  # (process, GPU)
_registered = False
keeping: bool | None = None  # of tests: whether GPUs are kept; None: those of the driver of this machine


def take(ordinal: int = 0) -> Device:
    """The GPU with this number: the one that is kept, or a new Device."""
    global _kept
    with _lock:
        kept, device = _kept, None if _kept is None else _kept[1]
        if kept is not None and kept[0] != os.getpid():
            _kept = device = None  # a fork: device.py keeps it as it is
        elif device is not None and (device.ordinal != ordinal or device.driver is not load_driver()):
            device = None
        else:
            _kept = None
    if device is None:
        return Device(ordinal)
    if device.intact():
        return device
    device.lost = device.lost or f"{device.name} was reset"
    device.close()
    return Device(ordinal)


def keep(device: Device) -> None:
    """Instead of `device.close()`, by its last user, whose streams have ended: keep it, or close it if it cannot be kept."""
    global _kept, _registered
    if device.lost or not (is_real() if keeping is None else keeping):
        device.close()
        return
    try:
        device.reset()
    except GpuLost:
        device.close()
        return
    except BaseException:
        device.close()
        raise
    gpu, host = device.held_bytes
    if gpu > MOST_GPU_MEMORY or host > MOST_HOST_MEMORY:
        device.close()
        return
    with _lock:
        before, _kept = _kept, (os.getpid(), device)
        if not _registered:
            atexit.register(release_gpu)
            _registered = True
    _close(before)


def release_gpu() -> None:
    """Free the GPU and host memory that is kept for the next encoder, and release the CUDA context. Encoders stay usable."""
    global _kept
    with _lock:
        before, _kept = _kept, None
    _close(before)


def _close(before: tuple[int, Device] | None) -> None:
    if before is not None and before[0] == os.getpid():
        before[1].close()
