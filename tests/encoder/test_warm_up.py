"""Early loading: a thread does it in an encode, where an error would only be a warning."""

import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.encoder import warm_up

from ..cuda_emulator.fixtures import driver  # noqa: F401


@pytest.mark.parametrize("bits", (False, True))
def test_kernels_of_gpu_frames_are_loaded(driver, bits):  # noqa: F811
    """load_for_gpu ends without an error, with the kernel that writes slices or without."""
    assert device_module.available() is None
    warm_up.load_for_gpu(bits)
