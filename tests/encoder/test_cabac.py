"""Streams by CABAC: two decoders return the reconstruction; what parameter sets say; limits of bins (7.4.2.10)."""

import h264lite
import numpy as np
import pytest
from h264lite.cpu_simd.entropy.entropy import write_slices
from h264lite.cpu_simd.inter.mv_prediction import predict_skip_mv
from h264lite.encoder.slice_writer import cabac_zero_words
from h264lite.scheduler.stages import BY_BITS
from h264lite.standard import macroblock as mbk
from h264lite.standard.bits import NAL_IDR, NAL_PPS, NAL_SLICE, NAL_SPS, nal_unit, split_byte_stream, unescape
from h264lite.standard.syntax import (
    HIGH,
    Pps,
    SliceHeader,
    Sps,
    parse_pps,
    parse_sps,
    write_pps,
    write_slice_header,
    write_sps,
)

from ..support import naive_cabac, round_trip, sequences
from .test_streams import planes

TOOLS = ({"ref": 3}, {"slices": 8, "keyint": 4}, {"keyint": 1}, {"slices": 3, "subme": 6, "ref": 2, "no_deblock": True})


@pytest.mark.parametrize("qp", (0, 20, 34, 51))
@pytest.mark.parametrize("tools", TOOLS, ids=str)
def test_real_clips(qp, tools):
    clip = sequences.clip("foreman_176x144_30")
    where = planes(clip, 4), clip.width, clip.height
    round_trip.check(*where, qp=qp, profile="main", **tools)
    if tools.get("subme", 0) < BY_BITS:  # without a trellis the levels are those of CAVLC
        sizes = [len(round_trip.check(*where, qp=qp, profile=name, trellis=0, **tools)) for name in ("main", "baseline")]
        assert sizes[0] < sizes[1]


@pytest.mark.slow
@pytest.mark.parametrize("qp", range(52))
def test_every_qp(qp):
    for name in ("BasketballPass_416x240_50", "mobile_352x288_30"):
        clip = sequences.clip(name)
        for slices in (1, 5):
            frames = planes(clip, 3, start=10)
            round_trip.check(frames, clip.width, clip.height, qp=qp, slices=slices, ref=2, profile="main")


@pytest.mark.parametrize("size", ((1, 1), (17, 33), (63, 65), (16, 16)))
def test_sizes(size):
    clip = round_trip.noise_clip(*size, 3, seed=1)
    round_trip.check(clip, *size, qp=24, profile="main")


@pytest.mark.parametrize("qp", (0, 6, 30))
def test_noise(qp):
    """Most macroblocks are I_PCM at low QP, between others; flat areas between them."""
    rng = np.random.default_rng(qp)
    clip = []
    for _ in range(3):
        frame = [rng.integers(0, 256, (side, side), np.uint8) for side in (96, 48, 48)]
        frame[0][32:, 16:60] = 90
        frame[0][64:] = frame[0][64:] // 16 + 100
        clip.append(frame)
    stream = round_trip.check(clip, 96, 96, qp=qp, slices=2, profile="main")
    decoder = h264lite.Decoder(macroblocks=True)
    frames = [*decoder.decode(stream), *decoder.flush()]
    kinds = {kind for frame in frames for kind in frame.macroblocks.mb_type.tolist()}
    assert max(int(frame.macroblocks.bits.max()) for frame in frames) <= 3200  # A.3.1, with mb_skip_flag
    assert len(kinds) > 2 and (qp > 0 or mbk.I_PCM in kinds)


def test_flat():
    chroma = [np.full((32, 40), 128, np.uint8), np.full((32, 40), 7, np.uint8)]
    clip = [[np.full((64, 80), 60 + n, np.uint8), *chroma] for n in range(3)]
    for qp in (0, 27, 51):
        round_trip.check(clip, 80, 64, qp=qp, profile="main")


def periodic(qp):
    """The stream of a frame whose blocks are all alike."""
    x = np.arange(4)
    wave = 128 + 60 * np.cos((2 * x + 1) * np.pi / 8) * np.cos((2 * x[:, None] + 1) * np.pi / 4)
    frame = [np.tile(wave, (18, 22)).round().astype(np.uint8), *[np.full((36, 44), 128, np.uint8)] * 2]
    return round_trip.check([frame], 88, 72, qp=qp, profile="main", slices=2)


def test_zero_words():
    """A frame whose bins cost little ends in cabac_zero_words, which decoders skip; another has none."""
    word = b"\0\0\3"
    stream = periodic(16)
    assert stream.endswith(10 * word) and stream.count(word) > 50
    clip = sequences.clip("foreman_176x144_30")
    written, _ = round_trip.encode(planes(clip, 2), clip.width, clip.height, qp=16, profile="main")
    assert 2 * word not in written


def test_bins_of_a_frame():
    """7.4.2.10: BinCountsInNALunits <= 32 / 3 NumBytesInVclNALunits + RawMbBits PicSizeInMbs / 32, with the fewest words."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        bins, size, n_mb = (int(n) for n in rng.integers(1, (20000, 2000, 40)))
        words = len(cabac_zero_words(bins, size, n_mb)) // 3

        def fits(count, bins=bins, size=size, n_mb=n_mb):
            return 3 * 32 * bins <= 32 * 32 * (size + 3 * count) + 3 * 3072 * n_mb

        assert fits(words) and (words == 0 or not fits(words - 1))


PROFILES = (("baseline", 66, (1, 1)), ("main", 77, (0, 1)), ("high", 100, (0, 0)))


@pytest.mark.parametrize(("profile", "idc", "flags"), PROFILES)
def test_profiles(profile, idc, flags):
    """What the parameter sets say; CABAC can be left out, and the profile is then the lowest with the other tools."""
    clip = round_trip.noise_clip(32, 32, 1, seed=1)
    for off in (False, True):
        stream, _ = round_trip.encode(clip, 32, 32, profile=profile, no_cabac=off, weightp=0)
        units = {unit.nal_unit_type: unescape(unit.data[1:]) for unit in split_byte_stream(stream)}
        sps, pps = parse_sps(units[NAL_SPS]), parse_pps(units[NAL_PPS])
        expected = PROFILES[0][1:] if off and profile == "main" else (idc, flags)
        assert (sps.profile_idc, (sps.constraint_set0_flag, sps.constraint_set1_flag)) == expected
        assert pps.entropy_coding_mode_flag == (profile != "baseline" and not off)
        assert pps.transform_8x8_mode_flag == (profile == "high")


def legal_state(rng, n_ref, rows):
    """A random state that decoders can reconstruct: P_Skip as predicted, no intra prediction from beyond frame or slice."""
    width, height = 5, rows[-1]
    state = naive_cabac.random_state_8x8(rng, width, height, n_ref, 8, 0.15, 20)
    np.clip(state.mv, -500, 500, out=state.mv)
    state.qp %= 12
    for row0, row1 in zip(rows, rows[1:]):
        for mb in range(row0 * width, row1 * width):
            if mb % width == 0 or mb < (row0 + 1) * width:
                state.intra4x4_mode[mb] = state.intra16x16_mode[mb] = 2
                state.intra_chroma_mode[mb] = 0
            if state.mb_type[mb] == mbk.P_SKIP:
                state.mv[mb] = predict_skip_mv(mb, state.ref_idx, state.mv, width, row0 * width)
    return state


def as_slices(state, rows, header, sps, pps):
    """NAL units of the state's slices."""
    stream = b""
    writers = []
    for row in rows[:-1]:
        header.first_mb_in_slice = row * state.mb_width
        writers.append(write_slice_header(header, sps, pps))
        padding = -writers[-1].position % 8
        writers[-1].put_u(padding, (1 << padding) - 1)
    sizes = [writer.position // 8 for writer in writers]
    bits_of_slices = naive_cabac.written(write_slices, state, rows, sizes, 8, header.cabac_init_idc, True)
    for writer, bits in zip(writers, bits_of_slices):
        assert bits is not None
        data = np.packbits(np.array([*bits[0]], np.uint8))
        data[: writer.position // 8] = np.frombuffer(writer.to_bytes(), np.uint8)
        stream += nal_unit(header.nal_unit_type, 3, data.tobytes())
    return stream


@pytest.mark.parametrize("rows", ([0, 4], [0, 1, 4]))
def test_random_macroblocks(rows):
    """Random macroblocks of all types, 8x8 ones too: FFmpeg and our decoder agree, and ours finds the arrays again."""
    sps = Sps(
        profile_idc=HIGH, level_idc=30, pic_order_cnt_type=2, max_num_ref_frames=2, pic_width_in_mbs_minus1=4,
        pic_height_in_map_units_minus1=rows[-1] - 1, direct_8x8_inference_flag=1,
    )  # fmt: skip
    pps = Pps(entropy_coding_mode_flag=1, transform_8x8_mode_flag=1, pic_init_qp_minus26=8 - 26)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        stream = nal_unit(NAL_SPS, 3, write_sps(sps)) + nal_unit(NAL_PPS, 3, write_pps(pps))
        states = [legal_state(rng, n_ref, rows) for n_ref in (0, 1, 2)]
        for n, state in enumerate(states):
            header = SliceHeader(NAL_SLICE if n else NAL_IDR, 3, slice_type=5 if n else 7, frame_num=n)
            header.num_ref_idx_active_override_flag, header.num_ref_idx_l0_active_minus1 = int(n > 1), max(0, n - 1)
            header.cabac_init_idc = seed % 3 if n else 0
            stream += as_slices(state, rows, header, sps, pps)
        decoder = h264lite.Decoder(macroblocks=True)
        frames = [*decoder.decode(stream), *decoder.flush()]
        round_trip.assert_same(round_trip.ffmpeg_frames(stream), [[f.y, f.u, f.v] for f in frames], "FFmpeg")
        for frame, state in zip(frames, states, strict=True):
            _assert_arrays(frame.macroblocks, state)


def _assert_arrays(arrays, state):
    """What the decoder says of the macroblocks is the state."""
    kinds = state.mb_type
    inter, nxn = kinds > mbk.LAST_INTRA, (kinds == mbk.I_4x4) | (kinds == mbk.I_8x8)
    coded = (kinds != mbk.P_SKIP) & (kinds != mbk.I_PCM)
    has_qp = coded & ((state.cbp > 0) | (kinds == mbk.I_16x16))
    assert np.array_equal(arrays.mb_type, kinds)
    assert np.array_equal(arrays.transform_8x8, state.transform_8x8)
    for wanted, decoded, where in (
        (state.sub_mb_type, arrays.sub_type, kinds == mbk.P_8x8), (state.ref_idx, arrays.ref_idx[:, 0], inter),
        (state.mv, arrays.mv[:, 0], inter), (state.cbp, arrays.cbp, coded), (state.qp, arrays.qp, has_qp),
        (state.intra4x4_mode, arrays.intra_mode, nxn), (state.intra_chroma_mode, arrays.chroma_mode, coded & ~inter),
        (state.intra16x16_mode, arrays.intra16x16_mode, kinds == mbk.I_16x16),
    ):  # fmt: skip
        assert np.array_equal(decoded[where], wanted[where])
