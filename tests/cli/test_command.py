"""The command with the real pipeline: what is written decodes, whatever happened, in every container."""

import io
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.files.video import frame_bytes

from ..support import round_trip, sequences
from ..support.waiting import wait_for_bytes

WIDTH, HEIGHT = 50, 34


@pytest.fixture
def clip(tmp_path):
    """12 frames of moving texture, and 7 bytes more."""
    path = tmp_path / f"clip_{WIDTH}x{HEIGHT}.yuv"
    frames = round_trip.noise_clip(WIDTH, HEIGHT, 12, 3)
    path.write_bytes(b"".join(plane.tobytes() for planes in frames for plane in planes) + b"1234567")
    return path


def decoded(source) -> bytes:
    """What FFmpeg returns for a stream (bytes) or a container (path)."""
    pytest.importorskip("av", reason="PyAV decodes")
    frames = sequences.decode(io.BytesIO(source) if isinstance(source, bytes) else source)
    samples = b"".join(b"".join(planes) for planes in frames)
    if isinstance(source, bytes):
        own_decoder = round_trip.own_frames(source)
        assert b"".join(plane.tobytes() for planes in own_decoder for plane in planes) == samples, "own decoder"
    return samples


def test_what_is_written_is_what_decodes_even_if_the_input_is_cut_off(clip, tmp_path, capfd):
    out, rec = tmp_path / "o.264", tmp_path / "r.yuv"
    assert main(["encode", str(clip), str(out), "--dump-yuv", str(rec), "--keyint", "5", "--ssim"]) == 1
    said = capfd.readouterr().err
    assert "7 bytes left over" in said and "encoded 12 frames" in said
    assert decoded(out.read_bytes()) == rec.read_bytes()
    assert rec.stat().st_size == 12 * frame_bytes(WIDTH, HEIGHT)
    mean = float(re.search(r"SSIM Mean Y:([\d.]+)", said)[1])
    assert 0.5 < mean < 1


@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_containers_hold_the_same_frames_at_the_right_times(clip, tmp_path, ending):
    av = pytest.importorskip("av")
    plain, out = tmp_path / "o.264", tmp_path / f"o.{ending}"
    words = ["--frames", "12", "--fps", "30000/1001", "--keyint", "5", "--quiet"]
    assert main(["encode", str(clip), str(plain), *words]) == main(["encode", str(clip), str(out), *words]) == 0
    assert decoded(out) == decoded(plain.read_bytes())
    with av.open(str(out)) as container:
        stream = container.streams.video[0]
        packets = [packet for packet in container.demux(stream) if packet.size]
        keys = [packet.is_keyframe for packet in packets]
        times = [Fraction(packet.pts) * packet.time_base for packet in packets]
    assert keys == [n % 5 == 0 for n in range(12)]
    near = Fraction(1, 900)  # Matroska counts milliseconds
    assert times != sorted(times), "no B frame"
    assert all(abs(time - n * Fraction(1001, 30000)) < near for n, time in enumerate(sorted(times)))
    if ending == "mp4":
        data = out.read_bytes()
        assert data.index(b"moov") < data.index(b"mdat"), "faststart"


def test_an_interrupted_encode_decodes(tmp_path):
    rng = np.random.default_rng(4)
    source, out, rec = tmp_path / "x_64x48.yuv", tmp_path / "o.264", tmp_path / "r.yuv"
    source.write_bytes(rng.integers(0, 256, frame_bytes(64, 48) * 4000, np.uint8).tobytes())
    words = ["encode", str(source), str(out), "--dump-yuv", str(rec), "--qp", "40"]
    process = subprocess.Popen([sys.executable, "-m", "h264lite", *words], stderr=subprocess.PIPE)
    wait_for_bytes(rec, 5 * frame_bytes(64, 48), process)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    said = process.stderr.read().decode()
    assert process.wait(30) == 130 and time.monotonic() - begin < 20
    held = int(re.search(r"the output holds (\d+) frames", said)[1])
    assert rec.stat().st_size == held * frame_bytes(64, 48) > 0
    assert decoded(out.read_bytes()) == rec.read_bytes()


def test_a_full_disk_leaves_a_stream_that_decodes(clip, tmp_path):
    resource = pytest.importorskip("resource")
    out = tmp_path / "o.264"
    words = [sys.executable, "-m", "h264lite", "encode", str(clip), str(out), "--qp", "20", "--keyint", "4"]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))

    done = subprocess.run(words, stderr=subprocess.PIPE, preexec_fn=limit, timeout=120)
    said = done.stderr.decode()
    held = int(re.search(r"file too large; the output holds (\d+) frames", said)[1])
    assert done.returncode == 1 and 0 < held < 12
    assert len(decoded(out.read_bytes())) == held * frame_bytes(WIDTH, HEIGHT)
