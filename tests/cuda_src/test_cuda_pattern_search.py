"""The CUDA pattern search gives the bits of its CPU twin: patterns, kinds of pictures, ranges, centres, QPs, split rows."""

from itertools import pairwise

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import SearchResult, SearchStart
from h264lite.cpu_simd.decisions.common import COST_NOT_REFINED, QUICK
from h264lite.cpu_simd.decisions.search import ALL_PARTITIONS, DIA, EVERY, HEX, SMALL_PARTITIONS, UMH
from h264lite.cpu_simd.search import pattern_search as cpu
from h264lite.cuda_src.search.pattern_search import pattern_search

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import blank, uploaded
from ..support.cuda_cases import KINDS, SEED, plane, shifted
from ..support.quantiser import constant, varying

PATTERNS = DIA, HEX, UMH


def both(device, where, qp, merange, pattern, splits=1, mask=ALL_PARTITIONS, subme=EVERY):  # noqa: F811
    source, reference, pad, centre, predictor = where
    n_mb, rows = len(centre), source.shape[0] // 16
    start = SearchStart(centre, predictor)
    result = SearchResult(np.zeros((n_mb, 41), np.int32), np.zeros((n_mb, 41, 2), np.int16))
    cpu.pattern_search(source, reference, pad, start, qp, (pattern, merange), 0, rows, result, mask, subme)
    gpu_source, gpu_reference, gpu_qp = (device.upload(a) for a in (source, reference, qp))
    gpu_start, out = uploaded(device, start), blank(device, result)
    edges = [rows * k // splits for k in range(splits + 1)]
    for row0, row1 in pairwise(edges):
        if row1 > row0:
            kind = pattern, merange
            pattern_search(gpu_source, gpu_reference, pad, gpu_start, gpu_qp, kind, row0, row1, out, mask, subme)
    first = 0 if mask & SMALL_PARTITIONS else 32  # what a GPU leaves in sizes not wanted is not read
    np.testing.assert_array_equal(out.cost.get()[:, first:], result.cost[:, first:])
    searched = result.cost < COST_NOT_REFINED  # vectors of others may be anything
    np.testing.assert_array_equal(out.mv.get()[searched], result.mv[searched])
    return result


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("kind", KINDS)
def test_twin(device, kind, pattern):  # noqa: F811
    print("seed", SEED)
    rng = np.random.default_rng(SEED + pattern)
    pad = 96
    for merange in (4, 5, 8, 16, 21, 32, 64):
        for width, height, one_qp in ((48, 32, 12), (16, 16, 51), (32, 48, None)):
            reference = plane(rng, kind, height + 2 * pad, width + 2 * pad)
            source = shifted(rng, reference, pad)
            n_mb = width * height // 256
            centre = rng.integers(-7, 8, (n_mb, 2)).astype(np.int16)
            predictor = rng.integers(-90, 91, (n_mb, 2)).astype(np.int16)
            where = source, reference, pad, centre, predictor
            qp = varying(rng, n_mb) if one_qp is None else constant(n_mb, one_qp)
            for mask in (ALL_PARTITIONS, ALL_PARTITIONS & ~SMALL_PARTITIONS):
                both(device, where, qp, merange, pattern, 1 + (one_qp != 12), mask)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_quiet_macroblocks(device, pattern):  # noqa: F811
    rng, pad, quiet = np.random.default_rng(SEED), 96, []
    for kind in KINDS:
        reference = plane(rng, kind, 32 + 2 * pad, 48 + 2 * pad)
        source = shifted(rng, reference, pad)
        centre = rng.integers(-3, 4, (6, 2)).astype(np.int16)
        predictor = (4 * centre + rng.integers(-3, 4, (6, 2))).astype(np.int16)
        searched = both(device, (source, reference, pad, centre, predictor), varying(rng, 6), 16, pattern, 2, subme=QUICK)
        quiet += (searched.cost[:, 0] == COST_NOT_REFINED).tolist()
    assert 0 < sum(quiet) < len(quiet)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_saturated_costs(device, pattern):  # noqa: F811
    """All candidates as bad as can be: 65535 at most, and the centre."""
    pad, n_mb = 48, 2
    source, reference = np.zeros((16, 32), np.uint8), np.full((16 + 2 * pad, 32 + 2 * pad), 255, np.uint8)
    far = np.full((n_mb, 2), 2000, np.int16)
    for mask in (ALL_PARTITIONS, ALL_PARTITIONS & ~SMALL_PARTITIONS):
        both(device, (source, reference, pad, np.zeros((n_mb, 2), np.int16), far), constant(n_mb, 51), 16, pattern, mask=mask)


def test_refused_by_name(device):  # noqa: F811
    a = device.array((16, 16), np.uint8)
    with pytest.raises(ValueError, match="merange 65"):
        pattern_search(a, a, 0, SearchStart(a, a), a, (HEX, 65), 0, 1, SearchResult(a, a))
