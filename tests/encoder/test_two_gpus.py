"""Two GPUs: GOPs on both give the bytes of the processor; the loss of one leaves the other; doctor and tune know both."""

import threading
import warnings

import h264lite
import numpy as np
import pytest
from h264lite.cli import doctor as doctor_command
from h264lite.cli.cli import main
from h264lite.cli.measuring import links, measurements
from h264lite.cuda_src.runtime import device as device_module
from h264lite.cuda_src.runtime.library import GpuLost
from h264lite.encoder import clips
from h264lite.encoder.errors import DeviceError, InputError
from h264lite.scheduler.hybrid.tuning.tuning_file import cache_file, read

from ..cli.test_machine_commands import quick  # noqa: F401
from ..cuda_emulator.driver import Error
from ..cuda_emulator.fixtures import both_ways, driver, on_gpus  # noqa: F401
from ..support import round_trip
from ..support.foreign_arrays import Dlpack
from ..support.steady import steady_words
from . import test_cuda_types
from .test_cuda_frames import upload

WIDTH, HEIGHT, FRAMES = 50, 34, 12
GPUS = 2  # of the fixture `driver`


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 7)


@pytest.fixture
def raw(clip, tmp_path):
    return round_trip.write_raw(clip, tmp_path)


def encode(clip, **options):
    return round_trip.encode(clip, WIDTH, HEIGHT, keyint=2, **options)


def test_the_emulated_gpus_are_strict(driver):  # noqa: F811
    """What a real driver refuses: another GPU's arrays and streams, work without a context."""
    one, two = device_module.Device(0), device_module.Device(1)
    with one:
        array, stream = one.zeros((64,), "u1"), one.stream()
    with pytest.raises(GpuLost, match=r"emulated device \(cuda:1\) failed.*array of GPU 0 is used on GPU 1"), two:
        two.call("memset_d8_async", (array.ptr, 1, 64, 0), ())
    two = device_module.Device(1)
    with pytest.raises(GpuLost, match="a stream of another GPU"), two:
        two.zeros((64,), "u1").fill(1, stream)
    with pytest.raises(Error, match="no context is current"):
        driver.Stream()
    with pytest.raises(device_module.DeviceUnavailable, match="device 2 was asked for, and the driver reports 2"):
        device_module.Device(2)


@on_gpus
def test_adaptive_types(driver):  # noqa: F811
    """The first GPU decides for both."""
    expected = test_cuda_types.shown(test_cuda_types.packets_of(device="cpu", keyint=5, gops=1))
    packets = test_cuda_types.packets_of(device=None, devices=("cuda:0", "cuda:1"), keyint=5, gops=4, threads=2)
    assert test_cuda_types.shown(packets) == expected


@on_gpus
@pytest.mark.parametrize("gops", (None, 1, 2, 3, 4))
@pytest.mark.parametrize("devices", ("cuda:0,cuda:1", "cuda:1"))
def test_same_bytes(driver, clip, devices, gops):  # noqa: F811
    expected, _ = encode(clip, device="cpu", ref=2)
    least = len(devices.split(","))
    if gops is not None and gops < least:
        with pytest.raises(h264lite.OptionError, match=f"gops.*each of {least} devices"):
            encode(clip, devices=devices, gops=gops)
        return
    stream, decoded = encode(clip, devices=devices, ref=2, threads=3, **({} if gops is None else {"gops": gops}))
    assert stream == expected and len(decoded) == FRAMES
    # a lane whose thread comes late may find no GOP left, but its arrays were there
    assert [bool(gpu.allocated) for gpu in driver.gpus] == ["cuda:0" in devices, True]
    assert not driver.allocations


@on_gpus
@pytest.mark.parametrize("silent", (False, True))
@pytest.mark.parametrize("lost", (0, 1))
def test_one_is_lost_by_name(driver, clip, raw, tmp_path, capfd, lost, silent):  # noqa: F811
    """The encode ends with one line that says which; what is written is whole frames. Nothing if the other did it all."""
    expected, _ = encode(clip, device="cpu", fps=25)
    out = tmp_path / "out.264"
    gpu = driver.gpus[lost]
    gpu.fail_after, gpu.silent = 5, silent
    code = main(steady_words(["encode", raw, out, "--devices", "cuda:0,cuda:1", "--keyint", "2", "--threads", "2"]))
    if gpu.launches <= 5:
        assert code == 0 and out.read_bytes() == expected
        return
    assert code == 1
    said = [line for line in capfd.readouterr().err.splitlines() if "error" in line]
    assert len(said) == 1 and f" (cuda:{lost}) failed in " in said[0], said
    data, held = round_trip.written(out)  # nothing if it had the first GOP
    assert f"holds {held} frame" in said[0], said
    assert expected.startswith(data) and held < FRAMES
    gpu.fail_after = None


@on_gpus
@pytest.mark.parametrize("silent", (False, True))
def test_one_is_lost_with_auto(driver, clip, silent):  # noqa: F811
    """`auto` is the first GPU: the CPU replaces it; the other GPU is not used."""
    expected, _ = encode(clip, device="cpu")
    for gops in (1, 2, 3):
        for after in (3, 40, 90):
            driver.gpus[0].launches, driver.gpus[0].fail_after, driver.gpus[0].silent = 0, after, silent
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                stream, _ = encode(clip, gops=gops, threads=2)
            driver.gpus[0].fail_after = None
            texts = [str(w.message) for w in said if w.category is RuntimeWarning]
            assert stream == expected, (gops, after)
            assert len(texts) == 1 and "(cuda:0)" in texts[0] and "continuing on the CPU" in texts[0], texts
    assert not driver.gpus[1].launches


@both_ways
def test_the_other_gpu_lives(driver, clip):  # noqa: F811
    """After one was lost, an encode on the other one is as ever."""
    expected, _ = encode(clip, device="cpu")
    driver.gpus[0].fail_after = 0
    with pytest.raises(h264lite.Error, match=r"\(cuda:0\) failed"):
        encode(clip, devices="cuda:0")
    stream, _ = encode(clip, devices="cuda:1")
    assert stream == expected


@on_gpus
def test_a_picture_on_the_other_gpu_is_refused(driver, clip):  # noqa: F811
    other = device_module.Device(1)
    with other:
        planes = tuple(upload(other, plane) for plane in clip[0])
    with h264lite.Encoder(WIDTH, HEIGHT, device="cuda", qp=26, bframes=0) as encoder:
        with pytest.raises(InputError, match="lies on GPU 1, and this encoder runs on GPU 0"):
            encoder.encode(planes)
        encoder.encode(tuple(clip[0]))
        encoder.flush()
    other.close()


def video(k, frames=4):
    return np.random.default_rng(k).integers(0, 256, (frames, HEIGHT, WIDTH, 3), np.uint8)


def on_the_cpu(k):
    return h264lite.write_video(None, video(k), qp=26, device="cpu")


@on_gpus
@pytest.mark.parametrize("devices", ("all", "cuda:1", ("cuda:1", "cuda:0")))
def test_clips_take_the_gpus_in_turn(driver, devices):  # noqa: F811
    """One of them each: the frames of the first clip come when all threads have one."""
    seen, opened, are_busy = [], clips._Writer.__init__, threading.Event()
    expected = {("cuda:1",)} if devices == "cuda:1" else {("cuda:0",), ("cuda:1",)}

    def noted(self, *names, **options):
        seen.append(options["devices"])
        if len(seen) == len(expected):
            are_busy.set()
        opened(self, *names, **options)

    def first_video():
        assert are_busy.wait(60)
        yield from video(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clips._Writer, "__init__", noted)
        results = [*h264lite.write_videos(None, [first_video(), *map(video, range(1, 4))], qp=26, devices=devices)]
    assert [result.data for result in results] == [on_the_cpu(k) for k in range(4)]
    assert len(seen) == 4 and {*seen} == expected
    assert not driver.allocations


@on_gpus
def test_a_clip_on_a_gpu_is_encoded_there(driver):  # noqa: F811
    """Whichever of the devices its thread has."""
    gpus = [device_module.Device(k) for k in range(GPUS)]
    videos, memory = [], []
    for k in (1, 1, 0):
        with gpus[k]:
            memory.append(gpus[k].upload(video(k)))
        videos.append(Dlpack(video(k), "uint8", memory[-1].ptr, (2, k)))
    results = [*h264lite.write_videos(None, videos, qp=26, devices="all", workers=1)]
    assert [result.error for result in results] == [None] * 3
    assert [result.data for result in results] == [on_the_cpu(k) for k in (1, 1, 0)]
    for gpu in gpus:
        gpu.close()


def test_a_gpu_that_is_not_there(driver, clip):  # noqa: F811
    with pytest.raises(DeviceError, match="there is no cuda:2; the driver reports 2"):
        encode(clip, devices="cuda:0,cuda:2")


def test_doctor_and_links(driver, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    facts = doctor_command.examine()
    assert len(facts["cuda"]["gpus"]) == 2
    assert [any(f"GPU {k}:" in line for line in doctor_command.lines(facts)) for k in (0, 1, 2)] == [True, True, False]
    assert set(links.measure(1)) == {("cpu", "cuda:1"), ("cuda:1", "cpu")}
    assert not driver.allocations


def test_tune_measures_the_links_of_both(driver, quick, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    monkeypatch.setattr(measurements, "measure_link", links.measure)
    assert main(["tune", "--seconds", "5"]) == 0
    tuning = read(cache_file().read_text(), "x")
    assert {("cpu", "cuda:0"), ("cpu", "cuda:1"), ("cuda:1", "cpu")} <= set(tuning.models.links)
    assert tuning.models.knows("deblock", "cuda:1")
    assert {row[0] for row in quick} == {"cpu", "cuda:0"}  # the first stands for both
    assert len(tuning.machine.gpus) == 2
