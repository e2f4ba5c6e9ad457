"""Page-locked arrays from blocks of large pages: zeros, apart from each other, given back; and where the driver refuses."""

import ctypes
import gc
import mmap
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from h264lite.cuda_src.runtime import pinned
from h264lite.cuda_src.runtime.pinned import ALIGNED, LARGE_PAGE, LARGEST_BLOCK, PREPARED, PinnedMemory


class FakeDriver:
    """What is registered, by address; refuses the n-th block, or says that a GPU has another address for it."""

    def __init__(self, refused=99, elsewhere=False, kept=False):
        self.sizes, self.given_back, self.refused, self.elsewhere, self.kept = {}, [], refused, elsewhere, kept

    def cuMemHostRegister_v2(self, address, size, flags):
        assert flags.value == 3 and address.value % LARGE_PAGE == 0 and size.value % LARGE_PAGE == 0
        if len(self.sizes) == self.refused:
            return 801
        self.sizes[address.value] = size.value
        return 0

    def cuMemHostUnregister(self, address):
        self.given_back.append(address.value)
        return 999 if self.kept else 0

    def cuMemHostGetDevicePointer_v2(self, there, address, flags):
        there._obj.value = address.value + 64 * self.elsewhere
        return 0


class DriverOfThreads(FakeDriver):
    """With the functions by which threads share a context; contexts: of those that register."""

    def __init__(self, refused=99):
        super().__init__(refused)
        self.contexts, self.current, self._lock = [], threading.local(), threading.Lock()

    def cuCtxGetCurrent(self, there):
        there._obj.value = 77
        return 0

    def cuCtxSetCurrent(self, context):
        self.current.value = context.value
        return 0

    def cuMemHostRegister_v2(self, address, size, flags):
        self.contexts.append((threading.current_thread() is threading.main_thread(), getattr(self.current, "value", None)))
        with self._lock:  # what is refused depends on how many there are
            return super().cuMemHostRegister_v2(address, size, flags)


needs_large_pages = pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="no MADV_HUGEPAGE on this system")


@needs_large_pages
def test_arrays_of_zeros_apart_from_each_other():
    driver = FakeDriver()
    memory, arrays = PinnedMemory(driver), []
    kinds = ((3,), np.uint8), ((5, 7), np.int16), ((1080, 1920), np.uint8), ((0, 16), np.int16)
    for k, (shape, dtype) in enumerate(9 * kinds):
        array = memory.zeros(shape, dtype)
        assert array.shape == shape and array.dtype == dtype and not array.any() and array.flags.c_contiguous
        array[...] = k + 1
        arrays.append(array)
    assert all((array == k + 1).all() for k, array in enumerate(arrays))
    spans = sorted((array.ctypes.data, array.nbytes) for array in arrays if array.size)
    assert all(at % ALIGNED == 0 for at, _ in spans)
    for at, size in spans:
        assert sum(begin <= at and at + size <= begin + whole for begin, whole in driver.sizes.items()) == 1
    sizes = list(driver.sizes.values())
    assert sizes[0] == LARGE_PAGE and sizes == sorted(sizes) and len(sizes) < 7, "few blocks, small ones for small pictures"
    assert driver.sizes.keys() <= pinned._registered.keys()
    memory.close()
    assert not driver.sizes.keys() & pinned._registered.keys()
    assert driver.given_back == list(driver.sizes)
    assert all((array == k + 1).all() for k, array in enumerate(arrays)), "arrays stay what they are"
    assert memory.zeros((2 * LARGEST_BLOCK,), np.uint8).nbytes == 2 * LARGEST_BLOCK
    memory.close()


def said_of_the_mapping(address, name):
    """Words of the kernel's line with that name, of the mapping with that address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if span := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(span[1], 16) <= address < int(span[2], 16)
        elif inside and line.startswith(f"{name}:"):
            return line.split()[1:]
    raise AssertionError("no such mapping")


def kibibytes_of_large_pages(address):
    return int(said_of_the_mapping(address, "AnonHugePages")[0])


@needs_large_pages
def test_pages_are_large():
    mapping = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapping.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(mapping, np.uint8)
    whole[::ALIGNED] = 0
    if not kibibytes_of_large_pages(whole.ctypes.data):
        pytest.skip("this system has no large pages to give")
    memory = PinnedMemory(FakeDriver())
    array = memory.zeros((6 << 20,), np.uint8)
    assert kibibytes_of_large_pages(array.ctypes.data) > 0
    memory.close()


@needs_large_pages
def test_a_fork_leaves_pages_where_the_gpu_reads_them():
    """dc: a child gets no copy, for which the parent's pages might have to move."""
    array = PinnedMemory(FakeDriver()).zeros((LARGE_PAGE,), np.uint8)
    assert "dc" in said_of_the_mapping(array.ctypes.data, "VmFlags")


@needs_large_pages
def test_what_the_driver_still_has_stays_mapped():
    """Of a GPU that is lost nothing is given back, and a process may have other contexts."""
    for lost in (True, False):
        driver = FakeDriver(kept=not lost)
        memory = PinnedMemory(driver)
        address = memory.zeros((8,), np.uint8).ctypes.data
        if not lost:
            memory.close()
        del memory
        gc.collect()
        assert pinned._registered.pop(address).ctypes.data == address


@needs_large_pages
def test_threads_prepare_blocks_where_much_is_asked_for():
    driver = DriverOfThreads()
    memory = PinnedMemory(driver)
    memory.zeros((LARGEST_BLOCK // 2,), np.uint8)
    assert driver.contexts == [(True, None)], "little is asked for"
    arrays = [memory.zeros((LARGEST_BLOCK,), np.uint8) for _ in range(3)]
    for k, array in enumerate(arrays):
        assert not array.any()
        array[:] = k + 1
    assert memory.nbytes == LARGEST_BLOCK // 2 + (3 + PREPARED) * LARGEST_BLOCK
    assert all((array == k + 1).all() for k, array in enumerate(arrays))
    assert memory.zeros((2 * LARGEST_BLOCK,), np.uint8).nbytes == 2 * LARGEST_BLOCK, "more than a prepared block"
    memory.close()
    assert driver.contexts.count((True, None)) == 3 and driver.contexts.count((False, 77)) == 2 + PREPARED
    assert sorted(driver.given_back) == sorted(driver.sizes) and not memory.nbytes


@needs_large_pages
def test_a_driver_that_refuses_a_thread():
    memory = PinnedMemory(DriverOfThreads(refused=2))
    arrays = [memory.zeros((LARGEST_BLOCK,), np.uint8) for _ in range(4)]
    assert arrays[0] is not None and arrays[-1] is None
    memory.close()


@needs_large_pages
def test_what_is_expected_is_prepared():
    """From a large block on: small arrays are then cut from it, too."""
    driver = DriverOfThreads()
    memory = PinnedMemory(driver)
    memory.expect(LARGEST_BLOCK - 1)
    assert not memory.nbytes
    memory.expect(LARGEST_BLOCK)
    assert memory.nbytes == PREPARED * LARGEST_BLOCK
    arrays = [memory.zeros((LARGE_PAGE,), np.uint8) for _ in range(3)]
    assert all(not array.any() for array in arrays) and memory.nbytes == (1 + PREPARED) * LARGEST_BLOCK
    memory.close()
    assert sorted(driver.given_back) == sorted(driver.sizes) and set(driver.contexts) == {(False, 77)}


@needs_large_pages
@pytest.mark.parametrize("driver", [FakeDriver(refused=1), FakeDriver(elsewhere=True)])
def test_a_driver_that_refuses_is_not_asked_again(driver):
    memory = PinnedMemory(driver)
    arrays = [memory.zeros((LARGE_PAGE,), np.uint8) for _ in range(3)]
    assert [array is not None for array in arrays] == [driver.refused == 1, False, False]
    assert len(driver.sizes) == 1 and len(driver.given_back) == driver.elsewhere


def test_without_large_pages(monkeypatch):
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert PinnedMemory(FakeDriver()).zeros((4,), np.uint8) is None
    with pytest.raises(AttributeError):
        PinnedMemory(ctypes.CDLL(None))
