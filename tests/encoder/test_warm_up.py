"""Early loading: a thread does it in an encode, where an error would only be a warning."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import h264lite
import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.encoder import warm_up

from ..cuda_emulator.fixtures import driver  # noqa: F401


@pytest.mark.parametrize("bits", (False, True))
def test_kernels_of_gpu_frames_are_loaded(driver, bits):  # noqa: F811
    """load_for_gpu ends without an error, with the kernel that writes slices or without."""
    assert device_module.available() is None
    warm_up.load_for_gpu(bits)
    assert warm_up.loaded_for_gpu(bits)


def test_an_encode_on_one_gpu_imports_neither_the_planner_nor_files():
    """Each file takes a part of the first call: those that only other devices, containers and tuning files need stay out."""
    code = ("import sys, h264lite; h264lite.encode, h264lite.write_video; import h264lite.encoder.pipeline; "
            "from h264lite.scheduler.frames.cuda_loop import CudaLoop; print(*sys.modules)")  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(Path(h264lite.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, text=True, stdout=subprocess.PIPE)
    names = {name.removeprefix("h264lite.") for name in done.stdout.split() if name.startswith("h264lite.")}
    assert {"scheduler.cuda_executor", "encoder.writer"} <= names
    unwanted = {
        "scheduler.hybrid.planner", "scheduler.hybrid.tuning.tuning_file", "scheduler.hybrid.executor", "mp4.muxer",
        "cpu_simd.source.convert", "cpu_simd.residual.expand", "encoder.files.video", "encoder.files.opening",
    }  # fmt: skip
    assert not names & unwanted
    assert all(find_spec(f"h264lite.{name}") is not None for name in unwanted)
