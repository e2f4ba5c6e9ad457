"""Time models: curves through what was measured, averages of what is measured later, drift."""

import numpy as np
import pytest
from h264lite.scheduler.hybrid.tuning import models
from h264lite.scheduler.hybrid.tuning.models import CPU, ENTROPY, WEIGHT, Curve, Link, Models, guess
from h264lite.scheduler.stages import CPU as CPU_FOLDER
from h264lite.scheduler.stages import CUDA, D2H, ROWS, TABLE, Stage

SEED = 6


def test_a_curve_goes_through_its_points_and_on_along_its_ends():
    curve = Curve.measured([(8160, 7e-3), (100, 1e-3), (400, 2e-3)])
    for n, seconds in ((100, 1e-3), (400, 2e-3), (8160, 7e-3), (250, 1.5e-3)):
        assert curve.at(n) == pytest.approx(seconds)
    slope = 5e-3 / 7760
    assert curve.at(16320) == pytest.approx(7e-3 + 8160 * slope)
    assert curve.at(50) == pytest.approx(1e-3 - 50 * 1e-3 / 300)  # the launch stays
    assert Curve.measured([(100, 1e-3), (200, 3e-3)]).at(10) == pytest.approx(1e-4)  # no less than in proportion
    assert curve.seconds(0, 120) == 0


def test_a_curve_never_falls():
    rng = np.random.default_rng(SEED)
    for _ in range(200):
        points = [(int(n), float(t)) for n, t in zip(rng.integers(1, 9000, 6), rng.uniform(1e-6, 1e-2, 6))]
        curve = Curve.measured(points, float(rng.uniform(0, 1e-5)))
        values = [curve.seconds(rows, 40, 4) for rows in range(0, 300)]
        assert values == sorted(values) and values[1] > 0, f"seed {SEED}: {points}"
        if len({n for n, _ in points}) == 6:
            assert sum(t for _, t in curve.points) == pytest.approx(sum(t for _, t in points))


def test_one_row_takes_one_thread():
    curve = Curve.line(0.0, 1e-6, one_thread=8e-6)
    assert curve.seconds(1, 100, threads=8) == pytest.approx(800e-6)  # as eight rows do
    assert curve.seconds(8, 100, threads=8) == pytest.approx(800e-6)
    assert curve.seconds(9, 100, threads=8) == pytest.approx(900e-6)
    assert curve.seconds(16, 100, threads=1) == pytest.approx(16 * 800e-6)


def test_a_straight_line_for_the_program_is_the_line():
    launch, each = Curve.line(50e-6, 2e-8).launch_and_each(8160)
    assert launch == pytest.approx(50e-6) and each == pytest.approx(2e-8)


def test_a_link_from_what_was_measured():
    link = Link(12e-6, 24e9)
    fitted = Link.measured([(size, link.seconds(size)) for size in (4096, 1 << 16, 1 << 24)])
    assert fitted.latency == pytest.approx(12e-6) and fitted.rate == pytest.approx(24e9)


def test_measurements_are_averaged_and_drift_says_how_far_they_moved():
    models = Models({("a", CPU): Curve.line(0, 1e-6), ("b", CPU): Curve.line(0, 1e-8)})
    models.observe("a", CPU, 10, 10, 100e-6)
    models.observe("b", CPU, 10, 10, 1e-6)
    models.mark_planned()
    assert models.drift() == 0
    models.observe("a", CPU, 5, 10, 100e-6)  # twice the time
    assert models.seconds("a", CPU, 10, 10) == pytest.approx(100e-6 * (1 + WEIGHT))
    assert models.drift() == pytest.approx(WEIGHT * 50 / 51)
    for _ in range(60):
        models.observe("a", CPU, 5, 10, 100e-6)
    assert models.seconds("a", CPU, 10, 10) == pytest.approx(200e-6, rel=1e-3)
    for _ in range(60):
        models.observe("b", CPU, 10, 10, 2e-6)  # what takes a hundredth moves little
    models.mark_planned()
    models.observe("b", CPU, 10, 10, 20e-6)
    assert 0 < models.drift() < 0.1


def test_what_was_never_measured_is_learnt_from_the_first_measurement():
    models = Models({})
    assert not models.knows("x", "cuda:0")
    models.observe("x", "cuda:0", 10, 20, 1e-3)
    assert models.seconds("x", "cuda:0", 5, 20) == pytest.approx(0.5e-3)


def test_links_that_are_not_known_cost_nothing_and_known_ones_follow():
    models = Models({}, {("cpu", "cuda:0"): Link(1e-5, 1e9)})
    assert models.copy_seconds("cuda:0", "cpu", 1 << 20) == 0
    for _ in range(80):
        models.observe_copy("cpu", "cuda:0", 10**6, 2 * (1e-5 + 1e-3))
    assert models.copy_seconds("cpu", "cuda:0", 10**6) == pytest.approx(2 * (1e-5 + 1e-3), rel=1e-3)


def test_between_two_gpus_a_copy_goes_through_the_host():
    models = Models({}, {("cuda:0", CPU): Link(1e-5, 1e9), (CPU, "cuda:1"): Link(2e-5, 2e9)})
    assert models.copy_seconds("cuda:0", "cuda:1", 10**6) == pytest.approx(3e-5 + 1.5e-3)
    assert models.copy_seconds("cpu:a", "cpu:b", 10**6) == 0


def test_a_guess_knows_every_stage_that_a_device_has():
    models = guess([CPU, "cuda:0"], 16)
    for stage in TABLE:
        if stage.unplanned:
            continue
        if stage.deferred:  # on the CPU ENTROPY is its time, with the NAL units
            assert models.seconds(stage.name, "cuda:0", 68, 120) > 0
            continue
        for device in ([CPU] if stage.only == CPU_FOLDER else ["cuda:0"] if stage.only else [CPU, "cuda:0"]):
            if stage.name != "load_rgb":
                assert models.seconds(stage.name, device, 68, 120) > 0, (stage.name, device)
    assert models.seconds(ENTROPY, CPU, 68, 120) == pytest.approx(3.2e-3)
    assert models.devices() == [CPU, "cuda:0"]


def test_fewer_threads_take_longer():
    models = guess([CPU], 16)
    one, four = models.with_threads(1), models.with_threads(4)
    assert one.seconds("full_search", CPU, 68, 120) == pytest.approx(45e-3, rel=0.01)
    assert one.seconds("full_search", CPU, 68, 120) > four.seconds("full_search", CPU, 68, 120)
    assert four.seconds("full_search", CPU, 68, 120) > models.seconds("full_search", CPU, 68, 120)
    assert one.seconds(ENTROPY, CPU, 68, 120) == models.seconds(ENTROPY, CPU, 68, 120)  # a thread's own time


def test_a_stage_of_the_table_needs_no_entry_to_be_guessed(monkeypatch):
    of_cpu = Stage("of_cpu", "new.new", ROWS, "", "row0 row1", only=CPU_FOLDER)
    download = Stage("download", "new.new", ROWS, "encoder", "row0 row1", D2H, only=CUDA)
    added = (Stage("new", "new.new", ROWS, "encoder", "row0 row1"), of_cpu, download)
    before = guess([CPU, "cuda:0"], 2).stages
    monkeypatch.setattr(models, "TABLE", (*TABLE, *added))
    after = guess([CPU, "cuda:0"], 2).stages
    assert set(after) - set(before) == {("new", CPU), ("new", "cuda:0"), ("of_cpu", CPU), ("download", "cuda:0")}
    assert {key: after[key] for key in before} == before and after["new", CPU].at(8160) > 0
