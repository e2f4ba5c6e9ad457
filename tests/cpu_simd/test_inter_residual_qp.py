"""QPs of inter macroblocks by rate and distortion: of those tried, the one that costs least by the definition; its levels."""

import copy

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, Motion, Planes, Quantiser, Residual
from h264lite.cpu_simd.costs.cabac_bits import CHROMA_AC, CHROMA_DC, P_SLICE, TABLE_QP, LUMA_4x4, LUMA_8x8, fill_bits
from h264lite.cpu_simd.decisions.quantise import DEAD_ZONE_INTER, TRELLIS_INTER
from h264lite.cpu_simd.inter.motion_compensation import predict_inter
from h264lite.cpu_simd.layout import CB_DC, SCALING_FINER, SCALING_SET
from h264lite.cpu_simd.quantiser.scaling import FLAT_SCALING
from h264lite.cpu_simd.residual.inter_residual import code_inter
from h264lite.cpu_simd.residual.inter_residual_qp import inter_residual_qp
from h264lite.cpu_simd.residual.macroblock_coding import BY_CABAC, Buffers, Rounding, load_macroblock
from h264lite.cpu_simd.residual.transform import ScalingLists
from h264lite.cpu_simd.residual.transform_choice import N_CHOICE_BITS, fill_choice_bits
from h264lite.jit.kernel import closed_kernel
from h264lite.standard.cabac_contexts import CODED_BLOCK_BASE, CTX_CBP_CHROMA, CTX_CBP_LUMA
from h264lite.standard.macroblock import I_PCM, P_SKIP, P_16x16
from h264lite.standard.tables import QP_CHROMA

from ..support.bundles import named
from ..support.naive_cabac_bits import bits_of_bins, residual_bins
from .test_inter_residual import random_state, reference_pool
from .test_intra import empty_state, picture
from .test_transform_choice import mean_bits

SIZE, N_MB = 48, 9
TOOLS = CodingTools(1, 1, 1)
COST_OF_BIT = 0.13  # squared steps
CHANGE = [0, 2, 3]  # bits, by how far the QP is changed


@closed_kernel
def code_by(source, references, motion, mb, qp, qp_c, may_be_8x8, factor, bits, scaling_table, residual, out):
    """Codes macroblock mb of three a row with a QP; out: Sample[3, MB_SAMPLES], source, prediction, reconstruction."""
    scaling = ScalingLists(scaling_table, np.int64(SCALING_SET), np.int64(scaling_table[SCALING_FINER]), None)
    load_macroblock(source, 16 * (mb % 3), 16 * (mb // 3), out[0])
    predict_inter(mb, 16 * (mb % 3), 16 * (mb // 3), references, motion, out[1])
    quantised, quantised_8x8 = np.zeros(1152, np.int16), np.zeros(1152, np.int16)
    dc, values, scratch = np.zeros(96, np.int32), np.zeros(16, np.int64), np.zeros(128, np.int16)
    buffers = Buffers(out[0], out[1], out[2], quantised, dc, values, scratch, quantised_8x8)
    dead_zone = np.int64(DEAD_ZONE_INTER)
    rounding = Rounding(np.int64(BY_CABAC), dead_zone, dead_zone, np.int64(factor), bits, scaling, np.int64(1))
    residual.cbp[mb] = code_inter(mb, buffers, np.int64(qp), np.int64(qp_c), bool(may_be_8x8), rounding, residual)


def bits_of(state, mb, bits):
    """Bits of the levels and of coded_block_pattern."""
    levels, cbp = state["levels"][mb], int(state["cbp"][mb])
    total = sum(mean_bits(bits, CTX_CBP_LUMA, cbp >> q & 1) for q in range(4))

    def block(category, numbers):
        coded = 0 if category == LUMA_8x8 else mean_bits(bits, CODED_BLOCK_BASE[category], int(numbers.any()))
        return coded + bits_of_bins(residual_bins(category, numbers), bits)

    for q in range(4):
        if not cbp >> q & 1:
            continue
        if state["transform_8x8"][mb]:
            total += block(LUMA_8x8, levels[4 * q : 4 * q + 4].T.ravel())
        else:
            total += sum(block(LUMA_4x4, levels[n]) for n in range(4 * q, 4 * q + 4))
    total += mean_bits(bits, CTX_CBP_CHROMA, int(cbp > 15))
    if cbp > 15:
        total += mean_bits(bits, CTX_CBP_CHROMA + 4, cbp >> 5)
        total += sum(block(CHROMA_DC, levels[n, :4]) for n in (CB_DC, CB_DC + 1))
    if cbp > 31:
        total += sum(block(CHROMA_AC, levels[n, 1:]) for n in range(16, 24))
    return total


def best_of(state, planes, pool, mb, offset, limits):
    """(QP, state with the levels, reconstruction) of the least cost; ties to the earlier."""
    before, best = int(state["qp"][mb]), None
    bits = np.zeros(N_CHOICE_BITS, np.int32)
    fill_bits(bits, P_SLICE, before)
    fill_choice_bits(bits)
    may_be_8x8 = state["mb_type"][mb] != P_16x16 + 3 or not state["sub_mb_type"][mb].any()
    for change in (0, 1, -1, 2, -2):
        qp = before + change
        if change and not limits[0] <= qp <= limits[1]:
            continue
        tried, out = copy.deepcopy(state), np.zeros((3, 384), np.uint8)
        factor = TRELLIS_INTER * round(256 * 2 ** (change / 3)) >> 8
        table = bits.copy()
        table[TABLE_QP] = qp
        qp_c = QP_CHROMA[min(51, max(0, qp + offset))]
        code_by(
            Planes(*planes), pool, named(Motion, tried), mb, qp, qp_c, may_be_8x8, factor, table, FLAT_SCALING,
            named(Residual, tried), out,
        )  # fmt: skip
        if change == 0 and not tried["cbp"][mb]:
            return before, tried, out[2]
        error = int(np.square(out[0].astype(int) - out[2]).sum())
        cost = error * round(65536 / (COST_OF_BIT * 2 ** ((before - 4) / 3))) >> 8
        cost += bits_of(tried, mb, bits) + (256 * CHANGE[abs(change)] if tried["cbp"][mb] else 0)
        if best is None or cost < best[0]:
            best = cost, qp, tried, out[2]
    return best[1:]


@pytest.mark.parametrize("qp", [8, 20, 27, 35, 49])
@pytest.mark.parametrize("limits", [(0, 51), (20, 36)])
def test_the_chosen_one_costs_least(qp, limits):
    rng = np.random.default_rng(seed := 80 + qp)
    print("seed", seed)
    pictures = [picture(rng, SIZE, SIZE, "waves") for _ in range(2)]
    pool, changes = reference_pool(pictures), set()
    for strength in (3, 9):
        planes = [np.clip(p + rng.integers(-strength, strength + 1, p.shape), 0, 255).astype(np.uint8) for p in pictures[0]]
        state, offset = random_state(rng, N_MB, 2, 9), int(rng.integers(-4, 5))
        state["qp"][:] = np.clip(qp + rng.integers(-1, 2, N_MB), *limits)
        given, rec = copy.deepcopy(state), Planes(*(np.full_like(p, 55) for p in planes))
        of_frame = rec, named(Residual, state)
        quantiser = Quantiser(state["qp"], offset)
        for rows in ((0, 1), (1, 3)):
            inter_residual_qp(Planes(*planes), pool, named(Motion, state), quantiser, TOOLS, *limits, *rows, *of_frame)
        for mb in range(N_MB):
            if given["mb_type"][mb] == P_SKIP or state["mb_type"][mb] == I_PCM:
                assert state["qp"][mb] == given["qp"][mb]
                continue
            best_qp, want, out = best_of(given, planes, pool, mb, offset, limits)
            for name in ("levels", "total_coeff", "transform_8x8", "cbp"):
                np.testing.assert_array_equal(state[name][mb], want[name][mb], err_msg=f"{mb} {name}")
            assert state["qp"][mb] == (best_qp if want["cbp"][mb] else given["qp"][mb])
            y, x = 16 * (mb // 3), 16 * (mb % 3)
            np.testing.assert_array_equal(rec.y[y : y + 16, x : x + 16], out[:256].reshape(16, 16))
            of_chroma = np.hstack([plane[y // 2 : y // 2 + 8, x // 2 : x // 2 + 8] for plane in rec[1:]])
            np.testing.assert_array_equal(of_chroma, out[256:].reshape(8, 16))
            changes.add(int(state["qp"][mb]) - int(given["qp"][mb]))
    assert any(changes) or not limits[0] <= qp <= limits[1]


def test_macroblocks_without_levels_keep_their_qp():
    reference = [np.full((32, 32), 100, np.uint8), *(np.full((16, 16), 100, np.uint8) for _ in range(2))]
    planes = [plane.copy() for plane in reference]
    planes[0][5, 7] += 24
    state = empty_state(4)
    state["mb_type"][:], state["sub_mb_type"] = P_16x16, np.zeros((4, 4), np.uint8)
    state["qp"][:] = 26
    rec = Planes(*(np.full_like(p, 55) for p in planes))
    of_frame = rec, named(Residual, state)
    quantiser = Quantiser(state["qp"], 0)
    pool, motion = reference_pool([reference]), named(Motion, state)
    inter_residual_qp(Planes(*planes), pool, motion, quantiser, TOOLS, 0, 51, 0, 2, *of_frame)
    assert (state["qp"] == 26).all() and not np.any(state["cbp"]) and not np.any(state["levels"])
    for plane, expected in zip(rec, reference):
        np.testing.assert_array_equal(plane, expected)
