"""intra_estimate against its definition, on noise, gradients and extremes; any split of rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools
from h264lite.cpu_simd.decisions.common import LAMBDA
from h264lite.cpu_simd.intra.intra_estimate import intra_estimate

from ..support import naive
from ..support import slices as slices_of
from ..support.quantiser import constant

SEED = 12


@pytest.mark.parametrize("subme", [3, 4])
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("kind", ["random", "gradient", "diagonal", "extreme", "flat"])
def test_against_the_definition(kind, mode, subme):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    y, x = np.indices((48, 64))
    source = {
        "random": rng.integers(0, 256, (48, 64)),
        "gradient": 2 * x + 3 * y + rng.integers(0, 4, (48, 64)),
        "diagonal": (x + 2 * y) % 37 * 6,
        "extreme": rng.integers(0, 2, (48, 64)) * 255,
        "flat": np.full((48, 64), 255),
    }[kind].astype(np.uint8)
    for qp, chance in ((12, 0), (38, 0.2), (20, 0.4)):
        lam = int(LAMBDA[qp])
        search_cost = np.full((2, 12, 41), 1 << 20, np.int32)
        firsts = slices_of.anywhere(rng, 12, chance)
        exact = [naive.intra_estimate(source, lam, mb, int(firsts[mb]), bool(mode)) for mb in range(12)]
        costs = np.array([cost for cost, _ in exact])
        for n_ref in (0, 2):
            cost, modes = np.zeros(12, np.int32), np.full((12, 16), 99, np.uint8)
            for row0, row1 in ((1, 3), (0, 1)):
                tools = CodingTools(0, mode, 0, subme=subme)
                intra_estimate(source, constant(12, qp), search_cost, n_ref, firsts, tools, row0, row1, cost, modes)
            limit = search_cost[:n_ref, :, 40].min(0, initial=1 << 20) - (28 * lam if n_ref else 0)
            if subme == 3:
                limit[limit < 96 * lam] = 0  # quiet
            assert cost.tolist() == [c if c < most else 1 << 20 for c, most in zip(costs, limit.tolist())]
            assert modes.tolist() == [m if c < most else [18] * 16 for (c, m), most in zip(exact, limit.tolist())]
            # what stays below the inter cost by one is kept, what reaches it is not
            search_cost[rng.integers(0, 2, 12), np.arange(12), 40] = costs + 28 * lam + rng.integers(-300, 301, 12)
            search_cost[0, ::3, 40] = costs[::3] + 28 * lam + np.array([0, 1, 1, 0])


@pytest.mark.parametrize("mode", [0, 1])
def test_modes_need_what_is_there(mode):
    """At the picture's border and a slice's: no mode that takes samples from beyond; away from it such modes are best."""
    y, x = np.indices((64, 64))
    needs_top, needs_left = {0, 3, 4, 5, 6, 7}, {1, 4, 5, 6, 8}
    modes_used = set()
    for a, b in ((7, 0), (0, 7), (11, 5), (5, -11)):
        source = (a * x + b * y) % 199
        modes = np.full((16, 16), 99, np.uint8)
        cost, unknown = np.zeros(16, np.int32), np.zeros((1, 16, 41), np.int32)
        firsts = slices_of.of_rows([0, 0, 8, 8], 4)
        source, tools = source.astype(np.uint8), CodingTools(0, mode, 0)
        intra_estimate(source, constant(16, 12), unknown, 0, firsts, tools, 0, 4, cost, modes)
        assert mode or (modes < 32).all()
        as_8x8 = modes >= 32
        modes[as_8x8] -= 32
        upper, lefts = modes.reshape(4, 4, 4, 4)[::2], modes.reshape(4, 4, 4, 4)[:, 0]
        assert ((modes < 9) | (modes // 4 == 4)).all()
        whole = modes[:, 0] >= 16
        assert not set(upper[:, :, 0][upper[:, :, 0] < 16].tolist()) & needs_top
        assert not set(lefts[:, :, 0][lefts[:, :, 0] < 16].tolist()) & needs_left
        assert not set(modes[whole & (np.arange(16) // 4 % 2 == 0), 0].tolist()) & {16, 19}
        assert not set(modes[whole & (np.arange(16) % 4 == 0), 0].tolist()) & {17, 19}
        modes_used.update(modes[modes < 9].tolist())
    assert modes_used & needs_top and modes_used & needs_left
