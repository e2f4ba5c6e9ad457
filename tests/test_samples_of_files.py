"""The samples for a variable frame rate and for HLS and DASH run, and what they write is what their texts say."""

import sys

import pytest
from h264lite.samples import live_hls, variable_rate

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
