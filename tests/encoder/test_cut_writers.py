"""An exception of a signal's handler at each place where CPython runs handlers: no file, or one that plays; never a wrong one."""

import gc
import io
import sys
import threading
from functools import cache
from pathlib import Path

import h264lite
import pytest
from h264lite import VideoWriter, analyse
from h264lite.encoder.errors import OutputError
from h264lite.encoder.files.output import ByteSink
from h264lite.encoder.files.output_mp4 import Mp4Sink
from h264lite.files import WholeFile
from h264lite.mp4 import layouts
from h264lite.mp4.layouts import InPlace
from h264lite.uninterrupted import Uninterrupted, check_of_file

from .. import round_trip

WIDTH, HEIGHT, FRAMES, KEYINT = 34, 18, 6, 3
ROOT = str(Path(h264lite.__file__).resolve().parent)
HERE = tuple(f"{ROOT}/{name}" for name in ("files.py", "uninterrupted.py", "mp4/", "encoder/writer.py", "encoder/files/"))
RATE = 2  # frames/s: groups of MP4 have two frames


class Strike:
    """Raises an error in this thread at the event of that number: a Python function of the files begins or a C function ends."""

    def __init__(self, at, error=TimeoutError):
        self.at, self.error, self.events = at, error, 0

    def __call__(self, frame, event, _):
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(HERE) and self.may(frame):
            self.events += 1
            if self.events == self.at:
                raise self.error("here")

    @staticmethod
    def may(frame):
        """Not in the first line of __exit__, nor in a finalizer: no Python code can mend that."""
        return frame.f_code.co_name not in ("__exit__", "__del__")

    def __enter__(self):
        gc.disable()
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        gc.enable()


@cache
def packets():
    with h264lite.Encoder(WIDTH, HEIGHT, RATE, device="cpu", threads=1, keyint=KEYINT, qp=30, bframes=0) as encoder:
        made = [p for planes in round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 3) for p in encoder.encode(tuple(planes))]
        return made + encoder.flush()


def sinks(path):
    """(name, maker of a sink, its bytes so far)."""
    target = io.BytesIO()
    yield "file", lambda: Mp4Sink(path, fps=RATE), lambda: path.read_bytes() if path.exists() else b""
    yield "fragments", lambda: Mp4Sink(path, fps=RATE, fragment=1), lambda: path.read_bytes() if path.exists() else b""
    yield "object", lambda: Mp4Sink(target, fps=RATE), target.getvalue
    yield "byte stream", lambda: ByteSink(str(path)), lambda: path.read_bytes() if path.exists() else b""


def shown(data):
    """The number of frames; each one is that of the clip, from the first on."""
    units = b"".join(p.data for p in packets())
    frames = list(analyse(io.BytesIO(data)))
    assert len(data) < 3 * len(units) + 3000
    return len(frames)


@pytest.mark.parametrize("kind", range(4), ids=("file", "fragments", "object", "byte stream"))
def test_a_sink_that_is_cut_anywhere(tmp_path, kind):
    """Frames that are given before the cut are in the file in order, from the first on."""
    at, ends = 0, set()
    while True:
        at += 1
        path = tmp_path / f"{at}.mp4"
        _, make, contents = list(sinks(path))[kind]
        sink = None
        with Strike(at) as strike:
            try:
                sink = make()
                for p in packets():
                    sink.write_packet(p.data, p.pts, p.dts, p.is_keyframe)
                sink.close()
            except TimeoutError as error:
                assert str(error) == "here"
        if sink is not None:
            sink.close()
        else:
            assert not path.exists()
        data = contents()
        assert data or not path.exists()
        count = shown(data) if data else 0
        ends.add(count)
        if strike.events < at:
            break
    assert count == FRAMES and len(ends) > 2 and at > 40
