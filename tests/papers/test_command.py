"""`python -m papers`: its tables, its page, its refusals; on the emulated GPU with small pictures."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.papers import paper_000, paper_001, paper_003, paper_004, published
from h264lite.papers.command import main
from h264lite.papers.setting import Clip, Setting, sampled, spread, synthetic_clip
from h264lite.papers.table import PRINT, About, Table, cell

from ..cuda_emulator.driver import EmulatedDriver

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(params=["emulated", "none"])
def setting(request):
    """One with a GPU, one without."""
    clip = synthetic_clip(32, 32, 4)
    if request.param == "none":
        yield Setting(None, clip, budget=0.05, repeats=1, reach=8)
        return
    device_module.use_driver(EmulatedDriver())
    gpu = device_module.Device()
    with gpu:
        yield Setting(gpu, clip, budget=0.05, repeats=1, reach=8)
    gpu.close()
    device_module.use_driver(None)


def test_paper_000(setting):
    setting.clip.frames = setting.clip.frames[:2]
    tables = paper_000.run(setting)
    assert [t.name for t in tables] == [f"000-{n}" for n in ("I", "II", "III", "IV", "V")]
    for table in tables:
        assert table.note and all(len(row) == len(table.columns) for row in table.rows)
    assert tables[0].column(PRINT + "video 1, s") == [row[0] for row in published.TABLE_I.values()]
    if setting.gpu:
        cells = tables[0].column("blocks as defined") + tables[3].column("blocks as defined")
        assert set(cells) == {"defines", "1 of 1"}
        plain = next(row for row in tables[4].rows if row[0].endswith("32x32 SS"))
        assert plain[8] == pytest.approx(plain[7] / plain[6])


def test_paper_001(setting):
    setting.clip = synthetic_clip(16, 16, 3)
    (table,) = paper_001.run(setting)
    assert table.column(PRINT + "time, scenario 1 = 1") == [1.0, 1.15, 1.83]
    assert len(setting.timelines) == (3 if setting.gpu else 0)


def test_paper_003(setting):
    tables = paper_003.run(setting)
    why = {row[0]: row[1] for row in tables[3].rows}
    assert why["candidates outside the picture, which clamping gives"] >= 0 and why["a vector for each 4x4 samples"] > 0
    if setting.gpu:
        assert why["texture for global memory, the same candidates"] == 0 and why["vectors that differ then"] == 0
        assert tables[0].column("local, dB") == tables[0].column("shared, dB") == [0]


def test_paper_004(setting, monkeypatch):
    monkeypatch.setattr(paper_004, "CASES", ((0, 16, 1),))
    names = [table.name for table in paper_004.run(setting)]
    assert names == (["004-search", "004-refinement", "004-deblocking"] if setting.gpu else []) + ["004-cpu", "004-modules"]


def test_overlap_is_time_of_copies_beside_kernels_of_other_streams():
    spans = [("a", "upload", 0.0, 2.0), ("b", "kernel", 1.0, 3.0), ("c", "kernel", 1.5, 1.8), ("a", "kernel", 0.0, 2.0)]
    assert paper_001.overlap(spans) == 0.5
    assert paper_001.overlap(spans[1:]) == 0


def test_a_sample_is_scaled_to_all_blocks_and_says_so():
    calls = []
    seconds, whole = sampled(lambda blocks: calls.append(list(blocks)), [[0, 1, 2, 3], [], [4, 5]], 1e9)
    assert whole and calls[2] == [0, 1, 2, 3] and calls[-1] == [4, 5] and seconds >= 0
    assert not sampled(lambda blocks: None, [range(10**6)], 0)[1]
    assert spread(range(10), 2) == [2, 7] and spread(range(3), 3) == [0, 1, 2]


def test_cells():
    assert [cell(v) for v in (None, 3, 0.012345, 12.345, 12345.6, About(2.5), float("inf"), "x")] == [
        "-", "3", "0.0123", "12.3", "12346", "~2.50", "inf", "x"]  # fmt: skip
    table = Table("t", "Title", ["a", PRINT + "b", "c"], [["r", 1.5, 2]])
    assert "| r | *1.50* | 2 |" in table.markdown() and table.note == ""


def test_command_without_a_gpu(tmp_path, capsys):
    """Table, CSV, page and plots of one paper, from a clip that the user names."""
    pytest.importorskip("matplotlib")
    frames = synthetic_clip(48, 32, 3).frames
    chroma = np.full(48 * 32 // 2, 128, np.uint8)
    (tmp_path / "clip_48x32.yuv").write_bytes(b"".join(f.tobytes() + chroma.tobytes() for f in frames))
    words = ["--input", str(tmp_path / "clip_48x32.yuv"), "--device", "cpu", "--csv", str(tmp_path / "a.csv")]
    assert main(["003", *words, "--plots", str(tmp_path), "--markdown", str(tmp_path / "page.md")]) == 0
    assert "48x32" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert {row["source"] for row in rows} == {"measured"}  # no size of the paper
    page = (tmp_path / "page.md").read_text()
    assert "(papers-003.png)" in page and "no GPU" in page and (tmp_path / "papers-003.png").stat().st_size > 5000


def test_listing(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("threads-in-z", "step-13-z", "scenario-3", "texture-inside", "004"))


@pytest.mark.parametrize("words,code,message", [
    (["nix"], 2, "none of list, all, 000"), (["000", "--reach", "9"], 2, "--reach 9: 8, 16, 32 or 64"),
    (["000", "--repeats", "0"], 2, "--repeats 0: 1 or more"), (["003", "--input", "/nowhere_16x16.yuv"], 1, "nowhere"),
])  # fmt: skip
def test_refused_by_name(words, code, message, capsys):
    assert main([*words, "--device", "cpu"]) == code
    assert message in capsys.readouterr().err


def test_a_gpu_that_is_not_there(capsys):
    driver = EmulatedDriver(devices=0)
    device_module.use_driver(driver)
    try:
        assert main(["001", "--device", "cuda"]) == 3
    finally:
        device_module.use_driver(None)
    assert "reports no device" in capsys.readouterr().err


def test_module_runs():
    done = subprocess.run([sys.executable, "-m", "papers", "list"], cwd=ROOT, capture_output=True, timeout=100)
    assert done.returncode == 0 and b"scenario-1" in done.stdout


@pytest.mark.parametrize("paper,words", [
    ("000", "step search 13"), ("001", "8x8 block at (160, 120): vector"), ("003", "a vector for every  4x4"),
    ("004", "1792 differences without reuse, 256"),
])  # fmt: skip
def test_samples(paper, words):
    command = [sys.executable, str(ROOT / "papers" / "samples" / f"paper_{paper}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and words in done.stdout, done.stderr


def test_made_clips_repeat():
    a, b = synthetic_clip(40, 24, 3), synthetic_clip(40, 24, 3)
    assert isinstance(a, Clip) and all(np.array_equal(x, y) for x, y in zip(a.frames, b.frames)) and a.shape == (24, 40)
