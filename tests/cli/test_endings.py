"""The ending of an output says what is written; another one is refused by name before anything is done."""

import os
import stat
import threading

import h264lite
import numpy as np
import pytest
from h264lite.cli import cli
from h264lite.encoder.errors import OptionError
from h264lite.encoder.files.output import ENDINGS, muxer_of

from ..support import round_trip

FAST = ("--preset", "ultrafast", "--quiet", "--threads", "1", "--device", "cpu")
REFUSED = ("o.h265", "o.hevc", "o.webm", "o.avi", "o.ts", "o.mp4x", "o.png", "o.yuv", "o.y4m", "o", ".mp4", "o.tmp", "o.part",
           "o.avi.tmp", "a.mp4/o", "o.264 ", "o.1")  # fmt: skip


@pytest.fixture
def clip(tmp_path):
    return round_trip.write_raw(round_trip.noise_clip(32, 32, 2, 1), tmp_path)


def test_endings():
    for ending, muxer in ENDINGS.items():
        for before, after in (("o", ""), ("o", ".tmp"), ("o", ".part"), ("o", ".part.TMP"), ("o.avi", "")):
            assert muxer_of(before + ending + after) == muxer_of(before + ending.upper() + after) == muxer
    for name in ("-", "/dev/null", "/dev/stdout"):
        assert muxer_of(name) == "raw"


@pytest.mark.parametrize("name", REFUSED)
def test_another_ending_is_refused_by_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for make in (lambda: muxer_of(name), lambda: h264lite.VideoWriter(name), lambda: h264lite.VideoWriter(tmp_path / name),
                 lambda: h264lite.write_video(name, iter(()))):  # fmt: skip
        with pytest.raises(OptionError, match=r"no (output format|ending).*\.264.*\.mp4.*\.mkv") as caught:
            make()
        assert name in str(caught.value)
    assert not os.listdir(tmp_path)


def test_the_command_refuses_it_unless_the_format_is_said(tmp_path, clip, capfd):
    assert cli.main(["encode", str(clip), str(tmp_path / "o.h265"), *FAST]) == 2
    assert ".h265 is no output format" in capfd.readouterr().err and not (tmp_path / "o.h265").exists()
    for muxer, name, begins in (("raw", "o.h265", b"\0\0\0\1"), ("mp4", "o", b"\0\0\0 ftyp"),
                                ("auto", "o.mp4.tmp", b"\0\0\0 ftyp"), ("auto", "o.264.part", b"\0\0\0\1")):  # fmt: skip
        assert cli.main(["encode", str(clip), str(tmp_path / name), "--muxer", muxer, *FAST]) == 0
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_pipes_and_devices_need_no_ending(tmp_path, clip):
    assert cli.main(["encode", str(clip), os.devnull, *FAST]) == 0 and stat.S_ISCHR(os.stat(os.devnull).st_mode)
    pipe, got = tmp_path / "a.pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    h264lite.write_video(pipe, np.zeros((2, 32, 32, 3), np.uint8), device="cpu", preset="ultrafast")
    reader.join()
    assert got[0].startswith(b"\0\0\0\1")


def test_decode_writes_raw_video_alone(tmp_path, clip, capfd):
    stream = tmp_path / "x.264"
    assert cli.main(["encode", str(clip), str(stream), *FAST]) == 0
    before = sorted(os.listdir(tmp_path))
    for name in ("o.mp4", "o.264", "o.png", "o.mkv.tmp"):
        assert cli.main(["decode", str(stream), str(tmp_path / name)]) == 2
        assert "is no output format" in capfd.readouterr().err and sorted(os.listdir(tmp_path)) == before
    for name, size in (("o.yuv", 0), ("o", 0), ("o.i420.tmp", 0), ("o.y4m.part", 1)):
        assert cli.main(["decode", str(stream), str(tmp_path / name), "--quiet"]) == 0
        assert (tmp_path / name).read_bytes().startswith(b"YUV4MPEG2") == bool(size)
