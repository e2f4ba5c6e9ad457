"""mv_prediction against the clauses written word by word, on random pictures with slices and intra macroblocks."""

import numpy as np
from h264lite.cpu_simd.inter.mv_prediction import predict_mv, predict_skip_mv
from h264lite.cpu_simd.layout import PARTITIONS

from ..support import naive

SEED = 7


def random_state(rng, mb_width, mb_height, spread):
    """Macroblocks of every partitioning, a fifth of them intra."""
    n_mb = mb_width * mb_height
    ref_idx = rng.integers(0, 3, (n_mb, 4)).astype(np.int8)
    mv = rng.integers(-spread, spread + 1, (n_mb, 16, 2)).astype(np.int16)
    whole = rng.random(n_mb) < 0.4
    mv[whole] = mv[whole, :1]
    ref_idx[whole] = ref_idx[whole, :1]
    intra = rng.random(n_mb) < 0.2
    ref_idx[intra] = -1
    mv[intra] = 0
    return ref_idx, mv


def test_every_partition_of_random_pictures():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    for mb_width, mb_height, spread in ((1, 4, 2), (2, 3, 1), (5, 4, 2000), (4, 4, 1)):
        for _ in range(6):
            ref_idx, mv = random_state(rng, mb_width, mb_height, spread)
            first_mb = mb_width * int(rng.integers(0, mb_height - 1))
            for mb in range(first_mb, mb_width * mb_height):
                assert predict_skip_mv(mb, ref_idx, mv, mb_width, first_mb) == naive.predict_skip_mv(
                    mb, ref_idx, mv, mb_width, first_mb
                )
                for x, y, w, h in PARTITIONS.tolist():
                    for ref in (0, 2):
                        args = (mb, x // 4, y // 4, w // 4, h // 4, ref, ref_idx, mv, mb_width, first_mb)
                        assert predict_mv(*args) == naive.predict_mv(*args), args[:6]
