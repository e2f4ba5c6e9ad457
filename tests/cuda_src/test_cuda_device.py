"""The GPU's wrapper on the stand-in: messages, pools, a lost GPU; and that importing costs no CUDA."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from h264lite.cuda_src.inter.interpolate import extend_borders
from h264lite.cuda_src.runtime import device as device_module

from ..cuda_emulator.driver import Context, EmulatedDriver, Error
from ..cuda_emulator.fixtures import stand_in


@pytest.fixture(params=["emulated", "emulated-bindings"])
def driver(request):
    emulated = EmulatedDriver()
    device_module.use_driver(stand_in(emulated, request.param))
    yield emulated
    device_module.use_driver(None)


def test_import_takes_no_cuda():
    code = ("import sys, h264lite.cuda_src.runtime.device, h264lite.cuda_src.search.full_search; "
            "assert 'pycuda' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_old_gpu_and_absent_gpu():
    device_module.use_driver(EmulatedDriver(capability=(7, 5)))
    with pytest.raises(device_module.DeviceUnavailable, match=r"compute capability 7\.5; 8\.0 or later"):
        device_module.Device()
    device_module.use_driver(EmulatedDriver(devices=0))
    assert device_module.available() == "the NVIDIA driver reports no device"
    with pytest.raises(device_module.DeviceUnavailable, match="device 2 was asked for"):
        device_module.Device(2)
    device_module.use_driver(None)


def test_out_of_memory_names_the_need(driver):
    driver.memory = 1 << 20
    lacking = pytest.raises(device_module.DeviceMemoryError, match="references of 4096x2304")
    with device_module.Device() as gpu, lacking:
        gpu.array((1 << 22,), np.uint8, "references of 4096x2304")


def test_a_fault_loses_the_gpu(driver):
    gpu = device_module.Device()
    with gpu:
        plane = gpu.array((64, 64), np.uint8).fill(1)
        extend_borders(plane, 16)
        driver.fail_after = driver.launches
        with pytest.raises(device_module.GpuLost, match="extend_borders"):
            extend_borders(plane, 16)
        driver.fail_after = None
        with pytest.raises(device_module.GpuLost):  # once lost, nothing touches it again
            extend_borders(plane, 16)
    with pytest.raises(device_module.GpuLost):
        gpu.__enter__()


BORDERS, DIFFERENCES = "inter/interpolate", "source/ssd"


def test_kernels_are_given_early(driver, monkeypatch):
    """By a thread; a launch then loads no more. `close` waits for it."""
    loaded, load, begun, may_load = [], driver.load_emulated, threading.Event(), threading.Event()

    def slowly(name):
        begun.set()
        may_load.wait(60)
        loaded.append((name, threading.current_thread() is threading.main_thread()))
        return load(name)

    monkeypatch.setattr(driver, "load_emulated", slowly)
    gpu = device_module.Device()
    with gpu:
        gpu.load([DIFFERENCES, BORDERS])
        assert begun.wait(60) and not loaded
        may_load.set()
        extend_borders(gpu.array((64, 64), np.uint8).fill(1), 16)
        assert loaded == [(BORDERS, False), (DIFFERENCES, False)]
        gpu.load([BORDERS])
    gpu.close()
    assert len(loaded) == 2


def test_a_file_that_cannot_be_loaded_fails_where_it_is_needed(driver, monkeypatch):
    load = driver.load_emulated

    def failing(name):
        if name == DIFFERENCES:
            raise Error("no such code")
        return load(name)

    monkeypatch.setattr(driver, "load_emulated", failing)
    gpu = device_module.Device()
    with gpu:
        gpu.load([DIFFERENCES, BORDERS])
        gpu._modules.close()
        extend_borders(gpu.array((64, 64), np.uint8).fill(1), 16)
        assert not gpu.lost
        with pytest.raises(device_module.GpuLost, match=r"the kernel nothing of source/ssd\.cu: .*no such code"):
            gpu.launch(DIFFERENCES, "nothing", (1,), (1,), ())


def test_a_write_outside_is_found(driver):
    with device_module.Device() as gpu:
        plane = gpu.array((64, 64), np.uint8).fill(1)
        lie = device_module.DeviceArray(gpu, plane.ptr, (66, 64), np.uint8)
        extend_borders(lie, 16)
        with pytest.raises(device_module.GpuLost, match="outside an array"):
            gpu.synchronize()


def test_pool_reuses_and_views_share(driver):
    with device_module.Device() as gpu:
        a = gpu.upload(np.arange(24, dtype=np.int32).reshape(2, 3, 4))
        assert np.array_equal(a[1].get(), np.arange(12, 24).reshape(3, 4))
        assert np.array_equal(a[0:1].get(), np.arange(12).reshape(1, 3, 4))
        count = len(driver.allocations)
        gpu.release(a)
        assert gpu.array((2, 3, 4), np.int32).ptr == a.ptr and len(driver.allocations) == count
        assert a.__cuda_array_interface__["shape"] == (2, 3, 4)
        with pytest.raises(ValueError, match="does not match"):
            a.put(np.zeros(3, np.int32))


def test_contexts_are_pushed_by_thread(driver):
    gpu = device_module.Device()
    failures = []

    def work():
        try:
            with gpu:
                gpu.upload(np.zeros(4, np.uint8))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("lost", (False, True))
@pytest.mark.parametrize("keep_host", (False, True))
def test_who_has_page_locked_memory_has_the_context(driver, keep_host, lost):
    """Which is given back unless arrays of the host live on; and never once it is lost: no call for it succeeds."""
    gpu = device_module.Device()
    with gpu:
        array = gpu.pinned((64,), np.uint8)
        array[:] = 7
        plane = gpu.array((64, 64), np.uint8)
        if lost:
            driver.fail_after = driver.launches
            with pytest.raises(device_module.GpuLost):
                extend_borders(plane, 16)
    gpu.close(keep_host)
    assert driver.gpus[0].holders == (keep_host or lost)
    assert (array == 7).all() == (keep_host or lost)
    assert not getattr(gpu.context, "_streams", None)
    if lost or not keep_host:
        with pytest.raises(gpu.driver.Error):
            gpu.context.detach()


def test_a_context_may_tell_of_a_kernel_that_failed(driver, monkeypatch):
    """Any call of the driver may; what failed first is what is told."""
    gpu, pop = device_module.Device(), Context.pop

    def failing(*arguments):
        if not arguments:
            pop()
        raise Error("an illegal memory access was encountered")

    monkeypatch.setattr(Context, "pop", failing)
    with pytest.raises(device_module.GpuLost, match=r"failed in a pop of its context: .*an illegal"), gpu:
        pass
    gpu.lost = None
    with pytest.raises(device_module.GpuLost, match="failed in a kernel: first"), gpu:
        raise gpu.failed("a kernel", "first")
    gpu.lost = None
    monkeypatch.setattr(Context, "push", failing)
    with pytest.raises(device_module.GpuLost, match=r"failed in a push of its context: .*an illegal"), gpu:
        pass
