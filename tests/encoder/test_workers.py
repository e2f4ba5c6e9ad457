"""Worker processes: the same bytes as one process, whatever dies; nothing is left behind. Chunks in any order."""

import errno
import math
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
import types
import warnings
from contextlib import contextmanager
from pathlib import Path

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.decision_queue import DecisionQueue
from h264lite.encoder.decisions import second_pass
from h264lite.encoder.errors import DeviceError, DeviceLost, Error, InputError, OptionError
from h264lite.encoder.settings.config import Config
from h264lite.encoder.workers import process, remote_lanes
from h264lite.encoder.workers.chunk import (
    ChunkEncoder,
    ChunkJob,
    FileFrames,
    on_device,
)
from h264lite.encoder.workers.connection import POSSIBLE, Connection
from h264lite.encoder.workers.slots import Slots
from h264lite.encoder.workers.workers import Workers, uses_workers

from ..cuda_emulator.fixtures import driver  # noqa: F401
from ..cuda_emulator.real import skip_without
from ..inside import front_of, limit_room, sent_gops_of, slots_in_use
from ..support import round_trip
from ..support.steady import steady, steady_words
from ..support.waiting import wait_for, wait_for_bytes

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="no descriptors can be sent to processes here")
WIDTH, HEIGHT, FRAMES = 50, 34, 60
SIZE = WIDTH * HEIGHT * 3 // 2
GPUS = 2  # of the fixture `driver`
RATE = {"crf": 26, "bframes": 2, "b_adapt": 1, "rc_lookahead": 8}


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 7)


@pytest.fixture
def raw(clip, tmp_path):
    return round_trip.write_raw(clip, tmp_path)


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    yield
    wait_for(lambda: not children_of(os.getpid()))
    assert not os.path.isdir("/dev/shm") or set(os.listdir("/dev/shm")) <= before


def children_of(parent):
    """Numbers of the worker processes of a process, as far as the system lists them."""
    numbers = []
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as words, open(f"/proc/{name}/stat") as fields:
                if b"h264lite worker" in words.read() and int(fields.read().rpartition(")")[2].split()[1]) == parent:
                    numbers.append(int(name))
        except OSError:
            pass
    return numbers


def stop(worker):
    """Until all threads of a worker stand: of what a dead parent leaves the system wakes only what stood before."""
    os.kill(worker, signal.SIGSTOP)
    threads = Path(f"/proc/{worker}/task")
    wait_for(lambda: all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in threads.glob("*/stat")))


def stand_in(monkeypatch, module, argument):
    """Worker processes run `main` of a module of the tests in place of their own."""
    package = __package__.rpartition(".")[0] + ".support"

    def command(descriptor, device):
        code = f"import sys; sys.path[:] = {sys.path!r}; from {package}.{module} import main; "
        return [sys.executable, "-c", f"{code}main({descriptor}, {argument.format(device=device)})", "h264lite worker"]

    monkeypatch.setattr(process, "command", command)


@pytest.fixture(autouse=True)
def worker_processes(monkeypatch):
    """Also where samples decide, and for short inputs."""
    monkeypatch.setenv(process.VARIABLE, "1")


def encode(clip, **options):
    return round_trip.encode(clip, WIDTH, HEIGHT, **options)


def done_by(job):
    """The frames of a chunk, by an encoder of its own."""
    with ChunkEncoder(job.config, job.keep_reconstruction) as encoder:
        return encoder.encode(job.specs, job.frames)


def specs_of(config, clip):
    held = DecisionQueue(config)
    pairs = [pair for k, planes in enumerate(clip) for pair in held.add(k, planes)] + list(held.end())
    held.close()
    return pairs


@pytest.mark.parametrize("options", ({"keyint": 4}, {"keyint": 7, **RATE}, {"keyint": 5, "aq_mode": 1, "bframes": 2}))
def test_chunks_in_any_order_and_twice(clip, raw, options):
    expected, _ = encode(clip, device="cpu", **options)
    config = Config.from_options(width=WIDTH, height=HEIGHT, fps=30, device="cpu", **steady(options))
    pairs, by_number = specs_of(config, clip), {}
    starts = [0, *(k for k in range(1, len(pairs)) if pairs[k][0].gop != pairs[k - 1][0].gop)]
    chunks = [pairs[k:end] for k, end in zip(starts[::2], [*starts[2::2], None])]  # of two GOPs
    assert len(chunks) > 2
    with ChunkEncoder(on_device(config, "cpu", 2)) as warm:
        for number, chunk in [*reversed(list(enumerate(chunks))), *enumerate(chunks)]:
            specs, rows = tuple(spec for spec, _ in chunk), tuple(row for _, row in chunk)
            frames = FileFrames(str(raw), tuple(SIZE * k for k in rows))
            data = b"".join(frame.data for frame in warm.encode(specs, frames))
            assert by_number.setdefault(number, data) == data
            if number % 2:
                job = pickle.loads(pickle.dumps(ChunkJob(on_device(config, "cpu", 1), number, specs, frames)))
                done = pickle.loads(pickle.dumps(done_by(job)))
                assert b"".join(frame.data for frame in done) == data
                assert [frame.coding_index for frame in done] == [spec.coding_index for spec in specs]
    assert b"".join(by_number[number] for number in range(len(chunks))) == expected


def test_a_chunk_of_a_file_that_is_short_or_absent(clip, raw):
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=4, **steady({}))
    specs = tuple(spec for spec, _ in specs_of(config, clip))[:4]
    for path, message in ((str(raw), "become shorter; frame 3 is missing"), ("absent.yuv", "absent.yuv: No such file")):
        with pytest.raises(InputError, match=message):
            done_by(ChunkJob(config, 0, specs, FileFrames(path, (0, SIZE, SIZE, FRAMES * SIZE - 1))))


@pytest.mark.parametrize("options", ({"keyint": 4}, {"keyint": 7, **RATE}, {"keyint": 250, "bframes": 2}))
def test_same_bytes_and_reconstruction(clip, options):
    expected, decoded = encode(clip, device="cpu", **options)
    stream, again = encode(clip, devices="cpu,cpu", threads=2, **options)
    assert stream == expected
    assert all(np.array_equal(a, b) for one, two in zip(decoded, again, strict=True) for a, b in zip(one, two))


def test_rgb_frames(clip):
    images = [np.full((HEIGHT, WIDTH, 3), 4 * k, np.uint8) for k in range(9)]
    streams = []
    for where in ({"device": "cpu"}, {"devices": "cpu,cpu"}):
        with h264lite.Encoder(WIDTH, HEIGHT, 30, keyint=3, threads=2, **steady(where)) as encoder:
            packets = round_trip.packets_of(encoder, images)
            streams.append((encoder.headers, b"".join(packet.data for packet in packets)))
    assert streams[0] == streams[1]


def test_two_passes(clip, tmp_path, monkeypatch):
    """Parts of the stream, of 200 frames at the least, go to processes, with their share of the bits."""
    raw = round_trip.write_raw(10 * clip, tmp_path)
    words = ["--bitrate", "300", "--preset", "superfast", "--keyint", "50", "--quiet", "--threads", "2", "--bframes", "2"]
    one, stats = ["--device", "cpu"], str(tmp_path / "stats")  # a rate in one pass needs the sizes of all frames before
    assert main(["encode", str(raw), str(tmp_path / "first.264"), *words, *one, "--pass", "1", "--stats", stats]) == 0
    streams = []
    for where, workers in ((one, "0"), (["--devices", "cpu,cpu"], "1")):
        monkeypatch.setenv(process.VARIABLE, workers)
        out = tmp_path / f"{workers}.264"
        assert main(["encode", str(raw), str(out), *words, *where, "--pass", "2", "--stats", stats]) == 0
        streams.append(out.read_bytes())
    assert streams[0] == streams[1]
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", bitrate=300, preset="superfast", keyint=50,
                                 bframes=2, pass_=2, stats=stats, fps=25, frames=0)  # fmt: skip
    assert len(second_pass.sections_of(config.rate.first_pass)) > 1


def test_the_command_and_its_reports(clip, raw, tmp_path, monkeypatch):
    monkeypatch.setenv(process.VARIABLE, "1")
    for name, where in (("one", ["--device", "cpu"]), ("two", ["--devices", "cpu,cpu"])):
        words = ["--keyint", "5", "--threads", "2", "--quiet", "--dump-yuv", str(tmp_path / f"{name}.yuv"),
                 "--csv", str(tmp_path / f"{name}.csv"), "--trace", str(tmp_path / f"{name}.json"), "--ssim"]  # fmt: skip
        assert main(steady_words(["encode", raw, tmp_path / f"{name}.264", *where, *words])) == 0
    for ending in ("264", "yuv", "csv"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes(), ending
    assert re.search(r"worker [01], ", (tmp_path / "two.json").read_text())  # one alone may have taken all, so short are they


@pytest.mark.parametrize("options", ({"keyint": 6}, {"keyint": 9, **RATE}))
def test_a_killed_worker_is_replaced(clip, options):
    """Also both at once, also in the last GOP."""
    frames, (expected, _) = 4 * clip, encode(4 * clip, device="cpu", **options)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with h264lite.Encoder(WIDTH, HEIGHT, 30, threads=2, devices="cpu,cpu", **steady(options)) as encoder:
            first, packets = encoder._pipeline.processes, []
            for k, planes in enumerate(frames):
                packets += encoder.encode(tuple(planes))
                if k == 235:
                    wait_for(lambda: set(encoder._pipeline.processes).isdisjoint(first))
                for victim in {70: first, 235: encoder._pipeline.processes[:1]}.get(k, ()):
                    os.kill(victim, signal.SIGKILL)
            packets += encoder.flush()
    assert b"".join(packet.data for packet in packets) == expected
    texts = [str(w.message) for w in said if w.category is RuntimeWarning]
    assert len(texts) == 1 and "of cpu has ended (signal SIGKILL); its GOPs are encoded again" in texts[0], texts


def test_a_stopped_worker_is_replaced(clip, monkeypatch):
    """It reads nothing, and says nothing: neither its frames nor the end of the encode are waited for without limit."""
    monkeypatch.setattr(remote_lanes, "_AT_WORK", 3.0)
    frames = 5 * clip  # so many that the stopped one gets some, and that GOPs come back while the last one is open
    expected, _ = encode(frames, device="cpu", keyint=5)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with h264lite.Encoder(WIDTH, HEIGHT, 30, keyint=5, threads=2, devices="cpu,cpu", **steady({})) as encoder:
            packets = [packet for planes in frames[:20] for packet in encoder.encode(tuple(planes))]
            victim = encoder._pipeline.processes[0]
            os.kill(victim, signal.SIGSTOP)
            packets += round_trip.packets_of(encoder, frames[20:])
    assert b"".join(packet.data for packet in packets) == expected
    texts = [str(w.message) for w in said if w.category is RuntimeWarning]
    assert len(texts) == 1 and f"process {victim} of cpu gives no sign of life for " in texts[0], texts


def test_the_limit_of_the_watchdog_holds_for_workers(monkeypatch):
    class Queue:
        end = None

        def end_gop(self):
            return self.end

    monkeypatch.setattr(remote_lanes, "take_process", lambda device: types.SimpleNamespace(connection=None))
    monkeypatch.setattr(remote_lanes.RemoteLanes, "_tell_all", lambda self, process: None)
    config = Config.from_options(width=WIDTH, height=HEIGHT, devices="cpu,cpu")
    queue = Queue()
    team = remote_lanes.Team(queue, None, 1, None, None, None, None)
    for text, seconds in (("", 20.0), ("7", 7.0), ("500", 20.0), ("0", math.inf)):
        monkeypatch.setenv("H264LITE_WATCHDOG", text)
        queue.end = None
        worker = remote_lanes.RemoteLanes(0, config, False, 1, team)
        assert worker._patience() == seconds
        queue.end = -1
        assert worker._patience() == 3.0, "after an interrupt the wait is short"


def test_a_worker_without_progress_is_told_of_once(monkeypatch):
    said = []
    monkeypatch.setattr(remote_lanes, "take_process", lambda device: types.SimpleNamespace(connection=None, number=17))
    monkeypatch.setattr(remote_lanes.RemoteLanes, "_tell_all", lambda self, process: None)
    monkeypatch.setenv("H264LITE_WATCHDOG", "0.01")
    config = Config.from_options(width=WIDTH, height=HEIGHT, devices="cpu,cpu")
    worker = remote_lanes.RemoteLanes(0, config, False, 1, remote_lanes.Team(None, None, 1, None, None, said.append, None))
    time.sleep(0.02)
    worker._look_for_progress()
    assert not said, "it has no frame"
    worker._by_frame[3] = object()
    for _ in range(3):
        time.sleep(0.02)
        worker._look_for_progress()
    assert said == ["the worker process 17 of cpu has finished no frame for 0.01 s (H264LITE_WATCHDOG)"]


@pytest.mark.parametrize("number", (signal.SIGKILL, signal.SIGSTOP))
def test_a_worker_that_dies_at_its_start_is_replaced(clip, monkeypatch, number):
    monkeypatch.setattr(remote_lanes, "_AT_START", 6.0 if number == signal.SIGKILL else 2.0)
    started = []

    class Dying(process.Process):
        def __init__(self, device):
            super().__init__(device)
            started.append(self)
            if len(started) == 1:
                os.kill(self.number, number)
            monkeypatch.setattr(remote_lanes, "_AT_START", 60.0 if len(started) > 2 else remote_lanes._AT_START)

    monkeypatch.setattr(process, "Process", Dying)
    expected, _ = encode(clip[:20], device="cpu", keyint=5)
    data, _ = encode(clip[:20], devices="cpu,cpu", keyint=5)
    assert data == expected and len(started) == 3


def test_a_worker_that_always_dies_at_its_start(monkeypatch):
    """After four processes the encode ends with a message, and none is left."""
    monkeypatch.setattr(process, "command", lambda descriptor, device: [sys.executable, "-c", "raise SystemExit(7)"])
    with pytest.raises(Error, match=r"a worker for cpu has ended at its start \(exit code 7\)"):
        h264lite.Encoder(WIDTH, HEIGHT, 30, threads=2, devices="cpu,cpu")


@pytest.mark.parametrize("seconds", (0, 0.1, 0.3))
def test_a_worker_whose_parent_ends_says_nothing(seconds):
    """No traceback, whenever that is."""
    here, there = socket.socketpair()
    with there:
        words = process.command(there.fileno(), "cpu")
        child = subprocess.Popen(words, pass_fds=(there.fileno(),), stderr=subprocess.PIPE)
    config = Config.from_options(width=WIDTH, height=HEIGHT, devices="cpu,cpu", **steady({}))
    Connection(here).send((on_device(config, "cpu", 1), False, 1, False))
    time.sleep(seconds)
    here.close()
    said = child.communicate(timeout=60)[1].decode()
    assert not said and child.returncode == 0


def test_all_workers_are_lost(clip, monkeypatch):
    """The frames before are kept; the error is that of a device, and comes once."""
    monkeypatch.setattr(remote_lanes, "_MOST_STARTS", 1)
    expected, _ = encode(clip, device="cpu", keyint=5)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keyint=5, threads=2, devices="cpu,cpu", **steady({})) as encoder:
        packets = [packet for planes in clip[:20] for packet in encoder.encode(tuple(planes))]
        for victim in encoder._pipeline.processes:
            os.kill(victim, signal.SIGKILL)
        with warnings.catch_warnings(), pytest.raises(DeviceLost, match=r"SIGKILL.; no other device is left"):
            warnings.simplefilter("ignore")
            for planes in clip[20:]:
                packets += encoder.encode(tuple(planes))
            packets += encoder.flush()
        packets += encoder.flush()
    assert expected.startswith(b"".join(packet.data for packet in packets))


def test_a_gop_that_is_too_long_to_repeat(clip, monkeypatch):
    """Its frames give way to others; the loss of its process is then that of the device."""
    frames, (expected, _) = 3 * clip, encode(3 * clip, device="cpu", keyint=180)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keyint=180, threads=2, devices="cpu,cpu", **steady({})) as encoder:
        workers = front_of(encoder)
        limit_room(workers, 40)
        workers.room, most, packets = 40, 0, []
        for planes in frames:
            packets += encoder.encode(tuple(planes))
            most = max(most, slots_in_use(workers))
        assert b"".join(packet.data for packet in packets + encoder.flush()) == expected and most <= 42
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keyint=180, threads=2, devices="cpu,cpu", **steady({})) as encoder:
        workers = front_of(encoder)
        limit_room(workers, 10)
        for planes in frames[:100]:
            encoder.encode(tuple(planes))
        wait_for(lambda: any(not sent.can_repeat for sent in sent_gops_of(workers)))
        for victim in workers.processes:
            os.kill(victim, signal.SIGKILL)
        with warnings.catch_warnings(), pytest.raises(DeviceLost, match="too long to be encoded again"):
            warnings.simplefilter("ignore")
            for planes in frames[100:]:
                encoder.encode(tuple(planes))
            encoder.flush()


def test_a_file_that_becomes_shorter(raw, tmp_path, capfd, monkeypatch):
    from h264lite.encoder.files.video import RawSource

    later = RawSource.later

    def cut(self, number):
        if number == 37:
            os.truncate(raw, 37 * SIZE + 5)
        return later(self, number)

    monkeypatch.setattr(RawSource, "later", cut)
    monkeypatch.setenv(process.VARIABLE, "1")
    out = tmp_path / "out.264"
    assert main(steady_words(["encode", raw, out, "--devices", "cpu,cpu", "--keyint", "2", "--threads", "2"])) == 1
    said, held = capfd.readouterr().err, len(round_trip.ffmpeg_frames(out.read_bytes()))
    assert "it has become shorter; frame" in said and f"the output holds {held} frame" in said and held <= 37


@contextmanager
def encoding(source, out, *words, keyint=8, seconds=60):
    """(process, its workers' numbers) of a command that encodes by two workers; afterwards the workers end within seconds."""
    words = "encode", source, out, "--devices", "cpu,cpu", "--threads", "2", "--keyint", keyint, "--quiet", *words
    with subprocess.Popen([sys.executable, "-m", "h264lite", *steady_words(words)], stderr=subprocess.PIPE,
                          env={**os.environ, process.VARIABLE: "1"}, start_new_session=True) as running:  # fmt: skip
        wait_for_bytes(out, 1000, running)
        workers = children_of(running.pid)
        assert len(workers) == 2
        yield running, workers
    wait_for(lambda: not any(os.path.exists(f"/proc/{worker}") for worker in workers), seconds)


@pytest.fixture
def endless(tmp_path):
    """A file that takes minutes to encode."""
    path = tmp_path / f"long_{WIDTH}x{HEIGHT}.yuv"
    with path.open("wb") as file:
        file.truncate(1_000_000 * SIZE)
    return path


@pytest.mark.parametrize("keyint", (8, 100000))
def test_an_interrupt_ends_all(endless, tmp_path, keyint):
    """The terminal sends it to the group of the command; the file holds whole frames, and no process is left."""
    out = tmp_path / "out.264"
    with encoding(endless, out, keyint=keyint) as (running, _):
        os.killpg(running.pid, signal.SIGINT)
        said = running.communicate(timeout=30)[1].decode()
    assert running.returncode == 130
    held = len(round_trip.ffmpeg_frames(out.read_bytes()))
    assert f"interrupted; the output holds {held} frames" in said


def test_an_interrupt_does_not_wait_for_a_stopped_worker(endless, tmp_path):
    with encoding(endless, tmp_path / "out.264") as (running, workers):
        stop(workers[0])
        running.send_signal(signal.SIGINT)
        begin = time.monotonic()
        said = running.communicate(timeout=60)[1].decode()
        took = time.monotonic() - begin
    assert running.returncode == 130 and "interrupted; the output holds" in said and took < 15


def test_a_stopped_worker_ends_with_a_killed_parent(endless, tmp_path):
    with encoding(endless, tmp_path / "out.264") as (running, workers):
        stop(workers[0])
        running.kill()
        assert "Traceback" not in running.communicate(timeout=60)[1].decode()


def test_workers_end_with_a_killed_parent(endless, tmp_path):
    with encoding(endless, tmp_path / "out.264", "--crf", "30", seconds=10) as (running, _):
        running.kill()
        running.communicate()


@pytest.mark.parametrize("keyint", (1, 30))
def test_memory_is_bounded(monkeypatch, keyint):
    """A long job, whose workers answer at once."""
    stand_in(monkeypatch, "fake_worker", "40")
    planes = [np.zeros((16, 16), np.uint8), np.zeros((8, 8), np.uint8), np.zeros((8, 8), np.uint8)]
    config = Config.from_options(width=16, height=16, devices="cpu,cpu", threads=2, keyint=keyint, **steady({}))
    workers, count, sizes, most = Workers(config, 2), 0, [], 0
    tracemalloc.start()
    for number in range(6000):
        count += len(workers.encode(tuple(planes)))
        most = max(most, slots_in_use(workers))
        if number % 2000 == 1999:
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    count += len(workers.flush())
    workers.close()
    assert count == 6000 and most <= workers.room + 1
    assert sizes[2] < sizes[1] + 200_000, sizes


def test_no_shared_memory(monkeypatch):
    """A limit of the size of files, say: refused by name, and what there was is usable."""
    slots = Slots(1000)
    kept = [slots.take() for _ in range(4)]
    kept[0].buffer[:] = 7

    def too_large(*_):
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(os, "ftruncate", too_large)
    with pytest.raises(Error, match=r"processes share \(File too large\): H264LITE_WORKERS=0"):
        slots.take()
    assert slots.used == 4 and np.all(kept[0].buffer == 7)
    slots.give_back(kept[0])
    assert slots.take() is kept[0]
    slots.close()


def test_where_workers_are_used(monkeypatch):
    monkeypatch.delenv(process.VARIABLE)

    def config(**options):
        return Config.from_options(width=64, height=64, **steady(options))

    two = config(devices=("cpu", "cpu"), keyint=10)
    assert two.machine.devices == ("cpu", "cpu")
    assert uses_workers(two, None) and uses_workers(two, 71) and not uses_workers(two, 70)
    for samples in ({"crf": 23, "qp": None}, {"scenecut": 40}, {"bframes": 2, "b_adapt": 1}):
        assert uses_workers(config(devices=("cpu", "cpu"), keyint=10, **samples), 71)
    assert not uses_workers(config(device="cpu"), None) and not uses_workers(config(devices="cpu"), None)
    monkeypatch.setenv(process.VARIABLE, "1")
    assert uses_workers(two, 1)
    monkeypatch.setenv(process.VARIABLE, "0")
    assert not uses_workers(two, None)


def test_refusals(monkeypatch):
    size = {"width": 64, "height": 64}
    for wrong in ("all,cpu", "cuda:0,cuda:0", "cpu,cuda:0", "all,all"):
        with pytest.raises(OptionError, match="devices"):
            Config.from_options(**size, devices=wrong)
    with pytest.raises(OptionError, match=r"gops.*not in 2\.\."):
        Config.from_options(**size, devices="cpu,cpu", bitrate=500)
    if h264lite.encoder.settings.device.why_no_cuda():
        with pytest.raises(DeviceError, match="devices all"):
            Config.from_options(**size, devices="all")


def test_all_gpus_by_emulated_workers(driver, clip, monkeypatch):  # noqa: F811
    """One of them fails: the other one encodes its GOPs; then both."""
    stand_in(monkeypatch, "emulated_worker", "{device!r}")
    monkeypatch.setenv(process.VARIABLE, "1")  # which the fixture `driver` forbids
    monkeypatch.setattr(remote_lanes, "_FRAMES_OF_A_LANE", 2)  # else the first one may take all of so few frames
    config = Config.from_options(width=WIDTH, height=HEIGHT, devices="all", **steady({}))
    assert config.machine.devices == ("cuda:0", "cuda:1") and not config.machine.may_change_device
    some = clip[:16]
    expected, _ = encode(some, device="cpu", keyint=2)
    for lost in ("", "1", "0 1"):
        monkeypatch.setenv("FAIL_WORKER", lost)
        monkeypatch.setenv("FAIL_AFTER", "40")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            if lost == "0 1":
                with pytest.raises(DeviceLost, match=r"failed in .*no other device is left"):
                    encode(some, devices="all", keyint=2, threads=2)
                continue
            stream, _ = encode(some, devices="all", keyint=2, threads=2)
        texts = [str(w.message) for w in said if w.category is RuntimeWarning]
        assert stream == expected and len(texts) == len(lost), texts
        assert all("(cuda:1) failed in" in text and "encoded on the other devices" in text for text in texts)
    assert not driver.launches


@pytest.mark.gpu
@pytest.mark.parametrize("options", ({"keyint": 4}, {"keyint": 7, **RATE}))
def test_two_real_gpus(clip, options):
    """Also where one of the processes is killed."""
    skip_without(2)
    expected, _ = encode(clip, device="cpu", **options)
    for kill in (False, True):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with h264lite.Encoder(WIDTH, HEIGHT, 30, devices="cuda:0,cuda:1", **steady(options)) as encoder:
                packets = [packet for planes in clip[:30] for packet in encoder.encode(tuple(planes))]
                if kill:
                    os.kill(front_of(encoder).processes[-1], signal.SIGKILL)
                packets += round_trip.packets_of(encoder, clip[30:])
        assert b"".join(packet.data for packet in packets) == expected
        assert len([w for w in said if "encoded again" in str(w.message)]) <= kill
