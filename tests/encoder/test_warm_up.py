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
from h264lite.encoder.settings.config import Config

from ..cuda_emulator.fixtures import driver  # noqa: F401
from ..support.steady import steady

OPTIONS = ({"bframes": 3, "crf": 23, "aq_mode": 1}, {"profile": "baseline", "me": "step"}, {"bframes": 1, "no_cabac": True})


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


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("processors", (2, 4))
def test_other_processes_compile_each_stage_once(options, processors, monkeypatch):
    """With all processors: stages of frames but those of I frames and what few options need; with two, but not the bits."""
    started = []
    monkeypatch.setattr(warm_up, "_begun", False)
    monkeypatch.setattr(warm_up, "_present", set())
    monkeypatch.setattr(warm_up, "will_compile", lambda config: True)
    monkeypatch.setattr(warm_up.os, "cpu_count", lambda: processors)
    monkeypatch.delenv("H264LITE_BACKGROUND_COMPILE", raising=False)
    monkeypatch.setattr(warm_up, "_compile_beside", lambda settings, names: started.append((settings, names)))
    config = Config.from_options(width=32, height=32, device="cpu", **steady(options))
    warm_up.compile_in_background(config)
    names = [name for _, group in started for name in group]
    assert len(names) == len(set(names)) and len(started) <= processors - 1
    assert {"full_search", "inter_residual"} <= set(names) and ("bipredict" in names) >= (config.coding.has_b_frames)
    assert ("write_slices" in names) == (len(started) > 1)
    for settings, group in started:
        command = [sys.executable, "-m", "h264lite.encoder.compile_kernels", settings, ",".join(group)]
        environment = os.environ | {"PYTHONPATH": str(Path(h264lite.__file__).parents[1]), "H264LITE_BACKGROUND_COMPILE": "0"}
        done = subprocess.run(command, env=environment, check=False, text=True, capture_output=True)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
