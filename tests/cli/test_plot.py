"""`h264lite plot`: what is drawn are the numbers of the files; files that are none are refused by name."""

import csv
import json
import math
import re
import xml.etree.ElementTree as xml

import pytest
from h264lite.cli import cli
from h264lite.cli.charts.curves import RatePoint, bd_rates

from ..support import round_trip

pytest.importorskip("matplotlib", reason="it draws")
SIZE = 64, 48
CLIP = round_trip.noise_clip(*SIZE, 6, 3)


@pytest.fixture(scope="module")
def encodes(tmp_path_factory):
    """Folder with summaries {preset}-{qp}.json and one frames.csv with a buffer."""
    folder = tmp_path_factory.mktemp("encodes")
    source = folder / "in_64x48.yuv"
    source.write_bytes(b"".join(plane.tobytes() for planes in CLIP for plane in planes))
    words = ["encode", str(source), str(folder / "out.264"), *"--quiet --device cpu --threads 1 --ssim".split()]
    for preset in ("ultrafast", "superfast"):
        for qp in ("22", "28", "34", "40"):
            assert cli.main([*words, "--preset", preset, "--qp", qp, "--json", str(folder / f"{preset}-{qp}.json")]) == 0
    buffer = "--crf 30 --vbv-maxrate 400 --vbv-bufsize 400 --bframes 1 --csv".split()
    assert cli.main([*words, *buffer, str(folder / "frames.csv")]) == 0
    return folder


def plot(*words):
    return cli.main(["plot", *map(str, words)])


def texts(path):
    return [node.text for node in xml.parse(path).iter() if node.tag.endswith("}text")]


def test_curves_of_rate_and_quality(encodes, tmp_path, capfd):
    files = [encodes / f"{preset}-{qp}.json" for preset in ("ultrafast", "superfast") for qp in (40, 22, 28, 34)]
    for by in ("psnr", "global", "ssim"):
        assert plot("rd", *files, "-o", tmp_path / "a.svg", "--by", by, "--title", "a <title>") == 0
        said = capfd.readouterr().err
        line = re.fullmatch(rf"superfast: ([+-]\d+\.\d+) % bits beside ultrafast at equal {by} \(BD-rate, PCHIP\)\n", said)
        summaries = [json.loads(path.read_text()) for path in files]
        curves = {}
        for summary in summaries:
            every = summary["all"]
            quality = {"psnr": every["psnr_mean"]["y"], "global": every["psnr_global"]["y"],
                       "ssim": -10 * math.log10(1 - every["ssim_mean_y"])}[by]  # fmt: skip
            curves.setdefault(summary["preset"], []).append(RatePoint(summary["kbps"], quality))
        assert float(line[1]) == pytest.approx(bd_rates(curves)["superfast"], abs=0.01)
        shown = texts(tmp_path / "a.svg")
        assert "a <title>" in shown and "ultrafast" in shown and f"superfast ({float(line[1]):+.1f} %)" in shown


def test_the_bd_rate_is_that_of_a_curve_with_a_tenth_more_bits():
    base = [RatePoint(100 * 2**k, 30 + 3 * k + 0.1 * k * k) for k in range(5)]
    more = [RatePoint(1.1 * point.kbps, point.quality) for point in base]
    apart = [RatePoint(point.kbps, point.quality + 50) for point in base]
    rates = bd_rates({"base": base, "more": more, "apart": apart, "few": more[:3]})
    assert rates == {"more": pytest.approx(10, abs=0.01)}


def test_labels_and_the_table_of_another_encoder(encodes, tmp_path):
    table = tmp_path / "x.csv"
    table.write_text("label,kbps,psnr,note\nother,100,30,a\nother,200,33,b\n")
    assert plot("rd", f"a = b={encodes / 'superfast-22.json'}", table, f"mine={table}", "-o", tmp_path / "a.svg") == 1
    assert plot("rd", f"one={encodes / 'superfast-22.json'}", table, f"mine={table}", "-o", tmp_path / "a.svg") == 0
    assert {"one", "other", "mine"} <= set(texts(tmp_path / "a.svg"))


def test_rates_over_time(encodes, tmp_path):
    rows = list(csv.DictReader((encodes / "frames.csv").open()))
    assert plot("rate", encodes / "frames.csv", "-o", tmp_path / "a.svg", "--fps", "25") == 0
    shown = texts(tmp_path / "a.svg")
    assert {f"{kind}: {sum(row['type'] == kind for row in rows)}" for kind in "IPB"} <= set(shown)
    assert {"predicted", "seconds", "kbit left in the buffer", "size"} <= set(shown)
    with (tmp_path / "plain.csv").open("w") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if not name.startswith(("buffer", "bits_predicted"))],
                                extrasaction="ignore")  # fmt: skip
        writer.writeheader()
        writer.writerows(rows)
    assert plot("rate", tmp_path / "plain.csv", "-o", tmp_path / "b.svg") == 0
    shown = texts(tmp_path / "b.svg")
    assert "frame" in shown and not {"predicted", "seconds", "kbit left in the buffer"} & set(shown)


def test_presets(tmp_path):
    rows = {"x264 same tools": ([1.0, 1.0], [0.0, 0.0]), "h264lite fast": ([2.0, 8.0], [-10.0, -20.0]),
            "h264lite medium": ([1.0, 1.0], [-30.0, -30.0]), "x264 slow": ([0.5, 0.5], [-33.0, -31.0]),
            "fast subme=3": ([1.0, 2.0], [-1.0, -2.0])}  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(rows))
    assert plot("presets", tmp_path / "a.json", "-o", tmp_path / "a.svg") == 0
    shown = texts(tmp_path / "a.svg")
    assert {"h264lite", "x264", "fast", "medium", "slow"} <= set(shown) and not {"same tools", "subme=3"} & set(shown)
    rows["h264lite slower"] = [0.5], [-31.0]
    (tmp_path / "b.json").write_text(json.dumps(rows))
    files = f"2 threads={tmp_path / 'a.json'}", f"16 threads={tmp_path / 'b.json'}"
    assert plot("presets", *files, "-o", tmp_path / "b.svg") == 0
    labels = texts(tmp_path / "b.svg")
    assert {"2 threads", "16 threads"} <= set(labels) and labels.count("medium") == 2 and labels.count("slower") == 1


@pytest.mark.parametrize("kind", ("png", "svg", "pdf", "PNG"))
def test_the_same_numbers_give_the_same_file(kind, encodes, tmp_path):
    for name in ("a", "b"):
        assert plot("rate", encodes / "frames.csv", "-o", tmp_path / f"{name}.{kind}") == 0
    data = (tmp_path / f"a.{kind}").read_bytes()
    assert data == (tmp_path / f"b.{kind}").read_bytes() and len(data) > 2000
    assert data.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind.lower()])


@pytest.mark.parametrize(("words", "says", "code"), (
    (["rd", "missing.json", "-o", "a.png"], "missing.json: no such file", 1),
    (["rd", "{text}", "-o", "a.png"], "no column label, kbps, psnr", 1),
    (["rd", "{json}", "-o", "a.png"], "no summary of `h264lite encode --json` for this chart: has no 'all'", 1),
    (["rd", "{zero}", "-o", "a.png"], "cannot be drawn", 1), (["rd", "{folder}", "-o", "a.png"], "folder: ", 1),
    (["rd", "{binary}", "-o", "a.png"], "no text", 1), (["rate", "{text}", "-o", "a.png"], "no column frame", 1),
    (["rate", "{short}", "-o", "a.png"], "line 2 has another number of columns", 1),
    (["rate", "{nan}", "-o", "a.png"], "'nan' is no number", 1), (["rate", "{head}", "-o", "a.png"], "no frames", 1),
    (["rate", "{nan}", "-o", "a.png", "--fps", "0"], "--fps 0:", 2), (["presets", "{json}", "-o", "a.png"], "no file of", 1),
    (["rate", "{nan}", "-o", "a.gif"], "--out a.gif: the name ends in none of .png, .svg, .pdf", 2),
    (["rate", "{nan}"], "required", 2), ([], "required", 2), (["pie"], "invalid choice", 2),
    (["rd", "{zero}", "-o", "a.png", "--by", "vmaf"], "invalid choice", 2),
))  # fmt: skip
def test_what_is_no_such_file_is_refused_by_name(words, says, code, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    head = "frame,coded,type,bytes,qp,qp_least,qp_most\n"
    files = {"text": "a,b\n1,2\n", "json": '{"kbps": 1, "preset": "fast"}', "short": f"{head}1,2\n", "head": head,
             "zero": '{"kbps": 0, "preset": "fast", "all": {"psnr_mean": {"y": 30}}}',
             "nan": f"{head}0,0,I,10,nan,1,2\n"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder").mkdir()
    assert plot(*(word.format(**{name: name for name in (*files, "folder", "binary")}) for word in words)) == code
    assert says in capfd.readouterr().err and not list(tmp_path.glob("a.*"))
