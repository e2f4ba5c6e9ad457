"""Fixtures of the CUDA tests: each test runs on the emulated device, and on a real one if available; or, `driver`,
whole encodes on GPUs that fail on demand: emulated ones, and with `on_gpus` real ones too if enough are available.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.cuda_src.runtime import idle
from h264lite.cuda_src.runtime.driver import BINDINGS, VARIABLE
from h264lite.encoder.settings.tuning_lookup import this_machine

from ..inside import take_gpu_for_any_size
from .bindings import ThroughBindings
from .driver import EmulatedDriver, EmulatedLibcuda
from .real import RealGpus, keep_contexts, skip_without

REAL = pytest.param("gpu", marks=pytest.mark.gpu)
MODES = ("emulated", "emulated-reversed", REAL)  # orders of the emulated threads: ascending, descending
WAYS = ("emulated", "emulated-bindings", REAL)  # to the driver; on a real GPU the first of driver.py
on_gpus = pytest.mark.parametrize("driver", ("emulated", REAL), indirect=True)
both_ways = pytest.mark.parametrize("driver", WAYS, indirect=True)


def stand_in(driver: EmulatedDriver, mode: str = "") -> Any:
    """Emulated GPUs under the names of pycuda.driver, or through bindings.py: by the mode, or all by H264LITE_CUDA_DRIVER."""
    bindings = mode.endswith("bindings") or os.environ.get(VARIABLE) == BINDINGS
    return ThroughBindings(driver) if bindings else driver


def is_emulated(gpu: device_module.Device) -> bool:
    """Whether a GPU is none."""
    return isinstance(gpu.calls.library, EmulatedLibcuda)


def open_device(mode: str) -> device_module.Device:
    if mode == "gpu":
        skip_without()
        keep_contexts()
        return device_module.Device()
    device_module.use_driver(stand_in(EmulatedDriver(seed=1 if mode.endswith("reversed") else 0), mode))
    try:
        return device_module.Device()
    finally:
        device_module.use_driver(None)


@pytest.fixture(params=MODES)
def device(request: pytest.FixtureRequest) -> Iterator[device_module.Device]:
    gpu = open_device(request.param)
    with gpu:
        yield gpu
        gpu.synchronize()
    gpu.close()


@pytest.fixture(params=MODES)
def gpu(request: pytest.FixtureRequest) -> Iterator[EmulatedDriver | None]:
    """A driver for device="cuda": the emulated one, or None for the real one."""
    if request.param == "gpu":
        skip_without()
        keep_contexts()
        yield None
        return
    emulated = EmulatedDriver(seed=int(request.param.endswith("reversed")))
    device_module.use_driver(stand_in(emulated, request.param))
    yield emulated
    device_module.use_driver(None)


@pytest.fixture
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedDriver | RealGpus]:
    """GPUs for device="cuda": GPUS of the test's file, or one; `auto` takes one for frames of any size."""
    take_gpu_for_any_size(monkeypatch.setattr)
    monkeypatch.setenv("H264LITE_WORKERS", "0")  # a process has GPUs of its own (tests/encoder/test_workers.py)
    gpus = getattr(request.module, "GPUS", 1)
    mode = getattr(request, "param", "emulated")
    if mode == "gpu":
        skip_without(gpus)
        keep_contexts()
        no_tuning = Path("no tuning")  # by which `auto` might take the CPU
        monkeypatch.setattr("h264lite.encoder.settings.tuning_lookup.cache_file", lambda: no_tuning)
        idle.release_gpu()
        monkeypatch.setattr(idle, "keeping", False)  # the tests count what each encoder makes and leaves
        yield RealGpus(monkeypatch, gpus)
        return
    emulated = EmulatedDriver(devices=gpus)
    device_module.use_driver(stand_in(emulated, mode))
    this_machine.cache_clear()  # it has other GPUs now
    yield emulated
    device_module.use_driver(None)
    this_machine.cache_clear()


def check_that_nothing_grows(driver: EmulatedDriver, still: Sequence[Any], make: Callable[[], Any]) -> None:
    """60 frames: after the 25th neither the GPU's memory nor pinned memory nor the events grow; at the end all is free."""
    pinned: list[Any] = []
    driver.pagelocked_empty = lambda shape, kind: pinned.append(shape) or np.empty(shape, kind)
    with make() as encoder:
        for n in range(60):
            encoder.encode(tuple(still[n % len(still)]))
            if n == 24:
                before, events = (len(driver.allocations), len(pinned)), driver.events
        assert (len(driver.allocations), len(pinned)) == before
        assert driver.events <= events + 4  # of frames under way, as many as threads are late; 35 would be one a frame
        encoder.flush()
    assert not driver.allocations


def launches_by_frame(driver: EmulatedDriver, clip: Sequence[Any], make: Callable[[], Any]) -> list[int]:
    """How many launches there were before each frame of the encoder that `make` makes, and after the last."""
    counts = [driver.launches]
    with make() as encoder:
        for planes in clip:
            encoder.encode(tuple(planes))
            counts.append(driver.launches)
        encoder.flush()
    return counts
