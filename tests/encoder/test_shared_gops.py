"""GOPs of a file on a GPU and the CPU at once: the same bytes for any share and any GOP put back; which device takes one."""

import json
import os
import random
import signal
import time
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.cli.interrupt import INTERRUPTED
from h264lite.encoder.gops import shared_gops, sharing
from h264lite.encoder.gops.queue import Gop, GopQueue
from h264lite.encoder.gops.sharing import CpuQueue, DeviceQueue
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.hybrid.tuning.rates import BY_NAME, Rates
from h264lite.scheduler.hybrid.tuning.tuning_file import save

from ..cli.test_machine_commands import tuning_of_here
from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..support import round_trip

WIDTH, HEIGHT, FRAMES = 50, 34, 24
OPTIONS = (
    "--keyint 4",
    "--keyint 4 --qp 27 --bframes 0",
    "--keyint 3 --profile baseline --qp 30",
    "--keyint 5 --preset ultrafast",
    "--keyint 6 --bframes 0 --crf 24",
)


@pytest.fixture
def raw(tmp_path):
    return round_trip.write_raw(round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 7), tmp_path)


@pytest.fixture
def taken(monkeypatch):
    """(whether by the CPU, number) of each GOP, as they are taken. Any rate is measured by two calls of `emit`."""
    taken, next_gop = [], DeviceQueue.next_gop

    def noted(self):
        gop = next_gop(self)
        if gop is not None:
            taken.append((isinstance(self, CpuQueue), gop.number))
        return gop

    monkeypatch.setattr(DeviceQueue, "next_gop", noted)
    monkeypatch.setattr(sharing, "FIRST", 0.0)
    return taken


def run(raw, out, *words):
    assert main(["encode", str(raw), str(out), "--quiet", "--threads", "6", *words]) == 0
    return out.read_bytes()


@on_gpus
@pytest.mark.parametrize("words", OPTIONS)
def test_same_bytes(driver, raw, tmp_path, taken, words, monkeypatch):  # noqa: F811
    expected = run(raw, tmp_path / "1.264", "--device", "cpu", *words.split())
    monkeypatch.setattr(shared_gops, "MULTIPROCESSORS_A_THREAD", 1000)
    monkeypatch.setattr(DeviceQueue, "_takes", lambda self, gop: True)
    monkeypatch.setattr(CpuQueue, "_takes", lambda self, gop: True)
    summary = tmp_path / "2.json"
    assert run(raw, tmp_path / "2.264", "--device", "hybrid", "--json", str(summary), *words.split()) == expected
    assert {by_cpu for by_cpu, _ in taken} == {False, True}
    rates = json.loads(summary.read_text())["rates"]
    assert set(rates) == {"cuda:0", "cpu"} and sum(rate["frames"] for rate in rates.values()) >= FRAMES


@pytest.mark.parametrize("seed", range(6))
def test_any_share(driver, raw, tmp_path, taken, seed, monkeypatch):  # noqa: F811
    """Either device may refuse a GOP while the other has work, and the CPU may put any back, after any frame."""
    rng, words = random.Random(seed), OPTIONS[seed % len(OPTIONS)].split()
    expected = run(raw, tmp_path / "1.264", "--device", "cpu", *words)
    monkeypatch.setattr(shared_gops, "MULTIPROCESSORS_A_THREAD", 1000)
    late = []

    def takes(self, gop):
        return not self.other.is_at_work or rng.random() < 0.6

    monkeypatch.setattr(DeviceQueue, "_takes", takes)
    monkeypatch.setattr(CpuQueue, "_takes", takes)
    monkeypatch.setattr(CpuQueue, "_is_late", lambda self, gop: late.append(rng.random() < 0.1) or late[-1])
    assert run(raw, tmp_path / "2.264", "--device", "hybrid", *words) == expected


def test_a_gop_that_was_put_back(driver, raw, tmp_path, taken, monkeypatch):  # noqa: F811
    """The GPU encodes it again from its first frame."""
    expected = run(raw, tmp_path / "1.264", "--device", "cpu", "--keyint", "4")
    monkeypatch.setattr(shared_gops, "MULTIPROCESSORS_A_THREAD", 1000)
    monkeypatch.setattr(CpuQueue, "_takes", lambda self, gop: gop.number == 1 and (True, 1) not in taken)
    monkeypatch.setattr(DeviceQueue, "_takes", lambda self, gop: gop.number != 1 or bool(self._queue._again))
    monkeypatch.setattr(CpuQueue, "_is_late", lambda self, gop: gop.taken == 2)
    assert run(raw, tmp_path / "2.264", "--device", "hybrid", "--keyint", "4") == expected
    assert taken.count((True, 1)) == taken.count((False, 1)) == 1


def test_a_lost_gpu(driver, raw, tmp_path, taken, monkeypatch, capfd):  # noqa: F811
    expected = run(raw, tmp_path / "1.264", "--device", "cpu", *OPTIONS[1].split())
    monkeypatch.setattr(shared_gops, "MULTIPROCESSORS_A_THREAD", 1000)
    driver.fail_after = driver.launches + 60
    assert run(raw, tmp_path / "2.264", "--device", "hybrid", *OPTIONS[1].split()) == expected
    assert "the CPU" in capfd.readouterr().err


def test_reports(driver, raw, tmp_path, taken, monkeypatch, capfd):  # noqa: F811
    """Rows, reconstruction and timeline are those of one device, and the plan is told."""
    files = {name: (tmp_path / f"1.{name}", tmp_path / f"2.{name}") for name in ("csv", "yuv")}
    words = [["--csv", str(files["csv"][k]), "--dump-yuv", str(files["yuv"][k]), "--keyint", "4"] for k in (0, 1)]
    expected = run(raw, tmp_path / "1.264", "--device", "cpu", *words[0])
    monkeypatch.setattr(shared_gops, "MULTIPROCESSORS_A_THREAD", 1000)
    monkeypatch.setattr(CpuQueue, "_takes", lambda self, gop: True)
    out, trace = str(tmp_path / "2.264"), tmp_path / "trace.json"
    command = ["encode", str(raw), out, "--device", "hybrid", "--threads", "6", "--verbose", "--trace", str(trace), *words[1]]
    assert main(command) == 0
    assert (tmp_path / "2.264").read_bytes() == expected
    assert all(one.read_bytes() == two.read_bytes() for one, two in files.values())
    said = capfd.readouterr().err
    assert "plan: GOPs go to the GPU and the CPU" in said and "cpu: " in said and "cuda:0: " in said
    assert "gop lane 1, " in trace.read_text()


def test_an_interrupt(driver, raw, tmp_path, taken, monkeypatch):  # noqa: F811
    """The file ends with a whole frame, and is the beginning of the whole stream."""
    expected = run(raw, tmp_path / "1.264", "--device", "cpu", *OPTIONS[1].split())
    monkeypatch.setattr(shared_gops, "MULTIPROCESSORS_A_THREAD", 1000)
    monkeypatch.setattr(CpuQueue, "_takes", lambda self, gop: True)
    emit, count, once = DeviceQueue.emit, [], iter([True])

    def emit_and_interrupt(self, done):
        count.extend(done)
        if len(count) >= 9 and next(once, False):
            os.kill(os.getpid(), signal.SIGINT)
        emit(self, done)

    monkeypatch.setattr(DeviceQueue, "emit", emit_and_interrupt)
    out = tmp_path / "2.264"
    words = ["encode", str(raw), str(out), "--quiet", "--threads", "6", "--device", "hybrid", *OPTIONS[1].split()]
    assert main(words) == INTERRUPTED
    stream = out.read_bytes()
    assert 0 < len(stream) <= len(expected) and expected.startswith(stream)


def test_a_fast_gpu_gets_no_help(driver, raw, tmp_path, taken, monkeypatch):  # noqa: F811
    monkeypatch.setattr(shared_gops, "MULTIPROCESSORS_A_THREAD", 0)
    run(raw, tmp_path / "2.264", "--device", "hybrid", "--keyint", "4")
    assert {by_cpu for by_cpu, _ in taken} == {False}


@pytest.fixture
def tuned(tmp_path):
    """Writes a tuning file of this machine with these frames a second of the CPU and of the GPU; its name."""

    def write(cpu, gpu, macroblocks, **changes):
        rates = Rates()
        for traits in BY_NAME.values():
            rates.add("cpu", traits, macroblocks, cpu)
            rates.add("cuda:0", traits, macroblocks, gpu)
        save(tuning_of_here(rates=rates, chosen={}, **changes), tmp_path / "tuning.toml")
        return str(tmp_path / "tuning.toml")

    return write


@pytest.mark.parametrize(
    "cpu, gpu, device, pins, shares",
    (
        (10, 39, "auto", {}, True),
        (10, 41, "auto", {}, False),
        (10, 39, "auto", {"device": "cuda"}, False),
        (10, 39, "auto", {"gops": 3}, False),
        (10, 41, "auto", {"device": "hybrid"}, True),
        (10, 41, "hybrid", {}, True),
        (10, 41, "hybrid", {"rows_gpu": 40}, False),
        (10, 39, "cuda", {}, False),
    ),
)
def test_measured_rates_say_whether_it_pays(driver, tuned, cpu, gpu, device, pins, shares):  # noqa: F811
    tuning = tuned(cpu, gpu, 8160, pins=pins)
    config = Config.from_options(width=1920, height=1080, device=device, threads=4, tuning=tuning)
    assert config.machine.device == ("cuda" if device == "auto" else device)
    assert shared_gops.shares_gops(config) == shares


@pytest.mark.parametrize(
    "options", ({"gops": 2}, {"vbv_maxrate": 500, "vbv_bufsize": 500}, {"tune": "zerolatency"}, {"threads": 2})
)
def test_what_needs_frames_in_order_shares_nothing(driver, options):  # noqa: F811
    config = Config.from_options(**{"width": WIDTH, "height": HEIGHT, "device": "hybrid", "threads": 4, **options})
    assert not shared_gops.shares_gops(config)


@pytest.mark.parametrize("gpu, helped", ((79, True), (81, False)))
def test_a_slow_cpu_by_measurements_is_not_begun(driver, raw, tmp_path, taken, tuned, gpu, helped, monkeypatch):  # noqa: F811
    tuning = tuned(10, gpu, 12)
    begun, help_gpu = [], shared_gops._help
    monkeypatch.setattr(shared_gops, "_help", lambda *arguments: (begun.append(True), help_gpu(*arguments)))
    run(raw, tmp_path / "2.264", "--device", "hybrid", "--keyint", "4", "--tuning", tuning)
    assert bool(begun) == helped


@pytest.mark.parametrize("gpu", (79, 81), ids=("no lane can be made", "no lane is begun"))
def test_a_gpu_without_help_takes_all(driver, tuned, gpu, monkeypatch):  # noqa: F811
    """However slow it is by what is measured: the file says that the CPU is faster."""
    pipeline = shared_gops._pipeline

    def none_of_the_cpu(pipelines, keep, say, trace, config):
        if config.machine.device == "cpu":
            raise MemoryError("no lane")
        return pipeline(pipelines, keep, say, trace, config)

    monkeypatch.setattr(shared_gops, "_pipeline", none_of_the_cpu)
    options = {"width": WIDTH, "height": HEIGHT, "keyint": 4, "threads": 6, "device": "hybrid", "tuning": tuned(10, gpu, 12)}
    said = []
    gops = shared_gops.SharedGops(Config.from_options(**options), FRAMES, warn=said.append)
    try:
        deadline = time.monotonic() + 60
        while gpu == 79 and not said and time.monotonic() < deadline:
            time.sleep(0.01)
        assert said == ([] if gpu == 81 else ["no lane; the GPU encodes all GOPs"])
        on_gpu = gops._queues["cuda:0"]
        on_gpu.rate.value = 0.001
        assert on_gpu._takes(Gop(0, deque()))
    finally:
        gops.close()


# ---- who takes a GOP, by rates
LONGEST = 10


@pytest.fixture
def pair():
    """The queues of a GPU and the CPU; 100 frames in GOPs of ten have come."""
    queue = GopQueue(2, 1000, 6, ahead=100)
    on_gpu, on_cpu = DeviceQueue(queue, 1, 100, LONGEST), CpuQueue(queue, 100, LONGEST)
    on_gpu.other, on_cpu.other = on_cpu, on_gpu
    for k in range(100):
        spec = SimpleNamespace(coding_index=k, display_index=k, gop=k // LONGEST, is_idr=k % LONGEST == 0)
        queue.enter(spec, lambda target: None)
    queue.end()
    on_cpu.add_idle(1)
    yield on_gpu, on_cpu
    queue.close()


def finish(queue, first, last):
    """Frames of other GOPs are finished."""
    queue._queue.emit([SimpleNamespace(coding_index=k, is_idr=k % LONGEST == 0) for k in range(first, last)])


def test_the_cpu_begins_beside_the_gpu(pair):
    on_gpu, on_cpu = pair
    assert on_cpu.next_gop() is None, "the GPU has no work"
    assert on_gpu.next_gop().number == 0
    assert on_cpu.next_gop().number == 1


@pytest.mark.parametrize("left, takes", ((90, True), (50, True), (40, False), (20, False)))
def test_the_cpu_takes_what_it_ends_in_time(pair, left, takes):
    """A GOP takes it a second, and the GPU 0.25: it takes one while the GPU has more than 1 / 0.9 seconds of work."""
    on_gpu, on_cpu = pair
    on_gpu.next_gop()
    on_gpu.rate.value, on_cpu.rate.value = 40.0, 10.0
    finish(on_gpu, 0, 100 - left)
    assert (on_cpu.next_gop() is not None) == takes


def test_the_faster_device_takes_the_last_gop(pair):
    on_gpu, on_cpu = pair
    on_gpu.rate.value, on_cpu.rate.value = 5.0, 10.0
    assert on_gpu.next_gop() is None, "the CPU is idle, and faster"
    assert on_cpu.next_gop() is not None
    assert on_gpu.next_gop() is not None, "the CPU has work for longer"


def test_a_late_gop_goes_back(pair):
    """The CPU became slow: it needs 1.5 s for nine frames, the GPU 1.275 s for all others and this GOP."""
    on_gpu, on_cpu = pair
    on_gpu.next_gop()
    gop = on_cpu.next_gop()
    on_gpu.rate.value, on_cpu.rate.value = 40.0, 40.0
    assert len(on_cpu.take(gop, 1)) == 1
    finish(on_gpu, 20, 70)
    on_cpu.rate.value = 6.0
    assert not on_cpu.take(gop, 1) and on_cpu.is_over(gop)
    assert on_cpu.next_gop() is None, "it would be late again"
    again = on_gpu.next_gop()
    assert again is gop and [spec.coding_index for spec, _ in again.waiting] == list(range(10, 20))


def test_a_slow_cpu_is_measured_again(pair, monkeypatch):
    on_gpu, on_cpu = pair
    clock = [100.0]
    monkeypatch.setattr(sharing, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    on_gpu.next_gop()
    gop = on_cpu.next_gop()
    on_gpu.rate.value, on_cpu.rate.value = 40.0, 4.0
    on_cpu.take(gop, 1)
    on_cpu.add_idle(1)
    assert on_cpu.next_gop() is None
    clock[0] += sharing.RETRY
    assert on_cpu.next_gop() is None
    clock[0] += 0.1
    assert on_cpu.next_gop() is gop


def test_a_rate_is_that_of_the_last_seconds(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(sharing, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    rate = sharing.Rate()
    rate.begin()
    values = []
    for frames in [4] * 30 + [1] * 30:
        clock[0] += 0.1
        rate.add(frames)
        values.append(rate.value)
    assert values[9] is None and values[11] == pytest.approx(40)
    assert values[29] == pytest.approx(40) and values[-8] == pytest.approx(10)
    assert rate.frames == 150 and rate.seconds == pytest.approx(6.0)
    assert np.isfinite([value for value in values if value is not None]).all()
