"""`bench --devices all`: one device beside several, by turns."""

import json

import pytest
from h264lite.cli import bench_devices
from h264lite.cli.cli import main
from h264lite.cli.measuring.measure import synthetic
from h264lite.cli.measuring.measure_gops import devices_rate


def test_numbers_of_devices():
    assert [bench_devices.counts(n) for n in (1, 2, 3, 8)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4, 8]]
    assert [name for name in ("all", "cuda:0", "cpu,cpu", "cpu", "cuda", "cpu,cuda,hybrid", None)
            if bench_devices.names_devices(name)] == ["all", "cuda:0", "cpu,cpu"]  # fmt: skip


def test_the_table_and_the_report(monkeypatch, tmp_path, capfd):
    seen = []

    def rate(names, frames, threads, seconds):
        seen.append((len(names), frames[0][0].shape, threads, seconds))
        return 100.0 * len(names) - 10 * (len(names) > 1)

    monkeypatch.setattr(bench_devices, "devices_rate", rate)
    words = ["--sizes", "64x48,32x32", "--rounds", "2", "--threads", "3", "--seconds", "0.5"]
    words += ["--json", str(tmp_path / "b.json")]
    assert main(["bench", "--devices", "cpu,cpu,cpu", *words]) == 0
    assert [count for count, *_ in seen] == 4 * [1, 2, 3] and seen[0] == (1, (48, 64), 3, 0.5)
    rows = json.loads((tmp_path / "b.json").read_text())["scaling"]
    assert [row["size"] for row in rows] == ["64x48", "32x32"] and rows[0]["devices"] == 3 * ["cpu"]
    assert rows[0]["encode_fps"] == {"1": 100, "2": 190, "3": 290} and rows[1]["times_one"]["2"] == pytest.approx(1.9)
    assert "190.0 (1.90)" in capfd.readouterr().err


def test_refused(capfd):
    assert main(["bench", "--devices", "cuda:0,cuda:0"]) == 2
    assert main(["bench", "--devices", "cuda:99"]) == 3
    said = capfd.readouterr().err
    assert "a GPU is named twice" in said and "cuda:99" in said


def test_a_rate_of_worker_processes():
    assert devices_rate(("cpu", "cpu"), synthetic(64, 48, 4), 2, 0.1) > 0
