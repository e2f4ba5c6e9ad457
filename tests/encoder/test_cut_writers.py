"""An exception of a signal's handler at each place where CPython runs handlers: no file, or one with the frames before it."""

import gc
import io
import os
import re
import sys
import threading
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import h264lite
import pytest
from h264lite import AudioPackets, VideoWriter
from h264lite.encoder.errors import Error, OutputError
from h264lite.encoder.files.output import ByteSink
from h264lite.encoder.files.output_mp4 import Mp4Sink
from h264lite.encoder.files.output_segments import SegmentSink
from h264lite.mp4.avc import to_sample
from h264lite.mp4.reader import Mp4Reader
from h264lite.mp4.sound_reader import open_sound
from h264lite.sound.silence import silence
from h264lite.uninterrupted import Uninterrupted

from ..mp4.test_mp4 import access_unit

ROOT = Path(h264lite.__file__).resolve().parent
PLACES = ("files.py", "uninterrupted.py", "mp4/", "encoder/writer.py", "encoder/files/")
HERE = (threading.__file__, *(str(ROOT / name) + "/" * name.endswith("/") for name in PLACES))
# In the first line of __exit__, and in a finalizer, no Python code can mend it.
NOT_HERE = ("__exit__", "__del__")
RATE = Fraction(2)  # frames/s: groups of MP4 have two frames
PACKETS = [
    SimpleNamespace(data=access_unit(bytes([n + 1]) * (90 + n) + b"\x80", n % 3 == 0), pts=n, dts=n, is_keyframe=n % 3 == 0)
    for n in range(6)
]  # fmt: skip
SOUND = [bytes((0x98, n + 1)) for n in range(150)]  # of Opus, 20 ms each: as long as these
ERRORS = (KeyboardInterrupt, TimeoutError)
KINDS = ("file", "fragments", "object", "byte stream")


class Strike:
    """Raises an error at the event of that number: a function of the files begins, or a C function that it calls ends."""

    def __init__(self, at, error):
        self.at, self.error, self.events = at, error, 0

    def __call__(self, frame, event, _):
        code = frame.f_code
        if event in ("call", "c_return") and code.co_filename.startswith(HERE) and code.co_name not in NOT_HERE:
            self.events += 1
            if self.events == self.at:
                raise self.error("here")

    def __enter__(self):
        gc.disable()  # what is left is left without a collection
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        gc.enable()


def frames_of(data):
    """The number of frames of an MP4, which are the first ones of PACKETS, byte by byte."""
    samples = [data[s.position : s.position + s.size] for s in Mp4Reader(io.BytesIO(data)).samples()]
    assert samples == [to_sample(packet.data)[0] for packet in PACKETS[: len(samples)]]
    return len(samples)


def check(data, kind):
    """The number of frames of an output."""
    if kind != "byte stream":
        return frames_of(data) if data else 0
    ends = [b"".join(packet.data for packet in PACKETS[:n]) for n in range(len(PACKETS) + 1)]
    return ends.index(data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", ERRORS)
def test_a_sink(tmp_path, kind, error):
    """The caller catches the exception, and closes the sink."""
    at, counts = 0, set()
    while True:
        at += 1
        path, target, sink = tmp_path / f"{at}.mp4", io.BytesIO(), None
        with Strike(at, error) as strike:
            try:
                if kind == "byte stream":
                    sink = ByteSink(str(path))
                else:
                    given = target if kind == "object" else path
                    sink = Mp4Sink(given, fps=RATE, fragment=1.0 if kind == "fragments" else None)
                for p in PACKETS:
                    sink.write_packet(p.data, p.pts, p.dts, p.is_keyframe)
                sink.close()
            except error as struck:
                assert str(struck) == "here"
        if sink is not None:
            sink.close()
        data = target.getvalue() if kind == "object" else path.read_bytes() if path.exists() else b""
        assert data or not path.exists(), f"an empty file is left, place {at}"
        counts.add(check(data, kind))
        if strike.events < at:
            break
    assert check(data, kind) == len(PACKETS) and at > 40 and len(counts) > 2


def named(text, stem):
    """The files of the video and those of the sound that a playlist names; the same ones in HLS."""
    if text.startswith("#EXTM3U"):
        assert text.endswith("#EXT-X-ENDLIST\n")
        names = [f"{stem}_init.mp4", *re.findall(r"^\d+_\d+\.m4s$", text, re.MULTILINE)]
        return names, names
    assert 'type="static"' in text
    both = []
    for track, entries in zip((stem, f"{stem}_sound"), text.split("</AdaptationSet>")):
        count = sum(int(more or 0) + 1 for more in re.findall(r'<S t="\d+" d="\d+"(?: r="(\d+)")?', entries))
        both.append([f"{track}_init.mp4", *(f"{track}_{n + 1:05}.m4s" for n in range(count))] if count else [])
    return both


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("muxer", ("hls", "hls with sound", "dash with sound"))
def test_segments(tmp_path, error, muxer):
    """What the playlist names is there and whole, with its sound; after the close it is complete, if there is one."""
    muxer, _, has_sound = muxer.partition(" ")
    ending = {"hls": "m3u8", "dash": "mpd"}[muxer]
    at, counts = 0, set()
    while True:
        at += 1
        path, sink = tmp_path / f"{at}.{ending}", None
        sound = AudioPackets("opus", SOUND).stream if has_sound else None
        with Strike(at, error) as strike:
            try:
                sink = SegmentSink(str(path), muxer, fps=RATE, fragment=float(3 / RATE), sound=sound)
                for p in PACKETS:
                    sink.write_packet(p.data, p.pts, p.dts, p.is_keyframe)
                sink.close()
            except error as struck:
                assert str(struck) == "here"
        if sink is not None:
            sink.close()
        assert not list(tmp_path.glob("*.part*")) and all(file.stat().st_size for file in tmp_path.iterdir()), at
        names, of_sound = named(path.read_text(), str(at)) if path.exists() else ([], [])
        seen = frames_of(b"".join((tmp_path / name).read_bytes() for name in names)) if names else 0
        heard = 0
        if has_sound and of_sound:  # it ends where a packet of it was cut
            stream = open_sound(io.BytesIO(b"".join((tmp_path / name).read_bytes() for name in of_sound)))
            packets = [packet.data for packet in stream.packets]
            while packets[-1:] == [silence(stream.format).data]:
                packets.pop()
            assert packets == SOUND[: len(packets)] and len(packets) <= 25 * seen + 1  # and the lookahead
            heard = len(packets)
        counts.add((seen, heard))
        if strike.events < at:
            break
    assert {0, 3, 6} <= {seen for seen, _ in counts} and len(names) == 3 and at > 40
    assert not has_sound or counts >= {(3, 76), (6, 150)}


class Feeder:
    """Packets that an encoder has finished."""

    def __init__(self):
        self.session, self.process, self.count, self.total = None, os.getpid(), 0, None

    def request(self, keyframe, qp_offsets):
        """Nothing."""

    def feed_all(self, frames, stream):
        """Two packets at a time, the last ones at the end."""
        self.session = SimpleNamespace(config=SimpleNamespace(hrd=SimpleNamespace(nal_hrd="none")))
        for k in (0, 2):
            self.count = k + 2
            yield PACKETS[k : k + 2]

    def finish(self):
        """The rest, once, if there is an encoder."""
        packets, self.count = PACKETS[max(4, self.count) :], len(PACKETS)
        return packets

    def abort(self):
        """Nothing to end."""
        return True

    def close(self):
        """Nothing to release."""


@pytest.mark.parametrize("name", ("o.mp4", "o.264"))
@pytest.mark.parametrize("error", ERRORS)
def test_a_writer(tmp_path, name, error, monkeypatch):
    """After its `with` statement the file is there or not, closed, and no later frame follows a lost one."""
    monkeypatch.setattr("h264lite.encoder.writer.finish_at_exit", lambda writer: None)
    at, counts = 0, set()
    while True:
        at += 1
        path, writer = tmp_path / f"{at}{name}", None
        with Strike(at, error) as strike:
            try:
                with VideoWriter(path, RATE) as writer:
                    writer._feeder = Feeder()
                    writer.write_all([])
            except error as struck:
                assert str(struck) == "here"
        data = path.read_bytes() if path.exists() else b""
        assert data or not path.exists(), f"an empty file is left, place {at}"
        counts.add(check(data, "file" if name == "o.mp4" else "byte stream"))
        if strike.events < at:
            break
    assert check(data, "file" if name == "o.mp4" else "byte stream") == len(PACKETS) and at > 80 and len(counts) > 2


@pytest.mark.parametrize("name", ("o.mp4", "o.264", "o.m3u8"))
@pytest.mark.parametrize("error", ERRORS)
def test_an_abort(tmp_path, name, error, monkeypatch):
    """Cut anywhere: it is done all the same, or the next one does it; nothing is left."""
    monkeypatch.setattr("h264lite.encoder.writer.finish_at_exit", lambda writer: None)
    at = 0
    while True:
        at += 1
        writer = VideoWriter(tmp_path / name, RATE, fragment=1.5 if name == "o.m3u8" else None)
        writer._feeder = Feeder()
        writer._put(PACKETS)
        assert len(os.listdir(tmp_path)) == (3 if name == "o.m3u8" else 1)
        with Strike(at, error) as strike:
            try:
                writer.abort()
            except error as struck:
                assert str(struck) == "here"
        writer.abort()
        assert not os.listdir(tmp_path), f"place {at}"
        with pytest.raises(Error, match="aborted"):
            writer.write([])
        if strike.events < at:
            break
    assert at > 8


def test_a_lost_frame_ends_the_file(tmp_path):
    """A writer that is used on after an interrupt says so."""
    writer = VideoWriter(tmp_path / "o.264", RATE)
    writer._put(PACKETS[:2])
    with pytest.raises(Error, match="lost a frame: the file ends before it"):
        writer._put(PACKETS[3:])
    writer._release()
    assert check((tmp_path / "o.264").read_bytes(), "byte stream") == 2


@pytest.mark.parametrize("error", (TimeoutError("here"), OSError("here"), TimeoutError(110, "Connection timed out")), ids=str)
def test_an_error_of_a_handler_is_none_of_the_file(tmp_path, monkeypatch, error):
    """Errors of the system have a number."""

    def write(*_):
        raise error

    sink = ByteSink(str(tmp_path / "o.264"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(OutputError if error.errno else type(error)):
            sink.write(b"1")
    sink.close()
    target = SimpleNamespace(write=write)
    sink = Mp4Sink(target, fps=RATE, fragment=1.0)
    with pytest.raises(OutputError if error.errno else type(error)):
        sink.write_packet(PACKETS[0].data, 0, 0, True)


def test_a_call_of_another_thread_takes_no_third_one():
    """Handlers of signals run in the main thread only."""
    seen = []
    call = lambda: seen.append(threading.get_ident())  # noqa: E731
    thread = threading.Thread(target=lambda: (Uninterrupted().run(call), call()))
    thread.start()
    thread.join()
    Uninterrupted().run(call)
    assert seen[0] == seen[1] == thread.ident and seen[2] != threading.get_ident()
