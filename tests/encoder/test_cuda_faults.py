"""A GPU that is lost, full or absent: the same bytes from the CPU, or whole frames and one clear line."""

import math
import time
import warnings

import h264lite
import pytest
from h264lite.cli.cli import main
from h264lite.cuda_src.runtime import device as device_module
from h264lite.encoder.errors import DeviceError, DeviceLost, Error
from h264lite.encoder.files.video import RawSource
from h264lite.scheduler.frames.ring import DOWNLOAD_CYCLE

from ..cuda_emulator.driver import EmulatedDriver
from ..cuda_emulator.fixtures import both_ways, check_that_nothing_grows, driver, launches_by_frame, on_gpus  # noqa: F401
from ..inside import executor_of, frame_executor_of, n_host_buffers, recordings_of, ring_of
from ..support import round_trip
from ..support.steady import steady, steady_words

WIDTH, HEIGHT, FRAMES = 34, 18, 8
QUICK = {"subme": 2, "merange": 4, "partitions": "none"}  # few stages: a fault does not ask which


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 5)


def encode(clip, **options):
    return round_trip.encode(clip, WIDTH, HEIGHT, **options)


def launches(driver, clip, **options):  # noqa: F811
    return launches_by_frame(driver, clip, lambda: h264lite.Encoder(WIDTH, HEIGHT, 30, device="cuda", **steady(options)))


@on_gpus
@pytest.mark.parametrize("silent", (False, True))
@pytest.mark.parametrize(
    "options", ({"threads": 1, **QUICK}, {"threads": 3, "ref": 3}, {"threads": 4, "keyint": 3, "ref": 2, **QUICK}), ids=str
)
def test_auto_goes_on_with_the_same_bytes(driver, clip, options, silent):  # noqa: F811
    expected, _ = encode(clip, device="cpu", **options)
    counts = launches(driver, clip, **options)
    for n, frame in enumerate((0, 1, 4, FRAMES - 1)):
        places = counts[frame], (counts[frame] + counts[frame + 1]) // 2, counts[frame + 1] - 1
        for at in places[(n + silent) % 2 :: 2]:  # what is left out is that of the other kind of loss
            driver.launches, driver.fail_after, driver.silent = counts[0], at, silent
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                stream, decoded = encode(clip, **options)
            driver.fail_after = None
            texts = [str(w.message) for w in said if w.category is RuntimeWarning]
            assert len(texts) == 1 and "continuing on the CPU from frame" in texts[0], texts
            assert stream == expected, (frame, at)
            assert len(decoded) == FRAMES


@on_gpus
@pytest.mark.parametrize(
    ("options", "lost"), (({"threads": 1}, (18, 27)), ({"threads": 2, "ref": 3, "keyint": 17}, (22, 29, 32)),
                          ({"threads": 3, "ref": 6}, (18, 22, 29))), ids=str,
)  # fmt: skip
def test_pictures_whose_references_stayed_on_the_gpu_are_done_again(driver, options, lost):  # noqa: F811
    """Of six decoded frames the last ones are downloaded, after a full turn of the ring."""
    clip, options = round_trip.noise_clip(34, 18, 33, 7), {**QUICK, **options}
    expected, _ = round_trip.encode(clip, 34, 18, device="cpu", **options)
    counts = launches_by_frame(driver, clip, lambda: h264lite.Encoder(34, 18, 30, device="cuda", **steady(options)))
    for frame in lost:
        driver.launches, driver.fail_after = counts[0], counts[frame] + 4
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            stream, _ = round_trip.encode(clip, 34, 18, **options)
        driver.fail_after = None
        assert len([w for w in said if "continuing on the CPU" in str(w.message)]) == 1
        assert stream == expected, frame


def raw_file(clip, tmp_path):
    source = tmp_path / f"in_{WIDTH}x{HEIGHT}.yuv"
    source.write_bytes(b"".join(plane.tobytes() for frame in clip for plane in frame))
    return source


@pytest.mark.parametrize("words", ("--threads 1", "--threads 3 --ref 2", "--seek 2", "--frames 3 --threads 2"))
@pytest.mark.parametrize("lost", (None, 0, 2))
def test_a_raw_file_is_read_ahead(driver, clip, tmp_path, monkeypatch, capfd, words, lost):  # noqa: F811
    """Each frame in its position, whichever thread is early or late, and whether or not the GPU is lost meanwhile."""
    source, out, numbers = raw_file(clip, tmp_path), tmp_path / "out.264", []
    later = RawSource.later

    def slowly(self, number):
        read = later(self, number)
        numbers.append(number)
        return (lambda place: (time.sleep(0.02), read(place))[1]) if number // 2 % 2 else read

    monkeypatch.setattr(RawSource, "later", slowly)
    assert main(steady_words(["encode", source, tmp_path / "cpu.264", "--device", "cpu", *words.split()])) == 0
    assert not numbers
    if lost is not None:
        counts = launches(driver, clip[:4])
        driver.launches, driver.fail_after = counts[0], counts[lost] + 3
    assert main(steady_words(["encode", source, out, *words.split()])) == 0
    driver.fail_after = None
    assert out.read_bytes() == (tmp_path / "cpu.264").read_bytes()
    first = 2 if "seek" in words else 0
    assert numbers == [*range(first, 3 if "frames" in words else FRAMES)]
    assert ("continuing on the CPU" in capfd.readouterr().err) == (lost is not None)


def test_a_raw_file_that_is_cut_off(driver, clip, tmp_path, capfd):  # noqa: F811
    source = raw_file(clip, tmp_path)
    source.write_bytes(source.read_bytes()[:-7])
    assert main(steady_words(["encode", source, tmp_path / "out.264", "--device", "cuda"])) == 1
    assert f"the last frame is cut off: {WIDTH * HEIGHT * 3 // 2 - 7} bytes left over" in capfd.readouterr().err
    assert len(round_trip.ffmpeg_frames((tmp_path / "out.264").read_bytes())) == FRAMES - 1


@both_ways
@pytest.mark.parametrize("silent", (False, True))
def test_cuda_by_name_finishes_the_file(driver, clip, tmp_path, capfd, silent):  # noqa: F811
    counts = launches(driver, clip)
    source, out = raw_file(clip, tmp_path), tmp_path / "out.264"
    expected, _ = encode(clip, device="cpu", fps=25)
    for frame in (1, 5, FRAMES - 1):
        driver.launches, driver.fail_after, driver.silent = counts[0], counts[frame] + 3, silent
        assert main(steady_words(["encode", source, out, "--device", "cuda", "--threads", "2"])) == 1
        driver.fail_after = None
        lines = [line for line in capfd.readouterr().err.splitlines() if "error" in line]
        assert len(lines) == 1 and " failed in " in lines[0], lines
        data, held = round_trip.written(out)
        assert f"holds {held} frame" in lines[0]
        assert expected.startswith(data)
        assert held <= frame  # fewer if a thread that writes bits came late


@both_ways
def test_the_loss_is_raised_once(driver, clip):  # noqa: F811
    counts = launches(driver, clip)
    driver.launches, driver.fail_after = counts[0], counts[4] + 2
    packets, lost = [], 0
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cuda", threads=4, qp=26, bframes=0) as encoder:
        for planes in clip:
            in_flight = frame_executor_of(encoder).in_flight
            assert not [handle for handle in in_flight if handle.task.exception()]  # none is late
            try:
                packets += encoder.encode(tuple(planes))
            except DeviceLost:
                lost += 1
                break
        packets += encoder.flush()
    assert lost == 1 and [p.pts for p in packets] == [0, 1, 2, 3]


def test_a_full_gpu(driver, clip):  # noqa: F811
    """Whether it is full when the encode starts or when the first frame needs the stages' own arrays."""
    expected, _ = encode(clip, device="cpu")
    encode(clip, device="cuda")
    most = driver.most
    for memory in (most // 8, most * 9 // 10, most - 100):
        driver.memory, driver.allocated = memory, 0
        with pytest.raises(Error, match=r"MiB left.*needs") as caught:
            encode(clip, device="cuda")
        assert caught.value.exit_code == 1
        with pytest.warns(RuntimeWarning, match="MiB left.*the CPU"):
            stream, _ = encode(clip)
        assert stream == expected and (driver.allocated > 1 or memory == most // 8)
        assert not driver.allocations, "what was allocated before is given back"


def test_no_gpu(clip):
    device_module.use_driver(EmulatedDriver(devices=0))
    try:
        with pytest.raises(DeviceError, match="no device") as caught:
            encode(clip, device="cuda")
        assert caught.value.exit_code == 3
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            encode(clip)
    finally:
        device_module.use_driver(None)


def test_nothing_is_allocated_for_later_frames(driver):  # noqa: F811
    still = round_trip.noise_clip(WIDTH, HEIGHT, 4, 2)
    options = {"device": "cuda", "ref": 3, "keyint": 20, "threads": 2}
    check_that_nothing_grows(driver, still, lambda: h264lite.Encoder(WIDTH, HEIGHT, 30, **steady(options)))


@pytest.mark.parametrize("options", ({"threads": 3}, {"threads": 5, "device": "cuda"}, {"threads": 4, "ref": 2}), ids=str)
def test_few_kinds_of_pictures_are_noted(driver, options):  # noqa: F811
    """Wherever frames lie: as many as numbers of references, with those of the first frames, and kinds of downloads."""
    (frame,) = round_trip.noise_clip(16, 16, 1, 3)
    with h264lite.Encoder(16, 16, **steady(options)) as encoder:
        for _ in range(5 * len(ring_of(encoder).frames)):
            encoder.encode(frame)
        ref = encoder.config.coding.ref
        period = DOWNLOAD_CYCLE if encoder.config.machine.may_change_device else ref
        assert len(recordings_of(encoder)) == ref + len({n % period >= period - ref for n in range(period)})
        n_frames, n_on_device = len(ring_of(encoder).frames), executor_of(encoder).frames_on_device
        assert n_host_buffers(encoder) == math.lcm(n_frames, n_on_device)
