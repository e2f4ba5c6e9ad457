"""An exception at any place within a call, which the caller catches: what follows decodes, or is refused; nothing hangs."""

import gc
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import h264lite
import numpy as np
import pytest
from h264lite.encoder.errors import Error

from ..cuda_emulator.driver import in_library
from ..cuda_emulator.fixtures import driver  # noqa: F401
from ..inside import executor_of
from ..support import round_trip
from ..support.steady import steady

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised in a generator that ends

WIDTH, HEIGHT, FRAMES = 34, 18, 9
ROOT = Path(h264lite.__file__).resolve().parent
# Within a kernel no signal's handler runs; Numba's frames of kernels, which only profilers see, do not bear an exception.
KERNELS = ("cpu_simd", "jit", "decoder", "scheduler/threads/copy_kernels.py", "scheduler/threads/job_ring.py",
           "scheduler/threads/read_kernels.py", "cuda_src/runtime/driver_calls.py")  # fmt: skip
EMULATOR = "tests/cuda_emulator/driver.py"  # as C functions
NOT_HERE = (__file__, *(str(ROOT / name) for name in (*KERNELS, EMULATOR)))
LIMIT = 120  # seconds after which a case hangs
ERRORS = (KeyboardInterrupt, TimeoutError, MemoryError)
CPU = (
    {"device": "cpu", "threads": 1}, {"device": "cpu", "threads": 1, "ref": 2, "keyint": 4},
    {"device": "cpu", "threads": 3, "ref": 2}, {"device": "cpu", "threads": 2, "gops": 2, "keyint": 3},
)  # fmt: skip
CUDA = (
    {"device": "cuda", "threads": 1, "ref": 2}, {"device": "cuda", "threads": 3}, {"device": "hybrid", "threads": 2},
    {"device": "cuda", "threads": 2, "gops": 2, "keyint": 3},
)  # fmt: skip


class Raise:
    """Raises within this thread at the event of that number: a Python function begins or a C function ends, which is where
    CPython runs the handlers of signals. Not in a garbage collection: an exception there unsets the profile function, which
    Numba's dispatcher then calls although it is NULL (it allocates between its check and the call).
    """

    def __init__(self, at, error):
        self.at, self.error, self.events = at, error, 0

    def __call__(self, frame, event, _):
        if event in ("call", "c_return") and not in_library.now and not frame.f_code.co_filename.startswith(NOT_HERE):
            self.events += 1
            if self.events == self.at:
                raise self.error("here")

    def __enter__(self):
        gc.disable()
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        gc.enable()


def within_limit(work):
    """work() in a thread: what it returned or raised, or a failure where it hangs."""
    outcomes = []

    def run():
        try:
            outcomes.append((work(), None))
        except BaseException as error:
            outcomes.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert outcomes, "it hangs"
    value, error = outcomes[0]
    if error is not None:
        raise error
    return value


def encode(clip, at, error, options):
    """A caller who catches everything and goes on: packets, events, refusals."""
    packets, refusals = [], []
    encoder = h264lite.Encoder(WIDTH, HEIGHT, 30, keep_reconstruction=True, qp=24, **{"bframes": 0} | options)
    with Raise(at, error) as events:
        for planes in clip:
            try:
                packets += encoder.encode(tuple(planes))
            except ERRORS:
                pass
            except Error as refused:
                refusals.append(str(refused))
        for _ in range(2):
            try:
                packets += encoder.flush()
            except ERRORS:
                continue
    encoder.close()
    return packets, events.events, refusals


def check(clip, at, error, options):
    packets, _, refusals = within_limit(lambda: encode(clip, at, error, options))
    assert all("no frame can follow" in text for text in refusals), refusals
    assert [packet.pts for packet in packets] == list(range(len(packets)))
    stream, expected = b"".join(packet.data for packet in packets), [packet.reconstruction for packet in packets]
    if stream:
        round_trip.assert_same(round_trip.ffmpeg_frames(stream), expected, "FFmpeg")
        round_trip.assert_same(round_trip.own_frames(stream), expected, "own decoder")
    return len(packets), len(refusals)


def sweep(options, count, seed=1):
    clip = round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 3)
    within_limit(lambda: encode(clip, 0, MemoryError, options))  # kernels are loaded
    _, events, _ = within_limit(lambda: encode(clip, 0, MemoryError, options))
    places = random.Random(seed).sample(range(1, events), min(count, events - 1))
    outcomes = [check(clip, at, ERRORS[k % 3], options) for k, at in enumerate(places)]
    assert any(refusals for _, refusals in outcomes) and any(packets for packets, _ in outcomes)


@pytest.mark.parametrize("options", CPU, ids=str)
def test_on_the_cpu(options):
    sweep(options, 100)


@pytest.mark.parametrize("options", CUDA, ids=str)
def test_on_an_emulated_gpu(driver, options):  # noqa: F811
    sweep(options, 20)


class RaiseInPlanning(Raise):
    """Raises where Python's own threads and locks are used for a new plan."""

    def __call__(self, frame, event, _):
        if event == "c_return" and frame.f_code.co_filename == threading.__file__:
            callers = frame
            while callers is not None and callers.f_globals.get("__name__") != "h264lite.scheduler.hybrid.adaptation":
                callers = callers.f_back
            self.events += callers is not None
            if callers is not None and self.events == self.at:
                raise self.error("here")


def test_while_a_plan_is_begun(driver, monkeypatch):  # noqa: F811
    """A lock that the caller holds then would keep the planner's thread, for which close waits."""
    monkeypatch.setattr(f"{__name__}.Raise", RaiseInPlanning)
    clip, options = round_trip.noise_clip(WIDTH, HEIGHT, 3 * FRAMES, 3), {"device": "hybrid", "threads": 2}
    _, events, _ = within_limit(lambda: encode(clip, 0, MemoryError, options))
    assert events, "no plan was begun"
    for at in range(1, min(events, 9)):
        check(clip, at, KeyboardInterrupt, options)


@pytest.mark.slow
@pytest.mark.parametrize("options", (*CPU, *CUDA), ids=str)
def test_at_more_places(driver, options):  # noqa: F811
    sweep(options, 1500 if options["device"] == "cpu" else 150, seed=2)


def is_of_a_cut_start(error):
    """CPython's Thread.start takes a thread off its list when an exception comes just behind the start, and the thread,
    which does not find itself there, complains and ends."""
    return isinstance(error, KeyError) and isinstance(error.args[0], threading.Thread)


@pytest.mark.parametrize("options", ({"threads": 3, "bframes": 2}, {"threads": 2, "gops": 2, "keyint": 3}), ids=str)
def test_an_interrupted_constructor_leaves_nothing(options, monkeypatch):
    """Neither threads nor a complaint of Python about what is collected half made."""
    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: complaints.append(about.exc_value))

    def make(at):
        with Raise(at, TimeoutError) as events:
            h264lite.Encoder(WIDTH, HEIGHT, 30, device="cpu", **options).close()
        return events.events

    make(0)
    events, before, interrupted = make(0), set(threading.enumerate()), 0
    for at in random.Random(5).sample(range(1, events), min(120, events - 1)):
        try:
            make(at)
        except TimeoutError as error:
            interrupted += str(error) == "here"
    gc.collect()
    begin = time.monotonic()
    # CPython lists one whose start was interrupted for ever, and it is not alive
    while left := [thread for thread in set(threading.enumerate()) - before if thread.is_alive()]:
        assert time.monotonic() - begin < 20, left
        time.sleep(0.01)
    assert interrupted > 50
    assert not [error for error in complaints if str(error) != "here" and not is_of_a_cut_start(error)]


def test_objects_that_are_not_made_are_dropped(monkeypatch):
    """An interrupt in the first line of a constructor: the finalizer finds nothing to end."""
    from h264lite.encoder.gops.gops import Gops
    from h264lite.encoder.settings.config import Config
    from h264lite.encoder.workers import workers
    from h264lite.scheduler.threads.pool import WorkerPool
    from h264lite.scheduler.threads.readers import Readers

    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: complaints.append(about.exc_value))
    for kind in (WorkerPool, Readers, workers.Slots):
        unmade = kind.__new__(kind)
        del unmade
    gc.collect()
    assert not complaints

    def interrupted(*_):
        raise TimeoutError("here")

    config = Config.from_options(width=WIDTH, height=HEIGHT, devices="cpu,cpu")
    monkeypatch.setattr("h264lite.encoder.pipeline.Pipeline", interrupted)
    monkeypatch.setattr(workers, "Slots", interrupted)
    for kind in (Gops, workers.Workers):
        with pytest.raises(TimeoutError, match="here"):
            kind(config, 2)


def test_one_call_at_a_time():
    """A second thread is refused by name, and the first one's stream is whole."""
    clip = round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 3)
    inside, leave, refused = threading.Event(), threading.Event(), []
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cpu", threads=1, qp=26, bframes=0) as encoder:
        executor = executor_of(encoder)
        run = executor.run_compiled

        def slow(*given):
            inside.set()
            assert leave.wait(LIMIT)
            return run(*given)

        executor.run_compiled = slow
        packets = []
        feeder = threading.Thread(target=lambda: packets.extend(encoder.encode(tuple(clip[0]))))
        feeder.start()
        assert inside.wait(LIMIT)
        for call in (lambda: encoder.encode(tuple(clip[1])), encoder.flush):
            with pytest.raises(Error, match="one thread at a time") as caught:
                call()
            refused.append(caught.value)
        leave.set()
        feeder.join()
        for planes in clip[1:]:  # and another thread may go on when the first one is out
            packets += encoder.encode(tuple(planes))
        packets += encoder.flush()
    assert len(refused) == 2
    expected, _ = round_trip.encode(clip, WIDTH, HEIGHT, device="cpu", threads=1)
    assert b"".join(packet.data for packet in packets) == expected


@pytest.mark.parametrize("options", ({"threads": 2}, {"threads": 2, "gops": 2, "keyint": 2}), ids=str)
def test_a_forked_process_is_refused(options):
    """It has none of the threads: encode and flush say so, close() and the end of the process do not hang."""
    clip = round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 3)
    encoder = h264lite.Encoder(WIDTH, HEIGHT, 30, device="cpu", **steady(options))
    packets = encoder.encode(tuple(clip[0]))
    child = os.fork()
    if child == 0:
        said = []
        for call in (lambda: encoder.encode(tuple(clip[1])), encoder.flush, lambda: encoder.headers):
            try:
                call()
            except Error as error:
                said.append("process" in str(error))
        encoder.close()
        del encoder
        os._exit(said != [True] * 3)
    waiting = threading.Timer(LIMIT, os.kill, (child, 9))
    waiting.start()
    assert os.waitpid(child, 0)[1] == 0
    waiting.cancel()
    for planes in clip[1:]:
        packets += encoder.encode(tuple(planes))
    packets += encoder.flush()
    encoder.close()
    assert len(packets) == len(clip)


@pytest.mark.parametrize("end", ["flush", "close"])
def test_an_import_that_is_cut_stops_no_thread(end):
    """An interrupt can leave the caller with the interpreter's lock of imports, which a thread of the encoder then needs."""
    code = f"""
import _imp, sys, threading
import h264lite, numpy as np
encoder = h264lite.Encoder(64, 48, device="cpu", threads=2)
encoder.encode(np.zeros((72, 64), np.uint8))
_imp.acquire_lock()
thread = threading.Thread(target=lambda: __import__("colorsys"))
thread.start()
encoder.{end}()
thread.join(20)
sys.exit(thread.is_alive())
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=LIMIT).returncode == 0


def test_a_frame_that_cannot_be_read_changes_nothing():
    """What a frame's own conversion raises comes before the encoder has begun with it."""

    class Evil:
        def __array__(self, dtype=None, copy=None):
            raise MemoryError("none left")

    clip = round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 3)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cpu", threads=1, qp=26, bframes=0) as encoder:
        packets = encoder.encode(tuple(clip[0]))
        for _ in range(3):
            with pytest.raises(MemoryError):
                encoder.encode(Evil())
        for planes in clip[1:]:
            packets += encoder.encode(tuple(planes))
        packets += encoder.flush()
    expected, _ = round_trip.encode(clip, WIDTH, HEIGHT, device="cpu", threads=1)
    assert b"".join(packet.data for packet in packets) == expected and np.all([p.pts >= 0 for p in packets])
