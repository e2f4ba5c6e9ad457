"""Writers that are never closed, in every way in which a program may leave them; forked processes, which own none."""

import gc
import os
import subprocess
import sys

import h264lite
import numpy as np
import pytest

OPTIONS = {"device": "cpu", "preset": "ultrafast", "threads": 1}
FRAMES = 8
CLIP = np.random.default_rng(1).integers(0, 256, (FRAMES, 32, 32, 3), np.uint8)

LEAVES = """\
import sys, threading, h264lite, numpy as np
from h264lite.encoder.writer import VideoWriter
clip = np.random.default_rng(1).integers(0, 256, (8, 32, 32, 3), np.uint8)
def begin(name, **options):
    writer = VideoWriter(name, 24, device="cpu", preset="ultrafast", **options)
    for frame in clip:
        writer.write(frame)
    return writer
kept = [begin("a.mp4", threads=1), begin("b.264", threads=2, bframes=3, rc_lookahead=20, b_adapt=1)]
kept[0].itself = kept[0]
def later():
    threading.main_thread().join()
    kept.append(begin("c.mp4", threads=1))
threading.Thread(target=later).start()
sys.exit(7)
"""


def pictures(path):
    data = h264lite.Decoder() if path.suffix == ".264" else None
    if data is not None:
        return len([*data.decode(path.read_bytes()), *data.flush()])
    av = pytest.importorskip("av")
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


def begin(path):
    writer = h264lite.VideoWriter(path, 24, **OPTIONS)
    for frame in CLIP:
        writer.write(frame)
    return writer


@pytest.mark.filterwarnings("ignore:a VideoWriter was not closed")
def test_a_writer_that_is_collected_finishes_its_file(tmp_path):
    with h264lite.VideoWriter(tmp_path / "closed.mp4", 24, **OPTIONS) as writer:
        writer.write(CLIP)
    begin(tmp_path / "dropped.mp4")
    cycle = [begin(tmp_path / "cycle.mp4")]
    cycle.append(cycle)
    del cycle
    gc.collect()
    for name in ("dropped.mp4", "cycle.mp4"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "closed.mp4").read_bytes()


@pytest.mark.filterwarnings("ignore:a VideoWriter was not closed:ResourceWarning")
def test_what_a_collected_writer_cannot_finish_is_said(tmp_path):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

    writer = begin(Full())
    with pytest.warns(RuntimeWarning, match="not closed: the Full: no space left on device"):
        del writer


def test_a_program_that_ends_finishes_its_files(tmp_path):
    """At exit, and what another thread begins after the main thread has ended; before pools of threads take no more work."""
    done = subprocess.run([sys.executable, "-c", LEAVES], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (7, "")
    assert {name: pictures(tmp_path / name) for name in ("a.mp4", "b.264", "c.mp4")} == {"a.mp4": 8, "b.264": 8, "c.mp4": 8}


def test_a_forked_process_finishes_no_file_of_its_parent(tmp_path):
    path = tmp_path / "x.mp4"
    with begin(path) as writer:
        before = path.read_bytes() if path.exists() else b""
        for leave in (writer.close, writer.finish_unclosed, writer.__del__, lambda: writer.__exit__(SystemExit, None, None)):
            child = os.fork()
            if not child:
                try:
                    leave()
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            assert (path.read_bytes() if path.exists() else b"") == before
        writer.write(CLIP[0])
    assert pictures(path) == FRAMES + 1
