"""Paper 004: deblocking as a wavefront gives the frames of the CPU."""

import pytest
from h264lite.papers.kernels import wavefront

from ..cuda_emulator.fixtures import device, is_emulated  # noqa: F401
from ..cuda_src.test_cuda_deblock import KINDS, compare, expected, frames, large_frames, on_gpu


@pytest.mark.parametrize("kind", KINDS)
def test_twin(device, kind):  # noqa: F811
    for frame in frames(kind):
        compare(on_gpu(device, *frame, 16, wavefront.deblock), expected(*frame))


@pytest.mark.gpu
def test_many_frames(device):  # noqa: F811
    if is_emulated(device):
        pytest.skip("too long for the emulator")
    for frame in large_frames():
        compare(on_gpu(device, *frame, 32, wavefront.deblock), expected(*frame))
