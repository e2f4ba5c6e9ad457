"""The progress line: x264's words, live, plain, JSON, and a log without a reader."""

import io
import json
import re

import pytest
from h264lite.cli import progress as module
from h264lite.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "clock", lambda: now[0])
    return now


def test_x264_s_words(clock):
    line = Progress("live", 60, 30, Terminal())
    clock[0] = 2.0
    assert line.line(15, 15 * 1000) == "[25.0%] 15/60 frames, 7.50 fps, 240.00 kb/s, eta 0:00:06"
    assert Progress("live", None, 30, Terminal()).line(1, 5894).endswith("kb/s")
    assert re.fullmatch(r"1 frames: \d+\.\d\d fps, 1414\.56 kb/s", Progress("live", None, 30, Terminal()).line(1, 5894))
    assert Progress("plain", 40000, 1, Terminal()).line(1, 1).endswith("eta 0:00:00")


def test_a_terminal_has_one_line_that_is_wiped_at_the_end(clock):
    out = Terminal()
    line = Progress("auto", 60, 30, out)
    for clock[0] in (0.1, 0.2, 0.3, 0.4, 0.6):
        line.update(10, 100)
    line.finish()
    line.finish()
    text = out.getvalue()
    assert "\n" not in text and text.count("\r[16.7%] 10/60 frames") == 2 and text.endswith("\r")


def test_a_file_has_whole_lines_now_and_then(clock):
    out = io.StringIO()
    line = Progress("auto", 60, 30, out)
    for clock[0] in range(1, 12):
        line.update(clock[0], 100)
    line.finish()
    assert [text[:7] for text in out.getvalue().splitlines()] == ["[8.3%] ", "[16.7%]"] and "\r" not in out.getvalue()


def test_programs_get_json(clock):
    out = io.StringIO()
    line = Progress("json", 4, 25, out)
    line.event("start", frames=4)
    clock[0] = 2.0
    line.update(2, 1000)
    line.event("end", frames=4)
    events = [json.loads(text) for text in out.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["start", "progress", "end"]
    assert events[1] == {"event": "progress", "frames": 2, "encode_fps": 1.0, "kbps": 100.0, "bytes": 1000, "total": 4,
                         "eta": 2.0}


def test_none_says_nothing(clock):
    out = Terminal()
    line = Progress("none", 4, 25, out)
    clock[0] = 9.0
    line.update(2, 1000)
    line.event("end")
    line.finish()
    assert not out.getvalue()


def test_a_log_that_nobody_reads_ends_no_encode(clock):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    line = Progress("plain", 4, 25, Closed())
    for clock[0] in (6.0, 12.0):
        line.update(2, 1000)
