"""Tuning files: written and read back, edited by hand, refused by name when damaged or foreign, found in the user's cache."""

import dataclasses
import os
import subprocess
import sys
import time
import tomllib

import numpy as np
import pytest
from h264lite.encoder.settings.config import Config
from h264lite.encoder.settings.options import BY_NAME
from h264lite.jit import cache_root
from h264lite.scheduler.hybrid.tuning import tuning_file as module
from h264lite.scheduler.hybrid.tuning.models import CPU, Curve, guess
from h264lite.scheduler.hybrid.tuning.rates import EncodeTraits, Rates
from h264lite.scheduler.hybrid.tuning.tuning_file import (
    Machine,
    Tuning,
    TuningError,
    cache_file,
    find,
    load,
    now,
    pins_of,
    read,
    save,
    to_toml,
)

SEED = 66
DEFAULTS, PLAIN = EncodeTraits(True, True, True), EncodeTraits(False, False, False)
HERE = Machine("1.2", "A processor @ 2 GHz", 16, "avx512", ("NVIDIA H100, sm_90",), "580.65.06")


def a_tuning(**changes):
    models = guess([CPU, "cuda:0"], 16)
    rates = Rates({(CPU, DEFAULTS): [(3600.0, 40.0), (8160.0, 20.0)], (CPU, PLAIN): [(8160.0, 50.0)],
                   ("cuda:0", DEFAULTS): [(8160.0, 400.0)]})  # fmt: skip
    chosen = {"threads": 16, "gops": 2, "streams": 4}
    return dataclasses.replace(Tuning(HERE, models, now(), chosen, rates=rates), **changes)


def test_what_is_written_is_read_back():
    tuning = a_tuning(pins={"rows_gpu": 52, "whole": "gpu", "device": "hybrid"}, report=("predicted 1.0 ms", "", 'a "b"'))
    again = read(to_toml(tuning), "x.toml")
    assert (again.machine, again.chosen, again.pins) == (HERE, tuning.chosen, tuning.pins)
    assert again.measured_at == tuning.measured_at
    assert set(again.models.stages) == set(tuning.models.stages) and again.models.threads == 16
    for (stage, device), curve in tuning.models.stages.items():
        for rows in (1, 9, 68, 135):
            assert again.models.seconds(stage, device, rows, 120) == pytest.approx(
                curve.seconds(rows, 120, 16 if device == CPU else 1), rel=1e-3)
    assert again.models.links[CPU, "cuda:0"].rate == pytest.approx(50e9)
    assert again.age < 60
    assert again.rates == tuning.rates


def coding_of(width, height, **options):
    return Config.from_options(width=width, height=height, device="cpu", **options).coding


def test_rates_answer_for_encodes_like_those_measured():
    tuning = a_tuning()
    for device, size, options, rate in (
        (CPU, (1920, 1080), {}, 20.0),
        (CPU, (1280, 720), {"crf": 30}, 40.0),
        (CPU, (1600, 900), {}, (3600 * 40 + (5700 - 3600) / (8160 - 3600) * (8160 * 20 - 3600 * 40)) / 5700),  # between
        (CPU, (3840, 2160), {}, 20.0 * 8160 / 32400),  # macroblocks a second stay
        (CPU, (720, 720), {}, 40.0 * 3600 / 2025),
        (CPU, (640, 360), {}, None),  # too small
        (CPU, (1920, 1080), {"profile": "baseline"}, 50.0),
        (CPU, (1280, 720), {"profile": "baseline"}, 50.0 * 8160 / 3600),
        (CPU, (1920, 1080), {"qp": 27, "bframes": 0}, None),  # without B frames, with CABAC
        (CPU, (1920, 1080), {"bframes": 2}, 20.0),
        (CPU, (1920, 1080), {"subme": 4}, None),  # without decisions by bits
        (CPU, (1920, 1080), {"merange": 8}, None),  # another search
        (CPU, (1920, 1080), {"ref": 2}, None),
        (CPU, (1920, 1080), {"me": "hex"}, None),
        ("cuda:0", (1920, 1080), {}, 400.0),
        ("cuda:0", (1920, 1080), {"profile": "baseline"}, None),
        ("cuda:1", (1920, 1080), {}, None),
    ):
        expected = None if rate is None else pytest.approx(rate)
        assert tuning.rate(device, coding_of(*size, **options)) == expected, (device, size, options)
    assert a_tuning(rates=Rates()).rate(CPU, coding_of(1920, 1080)) is None


def test_a_rate_takes_the_place_of_one_of_its_size():
    rates = Rates()
    for macroblocks, rate in ((8160, 1.0), (3600, 2.0), (8160, 3.0)):
        rates.add(CPU, PLAIN, macroblocks, rate)
    assert rates.points == {(CPU, PLAIN): [(3600, 2.0), (8160, 3.0)]} and rates.devices == [CPU]


def test_reading_rates_imports_neither_numba_nor_the_planner():
    code = (
        "import sys; from h264lite.scheduler.hybrid.tuning.tuning_file import Tuning; "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'numba', 'scipy'}), "
        "[name for name in sys.modules if 'planner' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"


def test_a_file_without_rates_is_read():
    text = to_toml(a_tuning(rates=Rates()))
    assert "[rates" not in text and read(text, "x").rates == Rates()


def test_random_names_and_numbers_survive():
    rng = np.random.default_rng(SEED)
    for _ in range(50):
        text = "".join(chr(c) for c in rng.integers(1, 0x2FF, 12))
        points = sorted((int(n), float(t)) for n, t in zip(rng.integers(0, 10**5, 5), rng.uniform(1e-7, 1, 5)))
        curve = Curve.measured(points, float(rng.uniform(1e-7, 1e-3)))
        machine = Machine("1", text, 3, "portable", (text, "b"), text[::-1])
        models = guess(["cuda:7"], 1)
        models.stages["deblock", "cuda:7"] = curve
        tuning = Tuning(machine, models, now())
        again = read(to_toml(tuning), "x")
        assert again.machine == machine, f"seed {SEED}"
        assert again.models.seconds("deblock", "cuda:7", 11, 11) == pytest.approx(curve.seconds(11, 11), rel=1e-3)


def test_the_file_explains_itself():
    text = to_toml(a_tuning())
    for words in ("# rows_gpu = 52", "docs/tuning.md", "Microseconds", "[pins]", "may be edited"):
        assert words in text
    pinned = text.replace("# rows_gpu = 52 ", "rows_gpu = 52 ").replace("# gops = 4 ", "gops = 4 ")
    again = read(pinned, "x")
    assert again.pins == {"rows_gpu": 52, "gops": 4}
    assert again.value("gops") == 4 and again.value("threads") == 16 and again.value("device") is None


@pytest.mark.parametrize(("change", "words"), [
    (("format = 5", "format = 4"), ("format 4", "reads 5", "run h264lite tune")),
    (("[pins]", "[pins]\nrows_gpu = 5000"), ("pins.rows_gpu", "5000", "0..4096")),
    (("[pins]", "[pins]\nrows_gpu = 1.5"), ("pins.rows_gpu", "1.5")),
    (("[pins]", "[pins]\nrows_gpu = true"), ("pins.rows_gpu", "True")),
    (("[pins]", "[pins]\nrow_gpu = 1"), ("pins.row_gpu", "unknown", "rows_gpu")),
    (("[pins]", "[pins]\nwhole = 'GPU'"), ("pins.whole", "cpu, gpu")),
    (("[pins]", "[pins]\nrows_gpu = 1\nrows_cpu = 3"), ("rows_gpu and rows_cpu",)),
    (("threads = 16", "threads = 0"), ("chosen.threads", "1..256")),
    (("[pins]", "[pins]\nthreads = 257"), ("pins.threads", "1..256")),
    (("[pins]", '[pins]\n"gops\\n" = 1'), ("pins.gops", "unknown")),
    (("cores = 16", "cores = 'all'"), ("machine.cores", "wrong type")),
    (("cores = 16\n", ""), ("machine.cores", "missing")),
    (("[machine]", "[machines]"), ("machines", "unknown")),
    (("latency = 8", "latency = -8"), ("latency", "-8")),
    (("rate = 50", "rate = 0"), ("rate",)),
    (("cpu to cuda:0", "cpu cuda:0"), ("cpu cuda:0", "to cuda:0")),
    (("cpu to cuda:0", "cpu to GPU"), ("links.cpu to GPU", "'GPU'", "cuda:0")),
    (('"cpu to cuda:0"', 'meeting = -1\n"cpu to cuda:0"'), ("links.meeting", "-1")),
    (('stages."cuda:0"', 'stages."gpu"'), ("stages.gpu", "'gpu'", "cuda:0")),
    (('stages."cuda:0"', 'stages."cuda:one"'), ("stages.cuda:one", "cuda:0")),
    (("deblock = ", "debolck = "), ("stages.cpu.debolck", "unknown", "deblock")),
    (("deblock = ", "# deblock = "), ("stages.cpu.deblock", "missing", "run h264lite tune")),
    (("full_search = {points = [[0, 5], ", "full_search = {points = [[2000, 5], "), ("full_search", "rise")),
    (("full_search = {points = [[0, 5], ", "full_search = {points = [[0, nan], "), ("full_search", "nan")),
    (("full_search = {points = [[0, 5], ", "full_search = {point = [[0, 5], "), ("full_search", "points")),
    (("full_search = ", "full_search = 7 # "), ("full_search", "points")),
    (('[rates."cpu"]', '[rates."gpu"]'), ("rates.gpu", "'gpu'", "cuda:0")),
    (('[rates."cpu"]', '[rates]\ncpu = 1\n[rates."cuda:9"]'), ("rates.cpu", "no table")),
    (("plain = [", "plane = ["), ("rates.cpu.plane", "unknown", "b_frames_cabac_by_bits")),
    (("plain = [", "plain = 7 # "), ("rates.cpu.plain", "frames a second")),
    (("plain = [[8160, 50]", "plain = [[8160, 0]"), ("rates.cpu.plain", "0", "not a number from")),
    (("plain = [[8160, 50]", "plain = [[0, 50]"), ("rates.cpu.plain", "rise")),
    (("plain = [[8160, 50]", "plain = [[8160, 50], [8160, 50]"), ("rates.cpu.plain", "rise")),
])  # fmt: skip
def test_a_bad_value_is_refused_by_name(change, words):
    text = to_toml(a_tuning())
    assert change[0] in text
    with pytest.raises(TuningError) as caught:
        read(text.replace(*change, 1), "/x/tuning.toml")
    said = str(caught.value)
    assert said.startswith("/x/tuning.toml: ") and "\n" not in said and not caught.value.foreign
    for word in words:
        assert word in said


def test_damaged_files_are_refused_in_one_line_and_never_by_anything_else(tmp_path):
    text, rng = to_toml(a_tuning()).encode(), np.random.default_rng(SEED)
    path, refused = tmp_path / "t.toml", 0
    for n in range(300):
        data = bytearray(text[: int(rng.integers(0, len(text)))] if n % 2 else text)
        for at in rng.integers(0, max(1, len(data)), 3 * (len(data) > 0)):
            data[at] = int(rng.integers(0, 256))
        path.write_bytes(data)
        try:
            load(path, HERE)
        except TuningError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            refused += 1
    assert refused > 150, f"seed {SEED}"


@pytest.mark.parametrize("damage", ["= 1" + "0" * 5000, "= 0x" + "f" * 5000, "= " + "[" * 20_000])
def test_numbers_without_end_and_brackets_without_bottom_are_damage(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    save(a_tuning(), cache_file())
    cache_file().write_text(to_toml(a_tuning()).replace("[pins]", f"[pins]\ngops {damage}"))
    for look in (lambda: load(cache_file(), HERE), lambda: pins_of(cache_file())):
        with pytest.raises(TuningError, match="damaged") as caught:
            look()
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    assert find(HERE)[0] is None and "damaged" in find(HERE)[1]


def test_a_mark_of_an_editor_before_the_text_does_no_harm(tmp_path):
    path = tmp_path / "t.toml"
    path.write_text(to_toml(a_tuning()), encoding="utf-8-sig")
    assert load(path, HERE).chosen["gops"] == 2


def test_a_report_of_any_characters_stays_in_its_comment(tmp_path):
    save(a_tuning(report=("the clip a\nformat = 9\x1b\udcff.yuv",)), tmp_path / "t.toml")
    assert load(tmp_path / "t.toml", HERE).chosen["gops"] == 2
    assert "clip a\\U0000000aformat = 9\\U0000001b\\U0000dcff.yuv" in (tmp_path / "t.toml").read_text()


def test_numbers_agree_with_the_options():
    assert module.PINS["threads"][1] == BY_NAME["threads"].high and module.PINS["gops"][1] == BY_NAME["gops"].high


def test_pins_are_read_from_a_file_of_another_machine_and_format(tmp_path):
    path = tmp_path / "t.toml"
    path.write_text(to_toml(a_tuning(pins={"gops": 3}, machine=Machine("0"))).replace("format = 4", "format = 3"))
    assert pins_of(path) == {"gops": 3}
    path.write_text("[pins]\ngop = 3")
    with pytest.raises(TuningError, match="unknown"):
        pins_of(path)


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    link = tmp_path / "link.toml"
    link.symlink_to("real.toml")
    for _ in range(2):
        save(a_tuning(), link)
        assert link.is_symlink() and load(tmp_path / "real.toml", HERE)
    assert {path.name for path in tmp_path.iterdir()} == {"link.toml", "real.toml"}


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        save(a_tuning(), pipe)
        assert os.read(end, 1 << 16).decode() == to_toml(a_tuning())
    finally:
        os.close(end)
    assert pipe.is_fifo()


@pytest.mark.parametrize(("field", "value", "words"), [
    ("processor", "Another", "'Another' there"), ("cores", 8, "cores 8 there, 16 here"), ("simd", "avx2", "avx2"),
    ("gpus", (), "none there"), ("driver", "535.1", "535.1"), ("version", "1.1", "version 1.1, this is 1.2"),
])
def test_a_file_of_another_machine_or_version_is_refused(tmp_path, field, value, words):
    path = tmp_path / "t.toml"
    save(a_tuning(machine=dataclasses.replace(HERE, **{field: value})), path)
    with pytest.raises(TuningError, match="run h264lite tune") as caught:
        load(path, HERE)
    assert words in str(caught.value) and caught.value.foreign


def test_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    assert find(HERE) == (None, "")
    assert cache_file() == tmp_path / "h264lite" / "tuning.toml"
    save(a_tuning(), cache_file())
    cached, why = find(HERE)
    assert not why and cached is not None and cached.path == str(cache_file())
    assert [path.name for path in cache_file().parent.iterdir()] == ["tuning.toml"]
    cached, why = find(dataclasses.replace(HERE, cores=3))
    assert cached is None and "of another machine" in why
    cache_file().write_text("[")
    cached, why = find(HERE)
    assert cached is None and "damaged" in why


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TuningError, match=r"nowhere\.toml: No such file"):
        load(tmp_path / "nowhere.toml", HERE)


def test_a_cache_that_cannot_be_looked_into_is_done_without(tmp_path, monkeypatch):
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path / ("x" * 300)))
    cached, why = find(HERE)
    assert cached is None and why.endswith("tuning.toml: File name too long")

    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("H264LITE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(module.Path, "home", nowhere)
    cached, why = find(HERE)
    assert cached is None and "set HOME or H264LITE_CACHE" in why


@pytest.mark.parametrize(("platform", "environment", "expected"), [
    ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/h264lite/tuning.toml"), ("linux", {}, "/h/.cache/h264lite/tuning.toml"),
    ("darwin", {}, "/h/Library/Caches/h264lite/tuning.toml"), ("win32", {"LOCALAPPDATA": "/l"}, "/l/h264lite/tuning.toml"),
])
def test_the_place_is_the_platforms(monkeypatch, platform, environment, expected):
    monkeypatch.setattr(cache_root.sys, "platform", platform)
    monkeypatch.setattr(module.Path, "home", lambda: module.Path("/h"))
    for name in ("H264LITE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_file().as_posix() == expected


def test_this_machine_is_described(monkeypatch):
    here = Machine.here()
    assert here.processor and here.cores >= 1 and here.simd in module.SIMD
    assert not here.difference(Machine.here())
    text = to_toml(a_tuning(machine=here))
    assert tomllib.loads(text)["machine"]["cores"] == here.cores


def test_age_counts_from_when_it_was_measured():
    old = a_tuning(measured_at=time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 86400)))
    assert 86390 < old.age < 86500
    assert a_tuning(measured_at="yesterday").age is None
