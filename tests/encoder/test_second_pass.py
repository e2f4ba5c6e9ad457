"""Two passes: the rate comes out, with better pictures than in one pass; files of other encodes are refused by name."""

import csv
import json
import re
import warnings

import av
import h264lite
import h264lite.compat
import numpy as np
import pytest
from h264lite.cli import cli
from h264lite.encoder.decisions.second_pass import FirstPassSizes, rate_factor, stream_bits
from h264lite.encoder.settings.config import Config

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..support import hrd_model, round_trip
from .test_bitrate import FPS, HEIGHT, WIDTH, clip

FAST = {"preset": "superfast", "threads": 1, "fps": FPS}


def encode(frames, number, path, **options):
    """The stream of a pass."""
    return round_trip.encode(frames, WIDTH, HEIGHT, pass_=number, stats=path, **{**FAST, **options})[0]


def kbps(data, frames):
    return 8 * len(data) * FPS / frames / 1000


def changing(frames):
    """A moving picture, which becomes noisy."""
    return [*clip("texture", frames)[: frames // 2], *clip("noise", frames)[frames // 2 :]]


def luma_mse(data, frames):
    """Mean squared error over all frames."""
    pairs = zip(round_trip.ffmpeg_frames(data), frames, strict=True)
    return np.mean([((shown[0].astype(int) - source[0]) ** 2).mean() for shown, source in pairs])


@pytest.mark.parametrize("bframes", (0, 3))
@pytest.mark.parametrize(("kind", "rate", "within"), (
    ("texture", 150, 0.005), ("cuts", 250, 0.005), ("fade", 120, 0.007), ("noise", 500, 0.005),
))  # fmt: skip
def test_the_rate_comes_out(kind, rate, within, bframes, tmp_path):
    frames, path = clip(kind, 260), tmp_path / "stats"
    encode(frames, 1, path, bitrate=rate, bframes=bframes)
    assert kbps(encode(frames, 2, path, bitrate=rate, bframes=bframes), 260) == pytest.approx(rate, rel=within)


@pytest.mark.parametrize("bframes", (0, 2))
def test_changing_content_is_better_than_in_one_pass(bframes, tmp_path):
    frames, path = changing(260), tmp_path / "stats"
    options = {"bitrate": 300, "bframes": bframes, "tune": "psnr"}
    one = round_trip.encode(frames, WIDTH, HEIGHT, **FAST, **options)[0]
    encode(frames, 1, path, **options)
    two = encode(frames, 2, path, **options)
    assert kbps(two, 260) == pytest.approx(300, rel=0.02) and len(two) < 1.01 * len(one)
    assert luma_mse(two, frames) < 0.9 * luma_mse(one, frames)


def test_a_first_pass_at_a_rate_factor_will_do(tmp_path):
    frames, path = clip("cuts", 260), tmp_path / "stats"
    encode(frames, 1, path, crf=20, bframes=2)
    assert kbps(encode(frames, 3, path, bitrate=200, bframes=2), 260) == pytest.approx(200, rel=0.02)
    assert kbps(encode(frames, 2, path, bitrate=200, bframes=2), 260) == pytest.approx(200, rel=0.01)


OPTIONS = ({"bframes": 3}, {"bframes": 0, "no_mbtree": True, "aq_mode": 0}, {"bframes": 2, "b_adapt": 2, "zones": "5,9,q=30"},
           {"bframes": 2, "vbv_maxrate": 220, "vbv_bufsize": 220, "nal_hrd": "vbr"})  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_stream_is_that_of_any_number_of_threads_with_the_types_of_the_first_pass(options, tmp_path):
    frames, streams, stats = clip("cuts", 60), set(), set()
    for threads in (1, 2, 4):
        path = tmp_path / f"{threads}"
        encode(frames, 1, path, bitrate=150, **{**options, "threads": threads})
        types = re.findall("(?:IDR|I|P|B)(?= [01] )", path.read_text())
        stats.add(path.read_bytes())
        streams |= {encode(frames, number, path, bitrate=150, **{**options, "threads": threads}) for number in (2, 3)}
        assert types == re.findall("(?:IDR|I|P|B)(?= [01] )", path.read_text())
    assert len(streams) == len(stats) == 1
    shown = [av.video.frame.PictureType(frame.pict_type).name for frame in decoded(streams.pop())]
    of_display = dict(re.findall(r"^\d+ (\d+) (?:IDR|(?=[IPB]))([IPB]?) [01] ", path.read_text(), re.MULTILINE))
    assert shown == [of_display[str(n)] or "I" for n in range(60)]


def decoded(data):
    codec = av.CodecContext.create("h264", "r")
    return [frame for packet in (*codec.parse(data), *codec.parse(b""), None) for frame in codec.decode(packet)]


@on_gpus
@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
def test_a_gpu_writes_the_stream_and_the_file_of_the_cpu(driver, options, tmp_path):  # noqa: F811
    small = [(y[:48, :64], u[:24, :32], v[:24, :32]) for y, u, v in clip("cuts", 26)]
    by_device = []
    for device in ("cpu", "cuda"):
        given = {**FAST, "bitrate": 150, "stats": tmp_path / device, "device": device, "threads": 2, **options}
        first, second = (round_trip.encode(small, 64, 48, pass_=number, **given)[0] for number in (1, 2))
        by_device.append((first, second, (tmp_path / device).read_bytes()))
    assert by_device[0] == by_device[1]


def test_the_stream_decodes_exactly(tmp_path):
    frames, path = clip("cuts", 50), tmp_path / "stats"
    encode(frames, 1, path, bitrate=120, bframes=2)
    with h264lite.Encoder(WIDTH, HEIGHT, FPS, preset="fast", bitrate=120, bframes=2, pass_=2, stats=path,
                          keep_reconstruction=True) as encoder:  # fmt: skip
        packets = round_trip.packets_of(encoder, frames)
    shown = [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]
    round_trip.assert_same(round_trip.ffmpeg_frames(b"".join(packet.data for packet in packets)), shown, "FFmpeg")


@pytest.mark.parametrize(("change", "says"), (
    ({"width": WIDTH - 16}, "width 96 there, 80 here"), ({"fps": 30}, "fps 25 there, 30 here"), ({"keyint": 20}, "keyint"),
    ({"bframes": 1}, "bframes"), ({"b_pyramid": "none"}, "b-pyramid"), ({"scenecut": 0}, "scenecut"), ({"seek": 1}, "seek"),
    ({"no_mbtree": True}, "mbtree"), ({"aq_mode": 0}, "aq-mode"), ({"zones": "1,2,q=3"}, "requests"),
    ({"qcomp": 0.7}, "qcomp"),
))  # fmt: skip
def test_the_file_of_another_encode_is_refused_by_name(change, says, statistics):
    with pytest.raises(h264lite.OptionError, match=f"of another encode .*{says}") as caught:
        Config.from_options(**{**statistics, **change})
    assert caught.value.option == "stats"


@pytest.fixture
def statistics(tmp_path):
    """Options of a second pass, behind a first one."""
    encode(clip("texture", 12), 1, tmp_path / "stats", bitrate=120, bframes=2)
    return {**FAST, "width": WIDTH, "height": HEIGHT, "device": "cpu", "bitrate": 120, "bframes": 2, "pass_": 2,
            "stats": str(tmp_path / "stats")}  # fmt: skip


@pytest.mark.parametrize(("pattern", "text", "says"), (
    (r"encoder=\S+", "encoder=0.0.9", "encoder 0.0.9 there"), (r"statistics 1", "statistics 2", "another encode"),
    (r"^h264lite.*\n", "", "no statistics"), (r"\n[^\n]*\n\Z", "\n", "12 frames and has lines of 11"),
    (r"(\n0 0 IDR 1) \d+", r"\1 x", "line 3"), (r"(\n0 0 IDR 1) \d+", r"\1 " + "9" * 30, "line 3"),
    (r" IDR ", " P ", "frame 0 cannot be of type P"), (r"\n1 (\d+) P ", r"\n1 12 P ", "frame 12 of 12"),
    (r"\n1 (\d+) P 1 ", r"\n1 \1 P 0 ", "no order"), (r"coding display", "display coding", "line 2"),
    (r"(?s).*", "", "no statistics"), (r"(?s).*", "\u00e9", "no statistics"),
))  # fmt: skip
def test_a_broken_file_is_refused(pattern, text, says, statistics, tmp_path):
    old = (tmp_path / "stats").read_text()
    new, count = re.subn(pattern, text, old, count=1)
    (tmp_path / "stats").write_text(new, encoding="utf-8")
    assert count and new != old
    with pytest.raises(h264lite.OptionError, match=says) as caught:
        Config.from_options(**statistics)
    assert caught.value.option == "stats"


def test_a_file_that_is_missing_or_cannot_be_written(tmp_path):
    missing = tmp_path / "none" / "stats"
    with pytest.raises(h264lite.OptionError, match="No such file: the same command with pass_ 1 writes it"):
        encode([], 2, missing, bitrate=100)
    with pytest.raises(h264lite.Error, match="No such file"):
        encode(clip("texture", 1), 1, missing, bitrate=100)


@pytest.mark.parametrize(("options", "says"), (
    ({"pass_": 2}, "allots the bits of bitrate"), ({"pass_": 3, "crf": 20}, "allots"), ({"pass_": 1, "qp": 30}, "constant"),
    ({"stats": "x"}, "no effect without pass_"), ({"pass_": 4}, "not in 0..3"),
))  # fmt: skip
def test_passes_without_a_rate_are_refused(options, says):
    with pytest.raises(h264lite.OptionError, match=says):
        Config.from_options(width=64, height=48, **options)


def test_x264s_names_are_taken(statistics):
    given = {name: value for name, value in statistics.items() if name != "pass_"}
    assert Config.from_options(**given, **{"pass": 2}).rate.first_pass is not None


def test_ffmpegs_names_are_taken(tmp_path):
    video = np.stack([np.repeat(luma[:, :, None], 3, 2) for luma, _, _ in clip("cuts", 50)])
    for number in ("1", "2"):
        options = {"b": "150k", "pass": number, "passlogfile": str(tmp_path / "log"), "preset": "superfast", "bf": "2"}
        h264lite.compat.write_video(tmp_path / "a.mp4", video, FPS, options=options)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.mp4", "log"]
    assert 8 * (tmp_path / "a.mp4").stat().st_size * FPS / 50 / 1000 == pytest.approx(150, rel=0.1)


def test_gops_at_once_leave_the_same_file(tmp_path):
    for gops in (1, 3):
        encode(clip("cuts", 50), 1, tmp_path / f"{gops}", crf=25, keyint=12, gops=gops, bframes=2, threads=4)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()


def test_the_first_pass_has_fast_tools_unless_the_user_asks_for_others():
    given = {"width": 64, "height": 48, "preset": "slower", "pass_": 1, "bitrate": 100, "device": "cpu"}
    fast, slow = (Config.from_options(**given, slow_firstpass=is_slow).coding for is_slow in (False, True))
    assert (fast.ref, fast.subme, fast.trellis, fast.transform_8x8_mode) == (1, 2, 0, False)
    assert (slow.ref, slow.subme, slow.trellis, slow.transform_8x8_mode) == (4, 9, 1, True)
    assert Config.from_options(**given, ref=2, trellis=1).coding.ref == 2


def test_more_or_fewer_frames_than_in_the_first_pass(statistics):
    frames, more = clip("texture", 12), {name: value for name, value in statistics.items() if name not in ("width", "height")}
    with h264lite.Encoder(WIDTH, HEIGHT, **more) as encoder:
        packets = [packet for planes in frames for packet in encoder.encode(planes)]
        with pytest.raises(h264lite.InputError, match=r"stats: .* of 12 frames, and more come"):
            encoder.encode(frames[0])
        assert len(packets + encoder.flush()) == 12
    with pytest.warns(RuntimeWarning, match=r"stats: .* of 12 frames, and 7 have come"):
        data, _ = round_trip.encode(frames[:7], WIDTH, HEIGHT, **more)
    assert len(round_trip.ffmpeg_frames(data)) == 7


def test_an_encode_that_is_given_up_leaves_the_old_file(statistics, tmp_path):
    old = (tmp_path / "stats").read_bytes()
    with h264lite.Encoder(**{**statistics, "pass_": 3}) as encoder:
        encoder.encode(clip("texture", 1)[0])
    assert (tmp_path / "stats").read_bytes() == old and [path.name for path in tmp_path.iterdir()] == ["stats"]


def test_the_rate_factor_is_that_of_the_rate(statistics):
    config = Config.from_options(**statistics)
    sizes, factor = FirstPassSizes(config), rate_factor(config)
    less, more = (int(sizes.with_factor(slice(None), factor + step).sum()) for step in (0, -1))
    assert less <= stream_bits(config) < more


@pytest.mark.parametrize(("bitrate", "says"), (
    (121, ""), (1200, "times fewer bits than --bitrate 1200"), (9, "times more bits"),
))  # fmt: skip
def test_a_first_pass_at_a_very_different_rate_is_warned_of(bitrate, says, statistics, recwarn, monkeypatch):
    """Once, also where several parts are coded at once."""
    monkeypatch.setattr("h264lite.encoder.gops.gops._sections_of", lambda first: (range(6), range(6, 12)))
    for gops in (1, 2):
        recwarn.clear()
        warnings.simplefilter("always")
        h264lite.Encoder(**{**statistics, "bitrate": bitrate, "gops": gops, "threads": 2}).close()
        texts = [str(warning.message) for warning in recwarn]
        assert len(texts) == bool(says) and all(says in text and "--pass 3 before --pass 2" in text for text in texts)


def test_a_buffer_is_kept(tmp_path):
    options = {"bitrate": 150, "vbv_maxrate": 200, "vbv_bufsize": 100, "nal_hrd": "vbr", "bframes": 2}
    frames = clip("cuts", 120)
    encode(frames, 1, tmp_path / "stats", **options)
    data = encode(frames, 2, tmp_path / "stats", **options)
    assert not hrd_model.check(data).problems
    assert kbps(data, 120) == pytest.approx(150, rel=0.03)


def test_the_command_line_has_two_passes_and_tells_predicted_bits(tmp_path, capsys):
    source, path = round_trip.write_raw(clip("cuts", 60), tmp_path), tmp_path / "a.stats"
    words = ["encode", str(source), "--fps", "25", "--preset", "superfast", "--bframes", "2", "--bitrate", "150", "--quiet"]
    passes = ["--stats", str(path), str(tmp_path / "a.264")]
    assert cli.main([*words, "-p", "1", *passes]) == 0
    assert cli.main([*words, "--pass", "2", "--csv", str(tmp_path / "csv"), "--json", str(tmp_path / "json"), *passes]) == 0
    with open(tmp_path / "csv", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    ratios = [int(row["bits_predicted"]) / (8 * int(row["bytes"])) for row in rows]
    assert len(rows) == 60 and 0.5 < np.median(ratios) < 2
    summary = json.loads((tmp_path / "json").read_text())
    assert summary["all"]["bits_predicted"] == sum(int(row["bits_predicted"]) for row in rows)
    assert cli.main([*words, "--pass", "2", "--frames", "50", *passes]) == 2
    assert "of 60 frames, and there are 50" in capsys.readouterr().err
    assert cli.main([*words, "--pass", "1", "--stats", str(source), str(tmp_path / "b.264")]) == 2
    assert "the same" in capsys.readouterr().err


def test_a_still_picture_does_not_end_in_a_burst(tmp_path):
    """The frames after the last IDR frame have hardly any bits, by which a deviation cannot be made good."""
    base, rng = clip("texture", 1)[0], np.random.default_rng(1)
    frames = [(np.clip(base[0] + rng.integers(-1, 2, base[0].shape), 0, 255).astype(np.uint8), *base[1:]) for _ in range(260)]
    encode(frames, 1, tmp_path / "stats", bitrate=60, bframes=3)
    for number in (3, 2):
        data = encode(frames, number, tmp_path / "stats", bitrate=60, bframes=3)
        assert kbps(data, 260) == pytest.approx(60, rel=0.02)
