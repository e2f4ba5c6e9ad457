"""Real GPUs that fail when they are told, as the emulated ones do: for the same tests of what is done then.

The GPUs stay whole, and so does their context, which later tests need: only what the encoder asks of them fails, after all
they were given before. What a GPU does that is broken indeed is tested in processes of their own (broken_gpu.py of
tests/support).
"""

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.cuda_src.runtime.device import Device, GpuLost
from h264lite.cuda_src.runtime.recording import Recording

from ..inside import allocations_of

KERNEL, COPY = "the kernel ", "mem"  # how the names of launches, and of copies and fills, begin
FAULT = "an injected fault"


def skip_without(gpus: int = 1) -> None:
    """Skips the test if the machine has not so many real GPUs that can be used, with the reason."""
    device_module.use_driver(None)
    reason = "H264LITE_TEST_GPU=0" if os.environ.get("H264LITE_TEST_GPU") == "0" else device_module.available()
    if reason is None and device_module.count() < gpus:
        reason = f"{gpus} GPUs are needed, and the driver reports {device_module.count()}"
    if reason:
        pytest.skip(reason)


@cache
def keep_contexts() -> None:
    """Until the end of the process: the first user of a primary context waits for it for tenths of a second."""
    driver = device_module.load_driver()
    for ordinal in range(device_module.count()):
        atexit.register(driver.retain(ordinal).detach)


class RealGpu:
    """See the emulated GPU."""

    def __init__(self, driver: "RealGpus") -> None:
        self.driver = driver
        self.launches = self.allocated = 0
        self.fail_after: int | None = None
        self.silent = False

    def dead(self) -> bool:
        driver = self.driver
        mine = self.fail_after is not None and self.launches > self.fail_after
        return mine or (driver.fail_after is not None and driver.launches > driver.fail_after)


class RealGpus:
    """As the EmulatedDriver: after `fail_after` launches the next one fails, or with `silent` it and what follows do nothing,
    and waiting callers are told. monkeypatch: of the test that has the first `gpus` GPUs.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
        self.launches, self.silent = 0, False
        self.fail_after: int | None = None
        self.log: list[tuple[str]] = []  # names of kernels
        self.gpus = [RealGpu(self) for _ in range(gpus)]
        self._devices: list[Device] = []
        self._lock = threading.RLock()
        for name, mine in (
            ("__init__", self._make), ("_allocate", self._allocate), ("_do", self._do), ("_run", self._run),
            ("replay", self._replay), ("synchronize", self._synchronize), ("done", self._done),
        ):  # fmt: skip
            monkeypatch.setattr(Device, name, self._around(getattr(Device, name), mine))

    @property
    def allocations(self) -> list[Any]:
        """Arrays of devices that were not closed."""
        return [allocation for device in self._devices for allocation in allocations_of(device)]

    @staticmethod
    def _around(real: Callable[..., Any], mine: Callable[..., Any]) -> Callable[..., Any]:
        def method(device: Device, *arguments: Any, **more: Any) -> Any:
            return mine(real, device, *arguments, **more)

        return method

    def _make(self, real: Callable[..., None], device: Device, *arguments: Any, **more: Any) -> None:
        real(device, *arguments, **more)
        self._devices.append(device)

    def _allocate(self, real: Callable[..., Any], device: Device, *arguments: Any) -> Any:
        self.gpus[device.ordinal].allocated += 1
        return real(device, *arguments)

    def _do(
        self, real: Callable[..., Any], device: Device, what: str, function: Callable[..., Any], *arguments: Any
    ) -> Any:
        device.check()
        if function == device.calls.start and not self._launches(device, what):
            return None
        return real(device, what, function, *arguments)

    def _launches(self, device: Device, what: str) -> bool:
        """Count a launch; False if the GPU is dead without a word."""
        gpu = self.gpus[device.ordinal]
        self._count(gpu, 1)
        self.log.append((what.removeprefix(KERNEL),))
        if gpu.dead() and not (gpu.silent or self.silent):
            raise self._lost(device, what)
        return not gpu.dead()

    def _run(self, real: Callable[..., None], device: Device, what: str, *arguments: Any) -> None:
        if device._recording is not None or not what.startswith(COPY) or not self.gpus[device.ordinal].dead():
            real(device, what, *arguments)

    def _replay(self, real: Callable[..., None], device: Device, recording: Recording, **how: bool) -> None:
        """In one piece as long as nothing fails; else call for call, up to the one that does."""
        gpu = self.gpus[device.ordinal]
        names = [name for _, name, _ in recording.launches()]
        self._count(gpu, len(names))
        if not gpu.dead():
            self.log += [(name,) for name in names]
            real(device, recording, **how)
            return
        self._count(gpu, -len(names))
        for command in recording.commands:
            of_kernel = command.launch is not None
            if self._launches(device, command.name) if of_kernel else not (command.name.startswith(COPY) and gpu.dead()):
                real(device, recording.subset([command]), **how)

    def _synchronize(self, real: Callable[..., None], device: Device, what: Any = None) -> None:
        device.check()
        if self.gpus[device.ordinal].dead():
            raise self._lost(device, "synchronize")
        real(device, what)

    def _done(self, real: Callable[..., bool], device: Device, event: Any) -> bool:
        device.check()
        if self.gpus[device.ordinal].dead():
            raise self._lost(device, "an event")
        return real(device, event)

    def _count(self, gpu: RealGpu, launches: int) -> None:
        with self._lock:
            self.launches += launches
            gpu.launches += launches

    @staticmethod
    def _lost(device: Device, what: str) -> GpuLost:
        """A GPU that is lost writes nothing to the host any more, so this one is waited for first."""
        with suppress(device.driver.Error):
            device.calls.synchronize()
        return device.failed(what, FAULT)
