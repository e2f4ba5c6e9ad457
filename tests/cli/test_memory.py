"""What the summary says of memory: of the process, and of a GPU whose allocations the driver counts."""

import json
import re

import pytest
from h264lite.cli import memory
from h264lite.cli.cli import main
from h264lite.cuda_src.runtime import device

from ..cuda_emulator.fixtures import driver  # noqa: F401
from ..support import round_trip
from ..support.steady import steady_words

WIDTH, HEIGHT = 64, 48


@pytest.fixture
def clip(tmp_path):
    return round_trip.write_raw(round_trip.noise_clip(WIDTH, HEIGHT, 4, 3), tmp_path)


def encode(clip, tmp_path, *words):
    out = tmp_path / "summary.json"
    assert main(steady_words(["encode", clip, tmp_path / "o.264", "--json", out, *words])) == 0
    return json.loads(out.read_text())


def test_of_a_process(clip, tmp_path, capfd):
    pytest.importorskip("resource")
    before = memory.peak_bytes()
    told = encode(clip, tmp_path, "--device", "cpu", "--verbose")
    assert before <= (told["peak_memory_mib"] << 20) <= memory.peak_bytes() + (1 << 20)
    assert "gpu_memory_mib" not in told
    assert f"memory: {told['peak_memory_mib']} MiB the process at most\n" in capfd.readouterr().err


def test_of_a_gpu(driver, clip, tmp_path, capfd):  # noqa: F811
    told = encode(clip, tmp_path, "--device", "cuda", "--verbose")
    assert 0 < told["gpu_memory_mib"] < 100 and told["page_locked_mib"] >= 0
    said = re.search(r"(\d+) MiB allocated on GPUs", capfd.readouterr().err)
    assert int(said[1]) == told["gpu_memory_mib"]


def test_without_what_is_not_known(monkeypatch):
    monkeypatch.setattr(memory, "peak_bytes", lambda: None)
    monkeypatch.setattr(device, "allocated_bytes", lambda: (5 << 20, 1))
    assert memory.memory(False) == {} and memory.lines({}) == []
    assert memory.memory(True) == {"gpu_memory_mib": 5, "page_locked_mib": 1}
    monkeypatch.setattr(device, "allocated_bytes", lambda: (0, 0))
    assert memory.memory(True) == {}, "the GPUs are those of workers"
