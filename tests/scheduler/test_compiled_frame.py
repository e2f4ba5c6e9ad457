"""Stages of a frame in compiled code: the same stream as by calls from Python, and arrays of each frame, not of the first."""

from types import SimpleNamespace

import numpy as np
import pytest
from h264lite.jit import address_calls
from h264lite.scheduler.compiled_frame import ArgumentGroups, CompiledFrame
from h264lite.scheduler.frames import compiled_frames
from h264lite.scheduler.stages import STAGES
from h264lite.scheduler.threads.pool import WorkerPool
from h264lite.scheduler.trace import Trace

from ..jit.test_address_calls import FAR_TOO_MUCH, allocate
from ..support import round_trip

WIDTH, HEIGHT = 66, 50
CLIP = round_trip.noise_clip(WIDTH, HEIGHT, 9, 5)
SIZES = {"pad": 0, "height": 32, "width": 32, "luma_unit": 16}


@pytest.mark.parametrize("threads", (1, 3))
@pytest.mark.parametrize("options", (
    {"preset": "ultrafast", "slices": 2}, {"preset": "superfast", "bframes": 2, "ref": 2}, {"preset": "medium", "crf": 24},
    {"profile": "baseline", "me": "step", "subme": 6}, {"preset": "slow", "weightp": 2, "b_pyramid": "normal"},
), ids=str)  # fmt: skip
def test_the_stream_is_the_same(monkeypatch, options, threads):
    ran = []
    run = CompiledFrame.run
    monkeypatch.setattr(CompiledFrame, "run", lambda self, *given: ran.append(1) or run(self, *given))
    stream, _ = round_trip.encode(CLIP, WIDTH, HEIGHT, device="cpu", threads=threads, **options)
    assert len(ran) == 2 * len(CLIP)  # the loop and the entropy stage of each frame
    monkeypatch.setattr(address_calls, "IS_POSSIBLE", False)
    expected, _ = round_trip.encode(CLIP, WIDTH, HEIGHT, device="cpu", threads=threads, **options)
    assert len(ran) == 2 * len(CLIP) and stream == expected


@pytest.mark.parametrize("threads", (1, 3))
def test_frames_with_arrays_that_were_forgotten(monkeypatch, threads):
    """The least number of bound frames: each one that is made takes the place of the one before."""
    options = {"device": "cpu", "threads": threads, "preset": "superfast", "bframes": 2, "ref": 2}
    expected, _ = round_trip.encode(CLIP, WIDTH, HEIGHT, **options)
    monkeypatch.setattr(compiled_frames, "MOST_BOUND", 1)
    assert round_trip.encode(CLIP, WIDTH, HEIGHT, **options)[0] == expected


def ssd_of(parts, chain=None, trace=None):
    """(squared error by a chain of one stage, the chain, seconds)."""
    out, seconds = parts[-1].state["ssd_y"], {}

    def steps(states):
        state = {name: value for more in states for name, value in more.items()}
        return [[[(STAGES["ssd_y"], (0, 2), state)]]]

    chain = chain or CompiledFrame(steps, parts)
    out[:] = 0
    chain.run(chain.words(parts), seconds, True, trace)
    return int(out.sum()), chain, seconds


def test_an_array_in_two_parts_of_the_first_frame_alone():
    one, other = np.full((32, 32), 7, np.uint8), np.full((32, 32), 10, np.uint8)
    kept, out = ArgumentGroups(), np.zeros(2, np.int64)

    def parts(source, decoded):
        source_group = ("source", id(source)), lambda: {"source_y": source}
        reference = ("decoded", id(decoded)), lambda: {"decoded_y": decoded}
        return kept.of([(("sizes",), lambda: SIZES), source_group, reference, (("out",), lambda: {"ssd_y": out})])

    nothing, chain, _ = ssd_of(parts(one, one))
    assert nothing == 0
    assert ssd_of(parts(one, other), chain)[0] == 9 * 32 * 32
    trace = Trace()
    ssd, _, seconds = ssd_of(parts(other, one), chain, trace)
    assert ssd == 9 * 32 * 32 and list(seconds) == ["ssd_y"] and 0 < seconds["ssd_y"] < 1
    (_, _, name, begin, spent, _), = trace.spans
    assert name == "ssd_y" and spent == pytest.approx(seconds["ssd_y"]) and begin >= trace.start


def failing_chain(out):
    """Two steps of three parts, of which the second part of the first step fails."""

    def stage(size):
        return SimpleNamespace(name=f"of {size}", cpu_function=allocate, around_span=lambda state: ([size, out], []))

    parts = [[(stage(size), (), {})] for size in (5, FAR_TOO_MUCH, 6)]
    return CompiledFrame(lambda states: [parts, parts[::2]], [])


def test_a_stage_that_fails():
    chain = failing_chain(np.zeros(1, np.int64))
    with pytest.raises(MemoryError, match=f"stage of {FAR_TOO_MUCH}"):
        chain.run(chain.words([]), {}, True, None)


def test_a_stage_that_fails_in_a_team():
    pool = WorkerPool(3)
    try:
        chain = failing_chain(np.zeros(1, np.int64))
        with pytest.raises(MemoryError, match="call 1 of a frame"):
            chain.run(chain.words([]), {}, True, None, pool.run_steps)
    finally:
        pool.close()
