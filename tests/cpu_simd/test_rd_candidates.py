"""rd_candidates against its definition: costs of the 4x4 transform, bits bin by bin; tests/cuda_src has the 8x8 transform."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, DecisionSettings, Motion, OtherCosts, Planes, Quantiser, Searches
from h264lite.cpu_simd.costs.cabac_bits import N_BITS, P_SLICE, fill_bits
from h264lite.cpu_simd.decide.rd_candidates import rd_candidates
from h264lite.cpu_simd.decisions.common import LAMBDA, RD_CHROMA_WEIGHT
from h264lite.cpu_simd.decisions.quantise import CHOICE_DISTORTION
from h264lite.cpu_simd.inter.motion_compensation import predict_inter
from h264lite.standard.cabac_contexts import CODED_BLOCK_BASE, CTX_CBP_CHROMA, CTX_CBP_LUMA
from h264lite.standard.macroblock import P_8x8, P_8x16, P_16x8, P_16x16
from h264lite.standard.tables import QP_CHROMA, QUANT_MF, ZIGZAG_4x4

from ..support import naive
from ..support.naive_cabac_bits import bits_of_bins, residual_bins
from ..support.naive_reconstruction import residual_4x4
from .test_inter_residual import reference_pool
from .test_intra import picture
from .test_psy import ac_energy

WIDTH, HEIGHT, N_MB, SEED = 48, 32, 6, 17
CORE = np.array([[1, 1, 1, 1], [2, 1, -1, -2], [1, -1, -1, 1], [1, -2, 2, -1]])
# Type, bits of mb_type with sub_mb_type, partitions and their blocks, whose costs are made true
DIVISIONS = (
    (P_16x16, 2, ((40, 0, 0, 4, 4),), ()),
    (P_16x8, 4, ((36, 0, 0, 4, 2), (37, 0, 2, 4, 2)), (36,)),
    (P_8x16, 4, ((38, 0, 0, 2, 4), (39, 2, 0, 2, 4)), (38,)),
    (P_8x8, 6 + 4, tuple((32 + q, 2 * (q & 1), q & 2, 2, 2) for q in range(4)), (0, 16, 24, 32)),
)


def searched(rng, n_mb, n_ref, qp):
    """Searches with vectors of neighbouring samples and costs for which several divisions are near the best."""
    area = np.array([1] * 16 + [2] * 16 + [4] * 4 + [8] * 4 + [16])
    mv = rng.integers(-12, 13, (n_ref, n_mb, 1, 2)) + rng.integers(-3, 4, (n_ref, n_mb, 41, 2))
    cost = area * rng.integers(10, 400, (n_ref, n_mb, 1)) + rng.integers(0, 30, (n_ref, n_mb, 41)) + 12 * LAMBDA[qp][:, None]
    predictor = rng.integers(-20, 21, (n_ref, n_mb, 2))
    return Searches(cost.astype(np.int32), mv.astype(np.int16), predictor.astype(np.int16))


def mean(bits, context, value):
    return sum(int(bits[2 * k + value]) for k in range(context, context + 4)) >> 2


def coded(values, factors, shift):
    """Levels, and squared errors without and with them in (step / 64)^2."""
    scaled = abs(values) * factors
    levels, ratios = np.sign(values) * ((scaled + (1 << shift) // 6) >> shift), scaled >> (shift - 6)
    return levels, (np.minimum(ratios, 2047) ** 2).sum(), (np.minimum(abs(ratios - 64 * abs(levels)), 2047) ** 2).sum()


def block_bits(bits, category, levels):
    level_bits = bits_of_bins(residual_bins(category, levels), bits) if levels.any() else 0
    return level_bits + mean(bits, CODED_BLOCK_BASE[category], int(levels.any()))


def luma_cost(source, predicted, qp, bits, psy_rd):
    total = psy = 0
    difference = source - predicted
    for y, x in ((0, 0), (0, 8), (8, 0), (8, 8)):
        none = some = bits_of_levels = 0
        has_levels, rec = False, predicted[y : y + 8, x : x + 8].copy()
        for j, i in ((0, 0), (0, 4), (4, 0), (4, 4)):
            block = difference[y + j : y + j + 4, x + i : x + i + 4]
            levels, a, b = coded(CORE @ block @ CORE.T, QUANT_MF[qp % 6].reshape(4, 4).astype(int), 15 + qp // 6)
            none, some, has_levels = none + a, some + b, has_levels or levels.any()
            bits_of_levels += block_bits(bits, 2, levels.ravel()[ZIGZAG_4x4])
            rec[j : j + 4, i : i + 4] += residual_4x4(levels, qp)
        none = (none * CHOICE_DISTORTION >> 8) + mean(bits, CTX_CBP_LUMA, 0)
        some = (some * CHOICE_DISTORTION >> 8) + mean(bits, CTX_CBP_LUMA, 1) + bits_of_levels
        total += min(none, some) if has_levels else none
        rec = np.clip(rec, 0, 255) if has_levels and some < none else predicted[y : y + 8, x : x + 8]
        psy += abs(ac_energy(rec) - ac_energy(source[y : y + 8, x : x + 8]))
    return total + (psy * psy_rd * round(65536 / (0.625 * 2 ** (qp / 6))) >> 16)


def chroma_cost(differences, qp, qp_c, bits):
    """The cost, and that of the error without levels."""
    ac, dc = [0, 0, 0, False], [0, 0, 0, False]
    for difference in differences:
        corners = np.zeros((2, 2), int)
        for k, (y, x) in enumerate(((0, 0), (0, 4), (4, 0), (4, 4))):
            c = CORE @ difference[y : y + 4, x : x + 4] @ CORE.T
            corners[k >> 1, k & 1], c[0, 0] = c[0, 0], 0
            levels, a, b = coded(c, QUANT_MF[qp_c % 6].reshape(4, 4).astype(int), 15 + qp_c // 6)
            bits_of_levels = block_bits(bits, 4, levels.ravel()[ZIGZAG_4x4][1:])
            ac = [ac[0] + a, ac[1] + b, ac[2] + bits_of_levels, ac[3] or levels.any()]
        hadamard = np.array([[1, 1], [1, -1]])
        levels, a, b = coded(hadamard @ corners @ hadamard, int(QUANT_MF[qp_c % 6, 0]), 16 + qp_c // 6)
        dc = [dc[0] + a, dc[1] + b, dc[2] + block_bits(bits, 3, levels.ravel()), dc[3] or levels.any()]
    weight, first = CHOICE_DISTORTION * int(RD_CHROMA_WEIGHT[qp - qp_c + 12]), CTX_CBP_CHROMA
    without = (ac[0] + dc[0]) * weight >> 16
    costs = [without + mean(bits, first, 0)]
    if dc[3]:
        costs.append(((ac[0] + dc[1]) * weight >> 16) + dc[2] + mean(bits, first, 1) + mean(bits, first + 4, 0))
    if ac[3]:
        costs.append(((ac[1] + dc[1]) * weight >> 16) + dc[2] + ac[2] + mean(bits, first, 1) + mean(bits, first + 4, 1))
    return min(costs), without


def true_cost(pool, planes, at, kind_of, parts, refs, vectors, how):
    """The cost of a division and that of the error of chroma, in 1 / 256 bit. how: QP_Y, QP_C, bits, psy_rd."""
    motion = Motion(np.array([kind_of], np.uint8), np.zeros((1, 4), np.uint8), np.zeros((1, 4), np.int8),
                    np.zeros((1, 16, 2), np.int16))  # fmt: skip
    for (_, bx, by, bw, bh), ref, vector in zip(parts, refs, vectors):
        for y in range(by, by + bh):
            for x in range(bx, bx + bw):
                motion.mv[0, 4 * y + x] = vector
                motion.ref_idx[0, y // 2 * 2 + x // 2] = ref
    (x0, y0), (qp, qp_c, bits, psy_rd), out = at, how, np.zeros(384, np.uint8)
    predict_inter(0, x0, y0, pool, motion, out)
    luma = planes[0][y0 : y0 + 16, x0 : x0 + 16].astype(int), out[:256].reshape(16, 16).astype(int)
    chroma = [planes[1 + c][y0 // 2 : y0 // 2 + 8, x0 // 2 : x0 // 2 + 8].astype(int)
              - out[256:].reshape(8, 16)[:, 8 * c : 8 * c + 8] for c in range(2)]  # fmt: skip
    of_chroma, error = chroma_cost(chroma, qp, qp_c, bits)
    return of_chroma + luma_cost(*luma, qp, bits, psy_rd), error


@pytest.mark.parametrize("kind", ["noise", "waves"])
@pytest.mark.parametrize("qp", [18, 30, 41])
@pytest.mark.parametrize("psy_rd", [0, 300])
def test_against_the_definition(kind, qp, psy_rd):
    rng = np.random.default_rng([SEED, qp])
    pictures = [picture(rng, HEIGHT, WIDTH, kind) for _ in range(2)]
    pool = reference_pool(pictures)
    planes = [np.clip(p + rng.integers(-9, 10, p.shape), 0, 255).astype(np.uint8) for p in pictures[1]]
    qps, lam, qp_c = np.full(N_MB, qp, np.uint8), int(LAMBDA[qp]), int(QP_CHROMA[qp - 2])
    searches, bits = searched(rng, N_MB, 2, qps), np.zeros(N_BITS, np.int32)
    fill_bits(bits, P_SLICE, qp)
    intra, limit = rng.integers(0, 9000, N_MB).astype(np.int32), np.zeros(N_MB, np.int32)
    cost, old_intra = searches.cost.astype(int), intra.astype(int)
    settings, tools = DecisionSettings(6, 1, 128, 7, psy_rd), CodingTools(1, 0, 1)
    rd_candidates(Planes(*planes), pool, Quantiser(qps, -2), settings, tools, 0, 2, searches, OtherCosts(intra, limit))
    near = 0
    for mb in range(N_MB):
        y0, x0 = 16 * (mb // 3), 16 * (mb % 3)
        estimates, extras, without = [], [], 0
        for kind_of, type_bits, parts, _ in DIVISIONS:
            estimate, satd = type_bits * lam, 0
            refs = [min((0, 1), key=lambda r, k=k: cost[r, mb, k]) for k, *_ in parts]
            for (k, *_), ref in zip(parts, refs):
                estimate += cost[ref, mb, k] + lam
                offset = searches.mv[ref, mb, k].astype(int) - searches.predictor[ref, mb]
                satd += cost[ref, mb, k] - lam * sum(naive.se_bits(int(v)) for v in offset)
            vectors = [searches.mv[ref, mb, k] for (k, *_), ref in zip(parts, refs)]
            true, error = true_cost(pool, planes, (x0, y0), kind_of, parts, refs, vectors, (qp, qp_c, bits, psy_rd))
            extras.append(true * lam // 256 - satd)
            estimates.append(estimate)
            without = without or error
        best = int(np.argmin(estimates))
        assert limit[mb] == extras[0] - without * lam // 256
        assert intra[mb] == old_intra[mb] + extras[best] - extras[0] + 8 * lam
        for n, (*_, corrected) in enumerate(DIVISIONS[1:], 1):
            is_near = n == best or estimates[n] < estimates[best] + (estimates[best] >> 3)
            near += is_near
            for r in range(2):
                for k in corrected:
                    cost[r, mb, k] += extras[n if is_near else best] - extras[0]
    np.testing.assert_array_equal(searches.cost, cost)
    assert 0 < near < 3 * N_MB


@pytest.mark.parametrize(("qp", "psy_rd"), [(18, 0), (30, 300), (38, 0)])
def test_vectors_move_to_lower_true_costs(qp, psy_rd):
    """From subme 8 on: what vectors save is that of the true cost and of their bits."""
    rng = np.random.default_rng([SEED, qp])
    pool = reference_pool(pictures := [picture(rng, HEIGHT, WIDTH, "waves") for _ in range(2)])
    planes = [np.clip(p + rng.integers(-9, 10, p.shape), 0, 255).astype(np.uint8) for p in pictures[1]]
    qps, lam, qp_c, bits = np.full(N_MB, qp, np.uint8), int(LAMBDA[qp]), int(QP_CHROMA[qp - 2]), np.zeros(N_BITS, np.int32)
    fill_bits(bits, P_SLICE, qp)
    original = searched(rng, N_MB, 2, qps)
    before, after = (Searches(*(array.copy() for array in original)) for _ in range(2))
    results = []
    for subme, searches in ((6, before), (8, after)):
        costs = OtherCosts(np.full(N_MB, 9000, np.int32), np.zeros(N_MB, np.int32))
        settings, tools = DecisionSettings(subme, 1, 128, 7, psy_rd), CodingTools(1, 0, 1)
        rd_candidates(Planes(*planes), pool, Quantiser(qps, -2), settings, tools, 0, 2, searches, costs)
        results.append(costs)
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)
    count = 0
    for mb in range(N_MB):
        for kind_of, _, parts, _ in DIVISIONS:
            refs = [min((0, 1), key=lambda r, k=k: original.cost[r, mb, k]) for k, *_ in parts]
            of_parts = [(ref, mb, k) for (k, *_), ref in zip(parts, refs)]
            gain = sum(int(after.cost[at]) - int(before.cost[at]) for at in of_parts)
            if all((after.mv[at] == before.mv[at]).all() for at in of_parts):
                assert gain == 0
                continue
            values = []
            for searches in (before, after):
                vectors, at = [searches.mv[at].astype(int) for at in of_parts], (16 * (mb % 3), 16 * (mb // 3))
                true, _ = true_cost(pool, planes, at, kind_of, parts, refs, vectors, (qp, qp_c, bits, psy_rd))
                away = [vector - original.predictor[ref, mb] for vector, ref in zip(vectors, refs)]
                rate = sum(naive.se_bits(int(v)) for offset in away for v in offset)
                values.append(true * lam // 256 + lam * rate)
            assert gain == values[1] - values[0] < 0
            count += 1
    assert count
