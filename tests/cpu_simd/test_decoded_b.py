"""B slices of random macroblocks: FFmpeg and the project's decoder agree, and the latter finds the arrays again."""

import h264lite
import numpy as np
import pytest
from h264lite.cpu_simd.entropy.entropy import write_slices
from h264lite.standard import macroblock as mbk
from h264lite.standard.bits import NAL_IDR, NAL_PPS, NAL_SLICE, NAL_SPS, nal_unit
from h264lite.standard.syntax import HIGH, Pps, SliceHeader, Sps, write_pps, write_slice_header, write_sps
from h264lite.standard.syntax_sps import Vui

from ..support import naive_b, naive_cabac, naive_entropy, round_trip

WIDTH, QP = 5, 8
I, B = 7, 6  # slice_type (Table 7-6)
FRAMES = ((I, 0, 0), (I, 1, 8), (I, 2, 16), (B, 3, 4))  # slice_type, frame_num, display order


def legal_state(rng, slice_type, rows, entries):
    """Random macroblocks that may be decoded: intra prediction by DC, which needs no neighbours; direct motion derived."""
    size = WIDTH, rows[-1]
    if slice_type == B:
        state = naive_b.random_b_state(rng, *size, *entries, QP, 0.1, 20, mode_8x8=1)
    else:
        state = naive_entropy.random_state(rng, *size, 0, QP, 0.1, 20, 1)
    state.intra4x4_mode[:] = state.intra16x16_mode[:] = 2
    state.intra_chroma_mode[:] = 0
    state.qp %= 12  # residuals of 16 bits
    if slice_type == B:
        naive_b.derive_direct(state, rows)
    return state


def as_slices(state, rows, header, sps, pps):
    """NAL units of the state's slices."""
    cabac, writers = pps.entropy_coding_mode_flag, []
    for row in rows[:-1]:
        header.first_mb_in_slice = row * state.mb_width
        writers.append(write_slice_header(header, sps, pps))
        padding = -writers[-1].position % 8 if cabac else 0
        writers[-1].put_u(padding, (1 << padding) - 1)
    sizes = [writer.position for writer in writers]
    if cabac:
        written = naive_cabac.written(write_slices, state, rows, [n // 8 for n in sizes], QP, header.cabac_init_idc, True)
        texts = [text for text, _ in written]
    else:
        texts = naive_entropy.written(write_slices, state, rows, sizes, QP)
    stream = b""
    for writer, n, text in zip(writers, sizes, texts):
        data = np.packbits(np.array([*text], np.uint8))
        start = np.frombuffer(writer.to_bytes(), np.uint8)
        data[: len(start)] |= start
        assert not any(map(int, text[:n]))
        stream += nal_unit(header.nal_unit_type, header.nal_ref_idc, data.tobytes())
    return stream


@pytest.mark.parametrize("rows", ([0, 4], [0, 1, 4]))
@pytest.mark.parametrize("entries", ((1, 1), (3, 2), (2, 3)))
@pytest.mark.parametrize("cabac", (0, 1))
def test_random_macroblocks(cabac, entries, rows):
    sps = Sps(
        profile_idc=HIGH, level_idc=40, log2_max_pic_order_cnt_lsb_minus4=4, max_num_ref_frames=3,
        pic_width_in_mbs_minus1=WIDTH - 1, pic_height_in_map_units_minus1=rows[-1] - 1, direct_8x8_inference_flag=1,
        vui_parameters_present_flag=1,
        vui=Vui(bitstream_restriction_flag=1, max_num_reorder_frames=2, max_dec_frame_buffering=3),
    )  # fmt: skip
    pps = Pps(entropy_coding_mode_flag=cabac, transform_8x8_mode_flag=1, pic_init_qp_minus26=QP - 26)
    for seed in range(4):
        rng = np.random.default_rng([seed, *entries])
        stream = nal_unit(NAL_SPS, 3, write_sps(sps)) + nal_unit(NAL_PPS, 3, write_pps(pps))
        for slice_type, frame_num, order in FRAMES:
            state = legal_state(rng, slice_type, rows, entries)
            header = SliceHeader(
                NAL_SLICE if frame_num else NAL_IDR, 0 if slice_type == B else 3, slice_type=slice_type, frame_num=frame_num,
                pic_order_cnt_lsb=order, direct_spatial_mv_pred_flag=1, cabac_init_idc=seed % 3,
                num_ref_idx_active_override_flag=1, num_ref_idx_l0_active_minus1=entries[0] - 1,
                num_ref_idx_l1_active_minus1=entries[1] - 1,
            )  # fmt: skip
            stream += as_slices(state, rows, header, sps, pps)
        decoder = h264lite.Decoder(macroblocks=True)
        frames = [*decoder.decode(stream), *decoder.flush()]
        assert [frame.poc for frame in frames] == [0, 4, 8, 16]
        round_trip.assert_same(round_trip.ffmpeg_frames(stream), [[f.y, f.u, f.v] for f in frames], "FFmpeg")
        assert_arrays(frames[1].macroblocks, state)


def assert_arrays(mbs, state):
    """What the decoder says of the macroblocks is the state."""
    kinds = state.mb_type
    inter = kinds > mbk.LAST_INTRA
    coded = (kinds != mbk.B_SKIP) & (kinds != mbk.I_PCM)
    has_qp = coded & ((state.cbp > 0) | (kinds == mbk.I_16x16))
    assert np.array_equal(mbs.mb_type, kinds)
    assert np.array_equal(mbs.transform_8x8, state.transform_8x8)
    direct = np.where(state.sub_mb_type == mbk.B_SUB_DIRECT, 4, 0)
    for wanted, decoded, where in (
        (direct, mbs.sub_type, kinds == mbk.B_8x8), (state.ref_idx, mbs.ref_idx[:, 0], inter),
        (state.ref_idx1, mbs.ref_idx[:, 1], inter), (state.mv, mbs.mv[:, 0], inter), (state.mv1, mbs.mv[:, 1], inter),
        (state.cbp, mbs.cbp, coded), (state.qp, mbs.qp, has_qp),
    ):  # fmt: skip
        assert np.array_equal(decoded[where], wanted[where])
