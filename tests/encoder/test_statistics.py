"""PSNR and SSIM against their definitions; sums, lines and the summary."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from h264lite import Decoder
from h264lite.encoder import pipeline, statistics
from h264lite.encoder.encoded_frame import InBuffer
from h264lite.encoder.encoder import Encoder
from h264lite.encoder.files.video import split_planes
from h264lite.encoder.statistics import IN_BUFFER, SUMMED, FrameRow, Statistics, psnr, ssim
from h264lite.standard.macroblock import (
    I_PCM,
    MB_TYPE_NAMES,
    P_SKIP,
    I_4x4,
    I_8x8,
    I_16x16,
    P_8x8,
    P_16x8,
    P_16x16,
)

from ..support import round_trip
from ..support.fake_pipeline import EncodedFrame


def naive_ssim(a, b):
    """Window by window, in floating point."""
    values = []
    for y in range(0, a.shape[0] - 7, 4):
        for x in range(0, a.shape[1] - 7, 4):
            p, q = a[y : y + 8, x : x + 8].astype(float).ravel(), b[y : y + 8, x : x + 8].astype(float).ravel()
            c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
            covariance = ((p - p.mean()) * (q - q.mean())).sum() / 63
            values.append((2 * p.mean() * q.mean() + c1) * (2 * covariance + c2)
                          / ((p.mean() ** 2 + q.mean() ** 2 + c1) * (p.var(ddof=1) + q.var(ddof=1) + c2)))
    return np.mean(values)


@pytest.mark.parametrize("shape", [(8, 8), (16, 24), (33, 47)])
def test_ssim_is_its_definition(shape):
    rng = np.random.default_rng(7)
    a = rng.integers(0, 256, shape, np.uint8)
    b = np.clip(a + rng.normal(0, 20, shape), 0, 255).astype(np.uint8)
    assert ssim(a, b) == pytest.approx(naive_ssim(a, b), abs=2e-3)  # x264's constants: n (n - 1) for both variances
    assert ssim(a, a) == 1.0
    assert ssim(np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8)) < 0.01


def test_ssim_of_tiny_planes():
    assert ssim(np.full((1, 1), 9, np.uint8), np.full((1, 1), 9, np.uint8)) == 1.0


def test_psnr():
    assert psnr(0, 100) == 100.0
    assert psnr(255 * 255 * 100, 100) == 0.0
    assert psnr(100, 100) == pytest.approx(48.1308, abs=1e-4)


class _Frame(EncodedFrame):
    def __init__(self, index, kind, ssd, size, mbs):
        self.index, self.frame_type, self.is_idr, self.avg_qp = index, kind, kind == "I", 20.0 + index
        self.coding_index, self.qp_range, self.qp_by = index, (20, 20 + index), "type"
        self.ssd, self.data, self.mb_counts = ssd, bytes(size), np.zeros(len(MB_TYPE_NAMES), int)
        for mb_type, count in mbs.items():
            self.mb_counts[mb_type] = count
        self.sums, self.transform_8x8, self.bits_by_kind = [7] * len(SUMMED), 0, None
        self.stage_seconds, self.reconstruction, self.in_buffer = {"deblock": 0.5}, None, None
        self.predicted, self.ssim = 0, None


def added(stats, frame):
    """The row of a frame, added."""
    stats.add(frame)
    return stats.row(frame)


def test_shares_of_the_8x8_transform():
    stats, frame = Statistics(16, 16, Fraction(25)), _Frame(0, "I", (1, 1, 1), 10, {I_4x4: 1, I_8x8: 3})
    frame.transform_8x8 = 3
    stats.add(frame)
    frame = _Frame(1, "P", (1, 1, 1), 10, {I_8x8: 1, P_SKIP: 4, P_16x16: 2, P_8x8: 2})
    frame.transform_8x8 = 2
    assert dict(zip(FrameRow.header(), added(stats, frame).cells()))["transform_8x8"] == "2"
    lines = stats.lines()
    assert lines[2:5] == ["mb I  I16..4:  0.0% 75.0% 25.0%",
                          "mb P  I16..4:  0.0% 11.1%  0.0%  P16..8: 22.2%  0.0% 22.2%  skip:44.4%",
                          "8x8 transform  intra: 80.0%  inter: 25.0%"]
    told = stats.summary()
    assert [told[kind]["transform_8x8"] for kind in ("I", "P", "all")] == [3, 2, 5]
    assert told["P"]["macroblocks"]["I_8x8"] == 1


def test_sums():
    stats = Statistics(16, 16, Fraction(25))
    stats.add(_Frame(0, "I", (256, 64, 64), 1000, {I_4x4: 3, I_16x16: 1}))
    row = added(stats, _Frame(1, "P", (1024, 64, 0), 100, {P_SKIP: 1, P_16x16: 1, P_16x8: 1, P_8x8: 1}))
    assert len(row.cells()) == len(FrameRow.header()) and row.psnr_v == 100.0
    told = stats.summary()
    assert told["kbps"] == pytest.approx(1100 * 8 * 25 / 2 / 1000) and told["stage_seconds"] == {"deblock": 1.0}
    mean = (psnr(256, 256) + psnr(1024, 256)) / 2
    assert told["all"]["psnr_mean"]["y"] == pytest.approx(mean)
    assert told["all"]["psnr_global"]["y"] == pytest.approx(psnr(1280, 512))
    assert told["all"]["psnr_global"]["avg"] == pytest.approx(psnr(256 + 64 + 64 + 1024 + 64, 2 * 384))
    lines = stats.lines()
    assert lines[2] == "mb I  I16..4: 25.0% 75.0%"
    assert lines[3] == "mb P  I16..4:  0.0%  0.0%  P16..8: 25.0% 25.0% 25.0%  skip:25.0%"
    assert f"PSNR Mean Y:{mean:.3f}" in lines[-1]


def test_sums_of_many_frames_are_those_of_their_rows():
    """However many are summed at once, and whenever sums are read."""
    stats, rng, rows = Statistics(16, 16, Fraction(25)), np.random.default_rng(3), []
    for index in range(300):
        frame_type, ssd = "IPPB"[rng.integers(4)], tuple(rng.integers(1, 999, 3).tolist())
        frame = _Frame(index, frame_type, ssd, int(rng.integers(9, 99)), {int(rng.integers(15)): 1})
        frame.transform_8x8, frame.predicted, frame.bits_by_kind = index % 3, index % 5, (index, 2, 3, 4)
        frame.ssim, frame.qp_by = index / 512, ("type", "tree")[index % 2]
        rows.append(added(stats, frame))
        if index == 70:
            stats.lines()
    told = stats.summary()
    for frame_type in "IPB":
        of_type = [row for row in rows if row.type == frame_type]
        n, all_of_type = len(of_type), told[frame_type]
        assert (all_of_type["frames"], all_of_type["bytes"]) == (n, sum(row.bytes for row in of_type))
        assert all_of_type["avg_qp"] == sum(row.qp for row in of_type) / n and all_of_type["qp_least"] == 20
        assert all_of_type["qp_most"] == max(row.qp_range[1] for row in of_type)
        assert all_of_type["qp_spread"] == sum(row.qp_range[1] - 20 for row in of_type) / n
        assert all_of_type["qp_by"] == Counter(row.qp_by for row in of_type)
        for name, index in zip(("y", "u", "v", "avg"), range(4)):
            ratios = [(row.psnr_y, row.psnr_u, row.psnr_v, row.psnr)[index] for row in of_type]
            assert all_of_type["psnr_mean"][name] == pytest.approx(sum(ratios) / n, rel=1e-12)
        assert sum(all_of_type["macroblocks"].values()) == n and all_of_type["transform_8x8"] == sum(
            row.transform_8x8 for row in of_type
        )
        assert all_of_type["bits_predicted"] == sum(row.predicted for row in of_type)
        assert list(all_of_type["bits_by_kind"].values()) == np.sum([row.bits_by_kind for row in of_type], 0).tolist()
    assert told["frames"] == len(rows) == told["all"]["frames"] and told["bytes"] == told["all"]["bytes"]


def test_sums_of_arrays_are_columns(monkeypatch):
    """Of arrays of any shape and dtype, in the order of SUMMED."""
    names, wanted, write = ("total_coeff", "mv"), [], pipeline.Pipeline._write

    def noting(self, frame):
        wanted.append([sum(frame.results[name].ravel().tolist()) for name in names])
        return write(self, frame)

    monkeypatch.setattr(pipeline, "SUMMED", names)
    monkeypatch.setattr(statistics, "SUMMED", names)
    monkeypatch.setattr(pipeline.Pipeline, "_write", noting)
    clip = np.random.default_rng(3).integers(0, 256, (3, 32 * 48), np.uint8)
    with Encoder(width=32, height=32, qp=30, device="cpu", threads=1, gops=1, bframes=0) as encoder:
        finished = round_trip.finished(encoder, (split_planes(frame, 32, 32) for frame in clip))
    assert FrameRow.header()[-2:] == [*names] and all(coefficients for coefficients, _ in wanted)
    assert [row.cells()[-2:] for _, row in finished] == [[str(value) for value in sums] for sums in wanted]


def test_bits_by_kind_are_columns_and_shares():
    stats, frame = Statistics(16, 16, Fraction(25)), _Frame(0, "I", (1, 1, 1), 10, {I_4x4: 1})
    at = FrameRow.header().index("bits_headers")
    assert added(stats, frame).cells()[at : at + 4] == [""] * 4 and "bits_by_kind" not in stats.summary()["all"]
    frame.bits_by_kind = (20, 10, 40, 10)
    assert added(stats, frame).cells()[at : at + 4] == ["20", "10", "40", "10"]
    assert stats.lines()[2] == "bits I  headers: 25.0%  vectors: 12.5%  luma: 50.0%  chroma: 12.5%"
    assert stats.summary()["all"]["bits_by_kind"] == {"headers": 20, "vectors": 10, "luma": 40, "chroma": 10}


@pytest.mark.parametrize(
    "options", ({"profile": "baseline", "qp": 1}, {"profile": "high", "slices": 3, "aud": True}), ids=str
)
def test_bits_by_kind_of_an_encode(options):
    """Together the bytes of each frame; none of a type that is not there; shares of 8x8 as the decoder finds them."""
    clip = round_trip.noise_clip(66, 66, 4, 5)
    grey = [(y, np.full_like(u, 128), np.full_like(v, 128)) for y, u, v in clip]
    for frames, has_chroma in ((clip, True), (grey, False)):
        pairs = round_trip.rows(frames, 66, 66, device="cpu", threads=2, bits_by_kind=True, **options)
        decoder = Decoder(macroblocks=True)
        decoded = [*decoder.decode(b"".join(frame.data for frame, _ in pairs)), *decoder.flush()]
        for (frame, row), analysed in zip(pairs, decoded, strict=True):
            assert sum(row.bits_by_kind) == 8 * len(frame.data) and min(row.bits_by_kind) >= 0
            assert (row.bits_by_kind[1] > 0) == any(row.mb_counts[P_16x16 : P_8x8 + 1]) and row.bits_by_kind[2] > 0
            assert has_chroma == (row.bits_by_kind[3] > 0)
            types = analysed.macroblocks.mb_type
            assert row.mb_counts == tuple(np.bincount(types, minlength=len(MB_TYPE_NAMES)))
            assert row.transform_8x8 == np.count_nonzero(analysed.macroblocks.transform_8x8)


def test_the_buffer_is_told():
    stats = Statistics(16, 16, Fraction(25))
    assert "buffer" not in stats.summary() and not any("buffer" in line for line in stats.lines())
    for k, in_buffer in enumerate((InBuffer(900, 500, 1000, 0, 1), InBuffer(700, -10, 1000, 20, 3))):
        frame = _Frame(k, "P", (1, 1, 1), 10, {P_SKIP: 1})
        frame.in_buffer = in_buffer
        cells = dict(zip(FrameRow.header(), added(stats, frame).cells()))
        assert [int(cells[name]) for name in IN_BUFFER] == list(in_buffer)
    (line,) = [line for line in stats.lines() if "buffer" in line]
    assert line == ("buffer  least: -1.0%  mean: 24.5%  coded again:1 frames, 2 times  filler:20 bytes"
                    "  underflows:1, the first at frame 1")
    assert stats.summary()["buffer"] == {
        "frames": 2, "size": 1000, "least": -10, "sum": 490, "coded_again": 1, "tries": 4, "underflows": 1,
        "first_underflow": 1, "filler": 20,
    }  # fmt: skip


def test_pcm_is_shown_where_there_is_some():
    stats = Statistics(16, 16, Fraction(25))
    stats.add(_Frame(0, "I", (0, 0, 0), 500, {I_PCM: 1}))
    assert "mb I  I16..4..PCM:  0.0%  0.0% 100.0%" in stats.lines()


def test_nothing_encoded_says_nothing():
    stats = Statistics(16, 16, Fraction(25))
    assert stats.lines() == [] and stats.summary()["frames"] == 0 and stats.kbps == 0
