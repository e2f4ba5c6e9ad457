"""The samples that write files or serve clips run, and what comes out is what their texts say."""

import json
import sys
import threading
import urllib.error
import urllib.request
from http.server import ThreadingHTTPServer

import h264lite
import numpy as np
import pytest
from h264lite.samples import clip_over_http, data_set, live_hls, variable_rate

from .encoder.test_given_times import demuxed
from .mp4.test_playlists import listed, packets_of


def run(program, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["program", *map(str, words)])
    assert program.main() == 0


def test_variable_rate(tmp_path, monkeypatch, capsys):
    pytest.importorskip("av")
    run(variable_rate, monkeypatch, tmp_path / "new" / "o.mp4")
    times, _ = demuxed(tmp_path / "new" / "o.mp4")
    steps = [float(b - a) for a, b in zip(times, times[1:])]
    assert len(times) == variable_rate.FRAMES and times[0] == 0
    assert 0.016 < min(steps) < 0.03 and 0.09 < max(steps) < 0.126
    assert "60 frames in" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
def test_live_hls(tmp_path, monkeypatch, capsys, ending):
    pytest.importorskip("av")
    monkeypatch.setattr(live_hls.time, "sleep", lambda seconds: None)
    run(live_hls, monkeypatch, tmp_path / "live" / f"stream.{ending}", 5)
    first, segments, is_complete = listed(tmp_path / "live" / f"stream.{ending}")
    assert is_complete and [float(seconds) for seconds, _ in segments] == [2, 2, 1]
    assert len(packets_of(*(tmp_path / "live" / name for name in (first, *(file for _, file in segments))))) == 125
    assert "3 segments" in capsys.readouterr().out


def test_data_set(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "new"
    run(data_set, monkeypatch, folder)
    assert "4 episodes, 110 frames" in capsys.readouterr().out
    lengths = json.loads((folder / "index.json").read_text())
    assert list(lengths.values()) == [20, 25, 30, 35]
    for number, name in enumerate(lengths):
        with h264lite.VideoReader(folder / name) as reader:
            assert len(reader) == lengths[name] and reader.key_frames.tolist() == list(range(0, len(reader), 2))
            assert reader.metadata.tags["com.example.seed"] == str(number)
            original = list(data_set.episode(number))[7].astype(int)
            assert np.abs(reader[7] - original).mean() < 6
    assert data_set.batch(folder, 5, 3).shape == (5, 96, 96, 3)


@pytest.fixture
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), clip_over_http.Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("form", clip_over_http.FORMS)
def test_clip_over_http(address, form):
    pytest.importorskip({"pil": "PIL"}.get(form, form))
    with urllib.request.urlopen(f"{address}/clip.mp4?seed=5&form={form}", timeout=300) as answer:
        assert answer.headers["Content-Type"] == "video/mp4"
        reader = h264lite.VideoReader(answer.read())
    frames = clip_over_http.frames_of(5, "numpy")
    assert len(reader) == len(frames) and reader.metadata.tags == {"title": "seed 5"}
    assert np.abs(reader[10] - frames[10].astype(int)).mean() < 12
    for wrong in ("/", "/clip.mp4?seed=x", "/clip.mp4?form=gif"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address + wrong, timeout=60)
