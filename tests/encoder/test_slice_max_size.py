"""--slice-max-size: no slice is larger, decoders agree, each slice decodes without the others, one stream for any threads."""

import io

import h264lite
import numpy as np
import pytest
from h264lite.encoder.decisions.slice_cutter import _filled, _pieces
from h264lite.standard.bits import NAL_IDR, NAL_SLICE

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..support import round_trip, sequences
from ..support.broken import units_of
from .test_cuda_streams import compare
from .test_streams import QUICK, planes

TOOLS = (
    {"keyint": 1, "qp": 24}, {"preset": "ultrafast", "qp": 22}, {"preset": "superfast", "crf": 20}, {"crf": 26, "bframes": 3},
    {"profile": "baseline", "qp": 24, "ref": 3}, {"profile": "baseline", "qp": 30, "subme": 7},
    {"no_cabac": True, "bframes": 2, "crf": 24},
    {"bframes": 0, "tune": "zerolatency", "crf": 24}, {"preset": "slow", "crf": 24, "bframes": 5, "b_pyramid": "dyadic"},
    {"no_8x8dct": True, "subme": 7, "qp": 28, "bframes": 2}, {"deblock_within_slices": True, "bframes": 2, "qp": 26},
    {"qp": 4, "subme": 2},
    {"no_deblock": True, "weightp": 2, "qp": 30}, {"bitrate": 400}, {"vbv_maxrate": 300, "vbv_bufsize": 100, "crf": 20},
    {"keyint": 4, "intra_refresh": True, "crf": 24}, {"aq_mode": 1, "subme": 5, "crf": 30, "trellis": 0},
)  # fmt: skip


def slices_in(stream):
    """The NAL units of slices, without start codes."""
    units = [unit.lstrip(b"\0")[1:] for unit in units_of(stream)]
    return [unit for unit in units if unit[0] & 31 in (NAL_SLICE, NAL_IDR)]


def decoded_by_ffmpeg(stream, allowed="Possibly too many slices"):
    """Frames by FFmpeg's decoder, which says so of pictures with 32 slices and more."""
    av = pytest.importorskip("av", reason="PyAV brings the independent decoder")
    level = av.logging.get_level()
    av.logging.set_level(av.logging.WARNING)
    try:
        with av.logging.Capture() as log, av.open(io.BytesIO(stream), format="h264") as container:
            planes = [[(p, np.frombuffer(p, np.uint8)) for p in frame.planes] for frame in container.decode(video=0)]
    finally:
        av.logging.set_level(level)
    wrong = [text for _, _, text in log if not any(said in text for said in (allowed, "timestamps", "duration"))]
    assert not wrong, wrong
    return [[samples.reshape(p.height, p.line_size)[:, : p.width].copy() for p, samples in frame] for frame in planes]


def check_sizes(stream, most):
    """No slice is larger, but of one macroblock; how many are."""
    larger = 0
    for frame in h264lite.analyse(stream):
        sizes = [size - 3 for kind, size in frame.units if kind in (NAL_SLICE, NAL_IDR)]  # less the shortest start code
        ends = [*[one.first_mb for one in frame.slices[1:]], frame.macroblocks.mb_type.size]
        for one, end, size in zip(frame.slices, ends, sizes, strict=True):
            larger += size > most + 1  # a start code may have four bytes
            assert size <= most + 1 or end - one.first_mb == 1, (one.first_mb, end, size)
    return larger


@pytest.mark.half
@pytest.mark.filterwarnings("ignore:frame .* one macroblock")
@pytest.mark.parametrize("most", (150, 600, 1200))
@pytest.mark.parametrize("tools", TOOLS, ids=str)
@pytest.mark.parametrize("name", QUICK)
def test_decoders_agree(name, tools, most):
    clip = sequences.clip(name)
    stream, expected = round_trip.encode(planes(clip, 7), clip.width, clip.height, slice_max_size=most, threads=1, **tools)
    round_trip.assert_same(decoded_by_ffmpeg(stream), expected, "FFmpeg")
    round_trip.assert_same(round_trip.own_frames(stream), expected, "own decoder")
    larger = check_sizes(stream, most)
    assert most == 150 or (not larger and max(map(len, slices_in(stream))) <= most)


@pytest.mark.parametrize("size", ((16, 16), (1, 1), (17, 33), (50, 34), (16, 80), (96, 16)))
@pytest.mark.parametrize("tools", ({"bframes": 2}, {"no_cabac": True, "bframes": 2}, {"bframes": 0, "subme": 2}), ids=str)
@pytest.mark.filterwarnings("ignore:frame .* one macroblock")
def test_small_frames(size, tools):
    stream, expected = round_trip.encode(round_trip.noise_clip(*size, 6, 3), *size, slice_max_size=40, qp=24, **tools)
    round_trip.assert_same(decoded_by_ffmpeg(stream), expected, "FFmpeg")
    check_sizes(stream, 40)


@pytest.mark.parametrize("tools", ({"bframes": 3, "crf": 24}, {"qp": 26}, {"no_cabac": True, "crf": 26}), ids=str)
def test_one_stream(tools):
    """For any number of threads and GOPs at once, and again."""
    clip, options = round_trip.noise_clip(98, 82, 11, 5), {"slice_max_size": 400, "keyint": 4, "device": "cpu", **tools}
    expected, _ = round_trip.encode(clip, 98, 82, threads=1, **options)
    for other in ({"threads": 1}, {"threads": 3}, {"threads": 4, "gops": 2}, {"threads": 2, "gops": 3}):
        assert round_trip.encode(clip, 98, 82, **options, **other)[0] == expected, other


@pytest.mark.parametrize("keyint", (1, 10))
def test_lost_packets(keyint):
    """Of the last frame each slice is decoded without the others, by FFmpeg, as in the whole stream."""
    clip = sequences.clip(QUICK[0])
    options = {"slice_max_size": 300, "qp": 28, "no_deblock": True, "keyint": keyint}
    stream, expected = round_trip.encode(planes(clip, 3), clip.width, clip.height, **options)
    last = list(h264lite.analyse(stream))[-1]
    firsts, width = [one.first_mb for one in last.slices], last.macroblocks.mb_type.shape[1]
    assert len(firsts) > 2
    units = units_of(stream)
    at = len(units) - len(firsts)
    slice_of = np.searchsorted(firsts, np.arange(last.macroblocks.mb_type.size), "right") - 1
    for lost in range(len(firsts)):
        frames = decoded_by_ffmpeg(b"".join(units[: at + lost] + units[at + lost + 1 :]), "")
        assert len(frames) == len(expected)
        for mb in np.flatnonzero(slice_of != lost).tolist():
            y, x = 16 * (mb // width), 16 * (mb % width)
            np.testing.assert_array_equal(frames[-1][0][y : y + 16, x : x + 16], expected[-1][0][y : y + 16, x : x + 16])


def test_a_macroblock_that_takes_more():
    """The stream is valid, and it is said once."""
    clip = round_trip.noise_clip(50, 34, 4, 2)
    with pytest.warns(RuntimeWarning, match=r"frame 0 has a slice of \d+ bytes, more than 30: one macroblock") as said:
        stream, expected = round_trip.encode(clip, 50, 34, slice_max_size=30, qp=4)
    assert len([one for one in said if "one macroblock" in str(one.message)]) == 1
    round_trip.assert_same(decoded_by_ffmpeg(stream), expected, "FFmpeg")
    assert check_sizes(stream, 30) > 4


@pytest.mark.filterwarnings("ignore:frame .* one macroblock")
def test_more_slices_than_the_level_allows():
    """Table A-4: level 3 has 22 macroblocks of its rate for each slice: at 300 frames a second six slices of a frame."""
    clip = round_trip.noise_clip(64, 48, 3, 2)
    with pytest.warns(RuntimeWarning, match="frame 0 has 12 slices, of which level 3 allows 6"):
        round_trip.encode(clip, 64, 48, fps=300, level="3", slice_max_size=40, qp=10)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"slices": 2}, "slices 2: contradicts slice_max_size"), ({"device": "hybrid"}, "slice_max_size 500: not on device")],
)
def test_refused(options, said):
    with pytest.raises(h264lite.OptionError, match=said):
        h264lite.Encoder(64, 48, 30, slice_max_size=500, **options)


def test_pieces():
    """Slices of a room and pieces of a slice: every macroblock once, in order, none empty; at most the room if one has it."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(1, 60))
        bits = rng.integers(0, 90, n) * (rng.random(n) < 0.7)
        room, count, first = int(rng.integers(1, 300)), int(rng.integers(1, 9)), int(rng.integers(0, n))
        for slices, begin in ((_filled(bits, room), 0), (_pieces(bits, first, n, count), first)):
            assert [a for a, _ in slices] == [begin, *[b for _, b in slices[:-1]]] and slices[-1][1] == n
            assert all(a < b for a, b in slices)
        assert all(bits[a:b].sum() <= room or b - a == 1 for a, b in _filled(bits, room))
        assert len(_pieces(bits, first, n, count)) == min(count, n - first)


ON_GPU = (
    {"qp": 24, "keyint": 1}, {"qp": 26, "ref": 2, "preset": "superfast"}, {"qp": 26, "bframes": 2, "keyint": 5},
    {"qp": 24, "no_cabac": True, "subme": 5, "bframes": 2}, {"qp": 22, "profile": "baseline", "deblock_within_slices": True},
    {"qp": 1, "keyint": 3}, {"crf": 24, "bframes": 3, "subme": 7, "slice_max_size": 300},
    {"qp": 24, "bframes": 0, "subme": 7, "slice_max_size": 300, "deblock_within_slices": False, "keyint": 9},
    {"qp": 24, "bframes": 0, "subme": 7, "slice_max_size": 300, "no_8x8dct": True},
    {"qp": 24, "bframes": 3, "subme": 5, "slice_max_size": 300},
    {"qp": 24, "bframes": 3, "subme": 7, "b_adapt": 0, "no_8x8dct": True, "slice_max_size": 300, "scenecut": 0},
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:frame .* one macroblock")
@pytest.mark.parametrize("tools", ON_GPU, ids=str)
def test_cuda_gives_the_same_bytes(gpu, tools):  # noqa: F811
    options = {"slice_max_size": 150, **tools}
    compare(round_trip.noise_clip(82, 66, 5, 3), 82, 66, **options)
