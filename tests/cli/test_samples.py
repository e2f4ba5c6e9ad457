"""The samples run, and the clip generator gives the same bytes for the same seed."""

import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import h264lite
import numpy as np
import pytest
from h264lite.encoder.files.video import frame_bytes

ROOT = Path(__file__).resolve().parent.parent.parent


def run(name, *words):
    command = [sys.executable, str(ROOT / "samples" / name), *map(str, words)]
    done = subprocess.run(command, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("size", ["1x1", "17x33", "64x48", "175x143"])
def test_clips_of_any_size_repeat(tmp_path, size):
    width, height = map(int, size.split("x"))
    digests = set()
    for name in ("a.yuv", "b.yuv"):
        run("make_clip.py", tmp_path / name, "--size", size, "--frames", 3, "--seed", 5)
        data = (tmp_path / name).read_bytes()
        assert len(data) == 3 * frame_bytes(width, height)
        digests.add(hashlib.sha256(data).hexdigest())
    run("make_clip.py", tmp_path / "c.yuv", "--size", size, "--frames", 3, "--seed", 6)
    assert len(digests) == 1
    if width > 1:
        assert (tmp_path / "c.yuv").read_bytes() != data


def test_clips_move(tmp_path):
    run("make_clip.py", tmp_path / "a.yuv", "--size", "64x48", "--frames", 4)
    data, size = (tmp_path / "a.yuv").read_bytes(), frame_bytes(64, 48)
    assert len({data[n * size : (n + 1) * size] for n in range(4)}) == 4


def test_encode_frames(tmp_path):
    out = tmp_path / "api.264"
    assert str(out) in run("encode_frames.py", out) and out.stat().st_size > 1000


def test_rate_and_quality():
    rows = [line.split() for line in run("rate_and_quality.py").splitlines()[1:4]]
    rates, qualities = [float(row[1]) for row in rows], [float(row[2]) for row in rows]
    assert rates == sorted(rates, reverse=True) and qualities == sorted(qualities, reverse=True)


def test_mux_mp4(tmp_path):
    av = pytest.importorskip("av")
    out = tmp_path / "api.mp4"
    run("mux_mp4.py", out)
    with av.open(str(out)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 24


def test_motion_statistics(tmp_path):
    stream, arrays = tmp_path / "api.264", tmp_path / "arrays.npz"
    run("encode_frames.py", stream)
    rows = [line.split() for line in run("motion_statistics.py", stream, arrays).splitlines()[1:]]
    stored = np.load(arrays)
    assert rows[0][1] == "I" and {row[1] for row in rows} == {"I", "P", "B"} and len(rows) == len(stored["mv"])
    assert sum(int(row[2]) for row in rows) == stored["bits"].sum() < 8 * stream.stat().st_size
    assert [float(x) for x in rows[0][4:]] == [0, 100, 0] and float(rows[1][6]) > 0


def test_motion_field(tmp_path):
    """Frames moved by their vectors are nearer to the next ones than unmoved, over the whole clip."""
    stream, picture = tmp_path / "api.264", tmp_path / "flow.png"
    run("encode_frames.py", stream)
    words = [stream, picture] if importlib.util.find_spec("matplotlib") else [stream]
    rows = [line.split() for line in run("motion_field.py", *words).splitlines()[1:]]
    assert len(rows) == 29 and picture.exists() == (len(words) == 2)
    assert sum(float(row[5]) for row in rows) < 0.9 * sum(float(row[4]) for row in rows)


def test_compare_yuv_names_the_place(tmp_path):
    sys.path.insert(0, str(ROOT / "samples"))
    try:
        from compare_yuv import first_difference
    finally:
        sys.path.pop(0)
    size = frame_bytes(33, 18)
    a = np.zeros(2 * size, np.uint8)
    assert first_difference(a, a.copy(), 33, 18) is None
    assert "equal for 1.5 frames" in first_difference(a, a[: size * 3 // 2], 33, 18)
    for at, words in ((33 * 17 + 20, "frame 0, luma, sample x 20 y 17, macroblock x 1 y 1"),
                      (size + 33 * 18 + 17 * 8 + 16, "frame 1, Cb, sample x 16 y 8, macroblock x 2 y 1"),
                      (2 * size - 1, "frame 1, Cr, sample x 16 y 8, macroblock x 2 y 1")):
        b = a.copy()
        b[at] = 7
        assert f"{words}: 0 and 7" in first_difference(a, b, 33, 18)


def test_read_frames(tmp_path):
    """The frame after a cut is the one that changes most; the thumbnails are a table of four by three."""
    video, picture = tmp_path / "cut.mp4", tmp_path / "thumbnails.png"
    scene = np.zeros((48, 64, 3), np.uint8)
    h264lite.write_video(video, [scene + 40] * 17 + [scene + 200] * 7, fps=24)
    words = [video, picture] if importlib.util.find_spec("PIL") else [video]
    lines = run("read_frames.py", *words).splitlines()
    assert lines[0] == "24 frames of 64x48, 1.000 s, profile High" and lines[1].startswith("keyframes: 0")
    assert lines[2].startswith("most changed: frame 17 at 0.708 s, mean ") and abs(float(lines[2].split()[-1]) - 200) < 2
    if len(words) == 2:
        from PIL import Image

        table = np.asarray(Image.open(picture))
        assert table.shape == (3 * 48, 4 * 64, 3)
        assert abs(table[:96].mean() - 40) < 2 and abs(table[96:, 64:].mean() - 200) < 2


def test_sound_and_video(tmp_path):
    """Both last two seconds, and the sound is that of the sample, to 16 bits."""
    av = pytest.importorskip("av")
    from h264lite.samples import sound_and_video

    run("sound_and_video.py", tmp_path / "o.mp4")
    with av.open(str(tmp_path / "o.mp4")) as container:
        assert container.duration == 2_000_000 and container.streams.video[0].frames == 60
        heard = np.concatenate([frame.to_ndarray().reshape(-1, 2) for frame in container.decode(audio=0)])
    expected = np.concatenate(list(sound_and_video.sound()))
    assert heard.shape == expected.shape and np.abs(heard / 32768 - expected).max() <= 0.5 / 32768
