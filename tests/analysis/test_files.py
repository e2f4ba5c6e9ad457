"""--mb-csv and --mb-npz: the arrays of `analyse` for the stream that is written; `info --json`; motion fields."""

import csv
import json
import re
from dataclasses import fields
from pathlib import Path

import h264lite
import numpy as np
import pytest
from h264lite.analysis.analyse import in_display_order
from h264lite.analysis.files import CSV_COLUMNS, load_npz
from h264lite.analysis.flow import motion_field
from h264lite.cli.cli import main
from h264lite.standard.macroblock import MB_TYPE_NAMES

from ..support import round_trip


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """Files of an encode with B frames, two slices, of a size that is cropped; its frames in display order."""
    folder = tmp_path_factory.mktemp("made")
    path = round_trip.write_raw(round_trip.noise_clip(98, 66, 9, 5), folder)
    words = ["--fps", "30", "--device", "cpu", "--bframes", "2", "--slices", "2", "--qp", "30", "--weightp", "0",
             "--quiet"]
    outputs = ["--csv", folder / "r.csv", "--mb-csv", folder / "m.csv", "--mb-npz", folder / "m.npz"]
    assert main(["encode", str(path), str(folder / "o.264"), *words, *map(str, outputs)]) == 0
    return folder, [*in_display_order(h264lite.analyse(folder / "o.264"))]


def test_npz_holds_the_arrays(analysed):
    folder, frames = analysed
    arrays = load_npz(folder / "m.npz")
    for name, _ in frames[0].macroblocks.items():
        for frame, array in zip(frames, arrays[name], strict=True):
            mine = getattr(frame.macroblocks, name)
            assert (array == mine).all() and array.dtype == mine.dtype, name
    assert arrays["frames/bits"].tolist() == [frame.bits for frame in frames]
    assert arrays["frames/frame_type"].tolist() == [frame.frame_type for frame in frames]
    assert [*load_npz(folder / "m.npz", "qp")] == ["qp"]
    with np.load(folder / "m.npz") as plain:
        assert (plain["mv/000003"] == frames[3].macroblocks.mv).all()
    with pytest.raises(KeyError):
        load_npz(folder / "m.npz", "none")


def test_csv_holds_the_arrays(analysed):
    folder, frames = analysed
    with open(folder / "m.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert tuple(rows[0]) == CSV_COLUMNS and len(rows) == sum(f.macroblocks.qp.size for f in frames)
    for row in rows:
        frame, mb = frames[int(row["frame"])], int(row["mb"])
        assert (int(row["y"]), int(row["x"])) == divmod(mb, frame.mb_width) and int(row["coded"]) == frame.coding_index
        assert MB_TYPE_NAMES.index(row["type"]) == frame.by_macroblock("mb_type")[mb]
        for name in ("qp", "cbp", "bits", "skip", "residual_energy", "transform_8x8", "slice_id"):
            assert int(row[name]) == frame.by_macroblock(name)[mb], name
        for k in range(2):
            used = (frame.by_macroblock("ref_idx")[mb, k] >= 0).any()
            for name in ("mv", "reference", "ref_idx"):
                values = [int(value) for value in row[f"{name}_l{k}"].split()]
                assert values == (frame.by_macroblock(name)[mb, k].ravel().tolist() if used else [])


def test_frames_are_those_of_csv(analysed):
    """Bits, types and QPs of --csv, which the encoder counts."""
    folder, frames = analysed
    with open(folder / "r.csv", newline="") as file:
        for row in csv.DictReader(file):
            frame = frames[int(row["frame"])]
            arrays = frame.macroblocks
            assert (row["type"], int(row["coded"])) == (frame.frame_type, frame.coding_index)
            assert 8 * int(row["bytes"]) == frame.bits and float(row["qp"]) == pytest.approx(arrays.qp.mean(), abs=0.005)
            assert (int(row["qp_least"]), int(row["qp_most"])) == (arrays.qp.min(), arrays.qp.max())
            assert [int(row[f"bits_{kind}"]) for kind in frame.bits_by_kind] == [*frame.bits_by_kind.values()]
            for kind, name in enumerate(MB_TYPE_NAMES):
                assert int(row[name]) == np.count_nonzero(arrays.mb_type == kind)
            assert int(row["transform_8x8"]) == arrays.transform_8x8.sum()


def test_the_pages_name_every_array_and_key(analysed, capfd):
    """docs/research.md and docs/json.md; the movie of the same clip, too."""
    folder, frames = analysed
    docs = Path(__file__).parents[2] / "docs"
    named = set(re.findall(r"`(\w+)`", (docs / "research.md").read_text()))
    assert {name for name, _ in frames[0].macroblocks.items()} <= named
    assert {row.name for row in fields(frames[0])} <= named | {"macroblocks", "samples", "prediction"}
    assert main(["encode", str(folder / "in_98x66.yuv"), str(folder / "o.mp4"), "--device", "cpu", "--quiet"]) == 0
    assert main(["info", str(folder / "o.mp4"), "--json", "--nal"]) == 0
    facts = json.loads(capfd.readouterr().out)
    keys = {*facts, *facts["units"][0], *facts["sequences"][0], *facts["kinds"]["IDR"], *facts["mp4"], *facts["filler"]}
    assert keys <= set(re.findall(r"`(\w+)`", (docs / "json.md").read_text()))
    assert facts["mp4"]["frames"] == facts["pictures"] == 9 and facts["sequences"][0]["fps"] == "25"


def test_outputs_are_distinct(analysed, tmp_path, capfd):
    folder, _ = analysed
    same = str(tmp_path / "x")
    assert main(["encode", str(folder / "in_98x66.yuv"), str(tmp_path / "o.264"), "--mb-csv", same, "--mb-npz", same]) == 2
    assert "mb-npz and mb-csv are the same" in capfd.readouterr().err


def test_motion_field(analysed):
    """The prediction of luma by whole-sample vectors is the reference moved by the field."""
    _, frames = analysed
    frame = next(f for f in frames if f.frame_type == "P")
    field = motion_field(frame)
    assert field.shape == (66, 98, 2) and field.dtype == np.float32
    arrays = frame.macroblocks
    y, x = np.argwhere((arrays.ref_idx[0] >= 0)[:16, :24])[-1]
    assert (field[4 * y : 4 * y + 4, 4 * x : 4 * x + 4] == arrays.mv[0, y, x] / 4).all()
    intra = np.isnan(field[..., 0])
    assert (intra == np.kron(arrays.ref_idx[0] < 0, np.ones((4, 4), bool))[:66, :98]).all()
    slow = motion_field(frame, per_frame=True, missing=0.0)
    distance = arrays.reference[0, y, x] - frame.display_index
    assert (slow[4 * y, 4 * x] == np.float32(arrays.mv[0, y, x] / 4 / distance)).all() and not np.isnan(slow).any()
    with pytest.raises(ValueError, match="list_index"):
        motion_field(frame, 2)


def test_motion_field_predicts_samples(analysed):
    """8.4.2.2.1: where vectors are whole samples and one list is used, the prediction is the reference at p + field[p]."""
    folder, _ = analysed
    frames = {f.display_index: f for f in h264lite.analyse(folder / "o.264", samples=True)}
    count = 0
    for frame in frames.values():
        arrays, field = frame.macroblocks, motion_field(frame)
        for y, x in np.argwhere((arrays.ref_idx[0] >= 0) & (arrays.ref_idx[1] < 0))[:]:
            rows, columns = np.mgrid[4 * y : 4 * y + 4, 4 * x : 4 * x + 4]
            if rows.max() >= frame.height or columns.max() >= frame.width or (arrays.mv[0, y, x] % 4).any():
                continue
            moved = field[4 * y, 4 * x].astype(int)
            rows, columns = rows + moved[1], columns + moved[0]
            if rows.min() < 0 or columns.min() < 0 or rows.max() >= frame.height or columns.max() >= frame.width:
                continue
            reference = frames[arrays.reference[0, y, x]]
            block = frame.prediction.y[4 * y : 4 * y + 4, 4 * x : 4 * x + 4]
            count += 1
            assert (block == reference.samples.y[rows, columns]).all()
    assert count > 100


def test_info_json_says_what_info_says(analysed, capfd):
    folder, frames = analysed
    path = str(folder / "o.264")
    assert main(["info", path]) == 0
    words = capfd.readouterr().out
    assert main(["info", path, "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["pictures"] == len(frames) and facts["slices"] == 2 * len(frames) and facts["mp4"] is None
    assert f"{facts['bytes']} bytes, {facts['nal_units']} NAL units" in words
    assert facts["sequences"][0]["text"] in words and facts["sequences"][0]["width"] == 98
    for kind, totals in facts["kinds"].items():
        assert f"{kind:4s}{totals['pictures']:6d} pictures, {totals['bytes_least']} to {totals['bytes_most']} bytes" in words
    for tool, count in facts["tools"].items():
        assert f"{tool} in {count} of {facts['slices']} slices" in words
    assert main(["info", path, "--json", "--nal"]) == 0
    again = json.loads(capfd.readouterr().out)
    units = again.pop("units")
    assert again == facts and len(units) == facts["nal_units"]
    assert main(["info", path, "--nal"]) == 0
    lines = capfd.readouterr().out.splitlines()
    for unit, line in zip(units, lines):
        assert line.split()[:3] == [str(unit["offset"]), str(unit["bytes"]), str(unit["type"])]
        assert line.endswith(unit["text"])
