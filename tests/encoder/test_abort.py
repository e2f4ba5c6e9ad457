"""VideoWriter.abort: no file, no segment, no thread is left, from any thread and in any state."""

import gc
import io
import itertools
import os
import signal
import threading
import time

import h264lite
import numpy as np
import pytest
from h264lite.encoder.errors import Error

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..support.waiting import wait_for

OPTIONS = {"device": "cpu", "preset": "ultrafast", "threads": 2}
CLIP = np.random.default_rng(1).integers(0, 256, (24, 64, 64, 3), np.uint8)
B_FRAMES = {**OPTIONS, "bframes": 3, "b_adapt": 1, "rc_lookahead": 10}


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No thread of the encoder, no open file."""
    others = {*threading.enumerate()}
    before = len(os.listdir("/proc/self/fd"))
    yield
    gc.collect()
    wait_for(lambda: not [t for t in threading.enumerate() if t not in others])
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("options", (
    OPTIONS, B_FRAMES, {**OPTIONS, "gops": 3, "keyint": 4}, {**OPTIONS, "fragment": 0.1, "keyint": 4},
), ids=("alike", "B frames", "GOPs", "fragments"))  # fmt: skip
@pytest.mark.parametrize("name", ("o.mp4", "o.264", "o.m3u8", "o.mpd", "o.mkv", "o.mov"))
def test_no_file_is_left(tmp_path, name, options):
    if name in ("o.mkv", "o.mov"):
        pytest.importorskip("av")
    if name != "o.mp4":
        options = {key: value for key, value in options.items() if key != "fragment"}
    if name in ("o.m3u8", "o.mpd"):
        options = {**options, "fragment": 0.1}
    (tmp_path / "other_00001.m4s").write_bytes(b"other")
    with h264lite.VideoWriter(tmp_path / name, 24, **options) as writer:
        for frame in CLIP:
            writer.write(frame)
        writer.flush()
        assert len(os.listdir(tmp_path)) > 1
        writer.abort()
        assert os.listdir(tmp_path) == ["other_00001.m4s"]
        for call in (lambda: writer.write(CLIP[0]), writer.flush, writer.getvalue):
            with pytest.raises(Error):
                call()
        writer.abort()
        writer.close()
    assert os.listdir(tmp_path) == ["other_00001.m4s"]


def test_files_that_were_there(tmp_path):
    """They stay until a frame is written, and links always."""
    path, link = tmp_path / "o.264", tmp_path / "link.264"
    path.write_bytes(b"before")
    link.symlink_to(path)
    writer = h264lite.VideoWriter(path, 24, **B_FRAMES)
    writer.write(CLIP[0])  # it waits
    writer.abort()
    assert path.read_bytes() == b"before"
    writer = h264lite.VideoWriter(link, 24, **OPTIONS)
    writer.write(CLIP)
    writer.flush()
    writer.abort()
    assert not path.exists() and link.is_symlink()


def test_a_file_of_another_that_has_taken_the_name_stays(tmp_path):
    path = tmp_path / "o.264"
    writer = h264lite.VideoWriter(path, 24, **OPTIONS)
    writer.write(CLIP)
    os.unlink(path)
    path.write_bytes(b"other")
    writer.abort()
    assert path.read_bytes() == b"other"


def test_before_the_first_frame_and_after_the_last(tmp_path):
    path = tmp_path / "o.mp4"
    writer = h264lite.VideoWriter(path, 24, **OPTIONS)
    writer.abort()
    with pytest.raises(Error, match="aborted"):
        writer.write(CLIP[0])
    writer = h264lite.VideoWriter(path, 24, **OPTIONS)
    writer.write(CLIP)
    writer.close()
    size = path.stat().st_size
    writer.abort()
    assert path.stat().st_size == size > 0


def test_after_an_exception(tmp_path):
    writer = h264lite.VideoWriter(tmp_path / "o.mp4", 24, **OPTIONS)
    with pytest.raises(ZeroDivisionError):
        writer.write_all(CLIP[k] if k < 20 else 1 / 0 for k in range(24))
    writer.abort()
    assert not os.listdir(tmp_path)
    with pytest.raises(KeyError), h264lite.VideoWriter(tmp_path / "o.mp4", 24, **OPTIONS) as writer:
        try:
            writer.write(CLIP)
            raise KeyError
        except KeyError:
            writer.abort()
            raise
    assert not os.listdir(tmp_path)


def test_objects_keep_what_they_have():
    target = io.BytesIO()
    writer = h264lite.VideoWriter(target, 24, fragment="chunk", tune="zerolatency", **OPTIONS)
    writer.write(CLIP)
    size = len(target.getvalue())
    writer.abort()
    assert len(target.getvalue()) == size > 0 and not target.closed
    target = io.BytesIO()
    writer = h264lite.VideoWriter(target, 24, **OPTIONS)
    writer.write(CLIP)
    writer.abort()
    assert not target.getvalue()


def in_thread(call):
    """Run it in a thread; the thread, and the list that gets its exception."""
    raised = []

    def run():
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


@pytest.mark.parametrize("options", (OPTIONS, B_FRAMES, {**OPTIONS, "gops": 3, "keyint": 4}), ids=("alike", "B", "GOPs"))
@pytest.mark.parametrize("at", range(6))
def test_while_another_thread_encodes(tmp_path, options, at):
    """At any place of it: the frames are large, and the encoder is behind."""
    frames = np.random.default_rng(1).integers(0, 256, (30, 240, 320, 3), np.uint8)
    writer = h264lite.VideoWriter(tmp_path / "o.mp4", 24, **options)
    thread, raised = in_thread(lambda: [writer.write(frame) for frame in itertools.cycle(frames)])
    wait_for(lambda: writer.frames > 5 * at)
    time.sleep(0.003 * at)
    begin = time.monotonic()
    writer.abort()
    assert not os.listdir(tmp_path) and writer._feeder.session.state == "closed"
    thread.join(20)
    assert not thread.is_alive() and time.monotonic() - begin < 10
    assert "aborted" in str(raised[0]) and not os.listdir(tmp_path)


def test_while_another_thread_closes(tmp_path):
    """The frames that wait, which `close` encodes, are left out."""
    frames = np.random.default_rng(1).integers(0, 256, (36, 480, 640, 3), np.uint8)
    writer = h264lite.VideoWriter(tmp_path / "o.mp4", 24, **{**OPTIONS, "preset": "medium"})
    writer.write(frames)
    assert not os.listdir(tmp_path)  # 40 frames wait
    thread, raised = in_thread(writer.close)
    wait_for(lambda: writer._feeder.session._call)
    writer.abort()
    thread.join(20)
    assert "aborted" in str(raised[0]) and not os.listdir(tmp_path)


def test_while_another_thread_waits_for_frames(tmp_path):
    """`abort` does not wait for them; the thread hears of it with the next one."""
    waits, goes_on = threading.Event(), threading.Event()

    def frames():
        yield from CLIP
        waits.set()
        goes_on.wait(60)
        yield CLIP[0]

    writer = h264lite.VideoWriter(tmp_path / "o.mp4", 24, **OPTIONS)
    thread, raised = in_thread(lambda: writer.write_all(frames()))
    waits.wait(60)
    writer.abort()
    assert not os.listdir(tmp_path) and thread.is_alive()
    goes_on.set()
    thread.join(20)
    assert "aborted" in str(raised[0]) and not os.listdir(tmp_path)


@pytest.mark.parametrize("kind", ("object", "pipe"))
def test_while_the_target_takes_nothing(tmp_path, kind):
    """The encoder is released at once."""
    blocked, goes_on = threading.Event(), threading.Event()

    class Target:
        def write(self, data):
            blocked.set()
            goes_on.wait(60)

    if kind == "pipe":
        os.mkfifo(tmp_path / "o.264")
        reader = os.open(tmp_path / "o.264", os.O_RDONLY | os.O_NONBLOCK)
        target = tmp_path / "o.264"
    else:
        target = Target()
    writer = h264lite.VideoWriter(target, 24, fragment=None if kind == "pipe" else 0.04, **{**OPTIONS, "keyint": 1, "qp": 10})
    thread, raised = in_thread(lambda: writer.write_all(frame for _ in range(20) for frame in CLIP))
    if kind == "pipe":
        wait_for(lambda: writer._is_in_sink)
        time.sleep(0.3)  # it is full soon
    else:
        blocked.wait(60)
    writer.abort()
    assert writer._feeder.session.state == "closed" and thread.is_alive()
    goes_on.set()
    if kind == "pipe":
        while thread.is_alive():
            try:
                os.read(reader, 1 << 16)
            except BlockingIOError:
                time.sleep(0.01)
        os.close(reader)
        assert os.listdir(tmp_path) == ["o.264"]
    thread.join(20)
    assert "aborted" in str(raised[0])


@pytest.mark.parametrize("at", range(8))
def test_in_a_handler_of_a_signal(tmp_path, at):
    """In the midst of a frame, or of a write: it takes effect when that ends."""
    writer = h264lite.VideoWriter(tmp_path / "o.264", 24, **OPTIONS)
    writer.write(CLIP)
    before = signal.signal(signal.SIGALRM, lambda *_: writer.abort())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.002 * at)
        with pytest.raises(Error, match="aborted"):
            while True:
                writer.write(CLIP)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("at", range(6))
def test_in_a_handler_while_another_thread_aborts(tmp_path, at):
    """Neither waits for the other."""
    frames = np.random.default_rng(1).integers(0, 256, (8, 480, 640, 3), np.uint8)
    writer = h264lite.VideoWriter(tmp_path / "o.264", 24, **OPTIONS)
    writer.write(frames)
    before = signal.signal(signal.SIGALRM, lambda *_: writer.abort())
    timer = threading.Timer(0.02 * at, writer.abort)
    timer.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005 + 0.02 * at)
        with pytest.raises(Error, match="aborted"):
            while True:
                writer.write(frames)
        timer.join(20)
        time.sleep(0.02)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not timer.is_alive() and not os.listdir(tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_removes_no_file_of_its_parent(tmp_path):
    with h264lite.VideoWriter(tmp_path / "o.264", 24, **{**OPTIONS, "threads": 1}) as writer:
        writer.write(CLIP)
        child = os.fork()
        if not child:
            writer.abort()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        writer.write(CLIP)
    assert (tmp_path / "o.264").stat().st_size


def test_a_gpu_is_released(tmp_path, driver):  # noqa: F811
    """From another thread than the one that encodes; a later encoder has the memory."""
    writer = h264lite.VideoWriter(tmp_path / "o.264", 24, device="cuda", qp=20, preset="ultrafast")
    thread, raised = in_thread(lambda: [writer.write(CLIP[k % 24, :32, :32]) for k in range(1000)])
    wait_for(lambda: writer.frames > 1 or raised)
    assert not raised
    writer.abort()
    thread.join(60)
    assert "aborted" in str(raised[0]) and not os.listdir(tmp_path)
    data = h264lite.encode(CLIP[:3, :32, :32], device="cuda", qp=20, preset="ultrafast")
    assert data == h264lite.encode(CLIP[:3, :32, :32], device="cpu", qp=20, preset="ultrafast")
    h264lite.release_gpu()


@pytest.mark.parametrize("form", (list, iter, np.asarray), ids=("list", "generator", "array"))
def test_progress_as_a_function(form):
    """Frames written, frames in all, bytes; in the caller's thread, also where frames wait for others."""
    calls, threads = [], set()

    def report(*values):
        calls.append(values)
        threads.add(threading.get_ident())

    for options in (OPTIONS, B_FRAMES):
        calls.clear()
        h264lite.write_video(io.BytesIO(), form(CLIP), 24, progress=report, **options)
        frames, totals, sizes = zip(*calls)
        assert [*frames] == sorted({*frames}) and frames[-1] == 24 and threads == {threading.get_ident()}
        assert {*totals} == {None if form is iter else 24}
        assert [*sizes] == sorted({*sizes}) and sizes[-1] == len(h264lite.encode(CLIP, 24, **options))


def test_an_exception_of_progress_ends_the_video(tmp_path):
    """As one of the frames does: the file plays, with the frames before."""
    def report(frames, total, size):
        if frames >= 10:
            raise KeyError("enough")

    with pytest.raises(KeyError):
        h264lite.write_video(tmp_path / "o.264", iter(CLIP), 24, progress=report, **OPTIONS)
    decoder = h264lite.Decoder()
    assert 10 <= len([*decoder.decode((tmp_path / "o.264").read_bytes()), *decoder.flush()]) < 24
    with pytest.raises(h264lite.OptionError, match="progress"):
        h264lite.write_video(None, CLIP, 24, progress="yes", **OPTIONS)


def test_progress_aborts(tmp_path):
    """The function may call `abort`."""
    writer = h264lite.VideoWriter(tmp_path / "o.264", 24, progress=lambda n, *_: n > 5 and writer.abort(), **OPTIONS)
    with pytest.raises(Error, match="aborted"):
        writer.write_all(iter(CLIP))
    assert not os.listdir(tmp_path)
