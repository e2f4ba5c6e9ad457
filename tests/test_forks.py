"""Forks: no lock of the process is left locked in a child, what the parent has begun stays its own, and nothing hangs."""

import gc
import hashlib
import importlib
import os
import re
import subprocess
import sys
import threading
import time
import traceback

import h264lite
import numpy as np
import pytest
from h264lite import forks, process
from h264lite.cuda_src.runtime import driver
from h264lite.encoder.errors import DeviceError, Error
from h264lite.encoder.files import output_mp4

from .cuda_emulator.fixtures import gpu  # noqa: F401
from .inside import in_use, waiting_file_of
from .support import round_trip
from .test_house import ROOT, SOURCES

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
LIMIT = 30  # seconds of a child
PICTURES = round_trip.noise_clip(48, 32, 12, 5)


def status_of_child(work):
    """Run a function in a fork; 0: it has returned something true, and the process has ended by itself."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 2)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    timer = threading.Timer(LIMIT, os.kill, (child, 9))
    timer.start()
    status = os.waitpid(child, 0)[1]
    timer.cancel()
    return status


def program(text):
    """Run a Python program in a process of its own, whose locks and modules do not matter to other tests."""
    place = f"import sys; sys.path[:] = {sys.path!r}\n"
    run = subprocess.run([sys.executable, "-c", place + text], capture_output=True, text=True, timeout=4 * LIMIT)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def encode():
    with h264lite.Encoder(48, 32, 25, device="cpu", threads=2) as encoder:
        packets = round_trip.packets_of(encoder, PICTURES)
    return b"".join(packet.data for packet in packets)


# ---- locks of the process
LOCKED = """
import importlib, os, threading, time
from operator import attrgetter
from h264lite import forks
locks = [attrgetter(name)(importlib.import_module(module)) for module, name in forks.LOCKS]
for lock in locks:
    taken, free = threading.Event(), []
    def hold():
        with lock:
            taken.set()
            time.sleep(0.1)
            free.append(True)
    threading.Thread(target=hold).start()
    taken.wait()
    child = os.fork()
    if not child:
        thread = threading.Thread(target=lambda: [lock.__enter__() for lock in locks], daemon=True)
        thread.start()
        thread.join(5)
        os._exit(2 if thread.is_alive() else 0)
    assert free, "the fork waited"
    assert not os.waitpid(child, 0)[1], "the locks are free in the child"
    for lock in locks:
        with lock:
            pass
print(len(locks))
"""


def test_a_fork_waits_for_the_locks_of_the_process():
    """Each of them, also those of Numba and llvmlite: one that has got another name would be found here."""
    assert int(program(LOCKED)) == len(forks.LOCKS) == 5


def test_all_locks_of_modules_are_known():
    """A lock of a module is one of the process, and must be in the list."""
    with_locks = {name for name in SOURCES if re.search(r"^\w+ = .*(Lock|Condition|Event|Semaphore|Executor)\(",
                                                  (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)}  # fmt: skip
    known = {module.removeprefix("h264lite.") for module, _ in forks.LOCKS if module.startswith("h264lite")}
    assert with_locks == {f"{module.replace('.', '/')}.py" for module in known}


LOADING = """
import os, signal, threading, time
import h264lite, numpy as np
from h264lite.jit import numba_free, kernel
held, over = threading.Event(), threading.Event()
def load():
    with {lock}:
        held.set()
        time.sleep(0.3)
threading.Thread(target=load).start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(60)
    with h264lite.Encoder(48, 32, device="cpu", preset="ultrafast", threads=1) as encoder:
        packets = [p for n in range(3) for p in encoder.encode(np.full((48, 48), 80 * n, np.uint8))] + encoder.flush()
    os._exit(len(packets) != 3)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("lock", ("numba_free._lock", "kernel._making"))
def test_children_of_a_process_that_loads_kernels_encode(lock):
    program(LOADING.format(lock=lock))


def test_a_fork_waits_for_imports_of_other_threads(tmp_path, monkeypatch):
    """CPython leaves the lock of a module that another thread imports locked in the child."""
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(forks, "_PACKAGES", (*forks._PACKAGES, "slow_module"))
    thread = threading.Thread(target=importlib.import_module, args=("slow_module",))
    thread.start()
    time.sleep(0.1)
    assert status_of_child(lambda: importlib.import_module("slow_module")) == 0
    thread.join()
    del sys.modules["slow_module"]


def test_a_child_computes_a_property_that_a_thread_of_the_parent_was_computing():
    """functools.cached_property of Python 3.11 has one lock for all objects."""
    begun, over = threading.Event(), threading.Event()

    class Thing:
        @process.cached_property
        def value(self):
            begun.set()
            over.wait(LIMIT)
            return [1]

    first, second = Thing(), Thing()
    thread = threading.Thread(target=lambda: first.value)
    thread.start()
    begun.wait()
    assert status_of_child(lambda: over.set() or second.value) == 0
    over.set()
    thread.join()
    assert first.value is first.value and second.value is not first.value
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in SOURCES]
    assert sum("process import cached_property" in text for text in texts) > 3
    assert not any(re.search("from functools import .*cached_property", text) for text in texts)


# ---- what the parent has begun
def test_a_child_finishes_no_file_of_its_parent(tmp_path):
    """By none of the ways in which a file is finished otherwise; the parent writes on."""
    streams = set()
    for way in ("none", "drop", "close", "with", "write", "exit"):
        target = tmp_path / f"{way}.mp4"
        writer = h264lite.VideoWriter(target, fps=2, device="cpu", preset="ultrafast", tune="zerolatency")
        for planes in PICTURES[:6]:
            writer.write(planes)
        writers, size = [writer], target.stat().st_size
        assert size

        def in_child(way=way, writers=writers, target=target, size=size):
            writer = writers[0]
            if way == "drop":
                writers.clear()
                del writer
                gc.collect()
            elif way == "close":
                writer.close()
                writer.close()
            elif way == "with":
                with writer:
                    pass
            elif way == "write":
                for call in (writer.write, writer.write_all):
                    with pytest.raises(Error, match=f"process {os.getppid()} began the file"):
                        call(PICTURES[6])
            elif way == "exit":
                with pytest.raises(SystemExit), writer:
                    sys.exit()
            return target.stat().st_size == size

        assert status_of_child(in_child) == 0, way
        for planes in PICTURES[6:]:
            writer.write(planes)
        writer.close()
        streams.add(hashlib.sha256(target.read_bytes()).hexdigest())
    assert len(streams) == 1


def test_a_writer_without_frames_is_the_childs_own(tmp_path):
    writer = h264lite.VideoWriter(tmp_path / "a.mp4", device="cpu", threads=1)

    def write():
        writer.write_all(PICTURES)
        writer.close()
        return True

    assert status_of_child(write) == 0 and (tmp_path / "a.mp4").stat().st_size > 1000


def test_samples_that_wait_in_a_file_are_written_once(monkeypatch):
    """An MP4 for an object with `write` waits in a temporary file, whose buffer a child would write at its end."""
    monkeypatch.setattr(output_mp4, "IN_MEMORY", 100)

    class Target:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += bytes(data)

    def write(forks_at):
        target = Target()
        writer = h264lite.VideoWriter(target, fps=2, device="cpu", preset="ultrafast", tune="zerolatency", qp=40)
        for n, planes in enumerate(PICTURES):
            writer.write(planes)
            if n == forks_at:
                file = waiting_file_of(writer)
                assert status_of_child(lambda file=file: (file.close(), True)) == 0
        writer.close()
        return target.data

    assert write(9) == write(-1)


def test_a_decoder_after_a_fork():
    """One that was idle is a decoder of both; one that another thread was using says so, and does not hang."""
    stream = encode()
    expected = [frame.y.tobytes() for frame in h264lite.Decoder().decode(stream)]
    decoder = h264lite.Decoder()
    frames = list(decoder.decode(stream[: len(stream) // 2]))

    def rest():
        more = [*decoder.decode(stream[len(stream) // 2 :]), *decoder.flush()]
        return [frame.y.tobytes() for frame in frames + more][: len(expected)] == expected

    assert status_of_child(rest) == 0 and rest()

    def refused():
        for call in (lambda: decoder.decode(stream), decoder.flush):
            with pytest.raises(RuntimeError, match="at work in another thread of process"):
                call()
        return True

    with decoder._lock:
        thread_status = []
        thread = threading.Thread(target=lambda: thread_status.append(status_of_child(refused)))
        thread.start()
        thread.join()
    assert thread_status == [0]
    assert len([*decoder.decode(stream), *decoder.flush()]) == len(PICTURES), "the parent's goes on"


def test_an_encoder_that_another_thread_feeds_is_refused_by_its_process():
    with h264lite.Encoder(48, 32, 25, device="cpu", threads=1) as encoder:
        def refused():
            with pytest.raises(Error, match="make one in each process"):
                encoder.encode(PICTURES[0])
            return True

        with in_use(encoder):  # by a thread of the parent, at the fork
            assert status_of_child(refused) == 0


# ---- GPUs
def test_a_gpu_that_the_parent_has_used_is_refused_by_name(gpu, monkeypatch):  # noqa: F811
    """CUDA does not work in a fork; `auto` takes the CPU, and drops of the parent's GPU make no driver call."""
    monkeypatch.setattr(driver, "_begun_by", 0)
    parents = h264lite.Encoder(48, 32, 25, device="cuda", threads=1)
    parents.encode(PICTURES[0])
    kept = [parents]

    def in_child():
        with pytest.raises(DeviceError, match=f"process {os.getppid()} has used the GPU.* spawn"):
            h264lite.Encoder(48, 32, 25, device="cuda")
        with h264lite.Encoder(640, 480, 25, device="auto", threads=1) as encoder:
            assert encoder.config.machine.device == "cpu" and "spawn" in encoder.config.machine.device_reason
        before = None if gpu is None else len(gpu.allocations)
        kept.clear()
        gc.collect()
        return gpu is None or len(gpu.allocations) == before

    del parents
    assert status_of_child(in_child) == 0
    assert len([*kept[0].encode(PICTURES[1]), *kept[0].flush()]) >= 1
    kept[0].close()


FOLDER = """
import os
from h264lite.cuda_src.runtime import compiler
folder = compiler._make_own_folder()
child = os.fork()
if not child:
    sys.exit()
assert not os.waitpid(child, 0)[1] and folder.is_dir()
print(folder)
"""


def test_the_folder_of_cuda_modules_is_left_to_its_process():
    folder = program(FOLDER).strip()
    assert not os.path.exists(folder), "it removes it"


# ---- as programs fork
POOL = """
import multiprocessing as mp, numpy as np, h264lite
def child(number):
    picture = np.full((48, 64, 3), 9 * number, np.uint8)
    return len(h264lite.write_video(None, [picture] * 4, device="cpu", threads=2))
context = mp.get_context("fork")
writer = h264lite.VideoWriter(None, device="cpu", threads=2)
for number in range(5):
    writer.write(np.full((48, 64, 3), number, np.uint8))
with context.Pool(2) as pool:
    assert min(pool.map_async(child, range(3)).get(60)) > 500
writer.close()
print(len(writer.getvalue()))
"""


def test_a_pool_of_forks_beside_a_writer():
    assert int(program(POOL)) > 500
    assert np.__version__
