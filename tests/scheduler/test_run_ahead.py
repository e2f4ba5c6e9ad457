"""P frames run ahead of B frames on a GPU: what they wait for, the memory that this takes, where there is none, the bytes."""

import h264lite
import numpy as np
import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.reordering import ReorderingPipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.frames import run_ahead
from h264lite.scheduler.frames.run_ahead import MEMORY_DIVISOR, MOST_AHEAD, NONE, RunAhead, frame_bytes
from h264lite.scheduler.lookahead import gpu_costs

from ..cuda_emulator.driver import Allocation, EmulatedDriver, Function
from ..inside import changed, executor_of, frame_executor_of, pipeline_of
from ..support import round_trip
from .test_cuda_overlap import FIXED, encode, ledger  # noqa: F401

WIDTH, HEIGHT = 48, 32
GROUPS = {"bframes": 3, "subme": 1, "threads": 9, **FIXED}
ALONE = {  # nothing runs ahead: no B frames, one frame in flight, or no more than without
    "no B frames": {"bframes": 0},
    "no latency": {"tune": "zerolatency"},
    "a buffer": {"bframes": 2, "bitrate": 300, "vbv_maxrate": 300, "vbv_bufsize": 300},
    "a bit rate": {"bframes": 2, "bitrate": 300},
    "one stream": {"bframes": 2, "choices": {"streams": 1}},
    "B frames on the stream of P frames": {"bframes": 2, "choices": {"parallel_b_frames": 0}},
}
SAME = [
    {},
    {"bframes": 0},
    {"bframes": 3, "ref": 1},
    {"bframes": 3, "ref": 3, "rc_lookahead": 0},
    {"bframes": 16, "ref": 16, **FIXED},
    {"bframes": 3, "b_pyramid": "none", **FIXED},
    {"rc_lookahead": 40, "ref": 16},
    {"tune": "zerolatency"},
    {"bitrate": 200},
    {"bitrate": 200, "vbv_maxrate": 200, "vbv_bufsize": 100},
    {"keyint": 9, "gops": 2},
]


@pytest.fixture
def emulated():
    """Makes an emulated GPU with so much memory."""

    def make(memory=4 << 30):
        driver = EmulatedDriver(memory=memory)
        device_module.use_driver(driver)
        return driver

    yield make
    device_module.use_driver(None)


def make_pipeline(width=WIDTH, height=HEIGHT, choices=None, **options):
    config = Config.from_options(width=width, height=height, device="cuda", **{"threads": 4, **options})
    return (ReorderingPipeline if config.holds_frames else Pipeline)(changed(config, gpu_choices=choices))


def stream(frames, **options):
    """(bytes, frames that run ahead) of an encode on the GPU."""
    pipeline = make_pipeline(**options)
    coded = [one for planes in frames for one in pipeline.encode(tuple(planes))] + pipeline.flush()
    ahead = executor_of(pipeline).run_ahead
    pipeline.close()
    return b"".join(frame.data for frame in coded), ahead


def limited(monkeypatch, most):
    """At most so many frames run ahead."""
    monkeypatch.setattr(run_ahead, "MOST_AHEAD", most)


@pytest.mark.parametrize("most", (0, MOST_AHEAD))
def test_p_frames_wait_for_few_b_frames(ledger, monkeypatch, most):  # noqa: F811
    """How many of the B frames before a P frame may still run when it does: those of two groups, else not those of one."""
    limited(monkeypatch, most)
    act, counts, beside = ledger.act, {}, []  # counts: of the residuals of each stream, the main one first

    def noted(actor, what, *spans):
        act(actor, what, *spans)
        if what != "inter_residual":
            return
        counts.setdefault(actor, []).append(ledger.clocks[actor][actor])
        main, *others = counts
        if actor is main:
            clock = ledger.clocks[main]
            beside.append(sum(count > clock.get(other, 0) for other in others for count in counts[other]))

    monkeypatch.setattr(ledger, "act", noted)
    encode(33, **GROUPS)
    assert not ledger.races and len(beside) == 8
    assert all(of_groups >= 6 for of_groups in beside[4:]) if most else max(beside) < 6


def test_each_limit():
    e = 1000
    enough = MEMORY_DIVISOR * MOST_AHEAD * e
    assert RunAhead(20, e).frames(3, enough) == MOST_AHEAD
    assert RunAhead(20, e).frames(3, enough - 1) == MOST_AHEAD - 1
    assert RunAhead(20, e).frames(3, MEMORY_DIVISOR * e - 1) == 0
    assert [RunAhead(20, e, gops).frames(3, enough) for gops in (1, 2, 3, 4, 5)] == [6, 6, 3, 3, 2]
    assert [RunAhead(most, e).frames(3, enough) for most in (-1, 0, 3, 4, 8, 9, 10)] == [0, 0, 0, 1, 5, 6, 6]
    assert NONE.frames(3, enough) == 0


def test_the_memory_of_a_frame_is_what_it_takes(emulated, monkeypatch):
    """On the GPU, by what the driver has given."""
    most = []
    for ahead in range(4):
        limited(monkeypatch, ahead)
        driver = emulated()
        pipeline = make_pipeline(bframes=2)
        assert executor_of(pipeline).run_ahead == ahead
        assert len(executor_of(pipeline)._uploaded) == 6 + ahead
        most.append(driver.most)
        size = frame_bytes(pipeline_of(pipeline).config.coding)
        pipeline.close()
    differences = np.diff(most)
    assert (abs(differences - size) < 1024).all(), (differences, size)


@pytest.mark.parametrize("options", ALONE.values(), ids=ALONE)
def test_nothing_runs_ahead(emulated, monkeypatch, options):
    """Nor is memory taken for it."""
    driver = emulated()
    pipeline = make_pipeline(**options)
    executor, ring = executor_of(pipeline), frame_executor_of(pipeline).ring
    most, in_flight, frames = driver.most, ring.in_flight, len(ring.frames)
    assert executor.run_ahead == 0
    pipeline.close()
    limited(monkeypatch, 0)
    driver = emulated()
    pipeline = make_pipeline(**options)
    ring = frame_executor_of(pipeline).ring
    assert (driver.most, ring.in_flight, len(ring.frames)) == (most, in_flight, frames)
    pipeline.close()


def test_in_flight(emulated):
    emulated()
    for threads, expected in ((1, 10), (4, 13), (16, 13)):
        pipeline = make_pipeline(bframes=3, threads=threads)
        assert frame_executor_of(pipeline).ring.in_flight == expected
        assert executor_of(pipeline).frames_on_device == 12
        pipeline.close()


def test_what_fits_without_fits(emulated, monkeypatch):
    """In a GPU with just the memory that the encode takes without frames ahead, and with ever more, up to enough for all."""
    frames, options = round_trip.noise_clip(WIDTH, HEIGHT, 12, 3), {"bframes": 2, "qp": 26, "subme": 1}
    limited(monkeypatch, 0)
    driver = emulated()
    expected, _ = stream(frames, **options)
    needed = driver.most
    limited(monkeypatch, MOST_AHEAD)
    size = frame_bytes(Config.from_options(width=WIDTH, height=HEIGHT, device="cuda", **options).coding)
    seen = []
    for memory in (needed, *((n * MEMORY_DIVISOR + 1) * size for n in (1, 3, MOST_AHEAD))):
        driver = emulated(memory)
        given, ahead = stream(frames, **options)
        assert given == expected
        assert ahead * size - 1024 * ahead <= driver.most - needed <= ahead * size + 1024 * ahead
        seen.append(ahead)
    assert seen == [0, 1, 3, MOST_AHEAD]
    with pytest.raises(Exception, match="MiB left"):
        emulated(needed - 256)
        stream(frames, **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", ({"bframes": 16, "ref": 16, "preset": "veryslow"}, {"preset": "veryslow"}), ids=str)
def test_no_encode_takes_as_much_as_it_may_leave(emulated, monkeypatch, options):
    """Two encodes with all that waits, and sources that lie on the GPU: less than the memory from which a frame runs ahead.

    No kernel runs: what is allocated follows from the options.
    """
    width, height, n_frames = 640, 352, 300
    monkeypatch.setattr(Function, "launch", lambda *_: None)
    monkeypatch.setattr(Allocation, "check", lambda *_: None)
    monkeypatch.setattr(gpu_costs, "levels_between", lambda *_: np.zeros(256, np.uint8))  # of samples that were not counted
    driver, planes = emulated(), tuple(np.zeros((height >> k, width >> k), np.uint8) for k in (0, 1, 1))
    pipeline = make_pipeline(width, height, rc_lookahead=250, b_adapt=2, weightp=2, **options)
    size = frame_bytes(pipeline_of(pipeline).config.coding)
    loop = driver.most
    for _ in range(n_frames):
        pipeline.encode(planes)
    pipeline.flush()
    executor = executor_of(pipeline)
    assert executor.run_ahead == MOST_AHEAD
    one_more, sources = loop - MOST_AHEAD * size, (n_frames + 12) * 3 * width * height // 2
    assert driver.most + one_more + sources < MEMORY_DIVISOR * size, (driver.most / size, one_more / size, sources / size)
    pipeline.close()


@pytest.mark.parametrize("options", SAME, ids=str)
def test_the_bytes_of_the_cpu(emulated, options):
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 26, 5)
    emulated()
    options = {"threads": 4, "subme": 2, **({} if "bitrate" in options or not options else {"qp": 28}), **options}
    on_gpu, on_cpu = (h264lite.encode(clip, 30, device=device, **options) for device in ("cuda", "cpu"))
    assert on_gpu == on_cpu
