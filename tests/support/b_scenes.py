"""Random frames with choices of B macroblocks, for mode_decision_b of both devices."""

import numpy as np
from h264lite.cpu_simd.bundles import Motion, MovedCandidates, OtherCosts, References
from h264lite.cpu_simd.decisions.common import LAMBDA

from . import naive
from . import slices as slices_of

PAD = 48
SHAPES = np.array([0] * 4 + [1] * 2 + [2] * 2 + [3] * 3)
AREAS = np.array([64] * 4 + [128] * 4 + [256] * 3)


def smooth(rng, height, width):
    """A plane that predictions a few samples away resemble."""
    coarse = rng.integers(40, 216, (height // 8 + 2, width // 8 + 2))
    big = np.kron(coarse, np.ones((8, 8)))
    return ((big[:-8, :-8] + big[8:, :-8] + big[:-8, 8:] + big[8:, 8:]) / 4)[:height, :width]


def scene(rng, width, height, n_ref, n_ref1, qp, pad=PAD, reach=6, noise=4, weighted=False):
    """Arguments of mode_decision_b by name. reach: of the vectors, quarter samples; qp: uint8[n_mb]."""
    mb_width, rows, n_mb = width // 16, height // 16, width * height // 256
    base = smooth(rng, height, width)
    luma = np.zeros((n_ref + n_ref1 + 1, 4, height + 2 * pad, width + 2 * pad), np.uint8)
    slots = rng.permutation(len(luma))[: n_ref + n_ref1].astype(np.int32)
    for planes in luma:
        inside = (base + rng.normal(0, 1, base.shape)).clip(0, 255).astype(np.uint8)
        planes[:] = naive.half_samples(np.pad(inside, pad, mode="edge"))
    flat = np.kron(rng.integers(0, 3, (rows, mb_width)), np.ones((16, 16)))
    flat = flat * np.kron(rng.integers(1, 4, (2 * rows, 2 * mb_width)), np.ones((8, 8))) / 3
    source = (base + rng.normal(0, noise, base.shape) * flat).clip(0, 255).astype(np.uint8)
    weights = rng.integers(-64, 129, n_ref * n_ref1) if weighted else np.full(n_ref * n_ref1, 32)
    chroma = np.zeros((len(luma), 2, height // 2 + pad, width // 2 + pad), np.uint8)
    lam = LAMBDA[qp]
    lists = rng.integers(0, 3, (n_mb, 11))
    lists[:, 8:] = 0, 1, 2
    ref = np.stack([rng.integers(0, n, (n_mb, 11)) * (rng.random((n_mb, 11)) < 0.6) for n in (n_ref, n_ref1)], -1)
    ref[lists == 0, 1] = ref[lists == 1, 0] = -1
    # neighbours with like vectors, so that every rule of prediction is met
    mv = rng.integers(-reach, reach + 1, (n_mb, 1, 2, 2)) * (rng.random((n_mb, 1, 1, 1)) < 0.7)
    mv = mv + rng.integers(-1, 2, (n_mb, 11, 2, 2)) * (rng.random((n_mb, 11, 1, 1)) < 0.5)
    mv[ref < 0] = 0
    liked = SHAPES == rng.integers(0, 4, (n_mb, 1))
    cost = AREAS * (2 * rng.integers(1, 6, (n_mb, 1)) + rng.integers(0, 4, (n_mb, 11))) // 2 + rng.integers(0, 9, (n_mb, 11))
    cost = np.where(liked, cost // 8, cost)
    cost[:, :4] += 400 * (rng.random((n_mb, 4)) < 0.3)  # where direct prediction is better
    extra = rng.integers(-60, 60, (n_mb, 7)) * lam[:, None] // 4
    first = slices_of.anywhere(rng, n_mb, 0.15)
    limit = rng.integers(-100, 100, n_mb) * lam // 4
    intra = AREAS[8] * rng.integers(1, 6, n_mb) * rng.integers(1, 4, n_mb)
    moved = mv[:, 8:] + rng.integers(-1, 2, (n_mb, 3, 2, 2)) * (ref[:, 8:, :, None] >= 0)
    none = np.zeros(2, np.int32)
    return {
        "source": source,
        "references": References(luma, chroma, slots, slots, none, pad, n_ref, n_ref1, weights.astype(np.int32)),
        "candidates": MovedCandidates(cost.astype(np.int32), ref.astype(np.int8), mv.astype(np.int16), extra.astype(np.int32),
                                      moved.astype(np.int16)),
        "still": (rng.integers(0, 16, n_mb) * (rng.random(n_mb) < 0.7)).astype(np.uint8),
        "other_costs": OtherCosts(intra.astype(np.int32), limit.astype(np.int32)),
        "first": first, "qp": qp,
    }  # fmt: skip


def results(n_mb, fill=0):
    """Motion of both lists."""
    shapes = ((n_mb,), np.uint8), ((n_mb, 4), np.uint8), ((n_mb, 4), np.int8), ((n_mb, 16, 2), np.int16)
    return Motion(*(np.full(*shape[:1], fill, shape[1]) for shape in (*shapes, *shapes[2:])))
