"""Files that options name are read whole, from pipes too, and up to a limit: devices never end."""

import os
import threading
import tracemalloc

import h264lite
import pytest
from h264lite.encoder.settings import frame_requests, option_types, pass_file, scaling_lists
from h264lite.files import small_file

from ..support import round_trip

LIMIT = 1 << 16
FAST = {"preset": "ultrafast", "device": "cpu", "threads": 1}
GIVEN = {
    "qpfile": ({}, "0 I 20\n"),
    "cqm": ({"profile": "high"}, "INTRA4X4_LUMA =\n" + "9," * 16),
    "stats": ({"pass_": 2, "bitrate": 100}, ""),
}


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    monkeypatch.setattr(frame_requests, "_LARGEST", LIMIT)
    monkeypatch.setattr(pass_file, "_LARGEST", LIMIT)
    monkeypatch.setattr(scaling_lists, "MOST_BYTES", LIMIT)


def statistics(path, **options):
    round_trip.encode(round_trip.noise_clip(32, 32, 3, 1), 32, 32, pass_=1, bitrate=100, stats=path, **FAST, **options)
    return path.read_text()


def encoder(**options):
    h264lite.Encoder(32, 32, 30, **FAST, **options).close()


@pytest.mark.parametrize("option", GIVEN)
def test_a_file_without_end_is_refused_with_option_and_limit(option):
    with pytest.raises(h264lite.OptionError, match=rf"{option} /dev/zero: .*larger than {LIMIT} bytes") as caught:
        encoder(**GIVEN[option][0], **{option: "/dev/zero"})
    assert caught.value.option == option


@pytest.mark.parametrize("option", GIVEN)
def test_a_file_may_be_a_pipe_with_all_of_it_or_too_much(tmp_path, option):
    options, text = GIVEN[option]
    text = text or statistics(tmp_path / "s")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def feed(data):
        try:
            pipe.write_bytes(data)
        except BrokenPipeError:
            assert len(data) > LIMIT

    for data, refused in ((text.encode(), False), (b"\n" * (LIMIT + 1), True)):
        thread = threading.Thread(target=feed, args=(data,))
        thread.start()
        try:
            encoder(**options, **{option: pipe})
            assert not refused
        except h264lite.OptionError as error:
            assert refused and "larger than" in str(error), error
        thread.join()


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    """Its size was asked first, and then all was read."""
    path = tmp_path / "q"
    path.write_text("0 I 20\n")
    monkeypatch.setattr(os.path, "getsize", lambda name: 1)
    path.write_text("\n" * (LIMIT + 1))
    with pytest.raises(h264lite.OptionError, match=rf"qpfile .*q: larger than {LIMIT} bytes"):
        encoder(qpfile=path)


def test_statistics_of_lines_without_end_are_refused_at_the_first(tmp_path):
    path = tmp_path / "s"
    head, columns, *_ = statistics(path).splitlines()
    frames = LIMIT - len(head) - len(columns) - 20
    path.write_text(f"{head.replace('frames=3', f'frames={frames}')}\n{columns}\n" + "\n" * frames)
    tracemalloc.start()
    try:
        with pytest.raises(h264lite.OptionError, match="line 3 is not of the form"):
            encoder(pass_=2, bitrate=100, stats=path)
        assert tracemalloc.get_traced_memory()[1] < 30 * LIMIT, "many times its size"
    finally:
        tracemalloc.stop()


def test_a_file_takes_no_more_memory_than_it_has_bytes(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"123")
    tracemalloc.start()
    try:
        assert small_file(path, 1 << 28) == b"123" and tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_lines_are_those_of_a_text():
    for text in ("", "a", "a\n", "a\r\nb\n\nc", "\n"):
        assert list(option_types.lines_of(text)) == text.splitlines()
