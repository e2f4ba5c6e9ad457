"""The page without a browser: its figures are those of decoder, --csv and info; what the command refuses."""

import csv
import io

import h264lite
import numpy as np
import pytest
from h264lite.analysis.analyse import in_display_order
from h264lite.cli.cli import main
from h264lite.decoder.info import NAL_NAMES, StreamInfo
from h264lite.report import packing
from h264lite.report.access_unit import AccessUnits
from h264lite.report.page_file import as_json
from h264lite.report.stream_report import Options
from h264lite.standard.macroblock import MB_TYPE_NAMES
from hypothesis import given, settings
from hypothesis import strategies as st

from ..support import report_pages, round_trip
from ..support.report_pages import HOSTILE


def decoded(data):
    decoder = h264lite.Decoder(macroblocks=True)
    return [*decoder.decode(data), *decoder.flush()]


@pytest.mark.parametrize("kind", report_pages.KINDS)
def test_arrays_and_figures_are_those_of_the_decoder_and_of_info(tmp_path, kind):
    data = report_pages.stream(kind)
    path, outcome = report_pages.make(tmp_path, data)
    frames, page = decoded(data), report_pages.read(path)
    on_page = page.meta["streams"][0]
    assert outcome.frames == [len(frames)] == [len(on_page["frames"])] and outcome.errors == [""]
    for n, frame in enumerate(frames):
        mbs, sections, row = frame.macroblocks, page.arrays("a", n), on_page["frames"][n]
        for name, expected in (("type", mbs.mb_type), ("qp", mbs.qp), ("cbp", mbs.cbp), ("bits", mbs.bits),
                               ("slice", mbs.slice_id)):  # fmt: skip
            assert np.array_equal(sections[name], expected), (n, name)
        assert np.array_equal(sections["modes"] & 1, mbs.transform_8x8)
        assert np.array_equal(report_pages.vectors(sections), mbs.mv), n
        used = (mbs.ref_idx >= 0).any((1, 2))
        assert np.array_equal(sections["ref"].reshape(-1, 2, 4), mbs.ref_idx[used])
        assert row["coded"] == frame.decode_index and row["poc"] == frame.poc and row["mb_bits"] == mbs.bits.sum()
        assert "IPB"[row["type"]] == max(frame.slice_types, key="IPB".index)
        assert len(row["slices"]) == len(set(mbs.slice_id.tolist()))
    assert sum(row["bits"] for row in on_page["frames"]) == 8 * len(data) == 8 * on_page["size"]
    info = StreamInfo()
    lines = [*info.feed(data), *info.flush()]
    assert on_page["summary"] == info.summary() and on_page["lines"] == lines
    totals = on_page["totals"]
    types = sum(np.bincount(frame.macroblocks.mb_type, minlength=len(MB_TYPE_NAMES)) for frame in frames)
    assert np.array_equal(np.sum(totals["types"], 0), types)
    assert np.sum(totals["type_bits"]) == sum(row["mb_bits"] for row in on_page["frames"])
    qps = sum(np.bincount(frame.macroblocks.qp, minlength=52) for frame in frames)
    assert np.array_equal(np.sum(totals["qp"], 0), qps)
    area = sum(int((frame.macroblocks.ref_idx >= 0).sum()) for frame in frames) * 4
    assert np.sum(totals["vectors"]) == np.sum(totals["lengths"]) == np.sum(totals["references"]) == area


@pytest.mark.parametrize("kind", report_pages.KINDS)
def test_figures_are_those_of_the_analysis(tmp_path, kind):
    """References, bits by kind, residual energy; totals and shares add up to the bits of the stream."""
    path, _ = report_pages.make(tmp_path, report_pages.stream(kind))
    page = report_pages.read(path)
    on_page, kinds, headers = page.meta["streams"][0], 0, 0
    for n, frame in enumerate(in_display_order(h264lite.analyse(report_pages.stream(kind)))):
        sections, row = page.arrays("a", n), on_page["frames"][n]
        assert row.get("lists", [[[], []]] * len(frame.slices)) == [[list(k) for k in one.references] for one in frame.slices]
        by_kind = frame.by_macroblock("bits_by_kind")
        assert np.abs(sections["kinds"].reshape(5, -1).T / 4 - by_kind / 256).max() <= 1 / 8
        energy = np.sqrt(frame.by_macroblock("residual_energy"))
        assert np.abs(sections["energy"] / 16 - energy).max() <= 1 / 32
        assert [name for name, _ in row["units"]] == [NAL_NAMES[kind] for kind, _ in frame.units]
        kinds, headers = kinds + by_kind.sum(0), headers + frame.header_bits
    totals = on_page["totals"]
    assert np.array_equal(np.sum(totals["kinds"], 0), kinds) and sum(totals["header_bits"]) == headers
    whole = 8 * len(report_pages.stream(kind))
    assert headers + kinds.sum() / 256 == pytest.approx(whole, abs=len(on_page["frames"]))


def test_access_units_are_the_stream():
    """Joined they decode to the same frames, also from each IDR picture on, which has its parameter sets."""
    for kind in report_pages.KINDS:
        data, units = report_pages.stream(kind), AccessUnits()
        frames, sized_units = decoded(data), []
        for frame in h264lite.analyse(data):
            sized_units.append((frame.is_idr, units.add(frame)))
        assert sum(unit.size for _, unit in sized_units) == len(data)
        for first in (n for n, (is_idr, _) in enumerate(sized_units) if is_idr):
            part = decoded(b"".join(unit.data for _, unit in sized_units[first:]))
            expected = [frame for frame in frames if frame.decode_index >= first]
            assert [frame.to_bytes() for frame in part] == [frame.to_bytes() for frame in expected]


@pytest.mark.parametrize("hrd", (["--nal-hrd", "vbr"], ["--nal-hrd", "cbr", "--keyint", "6", "--bframes", "0"]))
def test_figures_are_those_of_csv(tmp_path, hrd):
    """Of an encode with a promised buffer: bytes, QP, types, transforms, PSNR, SSIM and fullness of each frame."""
    raw = round_trip.write_raw(report_pages.clip(), tmp_path)
    stream, table = tmp_path / "s.264", tmp_path / "s.csv"
    options = ["--crf", "26", "--vbv-maxrate", "900", "--vbv-bufsize", "450", "--ssim", "--quiet", *hrd]
    assert main(["encode", str(raw), str(stream), "--fps", "30", "--csv", str(table), *options]) == 0
    assert main(["report", str(stream), "-o", str(tmp_path / "p.html"), "--source", str(raw), "--quiet"]) == 0
    page = report_pages.read(tmp_path / "p.html")
    frames = {frame["coded"]: (n, frame) for n, frame in enumerate(page.meta["streams"][0]["frames"])}
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert len(rows) == len(frames) == len(report_pages.clip())
    for row in rows:
        n, frame = frames[int(row["coded"])]
        assert n == int(row["frame"]) and "IPB"[frame["type"]] == row["type"] and frame["idr"] == int(row["idr"])
        assert frame["bits"] == 8 * int(row["bytes"])
        assert f"{frame['qp']:.2f}" == row["qp"]
        assert [frame["qp_least"], frame["qp_most"]] == [int(row["qp_least"]), int(row["qp_most"])]
        assert [f"{value:.4f}" for value in frame["psnr"]] == [row[f"psnr{k}"] for k in ("_y", "_u", "_v", "")]
        assert f"{frame['ssim']:.7f}" == row["ssim"]
        assert frame["buffer"] == [int(row["buffer_bits"]), int(row["buffer_left"]), int(row["buffer_size"])]
        sections = page.arrays("a", n)
        for kind, name in enumerate(MB_TYPE_NAMES):
            assert (sections["type"] == kind).sum() == int(row[name]), name
        assert (sections["modes"] & 1).sum() == int(row["transform_8x8"])
        squares = sections["error"].sum() / (report_pages.WIDTH * report_pages.HEIGHT)
        assert 10 * np.log10(65025 / squares) == pytest.approx(frame["psnr"][0], abs=1e-3)


@pytest.mark.parametrize("kind", report_pages.KINDS)
def test_sizes_and_types_are_those_of_ffmpeg(tmp_path, kind):
    av = pytest.importorskip("av", reason="PyAV has the demuxer to compare with")
    path, _ = report_pages.make(tmp_path, report_pages.stream(kind))
    frames = report_pages.read(path).meta["streams"][0]["frames"]
    with av.open(io.BytesIO(report_pages.stream(kind)), format="h264") as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        sizes, keys = [packet.size for packet in packets], [packet.is_keyframe for packet in packets]
    with av.open(io.BytesIO(report_pages.stream(kind)), format="h264") as container:
        types = ["?IPB"[int(frame.pict_type)] for frame in container.decode(video=0)]
    in_order = sorted(frames, key=lambda frame: frame["coded"])
    assert [frame["bits"] // 8 for frame in in_order] == sizes
    assert all(key for key, frame in zip(keys, in_order) if frame["idr"])
    assert ["IPB"[frame["type"]] for frame in frames] == types


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_packed_motion_is_the_motion(seed, n):
    rng = np.random.default_rng(seed)
    ref_idx = rng.integers(-1, 3, (n, 2, 4)).astype(np.int8)
    mv = rng.integers(-3, 3, (n, 2, 16, 2)).astype(np.int16)
    for mb in range(n):  # some whole macroblocks and quadrants have one vector
        if rng.random() < 0.4:
            mv[mb] = mv[mb, :, :1]
            ref_idx[mb] = ref_idx[mb, :, :1]
        elif rng.random() < 0.5:
            for first in (0, 2, 8, 10):
                mv[mb][:, [first + 1, first + 4, first + 5]] = mv[mb][:, [first]]
    quadrant = np.array([(block >> 3) * 2 + (block & 3) // 2 for block in range(16)])
    mv[ref_idx[:, :, quadrant] < 0] = 0
    sections = packing.unpack(packing.pack({"type": np.zeros(n, np.uint8), **packing.motion(mv, ref_idx)}))
    assert np.array_equal(report_pages.vectors(sections), mv)
    assert np.array_equal(sections["ref"].reshape(-1, 2, 4), ref_idx[(ref_idx >= 0).any((1, 2))])


def test_hostile_names_are_text(tmp_path):
    path, _ = report_pages.make(tmp_path, report_pages.hostile_stream(), names=(HOSTILE,))
    plain, _ = report_pages.make(tmp_path, report_pages.stream("baseline"), name="plain.html", names=("a.264",))
    hostile, harmless = report_pages.read(path), report_pages.read(plain)
    assert HOSTILE in hostile.meta["streams"][0]["sei"][0]["text"]
    assert hostile.meta["streams"][0]["name"] == HOSTILE
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in harmless.elements]
    assert not any(tag == "img" or name.startswith("on") for tag, attributes in hostile.elements for name in attributes)
    assert "<" not in as_json([HOSTILE]) and ">" not in as_json([HOSTILE])
    policy = next(attributes["content"] for tag, attributes in hostile.elements if attributes.get("http-equiv"))
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy


def test_data_beyond_the_limit_lie_in_a_folder(tmp_path):
    data = report_pages.stream("high")
    whole, outcome = report_pages.make(tmp_path, data, name="whole.html")
    assert not outcome.outside and not outcome.folder and not (tmp_path / "whole_files").exists()
    path, outcome = report_pages.make(tmp_path, data, name="cut.html", in_page=20000)
    page, expected = report_pages.read(path), report_pages.read(whole)
    assert page.meta["folder"] == "cut_files" and outcome.folder == str(tmp_path / "cut_files")
    files = sorted((tmp_path / "cut_files").iterdir())
    assert sum(file.stat().st_size for file in files) == outcome.outside > 0
    outside = {}
    for file in files:
        text = file.read_text()
        assert text.startswith(f'reportData("{file.stem}","') and text.endswith('");\n')
        outside[file.stem] = text.split('"')[3]
    inside = {key: text for key, text in page.texts.items() if key not in ("", "meta")}
    assert not outside.keys() & inside.keys() and sum(map(len, inside.values())) <= 20000
    assert outside | inside == {key: text for key, text in expected.texts.items() if key not in ("", "meta")}


def test_limit_and_broken_streams_are_said(tmp_path):
    data = report_pages.stream("high")
    path, outcome = report_pages.make(tmp_path, data, options=Options(limit=5))
    assert outcome.frames == [5] and outcome.cut == [True] and report_pages.read(path).meta["streams"][0]["cut"]
    path, outcome = report_pages.make(tmp_path, data[: len(data) // 2] + b"\x00" * 7 + data[len(data) // 2 + 40 :])
    page = report_pages.read(path).meta["streams"][0]
    assert outcome.errors[0] and page["error"] == outcome.errors[0] and 0 < len(page["frames"]) < len(report_pages.clip())
    path, outcome = report_pages.make(tmp_path, report_pages.stream("baseline") + report_pages.stream("x264"))
    assert outcome.frames == [len(report_pages.clip())] and "the size changes to 80x64" in outcome.errors[0]
    path, outcome = report_pages.make(tmp_path, b"no stream at all", name="none.html")
    assert outcome.frames == [0] and not path.exists()


@pytest.mark.parametrize("words, code, said", (
    (["no.264"], 1, "no.264"), (["s.264", "--input-res", "100x76"], 2, "--source"), (["s.264", "-o", "s.264"], 2, "both"),
    (["s.264", "--frames", "0"], 2, "--frames"), (["s.264", "--in-page", "0"], 2, "--in-page"),
    (["s.264", "--pictures", "sound"], 2, "--pictures"), (["-", "--compare", "-"], 2, "standard input"),
    (["s.264", "--source", "no.yuv"], 1, "no.yuv"), (["s.264", "--wrong"], 2, "--wrong"), (["x.264"], 1, "x.264"),
))  # fmt: skip
def test_refusals(tmp_path, monkeypatch, capfd, words, code, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.264").write_bytes(report_pages.stream("baseline"))
    (tmp_path / "x.264").write_bytes(b"no stream")
    assert main(["report", *words]) == code
    error = capfd.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_the_command_says_what_it_wrote(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.264").write_bytes(report_pages.stream("baseline"))
    (tmp_path / "t.264").write_bytes(report_pages.stream("high"))
    assert main(["report", "s.264", "--compare", "t.264", "--frames", "6"]) == 0
    error = capfd.readouterr().err
    assert "s.html: 6 and 6 frames" in error and "ends after 6 frames" in error
    streams = report_pages.read("s.html").meta["streams"]
    assert [(stream["name"], stream["key"]) for stream in streams] == [("s.264", "a"), ("t.264", "b")]
    assert main(["report", "s.264", "-o", "-", "--quiet"]) == 0
    out = capfd.readouterr()
    assert out.out.startswith("<!doctype html>") and out.out.endswith("</html>\n") and not out.err
