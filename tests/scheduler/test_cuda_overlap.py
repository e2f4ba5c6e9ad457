"""Streams, events and copies leave no race: every two accesses to the same memory, one of them writing, are ordered.

The emulated device does all work at once, so a missing wait changes nothing on it. Here every launch, copy, event and
wait of an encode is noted, and vector clocks tell what is ordered before what on a device that runs the streams freely.
"""

import ctypes
import threading
from dataclasses import replace

import numpy as np
import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.reordering import ReorderingPipeline
from h264lite.encoder.settings.config import Config
from h264lite.encoder.slice_writer import SliceWriter
from h264lite.scheduler import cuda_executor
from h264lite.scheduler.frames import frame_executor
from h264lite.scheduler.frames.dpb import DecodedPictureBuffer
from h264lite.scheduler.frames.frame import HostFrame
from h264lite.scheduler.frames.stream_schedule import NOTHING, StreamSchedule
from h264lite.scheduler.stages import STAGES, Stage

from ..cuda_emulator.driver import EmulatedDriver
from ..inside import changed
from ..support import round_trip
from ..support.steady import steady

MAIN_THREAD = "host"
BESIDE = {("ssd_u", "extend_cb"), ("ssd_v", "extend_cr")}  # one reads a plane inside of the border that the other writes
FIXED = {"b_adapt": 0, "no_scenecut": True}  # as many B frames as --bframes says


class Ledger:
    """Which actor is ordered after which. An actor is a stream or a thread of the host; a clock maps them to their counts."""

    def __init__(self):
        self.clocks, self.events, self.accesses, self.races, self.finished = {}, {}, [], [], {}
        self.lock = threading.RLock()
        self.writes = None  # the frame whose bits the main thread takes: as if another thread did
        self.waits = True  # the host's main thread for frames; False: as if it knew of none that is over

    def host(self):
        """The thread that asks; one that takes a frame's bits is of that frame alone."""
        if self.writes is not None:
            return f"bits of {self.writes}"
        thread = threading.current_thread()
        return MAIN_THREAD if thread is threading.main_thread() else thread.name

    def clock(self, actor):
        return self.clocks.setdefault(actor, {})

    def merge(self, actor, other):
        mine = self.clock(actor)
        for name, count in other.items():
            mine[name] = max(mine.get(name, 0), count)

    def act(self, actor, what, reads=(), writes=()):
        """One piece of work. What a stream is given comes after what the host did before."""
        with self.lock:
            if actor is None or not isinstance(actor, str):
                self.merge(actor, self.clock(self.host()))
            mine = self.clock(actor)
            mine[actor] = mine.get(actor, 0) + 1
            for spans, record_calls in ((reads, False), (writes, True)):
                for begin, end in spans:
                    for before in self.accesses:
                        if begin < before[1] and before[0] < end and (record_calls or before[2]):
                            if mine.get(before[3], 0) < before[4] and (what, before[5]) not in BESIDE:
                                self.races.append(f"{what} may run beside {before[5]}")
                    self.accesses.append((begin, end, record_calls, actor, mine[actor], what))

    def record(self, event, stream):
        with self.lock:
            self.merge(stream, self.clock(self.host()))
            self.events[event] = dict(self.clock(stream))

    def wait(self, actor, event):
        with self.lock:
            if not isinstance(actor, str):
                self.merge(actor, self.clock(self.host()))
            self.merge(actor, self.events[event])


def span(array):
    begin = array.ptr if isinstance(array, device_module.DeviceArray) else array.ctypes.data
    return begin, begin + array.nbytes


def contents(array):
    """Numbers of an emulated GPU, int32[n]."""
    return np.frombuffer((ctypes.c_int32 * array.size).from_address(array.ptr), np.int32).tolist()


@pytest.fixture
def ledger(monkeypatch):
    """Notes what happens on the emulated device."""
    events = Ledger()
    Array, Device = device_module.DeviceArray, device_module.Device
    launch, put, get, fill = Stage.launch, Array.put, Array.get, Array.fill
    record, wait, synchronize = Device.record, Device.wait, Device.synchronize
    load, access_unit, finish, finished = HostFrame.load, SliceWriter.access_unit, frame_executor._finish, Pipeline._finished

    def parts(state, name):
        """The array, or of the pools of references the slots of both lists."""
        if name not in ("ref_luma", "ref_chroma"):
            return [state[name]]
        slots = {slot for names in ("ref_slots", "searched_slots") for slot in contents(state[names])}
        return [state[name][slot] for slot in slots]

    def spans(state, names):
        given = [name for name in names if isinstance(state.get(name), Array)]
        return [span(part) for name in given for part in parts(state, name)]

    def noted_launch(self, state, part, stream):
        events.act(stream, self.name, spans(state, self.reads), spans(state, self.written))
        launch(self, state, part, stream)

    def noted_put(self, host, stream=None):
        if stream is not None:
            events.act(stream, "an upload", [span(host)], [span(self)])
        return put(self, host, stream)

    def noted_get(self, host=None, stream=None):
        if stream is not None:
            events.act(stream, "a download", [span(self)], [span(host)])
        return get(self, host, stream)

    def noted_fill(self, byte, stream=None):
        if stream is not None:
            events.act(stream, "a fill", (), [span(self)])
        return fill(self, byte, stream)

    def noted_record(self, event, stream=None):
        events.record(event, stream)
        return record(self, event, stream)

    def noted_wait(self, stream, event):
        events.wait(stream, event)
        wait(self, stream, event)

    def noted_synchronize(self, what=None):
        if what in events.events:
            events.wait(events.host(), what)
        synchronize(self, what)

    def noted_load(self, *planes):
        events.act(events.host(), "a new source", (), [span(self.source)])
        load(self, *planes)

    def noted_unit(self, frame):
        events.act(events.host(), "entropy coding", [span(frame.block), span(frame.source), span(frame.slice_data)])
        return access_unit(self, frame)

    def noted_finish(ready, frame, given):
        events.writes = frame.spec.display_index
        done = finish(ready, frame, given)
        events.finished[done.index] = dict(events.clock(events.host()))
        events.writes = None
        return done

    def noted_finished(self, limit):
        done = finished(self, limit)
        for frame in done if events.waits else ():
            events.merge(MAIN_THREAD, events.finished[frame.index])
        return done

    for owner, name, function in (
        (Stage, "launch", noted_launch), (Array, "put", noted_put), (Array, "get", noted_get), (Array, "fill", noted_fill),
        (Device, "record", noted_record), (Device, "wait", noted_wait), (Device, "synchronize", noted_synchronize),
        (HostFrame, "load", noted_load), (SliceWriter, "access_unit", noted_unit), (frame_executor, "_finish", noted_finish),
        (Pipeline, "_finished", noted_finished), (cuda_executor.Download, "is_done", lambda self: False),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, function)
    monkeypatch.setattr(cuda_executor.CudaExecutor, "records", False)  # nothing is replayed: all is noted
    device_module.use_driver(EmulatedDriver())
    yield events
    device_module.use_driver(None)


def encode(frames=9, keep=False, choices=None, **options):
    clip = round_trip.noise_clip(50, 34, frames, 1)
    config = Config.from_options(width=50, height=34, device="cuda", **steady({"threads": 2, **options}))
    pipeline = (ReorderingPipeline if config.holds_frames else Pipeline)(changed(config, gpu_choices=choices), keep)
    for planes in clip:
        pipeline.encode(tuple(planes))
    pipeline.flush()
    pipeline.close()


@pytest.mark.parametrize("options", ({}, {"keyint": 1}, {"ref": 3}, {"keyint": 3, "ref": 2}, {"subme": 0},
                                     {"keep": True}, {"keep": True, "keyint": 1}, {"keyint": 2},
                                     {"bframes": 1, "subme": 5}, {"bframes": 3, "keep": True, **FIXED},
                                     {"bframes": 2, "b_pyramid": "none", "keep": True, **FIXED}), ids=str)
def test_no_race(ledger, options):
    encode(**options)
    assert len(ledger.accesses) > 400
    assert not ledger.races, sorted(set(ledger.races))


@pytest.mark.half
@pytest.mark.parametrize("parallel_b_frames", (0, 1, 2, 3, 4))
@pytest.mark.parametrize("options", ({"bframes": 3}, {"bframes": 7, "b_pyramid": "dyadic"},
                                     {"bframes": 4, "b_pyramid": "none"}, {"bframes": 2, "keyint": 7, "weightp": 1},
                                     {"bframes": 1, "keep": True}), ids=str)
def test_no_race_beside_b_frames(ledger, options, parallel_b_frames):
    """However many frames are in flight."""
    encode(16, choices={"parallel_b_frames": parallel_b_frames}, **{**FIXED, "subme": 1, "threads": 9, **options})
    assert len(ledger.accesses) > 1000
    assert not ledger.races, sorted(set(ledger.races))


def test_b_frames_run_beside_others(ledger):
    """Their streams are not ordered after the next P frame, nor it after them: what a wait too many would prevent."""
    encode(14, choices={"parallel_b_frames": 2}, bframes=3, subme=1, threads=9, **FIXED)
    streams, seen = [], {}
    for _, _, _, stream, count, what in ledger.accesses:
        if what == "inter_residual" and (not streams or streams[-1] is not stream):
            streams.append(stream)
            seen[stream] = count
    assert len(set(streams)) == 3
    main = streams[0]
    for stream in set(streams) - {main}:
        assert ledger.clocks[main].get(stream, 0) < seen[stream], "the last P frame waits for no B frame before it"


def test_one_stream(ledger):
    encode(choices={"streams": 1})
    assert not ledger.races, sorted(set(ledger.races))


def test_a_b_frame_that_does_not_wait_for_its_references_is_found(ledger, monkeypatch):
    let_in = cuda_executor.CudaExecutor._start_when_uploaded

    def careless(self, number):
        main, end = self._main, self._ended["side", "interpolate"]
        self._ended["side", "interpolate"] = self._uploaded[number % self.frames_on_device]
        let_in(self, number)
        assert main == self._main
        self._ended["side", "interpolate"] = end

    monkeypatch.setattr(cuda_executor.CudaExecutor, "_start_when_uploaded", careless)
    encode(7, bframes=2, subme=1, **FIXED)
    assert any("extend_luma" in race for race in ledger.races)


def test_a_b_frame_that_does_not_wait_for_a_b_frame_is_found(ledger, monkeypatch):
    enter, options = StreamSchedule.enter, {"bframes": 3, "subme": 1, "threads": 9, **FIXED}
    encode(9, **options)
    assert not ledger.races
    monkeypatch.setattr(StreamSchedule, "enter", lambda self, *frame: (enter(self, *frame)[0], NOTHING))
    encode(9, **options)
    assert any("explicit_motion" in race and "keep_motion" in race for race in ledger.races), sorted(set(ledger.races))


@pytest.mark.parametrize("missing", ("coded", "downloaded"))
def test_a_slot_of_a_b_frame_overwritten_too_early_is_found(ledger, monkeypatch, missing):
    """By a P frame after the B frames that read it; by a B frame after one that is downloaded."""
    ledger.waits, enter = False, cuda_executor.CudaExecutor.enter
    options = {"bframes": 1, "subme": 1, "threads": 9, "ref": 1, **FIXED}
    encode(10, **options)
    assert not any("deblock" in race for race in ledger.races)
    monkeypatch.setattr(
        cuda_executor.CudaExecutor, "enter", lambda self, stream, waits: enter(self, stream, waits._replace(**{missing: ()}))
    )
    encode(10, **options)
    assert any("deblock" in race for race in ledger.races)


@pytest.mark.parametrize(
    ("stage", "weightp"), (("subpel_refine", 0), ("weight_reference", 2), ("mark_skipped", 2), ("extend_cb", 2))
)
def test_a_missing_wait_is_found(ledger, monkeypatch, stage, weightp):
    """Frames of noise get weights, whose stage waits for what the refinement waits for."""
    monkeypatch.setitem(STAGES, stage, replace(STAGES[stage], after=""))
    encode(5, weightp=weightp)
    assert any(stage in race for race in ledger.races)


@pytest.mark.parametrize("options", ({"keyint": 1}, {"keep": True, "keyint": 1}), ids=str)
def test_a_slot_used_again_at_once_is_found(ledger, monkeypatch, options):
    ledger.waits = False
    monkeypatch.setattr(DecodedPictureBuffer, "_free_slot", lambda *_: 0)
    encode(5, **options)
    assert any("deblock" in race for race in ledger.races)


@pytest.mark.parametrize("keep", (False, True))
def test_one_slot_less_for_b_frames_is_found(ledger, monkeypatch, keep):
    """With one stream, two frames that are no references in a row: the second one overwrites the first one."""
    ledger.waits, make = False, DecodedPictureBuffer.__init__
    monkeypatch.setattr(DecodedPictureBuffer, "__init__", lambda self, n_slots, busy: make(self, n_slots - 1, busy))
    encode(7, keep=keep, bframes=2, b_pyramid="none", choices={"parallel_b_frames": 0}, **FIXED)
    assert any("deblock" in race for race in ledger.races)


@pytest.mark.parametrize("options", ({}, {"keyint": 1}, {"keep": True}), ids=str)
def test_a_slot_used_again_too_early_is_found(ledger, monkeypatch, options):
    """A frame ordered after the last but two, and not after the last but one."""
    ledger.waits = False
    let_in = cuda_executor.CudaExecutor._start_when_uploaded

    def careless(self, number):
        events = self._downloaded
        self._downloaded = [events[2], *events[:2]]
        let_in(self, number)
        self._downloaded = events

    monkeypatch.setattr(cuda_executor.CudaExecutor, "_start_when_uploaded", careless)
    encode(7, **options)
    assert any("deblock" in race for race in ledger.races)


def test_a_source_overwritten_too_early_is_found(ledger, monkeypatch):
    monkeypatch.setattr(cuda_executor.CudaExecutor, "frames_on_device", 1)
    whole = cuda_executor.CudaExecutor.upload_frame

    def careless(self, number, *more):
        self._downloaded = [self.gpu.record(self.gpu.event(), self.streams["upload"])]
        whole(self, number, *more)

    monkeypatch.setattr(cuda_executor.CudaExecutor, "upload_frame", careless)
    encode(5)
    assert any("load_i420" in race for race in ledger.races)
