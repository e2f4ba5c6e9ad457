"""Parts of a second pass, which lanes code at once: the rate comes out, and the stream is the same for any number of them."""

import os
from types import SimpleNamespace

import h264lite
import pytest
from h264lite.cli import cli
from h264lite.encoder.decisions import second_pass
from h264lite.encoder.decisions.rate_control import RateControl
from h264lite.encoder.decisions.second_pass import WholeStream, sections_of, stream_bits
from h264lite.encoder.gops.gops import count_lanes
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.frame_spec import FrameSpec

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..inside import changed
from ..support import round_trip
from .test_bitrate import FPS, HEIGHT, WIDTH, clip

FAST = {"preset": "superfast", "fps": FPS, "bframes": 2, "bitrate": 150, "keyint": 12}


@pytest.fixture
def short_parts(monkeypatch):
    """Parts of 15 frames or more: of two GOPs of 12."""
    monkeypatch.setattr(second_pass, "_LEAST_SECTION", 15)


def encode(frames, number, path, **options):
    """The stream of a pass."""
    height, width = frames[0][0].shape
    return round_trip.encode(frames, width, height, pass_=number, stats=path, **{**FAST, "threads": 1, **options})[0]


def starts(types):
    """The first frames of the parts of a stream with these types."""
    return [section.start for section in sections_of(SimpleNamespace(types=types.split(" ")))]


def test_parts_are_gops_and_not_short(monkeypatch):
    monkeypatch.setattr(second_pass, "_LEAST_SECTION", 3)
    assert starts("IDR P P IDR P P IDR P P") == [0, 3, 6]
    assert starts("IDR IDR P I P IDR IDR P P P") == [0, 5]
    assert starts("IDR P P IDR P") == starts("IDR P") == starts("IDR P P I P P") == [0]
    assert [*sections_of(SimpleNamespace(types=("IDR", "P", "P") * 2))] == [range(3), range(3, 6)]


@pytest.mark.parametrize("count", (50, 62))
def test_the_stream_and_the_file_do_not_depend_on_the_number_of_gops(count, short_parts, tmp_path):
    frames, path, outcomes = clip("cuts", count), tmp_path / "stats", set()
    encode(frames, 1, path)
    first = path.read_bytes()
    for options in ({}, {"gops": 2}, {"gops": 4, "threads": 3}):
        path.write_bytes(first)
        second = encode(frames, 2, path, **options)
        outcomes.add((second, encode(frames, 3, path, **options), path.read_bytes()))
    assert len(outcomes) == 1
    assert len(round_trip.ffmpeg_frames(second)) == count


def test_the_command_line_codes_parts_at_once(short_parts, tmp_path):
    source, path = round_trip.write_raw(clip("fade", 60), tmp_path), tmp_path / "stats"
    words = ["encode", str(source), "--quiet", "--fps", "25", "--preset", "superfast", "--bitrate", "150", "--keyint", "12",
             "--bframes", "2", "--stats", str(path)]  # fmt: skip
    assert cli.main([*words, "--pass", "1", os.devnull, "--muxer", "raw"]) == 0
    for gops in ("1", "auto", "3"):
        assert cli.main([*words, "--pass", "2", "--gops", gops, "--threads", "3", str(tmp_path / f"{gops}.264")]) == 0
    assert len({(tmp_path / f"{gops}.264").read_bytes() for gops in ("1", "auto", "3")}) == 1


@on_gpus
@pytest.mark.parametrize("options", ({}, {"gops": 2}), ids=str)
def test_a_gpu_writes_the_stream_of_the_cpu(driver, options, short_parts, tmp_path):  # noqa: F811
    small = [(y[:48, :64], u[:24, :32], v[:24, :32]) for y, u, v in clip("cuts", 50)]
    encode(small, 1, tmp_path / "stats", device="cpu")
    expected = encode(small, 2, tmp_path / "stats", device="cpu")
    assert encode(small, 2, tmp_path / "stats", device="cuda", **options) == expected


@pytest.mark.parametrize(("kind", "rate", "bframes"), (
    ("texture", 150, 3), ("cuts", 250, 0), ("fade", 120, 0), ("fade", 120, 3),
))  # fmt: skip
def test_the_rate_comes_out(kind, rate, bframes, monkeypatch, tmp_path):
    monkeypatch.setattr(second_pass, "_LEAST_SECTION", 90)
    frames, options = clip(kind, 270), {"bitrate": rate, "bframes": bframes, "keyint": 45}
    encode(frames, 1, tmp_path / "stats", **options)
    data = encode(frames, 2, tmp_path / "stats", **options)
    assert 8 * len(data) * FPS / 270 / 1000 == pytest.approx(rate, rel=0.01)


@pytest.fixture
def config(short_parts, tmp_path):
    """A second pass with sections of 24 and 38 frames: the last GOPs are too short for a section."""
    encode(clip("texture", 62), 1, tmp_path / "stats", scenecut=0)
    given = {**FAST, "scenecut": 0, "width": WIDTH, "height": HEIGHT, "device": "cpu", "pass_": 2}
    return Config.from_options(**given, stats=str(tmp_path / "stats"))


def test_the_parts_share_the_bits_of_the_stream(config):
    sections, whole = sections_of(config.rate.first_pass), WholeStream(config)
    assert [*map(len, sections)] == [24, 38]
    shares = [whole.share(section) for section in sections]
    assert 0 <= stream_bits(config) - sum(shares) < len(sections) and min(shares) > 0.2 * stream_bits(config)


def settled_qps(control, section, bits):
    """QPs of the frames of a section, all of which come out with so many bits."""
    qps, finished = [], section.start
    for n in section:
        while finished <= n - control.lag(n):
            control.add(finished, bits)
            finished += 1
        spec = FrameSpec(n, n, n // 12, "P", False, True, n, 2 * n, 0, 28, 0, (n - 1,), (n,), ((0, 5),))
        qps.append(control.assign_qp(spec, ())[0].qp)
    for n in range(finished, section.stop):
        control.add(n, bits)
    return qps


def test_corrections_begin_anew_with_a_part(config):
    """A lane that has not coded the part before takes the same QPs."""
    sections = sections_of(config.rate.first_pass)
    both, second = RateControl(config), RateControl(config)
    assert max(settled_qps(both, sections[0], 200_000)) > max(settled_qps(RateControl(config), sections[0], 2_000))
    assert settled_qps(both, sections[1], 4_000) == settled_qps(second, sections[1], 4_000)
    assert [second.lag(n) for n in (24, 28, 38, 61)] == [1, 1, 6, 8]


def test_lanes_are_no_more_than_parts(config):
    assert count_lanes(config, 62) <= 2
    many = changed(config, gops=16)
    assert count_lanes(many, 62) == count_lanes(many, None) == 2


def test_gops_at_once_are_refused_where_they_would_change_the_stream(tmp_path):
    encode(clip("cuts", 30), 1, tmp_path / "stats", vbv_maxrate=200, vbv_bufsize=200)
    given = {**FAST, "width": WIDTH, "height": HEIGHT, "device": "cpu", "gops": 2}
    with pytest.raises(h264lite.OptionError, match="one GOP after another"):
        Config.from_options(**given)
    with pytest.raises(h264lite.OptionError, match="a buffer is filled by one GOP after another"):
        Config.from_options(**given, pass_=2, stats=str(tmp_path / "stats"), vbv_maxrate=200, vbv_bufsize=200)
