"""Time and memory of MP4 files are bounded by their bytes, whatever their boxes say; pipes have an end."""

import io
import os
import time
import tracemalloc

import h264lite
import pytest
from h264lite.decoder.info import StreamInfo
from h264lite.mp4 import opening
from h264lite.mp4.opening import pieces
from h264lite.mp4.reader import Mp4Reader

from . import hostile_files

SIZE = 60_000  # bytes of each file, about
MOST = 25e-6  # seconds of the processor a byte: some times what the slowest of them takes, a fifth of what one byte took


def decode(data: bytes) -> str:
    """All that the commands do with a file: frames, headers and facts; the error."""
    coder, info = h264lite.Decoder(resilient=True), StreamInfo()
    try:
        stream, movie = pieces(io.BytesIO(data))
        for piece in stream:
            for _ in info.units(piece):
                pass
            for _ in coder.decode(piece):
                pass
        movie.facts()
    except h264lite.BitstreamError as error:
        return str(error)
    finally:
        for _ in coder.flush():
            pass
    return ""


@pytest.mark.parametrize("kind", hostile_files.KINDS)
def test_time_and_memory_by_bytes(kind):
    data = hostile_files.KINDS[kind](SIZE)
    decode(hostile_files.KINDS[kind](1000))
    start = time.process_time()
    said = decode(data)
    seconds = time.process_time() - start
    assert seconds < MOST * len(data), (f"{seconds / len(data) * 1e6:.1f} us a byte", said)
    data = hostile_files.KINDS[kind](SIZE // 4)
    tracemalloc.start()
    decode(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * len(data) + (4 << 20), f"{peak / len(data):.0f} bytes a byte"


@pytest.mark.slow
@pytest.mark.parametrize("kind", hostile_files.KINDS)
def test_time_grows_with_the_bytes(kind, tmp_path):
    """As a file, twenty times as large: the same time a byte."""
    (tmp_path / "a.mp4").write_bytes(hostile_files.KINDS[kind](20 * SIZE))
    start = time.process_time()
    with open(tmp_path / "a.mp4", "rb") as file:
        try:
            stream, movie = pieces(file)
            for _ in stream:
                pass
            movie.facts()
        except h264lite.BitstreamError:
            pass
    assert time.process_time() - start < MOST * (tmp_path / "a.mp4").stat().st_size


def test_parameter_sets_are_written_where_they_change():
    """Equal sets of two entries stand once, those that differ again and again, up to the limit."""
    stream = b"".join(Mp4Reader(io.BytesIO(hostile_files.alternating(SIZE, True))).byte_stream())
    assert stream.count(hostile_files.SPS) == 1
    units = []
    data = hostile_files.alternating(SIZE, False)
    with pytest.raises(h264lite.BitstreamError, match="16 times as large as the file"):
        for unit in Mp4Reader(io.BytesIO(data)).byte_stream():
            units.append(unit)
    assert sum(map(len, units)) <= 16 * len(data) and b"".join(units).count(hostile_files.SPS) == len(units) > 10


def test_sets_within_samples_end_those_of_the_entry():
    """Behind a parameter set of a sample the next change of entry says its own again, though they equal the last ones."""
    entries = [hostile_files.entry([hostile_files.PPS])] * 2
    inside = bytes((len(hostile_files.SPS),)) + hostile_files.SPS
    data = inside + b"\x02\x09\xf0"
    hostile = hostile_files
    tables = (
        hostile.table(b"stts", "II", (2, 40)), hostile.table(b"stsc", "III", (1, 1, 1), (2, 1, 2)),
        hostile.full_box(b"stsz", 0, 0, (0).to_bytes(4, "big") + (2).to_bytes(4, "big"), len(inside).to_bytes(4, "big"),
                         (3).to_bytes(4, "big")),
        hostile.table(b"stco", "I", (hostile.FIRST,), (hostile.FIRST + len(inside),)),
    )  # fmt: skip
    file = hostile.FRONT + hostile.box(b"mdat", data) + hostile.movie(hostile.track(entries, *tables))
    first, second = Mp4Reader(io.BytesIO(file)).byte_stream()
    assert first.count(hostile.SPS) == 2 and second.count(hostile.SPS) == 1


class Endless(io.RawIOBase):
    """A pipe that begins as an MP4 and never ends."""

    def __init__(self, head: bytes) -> None:
        self._head, self.given = head, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        data = self._head[: len(buffer)] or bytes(len(buffer))
        self._head = self._head[len(data) :]
        buffer[: len(data)] = data
        self.given += len(data)
        return len(data)


def test_an_endless_pipe_is_refused(monkeypatch):
    monkeypatch.setattr(opening, "FROM_PIPE", 3 << 20)
    monkeypatch.setattr(opening, "IN_MEMORY", 1 << 20)
    pipe = Endless(b"\0\0\0\x08free")
    with pytest.raises(h264lite.BitstreamError, match="an MP4 of more than 3 MiB from a pipe: give it as a file"):
        pieces(io.BufferedReader(pipe))
    assert pipe.given < 6 << 20


def test_a_pipe_leaves_half_of_the_free_disk(monkeypatch):
    import shutil

    free = shutil.disk_usage("/tmp")._replace(free=4 << 20)
    monkeypatch.setattr("shutil.disk_usage", lambda place: free)
    monkeypatch.setattr(opening, "IN_MEMORY", 1 << 20)
    with pytest.raises(h264lite.BitstreamError, match="more than 2 MiB from a pipe"):
        pieces(io.BufferedReader(Endless(b"\0\0\0\x08free")))


def test_a_file_that_becomes_shorter_is_told(tmp_path):
    """Where it ends is said: nothing is taken for an empty sample."""
    data = hostile_files.of_one_chunk([hostile_files.entry([hostile_files.PPS])], b"\x01\x09" * 300_000, 2, 300_000)
    (tmp_path / "a.mp4").write_bytes(data)
    with open(tmp_path / "a.mp4", "rb") as file:
        stream = Mp4Reader(file).byte_stream()
        next(stream)
        os.truncate(tmp_path / "a.mp4", 200_000)
        with pytest.raises(h264lite.BitstreamError, match="shorter while it was read: it ends at byte 200000"):
            for _ in stream:
                pass
