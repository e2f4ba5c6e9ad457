"""No race with what the encoder does not own: arrays of other libraries, which are overwritten when a call has returned; and
none of streams with the options that order frames in other ways. See test_cuda_overlap.py.
"""

import h264lite
import numpy as np
import pytest
from h264lite.cuda_src.runtime.device import Device, DeviceArray
from h264lite.cuda_src.runtime.foreign import Foreign
from h264lite.scheduler.frames.gpu_sources import GpuSourcePool
from h264lite.scheduler.gpu_memory import GpuMemory
from h264lite.scheduler.lookahead import gpu_calls

from ..support import round_trip
from ..support.steady import steady
from .test_cuda_overlap import FIXED, encode, ledger, span  # noqa: F401

WIDTH, HEIGHT = 50, 34
SIDE = 4711
HELD = [
    {"bframes": 0, "weightp": 0},
    {"bframes": 2, "weightp": 0, **FIXED},
    {"bframes": 7, "b_pyramid": "dyadic", "ref": 3, **FIXED},
    {"bframes": 2, "b_adapt": 1, "weightp": 1, "aq_mode": 1, "crf": 24},
    {"bframes": 0, "bitrate": 300, "vbv_maxrate": 300, "vbv_bufsize": 150},
]


class Array:
    """Memory of another library, written on its stream."""

    def __init__(self, memory, stream):
        self.memory = memory
        self.__cuda_array_interface__ = memory.__cuda_array_interface__ | {"stream": stream}


@pytest.fixture
def noted(ledger, monkeypatch):  # noqa: F811
    """The ledger, with orders between streams of the encoder and of others, and what reads frames that wait."""
    after, before, half_size, sharpness = Foreign.after, Foreign.before, gpu_calls.half_size, gpu_calls.sharpness

    def noted_after(self, stream, other):
        ledger.merge(stream, ledger.clock(("foreign", other)))
        after(self, stream, other)

    def noted_before(self, stream, other):
        ledger.merge(("foreign", other), ledger.clock(stream))
        before(self, stream, other)

    def noted_half_size(luma, row0, row1, half, stream):
        assert isinstance(luma, DeviceArray)
        ledger.act(stream, "half_size", [span(luma)])
        half_size(luma, row0, row1, half, stream)

    def noted_sharpness(luma, width, height, total, stream):
        assert isinstance(luma, DeviceArray)
        ledger.act(stream, "sharpness", [span(luma)])
        sharpness(luma, width, height, total, stream)

    monkeypatch.setattr(Foreign, "after", noted_after)
    monkeypatch.setattr(Foreign, "before", noted_before)
    monkeypatch.setattr(gpu_calls, "half_size", noted_half_size)
    monkeypatch.setattr(gpu_calls, "sharpness", noted_sharpness)
    monkeypatch.setattr(gpu_calls.BatchCalls, "_keep", lambda *_: None)  # nothing is replayed: all is noted
    monkeypatch.setattr(gpu_calls.BatchCalls, "_placeholder", lambda self, number, array: array)
    return ledger


def encode_one_array(noted, stream, frames=7, **options):
    """One array on the GPU for all frames, each written by its owner as soon as the one before was taken."""
    clip = [np.concatenate([plane.ravel() for plane in frame]) for frame in round_trip.noise_clip(WIDTH, HEIGHT, frames, 1)]
    writer = ("foreign", SIDE if stream is None else stream)
    device = Device()
    with device:
        memory = device.upload(clip[0].reshape(-1, WIDTH))
    with h264lite.Encoder(WIDTH, HEIGHT, device="cuda", threads=2, **steady(options)) as encoder:
        for frame in clip:
            with device:
                noted.act(writer, "the owner's next frame", (), [span(memory)])
                memory.put(frame.reshape(memory.shape))
            if stream is None:  # an array without a stream is complete: the owner waits for what it writes
                noted.merge(noted.host(), noted.clock(writer))
            encoder.encode(Array(memory, stream))
        encoder.flush()
    device.close()


@pytest.mark.parametrize(("options", "stream"), [*((options, SIDE) for options in HELD), (HELD[1], 1), (HELD[0], 2),
                                                 (HELD[0], None), (HELD[1], None)], ids=str)  # fmt: skip
def test_an_array_is_written_again_at_once(noted, options, stream):
    encode_one_array(noted, stream, **options)
    assert len(noted.accesses) > 300
    assert not noted.races, sorted(set(noted.races))


@pytest.mark.parametrize("missing", ("begin_read", "end_read"))
@pytest.mark.parametrize("options", HELD[:2], ids=str)
def test_a_read_that_is_not_ordered_is_found(noted, monkeypatch, missing, options):
    whole = getattr(GpuMemory, missing)

    def careless(self, stream, source, *more):
        if source.buffered is not None:
            whole(self, stream, source, *more)

    monkeypatch.setattr(GpuMemory, missing, careless)
    encode_one_array(noted, SIDE, 4, **options)
    assert any("the owner's next frame" in race for race in noted.races)


def test_a_buffer_used_again_before_the_lookahead_has_read_it_is_found(noted, monkeypatch):
    seen, make, record = set(), GpuSourcePool._make, noted.record

    def noted_make(self):
        buffer = make(self)
        seen.add(buffer.seen)
        return buffer

    monkeypatch.setattr(GpuSourcePool, "_make", noted_make)
    monkeypatch.setattr(noted, "record", lambda event, stream: None if event in seen else record(event, stream))
    encode_one_array(noted, SIDE, 12, bframes=2, b_adapt=1, b_pyramid="none", subme=1)
    assert any("half_size" in race for race in noted.races)


slow = pytest.mark.slow


@pytest.mark.parametrize("options", [
    {"bframes": 7, "b_pyramid": "dyadic", "ref": 6, "subme": 1, **FIXED},
    *(pytest.param({"bframes": 7, "b_pyramid": "dyadic", "ref": ref, "subme": 1, **FIXED}, marks=slow) for ref in (3, 4, 5)),
    {"bframes": 3, "ref": 4, "weightp": 2, "profile": "main", "b_adapt": 1, "subme": 1},
    {"bframes": 3, "bitrate": 300, "vbv_maxrate": 300, "vbv_bufsize": 150, "subme": 1, **FIXED},
    pytest.param({"bframes": 2, "crf": 24, "aq_mode": 2, "scenecut": 40, "keyint": 6, "min_keyint": 1}, marks=slow),
    pytest.param({"bframes": 3, "bitrate": 300, "weightp": 1, "slices": 2, **FIXED}, marks=slow),
], ids=str)  # fmt: skip
def test_no_race(ledger, options):  # noqa: F811
    encode(10, **options)
    assert len(ledger.accesses) > 600
    assert not ledger.races, sorted(set(ledger.races))


def test_no_race_of_two_passes(ledger, tmp_path):  # noqa: F811
    options = {"bframes": 3, "bitrate": 300, "stats": str(tmp_path / "stats"), "subme": 1, **FIXED}
    for number in (1, 2):
        with h264lite.Encoder(WIDTH, HEIGHT, device="cuda", threads=2, pass_=number, **options) as encoder:
            for planes in round_trip.noise_clip(WIDTH, HEIGHT, 8, 1):
                encoder.encode(tuple(planes))
            encoder.flush()
    assert not ledger.races, sorted(set(ledger.races))
