"""Frames copied by threads while the GPU already has their launches: the upload waits until the copy is complete."""

import ctypes
import time
import types

import numpy as np
import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.cuda_src.runtime.driver_calls import (
    ARGUMENTS,
    CAN_USE_64_BIT_STREAM_MEM_OPS,
    STREAM_WAIT_VALUE_EQ,
    DriverCalls,
    replay_rows,
)
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.cuda_executor import CudaExecutor
from h264lite.scheduler.frames import frame as frame_module
from h264lite.scheduler.frames.loop import Loop
from h264lite.scheduler.threads.copiers import Copiers
from h264lite.scheduler.threads.copy_kernels import PENDING, READY
from h264lite.scheduler.trace import Trace

from ..cuda_emulator.driver import EmulatedDriver
from ..cuda_emulator.real import skip_without
from ..inside import copiers_of, executor_of, ring_of, take_gpu_for_any_size
from ..support import round_trip

SIZE = 66, 50


def start(size=SIZE, timed=False, **options):
    """timed: every stage of the GPU, and nothing is replayed."""
    config = Config.from_options(width=size[0], height=size[1], qp=27, **options, bframes=0)
    return Pipeline(config, trace=Trace(gpu=True) if timed else None)


def stream(clip, size=SIZE, **options):
    """Planes are spoilt as soon as the encoder has taken them."""
    pipeline, frames = start(size, **options), []
    for planes in clip:
        given = [plane.copy() for plane in planes]
        frames += pipeline.encode(tuple(given))
        for plane in given:
            plane[...] = 77
    frames += pipeline.flush()
    pipeline.close()
    return b"".join(frame.data for frame in frames)


class Waits:
    """What an emulated GPU does that really waits, in the thread that asked: (gate, value) of each; what happens then."""

    def __init__(self):
        self.upload_fences, self.then = [], lambda upload_fence: None

    def until_open(self, upload_fence, value):
        others = [before for before, _ in self.upload_fences if not at_one_address(before, upload_fence)]
        assert all(before[0] == READY for before in others), "of pictures that were taken"
        self.upload_fences.append((upload_fence, value))
        self.then(upload_fence)
        end = time.monotonic() + 30
        while upload_fence[0] != value:
            assert time.monotonic() < end, "helpers copy and open it, whatever the thread that asked is doing"
            time.sleep(0)


def at_one_address(a, b):
    return a.ctypes.data == b.ctypes.data


@pytest.fixture
def waits(monkeypatch):
    held_back, driver = Waits(), EmulatedDriver()
    driver.can_wait, driver.wait_value = True, held_back.until_open
    monkeypatch.setattr(frame_module, "LEAST_SHARED_BYTES", 0)
    device_module.use_driver(driver)
    yield held_back
    device_module.use_driver(None)


def test_a_picture_that_comes_late_is_waited_for(waits, monkeypatch):
    """Nothing is copied before the GPU has come to the gate: then it is shut, and what is uploaded is the whole frame."""
    clip, begin, end, held = round_trip.noise_clip(*SIZE, 9, 9), Copiers.begin, Copiers.end, []

    def later(copiers, target, sources, upload_fence):
        if upload_fence is copiers._own_fence:  # another thread that compiles kernels meanwhile
            return begin(copiers, target, sources, upload_fence)
        upload_fence[0] = PENDING
        return held.append((copiers, target, sources, upload_fence))

    def then(upload_fence):
        assert upload_fence[0] == PENDING and at_one_address(held[0][3], upload_fence) and len(held) == 1
        begin(*held.pop())

    def ended(copiers, upload_fence):
        assert not held or upload_fence is copiers._own_fence, "the GPU never came to the gate"
        end(copiers, upload_fence)

    wanted = stream(clip, device="cpu", threads=1)
    monkeypatch.setattr(Copiers, "begin", later)
    monkeypatch.setattr(Copiers, "end", ended)
    waits.then = then
    assert stream(clip, device="cuda", threads=3) == wanted and len(waits.upload_fences) == 9 and not held


def test_every_picture_that_threads_copy_is_waited_for(waits):
    clip = round_trip.noise_clip(*SIZE, 14, 3)
    wanted = stream(clip, device="cpu", threads=1)
    assert stream(clip, device="cuda", threads=1) == wanted and not waits.upload_fences, "no thread would open one"
    assert stream(clip, device="cuda", threads=3) == wanted
    assert len(waits.upload_fences) == 14 and all(value == READY for _, value in waits.upload_fences)
    assert len({upload_fence.ctypes.data for upload_fence, _ in waits.upload_fences}) > 3
    waits.upload_fences.clear()
    assert stream(clip, timed=True, device="cuda", threads=3) == wanted and len(waits.upload_fences) == 14


def test_pictures_that_are_there_do_not_wait(waits):
    """By turns with others, at the same places."""
    clip = round_trip.noise_clip(*SIZE, 14, 4)
    wanted = stream(clip, device="cpu", threads=1)
    pipeline, frames = start(device="cuda", threads=3), []
    for n, planes in enumerate(clip):
        if n // 2 % 2:
            frames += pipeline.encode(tuple(planes))
        else:
            pipeline.next_buffer()[...] = np.concatenate([plane.reshape(-1) for plane in planes])
            frames += pipeline.encode(pipeline.next_buffer())
    frames += pipeline.flush()
    pipeline.close()
    assert b"".join(frame.data for frame in frames) == wanted and len(waits.upload_fences) == 6


@pytest.mark.parametrize("error", (KeyboardInterrupt, device_module.GpuLost))
def test_whatever_fails_the_gate_opens(waits, monkeypatch, error):
    """Else the GPU would wait for ever, and the end of the encode with it."""
    clip = round_trip.noise_clip(*SIZE, 3, 5)
    pipeline = start(device="cuda", threads=3)
    run, pending_fence = Loop.run, []

    def fails(loop, frame):
        pending_fence.append(frame.pending_fence is not None)
        if len(pending_fence) == 2:
            raise error("now")
        return run(loop, frame)

    monkeypatch.setattr(Loop, "run", fails)
    pipeline.encode(tuple(clip[0]))
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else Exception, match="now"):
        pipeline.encode(tuple(clip[1]))
    assert pending_fence == [True, True] and all(frame.pending_fence is None for frame in ring_of(pipeline).frames)
    assert np.array_equal(ring_of(pipeline).frames[1].input_planes[0], clip[1][0])
    frame = ring_of(pipeline).frames[2]
    frame.load(*clip[2], copiers_of(pipeline))  # interrupted between this and the loop
    assert frame.pending_fence is frame.upload_fence
    executor, complete = executor_of(pipeline), []
    end = executor.close

    def close():
        ready = frame.pending_fence is None and frame.upload_fence[0] == READY
        complete.append(ready and np.array_equal(frame.input_planes[0], clip[2][0]))
        end()

    monkeypatch.setattr(executor, "close", close)
    pipeline.close()
    assert complete == [True]


def test_interrupted_before_the_loop_nobody_reads_what_the_caller_gave(waits, monkeypatch):
    """Any more: it may be freed then."""
    (planes,) = round_trip.noise_clip(*SIZE, 1, 5)
    pipeline, seen = start(device="cuda", threads=3), []

    def interrupted():
        seen.append(ring_of(pipeline).frames[0].pending_fence is not None)
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline.decider, "next", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pipeline.encode(tuple(planes))
    frame = ring_of(pipeline).frames[0]
    assert seen == [True] and frame.pending_fence is None and np.array_equal(frame.input_planes[0], planes[0])
    pipeline.close()


def test_a_place_that_is_loaded_twice_has_the_second_picture(waits):
    first, second = round_trip.noise_clip(*SIZE, 2, 6)
    pipeline = start(device="cuda", threads=3)
    frame = ring_of(pipeline).frames[0]
    for planes in (first, second):
        frame.load(*planes, copiers_of(pipeline))
    assert all(np.array_equal(a, b[: a.shape[0], : a.shape[1]]) for a, b in zip(second, frame.samples()))
    assert frame.pending_fence is None
    pipeline.close()


def test_an_interrupt_before_anything_is_copied_leaves_nothing_to_wait_for(waits, monkeypatch):
    (planes,) = round_trip.noise_clip(*SIZE, 1, 8)
    pipeline = start(device="cuda", threads=3)

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(copiers_of(pipeline), "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pipeline.encode(tuple(planes))
    pipeline.close()


def native_with(**functions):
    native = DriverCalls.__new__(DriverCalls)
    native.library, native._error = types.SimpleNamespace(**functions), RuntimeError
    native._address = {}
    return native


def test_the_driver_is_asked_whether_streams_can_wait():
    def answer(value, attribute, gpu):
        assert (attribute.value, gpu.value) == (CAN_USE_64_BIT_STREAM_MEM_OPS, 5)
        value._obj.value = able
        return code

    def current(gpu):
        gpu._obj.value = 5
        return 0

    native = native_with(cuDeviceGetAttribute=answer, cuCtxGetDevice=current)
    able, code = 1, 0
    assert not native.can_wait_for_value(), "an older driver has no such function"
    native._address["wait_value"] = 1
    assert native.can_wait_for_value()
    able = 0
    assert not native.can_wait_for_value()
    able, code = 1, 3
    assert not native.can_wait_for_value()


def test_what_the_driver_gets():
    """At once, and as a row."""
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint)
    def wait_value(*given):
        seen.append(given)
        return 0

    native = native_with(cuStreamWaitValue64_v2=wait_value)
    native._address["wait_value"], native._calls = ctypes.cast(wait_value, ctypes.c_void_p).value, {"wait_value": wait_value}
    word, queue = np.zeros(1, np.int64), types.SimpleNamespace(handle=1 << 40)
    given = queue.handle, word.ctypes.data, READY, STREAM_WAIT_VALUE_EQ
    native.do("wait_value", *given)
    row = native.call_record("wait_value", *given)
    assert len(row) == 1 + ARGUMENTS and replay_rows(np.array([row], np.int64)) == -1
    assert seen == [(1 << 40, word.ctypes.data, READY, STREAM_WAIT_VALUE_EQ)] * 2


@pytest.mark.gpu
@pytest.mark.parametrize(
    "options", ({}, {"keyint": 7, "ref": 2}, {"device": "auto"}, {"device": "hybrid"}, {"timed": True}), ids=str
)
def test_on_a_real_gpu(monkeypatch, options):
    """Frames that are copied long before the GPU comes to them, and such that are not; scripts noted, replayed, joined."""
    skip_without()
    waited, hold, options = [], device_module.Device.wait_value, {"device": "cuda", "threads": 4, **options}
    monkeypatch.setattr(device_module.Device, "wait_value", lambda *given: waited.append(hold(*given)))
    monkeypatch.setattr(frame_module, "LEAST_SHARED_BYTES", 0)
    take_gpu_for_any_size(monkeypatch.setattr)
    for size, frames in ((SIZE, 60), ((1280, 720), 24)):
        clip = round_trip.noise_clip(*size, frames, 7)
        wanted = stream(clip, size, **{**options, "device": "cpu", "timed": False})
        assert stream(clip, size, **options) == wanted
        noted = len(waited)
        assert noted or options["device"] == "hybrid"  # which may code by rows
        with monkeypatch.context() as without:
            without.setattr(CudaExecutor, "upload_fences", False)
            assert stream(clip, size, **options) == wanted and len(waited) == noted
