"""Threads that cannot be started: fewer, the same bytes, and none is left."""

import gc
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from h264lite import process as threads_module
from h264lite.cuda_src.runtime import context_warmup as waking
from h264lite.encoder.encoder import Encoder
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.writer import encode
from h264lite.process import start_threads
from h264lite.scheduler.hybrid.adaptation import Adaptation
from h264lite.scheduler.threads.copiers import Copiers, Target
from h264lite.scheduler.threads.pool import WorkerPool
from h264lite.scheduler.threads.watchdog import Watchdog

from ..inside import front_of, n_lanes
from ..support.waiting import wait_for

SIZE = 48, 64
FRAMES = [np.random.default_rng(k).integers(0, 256, (SIZE[0] * 3 // 2, SIZE[1]), np.uint8) for k in range(7)]


@pytest.fixture
def refuse(monkeypatch):
    """Lets so many threads run beside those that do, or starts those that a random generator lets."""
    start, here = threading.Thread.start, threading.active_count()

    def of(lets):
        def limited(thread):
            if not lets():
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", limited)

    def limit(count):
        of(lambda: threading.active_count() < here + count)

    limit.by_chance = lambda rng: of(lambda: rng.random() < 0.5)
    yield limit
    monkeypatch.setattr(threading.Thread, "start", start)
    gc.collect()
    wait_for(lambda: threading.active_count() <= here, 5)


def test_as_many_as_start(refuse):
    over = threading.Event()
    wanted, running = [threading.Thread(target=over.wait) for _ in range(5)], []
    refuse(3)
    assert not start_threads(wanted, running) and running == wanted[:3]
    refuse(9)
    assert start_threads(wanted[3:], running) and running == wanted
    over.set()
    for thread in running:
        thread.join()


@pytest.mark.parametrize("error", [OSError(12, "Cannot allocate memory"), MemoryError()])
def test_threads_leave_room_for_what_follows(monkeypatch, error):
    """Where addresses are short a thread that does start may hang before it tells so."""
    sizes = []

    def full(number, size, *_):
        sizes.append(size)
        raise error

    monkeypatch.setattr(threads_module.mmap, "mmap", full)
    assert not start_threads([threading.Thread(target=pytest.fail)], [])
    assert sizes == [threads_module.ROOM]


@pytest.mark.parametrize("limit", range(6))
def test_a_crew_of_fewer(refuse, limit):
    """Half of those that could be started, since others have to start as well."""
    refuse(limit)
    pool, done = WorkerPool(6), []
    assert len(pool._threads) == (5 if limit == 5 else limit // 2)
    pool.run([[lambda k=k: done.append(k) for k in range(20)]] * 2)
    assert sorted(done) == sorted([*range(20)] * 2)
    assert pool.result(pool.submit(pow, 3, 2)) == 9
    pool.close()


@pytest.mark.parametrize("options", [{"threads": 6}, {"threads": 4, "gops": 4, "keyint": 2},
                                     {"threads": 16, "gops": 3, "keyint": 1}])  # fmt: skip
def test_the_same_bytes_with_fewer_threads(refuse, options):
    expected = encode(FRAMES, format="i420", device="cpu", **options)
    for limit in (0, 1, 2, 3, 5, 9):
        refuse(limit)
        assert encode(FRAMES, format="i420", device="cpu", **options) == expected, limit
    rng = random.Random(5)
    for k in range(12):
        refuse.by_chance(rng)
        assert encode(FRAMES, format="i420", device="cpu", **options) == expected, k


def test_lanes_are_given_up_for_want_of_threads(refuse):
    """By halves, and what belonged to them is closed; one GOP at a time needs none."""
    for limit, lanes in ((9, 8), (8, 8), (7, 4), (3, 2), (1, 0), (0, 0)):
        refuse(limit)
        with Encoder(SIZE[1], SIZE[0], device="cpu", gops=8, keyint=1, threads=1, qp=26) as encoder:
            assert n_lanes(encoder) == lanes
            assert lanes or isinstance(front_of(encoder), Pipeline)


def test_helpers_that_do_not_start_are_done_without(refuse, monkeypatch):
    refuse(0)
    watchdog = Watchdog(10.0, pytest.fail)
    with watchdog.on("work"):
        pass
    watchdog.close()
    monkeypatch.setattr(waking.driver, "is_real", lambda: True)
    monkeypatch.setattr(waking.driver, "installed", lambda: ["pycuda"])
    waking.ContextWarmup([0]).close()
    copiers, source, target = Copiers(2), np.arange(64, dtype=np.uint8).reshape(8, 8), np.zeros((8, 8), np.uint8)
    copiers.copy(Target([target]), [source])
    copiers.close()
    assert np.array_equal(source, target)


def test_a_plan_is_made_where_it_is_wanted(refuse):
    """If no thread can make it beside frames."""
    from h264lite.scheduler.hybrid.plan import Plan
    from h264lite.scheduler.hybrid.tuning.models import guess

    planners = []

    def plan(models):
        planners.append(threading.current_thread())

    adaptation = Adaptation(Plan.split(("cpu", "cuda:0"), 8, 4, 0), guess(["cpu", "cuda:0"], 1), plan)
    refuse(0)
    adaptation._begin_plan()
    adaptation.wait_for_planner()
    assert planners == [threading.current_thread()] and adaptation._planning.is_done


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v counts addresses on Linux")
@pytest.mark.parametrize("options", [["--threads", "256"], ["--gops", "64"], ["--gops", "32", "--threads", "256"]])
def test_a_command_within_a_limit_of_memory(tmp_path, options):
    """Each thread takes addresses of a stack and of an allocator."""
    (tmp_path / "a_64x48.yuv").write_bytes(b"".join(frame.tobytes() for frame in FRAMES))
    command = [sys.executable, "-m", "h264lite", "encode", "a_64x48.yuv", "--device", "cpu", "--quiet", "--keyint", "1"]
    subprocess.run([*command, "whole.264"], check=True, cwd=tmp_path, timeout=300)
    limited = ["sh", "-c", 'ulimit -v 900000; exec "$@"', "sh", *command, "a.264", *options]
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.264").read_bytes() == (tmp_path / "whole.264").read_bytes()


@pytest.mark.skipif(not hasattr(os, "setuid") or os.geteuid() != 0, reason="only root can become another user")
def test_a_command_within_a_limit_of_processes():
    """As in a container. NumPy starts threads that are not needed, and ends the process if it cannot."""
    import resource

    def become_another():
        os.setgroups([])
        os.setgid(54321)
        os.setuid(54321)
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

    environment = os.environ | {"PYTHONPATH": str(Path(threads_module.__file__).parents[1]), "HOME": "/nonexistent"}
    expected = encode(FRAMES, format="i420", device="cpu", keyint=2)  # with it the kernels are compiled
    with tempfile.TemporaryDirectory() as folder:

        def run(*words):
            return subprocess.run([sys.executable, *words], cwd=folder, preexec_fn=become_another, env=environment,
                                  capture_output=True, text=True, timeout=300)  # fmt: skip

        Path(folder, "a_64x48.yuv").write_bytes(b"".join(frame.tobytes() for frame in FRAMES))
        os.chown(folder, 54321, 54321)
        try:
            probed = run("-c", "import llvmlite, h264lite; open('a_64x48.yuv')")
        except PermissionError as error:
            pytest.skip(f"another user may not run this Python: {error}")
        if probed.returncode:
            pytest.skip(f"another user may not run this Python: {probed.stderr[-200:]}")
        done = run("-m", "h264lite", "encode", "a_64x48.yuv", "a.264", "--device", "cpu", "--gops", "4", "--keyint", "2")
        assert done.returncode == 0 and "Traceback" not in done.stderr and "OpenBLAS" not in done.stderr
        assert Path(folder, "a.264").read_bytes() == expected


def test_numpys_threads_are_not_started():
    code = ("import os, sys; os.environ.pop('OPENBLAS_NUM_THREADS', None); sys.argv = ['h264lite', '--version']; "
            "import h264lite.__main__ as command; command.main(); print(os.environ['OPENBLAS_NUM_THREADS'])")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "1"


def test_threads_begin_when_kernels_can_be_loaded():
    """They would wait for ever for the lock of an import of the caller that an interrupt has cut (CPython)."""
    code = """
import sys, h264lite.scheduler.threads.pool as pool
from h264lite.jit.numba_version import numba_folder
def start(*_):
    print("numba" in sys.modules or ("llvmlite.binding" in sys.modules and numba_folder.cache_info().currsize == 1))
    return True
pool.start_threads = start
pool.WorkerPool(2)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr
