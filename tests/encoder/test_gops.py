"""Several GOPs at once: the same bytes as one at a time, whatever fails, whichever lane is faster."""

import gc
import os
import threading
import time
import warnings

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.errors import DeviceError, DeviceLost, InputError, OptionError
from h264lite.encoder.gops.gops import Gops, count_lanes, lane_settings
from h264lite.encoder.gops.queue import GopQueue
from h264lite.encoder.settings.config import Config

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..inside import changed, on_each_frame
from ..support import round_trip
from ..support.steady import steady, steady_words

WIDTH, HEIGHT, FRAMES = 50, 34, 11


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 7)


@pytest.fixture
def raw(clip, tmp_path):
    return round_trip.write_raw(clip, tmp_path)


def encode(clip, **options):
    return round_trip.encode(clip, WIDTH, HEIGHT, **options)


@pytest.mark.parametrize("gops", (2, 3, 4, 8, "auto"))
@pytest.mark.parametrize("keyint", (1, 3, 4, 11, 250))
def test_same_bytes(clip, gops, keyint):
    expected, decoded = encode(clip, device="cpu", keyint=keyint, threads=2)
    stream, again = encode(clip, device="cpu", keyint=keyint, threads=2, gops=gops)
    assert stream == expected
    assert len(again) == FRAMES and all(np.array_equal(a, b) for one, two in zip(decoded, again) for a, b in zip(one, two))


@pytest.mark.parametrize("form", ("file", "pipe", "y4m"))
def test_the_command(clip, raw, tmp_path, form, monkeypatch):
    one, several, words = tmp_path / "1.264", tmp_path / "n.264", ["--device", "cpu", "--keyint", "3", "--quiet"]
    source, options = str(raw), words
    if form == "y4m":
        source = str(tmp_path / "in.y4m")
        frames = b"".join(b"FRAME\n" + b"".join(plane.tobytes() for plane in frame) for frame in clip)
        (tmp_path / "in.y4m").write_bytes(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 C420\n".encode() + frames)
    if form == "pipe":
        import io
        import sys
        import types

        options = [*words, "--input-res", f"{WIDTH}x{HEIGHT}"]
        opened = io.BufferedReader(open(raw, "rb", 0))
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=opened, fileno=opened.fileno))
        source = "-"
    assert main(["encode", str(raw), str(one), *words]) == 0
    assert main(["encode", source, str(several), *options, "--gops", "3", "--threads", "3"]) == 0
    assert several.read_bytes() == one.read_bytes()


@pytest.mark.parametrize("seek, frames", ((0, 5), (2, 0), (4, 100), (10, 1)))
def test_parts_of_a_file(raw, tmp_path, seek, frames):
    one, several = tmp_path / "1.264", tmp_path / "n.264"
    words = ["--device", "cpu", "--keyint", "2", "--quiet", "--seek", str(seek), "--frames", str(frames)]
    assert main(["encode", str(raw), str(one), *words]) == 0
    assert main(["encode", str(raw), str(several), *words, "--gops", "4"]) == 0
    assert several.read_bytes() == one.read_bytes()


def test_a_cut_off_frame_is_said(raw, tmp_path, capfd):
    raw.write_bytes(raw.read_bytes() + b"rest")
    out = tmp_path / "out.264"
    assert main(["encode", str(raw), str(out), "--device", "cpu", "--keyint", "2", "--gops", "2"]) == 1
    assert f"4 bytes left over, {FRAMES} frames encoded" in capfd.readouterr().err
    assert len(round_trip.ffmpeg_frames(out.read_bytes())) == FRAMES


def test_a_file_that_becomes_shorter(clip, raw, tmp_path, capfd, monkeypatch):
    from h264lite.encoder.files.video import RawSource

    whole = RawSource.later
    size = WIDTH * HEIGHT * 3 // 2

    def later(self, number):
        if number == 7:
            os.truncate(raw, 7 * size + 5)
        return whole(self, number)

    monkeypatch.setattr(RawSource, "later", later)
    out = tmp_path / "out.264"
    assert main(steady_words(["encode", raw, out, "--device", "cpu", "--keyint", "2", "--gops", "3"])) == 1
    said = capfd.readouterr().err
    held = len(round_trip.ffmpeg_frames(out.read_bytes()))
    assert "it has become shorter; frame" in said and f"the output holds {held} frame" in said
    assert 6 <= held <= 7


def test_cut_ends_what_has_not_begun(clip):
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=2, **steady({}), gops=2, threads=2)
    gops, slow = Gops(config, 2), threading.Event()

    def read(place):
        slow.wait(0.05)
        place[:] = 100

    done = []
    for _ in range(400):
        done += gops.encode(read)
        if not gops.has_room():
            break
    gops.cut()
    begin = time.monotonic()
    gops.end()
    while gops.busy():
        done += gops.poll()
    done += gops.flush()
    gops.close()
    assert time.monotonic() - begin < 20
    assert [frame.index for frame in done] == list(range(len(done))) and len(done) < 400


def test_memory_is_bounded(clip):
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=2, **steady({}), gops=3, threads=3)
    gops = Gops(config, 3)
    frame = [np.ascontiguousarray(plane) for plane in clip[0]]
    most, done = 0, 0
    for _ in range(60):
        done += len(gops.encode(tuple(frame)))
        most = max(most, gops.queue.waiting, len(gops.queue.free))
    done += len(gops.flush())
    gops.close()
    assert done == 60 and most <= 3 * 2 + 1 + 3  # waiting, being filled, being read


def test_an_error_comes_once_and_what_is_before_it_is_kept(clip, monkeypatch):
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=2, **steady({}), gops=2, threads=1)
    gops = Gops(config, 2)

    def bad(place):
        raise InputError("frame 5 is not there")

    def good(place):
        place[:] = 60

    done, raised = [], []
    for number in range(10):
        try:
            done += gops.encode(bad if number == 5 else good)
        except InputError:
            raised.append(number)
    for _ in range(2):
        try:
            done += gops.flush()
        except InputError:
            raised.append("flush")
    gops.close()
    assert raised == ["flush"] or (raised and raised == [*range(raised[0], 10)]), "no later frame would be coded"
    assert [frame.index for frame in done] == [0, 1, 2, 3, 4]


def in_time(function):
    """In a thread, which a test does not wait for if it waits for ever."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_who_goes_on_behind_an_error_is_told_again(clip, monkeypatch):
    """More frames than may wait: they did for ever."""
    threads = threading.active_count()

    def full(pipeline, spec):
        if spec.display_index == 3:
            raise MemoryError("no memory")
        return spec

    on_each_frame(monkeypatch.setattr, full)
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=2, **steady({}), gops=2, threads=1)
    gops, raised = Gops(config, 2), []

    def go_on():
        for number in range(40):
            try:
                gops.encode(tuple(clip[0]))
            except MemoryError:
                raised.append(number)
            time.sleep(0.01)

    in_time(go_on)
    assert len(raised) > 20
    gops.flush()
    gops.close()
    assert threading.active_count() == threads


@pytest.mark.parametrize("end", ("close", "end"))
def test_nobody_waits_for_room_once_it_is_over(clip, end):
    """Another thread ended it."""
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=2, **steady({}), gops=2, threads=1)
    gops = Gops(config, 2)
    timer = threading.Timer(0.05, getattr(gops, end))

    def go_on():
        while timer.is_alive():
            gops.encode(tuple(clip[0]))
        for _ in range(2 * gops.queue.room):
            gops.encode(tuple(clip[0]))

    timer.start()
    in_time(go_on)
    gops.close()


def test_threads_end_with_gops_that_are_dropped(clip):
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=2, **steady({}), gops=2, threads=1)
    gops = Gops(config, 2)
    gops.encode(tuple(clip[0]))
    threads = gops._threads
    del gops
    gc.collect()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_who_waits_does_not_turn_in_circles(clip, monkeypatch):
    """For room, and for the end: else it takes the interpreter from the lanes that it waits for."""
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=20, **steady({}), gops=2, threads=2)
    waits, wait = [], GopQueue.wait

    def counted(self, seconds):
        waits.append(seconds)
        wait(self, seconds)

    def read(place):
        time.sleep(0.002)
        place[:] = 100

    monkeypatch.setattr(GopQueue, "wait", counted)
    gops, done = Gops(config, 2), []
    for _ in range(200):
        while not gops.has_room():
            done += gops.poll()
        done += gops.encode(read)
    done += gops.flush()
    gops.close()
    for feeds in (True, False):
        gops = Gops(config, 2)
        gops.queue.room = 1000 - 998 * feeds
        done = [frame for n in range(160) for frame in gops.encode(tuple(clip[n % FRAMES]))] + gops.flush()
        gops.close()
        assert [frame.index for frame in done] == list(range(160))
    assert len(waits) < 20 * 520, "some a picture, and not thousands"


def test_a_lane_with_a_picture_is_busy(clip, monkeypatch):
    """From the moment on at which it is no longer waiting: else the caller would take the encode for ended."""
    seen, take = [], GopQueue.take

    def taken(self, *arguments):
        frames = take(self, *arguments)
        seen.extend(self.busy() for _ in frames)
        return frames

    monkeypatch.setattr(GopQueue, "take", taken)
    encode(clip, device="cpu", keyint=2, threads=2, gops=3)
    assert seen == [True] * FRAMES


def test_lanes_that_fail_alike_are_told_once(tmp_path, clip, monkeypatch, capfd):
    """The later GOP fails first; the one before it, once that was told."""
    from h264lite.encoder.files.video import RawSource

    later_failed = threading.Event()

    def later(self, number):
        def read(place):
            if number == 5:
                later_failed.set()
                raise InputError("frame 5 is not there")
            if number == 3:
                assert later_failed.wait(20)
                time.sleep(0.3)
                raise InputError("frame 3 is not there")
            place[:] = 60

        return read

    monkeypatch.setattr(RawSource, "later", later)
    raw, out = tmp_path / f"in_{WIDTH}x{HEIGHT}.yuv", tmp_path / "out.264"
    raw.write_bytes(bytes(8 * WIDTH * HEIGHT * 3 // 2))
    assert main(steady_words(["encode", raw, out, "--device", "cpu", "--keyint", "2", "--gops", "3"])) == 1
    said = [line for line in capfd.readouterr().err.splitlines() if "error" in line]
    assert len(said) == 1 and "frame 5 is not there; the output holds 3 frames" in said[0], said
    assert len(round_trip.ffmpeg_frames(out.read_bytes())) == 3


def test_refused_by_name():
    size = {"width": 64, "height": 64}
    with pytest.raises(OptionError, match=r"gops.*0: not in 1\.\.64"):
        Config.from_options(**size, gops=0)
    with pytest.raises(OptionError, match=r"devices.*named twice"):
        Config.from_options(**size, devices="cuda:1,cuda:1")
    with pytest.raises(OptionError, match=r"devices.*not all, cpu or a list of"):
        Config.from_options(**size, devices="gpu")
    for mixed in ("cuda:0,cpu", "cpu,cuda", ["cuda:0", "cuda:1", "cpu"]):
        with pytest.raises(OptionError, match=r"devices.*cpu beside GPUs, which would have to wait for it"):
            Config.from_options(**size, devices=mixed)
    with pytest.raises(OptionError, match="contradicts device"):
        Config.from_options(**size, devices="cpu", device="cpu")
    if h264lite.encoder.settings.device.why_no_cuda():
        with pytest.raises(DeviceError, match="devices cuda:0,cuda:1"):
            Config.from_options(**size, devices="cuda,cuda:1")


def test_lanes_share_out_threads_and_devices(driver):  # noqa: F811
    size = {"width": 64, "height": 64}
    config = changed(Config.from_options(**size, device="cuda", threads=5), devices=("cuda:0", "cuda:1"))
    lanes = [lane_settings(config, k, 3).machine for k in range(3)]
    assert [(lane.device, lane.ordinal) for lane in lanes] == [("cuda", 0), ("cuda", 1), ("cuda", 0)]
    assert sum(lane.threads for lane in lanes) == 5
    with pytest.raises(DeviceError, match="there is no cuda:7"):
        Config.from_options(**size, devices="cuda:7")
    assert count_lanes(Config.from_options(**size, device="cpu", gops=4, keyint=10), 11) == 2
    assert count_lanes(Config.from_options(**size, device="cpu", gops="auto", threads=8, keyint=10), 1000) == 8
    assert count_lanes(Config.from_options(width=1920, height=1080, device="cpu", threads=8, keyint=10), 1000) == 4
    assert count_lanes(Config.from_options(width=1920, height=1080, device="cpu", gops="auto", threads=64), None) == 1


@on_gpus
@pytest.mark.parametrize("devices, gops", (("cuda:0", 2), ("cuda:0", 4)))
def test_same_bytes_on_a_gpu(driver, clip, devices, gops):  # noqa: F811
    expected, _ = encode(clip, device="cpu", keyint=3, ref=2)
    stream, decoded = encode(clip, devices=devices, gops=gops, keyint=3, ref=2, threads=2)
    assert stream == expected and len(decoded) == FRAMES


def lanes_of_command(monkeypatch):
    """A list that gets the number of lanes of each Gops."""
    lanes, start = [], Gops._start
    monkeypatch.setattr(Gops, "_start", lambda self, count, *more: lanes.append(count) or start(self, count, *more))
    return lanes


READ_AGAIN = {
    "": 2, "--aq-mode 0 --no-mbtree --scenecut 0": 2, "--seek 2 --frames 7": 2, "--bframes 2 --b-adapt 1": 0, "--subme 4": 0,
    "--bframes 2 --rc-lookahead 4 --gops 3": 3, "--gops 1": 0,
}  # fmt: skip


@on_gpus
@pytest.mark.parametrize("words", READ_AGAIN)
def test_frames_that_decide_are_read_again(driver, clip, raw, tmp_path, words, monkeypatch):  # noqa: F811
    """P frames by a rate factor: two GOPs at once, as many GOPs as are asked for with B frames; the bytes of one."""
    options = ["--crf", "24", "--bframes", "0", "--keyint", "3", "--quiet", *words.split()]
    assert main(["encode", str(raw), str(tmp_path / "cpu.264"), "--device", "cpu", *options]) == 0
    lanes = lanes_of_command(monkeypatch)
    assert main(["encode", str(raw), str(tmp_path / "gpu.264"), "--device", "cuda", "--threads", "4", *options]) == 0
    assert lanes == [READ_AGAIN[words]] * (READ_AGAIN[words] > 0)
    assert (tmp_path / "gpu.264").read_bytes() == (tmp_path / "cpu.264").read_bytes()


@on_gpus
@pytest.mark.parametrize("part", (10, 3, 2))
def test_frames_that_decide_when_the_gpu_is_lost(driver, clip, raw, tmp_path, part):  # noqa: F811
    options = ["--crf", "24", "--bframes", "0", "--keyint", "3", "--threads", "4", "--quiet"]
    begin = driver.launches
    assert main(["encode", str(raw), str(tmp_path / "gpu.264"), *options]) == 0
    driver.launches, driver.fail_after = 0, (driver.launches - begin) // part
    assert main(["encode", str(raw), str(tmp_path / "lost.264"), *options]) == 0
    driver.fail_after = None
    assert (tmp_path / "lost.264").read_bytes() == (tmp_path / "gpu.264").read_bytes()


@on_gpus
@pytest.mark.parametrize("silent", (False, True))
def test_a_lost_gpu_with_auto(driver, clip, silent):  # noqa: F811
    expected, _ = encode(clip, device="cpu", keyint=3)
    begin = driver.launches
    encode(clip, keyint=3, gops=2, threads=2)
    launches = driver.launches - begin
    for after in (launches // 8, launches // 2, launches - 4):
        driver.launches, driver.fail_after, driver.silent = 0, after, silent
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            stream, _ = encode(clip, keyint=3, gops=2, threads=2)
        driver.fail_after = None
        texts = [str(w.message) for w in said if w.category is RuntimeWarning]
        assert stream == expected
        assert len(texts) == 1 and "continuing on the CPU" in texts[0], texts


@on_gpus
@pytest.mark.parametrize("gops", (2, 3, 4))
def test_a_lost_gpu_by_name(driver, clip, raw, tmp_path, capfd, gops):  # noqa: F811
    expected, _ = encode(clip, device="cpu", keyint=2, fps=25)
    out = tmp_path / "out.264"
    driver.launches, driver.fail_after, driver.silent = 0, 150, False
    words = ["--devices", "cuda:0", "--gops", str(gops), "--keyint", "2", "--threads", "4"]
    assert main(steady_words(["encode", raw, out, *words])) == 1
    driver.fail_after = None
    said = [line for line in capfd.readouterr().err.splitlines() if "error" in line]
    data, held = round_trip.written(out)
    assert len(said) == 1 and " failed in " in said[0] and f"holds {held} frame" in said[0], said
    assert expected.startswith(data) and held < FRAMES
    assert issubclass(DeviceLost, Exception)
