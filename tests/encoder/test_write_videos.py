"""write_videos: the bytes of write_video, in order, a few clips at a time; errors of clips; ends that leave nothing."""

import gc
import io
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import types
import weakref

import h264lite
import numpy as np
import pytest
from h264lite.encoder import clips as clips_module
from h264lite.encoder.errors import Error, InputError, OptionError
from h264lite.encoder.frames.producer import current_stream

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..support.waiting import wait_for

OPTIONS = {"device": "cpu", "preset": "ultrafast"}
NOISE = np.random.default_rng(1).integers(0, 256, (40, 32, 32, 3), np.uint8)


def clip(k, frames=3):
    return NOISE[k % 30 : k % 30 + frames]


def write(frames, fps=25):
    return h264lite.write_video(None, frames, fps, **OPTIONS)


def write_all(videos, targets=None, fps=25, **options):
    return h264lite.write_videos(targets, videos, fps, **{**OPTIONS, **options})


others = weakref.WeakSet()  # threads of other tests


def own_threads():
    """Those that the test has started."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("h264lite") and thread not in others]


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def pictures(path):
    decoder = h264lite.Decoder()
    return len([*decoder.decode(path.read_bytes()), *decoder.flush()])


@pytest.fixture(autouse=True)
def nothing_is_left():
    others.update(threading.enumerate())
    before = descriptors()
    yield
    gc.collect()
    assert not own_threads() and descriptors() <= before


@pytest.mark.parametrize("workers", (1, 3, None))
def test_results_are_those_of_single_clips_in_order(workers):
    """Of arrays and generators of all lengths: later clips are finished first."""
    frames = [clip(k, 12 if k % 4 == 0 else 1) for k in range(12)]
    expected = [write(one) for one in frames]
    forms = (one if k % 2 else iter(one) for k, one in enumerate(frames))
    results = list(write_all(forms, workers=workers))
    assert [result.data for result in results] == expected
    assert {(result.target, result.error) for result in results} == {(None, None)}
    assert [result.data for result in write_all(np.stack([clip(k) for k in range(4)]))] == [write(clip(k)) for k in range(4)]


def test_targets_and_rates(tmp_path):
    """Paths, file objects, None; a rate for each clip; names without an end."""
    memory = io.BytesIO()
    targets = [tmp_path / "a.mp4", memory, None, str(tmp_path / "b.264")]
    results = list(write_all(map(clip, range(4)), targets, (rate for rate in (24, "30000/1001", 50, 25))))
    assert [result.target for result in results] == targets and not any(result.error for result in results)
    assert targets[0].read_bytes() == write(clip(0), 24)
    assert memory.getvalue() == write(clip(1), "30000/1001") and results[2].data == write(clip(2), 50)
    assert (tmp_path / "b.264").read_bytes() == h264lite.encode(clip(3), 25, **OPTIONS)
    names = (tmp_path / f"{k}.mp4" for k in itertools.count())
    assert [result.target.name for result in write_all(map(clip, range(3)), names)] == ["0.mp4", "1.mp4", "2.mp4"]
    assert (tmp_path / "2.mp4").read_bytes() == write(clip(2))


def test_a_clip_that_fails_ends_no_other(tmp_path):
    def frames():
        yield from clip(1)
        raise LookupError("no more")

    videos = [clip(0), frames(), [], clip(2), np.zeros((3, 32, 32, 3), np.int64)]
    names = [tmp_path / f"{k}.264" for k in range(5)]
    results = list(write_all(iter(videos), names, workers=2))
    assert [type(result.error) for result in results] == [type(None), LookupError, InputError, type(None), InputError]
    assert results[1].error.__traceback__.tb_frame.f_code.co_name == "_encode"
    assert [path.exists() for path in names] == [True, True, False, True, False]
    assert pictures(names[1]) == 3
    assert names[3].read_bytes() == h264lite.encode(clip(2), 25, **OPTIONS)


def test_an_error_that_is_kept_keeps_no_frames():
    class Frames:
        def __init__(self, later):
            self.later = later

        def __iter__(self):
            yield from clip(0)
            try:
                raise KeyError("first")
            except KeyError:
                raise ValueError(self.later) from None

    frames = [Frames("a"), Frames("b")]
    kept = [weakref.ref(one) for one in frames]
    frames.reverse()
    errors = [result.error for result in write_all(frames.pop() for _ in range(2))]
    assert [str(error) for error in errors] == ["a", "b"] and [one() for one in kept] == [None, None]


@pytest.mark.parametrize("workers", (1, 2))
def test_clips_are_taken_when_there_is_room(workers):
    """No more than workers + 1 that are not finished; no more than 2 * workers that are not yielded."""
    taken, go_on = [], threading.Semaphore(0)

    def frames(k):
        go_on.acquire()
        yield clip(k)

    def videos():
        for k in range(12):
            taken.append(k)
            yield frames(k)

    results = write_all(videos(), workers=workers)
    time.sleep(0.05)
    assert not taken and not own_threads()
    most = []
    for done in range(12):
        threading.Timer(0.05, lambda: (most.append(len(taken)), go_on.release())).start()
        assert next(results).data == write(clip(done))
        assert len(taken) <= done + 2 * workers
    assert next(results, None) is None and taken == list(range(12))
    assert all(n <= done + workers + 1 for done, n in enumerate(most))


def test_the_first_clip_is_slow():
    """Later ones wait for their turn, as many as said."""
    taken = []

    def slow():
        wait_for(lambda: len(taken) == 6)
        time.sleep(0.05)
        yield clip(0)

    def videos():
        for k in range(20):
            taken.append(k)
            yield clip(k) if k else slow()

    results = write_all(videos(), workers=3)
    assert next(results).data == write(clip(0)) and len(taken) == 6
    assert [result.data for result in results] == [write(clip(k)) for k in range(1, 20)]


def test_an_exception_of_the_videos_comes_in_its_place():
    def videos():
        yield clip(0)
        yield clip(1)
        raise LookupError("no more")

    results = write_all(videos(), workers=4)
    assert [next(results).data, next(results).data] == [write(clip(0)), write(clip(1))]
    with pytest.raises(LookupError, match="no more"):
        next(results)
    results = write_all([clip(0), clip(1)], iter([None]))
    assert next(results).error is None
    with pytest.raises(InputError, match="more clips than targets"):
        next(results)


def endless():
    for k in itertools.count():
        yield NOISE[k % 40]
        time.sleep(0.005)


@pytest.mark.parametrize("leave", ("close", "drop", "cycle", "error"))
def test_who_leaves_ends_the_threads(tmp_path, leave):
    """Files of clips that are under way hold the frames before and play."""
    names = [tmp_path / f"{k}.264" for k in range(5)]
    results = write_all((clip(0) if k == 0 else endless() for k in range(5)), names, workers=3, tune="zerolatency")
    assert next(results).target == names[0]
    wait_for(lambda: names[1].exists() and names[1].stat().st_size)
    if leave == "close":
        results.close()
    elif leave == "error":
        with pytest.raises(LookupError):
            results.throw(LookupError)
    elif leave == "cycle":
        cycle = [results]
        cycle.append(cycle)
        del cycle, results
        gc.collect()
    else:
        del results
    assert not own_threads()
    assert [path.exists() for path in names][:2] == [True, True] and not names[4].exists()
    assert all(pictures(path) for path in names if path.exists())


def test_one_that_is_dropped_in_its_own_thread_does_not_wait_for_it():
    """As by a collection of garbage there, before its caller has taken a result."""
    kept, is_asked = [], threading.Event()

    def frames():
        is_asked.wait()
        kept.clear()
        yield clip(0)

    kept.append(write_all([clip(1), frames(), frames()], workers=1))
    assert next(kept[0]).data == write(clip(1))
    is_asked.set()
    wait_for(lambda: not kept and not own_threads())


@pytest.mark.parametrize("where", ("wait", "videos"))
def test_an_interrupt_ends_all(where, tmp_path):
    path = tmp_path / "a.264"

    def is_begun():
        return path.exists() and path.stat().st_size

    def strike():
        wait_for(is_begun)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def videos():
        yield endless()
        if where == "videos":
            wait_for(is_begun)
            raise KeyboardInterrupt

    results = write_all(videos(), [path], workers=2, tune="zerolatency")
    if where == "wait":
        threading.Thread(target=strike).start()
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert not own_threads() and pictures(path) and next(results, None) is None


def test_an_exit_in_a_clip_ends_all():
    def frames():
        yield clip(0)
        raise SystemExit(3)

    results = write_all([clip(0), frames(), clip(1)])
    assert next(results).error is None
    with pytest.raises(SystemExit):
        next(results)


def test_a_program_that_ends_finishes_its_files(tmp_path):
    code = ("import h264lite, itertools, numpy as np, time\n"
            "def frames():\n"
            "    for counts[0] in itertools.count():\n"
            "        yield np.full((32, 32, 3), counts[0] % 256, np.uint8)\n"
            "        time.sleep(0.002)\n"
            "counts = [0]\n"
            "some = np.zeros((2, 32, 32, 3), np.uint8)\n"
            "results = h264lite.write_videos(['a.264', 'b.264'], [some, frames()], workers=2, device='cpu', bframes=3)\n"
            "next(results)\n"
            "while counts[0] < 20:\n"
            "    time.sleep(0.01)\n")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr, pictures(tmp_path / "a.264")) == (0, "", 2) and pictures(tmp_path / "b.264") > 2


def test_a_fork_is_refused():
    results = write_all([clip(k) for k in range(8)], workers=2)
    next(results)
    child = os.fork()
    if not child:
        try:
            next(results)
        except Error as error:
            os._exit(0 if "its fork" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert sum(result.error is None for result in results) == 7


def test_many_small_clips(tmp_path):
    before = descriptors()
    results = write_all((clip(k, 2) for k in range(200)), (tmp_path / f"{k}.mp4" for k in range(200)), workers=4)
    for k, result in enumerate(results):
        assert result.error is None and result.target.name == f"{k}.mp4"
        assert len([name for name in own_threads() if "clip" in name]) <= 4
    assert not own_threads() and descriptors() <= before and len(list(tmp_path.iterdir())) == 200
    assert (tmp_path / "150.mp4").read_bytes() == write(clip(150, 2))


def test_a_system_without_threads(monkeypatch):
    monkeypatch.setattr(clips_module, "start_threads", lambda threads, running: False)
    assert [result.data for result in write_all(map(clip, range(3)))] == [write(clip(k)) for k in range(3)]


@pytest.mark.parametrize(("workers", "options", "threads"), (
    (None, {}, 1), (2, {}, 3), (5, {}, 1), (12, {}, 1), (2, {"threads": 4}, 4), (1, {}, 6), (2, {"threads": 0}, 3),
    (2, {"device": "cuda"}, 0), (2, {"device": "auto"}, 3), (2, {"devices": "cuda:1", "device": None}, 0),
))  # fmt: skip
def test_encoders_share_the_cores(monkeypatch, workers, options, threads):
    monkeypatch.setattr(clips_module, "cores", lambda: 6)
    asked = []
    monkeypatch.setattr(clips_module._Writer, "__init__", lambda self, *_, **given: asked.append(given["threads"]))
    list(write_all([clip(0)], workers=workers, **options))
    assert asked == [threads]


@pytest.mark.parametrize(("device", "gpu", "workers"), (
    ("auto", True, 1), ("cuda", True, 1), ("cpu", True, 8), ("auto", False, 8), ("hybrid", False, 8),
))  # fmt: skip
def test_clips_at_once(monkeypatch, device, gpu, workers):
    monkeypatch.setattr(clips_module, "cores", lambda: 16)
    monkeypatch.setattr(clips_module, "why_no_cuda", lambda: None if gpu else "none")
    assert clips_module._workers_for(device, ()) == workers
    assert clips_module._workers_for("auto", ("cpu", "cpu")) == 8
    assert clips_module._workers_for("auto", ("cuda:0", "cuda:1", "cuda:2")) == (3 if gpu else 8)


@pytest.mark.parametrize(("arguments", "said"), (
    ({"targets": "a.mp4"}, "targets"), ({"targets": io.BytesIO()}, "targets"), ({"videos": "a.mp4"}, "videos"),
    ({"videos": 3}, "videos"), ({"targets": ["a.mp4"]}, "2 videos, 1 targets"), ({"fps": [24, 25, 30]}, "2 videos, 3 fps"),
    ({"fps": 0}, "fps"), ({"workers": 0}, "workers 0"), ({"workers": 2.5}, "workers"), ({"crf": 99}, "crf"),
    ({"crff": 3}, "crff"), ({"layout": "HH"}, "layout"), ({"width": 8}, "width"), ({"pass_": 1}, "pass_ is for one video"),
    ({"audio": "a.wav"}, "audio is for one video"), ({"progress": True}, "progress True: not a function"),
))  # fmt: skip
def test_what_no_clip_can_have_is_refused_at_once(arguments, said):
    with pytest.raises(OptionError, match=said):
        h264lite.write_videos(**{"targets": None, "videos": [clip(0), clip(1)], **OPTIONS, **arguments})


@pytest.mark.parametrize("workers", (1, 3))
def test_progress_is_told_to_the_caller(workers):
    """Frames and bytes of all clips so far, in its thread; what it raises ends the batch."""
    calls, threads = [], set()

    def report(*values):
        calls.append(values)
        threads.add(threading.get_ident())

    expected = [h264lite.encode(clip(k, 4 + k), 25, **OPTIONS) for k in range(8)]
    assert all(r.data for r in write_all((clip(k, 4 + k) for k in range(8)), workers=workers, progress=report))
    frames, totals, sizes = zip(*calls)
    assert [*frames] == sorted({*frames}) and frames[-1] == sum(range(4, 12)) and threads == {threading.get_ident()}
    assert {*totals} <= {None, frames[-1]} and sizes[-1] == sum(map(len, expected))
    with pytest.raises(LookupError):
        list(write_all(map(clip, range(8)), workers=workers, progress=lambda *_: {}["none"]))


def test_the_stream_of_a_producer_is_that_of_the_callers_thread(monkeypatch):
    torch = types.SimpleNamespace(Tensor=type("Tensor", (), {"is_cuda": True, "device": 5}))
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: device + threading.get_ident())
    cupy = types.SimpleNamespace(ndarray=type("ndarray", (), {}))
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: "side")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    asked = []
    monkeypatch.setattr(clips_module._Writer, "write_all", lambda self, frames, stream: asked.append(stream))
    on_host = torch.Tensor()
    on_host.is_cuda = False
    list(write_all([torch.Tensor(), [(cupy.ndarray(),)], on_host, iter(()), clip(0)], workers=1))
    assert asked == [5 + threading.get_ident(), "side", None, None, None]
    assert current_stream([]) is None


@on_gpus
def test_clips_on_a_gpu(driver):  # noqa: F811
    videos = [clip(k, 2) for k in range(4)]
    results = list(write_all(videos, device="cuda", workers=3))
    assert [result.error for result in results] == [None] * 4
    assert [result.data for result in results] == [write(video) for video in videos]
    assert not driver.allocations
