"""Standard streams that are closed or full, by command: no file gets their numbers, and what fails is one line."""

import errno
import os
import shlex
import subprocess
import sys

import pytest
from h264lite.cli import cli

from .test_cli import FAKE, clip, one_error  # noqa: F401

BENCH = "bench --sizes 16x16 --devices cpu --rounds 1 --seconds 0.1 --json -"


def shell(words, redirected, unbuffered="", folder=None):
    """(exit code, standard output, standard error) of a command with the fake pipeline."""
    done = subprocess.run(["sh", "-c", f"{shlex.join([sys.executable, str(FAKE)])} {words} {redirected}"], cwd=folder,
                          capture_output=True, timeout=60, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize("closed", ("<&-", ">&-", "<&- >&-", "<&- >&- 2>&-"))
def test_an_encode_needs_none_that_it_does_not_use(clip, tmp_path, closed):  # noqa: F811
    y4m = tmp_path / "x.y4m"
    y4m.write_bytes(b"YUV4MPEG2 W18 H16 F25:1\n" + b"FRAME\n" + clip.read_bytes()[:432])
    for source, frames in ((clip, 5), (y4m, 1)):
        code, _, said = shell(f"encode {source} o.264 --dump-yuv o.yuv --quiet", closed, folder=tmp_path)
        assert (code, said) == (0, "")
        assert (tmp_path / "o.yuv").read_bytes() == clip.read_bytes()[: frames * 432]
        assert len((tmp_path / "o.264").read_bytes()) == 19 * frames


@pytest.mark.parametrize(("words", "closed", "name"), [
    ("encode - o.264 --input-res 18x16", "<&-", "input"), ("decode - o.yuv", "<&-", "input"), ("info -", "<&-", "input"),
    ("encode {clip} -", ">&-", "output"), ("encode {clip} o.264 --quiet --csv -", ">&-", "output"),
    ("decode {clip} -", ">&-", "output"), (BENCH, ">&-", "output"),
])  # fmt: skip
def test_one_that_is_asked_for_is_named(clip, tmp_path, words, closed, name):  # noqa: F811
    code, _, said = shell(words.format(clip=clip), closed, folder=tmp_path)
    one_error(said, f"standard {name}: closed")
    assert code == 1 and len(said.splitlines()) == 1 and os.listdir(tmp_path) == [clip.name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ("", "1"))
@pytest.mark.parametrize("words", ("doctor", "info {stream}", "encode {clip} - --quiet"))
def test_one_that_is_full_is_one_line(clip, tmp_path, words, unbuffered):  # noqa: F811
    stream = tmp_path / "o.264"
    stream.write_bytes(b"\0\0\1\x09\x10")
    code, _, said = shell(words.format(clip=clip, stream=stream), ">/dev/full", unbuffered)
    assert code == 1
    one_error(said.lower(), "no space left on device")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_help_and_figures_that_cannot_be_written():
    code, _, said = shell("--help", ">/dev/full")
    assert code == 1 and said == "h264lite: error: standard output: no space left on device\n"
    code, _, said = shell(BENCH, ">/dev/full", "1")
    assert code == 1 and "Traceback" not in said
    assert said.splitlines()[-1] == "h264lite bench: error: standard output: no space left on device"


@pytest.mark.parametrize(("error", "said"), [
    (OSError(errno.ENOMEM, "Cannot allocate memory"), "error: cannot allocate memory"),
    (OSError(errno.ENOSPC, "No space left on device"), "error: standard output: no space left on device"),
    (FileNotFoundError(errno.ENOENT, "No such file or directory", "nvcc"), "error: nvcc: no such file or directory"),
])  # fmt: skip
def test_errors_of_the_system_are_one_line(monkeypatch, capfd, error, said):
    """Not all of them are standard output's."""

    def fails(*given):
        raise error

    monkeypatch.setattr("h264lite.cli.encode.run_encode", fails)
    assert cli.main(["encode", "a.y4m", "b.264", "--device", "cpu"]) == 1
    assert capfd.readouterr().err.strip() == f"h264lite encode: {said}"
