"""Files of the commands: whole or not at all, left alone by what fails, told apart, named in one line."""

import errno
import os
import resource
import shlex
import subprocess
import sys

import pytest
from h264lite.cli import cli
from h264lite.console import one_line
from h264lite.encoder.errors import OptionError, OutputError
from h264lite.encoder.files.output import ByteSink, check_distinct
from h264lite.files import WholeFile, identity, opened, small_file

from ..support import round_trip
from .test_cli import FAKE, clip, fake, one_error  # noqa: F401
from .test_cli_streams import shell

WIDTH, HEIGHT, FRAMES = 64, 48, 9
SIZE = WIDTH * HEIGHT * 3 // 2


@pytest.fixture(scope="module")
def stream():
    """Bytes of a stream of FRAMES frames."""
    return round_trip.encode(round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 1), WIDTH, HEIGHT, threads=1)[0]


@pytest.fixture
def path(stream, tmp_path):
    (tmp_path / "in.264").write_bytes(stream)
    return tmp_path / "in.264"


# What is written -----------------------------------------------------------------------------------------------------


def test_a_file_is_emptied_by_the_first_write_and_one_that_was_made_in_vain_goes(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"12345")
    for name in (old, new):
        WholeFile(str(name)).close()
    assert old.read_bytes() == b"12345" and not new.exists()
    for name in (old, new):
        with WholeFile(str(name)) as file:
            file.write(b"a", b"", memoryview(b"bc"))
        file.close()
        assert name.read_bytes() == b"abc"


def test_a_link_to_no_file_is_written_through(tmp_path):
    link, target = tmp_path / "link.264", tmp_path / "target.264"
    link.symlink_to(target.name)
    WholeFile(str(link)).close()
    assert link.is_symlink() and not target.exists()
    with WholeFile(str(link)) as file:
        file.write(b"abc")
    assert link.is_symlink() and target.read_bytes() == b"abc"
    target.unlink()
    link.unlink()
    link.symlink_to(tmp_path / "no" / "where")
    with pytest.raises(OutputError, match=r"link\.264: no such file"):
        ByteSink(str(link))
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(OutputError, match=r"link\.264: "):
        ByteSink(str(link))


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_write_that_ends_in_between_leaves_what_was_whole(tmp_path, monkeypatch, error):
    name, write = str(tmp_path / "x"), os.write
    file = WholeFile(name)
    file.write(b"12345", b"67")

    def writes(fd, data):
        if bytes(data).startswith(b"c"):
            raise error
        return write(fd, data[:1])

    monkeypatch.setattr(os, "write", writes)
    with pytest.raises(type(error)) as caught:
        file.write(b"ab", b"cd")
    monkeypatch.undo()
    file.close()
    assert open(name, "rb").read() == b"1234567"
    if isinstance(error, OSError):
        assert caught.value.filename == name and caught.value.errno == errno.ENOSPC


# Which file it is ----------------------------------------------------------------------------------------------------


def test_files_are_told_apart(tmp_path, monkeypatch):
    one, other, link = tmp_path / "one", tmp_path / "other", tmp_path / "link"
    one.touch()
    other.touch()
    link.symlink_to(one)
    assert identity(str(one), 0) == identity(str(link), 1) != identity(str(other), 1)
    assert identity(str(tmp_path / "x"), 0) == identity(str(tmp_path / "." / "x"), 1) != identity(str(tmp_path / "y"), 1)
    assert identity("/dev/null", 0) is None
    for name in ("/dev/null", str(one)):
        check_distinct({"input": "/dev/null", "output": "/dev/null", "csv": name, "json": None})
    with pytest.raises(OptionError, match=r"^csv and input are the same: .*link$"):
        check_distinct({"input": str(one), "output": str(other), "csv": str(link)})


def test_standard_streams_that_lead_to_a_file_are_it(path, tmp_path):
    """None of these may touch it."""
    before = path.read_bytes()
    for words, redirected in (("encode - in.264 --input-res 16x16", "< in.264"), ("decode - in.264", "< in.264"),
                              ("encode in.264 - --input-res 16x16", ">> in.264"), ("decode in.264 -", ">> in.264"),
                              ("encode - - --input-res 16x16", "< in.264 >> in.264"), ("decode - -", "<in.264 >>in.264"),
                              ("encode in.264 o.264 --input-res 16x16 --csv -", ">> in.264")):  # fmt: skip
        code, out, said = shell(words, redirected, folder=tmp_path)
        assert code == 2 and not out, words
        one_error(said, "the same" if words.startswith("encode") else "both input and output")
        assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name], words
    code, out, said = shell("decode - - --quiet", "< in.264", folder=tmp_path)
    assert code == 0 and len(out) == FRAMES * SIZE and not said


# decode --------------------------------------------------------------------------------------------------------------


def test_a_failing_decode_leaves_its_output_as_it_was(path, stream, tmp_path, capfd):
    junk, out = tmp_path / "junk.264", tmp_path / "o.yuv"
    for data, expected in ((b"", "no frames"), (b"no start code at all" * 99, "no "), (stream[:20], ""),
                           (b"\0\0\1\x67\0\0", "")):
        junk.write_bytes(data)
        for words in ((), ("--resilient",)):
            out.write_bytes(b"a video")
            assert cli.main(["decode", str(junk), str(out), *words]) == 1
            one_error(capfd.readouterr().err, str(junk), expected)
            assert out.read_bytes() == b"a video"
            out.unlink()
            assert cli.main(["decode", str(junk), str(out), *words]) == 1
            assert not out.exists() and capfd.readouterr().err
    assert cli.main(["decode", str(path), str(out), "--quiet"]) == 0 and out.stat().st_size == FRAMES * SIZE


@pytest.mark.parametrize("ending", ("yuv", "y4m"))
def test_a_decode_that_does_not_fit_holds_whole_frames_and_names_its_file(path, tmp_path, ending):
    out, limit = tmp_path / f"o.{ending}", 3 * SIZE + SIZE // 2
    done = subprocess.run([sys.executable, "-m", "h264lite", "decode", path, out], capture_output=True, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 1
    one_error(done.stderr.decode(), f"{out}: file too large")
    head, frame = (60, 6) if ending == "y4m" else (0, 0)
    assert 3 * (SIZE + frame) <= out.stat().st_size <= 3 * (SIZE + frame) + head


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_every_error_names_its_file(path, tmp_path, capfd):
    for words, expected in ((["decode", str(path), "/dev/full"], "/dev/full: no space left on device"),
                            (["decode", str(tmp_path), "o"], f"{tmp_path}: is a directory"),
                            (["decode", str(path), str(tmp_path)], f"{tmp_path}: is a directory"),
                            (["info", str(tmp_path)], f"{tmp_path}: is a directory"),
                            (["info", "/proc/self/mem"], "/proc/self/mem: input/output error"),
                            (["decode", "/proc/self/mem", "o"], "/proc/self/mem: input/output error"),
                            (["encode", "/proc/self/mem", "o", "--input-res", "9x9"], "/proc/self/mem: input/output error")):
        assert cli.main(words) == 1
        one_error(capfd.readouterr().err, expected)


def test_a_reader_that_leaves_is_named(path, tmp_path):
    pipe, stream = tmp_path / "pipe.yuv", tmp_path / "in.264"
    os.mkfifo(pipe)
    stream.write_bytes(20 * path.read_bytes())  # more samples than a pipe holds
    words = shlex.join([sys.executable, "-m", "h264lite", "decode", str(stream), str(pipe)])
    done = subprocess.run(["sh", "-c", f"{words} & head -c 10 {pipe} > {tmp_path / 'x'}; wait $!"], capture_output=True,
                          text=True, timeout=120)  # fmt: skip
    assert done.returncode == 1
    one_error(done.stderr, f"{pipe}: closed by its reader (broken pipe)")


# Names and small files -----------------------------------------------------------------------------------------------


def test_messages_are_one_line_whatever_a_name_holds(fake, tmp_path, capfd, monkeypatch):  # noqa: F811
    assert one_line("a b µ\n\t\x1b[1m\udcff\u202e") == "a b µ\\n\\t\\x1b[1m\\udcff\\u202e"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x_2x2.yuv").write_bytes(bytes(6))
    name = "a\nb\x1b[31m_2x2.yuv"
    for words in (["encode", name, "o.264"], ["decode", name, "o.yuv"], ["info", name], ["encode", "x", "o", "--a\nb"],
                  ["encode", "x_2x2.yuv", "o", "--tuning", name], ["encode", "x", "o", "--me", "a\nb"], ["a\nb"],
                  ["bench", "a\nb"], ["bench", "--sizes", "a\nb"], ["decode", "x", "o", "--frames", "a\nb"]):  # fmt: skip
        assert cli.main(words) in (1, 2)
        said = capfd.readouterr().err
        assert len(said.splitlines()) == 1 and "\\n" in said and "\x1b" not in said, words
    assert cli.main(["doctor", "--tuning", name]) == 1
    said = capfd.readouterr().out
    assert said.count("a\\nb") >= 2 and "\x1b" not in said and not any(line.startswith("b") for line in said.splitlines())


def test_small_files_are_regular_and_small(tmp_path):
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(b"12345")
    os.mkfifo(pipe)
    assert small_file(file, 5) == b"12345" == opened(str(file)).read()
    for name, most, expected in ((file, 4, "larger than 4 bytes"), (pipe, 5, "not a regular file"),
                                 ("/dev/zero", 5, "not a regular file")):
        with pytest.raises(ValueError, match=expected):
            small_file(name, most)
    with pytest.raises(OSError):
        small_file(tmp_path, 5)


@pytest.mark.parametrize("kind", ("asked for", "cache"))
@pytest.mark.parametrize("special", ("pipe", "zero", "large", "long key"))
def test_a_tuning_file_that_is_none_ends_nothing_and_waits_for_nothing(clip, tmp_path, kind, special):  # noqa: F811
    place = tmp_path / "h264lite" / "tuning.toml"
    place.parent.mkdir()
    if special == "pipe":
        os.mkfifo(place)
    elif special == "zero":
        place.symlink_to("/dev/zero")
    else:
        place.write_text("format = 4\n" + ("#" * 300000 if special == "large" else "a." * 100000 + "a = 1"))
    words = [str(clip), str(tmp_path / "o.264"), *(["--tuning", str(place)] if kind == "asked for" else [])]
    environment = os.environ | {"H264LITE_CACHE": str(tmp_path) if kind == "cache" else ""}
    done = subprocess.run([sys.executable, str(FAKE), "encode", *words], capture_output=True, text=True, timeout=20,
                          env=environment)  # fmt: skip
    expected = {"pipe": "not a regular file", "zero": "not a regular file", "large": "larger than", "long key": "a line of"}
    assert done.returncode == (2 if kind == "asked for" else 0), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if str(place) in line]
    assert expected[special] in line and ("--tuning" in line if kind == "asked for" else "going on without" in line)
