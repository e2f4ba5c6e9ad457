"""tune, bench and doctor; what encodes make of a tuning file; the chart of a timeline."""

import io
import json
import os
import subprocess
import sys
import time
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from h264lite.cli import bench as bench_command
from h264lite.cli import cli
from h264lite.cli import doctor as doctor_command
from h264lite.cli import tune as tune_command
from h264lite.cli.charts import chart, timeline
from h264lite.cli.measuring import budget, measure, measure_gops, measurements
from h264lite.cli.measuring.measure import Samples, TimedEncode
from h264lite.cuda_src.runtime import device as device_module
from h264lite.encoder import warm_up as first_run
from h264lite.encoder.errors import DeviceError, DeviceLost, Error, OptionError
from h264lite.encoder.gops.gops import count_lanes
from h264lite.encoder.settings import device_prediction, tuning_lookup
from h264lite.encoder.settings.config import Config
from h264lite.jit import cache_folder as cache_folders
from h264lite.jit import numba_free
from h264lite.scheduler.hybrid.executor import HybridExecutor
from h264lite.scheduler.hybrid.plan import Plan
from h264lite.scheduler.hybrid.simulate import simulate
from h264lite.scheduler.hybrid.tuning.models import CPU, ENTROPY, ISSUE, LOAD, Curve, Link, filled, guess
from h264lite.scheduler.hybrid.tuning.rates import EncodeTraits
from h264lite.scheduler.hybrid.tuning.tuning_file import Machine, Tuning, cache_file, now, read, save, to_toml
from h264lite.scheduler.stages import MAIN, TABLE, frame_steps
from h264lite.scheduler.trace import GPU, HOST, Trace

from ..cuda_emulator.driver import EmulatedDriver  # before H264LITE_CACHE is another: it keeps its kernels
from ..support import fake_pipeline

THREADS = 4
OF_P_FRAMES = {name for names, _ in frame_steps(1, subme=6, cabac=True) for name in names}  # of preset medium
CORE = guess([CPU], 1)  # the machine that is measured here: times of one core, and of a GPU
THE_GPU = guess(["cuda:0"], 1)
THREAD = {LOAD: (20e-6, 30e-9), ISSUE: (170e-6, 5e-9), ENTROPY: (10e-6, 5e-9)}  # of a GPU's host: launch, a macroblock


def gpu_takes(rows, columns, serial=False):
    """(seconds of a picture on that GPU, those of its host's thread); one stream is a little faster."""
    main = [stage.name for stage in TABLE if stage.stream == MAIN and stage.name in OF_P_FRAMES]
    loop = sum(THE_GPU.seconds(name, "cuda:0", rows, columns) for name in main) * (0.95 if serial else 1.0)
    host = sum(launch + rows * columns * each for launch, each in THREAD.values())
    return max(loop, host), host


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path / "cache"))
    tuning_lookup.this_machine.cache_clear()
    yield
    tuning_lookup.this_machine.cache_clear()


@pytest.fixture
def gpu(monkeypatch):
    """As on a machine with a GPU, in everything that is asked before one is used."""
    for module in ("encoder.settings.device", "cli.tune", "cli.doctor", "encoder.settings.tuning_lookup"):
        monkeypatch.setattr(f"h264lite.{module}.why_no_cuda", lambda: None)
    monkeypatch.setattr("h264lite.encoder.settings.device.gpu_name", lambda: "A GPU")
    monkeypatch.setattr("h264lite.cli.tune.count_gpus", lambda: 2)
    monkeypatch.setattr("h264lite.cli.tune.cuda_kernels_will_compile", lambda *_: False)


def fake_watch(seen):
    """An encode on that machine, without one: times that follow the models exactly."""

    def watch(device, pictures, threads, window, most=0, gpu_clock=False, gpu_choices=None, **options):
        height, width = pictures[0][0].shape
        choices = gpu_choices or {}
        serial, tile_rows = choices.get("streams") == 1, choices.get("tile_rows", 4)
        rows, columns = -(-height // 16), -(-width // 16)
        threads = threads or 1
        if device == "hybrid":
            return TimedEncode(device, width, height, threads, 20, seen.hybrid(rows, columns, options["split"]))
        seen.append((device, width, height, threads, gpu_clock, serial, tile_rows))
        encode = TimedEncode(device, width, height, threads, 20, 0.0, subme=6, cabac=True)
        names = [stage.name for stage in TABLE if CORE.knows(stage.name, CPU) and not stage.only]
        if device == CPU:
            busy = {name: CORE.seconds(name, CPU, rows, columns) for name in names}
            encode.stages, encode.entropy = busy, CORE.seconds(ENTROPY, CPU, rows, columns)
            encode.loop = sum(busy.values()) / threads + encode.entropy / threads
            encode.load = 1e-4
            encode.frame = encode.loop + encode.load
        else:
            encode.frame, host = gpu_takes(rows, columns, serial)
            encode.frame *= 1.1 if tile_rows > 2 else 1.0
            encode.wait = encode.frame - host
            clocks = {name: 0.8 * (launch + rows * columns * each) for name, (launch, each) in THREAD.items()}
            encode.load, encode.loop, encode.entropy = clocks[LOAD], clocks[ISSUE], clocks[ENTROPY]
            events = 1.5 if rows * columns < 1000 else 0.8  # times as slow as it is
            timed = names if gpu_clock else ()
            encode.stages = {name: events * THE_GPU.seconds(name, device, rows, columns) for name in timed}
        return encode

    return watch


class Seen(list):
    """The encodes of that machine. hybrid: the seconds of a frame whose rows both devices encode."""

    def hybrid(self, rows, columns, split):
        return 1.0


@pytest.fixture
def quick(monkeypatch):
    seen = Seen()
    monkeypatch.setattr(measurements, "watch", fake_watch(seen))
    monkeypatch.setattr(bench_command, "watch", fake_watch(seen))
    for module in (tune_command, bench_command):
        monkeypatch.setattr(module, "will_compile", lambda *_: False)
    for module in (measurements, bench_command):
        monkeypatch.setattr(module, "frames_for", lambda w, h, clip=None: measure.synthetic(w, h, 2))
    monkeypatch.setattr(measurements, "gop_rate", lambda device, pictures, threads, lanes, *_: {
        1: 10.0, 2: 19.5}.get(lanes, 19.8))
    monkeypatch.setattr(measurements, "encode_rate", lambda device, pictures, *_, **options: (
        (2 if options else 1) * (3 if device == CPU else 100) * 1e6 / pictures[0][0].size))
    monkeypatch.setattr(measurements, "measure_link", lambda k: {(CPU, f"cuda:{k}"): Link(8e-6, 5e10),
                                                                 (f"cuda:{k}", CPU): Link(9e-6, 4e10)})
    monkeypatch.setattr("h264lite.scheduler.hybrid.tuning.tuning_file.cores", lambda: THREADS)
    return seen


# ---- tune
def test_tune_measures_every_stage_on_every_device(quick, gpu, capfd, monkeypatch):
    assert cli.main(["tune", "--seconds", "60"]) == 0
    said = capfd.readouterr().err
    tuning = read(cache_file().read_text(), "x")
    assert f"written: {cache_file()}" in said and "1920x1080" in said
    for name in ("full_search", "mode_decision", "deblock"):
        for size in measure.SIZES:
            rows, columns = -(-size[1] // 16), -(-size[0] // 16)
            beside, expected = (m.seconds(name, "cuda:0", rows, columns) / m.seconds("intra", "cuda:0", rows, columns)
                                for m in (tuning.models, THE_GPU))  # fmt: skip
            assert beside == pytest.approx(expected, rel=2e-2)
            assert tuning.models.seconds(name, CPU, rows, columns) == pytest.approx(
                CORE.seconds(name, CPU, rows, columns) / THREADS, rel=0.02)
    assert tuning.models.knows("full_search", "cuda:1")  # the second GPU is taken to be like the first
    assert tuning.models.links["cuda:1", CPU].rate == pytest.approx(4e10)
    assert tuning.models.seconds(ISSUE, "cuda:0", 68, 120) == pytest.approx(180e-6 + 8160 * 10e-9, rel=0.01)
    assert tuning.models.streams == 1
    assert tuning.models.knows(LOAD, CPU) and tuning.models.knows(ENTROPY, CPU)
    # one stream was faster, and fewer rows a tile; 3 GOPs are hardly
    assert tuning.chosen == {"threads": THREADS, "streams": 1, "tile_rows": 2, "gops": 2}
    tried = [row for row in quick if row[:1] == ("cuda:0",) and row[1:3] == measurements.CHOICES_AT and not row[4]]
    assert [row[3] for row in tried[:2]] == [THREADS, THREADS // 2]
    assert [serial for *_, serial, _ in tried[2:6]] == [False, True, False, True]  # by turns
    assert {row[5:] for row in quick if row[4]} == {(True, 2)}  # stages are measured as they will run
    assert [row[6] for row in quick if row[1:3] == measurements.GOPS_AT][:4] == [4, 2, 4, 2]
    assert len({row[1:3] for row in quick}) == 1 + len(measure.SIZES)  # and one to start
    assert tuning.rates.devices == [CPU, "cuda:0", "cuda:1"]
    for device, fps in ((CPU, 3.0), ("cuda:0", 100.0), ("cuda:1", 100.0)):
        for options, times in (({}, 1), ({"profile": "baseline"}, 2)):
            for width, height in measurements.RATE_SIZES:
                coding = Config.from_options(width=width, height=height, device="cpu", **options).coding
                assert tuning.rate(device, coding) == pytest.approx(times * fps * 1e6 / (width * height), rel=1e-3)
    assert "# Measured in" in cache_file().read_text()


def medium_kind(columns, rows):
    """P frames of preset medium."""
    return device_prediction.frame_traits_of(columns, rows, subme=6, cabac=True)


def test_what_tune_predicts_is_what_it_measured(quick, gpu, tmp_path):
    assert cli.main(["tune", "--seconds", "60", "--out", str(tmp_path / "t.toml"), "--quiet"]) == 0
    models, binds = read((tmp_path / "t.toml").read_text(), "x").models, set()
    for width, height in measure.SIZES:
        rows, columns = -(-height // 16), -(-width // 16)
        prediction = device_prediction.predict_single_device(models, CPU, medium_kind(columns, rows))
        busy = sum(CORE.seconds(stage.name, CPU, rows, columns) for stage in TABLE
                   if CORE.knows(stage.name, CPU) and not stage.only and stage.name in OF_P_FRAMES)
        bits = CORE.seconds(ENTROPY, CPU, rows, columns)
        assert prediction.seconds == pytest.approx((busy + bits) / THREADS + 1e-4, rel=0.03)
        gpu_alone = device_prediction.predict_single_device(models, "cuda:0", medium_kind(columns, rows))
        frame, host = gpu_takes(rows, columns, True)
        assert gpu_alone.seconds == pytest.approx(frame, rel=5e-3), (width, height)
        assert gpu_alone.bound == ("host thread" if frame - host < measure.WAITS * frame else "loop")
        binds.add(gpu_alone.bound)
    assert len(binds) == 2  # events had made the small ones slow
    assert models.meeting == 0.0  # no plan with a CPU of this GPU's promises a gain
    assert len([row for row in quick if row[0] != CPU and row[1:3] == (176, 144)]) == measurements.RUNS + 1  # by events


def test_the_middle_one_of_several_encodes_on_a_gpu_counts(quick, gpu, monkeypatch, tmp_path):
    honest, seen = measurements.watch, []

    def uneven(device, pictures, threads, window, most=0, gpu_clock=False, **more):
        encode = honest(device, pictures, threads, window, most, gpu_clock, **more)
        if device != CPU and not gpu_clock and "gops" in tune.chosen:
            size = encode.width, encode.height
            encode.frame *= (1.6, 1.0, 0.9, 1.5, 1.0)[seen.count(size)]
            seen.append(size)
        return encode

    monkeypatch.setattr(measurements, "watch", uneven)
    tune = measurements.Tune(["cpu", "cuda:0"], measure.SIZES[:4], 60.0, 4, lambda label: None)
    models = tune.run()
    assert seen == [*measure.SIZES[:4]] * measurements.RUNS  # all sizes, then all of them again
    said = tune.report(models)
    assert [line.count("±35.0%") for line in said[1:9]] == [0, 1] * 4 and "differed by up to 35 %" in said[9]
    for some in tune.measured:
        some.runs = [some.middle] * len(some.runs)
    assert "differed" not in str(tune.report(models))
    for encode in (some.middle for some in tune.measured):
        rows, columns = encode.mb_height, encode.mb_width
        if encode.device != CPU:
            assert encode.frame == pytest.approx(gpu_takes(rows, columns, True)[0])


def slower(models, times):
    """Models of a machine whose stages take so many times as long."""
    stages = {key: Curve(tuple((n, times * seconds) for n, seconds in c.points), times * c.one_thread)
              for key, c in models.stages.items()}  # fmt: skip
    return replace(models, stages=stages)


class Clock:
    """Time that passes by encodes only: `start` seconds for each, and those of its frames."""

    def __init__(self, monkeypatch, cpu, gpu, start):
        self.now, self.start = 1000.0, start
        self.frame = {CPU: cpu, "cuda:0": gpu, "hybrid": cpu}  # seconds a macroblock
        clock = types.SimpleNamespace(perf_counter=lambda: self.now)
        for module in (budget, measurements):
            monkeypatch.setattr(module, "time", clock)
        timed = measurements.watch

        def watch(device, pictures, threads, window, most=10_000, **more):
            encode = timed(device, pictures, threads, window, **more)
            encode.frame = self.spend(device, pictures, window, measure.WARM + measure.LEAST_FRAMES, most)
            encode.start, encode.wait = self.start, 0.3 * encode.frame
            return encode

        def gop_rate(device, pictures, threads, lanes, window, choices, gop):
            gops = lanes * (1 if device == CPU else measure_gops.WARM_GOPS + 1)
            return 1 / self.spend(device, pictures, window, gops * gop)

        def encode_rate(device, pictures, threads, window, choices, **options):
            return 1 / self.spend(device, pictures, window, 20)

        for name, function in (("watch", watch), ("gop_rate", gop_rate), ("encode_rate", encode_rate)):
            monkeypatch.setattr(measurements, name, function)
        monkeypatch.setattr(measurements, "measure_link", lambda k: {})
        monkeypatch.setattr(measurements, "frames_for", lambda w, h, clip=None: [(np.zeros((h, w), np.uint8),)])

    def spend(self, device, pictures, window, least, most=10_000):
        """The seconds of a frame, after an encode."""
        frame, n = self.frame[device] * pictures[0][0].size / 256, 0
        self.now += self.start
        begin = self.now
        while n < least or not (n >= most or window.is_over(begin)):
            window.check(self.start, frame if n else 0.0)
            self.now += frame
            n += 1
        return frame


@pytest.mark.parametrize("seconds", [10.0, 20.0, 70.0])
@pytest.mark.parametrize(("cpu", "gpu", "start"), [
    (1e-6, 0.1e-6, 0.05), (5e-6, 0.1e-6, 0.3), (2e-6, 2e-6, 0.2), (20e-6, 5e-6, 0.2), (60e-6, 20e-6, 0.5), (1e-6, None, 0.1),
    (50e-6, None, 0.5)])
def test_tune_takes_its_time_on_any_machine(quick, monkeypatch, seconds, cpu, gpu, start):
    clock, devices = Clock(monkeypatch, cpu, gpu, start), [CPU, "cuda:0"] if gpu else [CPU]
    tune = measurements.Tune(devices, measure.SIZES, seconds, 4, lambda label: None)
    begin = clock.now
    models = tune.run()
    spent = clock.now - begin
    assert spent < 1.1 * seconds
    if max(cpu, gpu or 0) <= 5e-6:  # else what is left over is too short for any more
        assert spent > 0.9 * seconds and (models.devices() == devices or seconds < 20)
    out = set()
    for device in devices:
        for width, height in measure.SIZES:
            if f"{width}x{height} on {device}: left out, no time" in tune.lines:
                out.add((device, width))
        assert {some.size[0] for some in tune.measured if some.device == device} <= {w for w, _ in measure.SIZES} - {
            w for of, w in out if of == device}
        for some in tune.measured:
            assert tune.rates.rate(some.device, measurements.P_FRAMES, some.middle.macroblocks) == pytest.approx(
                256 / clock.frame[some.device] / (some.middle.width * some.middle.height))


def test_what_meetings_cost_is_measured_where_a_plan_promises_a_gain(quick, monkeypatch):
    """By an encode with rows on both devices; then `auto` does not take hybrid, as it would by models without meetings."""
    monkeypatch.setattr(sys.modules[__name__], "THE_GPU", slower(THE_GPU, 30))
    kind, promised = medium_kind(120, 68), []

    def hybrid(rows, columns, split):
        plan = Plan.split((CPU, "cuda:0"), rows, *split, kind.me, kind.subme, kind.cabac)
        promised.append(simulate(plan, kind, filled(tune.models())).seconds)
        return 2 * promised[0]

    quick.hybrid = hybrid
    tune = measurements.Tune([CPU, "cuda:0"], measure.SIZES, 60.0, 4, lambda label: None)
    models = tune.run()
    assert len(promised) == 1 and models.meeting > 0
    assert f"a meeting {1e6 * models.meeting:.0f} us" in str(tune.report(models))
    tuning = read(to_toml(Tuning(Machine.here(), models)), "x")
    assert tuning.models.meeting == pytest.approx(models.meeting, rel=1e-3)
    assert device_prediction.faster(tuning, kind)[0] != "hybrid"
    tuning.models.meeting = 0.0
    assert device_prediction.faster(tuning, kind)[0] == "hybrid"


def test_what_has_no_time_is_left_out_and_said(quick, monkeypatch):
    Clock(monkeypatch, 1e-6, 400e-6, 0.1)
    tune = measurements.Tune([CPU, "cuda:0"], measure.SIZES, 20.0, 4, lambda label: None)
    models = tune.run()
    assert models.devices() == [CPU, "cuda:0"]
    assert [some.size for some in tune.measured if some.device != CPU] == [measure.SIZES[0]]  # which is needed
    for label in ("four streams", "4 GOPs at once on cuda:0", "1920x1080 on cuda:0", "defaults, 1280x720 on cuda:0"):
        assert f"{label}: left out, no time" in tune.lines
    assert tune.chosen == {"threads": 4, "streams": 4, "tile_rows": 4}  # the defaults; GOPs by rule
    assert ("cuda:0", measurements.P_FRAMES) in tune.rates.points and len(tune.rates.points) == 4
    Clock(monkeypatch, 1e-1, None, 0.1)
    with pytest.raises(Error, match="nothing was measured: 4 threads: left out"):
        measurements.Tune([CPU], measure.SIZES, 20.0, 4, lambda label: None).run()


def test_gops_are_as_long_as_the_time_allows(quick, monkeypatch):
    clock = Clock(monkeypatch, 1e-6, 0.0, 0.01)
    for frame, least, most in ((0.01e-6, 48, 48), (1e-6, 20, 40), (5e-6, 12, 12)):
        clock.frame["cuda:0"] = frame
        tune = measurements.Tune([CPU, "cuda:0"], measure.SIZES[:1], 60.0, 4, lambda label: None)
        tune.run()
        assert least <= tune.gop <= most


def test_rates_of_gpus_of_another_name_are_measured(quick):
    devices = [CPU, "cuda:0", "cuda:1", "cuda:2"]
    tune = measurements.Tune(devices, measure.SIZES[:1], 20.0, 4, lambda label: None, gpus=("A", "B", "A"))
    assert tune.alike() == {CPU: CPU, "cuda:0": "cuda:0", "cuda:1": "cuda:1", "cuda:2": "cuda:0"}
    labels = [step.label for step in tune.steps()]
    assert "QP 27 without B frames, 1280x720 on cuda:1" in labels and "defaults, 1920x1080 on cuda:1" in labels
    assert not any("cuda:2" in label for label in labels)
    assert "QP 27 without B frames, 1280x720 on cuda:0" not in labels  # as the encode at this size


def test_the_encodes_of_rates_have_their_traits():
    for _, options, traits, _ in measurements.ENCODES:
        config = measure.settings(CPU, 64, 64, 1, {}, **measure_gops.WITHOUT | options)
        assert EncodeTraits.of(config.coding) == traits == EncodeTraits.of(
            Config.from_options(width=64, height=64, device="cpu", **options).coding)
    assert EncodeTraits.of(measure.settings(CPU, 64, 64, 1, {}).coding) == measurements.P_FRAMES


def test_tune_compiles_before_its_time_counts(quick, monkeypatch, tmp_path, capfd):
    compiled = []
    monkeypatch.setattr(tune_command, "will_compile", lambda config: not config.coding.cabac)
    monkeypatch.setattr(tune_command, "compile_for", compiled.append)
    words = ["tune", "--seconds", "60", "--clip", str(a_clip(tmp_path)), "--out", str(tmp_path / "t.toml")]
    assert cli.main(words) == 0
    assert [config.coding.cabac for config in compiled] == [False]
    assert "in addition to the seconds of the measurements" in capfd.readouterr().err


def test_tune_ends_in_time_on_the_emulated_gpu(monkeypatch, tmp_path, capfd):
    """All as on a real machine with a slow GPU, and the file can be read."""
    monkeypatch.setattr(tune_command, "cuda_kernels_will_compile", lambda *_: False)
    monkeypatch.setattr(tune_command, "will_compile", lambda _: False)
    monkeypatch.setattr("h264lite.cli.measuring.links.SIZES", (4096, 65536))
    clip, path = tmp_path / "clip_48x32.yuv", tmp_path / "t.toml"
    clip.write_bytes(b"".join(plane.tobytes() for planes in measure.synthetic(48, 32, 6) for plane in planes))
    device_module.use_driver(EmulatedDriver())
    try:
        for device in (CPU, "cuda:0"):  # compiles, or loads
            measure_gops.encode_rate(device, measure.synthetic(32, 32, 2), 1, budget.Window(0.0), {})
        for _ in range(3):  # other load of this machine may stall a run
            begin = time.monotonic()
            assert cli.main(["tune", "--seconds", "6", "--clip", str(clip), "--out", str(path)]) in (0, 1)
            spent = time.monotonic() - begin
            tuning = read(path.read_text(), "x") if path.exists() else None
            if 5.0 < spent < 7.0 and tuning is not None and tuning.rates.devices == [CPU, "cuda:0"]:
                break
        else:
            pytest.fail(f"{spent} s\n{capfd.readouterr().err}")
    finally:
        device_module.use_driver(None)
    coding = Config.from_options(width=48, height=32, device="cpu", qp=27, bframes=0).coding
    assert tuning.models.devices() == [CPU, "cuda:0"] and tuning.rate(CPU, coding) > tuning.rate("cuda:0", coding) > 0


def test_sizes_that_do_not_fit_are_left_out_and_a_gpu_that_fails_ends_it(quick, gpu, monkeypatch, tmp_path, capfd):
    fits, failure = measurements.watch, Error("device cuda: 100 MiB left, and an array needs 200 MiB")

    def watch(device, pictures, *args, **more):
        if device != CPU and pictures[0][0].shape[1] > 1920:
            raise failure
        return fits(device, pictures, *args, **more)

    monkeypatch.setattr(measurements, "watch", watch)
    words = ["tune", "--seconds", "60", "--out", str(tmp_path / "t.toml")]
    assert cli.main(words) == 0
    assert "3840x2160 on cuda:0: device cuda: 100 MiB left" in capfd.readouterr().err
    failure = DeviceLost("the GPU failed in full_search")  # which is no matter of sizes
    assert cli.main(words) == 1

    def lost(ordinal):
        raise tune_command.GpuLost("the GPU failed in memcpy_htod_async")

    monkeypatch.setattr(measurements, "watch", fits)
    monkeypatch.setattr(measurements, "measure_link", lost)
    assert cli.main(words) == 3
    assert "failed in memcpy" in capfd.readouterr().err


def test_tune_says_before_measuring_where_it_cannot_write(quick, tmp_path, capfd):
    assert cli.main(["tune", "--out", str(tmp_path)]) == 1
    assert "Is a directory" in capfd.readouterr().err and not quick


def test_a_clip_of_ones_own(quick, tmp_path, capfd):
    clip = tmp_path / "clip_64x48.yuv"
    clip.write_bytes(np.random.default_rng(1).integers(0, 255, 5 * 64 * 72, np.uint8).tobytes())
    assert cli.main(["tune", "--clip", str(clip), "--out", str(tmp_path / "t.toml"), "--seconds", "60"]) == 0
    assert {row[1:3] for row in quick if row[1:3] != measurements.CHOICES_AT} == {(32, 32), (64, 48)}
    clip.write_bytes(bytes(64 * 72))
    assert cli.main(["tune", "--clip", str(clip), "--seconds", "60"]) == 2
    assert "fewer than 2 frames" in capfd.readouterr().err


def a_clip(folder, name="clip_64x48.yuv"):
    path = folder / name
    path.write_bytes(bytes(3 * 64 * 72))
    return path


@pytest.mark.parametrize(("words", "said"), [
    (["--out", "."], "error: .: Is a directory"), (["--out", "/"], "error: /: Is a directory"),
    (["--out", ""], "--out '': not a file name"), (["--input-res", "32x32"], "--input-res has no effect without --clip"),
    (["--clip", "clip.y4m", "--input-res", "32x32"], "--input-res 32x32 contradicts the input, which is 64x48"),
    (["--clip", "clip.y4m", "--out", "./clip.y4m"], "out and clip are the same: clip.y4m"),
])
def test_what_tune_cannot_do_is_refused_before_it_measures(quick, tmp_path, monkeypatch, capfd, words, said):
    monkeypatch.chdir(tmp_path)
    video = b"YUV4MPEG2 W64 H48 F25:1\n" + 2 * (b"FRAME\n" + bytes(64 * 72))
    (tmp_path / "clip.y4m").write_bytes(video)
    assert cli.main(["tune", "--seconds", "60", *words]) == (1 if "directory" in said else 2)
    told = capfd.readouterr().err
    assert said in told.splitlines()[-1] and "Traceback" not in told and not quick
    assert (tmp_path / "clip.y4m").read_bytes() == video


def test_pins_outlive_what_is_measured_anew(quick, tmp_path, capfd):
    path = tmp_path / "t.toml"
    words = ["tune", "--seconds", "60", "--clip", str(a_clip(tmp_path)), "--out", str(path)]
    save(tuning_of_here(machine=Machine("0"), pins={"gops": 3, "device": "cpu"}), path)
    assert cli.main(words) == 0
    assert "kept from the file before, pinned: gops = 3, device = cpu" in capfd.readouterr().err
    assert read(path.read_text(), "x").pins == {"gops": 3, "device": "cpu"}
    path.write_text("[pins]\nthreads = 1000")
    assert cli.main(words) == 0
    assert "pins of the file before are not kept" in capfd.readouterr().err
    assert not read(path.read_text(), "x").pins


def test_tune_writes_to_a_pipe_a_device_and_through_a_link(quick, tmp_path, capfd):
    words = ["tune", "--seconds", "60", "--clip", str(a_clip(tmp_path)), "--out"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert cli.main([*words, str(pipe)]) == 0
    assert read(os.read(end, 1 << 16).decode(), "x").chosen and pipe.is_fifo()
    os.close(end)
    link = tmp_path / "link.toml"
    link.symlink_to("real.toml")
    assert cli.main([*words, str(link)]) == 0
    assert link.is_symlink() and read((tmp_path / "real.toml").read_text(), "x").chosen
    assert cli.main([*words, "/dev/full"]) == 1
    assert "/dev/full: No space left on device" in capfd.readouterr().err and not os.path.isfile("/dev/full")


def test_tune_reads_back_what_it_wrote_of_a_clip_of_any_name_and_of_many_cores(quick, tmp_path, monkeypatch):
    monkeypatch.setattr("h264lite.scheduler.hybrid.tuning.tuning_file.cores", lambda: 384)
    monkeypatch.setattr(measurements, "gop_rate", lambda device, pictures, threads, lanes, *_: float(lanes))
    clip, path = a_clip(tmp_path, "a\nb\x1b\udcff_64x48.yuv"), tmp_path / "t.toml"
    assert cli.main(["tune", "--seconds", "60", "--clip", str(clip), "--out", str(path)]) == 0
    assert read(path.read_text(), "x").chosen["gops"] == 64
    assert {row[3] for row in quick if row[1] != 32} == {256, 128}


def test_without_a_home_tune_asks_for_a_place(quick, homeless, capfd):
    assert cli.main(["tune"]) == 1
    assert "set HOME or H264LITE_CACHE, or give --out" in capfd.readouterr().err and not quick


@pytest.fixture
def homeless(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("H264LITE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", home)


def test_synthetic_pictures_look_like_video():
    pictures = measure.synthetic(176, 144, 6)
    assert [plane.shape for plane in pictures[0]] == [(144, 176), (72, 88), (72, 88)]
    assert all((a[0] == b[0]).all() for a, b in zip(pictures, measure.synthetic(176, 144, 6)))  # the same every time
    first, second = pictures[0][0].astype(int), pictures[1][0].astype(int)
    assert first.std() > 20 and 1 < np.abs(first - second).mean() < 30
    assert [measure.ping_pong([(n,) for n in range(4)], k)[0] for k in range(8)] == [0, 1, 2, 3, 2, 1, 0, 1]


@pytest.mark.parametrize(("width", "height"), [(1, 1), (3, 5), (9, 2), (175, 143)])
def test_synthetic_pictures_of_any_size(width, height):
    chroma = (height + 1) // 2, (width + 1) // 2
    for picture in measure.synthetic(width, height, 3):
        assert [plane.shape for plane in picture] == [(height, width), chroma, chroma]


def test_a_watched_encode_is_a_real_one():
    encode = measure.watch("cpu", measure.synthetic(48, 48, 4), 1, budget.Window(0.0))
    assert encode.frames == measure.LEAST_FRAMES and encode.threads == 1 and encode.macroblocks == 9
    assert encode.stages["full_search"] > 0 and encode.entropy > 0 and encode.bits > 0
    assert sum(encode.stages.values()) < encode.loop < encode.frame * 2
    samples = Samples()
    samples.add_cpu(encode)
    assert samples.points["full_search", CPU][0][:2] == pytest.approx(
        (9, encode.stages["full_search"] * encode.loop / sum(encode.stages.values())))


def test_rows_on_both_devices_are_watched(monkeypatch):
    device_module.use_driver(EmulatedDriver())
    plans, run_frame = set(), HybridExecutor.run_frame

    def seen(self, number, *rest):
        plans.add(self.adaptation.this)
        return run_frame(self, number, *rest)

    monkeypatch.setattr(HybridExecutor, "run_frame", seen)
    try:
        encode = measure.watch("hybrid", measure.synthetic(48, 64, 4), 2, budget.Window(0.0), gpu_choices={}, split=(1, 1))
    finally:
        device_module.use_driver(None)
    assert encode.frames == measure.LEAST_FRAMES and encode.frame > 0
    assert {plan.rows["deblock"] for plan in plans} == {(1, 3)} and {plan.rows["intra"] for plan in plans} == {(0, 4)}


@pytest.mark.parametrize("lanes", [1, 2])
def test_gops_at_once_are_measured(lanes):
    assert measure_gops.gop_rate("cpu", measure.synthetic(48, 48, 3), 2, lanes, budget.Window(0.0), {}) > 0
    with pytest.raises(budget.TooLong):
        measure_gops.gop_rate("cpu", measure.synthetic(48, 48, 3), 2, lanes, budget.Window(latest=0.0), {})


@pytest.mark.parametrize("options", [{}, {"profile": "baseline", "qp": 27}])
def test_rates_of_encodes_are_measured(options):
    clip = measure.synthetic(48, 48, 3)
    assert measure_gops.encode_rate("cpu", clip, 2, budget.Window(0.0), {}, **options) > 0
    for measured in (measure_gops.encode_rate, measure.watch):
        with pytest.raises(budget.TooLong):
            measured("cpu", clip, 2, budget.Window(end=0.0, latest=0.0), gpu_choices={})


@pytest.mark.parametrize("lanes", [1, 2])
def test_gops_at_once_are_measured_on_a_gpu_as_from_a_file(lanes, monkeypatch):
    """Pictures are read ahead to where the GPU takes them from, each the right one."""
    device_module.use_driver(EmulatedDriver())
    clip, seen = measure.synthetic(48, 48, 4), {}
    number = {b"".join(plane.tobytes() for plane in planes): n for n, planes in enumerate(clip)}
    encode = measure_gops.Pipeline.encode

    def read(self, source, spec=None):
        assert source is self.next_buffer()
        seen.setdefault(self, []).append(number[source.tobytes()])
        return encode(self, source, spec)

    monkeypatch.setattr(measure_gops.Pipeline, "encode", read)
    assert measure_gops.gop_rate("cuda:0", clip, 4, lanes, budget.Window(0.0), {"streams": 1}, 3) > 0
    device_module.use_driver(None)
    assert len(seen) == lanes and sum(map(len, seen.values())) >= 9 * lanes, "three GOPs a lane"
    for numbers in seen.values():
        for k in range(0, len(numbers), 3):  # a GOP, the last one in part
            assert numbers[k : k + 3] in ([0, 1, 2][: len(numbers) - k], [3, 2, 1][: len(numbers) - k])


def test_first_pictures_do_not_count(monkeypatch):
    """Those that are finished before the clock begins, with those that one call brings beside the last of them."""
    now = 0.0
    monkeypatch.setattr(measure_gops.time, "perf_counter", lambda: now)
    for warm, expected, end in ((4, 6 / 2, 5), (0, 3 / 3, 2)):
        now = 0.0
        count = measure_gops._Count(warm, 3, budget.Window(2.0))
        for n, done in zip(count, (0, 0, 3, 3, 2, 4, 9)):
            assert n == now
            now += 1.0
            count.add([None] * done)
        assert count.rate() == pytest.approx(expected)
        assert n == end


def test_links_are_measured_on_the_emulated_gpu():
    from h264lite.cli.measuring import links

    device_module.use_driver(EmulatedDriver())
    try:
        by_devices = links.measure()
    finally:
        device_module.use_driver(None)
    assert set(by_devices) == {(CPU, "cuda:0"), ("cuda:0", CPU)} and all(link.rate > 0 for link in by_devices.values())


# ---- what encodes make of it
def tuning_of_here(**changes):
    models = guess([CPU, "cuda:0"], THREADS)
    chosen = {"threads": 3, "gops": 2}
    return Tuning(**{"machine": Machine.here(), "models": models, "measured_at": now(), "chosen": chosen} | changes)


def test_an_encode_takes_what_was_chosen_and_says_what_it_cannot_use(tmp_path):
    save(tuning_of_here(), cache_file())
    config = Config.from_options(width=1280, height=720, gops="auto", keyint=10)
    assert config.machine.threads == 3 and count_lanes(config, 100) == 2 and not config.machine.tuning_note
    assert count_lanes(Config.from_options(width=64, height=64, keyint=10), 100) == 3  # small pictures: by rule
    assert Config.from_options(width=64, height=64, threads=2).machine.threads == 2  # what is said wins
    save(tuning_of_here(machine=Machine()), cache_file())
    config = Config.from_options(width=64, height=64)
    assert config.machine.tuning is None and "run h264lite tune" in config.machine.tuning_note
    with pytest.raises(OptionError, match=r"tuning .*run h264lite tune"):
        Config.from_options(width=64, height=64, tuning=str(cache_file()))


def test_auto_goes_by_what_was_measured(gpu):
    save(tuning_of_here(), cache_file())
    large = Config.from_options(width=1920, height=1080).machine
    assert large.device == "cuda" and "predicted" in large.device_reason
    small = Config.from_options(width=64, height=64).machine
    assert small.device == "cpu" and "cuda:0" in small.device_reason
    save(tuning_of_here(pins={"device": "cpu"}), cache_file())
    assert Config.from_options(width=1920, height=1080).machine.device == "cpu"
    assert Config.from_options(width=1920, height=1080, device="cuda").machine.device == "cuda"


def test_auto_goes_by_size_where_a_stage_was_not_measured(gpu):
    tuning = tuning_of_here()
    for stage, device in list(tuning.models.stages):
        if device == CPU:
            tuning.models.stages[stage, "cuda:0"] = Curve.line(1e-6, tuning.models.stages[stage, CPU].at(8160) / 8160)
    for device in (CPU, "cuda:0"):
        del tuning.models.stages["deblock", device]
    assert device_prediction.faster(tuning, medium_kind(120, 68)) is None


def test_a_pinned_device_that_is_not_there_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(tuning_lookup, "why_no_cuda", lambda: "no NVIDIA driver")
    path = tmp_path / "t.toml"
    for pin, told in (("cpu", False), ("cuda", True), ("hybrid", True)):
        save(tuning_of_here(pins={"device": pin}), path)
        note = Config.from_options(width=64, height=64, tuning=str(path)).machine.tuning_note
        assert (note == f'{path}: device = "{pin}" is pinned, and there is no GPU to use (no NVIDIA driver)') == told
        assert bool(note) == told and not tuning_lookup.find_tuning(str(path), "cpu")[1]
        assert doctor_command.examine(str(path))["problems"] == [note] * told


def test_auto_takes_both_where_that_is_worth_it(gpu):
    tuning = tuning_of_here()
    stages = tuning.models.stages
    for stage, device in list(stages):
        if device == CPU:  # a GPU like the processor
            stages[stage, "cuda:0"] = Curve.line(1e-6, stages[stage, CPU].at(8160) / 8160)
    save(tuning, cache_file())
    config = Config.from_options(width=1920, height=1080, qp=26, bframes=0)
    assert config.machine.device == "hybrid" and "hybrid" in config.machine.device_reason
    planned = device_prediction.planned(config.coding, config.machine)
    assert planned.plan.devices == (CPU, "cuda:0") and planned.plan.single is None
    assert planned.prediction.seconds < min(planned.single_device_seconds.values())


def test_verbose_tells_the_plan_and_what_was_measured(monkeypatch, tmp_path, capfd):
    fake_pipeline.take_place(monkeypatch)
    monkeypatch.setattr("h264lite.cli.encode.will_compile", lambda *_: False)
    clip = tmp_path / "a_32x32.yuv"
    clip.write_bytes(bytes(32 * 48 * 3))
    words = ["encode", str(clip), str(tmp_path / "o.264"), "--device", "cpu", "--verbose", "--qp", "26", "--bframes", "0"]
    assert cli.main(words) == 0
    assert "was not measured" in capfd.readouterr().err
    save(tuning_of_here(), cache_file())
    assert cli.main(words) == 0
    said = capfd.readouterr().err
    assert "plan: everything on cpu; predicted" in said and "a frame: predicted" in said
    save(tuning_of_here(machine=Machine()), cache_file())
    assert cli.main(words) == 0
    assert "[warning]" in capfd.readouterr().err


# ---- bench
def test_bench_takes_turns_and_writes_what_it_found(quick, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(bench_command, "choose", lambda names, tuning: (["cpu", "cuda"], {"hybrid": "why not"}))
    assert cli.main(["bench", "--sizes", "32x32,64x48", "--rounds", "3", "--json", str(tmp_path / "b.json")]) == 0
    report = json.loads((tmp_path / "b.json").read_text())
    assert [row["size"] for row in report["sizes"]] == ["32x32", "64x48"] and report["absent"] == {"hybrid": "why not"}
    assert set(report["sizes"][0]["encode_fps"]) == {"cpu", "cuda"} and report["sizes"][0]["spread"]["cpu"] == 0
    named = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
    assert all(f"`{key}`" in named for key in {*report, *report["machine"], *(key for row in report["sizes"] for key in row)})
    rounds = [[row[0] for row in quick[n : n + 2]] for n in range(0, 6, 2)]
    assert all(sorted(names) == ["cpu", "cuda"] for names in rounds) and rounds != 3 * rounds[:1]  # not always the same first
    assert "64x48" in capfd.readouterr().err


def test_bench_checks_its_report_before_it_measures_and_leaves_the_old_one(quick, monkeypatch, tmp_path, capfd):
    words = ["bench", "--devices", "cpu", "--sizes", "16x16", "--json"]
    assert cli.main([*words, str(tmp_path / "no" / "b.json")]) == 1 and not quick
    assert capfd.readouterr().err == f"h264lite bench: error: {tmp_path}/no/b.json: there is no folder {tmp_path}/no\n"
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("measured with patience")

    def fails(*args, **more):
        raise DeviceLost("gone")

    monkeypatch.setattr(bench_command, "watch", fails)
    assert cli.main([*words, str(old)]) == cli.main([*words, str(new)]) == 1
    assert old.read_text() == "measured with patience" and not new.exists()


def test_bench_compares_both_with_the_better_one(monkeypatch):
    """Of the same round."""
    rates = {"cpu": [100.0, 50.0, 80.0], "cuda": [50.0, 150.0, 40.0], "hybrid": [130.0, 65.0, 120.0]}
    by_round = {name: iter(values) for name, values in rates.items()}
    timed = lambda name, *_, **__: TimedEncode(name, 16, 16, 1, 9, 1 / next(by_round[name]))  # noqa: E731
    monkeypatch.setattr(bench_command, "watch", timed)
    given = types.SimpleNamespace(rounds=3, threads=1, run_seconds=1.0, tuning=None)
    row = bench_command.measure((16, 16), ("cpu", "cuda", "hybrid"), [], given)
    assert row["hybrid_over_better"] == pytest.approx(1.3) and row["encode_fps"]["hybrid"] == pytest.approx(120)
    assert row["encode_fps_by_round"] == {name: pytest.approx(values) for name, values in rates.items()}
    assert row["hybrid_over_sum"] == pytest.approx(130 / 150)
    head, line = bench_command.table([row], ("cpu", "cuda", "hybrid"))
    assert head.split()[-2:] == ["hybrid/better", "hybrid/sum"] and line.split()[-2:] == ["1.30", "0.87"]


def test_bench_says_how_far_predictions_are_off(quick, gpu, tmp_path, capfd):
    words = ["bench", "--devices", "cuda", "--rounds", "1", "--sizes", "1920x1080,1024x576"]
    words += ["--json", str(tmp_path / "b.json")]
    assert cli.main(words) == 0
    assert "predicted" not in capfd.readouterr().err.split("nothing is predicted")[1]
    assert json.loads((tmp_path / "b.json").read_text())["tuning"] is None
    assert cli.main(["tune", "--seconds", "60", "--quiet"]) == 0
    assert cli.main(words) == 0
    said, report = capfd.readouterr().err, json.loads((tmp_path / "b.json").read_text())
    assert report["tuning"]["file"] == str(cache_file()) and f"predicted from {cache_file()}" in said
    models = read(cache_file().read_text(), "x").models
    for row, (width, height) in zip(report["sizes"], ((1920, 1080), (1024, 576))):
        rows, columns = -(-height // 16), width // 16
        frame_traits = medium_kind(columns, rows)
        rate = 1 / device_prediction.predict_single_device(models, "cuda:0", frame_traits).seconds
        measured = 1 / (1.1 * gpu_takes(rows, columns)[0])  # four streams, four rows a tile: not as tune chose
        assert row["predicted_encode_fps"]["cuda"] == pytest.approx(rate, rel=1e-3)
        assert row["predicted_off_percent"]["cuda"] == pytest.approx(100 * (rate / measured - 1), abs=0.1)
        assert f"{rate:11.1f}{100 * (rate / measured - 1):+8.1f}%" in said
    assert report["sizes"][0]["predicted_off_percent"]["cuda"] == pytest.approx(100 * (1.1 / 0.95 - 1), abs=0.5)


def test_bench_leaves_out_predictions_of_devices_that_were_not_measured():
    row = {"size": "64x64", "encode_fps": {"cpu": 50.0, "cuda": 80.0}, "spread": {"cpu": 0.0, "cuda": 0.0}}
    row |= bench_command.with_predictions(row["encode_fps"], {"cuda": 100.0})
    head, line = bench_command.table([row], ("cpu", "cuda"))
    assert row["predicted_off_percent"] == {"cuda": pytest.approx(25.0)}
    assert head.split() == ["size", *("cpu", "predicted", "off"), *("cuda", "predicted", "off")]
    assert line.index("100.0") + len("100.0") == head.rindex("predicted") + len("predicted") and line.endswith("+25.0%")


def test_bench_predicts_for_the_emulated_gpu(monkeypatch, tmp_path, capfd):
    def watch(*args, **more):
        seen.append(measure.watch(*args, **more))
        return seen[-1]

    seen: list[TimedEncode] = []
    monkeypatch.setattr(bench_command, "watch", watch)
    monkeypatch.setattr(measure, "LEAST_FRAMES", 3)
    monkeypatch.setattr(measure, "WARM", 1)
    device_module.use_driver(EmulatedDriver())
    try:
        save(tuning_of_here(), cache_file())
        words = ["bench", "--devices", "cuda", "--rounds", "1", "--seconds", "0.1", "--sizes", "16x16", "--json", "-"]
        assert cli.main(words) == 0
        row = json.loads(capfd.readouterr().out)["sizes"][0]
    finally:
        device_module.use_driver(None)
    assert row["predicted_off_percent"]["cuda"] == pytest.approx(
        100 * (row["predicted_encode_fps"]["cuda"] / row["encode_fps"]["cuda"] - 1))
    assert row["predicted_encode_fps"]["cuda"] > row["encode_fps"]["cuda"] > 0  # an emulated GPU is slow
    encode = seen[0]
    assert 0 < encode.wait < 0.5 * encode.frame < encode.loop  # the host's thread is that GPU


def test_bench_without_a_gpu_says_so_and_refuses_one_that_is_asked_for(monkeypatch):
    def absent(**options):
        if options["device"] != "cpu":
            raise DeviceError("no GPU")

    monkeypatch.setattr(bench_command.Config, "from_options", staticmethod(absent))
    assert bench_command.choose(None, None) == (["cpu"], {"cuda": "no GPU", "hybrid": "no GPU"})
    with pytest.raises(DeviceError):
        bench_command.choose("cuda", None)


# ---- doctor
def test_doctor_says_what_is_there(capsys, monkeypatch):
    monkeypatch.setattr(doctor_command, "why_no_cuda", lambda: "no NVIDIA driver on this machine")
    monkeypatch.setattr(doctor_command.gpu_facts, "driver_version", lambda: "")
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out
    for words in ("processor:", "SIMD:", "no NVIDIA driver", "nvcc:", "none in use", "1920x1080:", "all is well"):
        assert words in said
    save(tuning_of_here(pins={"gops": 4}), cache_file())
    assert cli.main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["tuning"]["used"] and facts["tuning"]["age_days"] == 0 and facts["tuning"]["pins"] == {"gops": 4}
    assert facts["would_use"]["1920x1080"]["threads"] == 3 and facts["would_use"]["1920x1080"]["fps"] == {}
    tuning = tuning_of_here()
    tuning.rates.add(CPU, EncodeTraits(True, True, True), 8160, 12.34)
    save(tuning, cache_file())
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.endswith(", 3 threads, cpu 12.3 fps")] == [
        line for line in said if line.startswith("1920x1080:")]  # not 176x144
    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
    named = {key for part in (facts, facts["processor"], facts["cuda"], facts["tuning"]) for key in part}
    named |= set(facts["would_use"]["1920x1080"])
    assert not [key for key in named if f"`{key}`" not in page]


def test_doctor_names_what_is_broken(capsys, tmp_path, monkeypatch):
    path = tmp_path / "t.toml"
    path.write_text("[")
    assert cli.main(["doctor", "--tuning", str(path)]) == 1
    assert f"problem: {path}: damaged" in capsys.readouterr().out
    save(tuning_of_here(machine=Machine()), cache_file())
    assert cli.main(["doctor"]) == 1
    assert "run h264lite tune" in capsys.readouterr().out
    os.remove(cache_file())
    monkeypatch.setattr(doctor_command, "why_no_cuda", lambda: "PyCUDA is not usable: pip install pycuda")
    monkeypatch.setattr(doctor_command.gpu_facts, "driver_version", lambda: "580.1")
    assert cli.main(["doctor"]) == 1
    assert "problem: there is an NVIDIA driver (580.1), but PyCUDA" in capsys.readouterr().out


def test_doctor_says_so_where_it_cannot_print(monkeypatch, tmp_path, capfd):
    for words in (["doctor"], ["doctor", "--json"]):
        with open("/dev/full", "w") as full:
            monkeypatch.setattr(sys, "stdout", full)
            assert cli.main(words) == 1
        assert capfd.readouterr().err == "h264lite doctor: error: standard output: no space left on device\n"
    strict = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    monkeypatch.setattr(sys, "stdout", strict)
    assert cli.main(["doctor", "--tuning", "q\udcff.toml"]) == 1
    assert b"problem: q\\udcff.toml: No such file" in strict.buffer.getvalue()


@pytest.mark.parametrize("words", [["doctor"], ["tune"], ["encode", "in_16x16.yuv", "out.264", "--quiet"]])
def test_a_wrong_name_of_instructions_is_told_in_one_line(tmp_path, words):
    (tmp_path / "in_16x16.yuv").write_bytes(bytes(384))
    environment = os.environ | {"H264LITE_SIMD": "sse9"}
    done = subprocess.run([sys.executable, "-m", "h264lite", *words], env=environment, cwd=tmp_path, capture_output=True,
                          text=True, timeout=60)  # fmt: skip
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == f"h264lite {words[0]}: error: H264LITE_SIMD=sse9: use portable, avx2 or avx512\n"


def test_doctor_names_a_cache_that_cannot_be_used(monkeypatch, tmp_path, homeless):
    assert "set HOME or H264LITE_CACHE" in doctor_command.examine()["problems"][0]
    assert "set HOME" in Config.from_options(width=64, height=64).machine.tuning_note
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path / ("x" * 300)))
    assert "File name too long" in doctor_command.examine()["problems"][0]
    assert "File name too long" in Config.from_options(width=64, height=64).machine.tuning_note


def test_doctor_names_compiled_kernels_that_may_not_be_read(monkeypatch, tmp_path):
    """A folder that may not be entered."""
    doctor_command.kernel_problems()  # imports them, which chooses their folders for all tests

    def closed(place):
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache_folders.os, "access", lambda place, mode: not mode & os.W_OK and "__pycache__" in str(place))
    monkeypatch.setattr(numba_free.os, "listdir", closed)
    assert first_run.will_compile()
    facts = doctor_command.examine()
    assert not facts["processor"]["compiled"]
    assert any("__pycache__ cannot be written, so every process compiles again" in text for text in facts["problems"])


def test_doctor_on_the_emulated_gpu(monkeypatch, tmp_path):
    device_module.use_driver(EmulatedDriver())
    try:
        facts = doctor_command.examine()
    finally:
        device_module.use_driver(None)
    assert facts["cuda"]["usable"] and facts["cuda"]["gpus"][0]["kernel_files"] > 10
    assert any("GPU 0:" in line for line in doctor_command.lines(facts))
    facts["cuda"]["way"] = "cuda-bindings 13.5.0"
    assert "CUDA:        usable, through cuda-bindings 13.5.0" in doctor_command.lines(facts)


def test_doctor_advises_no_packages_for_a_gpu_where_none_is(monkeypatch, capsys, tmp_path):
    for module in ("driver", "library"):
        monkeypatch.setattr(f"h264lite.cuda_src.runtime.{module}.driver_library", lambda: None)
    monkeypatch.setattr("h264lite.cuda_src.runtime.facts._KERNEL_MODULE", tmp_path)
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "no NVIDIA driver on this machine" in said and "pip install" not in said
    assert "pycuda" not in said.partition("not installed:")[2].partition("\n")[0]


# ---- the chart
def a_trace(frames=12):
    trace = Trace()
    for n in range(frames):
        at = trace.start + 0.01 * n
        trace.add(HOST, "loop", "loop", at, 0.002, n)
        trace.add(GPU, "main", "full_search", at + 0.001, 0.004, n)
        trace.add(GPU, "main", "deblock", at + 0.005, 0.003, n)
        trace.add(HOST, "h264lite_0", "entropy", at + 0.009, 0.008, n)
    return trace


def test_the_chart_shows_frames_in_the_middle():
    pytest.importorskip("matplotlib")
    trace = a_trace()
    begin, end = timeline.window(trace)
    assert begin - trace.start == pytest.approx(0.04) and end - begin == pytest.approx(0.04)
    data = timeline.draw(trace, "a title")
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(data))
    assert pixels.shape[1] > 1000 and pixels[..., :3].std() > 0.05
    assert timeline.draw(Trace()).startswith(b"\x89PNG")  # nothing to draw


def test_without_matplotlib_it_is_refused_before_anything_is_encoded(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(chart.importlib.util, "find_spec", lambda name: None)
    clip = tmp_path / "a_32x32.yuv"
    clip.write_bytes(bytes(32 * 48))
    assert cli.main(["encode", str(clip), str(tmp_path / "o.264"), "--trace-png", str(tmp_path / "c.png")]) == 2
    assert "--trace-png needs matplotlib" in capfd.readouterr().err and not (tmp_path / "o.264").exists()
