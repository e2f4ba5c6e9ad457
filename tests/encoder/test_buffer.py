"""The promised buffer: streams through a model of Annex C, frames that are coded again, the same bytes, refusals by name."""

import re
import warnings
from fractions import Fraction

import av
import h264lite
import numpy as np
import pytest
from av.bitstream import BitStreamFilterContext
from h264lite.cli import cli
from h264lite.encoder.decisions.adaptive_quantisation import shifted
from h264lite.encoder.decisions.buffer_control import BufferControl
from h264lite.encoder.decisions.fixed_point import LOG2_SHIFT
from h264lite.encoder.decisions.size_model import SizeModel
from h264lite.encoder.errors import OptionError
from h264lite.encoder.settings.config import Config
from h264lite.encoder.statistics import FrameRow
from h264lite.scheduler.frame_spec import FrameSpec

from ..cuda_emulator.fixtures import driver, gpu, launches_by_frame, on_gpus  # noqa: F401
from ..support import hrd_model, level_limits, round_trip
from .test_cuda_streams import compare

WIDTH, HEIGHT, FPS = 64, 48, 25
SMALL = {"device": "cpu", "preset": "superfast", "threads": 1}
BUFFER = {"crf": 18, "vbv_maxrate": 150, "vbv_bufsize": 60, "nal_hrd": "vbr"}


def bursts(frames, seed):
    """Still frames, pans and noise in turn: sizes of frames that differ a lot."""
    rng = np.random.default_rng(seed)
    base = round_trip.noise_clip(2 * WIDTH, HEIGHT, 1, seed)[0]
    clip = []
    while len(clip) < frames:
        kind, strength = rng.integers(0, 3), int(rng.integers(1, 120))
        for k in range(int(rng.integers(2, 7))):
            left = 2 * k if kind == 1 else 0
            planes = [plane[:, left // unit : left // unit + WIDTH // unit] for plane, unit in zip(base, (1, 2, 2))]
            noise = [rng.integers(-strength, strength + 1, plane.shape) * (kind == 2) for plane in planes]
            clip.append(tuple(np.clip(p.astype(int) + n, 0, 255).astype(np.uint8) for p, n in zip(planes, noise)))
    return clip[:frames]


CLIP = bursts(24, 5)


def encoded(clip=CLIP, fps=FPS, **options):
    """(the stream, frames with their rows in coding order)."""
    with h264lite.Encoder(WIDTH, HEIGHT, fps, keep_reconstruction=True, **{**SMALL, **options}) as encoder:
        pairs = round_trip.finished(encoder, clip)
    return b"".join(frame.data for frame, _ in pairs), pairs


def decoded_alike(stream, pairs):
    shown = [frame.reconstruction for frame, _ in sorted(pairs, key=lambda pair: pair[0].index)]
    round_trip.assert_same(round_trip.own_frames(stream), shown, "own decoder")
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), shown, "FFmpeg")


def agree(report, pairs):
    """The model finds in the stream what the encoder says of its buffer, which is rounded down to a bit."""
    for (frame, row), room in zip(pairs, report.room):
        assert abs(room - row.in_buffer.there) <= 1, frame.coding_index
        assert row.in_buffer.left == row.in_buffer.there - 8 * len(frame.data)
    first = report.output[0] - report.removal[0]
    frame = Fraction(2 * report.sps.vui.num_units_in_tick, report.sps.vui.time_scale)
    delays = [(shown - removed - first) / frame for shown, removed in zip(report.output, report.removal)]
    lag = pairs[0][0].pts - pairs[0][0].dts
    assert delays == [one.pts - one.dts - lag for one, _ in pairs], "output is that of pts, removal that of dts"


@pytest.mark.parametrize("options", [
    {}, {"nal_hrd": "cbr"}, {"bframes": 3, "keyint": 8}, {"bframes": 4, "b_pyramid": "dyadic", "nal_hrd": "cbr", "aud": True},
    {"keyint": 1}, {"keyint": 5, "crf": 30, "no_cabac": True, "nal_hrd": "cbr", "scenecut": 40}, {"tune": "zerolatency"},
    {"aq_mode": 1, "bframes": 2, "slices": 2}, {"no_mbtree": True, "rc_lookahead": 5, "pic_struct": True, "info_sei": True},
    {"profile": "baseline", "vbv_init": 0.1}, {"vbv_bufsize": 7, "nal_hrd": "cbr"},
    {"fps": Fraction(30000, 1001), "keyint": 4},
], ids=str)  # fmt: skip
def test_streams_keep_the_buffer(options):
    stream, pairs = encoded(**{**BUFFER, **options})
    report = hrd_model.check(stream)
    assert not report.problems
    agree(report, pairs)
    decoded_alike(stream, pairs)
    size = {row.in_buffer.size for _, row in pairs}
    assert len(size) == 1 and all(0 <= row.in_buffer.left <= row.in_buffer.there <= max(size) for _, row in pairs)
    assert bool(sum(unit.filler for unit in report.units)) == (options.get("nal_hrd") == "cbr")


@pytest.fixture
def too_small(monkeypatch):
    """Predicted sizes are an eighth of what they should be, so that many frames do not fit at first."""
    predicted = SizeModel.steps
    monkeypatch.setattr(SizeModel, "steps", lambda model, specs: predicted(model, specs) - (3 << LOG2_SHIFT))


def test_frames_are_coded_again_until_they_fit(too_small):
    rng = np.random.default_rng(1)
    still = CLIP[0]
    noise = tuple(rng.integers(0, 256, plane.shape).astype(np.uint8) for plane in still)
    clip = [still] * 4 + [noise, still, noise, noise, still]
    options = {"crf": 10, "vbv_maxrate": 200, "vbv_bufsize": 12, "nal_hrd": "vbr", "rc_lookahead": 0}
    stream, pairs = encoded(clip, **options)
    assert max(row.in_buffer.tries for _, row in pairs) > 1
    assert not hrd_model.check(stream).problems
    decoded_alike(stream, pairs)
    for more in ({"threads": 3}, {"threads": 2, "bits_by_kind": True}):
        assert encoded(clip, **options, **more)[0] == stream
    with h264lite.Encoder(WIDTH, HEIGHT, FPS, **SMALL, **options) as encoder:
        round_trip.finished(encoder, clip)
        again = encoder.stats.summary()["buffer"]
        assert any("coded again" in line for line in encoder.stats.lines())
    assert again["coded_again"] == sum(row.in_buffer.tries > 1 for _, row in pairs) > 0
    assert again["tries"] == sum(row.in_buffer.tries for _, row in pairs)


@pytest.mark.parametrize("options", [
    {"bframes": 3, "keyint": 9}, {"rc_lookahead": 0, "weightp": 1, "ref": 2}, {"aq_mode": 2, "bframes": 2, "nal_hrd": "cbr"},
], ids=str)  # fmt: skip
def test_the_same_bytes_for_threads(options, too_small):
    stream, pairs = encoded(**{**BUFFER, "crf": 12, "vbv_bufsize": 20, **options})
    assert any(row.in_buffer.tries > 1 for _, row in pairs)
    decoded_alike(stream, pairs)
    assert encoded(**{**BUFFER, "crf": 12, "vbv_bufsize": 20, **options, "threads": 4})[0] == stream


@pytest.mark.parametrize("options", [{"keyint": 4}, {"bframes": 2, "nal_hrd": "cbr"}], ids=str)
def test_the_bytes_of_the_cpu_on_gpus(gpu, options, too_small):  # noqa: F811
    clip = round_trip.noise_clip(34, 34, 7, 3)
    clip[4:] = round_trip.noise_clip(34, 34, 3, 4)
    settings = {"crf": 12, "vbv_maxrate": 120, "vbv_bufsize": 9, "rc_lookahead": 0, "threads": 1, "preset": "superfast"}
    pairs = round_trip.rows(clip, 34, 34, device="cpu", **settings, **options)
    assert any(frame.in_buffer.tries > 1 for frame, _ in pairs)
    compare(clip, 34, 34, **settings, **options)


@on_gpus
@pytest.mark.parametrize("options", [{"keyint": 4, "ref": 2}, {"bframes": 2, "nal_hrd": "cbr"}], ids=str)
def test_a_gpu_that_is_lost_between_tries(driver, options, too_small):  # noqa: F811
    clip = round_trip.noise_clip(34, 34, 7, 3)
    settings = {"crf": 12, "vbv_maxrate": 120, "vbv_bufsize": 9, "rc_lookahead": 0, "threads": 1, "preset": "superfast"}
    pairs = round_trip.rows(clip, 34, 34, device="cpu", **settings, **options)
    assert sum(frame.in_buffer.tries for frame, _ in pairs) > len(clip) + 3
    expected = b"".join(frame.data for frame, _ in pairs)
    counts = launches_by_frame(driver, clip, lambda: h264lite.Encoder(34, 34, 25, device="cuda", **settings, **options))
    for part in (2, 5, 10):
        driver.launches, driver.fail_after = counts[0], counts[0] + (counts[-1] - counts[0]) * part // 12
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            stream, _ = round_trip.encode(clip, 34, 34, **settings, **options)
        driver.fail_after = None
        assert len([one for one in said if "on the CPU" in str(one.message)]) >= 1
        assert stream == expected, part


def test_an_underflow_is_told():
    """Noise at 1 kbit a frame does not fit at any QP: the frame is named, and the model finds the same."""
    rng = np.random.default_rng(2)
    clip = [tuple(rng.integers(0, 256, plane.shape).astype(np.uint8) for plane in CLIP[0]) for _ in range(5)]
    options = {"crf": 20, "vbv_maxrate": 25, "vbv_bufsize": 2, "nal_hrd": "vbr"}
    with pytest.warns(RuntimeWarning, match="frame 0 has .* underflows"):
        stream, pairs = encoded(clip, **options)
    late = [k for k, (_, row) in enumerate(pairs) if row.in_buffer.left < 0]
    assert late and late == [int(text.split()[1][:-1]) for text in hrd_model.check(stream).problems if "underflow" in text]
    assert all(frame.qp == 51 for frame, row in pairs if row.in_buffer.left < 0)
    decoded_alike(stream, pairs)


@pytest.mark.parametrize(("options", "says"), (
    ({"crf": 10, "qpmax": 15, "vbv_bufsize": 120}, "frame 0 has [0-9]+ bits, and the level allows 18432: it breaks MinCR"),
    ({"crf": 10, "crf_max": 12, "vbv_bufsize": 120, "nal_hrd": "vbr"}, "frame 0 has [0-9]+ bits, and .* breaks MinCR"),
    ({"crf": 51, "vbv_bufsize": 60, "nal_hrd": "cbr"}, "frame 0 has [0-9]+ bits, [0-9]+ of them filler data, and .* MinCR"),
    ({"crf": 10, "vbv_bufsize": 120, "nal_hrd": "vbr"}, None),
    ({"crf": 51, "vbv_bufsize": 60, "nal_hrd": "cbr", "fps": 25}, None),
))  # fmt: skip
def test_what_breaks_mincr_is_told(options, says):
    """A frame that QPs may not make small enough, or its filler data: the checker of levels finds the same."""
    rng = np.random.default_rng(2)
    clip = [tuple(rng.integers(0, 256, plane.shape).astype(np.uint8) for plane in CLIP[0])]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        stream, _ = encoded(clip, **{"fps": 1, "vbv_maxrate": 60, **options})
    decoder = h264lite.Decoder(macroblocks=True)
    problems = level_limits.problems(stream, [*decoder.decode(stream), *decoder.flush()], True)
    assert len(said) == len(problems) == (says is not None)
    for warning, problem in zip(said, problems, strict=True):
        assert re.search(says, str(warning.message)) and problem.startswith("bytes of picture 0: ")


def test_qps_are_raised_up_to_crf_max():
    """The buffer runs empty then, in as many frames as the model finds."""
    alike = {"crf": 18, "aq_mode": 0, "no_mbtree": True, "bframes": 2}
    options = {**alike, "vbv_maxrate": 60, "vbv_bufsize": 30, "nal_hrd": "vbr", "crf_max": 21.5}
    planned = [frame.qp for frame, _ in encoded(**alike)[1]]
    with pytest.warns(RuntimeWarning, match="underflows"):
        stream, pairs = encoded(**options)
    raised = [frame.qp - qp for (frame, _), qp in zip(pairs, planned, strict=True)]
    assert min(raised) >= 0 and max(raised) == 3
    late = [k for k, (_, row) in enumerate(pairs) if row.in_buffer.left < 0]
    assert late and late == [int(text.split()[1][:-1]) for text in hrd_model.check(stream).problems if "underflow" in text]
    decoded_alike(stream, pairs)


@pytest.mark.parametrize(("options", "says"), (
    ({"crf": 20, "crf_max": 30}, "no effect without"), ({**BUFFER, "crf_max": 17}, "17.0: less than crf 18.0"),
    ({"bitrate": 100, "vbv_maxrate": 200, "vbv_bufsize": 100, "crf_max": 30}, "not for bitrate"),
))  # fmt: skip
def test_crf_max_without_a_rate_factor_in_a_buffer_is_refused(options, says):
    with pytest.raises(OptionError, match=says) as caught:
        Config.from_options(width=64, height=48, **options)
    assert caught.value.option == "crf-max"


def test_ffmpeg_reads_the_same_numbers(tmp_path):
    stream, _ = encoded(**{**BUFFER, "keyint": 6, "bframes": 2, "pic_struct": True})
    (tmp_path / "stream.264").write_bytes(stream)
    level = av.logging.get_level()
    av.logging.set_level(av.logging.INFO)
    try:
        with av.open(str(tmp_path / "stream.264")) as file, av.logging.Capture() as lines:
            trace = BitStreamFilterContext("trace_headers", file.streams.video[0])
            for packet in file.demux(video=0):
                if packet.size:
                    trace.filter(packet)
    finally:
        av.logging.set_level(level)
    words = [text.split() for _, _, text in lines]

    def values(name):
        return [int(line[-1]) for line in words if len(line) > 3 and line[1] == name]

    report = hrd_model.check(stream)
    units = report.units
    assert values("cpb_removal_delay")[-len(units) :] == [unit.timing.cpb_removal_delay for unit in units]
    assert values("dpb_output_delay")[-len(units) :] == [unit.timing.dpb_output_delay for unit in units]
    delays = [unit.period.nal[0].initial_cpb_removal_delay for unit in units if unit.period]
    assert values("initial_cpb_removal_delay[0]")[-len(delays) :] == delays and len(delays) == 4
    assert not any("nvalid" in text or "rror" in text for _, _, text in lines)


def test_info_says_the_buffer(tmp_path, capsys):
    (tmp_path / "stream.264").write_bytes(encoded(**{**BUFFER, "nal_hrd": "cbr"})[0])
    assert cli.main(["info", "--nal", str(tmp_path / "stream.264")]) == 0
    text = capsys.readouterr().out
    assert "NAL HRD 149952 bit/s constant, buffer of 60000 bits" in text
    assert re.search(r"initial delay \d+ \+ \d+ of 90000", text) and "removal delay 2, output delay " in text
    assert re.search(r"\d+ NAL units with filler data, \d+ bytes", text)


def test_mp4_leaves_filler_data_out(tmp_path):
    options = {"crf": 40, "vbv_maxrate": 200, "vbv_bufsize": 100, "filler": True}
    h264lite.write_video(tmp_path / "filled.mp4", CLIP[:4], FPS, **options, **SMALL)
    data = (tmp_path / "filled.mp4").read_bytes()
    assert b"\xff" * 40 not in data
    with av.open(str(tmp_path / "filled.mp4")) as file:
        assert len(list(file.decode(video=0))) == 4
    assert b"\xff" * 40 in encoded(CLIP[:4], **options)[0]


@pytest.mark.parametrize(("options", "message"), [
    ({"vbv_maxrate": 100, "crf": 20}, "vbv_maxrate needs vbv_bufsize"),
    ({"vbv_bufsize": 100, "crf": 20}, "vbv_bufsize needs vbv_maxrate"),
    ({"qp": 20, "vbv_maxrate": 100, "vbv_bufsize": 100}, "vbv_maxrate QPs are constant"),
    ({"nal_hrd": "vbr"}, "nal_hrd has no effect"), ({"filler": True}, "filler has no effect"),
    ({"vbv_init": 0.5}, "vbv_init has no effect"),
    ({"crf": 20, "vbv_maxrate": 100, "vbv_bufsize": 3}, "vbv_bufsize 3: less than a frame .* at least 4"),
    ({"crf": 20, "vbv_maxrate": 1, "vbv_bufsize": 100000}, "vbv_bufsize 100000: .* more than 47721 s"),
    ({"crf": 20, "vbv_maxrate": 100, "vbv_bufsize": 100, "gops": 2}, "gops 2: "),
    ({"crf": 20, "vbv_maxrate": 1300000, "vbv_bufsize": 100000}, "vbv_maxrate 1300000: beyond level 6.2"),
    ({"crf": 20, "vbv_maxrate": 100, "vbv_bufsize": 1300000}, "vbv_bufsize 1300000: beyond level 6.2"),
    ({"crf": 20, "vbv_maxrate": 2000, "vbv_bufsize": 100, "level": "1.3"}, "level 1.3: does not allow 2000000 bits a second"),
    ({"crf": 20, "vbv_maxrate": 1000, "vbv_bufsize": 5000, "level": "1.3"}, "level 1.3: .* a buffer of 5000000 bits"),
    ({"nal_hrd": "abr"}, "nal_hrd abr"), ({"vbv_maxrate": -1}, "vbv_maxrate -1"),
], ids=str)  # fmt: skip
def test_refusals(options, message):
    with pytest.raises(OptionError, match=message):
        Config.from_options(width=WIDTH, height=HEIGHT, fps=FPS, **{**SMALL, **options})


def test_the_level_holds_rate_and_buffer():
    def level(**options):
        given = {**SMALL, "no_8x8dct": False, "crf": 20, **options}
        return Config.from_options(width=WIDTH, height=HEIGHT, fps=FPS, **given).stream.level_idc

    assert level() == 10
    assert level(vbv_maxrate=95, vbv_bufsize=95) == 10 and level(vbv_maxrate=97, vbv_bufsize=97) == 11
    assert level(vbv_maxrate=95, vbv_bufsize=263) == 11 and level(vbv_maxrate=95, vbv_bufsize=262) == 10
    assert level(vbv_maxrate=76, vbv_bufsize=76, profile="main") == 10
    assert level(vbv_maxrate=78, vbv_bufsize=78, profile="main") == 11


def random_settings(seed):
    rng = np.random.default_rng(seed)
    rate = int(2 ** rng.uniform(7, 11))
    size = max(int(rate * 2 ** rng.uniform(-3.5, 1.5)), -(-rate // 12) + 4)
    bframes = int(rng.integers(0, 5))
    return {
        "crf": float(rng.integers(0, 36)), "vbv_maxrate": rate, "vbv_bufsize": size, "vbv_init": float(rng.uniform(0, 1)),
        "nal_hrd": str(rng.choice(["vbr", "cbr"])), "keyint": int(rng.choice([1, 3, 8, 250])), "bframes": bframes,
        "b_pyramid": str(rng.choice(["none", "normal", "dyadic"])), "rc_lookahead": int(rng.choice([0, 3, 10])),
        "aq_mode": int(rng.integers(0, 3)), "no_mbtree": bool(rng.integers(0, 2)), "slices": int(rng.integers(1, 3)),
        "fps": [12, 25, Fraction(30000, 1001), 50][rng.integers(0, 4)], "no_cabac": bool(rng.integers(0, 2)),
        "threads": int(rng.integers(1, 4)), "ref": int(rng.integers(1, 3)), "qpmin": int(rng.choice([0, 20])),
    }  # fmt: skip


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(n, marks=pytest.mark.slow) for n in range(12, 200))])
def test_random_settings_keep_the_buffer(seed):
    """A frame may be too large at the greatest QP: that is said, and nothing else may go wrong."""
    options = random_settings(seed)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        stream, pairs = encoded(bursts(16, seed), **options)
    report = hrd_model.check(stream)
    if any("at the greatest QP" in str(warning.message) for warning in said):
        assert all("underflow" in problem for problem in report.problems), options
        return
    assert not report.problems, options
    agree(report, pairs)
    if seed % 4 == 0:
        decoded_alike(stream, pairs)


def test_higher_qps_reach_all_macroblocks_and_stop_at_qpmax():
    spec = FrameSpec(*(0,) * 8, 0, 30, 0, (), (), (), mb_qp=bytes([28, 30, 32, 44]))
    assert list(shifted(spec, 5, 0, 45, "buffer").mb_qp) == [33, 35, 37, 45] and shifted(spec, 5, 0, 45, "buffer").qp == 38
    assert shifted(spec, 0, 0, 45, "buffer") is spec
    for by in (-300, -29, -1, 1, 300):
        assert list(shifted(spec, by, 10, 45, "buffer").mb_qp) == [min(45, max(10, qp + by)) for qp in spec.mb_qp]
    one_qp = spec._replace(mb_qp=b"")
    assert shifted(one_qp, 5, 0, 45, "buffer").qp == 35 and shifted(one_qp, 40, 0, 45, "buffer").qp == 45


def test_tries_end():
    """A frame that never fits is tried a few times, the last time at the greatest QP."""
    config = Config.from_options(width=WIDTH, height=HEIGHT, fps=FPS, **SMALL, **BUFFER, qpmax=47)
    control = BufferControl(config)
    spec = FrameSpec(0, 0, 0, "I", True, True, 0, 0, 0, 20, 0, (), (0,), ((0, 3),), cost=1000)
    tried = control.first(spec, ())
    seen = [tried.qp]
    while (tried := control.again(10**9)) is not None:
        seen.append(tried.qp)
    assert seen == sorted(set(seen)) and seen[-1] == 47 and len(seen) <= 6
    in_buffer = control.take(10**9)
    assert in_buffer.left < 0 and in_buffer.tries == len(seen)


def test_mp4_has_no_constant_rate(tmp_path):
    options = {"crf": 40, "vbv_maxrate": 200, "vbv_bufsize": 100, "nal_hrd": "cbr", **SMALL}
    for target in (tmp_path / "out.mp4", None):
        with pytest.raises(OptionError, match="nal_hrd cbr is for"):
            h264lite.write_video(target, CLIP[:2], FPS, **options)
    h264lite.write_video(tmp_path / "out.264", CLIP[:2], FPS, **options)
    (tmp_path / "in.yuv").write_bytes(b"".join(plane.tobytes() for planes in CLIP[:2] for plane in planes))
    words = "encode in.yuv out.mp4 --input-res 64x48 --crf 40 --vbv-maxrate 200 --vbv-bufsize 100 --nal-hrd cbr --device cpu"
    names = {"in.yuv": str(tmp_path / "in.yuv"), "out.mp4": str(tmp_path / "out.mp4")}
    assert cli.main([names.get(word, word) for word in words.split()]) == 2
    assert not (tmp_path / "out.mp4").exists()


def test_columns():
    assert [name for name in FrameRow.header() if "buffer" in name] == ["buffer_bits", "buffer_left", "buffer_size"]
    _, pairs = encoded(CLIP[:2], **BUFFER)
    for _, row in pairs:
        assert len(row.cells()) == len(FrameRow.header())
        at = FrameRow.header().index("buffer_left")
        assert row.cells()[at] == str(row.in_buffer.left)
