"""Limits of Annex A: exceeded by streams that say a lower level than they need, held by those of the encoder."""

import h264lite
import numpy as np
import pytest
from h264lite.standard.bits import NAL_SPS, nal_unit
from h264lite.standard.syntax import parse_sps, write_sps

from ..support import level_limits
from .test_hrd_model import rebuilt

NOISE = np.random.default_rng(3).integers(0, 256, (5, 96, 160), np.uint8)


def stream(frames, **options):
    planes = [(y, y[::2, ::2].copy(), y[1::2, ::2].copy()) for y in frames]
    return h264lite.encode(planes, **{"device": "cpu", "preset": "ultrafast", "no_cabac": False, "fps": 1, **options})


def problems(data, limited=False, **changes):
    """Of the stream with fields of the SPS changed."""

    def change(unit, count):
        if unit.nal_unit_type != NAL_SPS:
            return True
        sps = parse_sps(unit.rbsp())
        for name, value in changes.items():
            setattr(sps.vui if hasattr(sps.vui, name) else sps, name, value)
        return nal_unit(NAL_SPS, 3, write_sps(sps))[4:]

    decoder = h264lite.Decoder(macroblocks=True)
    changed = rebuilt(data, change)
    return level_limits.problems(changed, [*decoder.decode(changed), *decoder.flush()], limited)


@pytest.fixture(scope="module")
def small_blocks():
    """4x4 blocks of P macroblocks whose vectors go far up: the picture moves by 80 samples, in stripes."""
    rows = np.random.default_rng(4).integers(80, 176, (400, 160), np.uint8)
    frames = [np.ascontiguousarray(rows[start : start + 96]) for start in (0, 60, 120)]
    shifts = np.random.default_rng(5).integers(-3, 4, (24, 40))
    for n in (1, 2):
        source = frames[n].copy()
        for y in range(1, 23):
            for x in range(1, 39):
                shift = int(shifts[y, x])
                frames[n][4 * y : 4 * y + 4, 4 * x : 4 * x + 4] = source[4 * y : 4 * y + 4, 4 * x + shift : 4 * x + shift + 4]
    return stream(frames, qp=22, merange=64, subme=4, partitions="all", preset="medium", bframes=0, level="2", me="fsbm")


def test_what_the_encoder_says_holds(small_blocks):
    assert not problems(small_blocks)
    assert not problems(stream(NOISE, qp=30, bframes=2))


def test_vectors(small_blocks):
    assert any("vectors in two macroblocks, at most 16" in text for text in problems(small_blocks, level_idc=31))
    assert any("in quarters of a sample" in text for text in problems(small_blocks, level_idc=10))


def test_sizes_and_rates():
    data = stream(NOISE, qp=40, level="2.1")
    for level, changes, said in (
        (10, {}, []), (10, {"time_scale": 60}, ["macroblocks a second"]),
        (21, {"max_dec_frame_buffering": 16, "max_num_ref_frames": 16}, []),
        (10, {"max_dec_frame_buffering": 7, "max_num_ref_frames": 7}, ["decoded picture buffer"]),
        (10, {"max_num_reorder_frames": 5}, ["frames reordered"]),
    ):  # fmt: skip
        texts = problems(data, level_idc=level, **changes)
        assert len(texts) == len(said) and all(word in text for word, text in zip(said, texts)), texts
    wide = stream([np.zeros((16, 480), np.uint8)], qp=40)
    assert "squared side" in problems(wide, level_idc=10)[0]
    large = stream([np.zeros((160, 176), np.uint8)], qp=40)
    assert "macroblocks a frame" in problems(large, level_idc=10)[0]


def test_slices_and_compression():
    data = stream(NOISE, qp=30, slices=6, fps=30)
    assert not problems(data) and not problems(data, level_idc=31)
    texts = problems(data, level_idc=31, time_scale=2 * 400)
    assert [text.partition(":")[0] for text in texts] == [f"slices of picture {n}" for n in range(1, 5)]
    texts = problems(stream(NOISE[:2], qp=0, fps=20), limited=True)
    assert [text.partition(":")[0] for text in texts] == ["bytes of picture 0", "bytes of picture 1"]


def test_buffers():
    data = stream(NOISE, crf=40, vbv_maxrate=120, vbv_bufsize=200, nal_hrd="vbr", fps=15)
    assert not problems(data)
    texts = problems(data, level_idc=10)
    assert [text.partition(":")[0] for text in texts] == ["bit rate"], texts
    assert problems(stream(NOISE, crf=40, vbv_maxrate=60, vbv_bufsize=300, nal_hrd="vbr", fps=15), level_idc=10)
