"""Frames that are read ahead: each where it belongs, and what is wrong told at the frame it is wrong with."""

import os
from collections import deque

import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.cuda_src.runtime import device as device_module
from h264lite.encoder.errors import InputError
from h264lite.encoder.files.opening import open_source
from h264lite.encoder.files.read_ahead import READ_AHEAD_FRAMES, READ_BATCH, FileReader, ReadAhead
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.frames.ring import FrameRing
from h264lite.scheduler.threads import semaphore
from h264lite.scheduler.threads.readers import Readers

from ..cuda_emulator.driver import EmulatedDriver
from ..inside import ring_of, take_gpu_for_any_size

SIZE = 48 * 32 * 3 // 2
PICTURES = 3 * READ_BATCH + 1


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in_48x32.yuv"
    path.write_bytes(b"".join(bytes([n]) * SIZE for n in range(PICTURES)))
    source = open_source(str(path), None)
    source.path = path
    yield source
    source.close()


def values(source, numbers):
    """The frames in order, each read ahead as far as buffers allow."""
    ring, waiting = deque(np.zeros(SIZE, np.uint8) for _ in range(READ_AHEAD_FRAMES + 2)), list(numbers)
    with Readers(2) as readers:
        ahead = ReadAhead(readers)
        while waiting or ahead:
            while ahead.room and waiting:
                for _ in range(min(ahead.room, len(waiting))):
                    ahead.begin(source.later(waiting.pop(0)), ring.__getitem__)
                assert len(ahead) <= READ_AHEAD_FRAMES + 1
            place = ahead.next()
            assert place is ring[0] and (place == place[0]).all()
            ring.rotate(-1)
            yield int(place[0])


def test_each_where_it_belongs(source, monkeypatch):
    """By threads without the interpreter, or without threads when its turn comes."""
    by_python, read_at = [], FileReader.__call__
    monkeypatch.setattr(FileReader, "__call__", lambda self, *given: (by_python.append(given[2]), read_at(self, *given)))
    assert list(values(source, range(PICTURES))) == list(range(PICTURES)) and not by_python
    monkeypatch.setattr(semaphore.ctypes, "CDLL", lambda name: object())
    assert list(values(source, range(PICTURES))) == list(range(PICTURES)) == by_python


@pytest.mark.parametrize("whole", range(2 * READ_BATCH))
def test_what_is_there_comes_before_the_error(source, whole):
    """A file that has become shorter."""
    with source.path.open("r+b") as file:
        file.truncate(whole * SIZE + 5)
    numbers = []
    with pytest.raises(InputError, match=f"has become shorter; frame {whole} is missing"):
        for value in values(source, range(PICTURES)):
            numbers.append(value)
    assert numbers == list(range(whole))


def test_short_reads_go_on(source, monkeypatch):
    """preadv may give less than it was asked for."""
    preadv, place = os.preadv, np.zeros(SIZE, np.uint8)
    monkeypatch.setattr(os, "preadv", lambda fd, views, at: preadv(fd, [views[0][: max(1, len(views[0]) * 2 // 3)]], at))
    source.later(3)(place)
    assert (place == 3).all()


@pytest.mark.parametrize("gops", ["1", "2"])
@pytest.mark.parametrize("error", [device_module.DeviceMemoryError, device_module.GpuLost])
def test_without_places_pictures_are_read_one_at_a_time(tmp_path, monkeypatch, gops, error):
    """No page-locked memory is left, or the GPU is lost, which the first frame then tells."""
    raw, out = tmp_path / "in_16x16.yuv", tmp_path / "out.264"
    raw.write_bytes(np.random.default_rng(1).integers(0, 255, 8 * 384, np.uint8).tobytes())
    words = ["encode", str(raw), str(out), "--keyint", "3", "--threads", "4", "--quiet", "--qp", "26", "--bframes", "0"]
    assert main([*words, "--device", "cpu"]) == 0
    expected, add = out.read_bytes(), FrameRing._add

    def full(self, count):
        if count == READ_AHEAD_FRAMES:
            raise error("nothing is left")
        add(self, count)

    monkeypatch.setattr(FrameRing, "_add", full)
    device_module.use_driver(EmulatedDriver())
    try:
        assert main([*words, "--device", "cuda", "--gops", gops]) == 0
    finally:
        device_module.use_driver(None)
    assert out.read_bytes() == expected


@pytest.mark.parametrize("device", ["cuda", "auto", "cpu"])
def test_places_for_reading_ahead_are_there_for_who_asks(device, monkeypatch):
    """On a GPU; before the first frame, and what was given out stays."""
    take_gpu_for_any_size(monkeypatch.setattr)
    device_module.use_driver(EmulatedDriver())
    try:
        pipeline = Pipeline(Config.from_options(width=16, height=16, device=device, threads=4, qp=26, bframes=0))
        ring, first = ring_of(pipeline), pipeline.next_buffer()
        short = len(ring.frames)
        assert [pipeline.read_ahead(), pipeline.read_ahead()] == 2 * [device != "cpu"]
        assert len(ring.frames) >= ring.in_flight + 1 + (device != "cpu") * READ_AHEAD_FRAMES
        assert (len(ring.frames) > short) == (device != "cpu") and pipeline.next_buffer() is first
        if device != "cpu":
            assert len({pipeline.next_buffer(k).ctypes.data for k in range(READ_AHEAD_FRAMES + 1)}) == READ_AHEAD_FRAMES + 1
            assert all((frame.decoded is not None) == (device == "auto") for frame in ring.frames)
        pipeline.close()
        late = Pipeline(Config.from_options(width=16, height=16, device="cuda", threads=4, qp=26, bframes=0))
        late.encode(tuple(np.zeros((n, n), np.uint8) for n in (16, 8, 8)))
        with pytest.raises(AssertionError):
            late.read_ahead()
        late.flush()
        late.close()
    finally:
        device_module.use_driver(None)


@pytest.mark.parametrize(
    "options", [["--qp", "26"], ["--crf", "24", "--rc-lookahead", "6"], ["--qp", "26", "--frames", "5", "--seek", "3"]]
)
def test_frames_that_wait_are_read_ahead_too(tmp_path, monkeypatch, options):
    """With B frames: into buffers that nothing reads any more; the same bytes, and no more buffers than frames wait."""
    raw, out = tmp_path / "in_48x32.yuv", tmp_path / "out.264"
    rng = np.random.default_rng(2)
    base = rng.integers(0, 255, (1, 2304)) + 12 * np.arange(30)[:, None]
    raw.write_bytes((base % 256).astype(np.uint8).tobytes())
    words = ["encode", str(raw), str(out), "--preset", "ultrafast", "--bframes", "2", "--b-adapt", "1", "--threads", "4"]
    words += ["--quiet", *options]
    assert main([*words, "--device", "cpu"]) == 0
    expected, begun, buffers, begin, buffer = out.read_bytes(), [], [], Readers.begin, FrameRing.source_buffer
    monkeypatch.setattr(Readers, "begin", lambda self, *given: begun.append(given) or begin(self, *given))
    monkeypatch.setattr(FrameRing, "source_buffer", lambda self: buffers.append(self) or buffer(self))
    device_module.use_driver(EmulatedDriver())
    try:
        assert main([*words, "--device", "cuda", "--gops", "1"]) == 0
    finally:
        device_module.use_driver(None)
    assert out.read_bytes() == expected
    assert len(begun) == (5 if "--frames" in options else 30) and len(buffers) <= 29
