"""QP offsets of macroblocks that a caller gives (regions of interest): QPs follow them in all rate modes, on all devices."""

import h264lite
import numpy as np
import pytest
from h264lite.encoder.errors import OptionError

from ..cuda_emulator.fixtures import driver  # noqa: F401
from ..support import round_trip
from .test_rate_options import CLIP, QUICK, SIZE, decoded
from .test_scene_cuts import bytes_of

ROWS, COLUMNS = SIZE[1] // 16, SIZE[0] // 16
MODES = (
    {"qp": 27}, {"qp": 20, "aq_mode": 1, "bframes": 2}, {"crf": 26}, {"crf": 26, "bframes": 3, "rc_lookahead": 8},
    {"bitrate": 30, "bframes": 2}, {"crf": 24, "vbv_maxrate": 400, "vbv_bufsize": 200}, {"crf": 23, "tune": "zerolatency"},
    {"crf": 23, "profile": "baseline"}, {"qp": 30, "gops": 2, "keyint": 4}, {"crf": 28, "threads": 3, "bframes": 2},
)  # fmt: skip


def offsets_of(n, most=12):
    """Of frame n: a block that moves is finer, the rest coarser; every fourth frame has none."""
    offsets = np.full((ROWS, COLUMNS), most // 2, np.int64)
    offsets[n % ROWS, n % COLUMNS :] = -most
    return None if n % 4 == 3 else offsets


def packets_of(most=12, frames=12, **options):
    packets = []
    with h264lite.Encoder(*SIZE, 25, keep_reconstruction=True, **{**QUICK, **options}) as encoder:
        for n, planes in enumerate(CLIP[:frames]):
            packets += encoder.encode(tuple(planes), qp_offsets=offsets_of(n, most) if most else None)
        return packets + encoder.flush()


def qps_of(stream):
    """int[frames, rows, columns] of a stream, as a decoder finds them, in display order."""
    decoder = h264lite.Decoder(macroblocks=True)
    frames = [*decoder.decode(stream), *decoder.flush()]
    return np.array([frame.macroblocks.qp.reshape(ROWS, COLUMNS) for frame in frames], int)


@pytest.mark.parametrize("options", MODES, ids=str)
def test_qps_follow(options):
    """All macroblocks of noise have a residual, so that the decoder has their QPs; but for I_PCM, and where QPs end."""
    qps, compared = qps_of(decoded(packets_of(**options))), 0
    for n, of_frame in enumerate(qps):
        if (offsets := offsets_of(n)) is not None and of_frame.min() > 0 and of_frame.max() < 51:
            finer, compared = offsets < 0, compared + 1
            assert of_frame[~finer].mean() - of_frame[finer].mean() > 10, (n, of_frame)
    assert compared > 1


def test_they_are_added_to_what_is_decided():
    """At a constant QP exactly, within its limits; a QP that is asked for has them too."""
    qps, plain = qps_of(decoded(packets_of(8, qp=36))), qps_of(decoded(packets_of(0, qp=36)))
    for n in range(12):
        offsets = offsets_of(n, 8)
        np.testing.assert_array_equal(qps[n], plain[n] if offsets is None else plain[n] + offsets)
    limited = qps_of(decoded(packets_of(51, crf=30, qpmin=26, qpmax=40)))
    assert limited.min() == 26 and limited.max() == 40
    with h264lite.Encoder(*SIZE, 25, keep_reconstruction=True, **QUICK) as encoder:
        packets = encoder.encode(tuple(CLIP[0]), qp=38, qp_offsets=offsets_of(0)) + encoder.flush()
    np.testing.assert_array_equal(qps_of(decoded(packets))[0], 38 + offsets_of(0))


def test_the_largest_steps():
    """From 0 to 51 and back, in CABAC and CAVLC: mb_qp_delta wraps (7.4.5)."""
    for options in ({"qp": 25}, {"qp": 25, "profile": "baseline"}, {"crf": 25, "bframes": 2}):
        packets, checkered = [], 51 * (2 * (np.indices((ROWS, COLUMNS)).sum(0) % 2) - 1)
        with h264lite.Encoder(*SIZE, 25, keep_reconstruction=True, **{**QUICK, **options}) as encoder:
            for planes in CLIP[:5]:
                packets += encoder.encode(tuple(planes), qp_offsets=checkered)
            packets += encoder.flush()
        qps = qps_of(decoded(packets))
        assert qps.min() == 0 and qps.max() == 51


@pytest.mark.parametrize("options", ({"qp": 27}, {"crf": 25, "bframes": 2}), ids=str)
def test_the_same_bytes_on_a_gpu(driver, options):  # noqa: F811
    expected = bytes_of(packets_of(frames=5, **options))
    assert bytes_of(packets_of(frames=5, **options, **{"device": "cuda"})) == expected
    assert bytes_of(packets_of(frames=5, **options, **{"device": "hybrid", "threads": 2})) == expected


def test_forms():
    """Floating-point numbers are rounded; the shape is that of macroblocks, also where the size is no multiple of 16."""
    plain = bytes_of(packets_of(frames=1))
    with h264lite.Encoder(*SIZE, 25, keep_reconstruction=True, **QUICK) as encoder:
        rounded = encoder.encode(tuple(CLIP[0]), qp_offsets=(offsets_of(0) + 0.3).astype(np.float32)) + encoder.flush()
    assert bytes_of(rounded) == plain
    width, height = 34, 18
    clip = round_trip.noise_clip(width, height, 2, 3)
    with h264lite.Encoder(width, height, 25, keep_reconstruction=True, **QUICK) as encoder:
        packets = [packet for planes in clip for packet in encoder.encode(tuple(planes), qp_offsets=np.full((2, 3), -5))]
        decoded(packets + encoder.flush())


@pytest.mark.parametrize(("given", "why"), [
    (np.zeros((ROWS, COLUMNS + 1)), "one number a macroblock is"), (3, "shape"), ("x", "an array of"),
    (np.full((ROWS, COLUMNS), 52), "beyond"), (np.full((ROWS, COLUMNS), np.nan), "beyond"),
    (np.zeros((ROWS, COLUMNS), complex), "an array of complex128"), ([[1], [1, 2]], "no array"),
], ids=str)  # fmt: skip
def test_wrong_offsets_are_refused_and_change_nothing(given, why):
    with h264lite.Encoder(*SIZE, 25, keep_reconstruction=True, **QUICK) as encoder:
        packets = encoder.encode(tuple(CLIP[0]))
        with pytest.raises(OptionError, match=why):
            encoder.encode(tuple(CLIP[1]), qp_offsets=given)
        packets += encoder.encode(tuple(CLIP[1]))
        packets += encoder.flush()
    expected = bytes_of(packets_of(0, 2))
    assert bytes_of(packets) == expected


@pytest.mark.parametrize("options", ({"qp": 27}, {"crf": 26, "bframes": 2}, {"crf": 23, "tune": "zerolatency"}), ids=str)
def test_a_writer_writes_what_an_encoder_returns(tmp_path, options):
    """keyframe of the first frame of a call, offsets of all; neither stays for the next call."""
    options = {**QUICK, **options}
    packets, offsets = [], offsets_of(0)
    with h264lite.Encoder(*SIZE, 25, **options) as encoder:
        for n, planes in enumerate(CLIP[:9]):
            wishes = {"keyframe": n in (3, 8), "qp_offsets": offsets if 3 <= n < 6 else None}
            packets += encoder.encode(tuple(planes), **wishes)
        packets += encoder.flush()
    frames = [tuple(planes) for planes in CLIP[:9]]
    with h264lite.VideoWriter(tmp_path / "o.264", 25, **options) as writer:
        writer.write(frames[:3])
        writer.write(frames[3:6], keyframe=True, qp_offsets=offsets)
        for wrong in ({"qp_offsets": np.zeros((1, 1))}, {"keyframe": 1}):
            with pytest.raises(OptionError, match=next(iter(wrong))):
                writer.write(frames[6], **wrong)
        writer.write_all(frames[6:8])
        writer.write(frames[8], keyframe=True)
    assert (tmp_path / "o.264").read_bytes() == bytes_of(packets)
    assert len([packet for packet in packets if packet.is_keyframe]) == 3


def test_keyframes_of_a_writer_stand_beside_those_of_fragments(tmp_path):
    with h264lite.VideoWriter(tmp_path / "o.mp4", 25, fragment=0.16, qp=30, **{**QUICK, "aq_mode": 0}) as writer:
        for n, planes in enumerate(CLIP[:12]):
            wishes = {"keyframe": n == 6, "qp_offsets": np.full((ROWS, COLUMNS), -7) if n == 10 else None}
            writer.write(tuple(planes), timestamps=n / 25, **wishes)
    frames = list(h264lite.analyse(tmp_path / "o.mp4"))
    assert (tmp_path / "o.mp4").read_bytes().count(b"moof") == 3
    assert [n for n, facts in enumerate(frames) if facts.is_idr] == [0, 4, 6, 10]
    qps = [facts.macroblocks.qp for facts in frames]
    assert (qps[10] == qps[6] - 7).all()
