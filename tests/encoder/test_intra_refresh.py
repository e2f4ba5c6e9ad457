"""Intra refresh: a decoder that begins with other samples has the stream's own after one cycle; what is refused."""

import h264lite
import numpy as np
import pytest
from h264lite.encoder.decisions.frame_order import IntraRefresh
from h264lite.encoder.errors import OptionError
from h264lite.encoder.settings.config import Config
from h264lite.standard.bits import NAL_IDR, NAL_PPS, NAL_SEI, NAL_SLICE, NAL_SPS, split_byte_stream
from h264lite.standard.syntax import parse_sei
from h264lite.standard.syntax_sei import SEI_RECOVERY_POINT, parse_recovery_point

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..inside import changed
from ..support import round_trip, sequences
from .test_streams import planes

WIDTH, HEIGHT, CYCLE = 144, 64, 5
REFRESH = {"intra_refresh": True, "keyint": CYCLE, "bframes": 0, "weightp": 0}
MOTIONS = ((0, 0), (1, 0), (-1, 1), (5, 0), (-7, 2), (13, -1), (-20, 0), (0.75, 0.25), (-1.25, 0))
TOOLS = (
    {"qp": 27, "profile": "baseline", "subme": 4},
    {"qp": 20, "profile": "high", "subme": 7, "slices": 2},
    {"qp": 36, "profile": "high", "no_cabac": True, "subme": 6},
    {"qp": 30, "profile": "main", "no_deblock": True, "subme": 5},
    {"qp": 24, "profile": "high", "subme": 2, "deblock": (3, 3), "partitions": "all", "trellis": 0},
    {"qp": 40, "profile": "high", "subme": 9, "slices": 3, "deblock_within_slices": True, "psy_rd": 1},
    {"qp": 8, "profile": "high", "cqm": "jvt", "subme": 7},
    {"qp": 1, "profile": "baseline", "subme": 3},  # I_PCM
    {"crf": 25, "profile": "high", "subme": 7, "aq_mode": 1, "weightp": 2},
)


def moving_clip(frames, motion, seed=3, width=WIDTH, height=HEIGHT):
    """A texture that moves by (x, y) luma samples a frame, with parts of samples, and other noise in each frame: planes."""
    rng = np.random.default_rng(seed)
    waves = rng.uniform(0.02, 0.8, (40, 2)) * rng.choice((-1, 1), (40, 2))
    phases, sizes = rng.uniform(0, 6.3, (3, 40)), rng.uniform(2, 14, 40)
    y, x = np.mgrid[0:height, 0:width]
    clip = []
    for n in range(frames):
        at_x, at_y = x - motion[0] * n, y - motion[1] * n
        at = [at_x * wx + at_y * wy for wx, wy in waves]
        full = [128 + sum(size * np.sin(one + p) for one, p, size in zip(at, phase, sizes)) for phase in phases]
        full[0] = full[0] + rng.normal(0, 2, (height, width))
        clip.append(tuple(np.clip(f[::k, ::k], 0, 255).astype(np.uint8) for f, k in zip(full, (1, 2, 2))))
    return clip


def shuffled_clip(frames, seed):
    """Each 8x8 block of a frame lies elsewhere in the one before, by a vector of quarter samples of its own: planes."""
    rng = np.random.default_rng(seed)
    clip = [moving_clip(1, (0, 0), seed)[0]]
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    for _ in range(frames - 1):
        vectors = np.kron(rng.integers(-40, 41, (2, HEIGHT // 8, WIDTH // 8)), np.ones((8, 8), int))
        frame = []
        for plane, k in zip(clip[-1], (1, 2, 2)):
            half, size = np.pad(np.kron(plane.astype(float), np.ones((4 * k, 4 * k))), 60, "edge"), plane.shape
            half = sum(np.roll(half, (i, j), (0, 1)) for i in (0, 1, 2, 3) for j in (0, 1, 2, 3)) / 16
            values = half[60 + 4 * y + vectors[1] // 4, 60 + 4 * x + vectors[0]][::k, ::k]
            frame.append(np.clip(values + rng.normal(0, 1, size), 0, 255).astype(np.uint8))
        clip.append(tuple(frame))
    return clip


def packets_of(clip, keyframes=(), **options):
    height, width = clip[0][0].shape
    with h264lite.Encoder(width, height, 30, **{**REFRESH, "device": "cpu", **options}) as encoder:
        calls = [encoder.encode(frame, keyframe=n in keyframes) for n, frame in enumerate(clip)]
        return [packet for call in [*calls, encoder.flush()] for packet in call]


def units(packet, unit_type):
    return [unit for unit in split_byte_stream(packet.data) if unit.nal_unit_type == unit_type]


def recovery_points(packets):
    """(frame, recovery_frame_cnt, exact_match_flag, broken_link_flag) of each."""
    points = []
    for n, packet in enumerate(packets):
        for unit in units(packet, NAL_SEI):
            for payload_type, payload in parse_sei(unit.rbsp()):
                if payload_type == SEI_RECOVERY_POINT:
                    point = parse_recovery_point(payload)
                    points.append((n, point.recovery_frame_cnt, point.exact_match_flag, point.broken_link_flag))
    return points


def same_frames(packets, first):
    """For each frame, whether it is the same where the first one is that of another stream; by both decoders."""
    untouched = b"".join(packet.data for packet in packets)
    joined = first.data + b"".join(packet.data for packet in packets[1:])
    by_decoder = []
    for decode in (round_trip.own_frames, round_trip.ffmpeg_frames):
        pairs = list(zip(decode(untouched), decode(joined), strict=True))
        by_decoder.append([all(np.array_equal(*two) for two in zip(a, b)) for a, b in pairs])
    assert by_decoder[0] == by_decoder[1] and len(by_decoder[0]) == len(packets)
    return by_decoder[0]


def check_joining(clip, other, **options):
    """From the recovery point on all frames are those of the stream; before the cycle none is, so that the cycle is why."""
    packets, (first, *_) = packets_of(clip, **options), packets_of(other, **options)
    (begin, count, exact, broken), *_ = recovery_points(packets)
    assert (exact, broken) == (1, 0)
    same = same_frames(packets, first)
    assert same[:begin] == [False] * begin and all(same[begin + count :])
    assert len(same) > begin + count + 2


@pytest.mark.parametrize("tools", [tools for tools in TOOLS if tools.get("qp") != 1], ids=str)
@pytest.mark.parametrize("motion", MOTIONS, ids=str)
def test_a_decoder_has_the_frames_after_a_cycle(tools, motion):
    check_joining(moving_clip(4 * CYCLE, motion), moving_clip(1, (0, 0), 4), **tools)


@pytest.mark.parametrize("tools", [tools for tools in TOOLS if tools.get("qp") != 1], ids=str)
@pytest.mark.parametrize("seed", (1, 2))
def test_with_vectors_of_all_kinds(tools, seed):
    check_joining(shuffled_clip(3 * CYCLE, seed), moving_clip(1, (0, 0), 4), **tools)


@pytest.mark.parametrize("weightp", (1, 2))
def test_with_weights(weightp):
    """Of a fade, with the reference twice in the list too."""
    factors = np.linspace(0.3, 1, 3 * CYCLE)
    clip = [
        tuple((plane * factor).astype(np.uint8) for plane in frame)
        for frame, factor in zip(moving_clip(3 * CYCLE, (2, 0)), factors)
    ]
    tools = {"qp": 24, "subme": 6, "weightp": weightp}
    assert len(packets_of(clip, **tools)[3].data) < 0.9 * len(packets_of(clip, **{**tools, "weightp": 0})[3].data)
    check_joining(clip, moving_clip(1, (0, 0), 4), **tools)


@pytest.mark.parametrize(("keyint", "width"), ((2, 80), (4, 16), (7, 100), (9, 144), (12, 144), (30, 90)))
def test_cycles_of_any_length(keyint, width):
    """Shorter than the frame is wide in macroblocks, as long, longer."""
    check_joining(
        moving_clip(2 * keyint + 8, (3, 1), width=width), moving_clip(1, (0, 0), 4, width), keyint=keyint, qp=26, subme=6
    )


@pytest.mark.parametrize("rate", ({"qp": 24}, {"bitrate": 400, "tune": "zerolatency"}), ids=str)
def test_joining_a_real_clip(rate):
    clip = sequences.clip("foreman_176x144_30")
    check_joining(planes(clip, 34), planes(clip, 1, 60), keyint=11, **rate)


@pytest.mark.parametrize("cabac", (False, True))
def test_ffmpeg_begins_at_a_recovery_point(cabac):
    """In the midst of a stream, without the packets before: it shows frames from the point on that the message says."""
    av = pytest.importorskip("av")
    packets = packets_of(moving_clip(5 * CYCLE, (2, 1)), qp=26, no_cabac=not cabac)
    untouched = round_trip.own_frames(b"".join(packet.data for packet in packets))
    for begin, count, *_ in recovery_points(packets)[:3]:
        decoder, seen = av.CodecContext.create("h264", "r"), []
        for n, packet in enumerate(packets[begin:], begin):
            packet_of_av = av.Packet(packet.data)
            packet_of_av.pts = n
            for frame in decoder.decode(packet_of_av) + (decoder.decode(None) if n == len(packets) - 1 else []):
                assert np.array_equal(frame.to_ndarray(format="yuv420p")[:HEIGHT], untouched[frame.pts][0])
                seen.append(frame.pts)
        assert seen == list(range(begin + count, len(packets)))


@pytest.mark.parametrize("tools", TOOLS, ids=str)
def test_both_decoders_give_the_reconstruction(tools):
    round_trip.check(moving_clip(2 * CYCLE + 3, (-3, 1)), WIDTH, HEIGHT, **{**REFRESH, **tools}, device="cpu")


@pytest.mark.parametrize("tools", TOOLS, ids=str)
def test_the_same_bytes_on_a_gpu(gpu, tools):  # noqa: F811
    clip = moving_clip(CYCLE + 3, (6, 1), width=80, height=48)
    wanted = [packet.data for packet in packets_of(clip, **tools)]
    if tools.get("subme") != 6 or not tools.get("no_cabac"):  # that decision is for CPUs
        assert [packet.data for packet in packets_of(clip, **tools, device="cuda")] == wanted


@pytest.mark.parametrize("rows", (0, 1, 2, 3))
def test_the_same_bytes_on_both_devices(gpu, rows):  # noqa: F811
    clip, tools = moving_clip(CYCLE + 3, (-6, 1), width=80, height=48), {"qp": 26, "subme": 4, "merange": 8, "threads": 2}
    config = Config.from_options(width=80, height=48, fps=30, device="hybrid", **REFRESH, **tools)
    assert config.machine.device == "hybrid"
    with h264lite.Encoder.from_config(changed(config, split=(rows, rows % 2))) as encoder:
        packets = round_trip.packets_of(encoder, clip)
    assert [packet.data for packet in packets] == [packet.data for packet in packets_of(clip, **tools)]


@pytest.mark.parametrize("tools", TOOLS[:3], ids=str)
def test_the_same_bytes_for_any_threads(tools):
    clip = moving_clip(CYCLE + 6, (4, 1))
    wanted = [packet.data for packet in packets_of(clip, threads=1, **tools)]
    for threads in (2, 3, 5):
        assert [packet.data for packet in packets_of(clip, threads=threads, **tools)] == wanted


def test_recovery_points_and_sizes():
    """A recovery point each cycle; one IDR frame; the largest frame after it is far smaller."""
    clip = moving_clip(40, (1, 0), width=352, height=144)
    packets, usual = (packets_of(clip, intra_refresh=on, keyint=10, qp=26, aud=True, ref=1) for on in (True, False))
    assert recovery_points(packets) == [(10, 9, 1, 0), (20, 9, 1, 0), (30, 9, 1, 0)] and not recovery_points(usual)
    assert [n for n, packet in enumerate(packets) if packet.is_keyframe] == [0]
    assert [bool(units(packet, NAL_IDR)) for packet in packets] == [True] + [False] * 39
    assert all(units(packet, NAL_SLICE) for packet in packets[1:])
    for unit_type in (NAL_SPS, NAL_PPS):  # for decoders that begin there
        assert [n for n, packet in enumerate(packets) if units(packet, unit_type)] == [0, 10, 20, 30]
    assert [unit.nal_unit_type for unit in split_byte_stream(packets[10].data)] == [9, NAL_SPS, NAL_PPS, NAL_SEI, NAL_SLICE]
    largest = [max(len(packet.data) for packet in some[1:]) for some in (packets, usual)]
    assert len([packet for packet in usual if packet.is_keyframe]) == 4 and 2 * largest[0] < largest[1]


def test_a_keyframe_begins_a_cycle_anew():
    clip = moving_clip(30, (1, 0))
    packets = packets_of(clip, (8,), qp=28, threads=1)
    assert [n for n, packet in enumerate(packets) if packet.is_keyframe] == [0, 8]
    assert [n for n, *_ in recovery_points(packets)] == [5, 13, 18, 23, 28]
    same = same_frames(packets, packets_of(moving_clip(1, (0, 0), 4), qp=28)[0])
    assert same == [False] * 8 + [True] * 22


def test_rates_change_while_it_runs():
    clip = moving_clip(24, (2, 0))
    options = {**REFRESH, "tune": "zerolatency", "bitrate": 300, "vbv_maxrate": 300, "vbv_bufsize": 100, "device": "cpu"}
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keep_reconstruction=True, **options) as encoder:
        packets = []
        for n, frame in enumerate(clip):
            if n == 12:
                encoder.reconfigure(bitrate=150, vbv_maxrate=150, vbv_bufsize=50)
            packets += encoder.encode(frame)
    assert len(packets) == 24
    stream = b"".join(packet.data for packet in packets)
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), round_trip.shown(packets), "FFmpeg")
    assert [n for n, *_ in recovery_points(packets)] == [5, 10, 15, 20]
    assert sum(len(packet.data) for packet in packets[13:]) < 0.8 * sum(len(packet.data) for packet in packets[2:13])


@pytest.mark.parametrize("keyint", (2, 3, 7, 30, 250))
@pytest.mark.parametrize("mb_width", (1, 2, 7, 8, 45, 120, 480))
def test_bars_cover_all_columns_once(keyint, mb_width):
    coding = Config.from_options(width=16 * mb_width, height=16, **{**REFRESH, "keyint": keyint}, qp=26).coding
    refresh = IntraRefresh(coding)
    bars = [refresh.columns(n, "P" if n % (5 * keyint) else "I") for n in range(10 * keyint)]
    for cycle in range(10):
        of_cycle = bars[cycle * keyint : (cycle + 1) * keyint]
        with_bar = [bar for bar in of_cycle if bar]
        if cycle % 5 == 0:
            assert not with_bar
            continue
        assert with_bar == of_cycle[: len(with_bar)] and len(with_bar) == min(keyint, mb_width)
        assert with_bar[0][0] == 0 and with_bar[-1][1] == mb_width
        assert [end for _, end in with_bar[:-1]] == [begin for begin, _ in with_bar[1:]]
        widths = [end - begin for begin, end in with_bar]
        assert 1 <= min(widths) and max(widths) - min(widths) <= 1


@pytest.mark.parametrize(("options", "said"), (
    ({"bframes": 2}, "bframes 2: contradicts intra_refresh"), ({"ref": 3}, "use 1"), ({"gops": 2}, "one GOP"),
    ({"devices": "cpu,cpu"}, "use device"), ({"scenecut": 40}, "scenecut 40"),
    ({"keyint": "infinite"}, "needs keyint"), ({"keyint": 1}, "needs keyint"),
    ({"nal_hrd": "vbr", "bitrate": 500, "vbv_maxrate": 500, "vbv_bufsize": 500}, "nal_hrd vbr: contradicts"),
))  # fmt: skip
def test_what_is_refused(options, said):
    with pytest.raises(OptionError, match=said):
        Config.from_options(width=64, height=48, **{"intra_refresh": True, "keyint": 10, **options})


def test_fragments_are_refused(tmp_path):
    with pytest.raises(OptionError, match="intra_refresh contradicts fragment"):
        h264lite.write_video(tmp_path / "a.mp4", moving_clip(3, (0, 0)), 25, fragment=1.0, intra_refresh=True)


def test_a_preset_gives_way():
    """References and B frames of a preset; no scene cuts; the stream of zerolatency says so too."""
    coding = Config.from_options(width=640, height=480, preset="slow", intra_refresh=True)
    assert (coding.coding.ref, coding.coding.bframes, coding.types.scenecut) == (1, 0, 0)
    assert coding.coding.refresh_cycle == 250
    without = Config.from_options(width=640, height=480, preset="slow")
    assert without.coding.refresh_cycle == 0 and without.coding.ref > 1 and without.types.keyint == 250
