"""Choices of B macroblocks: entries, vectors and SATD of one or both lists, without the neighbours; all macroblocks at once.

mode_decision_b, which knows the neighbours, adds the bits of vectors, references and types. Not part of the standard.
"""
# Samples of 8 bits only: 64 samples a vector, weights of bytes.

from collections import namedtuple

import numpy as np

from ...jit.intrinsics import inlined, outlined
from ...jit.kernel import closed_kernel, helper
from ..costs.bit_costs import mvd_bits, ref_idx_bits
from ..costs.block_costs import Layers, average_layers, fill_layers, predict_layers, sads_of_octets, satds, stored_layers
from ..costs.cost import QUARTER_SAMPLES, Target, quarter_offsets
from ..decisions.common import COST_NOT_REFINED, LAMBDA, SAD, SATD
from ..decisions.decide import B_BITS_BI, B_BITS_L0, B_BITS_L1, B_NOT_ALLOWED, B_REFINED, MOST_PAIRS, NONE
from ..inter.mv_cache import Area, inside
from ..layout import AVERAGE, B_QUADRANT, B_WHOLE, N_B_EXTRAS, B_16x8_PARTITION
from ..search.subpel_refine import LARGE, NEIGHBOURS, sums_of_large, sums_of_middle, sums_of_octets
from ..simd.block_rows import splat_u16x64, weighted_sum
from ..simd.blocks import load_i32x16, splat_i32x16
from ..simd.lanes import where_less
from ..simd.vector import add, aligned, clip_to_u8, mul, plus, shift_right_s, store, widen

# Vectors with their entry are one integer, see _packed; entries run over list 0, then list 1.
WHOLE_LANE = 15  # of sums_of_large

# What all macroblocks share.
Shared = namedtuple("Shared", (
    "references",  # LumaReferences
    "searches",  # Searches
    "area",  # Area
    "metric",  # SAD or SATD
))  # fmt: skip

# Predictions of one macroblock from both lists that were tried.
Trials = namedtuple("Trials", (
    "target",  # Target with Layers, luma of all slots
    "fixed",  # Sample[256], luma predicted at one vector, layer by layer
    "fixed_at",  # int64[1], that vector, or NONE
    "pairs",  # int64[MOST_PAIRS, 2], the vectors tried, of list 0 and list 1
    "cost",  # int32[16], least cost of each partition, in the lanes of sums_of_large
    "pair",  # int32[16], which pair has it
))  # fmt: skip


@helper
def _packed(entry, x, y):
    return entry << 32 | (y & 0xFFFF) << 16 | x & 0xFFFF


@helper
def _unpacked(v):
    """(entry, x, y)."""
    return v >> 32, (v & 0xFFFF ^ 0x8000) - 0x8000, (v >> 16 & 0xFFFF ^ 0x8000) - 0x8000


@helper
def _bits(v, mb, references, searches):
    """Bits of a vector and of its reference."""
    entry, x, y = _unpacked(v)
    n_ref, n_ref1 = references.n_ref, references.n_ref1
    reference = ref_idx_bits(entry, n_ref) if entry < n_ref else ref_idx_bits(entry - n_ref, n_ref1)
    px, py = np.int64(searches.predictor[entry, mb, 0]), np.int64(searches.predictor[entry, mb, 1])
    return reference + mvd_bits(x, y, px, py)


@helper
def _best_entry(mb, k, first, count, lam, searches):
    """The vector of partition k in the entry of least estimated cost among `count` entries of a list, and that cost.

    first: entry 0 of the list; NONE if the partition was refined in no entry.
    """
    best, entry = np.int64(COST_NOT_REFINED >> 1), np.int64(NONE)  # the bits of a new predictor may lower COST_NOT_REFINED
    for r in range(count):
        cost = np.int64(searches.cost[first + r, mb, k]) + lam * ref_idx_bits(r, count)
        if cost < best:
            best, entry = cost, np.int64(first + r)
    if entry < 0:
        return np.int64(NONE), best
    return _packed(entry, np.int64(searches.mv[entry, mb, k, 0]), np.int64(searches.mv[entry, mb, k, 1])), best


@helper
def _find_entries(mb, partition_mask, lam, shared, entries, costs):
    """_best_entry of both lists -> entries, costs: int64[B_WHOLE + 1, 2], for partitions 32 to 40; NONE if not allowed."""
    n_ref, n_ref1 = shared.references.n_ref, shared.references.n_ref1
    for c in range(B_WHOLE + 1):
        size = 4 if c < B_16x8_PARTITION else 2
        if c < B_WHOLE and not partition_mask & size:
            entries[c, 0], entries[c, 1] = NONE, NONE
        else:
            entries[c, 0], costs[c, 0] = _best_entry(mb, 32 + c, 0, n_ref, lam, shared.searches)
            entries[c, 1], costs[c, 1] = _best_entry(mb, 32 + c, n_ref, n_ref1, lam, shared.searches)


@helper
def _samples(target, slots, corner, v):
    """Offsets of the two samples whose average predicts the macroblock's corner at a vector.

    corner: of the macroblock in a plane.
    """
    luma, offsets = target.luma, target.offsets
    entry, x, y = _unpacked(v)
    stride = luma.shape[3]
    base = np.int64(slots[entry]) * 4 * luma.shape[2] * stride + corner + (y >> 2) * stride + (x >> 2)
    f = (y & 3) * 4 + (x & 3)
    return base + offsets[0, f], base + offsets[1, f]


@helper
def _predict_fixed(trials, slots, corner, v):
    """Predicts the macroblock at a vector -> fixed, if it is not there."""
    if trials.fixed_at[0] == v:
        return
    luma, fixed = trials.target.luma, trials.fixed
    a, b = _samples(trials.target, slots, corner, v)
    predicted = predict_layers(luma, a, b, luma.shape[3])
    for r in range(4):
        store(fixed, 64 * r, predicted[r])
    trials.fixed_at[0] = v


@helper
def _weighted(p, q, weight):
    """As weighted_sum for any weight."""
    total = add(mul(widen(p), splat_u16x64(64 - weight)), mul(widen(q), splat_u16x64(weight)))
    return clip_to_u8(shift_right_s(plus(total, 32), 6))


@helper
def _by_any_weight(p, q, weight):
    """Layers by the weight -64 or 128 of the second."""
    outlined()
    first, second = _weighted(p[0], q[0], weight), _weighted(p[1], q[1], weight)
    return first, second, _weighted(p[2], q[2], weight), _weighted(p[3], q[3], weight)


@helper
def _costs_of(trials, predicted, metric):
    """sums_of_large of a prediction's layers."""
    inlined()
    if metric == SAD:
        return sums_of_octets(sads_of_octets(trials.target.current, predicted))
    return sums_of_large(sums_of_middle(satds(trials.target.current, predicted)))


@helper
def _distortions(trials, a, b, weight, metric):
    """_costs_of the prediction from both lists; a, b: offsets of the macroblock's samples; weight: of `fixed`, of 64."""
    luma = trials.target.luma
    p, q = predict_layers(luma, a, b, luma.shape[3]), stored_layers(trials.fixed)
    if weight == AVERAGE:  # 8.4.2.3.2 then is the rounded average
        return _costs_of(trials, average_layers(p, q), metric)
    if weight == 128 or weight == -64:  # bytes do not hold 128
        return _costs_of(trials, _by_any_weight(p, q, weight), metric)
    return _costs_of(trials, (
        weighted_sum(p[0], q[0], weight), weighted_sum(p[1], q[1], weight),
        weighted_sum(p[2], q[2], weight), weighted_sum(p[3], q[3], weight),
    ), metric)  # fmt: skip


@helper
def _try_pair(mb, x0, y0, v0, v1, moved, n, lam, shared, trials):
    """Tries vectors of both lists for all partitions as pair n. Returns how many pairs there are.

    moved: the list that the next pairs move; the prediction from the other one is kept for them.
    """
    references, area, metric = shared.references, shared.area, shared.metric
    e0, xa, ya = _unpacked(v0)
    e1, xb, yb = _unpacked(v1)
    if not inside(xa, ya, x0, y0, area) or not inside(xb, yb, x0, y0, area):
        return n
    corner = (y0 + area.pad) * trials.target.luma.shape[3] + x0 + area.pad
    weight = np.int64(references.bi_weights[e0 * references.n_ref1 + e1 - references.n_ref])
    weight = 64 - weight if moved else weight
    _predict_fixed(trials, references.slots, corner, v0 if moved else v1)
    a, b = _samples(trials.target, references.slots, corner, v1 if moved else v0)
    rate = lam * (_bits(v0, mb, references, shared.searches) + _bits(v1, mb, references, shared.searches))
    total = add(_distortions(trials, a, b, weight, metric), splat_i32x16(rate))
    cost = load_i32x16(trials.cost, 0)
    store(trials.pair, 0, where_less(total, cost, splat_i32x16(n), load_i32x16(trials.pair, 0)))
    store(trials.cost, 0, where_less(total, cost, total, cost))
    trials.pairs[n, 0], trials.pairs[n, 1] = v0, v1
    return n + 1


@helper
def _try_entries(mb, x0, y0, lam, shared, entries, trials):
    """Tries the best entries of both lists of each partition, the undivided macroblock's first. Returns how many pairs."""
    n = 0
    for i in range(B_WHOLE + 1):
        c = i - 1 if i > 0 else B_WHOLE
        v0, v1 = entries[c, 0], entries[c, 1]
        new = v0 >= 0 and v1 >= 0
        for k in range(n):
            if trials.pairs[k, 0] == v0 and trials.pairs[k, 1] == v1:
                new = False
        if new:
            n = _try_pair(mb, x0, y0, v0, v1, 0, n, lam, shared, trials)
    return n


@helper
def _move_one(mb, x0, y0, moved, n, lam, shared, trials):
    """Moves one list's vector of the undivided macroblock's best pair to its eight neighbours. Returns how many pairs."""
    pair = trials.pair[WHOLE_LANE]
    v0, v1 = trials.pairs[pair, 0], trials.pairs[pair, 1]
    entry, x, y = _unpacked(v1 if moved else v0)
    for k in range(1, 9):
        v = _packed(entry, x + NEIGHBOURS[k, 0], y + NEIGHBOURS[k, 1])
        n = _try_pair(mb, x0, y0, v0 if moved else v, v if moved else v1, moved, n, lam, shared, trials)
    return n


@helper
def _move_both(mb, x0, y0, n, lam, shared, trials):
    """Moves list 1's vector up, left, right and down, and list 0's alike, then the opposite way. Returns how many pairs."""
    pair = trials.pair[WHOLE_LANE]
    e0, xa, ya = _unpacked(trials.pairs[pair, 0])
    e1, xb, yb = _unpacked(trials.pairs[pair, 1])
    for k in range(4):
        dx, dy = (k == 2) - (k == 1), (k == 3) - (k == 0)
        v1 = _packed(e1, xb + dx, yb + dy)
        n = _try_pair(mb, x0, y0, _packed(e0, xa + dx, ya + dy), v1, 0, n, lam, shared, trials)
        n = _try_pair(mb, x0, y0, _packed(e0, xa - dx, ya - dy), v1, 0, n, lam, shared, trials)
    return n


@helper
def _refine(mb, x0, y0, n, lam, shared, trials):
    """Moves vectors of the undivided macroblock's best pair by a quarter sample: of list 0, of list 1, of both."""
    n = _move_one(mb, x0, y0, 0, n, lam, shared, trials)
    n = _move_one(mb, x0, y0, 1, n, lam, shared, trials)
    _move_both(mb, x0, y0, n, lam, shared, trials)


@helper
def _write(mb, c, cost, v0, v1, n_ref, candidates):
    """Stores choice c; v0, v1: its vectors, or NONE."""
    candidates.cost[mb, c] = cost
    for i in range(2):
        v = v1 if i else v0
        entry, x, y = _unpacked(v)
        candidates.ref[mb, c, i] = -1 if v < 0 else entry - n_ref if i else entry
        candidates.mv[mb, c, i, 0], candidates.mv[mb, c, i, 1] = (0, 0) if v < 0 else (x, y)


@helper
def _write_choice(mb, c, pred_modes, lam, shared, entries, costs, trials, candidates):
    """Stores as choice c the best of `pred_modes` (bits 0 list 0, 1 list 1, 2 both) of its partition."""
    references, searches = shared.references, shared.searches
    k = min(c, B_WHOLE)
    v0, v1, none = entries[k, 0], entries[k, 1], np.int64(NONE)
    best, cost, a, b = np.int64(B_NOT_ALLOWED), np.int64(B_NOT_ALLOWED), none, none
    if pred_modes & 1 and v0 >= 0 and costs[k, 0] + lam * B_BITS_L0 < best:
        best, a, b = costs[k, 0] + lam * B_BITS_L0, v0, none
        cost = costs[k, 0] - lam * _bits(v0, mb, references, searches)
    if pred_modes & 2 and v1 >= 0 and costs[k, 1] + lam * B_BITS_L1 < best:
        best, a, b = costs[k, 1] + lam * B_BITS_L1, none, v1
        cost = costs[k, 1] - lam * _bits(v1, mb, references, searches)
    both = np.int64(trials.cost[LARGE + k])
    if pred_modes & 4 and (v0 >= 0 or v1 >= 0) and both + lam * B_BITS_BI < best:
        pair = trials.pair[LARGE + k]
        a, b = trials.pairs[pair, 0], trials.pairs[pair, 1]
        cost = both - lam * (_bits(a, mb, references, searches) + _bits(b, mb, references, searches))
    _write(mb, c, cost, a, b, references.n_ref, candidates)


@closed_kernel
def bipredict(source, references, searches, qp, settings, row0, row1, candidates):
    """Finds the choices of the macroblock rows [row0, row1) of a B frame in one or both lists.

    source: Sample[H, W]; bundles: LumaReferences; Searches of all entries of both lists; DecisionSettings; qp: uint8[n_mb],
    QP_Y. Writes candidates: Candidates, with extra 0: the distortion of each choice (SATD, below subme 3 SAD), its entries
    and vectors. Choices that partition_mask excludes, or that were refined in no entry, cost B_NOT_ALLOWED.

    One list: the entry of least estimated cost. Both lists: for each partition the best one of all pairs tried, on a tie the
    earlier one: the best entries of the undivided macroblock, those of partitions 32 to 39, and from subme B_REFINED on what
    lies a quarter sample round the undivided macroblock's best pair, if that costs less than one list: in list 0, in list 1,
    in both.
    Quadrants and halves take the best of list 0, list 1 and both in this order with the bits of vectors, references and
    B_BITS_*.
    """
    height, width = source.shape
    mb_width, pad = width // 16, references.pad
    luma = references.luma
    stride = luma.shape[3]
    offsets = np.empty((2, 16), np.int64)
    quarter_offsets(luma.shape[2] * stride, stride, QUARTER_SAMPLES, offsets)
    layers = Layers(aligned(256), aligned(512).view(np.int16))
    shared = Shared(
        references, searches, Area(width, height, pad, settings.max_mv_y), np.int64(SATD if settings.subme >= 3 else SAD)
    )
    trials = Trials(
        Target(layers, luma, offsets),
        aligned(256),
        np.empty(1, np.int64),
        np.empty((MOST_PAIRS, 2), np.int64),
        np.empty(16, np.int32),
        np.empty(16, np.int32),
    )
    entries, costs = np.empty((B_WHOLE + 1, 2), np.int64), np.empty((B_WHOLE + 1, 2), np.int64)
    for mb in range(row0 * mb_width, row1 * mb_width):
        x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
        lam = LAMBDA[qp[mb]]
        fill_layers(source, y0 * width + x0, width, layers)
        trials.fixed_at[0] = NONE
        store(trials.cost, 0, splat_i32x16(B_NOT_ALLOWED))
        store(trials.pair, 0, splat_i32x16(0))
        _find_entries(mb, settings.partition_mask, lam, shared, entries, costs)
        n = _try_entries(mb, x0, y0, lam, shared, entries, trials)
        one = min(costs[B_WHOLE, 0] + lam * B_BITS_L0, costs[B_WHOLE, 1] + lam * B_BITS_L1)
        if settings.subme >= B_REFINED and np.int64(trials.cost[WHOLE_LANE]) + lam * B_BITS_BI < one:
            _refine(mb, x0, y0, n, lam, shared, trials)
        for c in range(B_QUADRANT, B_WHOLE):
            _write_choice(mb, c, 7, lam, shared, entries, costs, trials, candidates)
        for pred_mode in range(3):
            _write_choice(mb, B_WHOLE + pred_mode, 1 << pred_mode, lam, shared, entries, costs, trials, candidates)
        for c in range(N_B_EXTRAS):
            candidates.extra[mb, c] = 0
