"""The emulated GPU itself: warp operations, orders of threads, barriers that not all reach, writes beside an array."""

import ctypes
import subprocess

import numpy as np
import pytest

from ..cuda_emulator.driver import CANARY, FLAGS, HERE, POISON, EmulatedDriver, Error

SOURCE = """
#define KERNEL extern "C" __attribute__((visibility("default"))) __global__
KERNEL void operations(int *out) {
  const int t = threadIdx.x, n = blockDim.x;
  const unsigned half = t & 16 ? 0xffff0000u : 0xffffu;
  for (int k = 0; k < 3; k++) out[k * n + t] = __reduce_add_sync(~0u, t + k);  // one operation after the other
  out[3 * n + t] = __reduce_max_sync(half, t ^ 5);
  out[4 * n + t] = __shfl_xor_sync(~0u, t, 1);
  out[5 * n + t] = int(__ballot_sync(~0u, t % 3 == 0));
  out[6 * n + t] = __syncthreads_count(t % 5 == 0);
}
KERNEL void turned(int *out, int barrier) {
  out[threadIdx.x] = threadIdx.x;
  if (barrier) __syncthreads();
  out[64 + threadIdx.x] = out[63 - threadIdx.x];
}
KERNEL void waits_for_no_lane(int *out) { if (threadIdx.x == 0) __syncwarp(3); }
KERNEL void writes_outside(int *out) {
  if (threadIdx.x) return;
  if (blockIdx.x) atomicExch(out, 5);
  else while (atomicOr(out, 0) == -1) __nanosleep(1);
}
"""


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    """(code, int32[n]) of a kernel in so many blocks of 64 threads; seed: the order, as of EmulatedDriver."""
    folder = tmp_path_factory.mktemp("emulator")
    (folder / "kernels.cu").write_text(SOURCE)
    command = ["g++", *FLAGS, "-include", str(HERE / "cuda_emulator.h"), "-x", "c++", "kernels.cu", "-o", "kernels.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "kernels.so"))

    def run(name, seed, *numbers, blocks=1):
        out = np.full(7 * 64, -1, np.int32)
        given = (ctypes.c_int64 * 2)(out.ctypes.data, *numbers)
        kernel = ctypes.cast(getattr(library, name), ctypes.c_void_p)
        return library.emulated_launch(kernel, blocks, 1, 1, 64, 1, 1, ctypes.c_uint64(0), given, 2, seed), out

    return run


@pytest.mark.parametrize("seed", (0, 1, 7))
def test_operations_of_a_warp_and_a_block(launch, seed):
    code, out = launch("operations", seed)
    t = np.arange(64)
    sums = [np.repeat([(t[:32] + k).sum(), (t[32:] + k).sum()], 32) for k in range(3)]
    largest = np.repeat((t ^ 5).reshape(4, 16).max(1), 16)
    votes = [sum(1 << n for n in range(32) if (n + first) % 3 == 0) for first in (0, 32)]
    votes = np.repeat(np.array(votes, np.uint32).view(np.int32), 32)
    assert code == 0
    np.testing.assert_array_equal(out.reshape(7, 64), [*sums, largest, t ^ 1, votes, np.full(64, 13)])


def test_a_missing_barrier_gives_another_result_in_another_order(launch):
    expected = np.arange(64)[::-1]
    for seed in (0, 1, 7):
        assert np.array_equal(launch("turned", seed, 1)[1][64:128], expected)
    wrong = [launch("turned", seed, 0)[1][64:128] for seed in (0, 1)]
    assert not np.array_equal(*wrong) and all((result == -1).any() for result in wrong)


@pytest.mark.parametrize("seed", (0, 1, 7))
def test_who_waits_for_threads_that_do_not_come_ends_the_launch(launch, seed, capfd):
    assert launch("waits_for_no_lane", seed)[0] == 1
    assert "a barrier that not every thread reaches" in capfd.readouterr().err


@pytest.mark.parametrize("seed", (0, 1, 7))
def test_blocks_wait_for_one_another(launch, seed):
    code, out = launch("writes_outside", seed, blocks=2)
    assert code == 0 and out[0] == 5


@pytest.mark.parametrize("at", (-1, -256, 100, CANARY))
def test_what_is_written_beside_an_array_is_said(at):
    driver = EmulatedDriver()
    array = driver.mem_alloc(100)
    ctypes.memset(int(array), 0, 100)
    driver.check_memory()
    ctypes.memset(int(array) + at, POISON ^ 1, 1)
    with pytest.raises(Error, match="wrote outside an array of 100 bytes"):
        driver.check_memory()
