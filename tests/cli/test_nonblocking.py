"""Standard streams that are non-blocking, as some other process may make them: everything is waited for, nothing is lost."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest

from ..support.waiting import wait_for
from .test_cli import FAKE, FRAME, clip, make_clip  # noqa: F401
from .test_files import FRAMES, HEIGHT, SIZE, WIDTH, stream  # noqa: F401


def nonblocking(which):
    """The two ends of a pipe, of which one is non-blocking."""
    ends = os.pipe()
    os.set_blocking(ends[which], False)
    return ends


def held(end):
    """Bytes that wait in a pipe."""
    return struct.unpack("i", fcntl.ioctl(end, termios.FIONREAD, bytes(4)))[0]


def fed(words, pieces, program=FAKE):
    """(exit code, output, standard error) of a command that gets each piece of its input when it has read those before."""
    reads, writes = nonblocking(0)
    process = subprocess.Popen([sys.executable, *([str(program)] if program else ["-m", "h264lite"]), *map(str, words)],
                               stdin=reads, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def feed():
        for piece in pieces:
            at = 0
            while at < len(piece):  # a pipe holds less than some pieces
                at += os.write(writes, piece[at : at + 4096])
                wait_for(lambda: not held(reads) or process.poll() is not None)
            time.sleep(0.2)  # now it has found nothing
        os.close(writes)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        out, said = process.communicate(timeout=120)
    finally:
        process.kill()
        feeder.join()
        os.close(reads)
    return process.returncode, out, said.decode()


@pytest.mark.parametrize("y4m", (False, True))
def test_raw_and_y4m_from_a_pipe_that_is_empty_now_and_then(clip, y4m):  # noqa: F811
    data = clip.read_bytes()
    if y4m:
        data = b"YUV4MPEG2 W18 H16 F50:1\n" + b"".join(b"FRAME\n" + data[n : n + 432] for n in range(0, len(data), 432))
    cuts = [0, 10, 17, 28, 700, 1500, len(data)]  # within the header, a frame's header, frames
    pieces = [b"", *(data[a:b] for a, b in zip(cuts, cuts[1:]))]
    code, out, said = fed(["encode", "-", "-", *([] if y4m else ["--input-res", "18x16"])], pieces)
    assert code == 0 and [int(n) for n in FRAME.findall(out)] == list(range(5)) and "encoded 5 frames" in said


def test_decode_and_info_of_a_pipe_that_is_empty_now_and_then(stream):  # noqa: F811
    pieces = [stream[:100], stream[100:1000], stream[1000:]]
    code, out, said = fed(["decode", "-", "-", "--quiet"], pieces, None)
    assert (code, len(out), said) == (0, FRAMES * SIZE, "")
    code, out, said = fed(["info", "-"], pieces, None)
    assert code == 0 and f"{len(stream)} bytes" in out.decode() and f" {FRAMES} pictures" in out.decode() and not said


def taken_slowly(words, descriptor, program=FAKE):
    """(exit code, what it wrote to `descriptor`, which is non-blocking) of a command whose output is read once it is full."""
    reads, writes = nonblocking(1)
    process = subprocess.Popen([sys.executable, *([str(program)] if program else ["-m", "h264lite"]), *map(str, words)],
                               **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                  {1: "stdout", 2: "stderr"}[descriptor]: writes})  # fmt: skip
    os.close(writes)
    before = -1
    while not before == held(reads) > 0 and process.poll() is None:  # until nothing more fits
        before = held(reads)
        time.sleep(0.5)
    got = b""
    while piece := os.read(reads, 4096):
        got += piece
    os.close(reads)
    process.communicate(timeout=60)
    return process.returncode, got


def test_output_waits_until_a_full_pipe_is_read(tmp_path, stream):  # noqa: F811
    source = make_clip(tmp_path, 400)
    code, out = taken_slowly(["encode", source, tmp_path / "o.264", "--quiet", "--dump-yuv", "-"], 1)
    assert code == 0 and out == source.read_bytes()
    path = tmp_path / "in.264"
    path.write_bytes(40 * stream)
    code, out = taken_slowly(["decode", path, "-", "--quiet"], 1, None)
    assert code == 0 and len(out) == 40 * FRAMES * SIZE
    path.write_bytes(300 * stream)
    code, out = taken_slowly(["info", path, "--nal"], 1, None)
    assert code == 0 and out.splitlines()[-1].startswith(b"weighted prediction in ") and out.count(b"IDR slice") == 300


def test_standard_error_waits_too(tmp_path):
    program = tmp_path / "says.py"
    program.write_text("from h264lite.console import let_text_wait, print_line\n"
                       "let_text_wait()\nfor n in range(3000): print_line(f'{n:060}')")
    assert taken_slowly([], 2, program) == (0, "".join(f"{n:060}\n" for n in range(3000)).encode())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait(tmp_path, number):
    out = tmp_path / "out.264"
    reads, writes = nonblocking(0)
    process = subprocess.Popen([sys.executable, str(FAKE), "encode", "-", str(out), "--input-res", "16x16"], stdin=reads,
                               stderr=subprocess.PIPE)
    os.close(reads)
    os.write(writes, bytes(384 * 4 + 100))
    wait_for(lambda: out.exists() and len(FRAME.findall(out.read_bytes())) == 2)
    process.send_signal(number)
    said = process.communicate(timeout=30)[1].decode()
    os.close(writes)
    assert process.returncode == 130 and "interrupted; the output holds 4 frames" in said
