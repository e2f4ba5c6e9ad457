"""A real GPU whose memory is nearly full: whole encodes or one named error, and the memory comes back. No other test of GPUs
can run beside it: `python -m pytest -m "gpu and slow" tests/encoder/test_gpu_full.py`.
"""

import gc
import warnings
from functools import cache

import h264lite
import pytest
from h264lite.encoder.errors import Error

from ..cuda_emulator.real import skip_without
from ..support import round_trip

SIZES = {"1080p": (1920, 1080, 6), "2160p": (3840, 2160, 4)}
LEFT = (0, 8, 64, 150, 300, 500, 800, 1200, 2000)  # MiB
OPTIONS = {"bframes": 2, "b_adapt": 1, "crf": 26, "aq_mode": 1, "weightp": 1}


@cache
def clip(size):
    width, height, frames = SIZES[size]
    return [tuple(frame) for frame in round_trip.noise_clip(width, height, frames, 7)]


@cache
def expected(size):
    return encode(size, "cpu", threads=8)


def encode(size, device, **options):
    with h264lite.Encoder(*SIZES[size][:2], 30, device=device, **OPTIONS, **options) as encoder:
        packets = round_trip.packets_of(encoder, clip(size))
    return b"".join(packet.data for packet in packets)


def fill(torch, left):
    """Tensors that leave about `left` bytes of the GPU's free memory: the driver gives no block as large as all of it."""
    taken, size = [], 1 << 40
    while size >= 2 << 20:
        size = min(size, torch.cuda.mem_get_info()[0] - left)
        try:
            taken.append(torch.empty(max(0, size), dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size -= max(2 << 20, size >> 6)
    return taken


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_little_memory_is_left(size, capsys):
    """From nothing to enough, for a GPU that must be taken and for one that need not be."""
    skip_without()
    torch = pytest.importorskip("torch")
    wanted, outcomes = expected(size), []
    torch.zeros(1, device="cuda")
    assert encode(size, "cuda") == wanted
    h264lite.release_gpu()
    torch.cuda.empty_cache()
    before = torch.cuda.mem_get_info()[0]
    for left in LEFT:
        taken = fill(torch, left << 20)
        try:
            assert encode(size, "cuda") == wanted
            outcomes.append(f"{left} MiB: encoded")
        except Error as error:
            assert "memory" in str(error) or "MiB left" in str(error), error
            assert "\n" not in str(error)
            outcomes.append(f"{left} MiB: {type(error).__name__}: {error}")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert encode(size, "auto") == wanted
        outcomes += [f"    auto: {w.message}" for w in said]
        del taken
        gc.collect()
        h264lite.release_gpu()
        torch.cuda.empty_cache()
        after = torch.cuda.mem_get_info()[0]
        outcomes.append(f"    {before - after >> 20} MiB less than before")
        assert before - after < 64 << 20, outcomes
    assert encode(size, "cuda") == wanted
    with capsys.disabled():
        print(f"\n{size}", *outcomes, sep="\n")
    assert any("encoded" in line for line in outcomes) and any("Error" in line or "Lost" in line for line in outcomes)
