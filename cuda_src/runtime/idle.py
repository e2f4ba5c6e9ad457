"""Keeps what closed encoders have made on GPUs for later encoders of the process: arrays, recordings, graphs, kernels.

An encoder with the settings of an earlier one takes over its loop with all memory, and makes nothing anew; any other takes
a GPU with the kernels alone, if there is one. What has waited for longest is freed when there is too much, and all where an
allocation fails. Nothing is kept of a GPU that failed.
"""

import atexit
import os
import threading
from collections.abc import Hashable
from typing import Protocol, TypeVar

from .device import Device, GpuLost
from .driver import is_real, load_driver

MOST_GPU_MEMORY, MOST_HOST_MEMORY = 4 << 30, 5 << 28  # bytes that are kept: of encodes of 2160p too
GPU_SHARE = 16  # and at most 1 / GPU_SHARE of a GPU's memory
MOST_USERS, MOST_UNUSED = 32, 4


class User(Protocol):
    """What uses a GPU, and can be taken over by a later encoder."""

    @property
    def gpu(self) -> Device:
        """The GPU. Its memory is all of this user."""

    def close(self) -> None:
        """Free the memory; `keep` the GPU."""


class Unused:
    """A GPU with its kernels, and without memory."""

    def __init__(self, gpu: Device) -> None:
        self.gpu = gpu

    def close(self) -> None:
        """Release it."""
        self.gpu.close()


UserT = TypeVar("UserT", bound=User)
Kept = list[tuple[int, Hashable, User]]  # (process, key, user), those of the last encoders last
_lock = threading.Lock()
_users: Kept = []
_unused: Kept = []  # by ordinal
_registered = False
keeping: bool | None = None  # of tests: whether anything is kept; None: with the driver of this machine


def is_keeping() -> bool:
    """Whether anything is kept: not with a stand-in for the driver."""
    return is_real() if keeping is None else keeping


def take(ordinal: int = 0) -> Device:
    """The GPU with this number: an unused one, or a new Device."""
    unused = _take(_unused, ordinal)
    return Device(ordinal) if unused is None else unused.gpu


def take_user(key: Hashable, user_class: type[UserT]) -> UserT | None:
    """What was kept with this key, if it is intact."""
    user = _take(_users, key)
    assert user is None or isinstance(user, user_class)
    return user


def keep(gpu: Device) -> None:
    """Instead of `gpu.close()`, by its last user, whose streams have ended: keep it, or close it if it cannot be kept."""
    if gpu.lost or not is_keeping():
        gpu.close()
        return
    try:
        gpu.reset()
    except GpuLost:
        gpu.close()
        return
    except BaseException:
        gpu.close()
        raise
    with _lock:
        _append(_unused, gpu.ordinal, Unused(gpu))
        too_many = _cut(_unused, len(_unused) - MOST_UNUSED)
    _close(too_many)


def keep_user(key: Hashable, user: User) -> None:
    """Instead of `user.close()`: keep it for one that asks for an equal key. Its work has ended."""
    try:
        with user.gpu as gpu:
            most_gpu = min(MOST_GPU_MEMORY, gpu.driver.memory_left()[1] // GPU_SHARE)
    except GpuLost:
        user.close()
        return
    with _lock:
        _append(_users, key, user)
        allocated = [one.gpu.allocated_bytes for _, _, one in _users]
        first = max(0, len(_users) - MOST_USERS)
        while any(sum(column[first:]) > most for column, most in zip(zip(*allocated), (most_gpu, MOST_HOST_MEMORY))):
            first += 1
        too_many = _cut(_users, first)
    _close(too_many)


def release_gpu() -> None:
    """Free the GPU and host memory that is kept for later encoders, and release the CUDA contexts. Encoders stay usable."""
    release_users()  # their GPUs become unused
    with _lock:
        unused = _cut(_unused, len(_unused))
    _close(unused)


def release_users() -> bool:
    """Free the memory that is kept; whether there was any."""
    with _lock:
        users = _cut(_users, len(_users))
    _close(users)
    return bool(users)


Device.free_idle = staticmethod(release_users)


def _take(kept: Kept, key: Hashable) -> User | None:
    """The last one with this key that is intact. Those of a fork's parent are dropped: device.py holds them as they are."""
    while True:
        with _lock:
            kept[:] = [one for one in kept if one[0] == os.getpid()]
            at = next((k for k in reversed(range(len(kept))) if kept[k][1] == key), None)
            if at is None:
                return None
            user = kept.pop(at)[2]
        gpu = user.gpu
        if gpu.driver is load_driver() and gpu.intact():
            return user
        gpu.lost = gpu.lost or f"{gpu.name} was reset"
        user.close()


def _append(kept: Kept, key: Hashable, user: User) -> None:
    global _registered
    kept.append((os.getpid(), key, user))
    if not _registered:
        atexit.register(release_gpu)
        _registered = True


def _cut(kept: Kept, count: int) -> Kept:
    """The first ones, which are kept no longer."""
    first = kept[: max(0, count)]
    del kept[: max(0, count)]
    return first


def _close(kept: Kept) -> None:
    for process, _, user in kept:
        if process == os.getpid():
            user.close()
