"""`h264lite.analyse` beside facts of others: the encoder's own arrays, `--csv`, FFmpeg's vectors and types, JVT vectors."""

import io
from pathlib import Path

import h264lite
import numpy as np
import pytest
from h264lite.analysis.analyse import in_display_order
from h264lite.analysis.frame import BIT_UNIT, AnalysedFrame
from h264lite.cpu_simd.bundles import Macroblocks
from h264lite.decoder.bounds import check_deblocking_call
from h264lite.decoder.dpb import PictureBuffer
from h264lite.decoder.errors import StateError
from h264lite.decoder.layout import Traces
from h264lite.decoder.picture import Pool
from h264lite.encoder.pipeline import Pipeline
from h264lite.standard.macroblock import I_PCM, LAST_INTRA

from ..support import round_trip, sequences, x264_streams

EXPORT_MVS = 1 << 28  # AV_CODEC_FLAG2_EXPORT_MVS
JVT = ("CABA3_SVA_B.264", "Freh2_B.264", "FRExt3_Panasonic.avc", "SVA_Base_B.264", "BASQP1_Sony_C.jsv", "MR4_TANDBERG_C.264")
OWN = (
    {"profile": "baseline", "slices": 3, "ref": 3, "subme": 5},
    {"profile": "high", "bframes": 3, "b_pyramid": "normal", "ref": 3, "aud": True},
    {"profile": "main", "bframes": 2, "slices": 2, "weightp": 2, "aq_mode": 1},
    {"profile": "high", "no_cabac": True, "partitions": "all", "keyint": 5, "info_sei": True},
)


def check_sums(frame: AnalysedFrame) -> None:
    """Bits of macroblocks are those of their slices; sizes are those of the access unit."""
    arrays = frame.macroblocks
    for number, part in enumerate(frame.slices):
        mine = arrays.slice_id == number
        assert np.count_nonzero(mine) == part.mb_count and arrays.slice_id.ravel()[part.first_mb] == number
        assert arrays.bits[mine].sum() == part.data_bits
        assert arrays.bits_by_kind[mine].sum() == BIT_UNIT * part.data_bits
    assert frame.header_bits == frame.bits - sum(part.data_bits for part in frame.slices)
    assert sum(frame.bits_by_kind.values()) == frame.bits == 8 * sum(size for _, size in frame.units)
    assert (np.abs(arrays.bits_by_kind.sum(axis=2) - BIT_UNIT * arrays.bits) <= 16 * BIT_UNIT).all()


@pytest.mark.parametrize("options", OWN, ids=str)
def test_own_streams_are_what_the_encoder_says(options, monkeypatch):
    """Types, vectors, references, QPs, bits by kind: the arrays of the encoder, and the rows of --csv."""
    arrays = {}
    by_kind = Pipeline._bits_by_kind

    def kept(self, frame, bits):
        arrays[frame.spec.coding_index] = {name: frame.results[name].copy() for name in Macroblocks._fields}
        return by_kind(self, frame, bits)

    monkeypatch.setattr(Pipeline, "_bits_by_kind", kept)
    clip = round_trip.noise_clip(98, 66, 12, 5)
    pairs = round_trip.rows(clip, 98, 66, device="cpu", threads=2, bits_by_kind=True, **options)
    stream = b"".join(frame.data for frame, _ in pairs)
    frames = [*h264lite.analyse(stream)]
    assert len(frames) == len(pairs) == 12
    for frame, (packet, row) in zip(frames, pairs):
        check_sums(frame)
        mine, theirs = frame.macroblocks, arrays[frame.coding_index]
        assert (frame.coding_index, frame.display_index, frame.frame_type) == (row.coded, row.frame, row.type)
        assert frame.bits == 8 * row.bytes == 8 * len(packet.data) and frame.is_idr == bool(row.idr)
        assert tuple(frame.bits_by_kind.values()) == row.bits_by_kind
        assert tuple(np.bincount(mine.mb_type.ravel(), minlength=15)) == row.mb_counts
        assert (mine.mb_type.ravel() == theirs["mb_type"]).all()
        coded = mine.mb_type != I_PCM
        assert (mine.qp.min(), mine.qp.max()) == row.qp_range and abs(mine.qp.mean() - row.qp) < 1e-9 and coded.all()
        assert (frame.by_macroblock("qp") == theirs["qp"]).all() and (mine.transform_8x8.sum() == row.transform_8x8)
        inter = frame.by_macroblock("mb_type") > LAST_INTRA
        used = frame.by_macroblock("ref_idx")[:, 0] >= 0
        assert (used.all(1) | ~inter | (frame.frame_type == "B")).all() and not used[~inter].any()
        assert (frame.by_macroblock("mv")[:, 0][used] == theirs["mv"].reshape(-1, 16, 2)[used]).all()


def test_our_clip_has_every_kind_of_thing():
    """What the tests above rely on."""
    clip = round_trip.noise_clip(98, 66, 12, 5)
    stream, _ = round_trip.encode(clip, 98, 66, device="cpu", **OWN[1])
    frames = [*h264lite.analyse(stream)]
    assert {frame.frame_type for frame in frames} == set("IPB")
    assert [f.display_index for f in frames] != [f.coding_index for f in frames]
    b = [f for f in frames if f.frame_type == "B"]
    assert any((f.macroblocks.reference[1] > f.display_index).any() for f in b)
    assert all(max(f.references) > f.display_index > min(f.references) for f in b)


def ffmpeg_frames(stream: bytes):
    """FFmpeg's frames with its vectors, in display order."""
    av = pytest.importorskip("av", reason="PyAV brings the independent decoder")
    with av.open(io.BytesIO(stream), format="h264") as container:
        video = container.streams.video[0]
        video.thread_type = "NONE"
        video.codec_context.flags2 |= EXPORT_MVS
        for frame in container.decode(video):
            vectors = frame.side_data.get("MOTION_VECTORS")
            yield " IPB"[int(frame.pict_type)], frame.to_ndarray(), None if vectors is None else vectors.to_ndarray()


def compare_with_ffmpeg(stream: bytes) -> int:
    """Types, samples and vectors of all frames; the number of vectors."""
    count = 0
    mine = in_display_order(h264lite.analyse(stream, samples=True))
    for frame, (frame_type, picture, vectors) in zip(mine, ffmpeg_frames(stream), strict=True):
        check_sums(frame)
        assert frame.frame_type == frame_type
        assert (picture[: frame.height] == frame.samples.y).all()
        if vectors is None:
            assert (frame.macroblocks.ref_idx < 0).all()
            continue
        which = (vectors["source"] > 0).astype(int)
        y, x = vectors["dst_y"] - vectors["h"] // 2, vectors["dst_x"] - vectors["w"] // 2
        vector = frame.macroblocks.mv[which, y // 4, x // 4]
        assert (vector == np.stack((vectors["motion_x"], vectors["motion_y"]), -1)).all()
        assert (vectors["motion_scale"] == 4).all()
        if frame.frame_type == "P":  # in B frames FFmpeg leaves some out, and has zeros where a list is not used
            assert (frame.macroblocks.ref_idx[which, y // 4, x // 4] >= 0).all()
            covered = np.zeros(frame.macroblocks.ref_idx.shape, bool)
            for k, top, left, height, width in zip(which, y, x, vectors["h"], vectors["w"]):
                covered[k, top // 4 : (top + height) // 4, left // 4 : (left + width) // 4] = True
            assert (covered == (frame.macroblocks.ref_idx >= 0)).all()
        count += len(vectors)
    return count


@pytest.mark.parametrize("name", JVT)
def test_jvt_vectors_beside_ffmpeg(name):
    data = (sequences.conformance_folder() / name).read_bytes()
    assert compare_with_ffmpeg(data) > 1000 or name == "BASQP1_Sony_C.jsv"
    frames = [*h264lite.analyse(data)]
    if name in ("BASQP1_Sony_C.jsv", "SVA_Base_B.264"):
        assert max(len(frame.slices) for frame in frames) > 2
    end = b"\0\0\0\1\x0b\x80"  # an end of stream behind an end of sequence is of no frame
    assert sum(frame.bits for frame in frames) == 8 * len(data.rstrip(b"\0").removesuffix(end))


@pytest.mark.parametrize("options", (
    {"bframes": 3, "b_adapt": 0, "ref": 4, "direct": "temporal", "partitions": "all"},
    {"bframes": 2, "ref": 2, "cabac": 0, "slices": 3, "weightb": 1, "weightp": 2},
    {"profile": "baseline", "ref": 3, "partitions": "all", "qp": 20},
), ids=str)  # fmt: skip
def test_x264_streams_beside_ffmpeg(options):
    stream = x264_streams.encode(x264_streams.clip(), **options)
    assert compare_with_ffmpeg(stream) > 300
    assert sum(frame.bits for frame in h264lite.analyse(stream)) == 8 * len(stream)


def test_prediction_and_residual(monkeypatch):
    """Prediction plus residual are the samples before deblocking; skipped macroblocks have none."""
    clip = round_trip.noise_clip(66, 66, 6, 3)
    stream, _ = round_trip.encode(clip, 66, 66, device="cpu", deblock=False, bframes=1, qp=30)
    for frame in h264lite.analyse(stream, samples=True):
        arrays = frame.macroblocks
        assert not arrays.strengths.any()
        difference = frame.samples.y.astype(int) - frame.prediction.y
        padded = np.zeros((16 * frame.mb_height, 16 * frame.mb_width), int)
        padded[: frame.height, : frame.width] = difference
        energy = (padded**2).reshape(frame.mb_height, 16, frame.mb_width, 16).sum((1, 3))
        whole = slice(frame.height // 16), slice(frame.width // 16)
        assert (energy[whole] == arrays.residual_energy[whole]).all() and arrays.residual_energy.any()
        assert not arrays.residual_energy[arrays.skip].any() and not arrays.residual_energy[arrays.cbp & 15 == 0][
            arrays.mb_type[arrays.cbp & 15 == 0] > LAST_INTRA].any()  # fmt: skip
        none = np.kron(arrays.skip, np.ones((8, 8), bool))[: frame.height // 2, : frame.width // 2]
        assert (frame.samples.u[none] == frame.prediction.u[none]).all()
        assert (frame.samples.v[none] == frame.prediction.v[none]).all()


def test_strengths_follow_the_standard():
    """8.7.2.1 from the other arrays: intra edges, coded blocks, motion; one slice, 4x4 transform."""
    clip = round_trip.noise_clip(98, 66, 6, 5)
    stream, _ = round_trip.encode(clip, 98, 66, device="cpu", profile="main", bframes=1, ref=2, qp=30)
    for frame in h264lite.analyse(stream):
        arrays = frame.macroblocks
        intra = np.kron(arrays.mb_type <= LAST_INTRA, np.ones((4, 4), bool))
        coded = arrays.total_coeff > 0
        coded[intra] = True
        for direction, axis in ((0, 1), (1, 0)):
            def before(grid, axis=axis):
                return np.roll(grid, 1, axis)

            at_border = np.arange(intra.shape[axis])
            shape = [1, 1]
            shape[axis] = -1
            inside, outer = (at_border > 0).reshape(shape), (at_border % 4 == 0).reshape(shape)
            either_intra, either_coded = intra | before(intra), coded | before(coded)
            inter = np.where(either_coded, 2, _motion_strength(arrays, axis))
            expected = np.where(either_intra, np.where(outer, 4, 3), inter)
            assert (arrays.strengths[direction] == expected * inside).all()


def _motion_strength(arrays, axis):
    """1 where references or vectors differ, else 0 (8.7.2.1)."""
    out = np.zeros(arrays.total_coeff.shape, int)
    for y, x in np.ndindex(out.shape):
        py, px = (y, x - 1) if axis else (y - 1, x)
        sets = []
        for b, a in ((y, x), (py, px)):
            sets.append([(arrays.reference[k, b, a], arrays.mv[k, b, a]) for k in range(2) if arrays.ref_idx[k, b, a] >= 0])
        q, p = sets

        def near(one, other):
            return all(r == s and (abs(v.astype(int) - w) < 4).all() for (r, v), (s, w) in zip(one, other))

        out[y, x] = len(p) != len(q) or not (near(p, q) or near(p, q[::-1]))
    return out


def test_sources(tmp_path):
    """Names, bytes, file objects, MP4: the same frames; what is no source is refused."""
    clip = round_trip.noise_clip(66, 34, 5, 3)
    stream, _ = round_trip.encode(clip, 66, 34, device="cpu")
    path, movie = tmp_path / "a.264", tmp_path / "a.mp4"
    path.write_bytes(stream)
    with h264lite.VideoWriter(movie, fps=30, device="cpu", qp=27) as writer:
        for y, _, _ in clip:
            writer.write(np.repeat(y[..., None], 3, 2))
    expected = [frame.data for frame in h264lite.analyse(stream)]
    assert b"".join(expected).replace(b"\0\0\0\1", b"\0\0\1") == stream.replace(b"\0\0\0\1", b"\0\0\1")
    for source in (path, str(path), bytearray(stream), memoryview(stream), io.BytesIO(stream), open(path, "rb")):
        assert [frame.data for frame in h264lite.analyse(source)] == expected
    assert len([*h264lite.analyse(movie)]) == 5
    with pytest.raises(TypeError, match="not int"):
        h264lite.analyse(3)
    with pytest.raises(FileNotFoundError):
        h264lite.analyse(Path(tmp_path / "none"))
    broken = h264lite.analyse(stream[:-40] + b"\0\0\1\x41\xff\xff\xff")
    with pytest.raises(h264lite.BitstreamError):
        list(broken)


def test_memory_is_bounded_by_reordering():
    """A frame is given out when the next ones are decoded, not at the end."""
    clip = round_trip.noise_clip(34, 34, 40, 3)
    stream, _ = round_trip.encode(clip, 34, 34, device="cpu", bframes=3)
    from h264lite.analysis.recorder import Recorder
    from h264lite.decoder.decoder import Decoder

    recorder, most = Recorder(False), 0
    for _ in Decoder(observer=recorder).decode(stream):
        most = max(most, len(recorder._waiting) + len(recorder.ready))
    assert 1 <= most <= 8


def test_frames_that_are_never_shown():
    """C.4.4: pictures that an IDR picture discards have no place in display order, and do not hold up the others."""
    clip = round_trip.noise_clip(34, 34, 7, 3)
    stream, _ = round_trip.encode(clip, 34, 34, device="cpu", bframes=3, b_pyramid="none", no_cabac=True)
    discarding = PictureBuffer.flush

    def flush(self, discard=None):  # IDR pictures say it, the end of the stream does not
        discarding(self, discard is not None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PictureBuffer, "flush", flush)
        frames = [*h264lite.analyse(stream + stream)]
    shown = [frame.display_index for frame in frames if frame.display_index >= 0]
    assert [frame.coding_index for frame in frames] == [*range(14)] and 0 < len(shown) < 14
    assert sorted(shown) == [*range(len(shown))]
    assert [frame.display_index for frame in in_display_order(frames)] == sorted(shown)


def test_damaged_streams_end_in_frames_or_one_error():
    clip = round_trip.noise_clip(66, 34, 6, 3)
    rng = np.random.default_rng(1)
    for options in ({"bframes": 1}, {"profile": "baseline"}):
        stream, _ = round_trip.encode(clip, 66, 34, device="cpu", **options)
        for _ in range(150):
            data = bytearray(stream)
            for at in rng.integers(0, len(data), 3):
                data[at] ^= 1 << rng.integers(8)
            try:
                for frame in h264lite.analyse(data, samples=True):
                    check_sums(frame)
            except (h264lite.BitstreamError, h264lite.Unsupported):
                pass


@pytest.mark.parametrize("name", Traces._fields)
def test_kernels_are_not_called_with_traces_of_another_size(name):
    stream, _ = round_trip.encode(round_trip.noise_clip(34, 34, 1, 3), 34, 34, device="cpu")
    (frame,) = h264lite.analyse(stream)
    pool = Pool(frame.sps, 1, True)
    table = np.zeros((1, 5), np.int32)
    pool.mbs.slice_id.fill(0)
    check_deblocking_call(pool, table, 0)
    pool.traces = pool.traces._replace(**{name: np.ascontiguousarray(getattr(pool.traces, name)[..., :-1])})
    with pytest.raises(StateError):
        check_deblocking_call(pool, table, 0)


@pytest.mark.parametrize("cabac", (True, False))
def test_pcm(cabac):
    """I_PCM: its samples are luma and chroma bits, its QP is that before, and the rows of --csv agree."""
    rng = np.random.default_rng(2)
    clip = [[rng.integers(0, 256, (h, w)).astype(np.uint8) for h, w in ((34, 66), (17, 33), (17, 33))] for _ in range(3)]
    pairs = round_trip.rows(clip, 66, 34, device="cpu", qp=5, no_cabac=not cabac, bits_by_kind=True)
    frames = [*h264lite.analyse(b"".join(frame.data for frame, _ in pairs), samples=True)]
    assert sum(row.mb_counts[I_PCM] for _, row in pairs)
    for frame, (_, row) in zip(frames, pairs, strict=True):
        check_sums(frame)
        arrays = frame.macroblocks
        pcm = arrays.mb_type == I_PCM
        assert tuple(np.bincount(arrays.mb_type.ravel(), minlength=15)) == row.mb_counts
        assert tuple(frame.bits_by_kind.values()) == row.bits_by_kind
        assert (arrays.bits_by_kind[pcm][:, 3:] == (BIT_UNIT * 2048, BIT_UNIT * 1024)).all()
        assert arrays.qp.mean() == row.qp > 0 and (arrays.qp.min(), arrays.qp.max()) == row.qp_range
        assert not arrays.residual_energy[pcm].any() and arrays.total_coeff.max() == 16
