"""A QP for each macroblock: both decoders return the reconstruction, the own one also the QPs; a GPU gives the same bytes."""

import h264lite
import numpy as np
import pytest
from h264lite.encoder.decisions import adaptive_quantisation
from h264lite.encoder.errors import OptionError
from h264lite.encoder.settings.config import Config
from h264lite.standard.macroblock import I_PCM

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..support import round_trip
from ..support.steady import steady
from .test_cuda_streams import compare

WIDTH, HEIGHT = 82, 66
MAPS = {
    "jumps": lambda rng, n: rng.integers(0, 52, n),
    "steps": lambda rng, n: 26 + np.cumsum(rng.integers(-1, 2, n)) % 12,
    "finest beside any": lambda rng, n: rng.integers(0, 2, n) * rng.integers(0, 52, n),  # I_PCM
    "few": lambda rng, n: np.where(rng.random(n) < 0.1, 20, 48),  # most macroblocks have no residual
}
B = {"bframes": 2, "b_adapt": 0, "no_scenecut": True}
TOOLS = (
    {"profile": "baseline", "subme": 4},
    {"profile": "baseline", "slices": 3, "ref": 2, "subme": 6},
    {"profile": "main", "slices": 2},
    {"subme": 7, "psy_rd": 1, "chroma_qp_offset": -5, "ref": 2},
    {"no_cabac": True, "subme": 5, "chroma_qp_offset": 7},
    {"subme": 6, **B},
    {"subme": 2, "no_cabac": True, "slices": 4, **B},
    {"cqm": "jvt", "weightp": 1, "deblock": (2, 2), **B},
    {"trellis": 0, "subme": 3, "deblock_within_slices": True, "slices": 2},
    {"subme": 10, "psy_rd": 1, "chroma_qp_offset": 3, "ref": 2, "slices": 2},
    {"subme": 10, "cqm": "jvt", "weightp": 1, **B},
    {"subme": 10, "no_8x8dct": True, **B},
)
ON_GPU = [tools for tools in TOOLS if tools.get("subme", 0) < 6 or "profile" not in tools]


def set_mb_qps(monkeypatch, kind):
    """Encodes with aq_mode 1 have the QPs of this kind, other ones in each frame; "some": two of three frames, at random."""
    def with_map(spec, energy, *_):
        rng = np.random.default_rng(spec.display_index)
        if kind == "some" and spec.display_index % 3 == 0:
            return spec
        qps = rng.integers(20, 40, energy.size) if kind == "some" else MAPS[kind](rng, energy.size)
        return spec._replace(mb_qp=qps.astype(np.uint8).tobytes())

    monkeypatch.setattr(adaptive_quantisation, "with_mb_qp", with_map)


@pytest.fixture(params=MAPS)
def mapped(request, monkeypatch):
    """See set_mb_qps."""
    set_mb_qps(monkeypatch, request.param)
    return request.param


def encoded(clip, **options):
    """The frames with their reconstruction, in coding order."""
    height, width = clip[0][0].shape
    with h264lite.Encoder(width, height, 30, keep_reconstruction=True, device="cpu", **steady(options)) as encoder:
        return [frame for frame, _ in round_trip.finished(encoder, clip)]


def checked(clip, **options):
    """The frames, after both decoders have returned exactly the reconstruction, and ours the QPs."""
    frames = encoded(clip, **options)
    stream, shown = b"".join(frame.data for frame in frames), sorted(frames, key=lambda frame: frame.index)
    expected = [frame.reconstruction for frame in shown]
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), expected, "FFmpeg")
    decoder = h264lite.Decoder(macroblocks=True)
    decoded = [*decoder.decode(stream), *decoder.flush()]
    round_trip.assert_same([[frame.y, frame.u, frame.v] for frame in decoded], expected, "own decoder")
    for frame, coded in zip(decoded, shown):
        qp = frame.macroblocks.qp  # of I_PCM 0, as the deblocking filter takes it
        assert coded.mb_counts[I_PCM] or (qp.mean(), qp.min(), qp.max()) == pytest.approx((coded.avg_qp, *coded.qp_range))
    return frames


@pytest.mark.half
@pytest.mark.parametrize("tools", TOOLS, ids=str)
def test_decoders(mapped, tools):
    frames = checked(round_trip.noise_clip(WIDTH, HEIGHT, 5, 3), aq_mode=1, bits_by_kind=True, **tools)
    assert any(len(set(frame.qp_range)) == 2 for frame in frames)
    if mapped.startswith("finest"):
        assert sum(frame.mb_counts[I_PCM] for frame in frames)
    for frame in frames:
        assert sum(frame.bits_by_kind) == frame.bits and min(frame.bits_by_kind) >= 0


@pytest.mark.parametrize("tools", ON_GPU, ids=str)
def test_gpu(gpu, mapped, tools):  # noqa: F811
    compare(round_trip.noise_clip(34, 66, 4, 5), 34, 66, aq_mode=1, **tools)


@pytest.mark.parametrize(("width", "height"), [(48, 34), (35, 50)])
def test_modes_on_the_gpu(gpu, width, height):  # noqa: F811
    """Energies of frames of display height and of coded size."""
    clip = round_trip.noise_clip(width, height, 3, 5)
    for mode in (1, 2, 3):
        compare(clip, width, height, aq_mode=mode, aq_strength=2, subme=2, merange=4)


def test_some_frames_on_the_gpu(gpu, monkeypatch):  # noqa: F811
    """Recordings of frames with one QP and with many are not mistaken for one another."""
    set_mb_qps(monkeypatch, "some")
    clip = round_trip.noise_clip(34, 18, 5, 4)
    compare([clip[n % 5] for n in range(24)], 34, 18, aq_mode=1, subme=2, merange=4, partitions="none")


@pytest.mark.parametrize("gops", [1, 2])
def test_the_same_for_threads_and_gops(gops):
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 8, 6)
    streams = {b"".join(f.data for f in encoded(clip, aq_mode=2, keyint=4, bframes=1, threads=threads, gops=gops))
               for threads in (1, 3)}  # fmt: skip
    assert streams == {b"".join(f.data for f in encoded(clip, aq_mode=2, keyint=4, bframes=1, threads=1))}


@pytest.mark.parametrize("mode", [1, 2, 3])
@pytest.mark.parametrize("strength", [0.4, 3])
def test_modes(mode, strength):
    frames = checked(round_trip.noise_clip(WIDTH, HEIGHT, 4, 8), aq_mode=mode, aq_strength=strength, bframes=1)
    assert any(low < high for low, high in (frame.qp_range for frame in frames))


def qps_of(packets):
    """QPs of the macroblocks of each frame, none of them I_PCM, as our decoder has them."""
    decoder = h264lite.Decoder(macroblocks=True)
    frames = [*decoder.decode(b"".join(packet.data for packet in packets)), *decoder.flush()]
    assert not any((frame.macroblocks.mb_type == I_PCM).any() for frame in frames)
    return [set(frame.macroblocks.qp.ravel().tolist()) for frame in frames]


def test_chosen_qps_keep_limits_and_requests():
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 6, 9)
    tools = {"subme": 10, "crf": 27, "bframes": 0, "scenecut": 0, "device": "cpu"}
    with h264lite.Encoder(WIDTH, HEIGHT, 30, qpmin=26, qpmax=28, **tools) as encoder:
        assert {26, 28} <= set().union(*qps_of(round_trip.packets_of(encoder, clip))) <= {26, 27, 28}
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **tools) as encoder:
        packets = [encoder.encode(tuple(planes), qp=33 if n % 2 else None) for n, planes in enumerate(clip)]
        qps = qps_of([packet for some in packets for packet in some] + encoder.flush())
    assert qps[1] == qps[3] == qps[5] == {33} and all(len(qps[n]) > 1 for n in (2, 4))


def test_strength_0_is_one_qp():
    clip = round_trip.noise_clip(34, 34, 3, 3)
    plain, none = (b"".join(f.data for f in encoded(clip, **more)) for more in ({}, {"aq_mode": 1, "aq_strength": 0}))
    assert plain == none
    for frame in encoded(clip, aq_mode=1, aq_strength=0):
        assert frame.qp_range == (frame.qp, frame.qp)


def test_refused_where_it_is_not_built():
    for wrong in ({"aq_mode": 4}, {"aq_mode": -1}, {"aq_strength": 3.5}, {"aq_strength": "x"}):
        with pytest.raises(OptionError):
            Config.from_options(width=64, height=64, **wrong)


def test_csv_has_the_range(tmp_path):
    """Mean, least and largest QP of each frame."""
    pairs = round_trip.rows(round_trip.noise_clip(48, 48, 2, 3), 48, 48, aq_mode=1, device="cpu")
    for frame, row in pairs:
        cells = dict(zip(row.header(), row.cells()))
        assert (int(cells["qp_least"]), int(cells["qp_most"])) == frame.qp_range
        assert float(cells["qp"]) == pytest.approx(frame.avg_qp, abs=0.01)
