"""What README.md shows of benchmarks/results: the table of clip times, and the picture of the presets."""

import importlib.util

import pytest
from h264lite.benchmarks import clip_times, preset_speeds

CLIP = clip_times.CLIP.format(81, 832, 480)


def row(column: str, encoder: str, call: str, seconds: float) -> dict[str, str]:
    return dict.fromkeys(clip_times.FIELDS, "") | {
        "column": column, "clip": CLIP, "encoder": encoder, "call": call, "seconds": str(seconds)
    }  # fmt: skip


def test_the_table_has_warm_calls_and_first_ones_in_brackets():
    rows = [row("H100", "h264lite", "first", 1.234), row("H100", "h264lite", "warm", 0.1),
            row("2 cores", "x264 ultrafast", "warm", 12.4)]  # fmt: skip
    lines = clip_times.table(rows).splitlines()
    assert len(lines) == 2 + len(clip_times.CLIPS)
    cells = dict(zip(lines[0].strip("| ").split(" | "), lines[2].strip("| ").split(" | ")))
    assert cells["clip"] == CLIP and cells["H100"] == "0.10 (1.23)" and cells["x264 ultrafast, 2 cores"] == "12"
    assert set(cells.values()) == {CLIP, "0.10 (1.23)", "12", "-"}


def test_rows_survive_the_file(tmp_path):
    rows = [row("H100", "h264lite", "warm", 0.1)]
    clip_times.write_rows(tmp_path / "x.csv", rows)
    assert clip_times.read_rows(tmp_path / "x.csv") == rows


def test_results_have_the_columns_that_programs_read():
    assert all(set(row) == set(clip_times.FIELDS) for row in clip_times.read_rows(clip_times.RESULTS))
    rows = preset_speeds.read_rows(preset_speeds.RESULTS)
    assert all(set(row) == set(preset_speeds.FIELDS) for row in rows)
    assert {row["encoder"] for row in rows} == {"h264lite", "x264"}


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_the_picture_has_room_for_all_names(tmp_path):
    """`draw` ends the program where a name would cover another."""
    from h264lite.benchmarks.draw_presets import draw

    rows = preset_speeds.read_rows(preset_speeds.RESULTS)
    draw(rows, tmp_path / "presets.png")
    assert (tmp_path / "presets.png").read_bytes().startswith(b"\x89PNG")
