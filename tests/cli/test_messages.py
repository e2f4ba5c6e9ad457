"""Messages: of what is no command, of frames of another size, on terminals of 80 columns."""

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios

import h264lite
import numpy as np
import pytest
from h264lite.cli import cli
from h264lite.console import folded

from .test_progress import Terminal


@pytest.mark.parametrize(("first", "says"), (
    ("encod", "'encod' is no command; did you mean 'encode'?"), ("reprot", "did you mean 'report'?"),
    ("Decode", "did you mean 'decode'?"), ("in.y4m", "'in.y4m' is no command: to encode say h264lite encode IN OUT"),
    ("--crf", "'--crf' is no command: to encode say h264lite encode IN OUT"), ("-o", "to encode say"),
    ("xyz", "'xyz' is no command: encode, decode, info"),
))  # fmt: skip
def test_what_is_no_command(capfd, first, says):
    assert cli.main([first, "20", "out.mp4"]) == 2
    said = capfd.readouterr()
    assert not said.out and said.err.startswith("h264lite: error: ") and says in said.err and said.err.count("\n") == 1


def test_the_commands_are_those_of_the_parser(capfd):
    assert cli.main(["--help"]) == 0
    text = capfd.readouterr().out
    lines = text.partition("commands:")[2].splitlines()
    assert [line.split()[0] for line in lines if line[:4] == "    " and line[4] != " "] == list(cli.COMMANDS)
    assert cli.main([]) == 2 and "to encode say h264lite encode IN OUT" in capfd.readouterr().err


def test_a_frame_of_another_size_names_both_sizes():
    with h264lite.Encoder(48, 32, qp=26, device="cpu") as encoder, pytest.raises(h264lite.InputError) as caught:
        encoder.encode(np.zeros((34, 48, 3), np.uint8))
    assert str(caught.value) == (
        "a frame of shape (34, 48, 3) is rgb of 48x34: all frames of this stream are 48x32, resize it before"
    )


def test_lines_on_a_terminal_are_divided_between_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    text = "h264lite [info]: 64x48, raw, 25 fps; device cpu: asked for"
    assert folded(text, Terminal()) == "h264lite [info]: 64x48, raw,\n  25 fps; device cpu: asked\n  for"
    table = "disk:     one two three four\n          five six seven"
    assert folded("disk:     one two three four five six seven", Terminal()) == table
    assert folded("/a" * 40 + " b", Terminal()) == "/a" * 40 + "\n  b" and folded("a  b", Terminal()) == "a  b"
    assert folded(text + "\n\n" + text, Terminal()).count("\n") == 6
    closed = io.StringIO()
    closed.close()
    with open(os.devnull) as no_terminal:
        assert folded(text, no_terminal) == folded(text, closed) == text


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_no_line_of_help_is_longer_than_80_columns(capfd, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([command, "--help"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) > 5 and max(map(len, lines)) <= 80, max(lines, key=len)


@pytest.mark.parametrize("words", (
    ("encode", "--nr", "4", "--qblur", "3", "--open-gop", "--bff", "in.y4m", "out.264"), ("doctor",), ("what", "is", "this"),
    ("encode", "/nowhere.y4m", "out"),
))  # fmt: skip
def test_no_line_is_longer_than_a_terminal_of_80_columns(words):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen([sys.executable, "-m", "h264lite", *words], stdout=slave, stderr=slave, env=environment):
        os.close(slave)
        text = b""
        try:
            while part := os.read(master, 4096):
                text += part
        except OSError:  # the end, on Linux
            pass
    os.close(master)
    lines = text.decode().replace("\r", "").splitlines()
    assert lines and max(map(len, lines)) <= 80, max(lines, key=len)
