"""rd_candidates_b against its definition: costs of the 4x4 transform, bits bin by bin; tests/cuda_src: 8x8 transform."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, DecisionSettings, Motion, MovedCandidates, OtherCosts, Planes, Quantiser
from h264lite.cpu_simd.costs.cabac_bits import B_SLICE, N_BITS, fill_bits
from h264lite.cpu_simd.decide.rd_candidates_b import rd_candidates_b
from h264lite.cpu_simd.decisions.common import LAMBDA
from h264lite.cpu_simd.inter.motion_compensation import predict_inter
from h264lite.cpu_simd.layout import N_B_CHOICES, N_B_EXTRAS
from h264lite.standard.macroblock import P_8x8
from h264lite.standard.tables import QP_CHROMA

from ..support import naive
from .test_inter_residual import reference_pool
from .test_intra import picture
from .test_rd_candidates import chroma_cost, luma_cost

WIDTH, HEIGHT, SEED = 64, 48, 23
N_REF, N_REF1 = 2, 1
# The choices of the quadrants by divisions, and bits of mb_type
DIVISIONS = (([8] * 4, 3), ([9] * 4, 3), ([10] * 4, 6), ([4, 4, 5, 5], 6), ([6, 7, 6, 7], 6), ([0, 1, 2, 3], 18))
DIRECT = 6


def b_pool(pictures, bi_weights):
    """Two entries in list 0 and one in list 1, with these weights of list 1."""
    return reference_pool(pictures)._replace(n_ref=N_REF, n_ref1=N_REF1, bi_weights=np.array(bi_weights, np.int32))


def noisy(rng, planes, most):
    """The planes with noise of at most so much."""
    return [np.clip(p + rng.integers(-most, most + 1, p.shape), 0, 255).astype(np.uint8) for p in planes]


def predicted(pool, x0, y0, refs, vectors):
    """8.4.2: samples of a macroblock, uint8[24, 16], from the entries [4, 2] and vectors [4, 2, 2] of its quadrants."""
    of_list = []
    for n in range(2):
        slots = pool.slots[:N_REF] if n == 0 else pool.slots[N_REF:]
        ref_idx = np.maximum(refs[None, :, n], 0).astype(np.int8)
        motion = Motion(np.full(1, P_8x8, np.uint8), np.zeros((1, 4), np.uint8), ref_idx, np.zeros((1, 16, 2), np.int16))
        for k in range(16):
            motion.mv[0, k] = vectors[k // 8 * 2 + k % 4 // 2, n]
        out = np.zeros(384, np.uint8)
        predict_inter(0, x0, y0, pool._replace(slots=slots, n_ref=len(slots), n_ref1=None), motion, out)
        of_list.append(out.reshape(24, 16).astype(int))
    result = np.zeros((24, 16), np.uint8)
    for q, (ref0, ref1) in enumerate(refs):
        weight = 64 if ref0 < 0 else 0 if ref1 < 0 else int(pool.bi_weights[ref0 * N_REF1 + ref1])
        both = np.clip((of_list[0] * (64 - weight) + of_list[1] * weight + 32) >> 6, 0, 255)
        y, x = q >> 1, q & 1
        for rows, columns in [(slice(8 * y, 8 * y + 8), slice(8 * x, 8 * x + 8))] + [
            (slice(16 + 4 * y, 20 + 4 * y), slice(c + 4 * x, c + 4 * x + 4)) for c in (0, 8)
        ]:
            result[rows, columns] = both[rows, columns]
    return result


def of_macroblock(planes, x0, y0):
    """uint8[24, 16]: luma, then Cb beside Cr."""
    chroma = [p[y0 // 2 : y0 // 2 + 8, x0 // 2 : x0 // 2 + 8] for p in planes[1:]]
    return np.vstack([planes[0][y0 : y0 + 16, x0 : x0 + 16], np.hstack(chroma)])


def choices(rng, planes, pool):
    """Candidates as bipredict leaves them: SATD of vectors that hardly differ."""
    height, width = planes[0].shape
    n_mb = width * height // 256
    ref = np.stack([rng.integers(-1, N_REF, (n_mb, N_B_CHOICES)), rng.integers(-1, N_REF1, (n_mb, N_B_CHOICES))], 2)
    ref[(ref < 0).all(2)] = 0
    ref[:, 8], ref[:, 9] = (0, -1), (-1, 0)
    ref[:, 10, 0], ref[:, 10, 1] = rng.integers(0, N_REF, n_mb), 0
    mv = rng.integers(-9, 10, (n_mb, 1, 2, 2)) // 2 + rng.integers(-2, 3, (n_mb, N_B_CHOICES, 2, 2))
    mv[ref < 0] = 0
    cost = np.zeros((n_mb, N_B_CHOICES), np.int32)
    for mb in range(n_mb):
        x0, y0 = 16 * (mb % (width // 16)), 16 * (mb // (width // 16))
        source = of_macroblock(planes, x0, y0).astype(int)
        for of_quadrants, _ in DIVISIONS:
            out = predicted(pool, x0, y0, ref[mb, of_quadrants], mv[mb, of_quadrants])
            for q, k in enumerate(of_quadrants):
                rows, columns = slice(8 * (q >> 1), 8 * (q >> 1) + 8), slice(8 * (q & 1), 8 * (q & 1) + 8)
                cost[mb, k] += naive.satd(source[rows, columns] - out[rows, columns])
    extra, moved = np.full((n_mb, N_B_EXTRAS), 1 << 28, np.int32), np.zeros((n_mb, 3, 2, 2), np.int16)
    return MovedCandidates(cost, ref.astype(np.int8), mv.astype(np.int16), extra, moved)


def direct_motion(mb, mb_width, candidates, lam):
    """8.4.1.2.2 where all neighbours have their best undivided choice: entries and vectors of both lists."""
    whole = candidates.cost[:, 8:].astype(int) + lam * np.array([bits for _, bits in DIVISIONS[:3]])
    best, all_mb = 8 + whole.argmin(1), np.arange(len(whole))
    refs, vectors = [], []
    for n in range(2):
        ref_idx = np.repeat(candidates.ref[all_mb, best, n][:, None], 4, 1)
        mv = np.repeat(candidates.mv[all_mb, best, n][:, None], 16, 1)
        positions = (-1, 0), (0, -1), (4, -1), (-1, -1)
        a, b, c, d = (naive.neighbour(mb, x, y, ref_idx, mv, mb_width, 0, (0, 0)) for x, y in positions)
        used = [near[0] for near in (a, b, c or d) if near and near[0] >= 0]
        refs.append(min(used, default=-1))
        vectors.append(naive.predict_mv(mb, 0, 0, 4, 4, refs[n], ref_idx, mv, mb_width, 0) if used else (0, 0))
    return np.array(refs if max(refs) >= 0 else (0, 0)), np.array(vectors)


def true_cost(source, samples, qp, qp_c, bits, psy_rd):
    """The cost of a prediction and that of the error of chroma, in 1 / 256 bit."""
    source, samples = source.astype(int), samples.astype(int)
    difference = source - samples
    chroma, error = chroma_cost([difference[16:, 8 * c : 8 * c + 8] for c in range(2)], qp, qp_c, bits)
    return chroma + luma_cost(source[:16], samples[:16], qp, bits, psy_rd), error


def estimated_bits(candidates, mb, division, vectors):
    of_quadrants, total = DIVISIONS[division]
    for k in sorted(set(of_quadrants)):
        refs = candidates.ref[mb, k]
        for n in range(2):
            if refs[n] >= 0:
                total += (1 if n == 0 else 0) + sum(naive.se_bits(int(v)) for v in candidates.mv[mb, k, n] - vectors[n])
        total += 2 if len(set(of_quadrants)) > 1 and min(refs) >= 0 else 0
    return total


@pytest.mark.parametrize("kind", ["noise", "waves"])
@pytest.mark.parametrize(("qp", "psy_rd", "partition_mask"), [(18, 0, 7), (30, 300, 31), (41, 0, 7), (27, 0, 1), (34, 0, 3)])
def test_against_the_definition(kind, qp, psy_rd, partition_mask):
    rng = np.random.default_rng([SEED, qp])
    pictures = [picture(rng, HEIGHT, WIDTH, kind) for _ in range(3)]
    if kind == "waves":
        pictures = [noisy(rng, pictures[0], 6) for _ in range(3)]
    pool, n_mb, mb_width = b_pool(pictures, (32, 21)), WIDTH * HEIGHT // 256, WIDTH // 16
    planes = noisy(rng, pictures[0], 9)
    qps, lam, qp_c, bits = np.full(n_mb, qp, np.uint8), int(LAMBDA[qp]), int(QP_CHROMA[qp - 2]), np.zeros(N_BITS, np.int32)
    fill_bits(bits, B_SLICE, qp)
    candidates = choices(rng, planes, pool)
    intra, limit = rng.integers(0, 9000, n_mb).astype(np.int32), np.zeros(n_mb, np.int32)
    intra[0], old_intra = 1 << 20, intra.astype(int)
    settings, tools = DecisionSettings(6, 1, 128, partition_mask, psy_rd), CodingTools(1, 0, 1)
    fixed, costs = (Planes(*planes), pool, Quantiser(qps, -2), settings, tools), OtherCosts(intra, limit)
    for row in range(HEIGHT // 16):
        rd_candidates_b(*fixed, row, row + 1, candidates, costs)
    near, allowed = 0, [0, 1, 2] + [3, 4] * (partition_mask >> 1 & 1) + [5] * (partition_mask >> 2 & 1) + [DIRECT]
    kinds = set()
    for mb in range(n_mb):
        x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
        source = of_macroblock(planes, x0, y0)
        refs, vectors = direct_motion(mb, mb_width, candidates, lam)
        samples = predicted(pool, x0, y0, np.tile(refs, (4, 1)), np.tile(vectors, (4, 1, 1)))
        cost, error = true_cost(source, samples, qp, qp_c, bits, psy_rd)
        of_direct = naive.satd(source[:16].astype(int) - samples[:16])
        extras, estimates = {DIRECT: cost * lam // 256 - of_direct}, {DIRECT: of_direct + lam}
        assert limit[mb] == error * lam // 256 - 8 * lam
        for division, (of_quadrants, _) in enumerate(DIVISIONS):
            distortion = int(candidates.cost[mb, sorted(set(of_quadrants))].sum())
            samples = predicted(pool, x0, y0, candidates.ref[mb, of_quadrants], candidates.mv[mb, of_quadrants])
            cost, _ = true_cost(source, samples, qp, qp_c, bits, psy_rd)
            extras[division] = cost * lam // 256 - distortion
            estimates[division] = distortion + lam * estimated_bits(candidates, mb, division, vectors)
        best = min(reversed(allowed), key=lambda s: (estimates[s], s != DIRECT, s))
        kinds.add(best)
        for division in range(N_B_EXTRAS):
            is_near = division in allowed and estimates[division] < estimates[best] + (estimates[best] >> 3)
            near += is_near
            assert candidates.extra[mb, division] == extras[division if is_near else best], (mb, division)
        assert intra[mb] == (old_intra[mb] + extras[best] + 8 * lam if mb else 1 << 20)
    assert n_mb < near < len(allowed) * n_mb and len(kinds) > 1


@pytest.mark.parametrize(("qp", "psy_rd"), [(18, 0), (30, 300), (38, 0)])
def test_vectors_move_to_lower_true_costs(qp, psy_rd):
    """From subme 9 on: what a division's vectors save is that of its true cost, more than their bits take."""
    rng = np.random.default_rng([SEED, qp])
    first = picture(rng, HEIGHT, WIDTH, "waves")
    pictures, planes = [noisy(rng, first, 6) for _ in range(3)], noisy(rng, first, 9)
    pool, n_mb, mb_width = b_pool(pictures, (32, 21)), WIDTH * HEIGHT // 256, WIDTH // 16
    qps, lam, qp_c, bits = np.full(n_mb, qp, np.uint8), int(LAMBDA[qp]), int(QP_CHROMA[qp - 2]), np.zeros(N_BITS, np.int32)
    fill_bits(bits, B_SLICE, qp)
    before, count = choices(rng, planes, pool), 0
    after = MovedCandidates(*(array.copy() for array in before))
    for subme, candidates in ((6, before), (9, after)):
        intra, limit = np.full(n_mb, 1 << 20, np.int32), np.zeros(n_mb, np.int32)
        settings, tools = DecisionSettings(subme, 1, 128, 31, psy_rd), CodingTools(1, 0, 1)
        how = (Planes(*planes), pool, Quantiser(qps, -2), settings, tools)
        rd_candidates_b(*how, 0, HEIGHT // 16, candidates, OtherCosts(intra, limit))
    ends = np.concatenate([after.mv[:, :8], after.moved], 1)
    np.testing.assert_array_equal(after.mv[:, 8:], before.mv[:, 8:])
    for mb in range(n_mb):
        x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
        source, (_, middle) = of_macroblock(planes, x0, y0), direct_motion(mb, mb_width, before, lam)

        def true(of_quadrants, mv, mb=mb, x0=x0, y0=y0, source=source):
            samples = predicted(pool, x0, y0, before.ref[mb, of_quadrants], mv[mb, of_quadrants])
            return true_cost(source, samples, qp, qp_c, bits, psy_rd)[0] * lam // 256

        for division, (of_quadrants, _) in enumerate(DIVISIONS):
            used = sorted(set(of_quadrants))
            if not (ends[mb, used] != before.mv[mb, used]).any():
                continue
            count += 1
            gain = true(of_quadrants, ends) - true(of_quadrants, before.mv)
            assert after.extra[mb, division] - before.extra[mb, division] == gain
            vectors = [(k, n) for k in used for n in range(2) if before.ref[mb, k, n] >= 0]
            away = [[mv[mb, k, n].astype(int) - middle[n] for k, n in vectors] for mv in (ends, before.mv)]
            rates = [sum(naive.se_bits(int(v)) for offset in offsets for v in offset) for offsets in away]
            assert gain + lam * (rates[0] - rates[1]) < 0
            assert np.abs(ends[mb, used] - before.mv[mb, used]).sum(-1).max() <= 2
    assert count
