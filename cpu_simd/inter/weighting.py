"""Weighted sample prediction (8.4.2.3), weighted references for the search, and sums of the source for the weights."""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.sample_format import SAMPLE_MAX
from ..layout import CHROMA_WEIGHTED, LUMA_WEIGHTED, MOST_WEIGHTED, N_WEIGHTS
from ..simd.lanes import squares_of_pairs, sum_of_lanes
from ..simd.vector import add, load_u8x16, prefetch, splat_i32x8, splat_like, widen


@helper
def _weighted(sample, denominator, weight, offset):
    """8.4.2.3.2: a sample of explicit mode in one direction; denominator: logWD."""
    return min(SAMPLE_MAX, max(0, ((sample * weight + ((1 << denominator) >> 1)) >> denominator) + offset))


@helper
def _weigh(out, at, side, denominator, weight, offset):
    """Weighs side x side samples from out[at] on, in rows of sixteen."""
    for i in range(at, at + 16 * side, 16):
        for k in range(i, i + side):
            out[k] = _weighted(np.int64(out[k]), denominator, weight, offset)


@helper
def any_weights(weights):
    """Whether an entry of RefPicList0 has weights; see weigh_prediction."""
    flags = weights[0]
    for n in range(1, MOST_WEIGHTED):
        flags |= weights[N_WEIGHTS * n]
    return flags != 0


@helper
def weigh_prediction(mb, ref_idx, weights, out):
    """8.4.2.3.2: weighs the quadrants of macroblock mb that weighted entries of RefPicList0 predict.

    weights: int32[MOST_WEIGHTED * N_WEIGHTS], see layout.py; out Sample[MB_SAMPLES], rows of sixteen (transform.py).
    """
    for q in range(4):
        ref = np.int64(ref_idx[mb, q])
        if 0 <= ref < MOST_WEIGHTED:
            x, y, at = q & 1, q >> 1, N_WEIGHTS * ref
            flags = weights[at]
            if flags & LUMA_WEIGHTED:
                denominator, weight, offset = np.int64(weights[at + 1]), np.int64(weights[at + 2]), np.int64(weights[at + 3])
                _weigh(out, 128 * y + 8 * x, 8, denominator, weight, offset)
            if flags & CHROMA_WEIGHTED:
                for c in range(2):
                    weight, offset = np.int64(weights[at + 5 + 2 * c]), np.int64(weights[at + 6 + 2 * c])
                    _weigh(out, 256 + 8 * c + 64 * y + 4 * x, 4, np.int64(weights[at + 4]), weight, offset)


@closed_kernel
def weight_reference(luma, weights, pad, row0, row1, weighted):
    """Not part of the standard: the luma planes of a reference with weights, for the search.

    luma, weighted (out): Sample[4, H + 2 pad, W + 2 pad]; weights: int32[N_WEIGHTS], see layout.py. Sample rows of macroblock
    rows [row0, row1); the first and the last take the rows of the border with them. The standard weighs after interpolation:
    a quarter sample of these planes may differ by one from the prediction.
    """
    height, width = luma.shape[1], luma.shape[2]
    y0 = 0 if row0 == 0 else pad + 16 * row0
    y1 = height if pad + 16 * row1 == height - pad else pad + 16 * row1
    denominator, weight, offset = np.int32(weights[1]), np.int32(weights[2]), np.int32(weights[3])
    for plane in range(4):
        for y in range(y0, y1):
            for x in range(width):
                weighted[plane, y, x] = _weighted(np.int32(luma[plane, y, x]), denominator, weight, offset)


@helper
def _partial_block(plane, y0, y1, step, x0, x1):
    """(sum, sum of squares) of the samples of columns [x0, x1) in every step-th row of [y0, y1)."""
    total, squares = np.int64(0), np.int64(0)
    for y in range(y0, y1, step):
        for x in range(x0, x1):
            value = np.int64(plane[y, x])
            total += value
            squares += value * value
    return total, squares


@helper
def _plane_sums(plane, block, lines, step, sums, at):
    """Those of one plane, from sums[:, at] on; returns where the next plane begins."""
    height, width = plane.shape
    for y0 in range(0, height, lines * step):
        y1 = min(y0 + lines * step, height)
        for x0 in range(0, width - block + 1, block):
            total, squares = splat_like(widen(load_u8x16(plane, y0 * width + x0)), 0), splat_i32x8(0)
            for y in range(y0, y1, step):
                # other cores wrote the frame, and lines far from each other are not read ahead
                prefetch(plane, (y + lines * step) * width + x0)
                for x in range(x0, x0 + block, 16):
                    row = widen(load_u8x16(plane, y * width + x))
                    total, squares = add(total, row), add(squares, squares_of_pairs(row))
            sums[0, at], sums[1, at] = sum_of_lanes(total), sum_of_lanes(squares)
            at += 1
        if width % block:
            sums[0, at], sums[1, at] = _partial_block(plane, y0, y1, step, width - width % block, width)
            at += 1
    return at


@closed_kernel
def block_sums(y, u, v, block, lines, step, sums):
    """Not part of the standard: sums of the samples of a source frame, and of their squares, by blocks.

    y, u, v: Sample[h, w]; every step-th row counts. A block has `block` columns, a multiple of 16, and `lines` such rows.
    sums: int32[2, n] out, blocks of Y, Cb, Cr, each in raster order.
    """
    chroma = _plane_sums(y, block, lines, step, sums, 0)
    _plane_sums(v, block, lines, step, sums, _plane_sums(u, block, lines, step, sums, chroma))
