"""Several GPUs where samples decide: the lanes of the first are in this process, which measures there; the same bytes."""

import json
import os
import signal
import warnings
from collections import deque

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.errors import DeviceLost
from h264lite.encoder.files.video import RawSource
from h264lite.encoder.gops.queue import GopQueue
from h264lite.encoder.workers import process, remote_lanes
from h264lite.encoder.workers.connection import POSSIBLE
from h264lite.encoder.workers.slots import Slots
from h264lite.scheduler.frames.ring import READ_AHEAD_FRAMES, FrameRing

from ..cuda_emulator.fixtures import driver  # noqa: F401
from ..cuda_emulator.real import skip_without
from ..inside import front_of, n_lanes, slots_in_use
from ..support import round_trip
from ..support.waiting import wait_for
from .test_workers import encoding, endless, nothing_is_left, stand_in  # noqa: F401
from .test_workers import worker_processes as always_workers  # noqa: F401

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="no descriptors can be sent to processes here")
WIDTH, HEIGHT, FRAMES, KEYINT = 50, 34, 24, 4
SIZE = WIDTH * HEIGHT * 3 // 2
GPUS = 2  # of the fixture `driver`
OPTIONS = {"preset": "ultrafast", "crf": 28, "bframes": 2, "b_adapt": 1, "rc_lookahead": 5, "keyint": KEYINT}
WORDS = ["--quiet", "--fps=30", *(f"--{name.replace('_', '-')}={value}" for name, value in OPTIONS.items())]


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 7)


@pytest.fixture(scope="module")
def expected(clip):
    return round_trip.encode(clip, WIDTH, HEIGHT, device="cpu", **OPTIONS)


@pytest.fixture
def raw(clip, tmp_path):
    return round_trip.write_raw(clip, tmp_path)


@pytest.fixture
def gpus(driver, monkeypatch):  # noqa: F811
    """Those of this process; a worker process has as many of its own."""
    stand_in(monkeypatch, "emulated_worker", "{device!r}")
    monkeypatch.setenv(process.VARIABLE, "1")  # which the fixture `driver` forbids
    monkeypatch.setattr(remote_lanes, "_FRAMES_OF_A_LANE", 2)  # else one device may take all of so few frames
    yield driver.gpus
    assert not driver.gpus[1].launches


def encoder_of(**options):
    return h264lite.Encoder(WIDTH, HEIGHT, 30, devices="all", threads=2, **{**OPTIONS, **options})


def fed(encoder, clip):
    return b"".join(packet.data for packet in round_trip.packets_of(encoder, map(tuple, clip)))


def command(raw, out, *words):
    return main(["encode", str(raw), str(out), "--devices", "all", "--threads", "2", *WORDS, *words])


@pytest.mark.parametrize("gops", (None, 4))
def test_arrays(driver, gpus, clip, expected, gops):  # noqa: F811
    """One process for the other GPU; frames for both wait in shared memory, and none is left there."""
    stream, decoded = expected
    with encoder_of(gops=gops, keep_reconstruction=True) as encoder:
        workers = front_of(encoder)
        assert len(workers.processes) == 1 and n_lanes(encoder) == (gops or 2) // 2
        assert {lane.config.machine.ordinal for lane in workers.lanes} == {0}
        packets = round_trip.packets_of(encoder, map(tuple, clip))
        assert not slots_in_use(workers)
    assert b"".join(packet.data for packet in packets) == stream
    shown = sorted(packets, key=lambda packet: packet.pts)
    for packet, planes in zip(shown, decoded, strict=True):
        assert all(np.array_equal(one, two) for one, two in zip(packet.reconstruction, planes))
    assert gpus[0].launches and not driver.allocations


def test_a_raw_file_is_read_by_who_encodes(driver, gpus, clip, raw, tmp_path, monkeypatch, expected):  # noqa: F811
    """Not by way of shared memory; a buffer is used again when its frame is decided about and nothing reads it."""
    buffers = []

    def no_slot(_):
        raise AssertionError("shared memory is used")

    source_buffer = FrameRing.source_buffer
    monkeypatch.setattr(Slots, "take", no_slot)
    monkeypatch.setattr(FrameRing, "source_buffer", lambda ring: buffers.append(source_buffer(ring)) or buffers[-1])
    out, trace, recon = tmp_path / "out.264", tmp_path / "trace.json", tmp_path / "recon.yuv"
    assert command(raw, out, "--trace", str(trace), "--dump-yuv", str(recon)) == 0
    assert out.read_bytes() == expected[0]
    assert recon.read_bytes() == b"".join(plane.tobytes() for planes in expected[1] for plane in planes)
    assert READ_AHEAD_FRAMES < len(buffers) < FRAMES and not driver.allocations
    said = trace.read_text()
    assert json.loads(said) and "gop lane 0, " in said and "worker 1, " in said and "worker 0, " not in said


@pytest.mark.gpu
def test_a_raw_file_on_real_gpus(raw, tmp_path, expected):
    skip_without(2)
    out = tmp_path / "out.264"
    for gops in ("2", "4"):
        assert command(raw, out, "--gops", gops, "--devices", "cuda:0,cuda:1") == 0
        assert out.read_bytes() == expected[0]


def test_a_part_of_a_file(gpus, clip, raw, tmp_path):
    out = tmp_path / "out.264"
    assert command(raw, out, "--seek", "5", "--frames", "13") == 0
    assert out.read_bytes() == round_trip.encode(clip[5:18], WIDTH, HEIGHT, device="cpu", **OPTIONS)[0]


def test_processors(raw, tmp_path, expected, monkeypatch):
    """Without GPUs all lanes are in worker processes, which read the file."""
    monkeypatch.setattr(Slots, "take", None)
    out = tmp_path / "out.264"
    assert main(["encode", str(raw), str(out), "--devices", "cpu,cpu", "--threads", "2", *WORDS]) == 0
    assert out.read_bytes() == expected[0]


def test_rgb(gpus, clip):
    """The lanes here and there write the colours."""
    images = [np.full((HEIGHT, WIDTH, 3), 4 * k, np.uint8) for k in range(9)]
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cpu", **OPTIONS) as encoder:
        wanted = b"".join(packet.data for packet in round_trip.packets_of(encoder, images)), encoder.headers
    with encoder_of() as encoder:
        assert (b"".join(packet.data for packet in round_trip.packets_of(encoder, images)), encoder.headers) == wanted


@pytest.mark.parametrize("way", ("killed", "lost"))
@pytest.mark.parametrize("source", ("arrays", "file"))
def test_the_other_device_is_lost(gpus, clip, raw, tmp_path, monkeypatch, capfd, expected, way, source):
    """A process that is killed is replaced; the GOPs of a GPU that fails go to the first one. One warning, the same bytes."""
    if way == "lost":
        monkeypatch.setenv("FAIL_WORKER", "1")
        monkeypatch.setenv("FAIL_AFTER", "40")
    else:
        take, victims = remote_lanes.RemoteLanes._take, []

        def killing(self, frames, spans):
            take(self, frames, spans)
            if not victims:
                victims.append(self.process)
                os.kill(self.process, signal.SIGKILL)

        monkeypatch.setattr(remote_lanes.RemoteLanes, "_take", killing)
    wanted = "encoded again" if way == "killed" else "encoded on the other devices"
    if source == "file":
        out = tmp_path / "out.264"
        assert command(raw, out) == 0
        stream, said = out.read_bytes(), [line for line in capfd.readouterr().err.splitlines() if "GOPs" in line]
    else:
        with warnings.catch_warnings(record=True) as caught, encoder_of() as encoder:
            warnings.simplefilter("always")
            stream = fed(encoder, clip)
            assert not slots_in_use(front_of(encoder))
        said = [str(w.message) for w in caught if w.category is RuntimeWarning]
    assert stream == expected[0]
    assert len(said) == 1 and wanted in said[0], said


@pytest.mark.parametrize("after", (3, 60, 200))
def test_the_first_gpu_is_lost(gpus, raw, tmp_path, capfd, expected, after):
    """It decides, too: the encode ends with whole frames."""
    gpus[0].fail_after = after
    out = tmp_path / "out.264"
    assert command(raw, out) == 1
    said = [line for line in capfd.readouterr().err.splitlines() if "error" in line]
    assert len(said) == 1 and "(cuda:0) failed in " in said[0], said
    data, written = round_trip.written(out)
    assert f"holds {written} frame" in said[0] and expected[0].startswith(data) and written < FRAMES
    gpus[0].fail_after = None


def test_the_first_gpu_is_lost_with_arrays(gpus, clip):
    gpus[0].fail_after = 100
    with encoder_of() as encoder, pytest.raises(DeviceLost, match=r"\(cuda:0\) failed in "):
        fed(encoder, clip)
    gpus[0].fail_after = None


def test_a_file_that_becomes_shorter(gpus, raw, tmp_path, capfd, monkeypatch):
    later = RawSource.later

    def cut(self, number):
        if number == 17:
            os.truncate(raw, 17 * SIZE + 5)
        return later(self, number)

    monkeypatch.setattr(RawSource, "later", cut)
    out = tmp_path / "out.264"
    assert command(raw, out) == 1
    said, written = capfd.readouterr().err, len(round_trip.ffmpeg_frames(out.read_bytes()))
    assert "it has become shorter; frame" in said and f"the output holds {written} frame" in said and written <= 17


def test_a_cut(gpus, clip, expected):
    """As after Ctrl-C: whole frames, from the first one on."""
    with encoder_of() as encoder:
        packets = [packet for planes in clip for packet in encoder.encode(tuple(planes))]
        workers = front_of(encoder)
        workers.cut()
        wait_for(lambda: not workers.busy())
        packets += encoder.flush()
    data = b"".join(packet.data for packet in packets)
    assert expected[0].startswith(data)


def test_an_interrupt_while_a_file_is_measured(endless, tmp_path):  # noqa: F811
    out = tmp_path / "out.264"
    with encoding(endless, out, "--crf", "30", "--bframes", "2", "--b-adapt", "1") as (running, _):
        os.killpg(running.pid, signal.SIGINT)
        said = running.communicate(timeout=30)[1].decode()
    assert running.returncode == 130
    assert f"interrupted; the output holds {len(round_trip.ffmpeg_frames(out.read_bytes()))} frames" in said


def test_processes_that_are_started_early(monkeypatch, tmp_path):
    """Those of the devices that have one; those that an encode does not take end."""
    large, started, ended = tmp_path / "large", [], []

    class NoProcess:
        def __init__(self, device):
            self.device = device
            started.append(device)

        def end(self):
            ended.append(self.device)

    with large.open("wb") as file:
        file.truncate(process.LARGE)
    monkeypatch.setattr(process, "Process", NoProcess)
    for first in (0, 1):
        assert process.start_early(("cuda:0", "cuda:1"), [str(large)], first)
        assert process.take_process("cuda:1").device == "cuda:1"
        process.end_early()
    assert started == ["cuda:0", "cuda:1", "cuda:1"] and ended == ["cuda:0"]


def test_a_lane_that_lacks_frames_while_gops_wait_again():
    """Then there is room for frames, however many wait again: no other lane may be left to take those."""
    from h264lite.encoder.decisions.frame_decider import FrameDecider
    from h264lite.encoder.settings.config import Config

    config = Config.from_options(width=16, height=16, device="cpu", keyint=2, qp=26, bframes=0)
    types, queue = FrameDecider(config), GopQueue(2, 4, 384)
    waiting = deque((types.add()[0], np.zeros(384, np.uint8)) for _ in range(3))
    for _ in range(3):
        queue.enter(*waiting.popleft())
    one, two = queue.next_gop(), queue.next_gop()
    taken = [*queue.take(one, 1), *queue.take(one, 1)]
    assert not queue.lacks_frames()
    queue.put_back(one, taken)
    assert not queue.lacks_frames()  # a frame of the last GOP waits
    queue.take(two, 1)
    assert queue.lacks_frames()
    assert queue.next_gop() is one and not queue.lacks_frames()
