"""Encoder.reconfigure: from which frame on numbers of rate control count, what they come to, what is refused; equal bytes."""

import io
import warnings
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite.encoder.errors import Error, OptionError
from h264lite.mp4.reader import Mp4Reader
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..fuzz import rate_cases
from ..fuzz.encoder_cases import ffmpeg_samples
from ..support.moving import moving

WIDTH, HEIGHT = 96, 64
OPTIONS = {"device": "cpu", "preset": "ultrafast", "threads": 2, "level": "3"}
PLAIN = {**OPTIONS, "bframes": 0, "no_scenecut": True, "no_mbtree": True}
B_FRAMES = {**OPTIONS, "bframes": 3, "b_adapt": 0, "rc_lookahead": 12, "no_mbtree": False}
NOISE = np.random.default_rng(1).integers(-24, 25, (240, HEIGHT, WIDTH, 3))
CLIP = np.clip(moving(240, WIDTH, HEIGHT).astype(int) + NOISE, 0, 255).astype(np.uint8)


def packets_of(changes, frames=60, fps=30, **options):
    """changes: by the frame before which each comes. Packets in coding order."""
    with h264lite.Encoder(WIDTH, HEIGHT, fps, **options) as encoder:
        packets = []
        for k, frame in enumerate(CLIP[:frames]):
            if k in changes:
                encoder.reconfigure(**changes[k])
            packets += encoder.encode(frame)
        return packets + encoder.flush()


def stream(packets):
    return b"".join(packet.data for packet in packets)


def pictures(data):
    decoder = h264lite.Decoder()
    return len([*decoder.decode(data), *decoder.flush()])


@pytest.mark.parametrize("options", (PLAIN, B_FRAMES), ids=("in order", "B frames and tree"))
def test_a_rate_factor_counts_from_the_next_frame_on(options):
    """Frames coded before the first one that is given later are the same; then QPs are those of the other rate factor."""
    low, high = (packets_of({}, crf=crf, **options) for crf in (20, 32))
    changed = packets_of({25: {"crf": 32}}, crf=20, **options)
    first = next(k for k, packet in enumerate(changed) if packet.pts >= 25)
    alike = first if options is PLAIN else first - 12  # those for which the tree waits count what later ones take from them
    assert [p.data for p in changed[:alike]] == [p.data for p in low[:alike]] and changed[first].data != low[first].data
    assert all(abs(packet.qp - low[k].qp) < 2.5 for k, packet in enumerate(changed[:first]))
    assert 20 <= first <= 25 and pictures(stream(changed)) == 60
    for k, packet in enumerate(changed[first:], first):
        assert abs(packet.qp - high[k].qp) < 3.5 < 8 < packet.qp - low[k].qp, k


def test_there_and_back_is_as_without_a_change():
    """Two changes between the same frames leave nothing."""
    for options, there, back in (
        ({**B_FRAMES, "crf": 24}, {"crf": 40}, {"crf": 24}), ({**PLAIN, "bitrate": 300}, {"bitrate": 90}, {"bitrate": 300}),
    ):  # fmt: skip
        with h264lite.Encoder(WIDTH, HEIGHT, 30, **options) as encoder:
            packets = []
            for k, frame in enumerate(CLIP[:40]):
                if k == 20:
                    encoder.reconfigure(**there)
                    encoder.reconfigure(**back)
                packets += encoder.encode(frame)
            packets += encoder.flush()
        assert stream(packets) == stream(packets_of({}, 40, **options))


@pytest.mark.parametrize("options", (PLAIN, B_FRAMES), ids=("in order", "B frames and tree"))
@pytest.mark.parametrize("rates", ((800, 200), (200, 800), (1000, 150)), ids=str)
def test_a_bit_rate(options, rates):
    """Two seconds after the change the rate is the new one, however much the frames before have left or had too much."""
    before, after = rates
    packets = packets_of({90: {"bitrate": after}}, 240, bitrate=before, **options)
    sizes = {packet.pts: 8 * len(packet.data) for packet in packets}
    kbit = [sum(sizes[n] for n in range(*span)) / (span[1] - span[0]) * 30 / 1000 for span in ((30, 90), (140, 240))]
    assert abs(kbit[0] / before - 1) < 0.2 and abs(kbit[1] / after - 1) < 0.2, kbit
    soon = sum(sizes[n] for n in range(94, 124)) / 1000  # in the first second
    assert min(before, after) * 0.5 < soon < max(before, after) * 1.7, soon


@pytest.mark.parametrize("options", (PLAIN, B_FRAMES), ids=("in order", "B frames and tree"))
@pytest.mark.parametrize(("before", "after"), (((600, 300), (200, 50)), ((200, 50), (900, 600)), ((600, 300), (300, 60))))
@pytest.mark.parametrize("mode", ({"crf": 16}, {"bitrate": 500}), ids=("crf", "bitrate"))
def test_a_buffer(options, before, after, mode):
    """No frame is late in a buffer whose rate and size change, counted here bit by bit; see C.1.1."""
    names = "vbv_maxrate", "vbv_bufsize"
    packets = packets_of({60: dict(zip(names, after))}, 150, **mode, **dict(zip(names, before)), **options)
    (rate, size), fullness, changed = before, Fraction(1000 * before[1] * 9, 10), None
    for k, packet in enumerate(packets):
        if changed is None and packet.pts >= 60:
            changed, (rate, size) = k, after
            fullness = min(fullness, 1000 * size)
        fullness -= 8 * len(packet.data)
        assert fullness >= -8, f"frame {packet.pts} is late"
        fullness = min(1000 * size, fullness + Fraction(1000 * rate, 30))
    unchanged = packets_of({}, 150, **mode, **dict(zip(names, before)), **options)
    assert [p.data for p in packets[:changed]] == [p.data for p in unchanged[:changed]]
    assert stream(packets) != stream(unchanged)


CHANGES = (
    ({"crf": 24}, {13: {"crf": 34}, 30: {"crf": 18}}),
    ({"bitrate": 500}, {13: {"bitrate": 150}, 30: {"bitrate": 900}}),
    ({"bitrate": 500, "vbv_maxrate": 600, "vbv_bufsize": 200},
     {13: {"bitrate": 150, "vbv_maxrate": 200}, 30: {"vbv_bufsize": 100}}),
    ({"crf": 20, "vbv_maxrate": 400, "vbv_bufsize": 200}, {13: {"crf": 30}, 30: {"crf": 18, "vbv_maxrate": 900}}),
)  # fmt: skip


@pytest.mark.parametrize(("start", "changes"), CHANGES, ids=("crf", "bitrate", "bitrate and buffer", "crf and buffer"))
@pytest.mark.parametrize("options", (PLAIN, B_FRAMES, {**OPTIONS, "tune": "zerolatency"}), ids=("P", "B", "live"))
def test_equal_bytes_for_any_threads_and_gops(start, changes, options):
    options = {**options, **start, "keyint": 10}
    expected = stream(packets_of(changes, **{**options, "threads": 1}))
    assert expected != stream(packets_of({}, **options)) and pictures(expected) == 60
    for threads in (2, 5):
        assert stream(packets_of(changes, **{**options, "threads": threads})) == expected
    if [*start] == ["crf"] and not options.get("tune"):
        assert stream(packets_of(changes, **{**options, "gops": 3, "threads": 3})) == expected


@pytest.mark.parametrize("device", ("cuda", "hybrid"))
@pytest.mark.parametrize(("start", "changes"), CHANGES, ids=("crf", "bitrate", "bitrate and buffer", "crf and buffer"))
def test_equal_bytes_on_a_gpu(start, changes, device, driver):  # noqa: F811
    options = {**B_FRAMES, **start, "merange": 8}
    changes = {n // 2: change for n, change in changes.items()}
    expected = stream(packets_of(changes, 22, **options))
    assert stream(packets_of(changes, 22, **{**options, "device": device})) == expected


@pytest.mark.parametrize(("start", "change", "said"), (
    ({"crf": 24}, {"bitrate": 300}, "^bitrate cannot change: the encoder was made with crf"),
    ({"bitrate": 300}, {"crf": 24}, "^crf cannot change: the encoder was made with bitrate"),
    ({"qp": 24}, {"crf": 24}, "^crf cannot change: the encoder was made with qp"),
    ({"qp": 24}, {"bitrate": 300}, "^bitrate cannot change: the encoder was made with qp"),
    ({"bitrate": 300}, {"bitrate": 0}, "^bitrate cannot change"),
    ({"crf": 24}, {"vbv_maxrate": 300, "vbv_bufsize": 300}, "^vbv_maxrate cannot change: a buffer is there"),
    ({"crf": 24, "vbv_maxrate": 300, "vbv_bufsize": 300}, {"vbv_maxrate": 0, "vbv_bufsize": 0}, "^vbv_maxrate cannot"),
    ({"crf": 24, "vbv_maxrate": 300, "vbv_bufsize": 300, "nal_hrd": "vbr"}, {"vbv_bufsize": 200}, "nal_hrd vbr"),
    ({"crf": 24, "vbv_maxrate": 300, "vbv_bufsize": 300}, {"vbv_bufsize": 5}, "^vbv_bufsize 5: less than a frame"),
    ({"crf": 24, "crf_max": 30, "vbv_maxrate": 300, "vbv_bufsize": 300}, {"crf": 31}, "^crf_max 30"),
    ({"crf": 24}, {"crf": 99}, "^crf 99"), ({"crf": 24}, {"crf": "fine"}, "^crf fine"),
    ({"bitrate": 300}, {"bitrate": 99999}, "^level 3, which the stream says"),
    ({"bitrate": 300, "vbv_maxrate": 300, "vbv_bufsize": 300}, {"vbv_maxrate": 99999, "vbv_bufsize": 9999}, "^level 3"),
))  # fmt: skip
def test_what_is_refused_changes_nothing(start, change, said):
    options = {**PLAIN, **start}
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **options) as encoder:
        packets = encoder.encode(CLIP[0])
        with pytest.raises(OptionError, match=said):
            encoder.reconfigure(**change)
        packets += [packet for frame in CLIP[1:20] for packet in encoder.encode(frame)] + encoder.flush()
    assert stream(packets) == stream(packets_of({}, 20, **options))


def test_passes_are_refused(tmp_path):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, bitrate=300, pass_=1, stats=str(tmp_path / "s"), **OPTIONS) as encoder:
        encoder.encode(CLIP[0])
        with pytest.raises(OptionError, match="pass_ 1: the passes"):
            encoder.reconfigure(bitrate=200)


def test_the_state_of_the_encoder():
    """Numbers can be read; none change after the end."""
    with h264lite.Encoder(WIDTH, HEIGHT, 30, crf=24, vbv_maxrate=300, vbv_bufsize=300, **OPTIONS) as encoder:
        encoder.reconfigure(crf=26.5, vbv_bufsize=200)
        encoder.reconfigure()
        config = encoder.config
        assert (config.rate.crf, config.hrd.vbv_maxrate, config.hrd.vbv_bufsize) == (26.5, 300, 200)
        encoder.encode(CLIP[0])
        encoder.flush()
        with pytest.raises(Error, match="flushed"):
            encoder.reconfigure(crf=20)


@pytest.mark.parametrize("flushes", (False, True))
def test_a_writer(flushes):
    """Also after a flush, with which another session begins."""
    with h264lite.VideoWriter(io.BytesIO(), 30, crf=20, **B_FRAMES) as writer:
        with pytest.raises(Error, match="no frame was written yet"):
            writer.reconfigure(crf=30)
        writer.write(CLIP[:20])
        if flushes:
            writer.flush()
        writer.reconfigure(crf=34)
        writer.write(CLIP[20:40])
        writer.close()
        data = writer._target.getvalue()
    sizes = [sample.size for sample in Mp4Reader(io.BytesIO(data)).samples()]
    assert sum(sizes[:20]) > 2 * sum(sizes[20:])
    if not flushes:
        packets = packets_of({20: {"crf": 34}}, 40, crf=20, **B_FRAMES)
        assert sizes[1:] == [len(p.data) for p in packets][1:]


NUMBERS = {"bitrate": st.integers(0, 2000), "crf": st.floats(0, 51), "vbv_maxrate": st.integers(0, 2000),
           "vbv_bufsize": st.integers(0, 2000)}  # fmt: skip


@st.composite
def cases_with_changes(draw):
    """A case, changes by frame, and a number of threads; most changes are those of options that the case has."""
    case = draw(rate_cases.cases())
    fits = draw(st.integers(0, 9)) > 0
    named = [name for name in NUMBERS if not fits or name in case.options] or ["crf"]
    change = st.fixed_dictionaries({}, optional={name: NUMBERS[name] for name in named})
    if fits:
        case = case._replace(options={"level": "4", **case.options, "keyint": 250, "pass_": 0})
    return case, draw(st.dictionaries(st.integers(0, case.frames - 1), change, max_size=3)), draw(st.integers(2, 5))


def encode_case(case, changes):
    """Packets and rows in coding order, and the settings by the frame from which they count; None: the case is refused."""
    try:
        encoder = h264lite.Encoder.from_config(rate_cases.settings_of(case), keep_reconstruction=True)
    except OptionError:
        return None
    with encoder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a buffer promises may be impossible
        configs = {0: encoder.config}
        for n, planes in enumerate(rate_cases.clip_of(case)):
            if n in changes:
                before = encoder.config
                try:
                    encoder.reconfigure(**changes[n])
                except OptionError as error:
                    assert encoder.config is before
                    names = [*changes[n], "level", "pass", "crf_max", "gops"]
                    assert any(name in str(error) for name in names), (changes[n], error)
                configs[n] = encoder.config
            encoder._session.encode(tuple(planes))
        encoder._session.drain()
        return [(frame, encoder.stats.row(frame)) for frame in encoder._session.hand_out()], configs


@seed(1)
@settings(max_examples=80, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(cases_with_changes())
def test_any_changes(given_case):
    """Equal bytes for any threads, streams that FFmpeg decodes alike, the buffer of the frame, QPs in their range."""
    case, changes, threads = given_case
    done = encode_case(case, changes)
    if done is None:
        return
    pairs, configs = done
    data = b"".join(frame.data for frame, _ in pairs)
    other, _ = encode_case(case._replace(options={**case.options, "threads": threads}), changes)
    assert b"".join(frame.data for frame, _ in other) == data
    shown = sorted((frame for frame, _ in pairs), key=lambda frame: frame.pts)
    assert ffmpeg_samples(data) == b"".join(plane.tobytes() for frame in shown for plane in frame.reconstruction)
    begun = 0
    for frame, row in pairs:
        begun = max([n for n in configs if n <= frame.pts] + [begun])
        buffer, rate = configs[begun].hrd.buffer, configs[begun].rate
        assert (row.in_buffer is None) == (buffer is None)
        if buffer is not None:
            assert row.in_buffer.size == buffer.size and row.in_buffer.there <= buffer.size
            assert row.in_buffer.left >= 0 or row.qp_range[0] == rate.qpmax or configs[begun].hrd.crf_max
        assert rate.crf is None or rate.qpmin <= row.qp_range[0] <= row.qp_range[1] <= rate.qpmax
