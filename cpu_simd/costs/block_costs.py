"""SAD and SATD of all sixteen 4x4 blocks of a macroblock at once, predicted at quarter samples."""
# Samples of 8 bits only: 64 samples a vector.

from collections import namedtuple

from ...jit.intrinsics import inlined
from ...jit.kernel import helper
from ..simd.block_rows import (
    butterflies,
    differences_of_octets,
    differences_of_pairs,
    load_8x8_layers,
    load_layer,
    load_u8x64,
    load_u16x32,
    sums_of_pairs,
)
from ..simd.lanes import make_shuffle
from ..simd.vector import absolute, add, average, load_2_u8x16, load_u16x16, max_s, store, sub

# A source macroblock as the functions below take it; a layer r is row r of all its blocks (simd/block_rows.py).
Layers = namedtuple("Layers", (
    "samples",  # Sample[256], four layers
    "transformed",  # int16[256], the two butterflies of each layer
))  # fmt: skip


_swap_1, _swap_2 = (make_shuffle([i ^ distance for i in range(16)]) for distance in (1, 2))


@helper
def fill_layers(source, at, stride, layers):
    """Luma of the macroblock at source[at] -> layers."""
    for r in range(4):
        row = load_layer(source, at + r * stride, stride)
        left, right = butterflies(row)
        store(layers.samples, 64 * r, row)
        store(layers.transformed, 64 * r, left)
        store(layers.transformed, 64 * r + 32, right)


@helper
def fill_samples(source, at, stride, layers):
    """fill_layers without what SATDs take."""
    for r in range(4):
        store(layers.samples, 64 * r, load_layer(source, at + r * stride, stride))


@helper
def load_layers(samples, at, stride):
    """The four layers of the macroblock at samples[at]."""
    inlined()
    return (
        load_layer(samples, at, stride),
        load_layer(samples, at + stride, stride),
        load_layer(samples, at + 2 * stride, stride),
        load_layer(samples, at + 3 * stride, stride),
    )


@helper
def stored_layers(samples):
    """The layers of Sample[256], one after the other."""
    inlined()
    return load_u8x64(samples, 0), load_u8x64(samples, 64), load_u8x64(samples, 128), load_u8x64(samples, 192)


@helper
def average_layers(p, q):
    """Rounded averages of the layers of two predictions."""
    inlined()
    return average(p[0], q[0]), average(p[1], q[1]), average(p[2], q[2]), average(p[3], q[3])


@helper
def predict_layers(luma, a, b, stride):
    """The four layers of the macroblock whose samples are the rounded averages of those at offsets a and b of luma."""
    inlined()
    if a == b:
        return load_layers(luma, a, stride)
    return average_layers(load_layers(luma, a, stride), load_layers(luma, b, stride))


@helper
def _rows(layers, r, layer):
    """Hadamard transform of the rows in layer r of the difference to the source: (lower, upper) coefficients, u16x32."""
    inlined()
    left, right = butterflies(layer)
    left, right = sub(left, load_u16x32(layers.transformed, 64 * r)), sub(right, load_u16x32(layers.transformed, 64 * r + 32))
    return add(left, right), sub(left, right)


@helper
def _columns(d0, d1, d2, d3):
    """Half the sums of the absolute values of the columns' Hadamard transform; see cost.strip_satd."""
    inlined()
    even = max_s(absolute(add(d0, d1)), absolute(add(d2, d3)))
    return add(even, max_s(absolute(sub(d0, d1)), absolute(sub(d2, d3))))


@helper
def satds(layers, predicted):
    """i32x16: SATD of each 4x4 block, raster order, against the four layers of a prediction (u8x64)."""
    inlined()
    a0, b0 = _rows(layers, 0, predicted[0])
    a1, b1 = _rows(layers, 1, predicted[1])
    a2, b2 = _rows(layers, 2, predicted[2])
    a3, b3 = _rows(layers, 3, predicted[3])
    return sums_of_pairs(add(_columns(a0, a1, a2, a3), _columns(b0, b1, b2, b3)))


@helper
def _half_row(layers, r, half, luma, a, b, stride):
    """_rows of half a layer."""
    inlined()
    row = load_2_u8x16(luma, a + r * stride, a + (4 + r) * stride)
    if a != b:
        row = average(row, load_2_u8x16(luma, b + r * stride, b + (4 + r) * stride))
    left, right = butterflies(row)
    at = 64 * r + 16 * half
    left, right = sub(left, load_u16x16(layers.transformed, at)), sub(right, load_u16x16(layers.transformed, at + 32))
    return add(left, right), sub(left, right)


@helper
def half_satds(layers, half, luma, a, b, stride):
    """Vec(32, 8): SATD of each 4x4 block of the upper (half 0) or lower half, predicted as by predict_layers."""
    inlined()
    a, b = a + 8 * half * stride, b + 8 * half * stride
    a0, b0 = _half_row(layers, 0, half, luma, a, b, stride)
    a1, b1 = _half_row(layers, 1, half, luma, a, b, stride)
    a2, b2 = _half_row(layers, 2, half, luma, a, b, stride)
    a3, b3 = _half_row(layers, 3, half, luma, a, b, stride)
    return sums_of_pairs(add(_columns(a0, a1, a2, a3), _columns(b0, b1, b2, b3)))


@helper
def sads(layers, predicted):
    """satds by SAD."""
    inlined()
    samples, (p0, p1, p2, p3) = layers.samples, predicted
    upper = add(differences_of_pairs(p0, load_u8x64(samples, 0)), differences_of_pairs(p1, load_u8x64(samples, 64)))
    lower = add(differences_of_pairs(p2, load_u8x64(samples, 128)), differences_of_pairs(p3, load_u8x64(samples, 192)))
    return sums_of_pairs(add(upper, lower))


@helper
def octets_of(a, b):
    """sads_of_octets of two macroblocks by their layers."""
    inlined()
    upper = add(differences_of_octets(a[0], b[0]), differences_of_octets(a[1], b[1]))
    return add(upper, add(differences_of_octets(a[2], b[2]), differences_of_octets(a[3], b[3])))


@helper
def sads_of_octets(layers, predicted):
    """i32x16: lane 4 s is the SAD of strip s (16x4), columns 0 to 7, lane 4 s + 2 of columns 8 to 15; the others are 0."""
    inlined()
    return octets_of(predicted, stored_layers(layers.samples))


@helper
def fill_8x8_layers(source, at, stride, layers):
    """Luma of the 8x8 block at source[at], four times -> layers.transformed."""
    for r in range(4):
        row = at + r * stride
        left, right = butterflies(load_8x8_layers(source, row, row, row, row, stride))
        store(layers.transformed, 64 * r, left)
        store(layers.transformed, 64 * r + 32, right)


@helper
def satds_8x8(layers, samples, a, b, c, d, stride, out):
    """SATDs of an 8x8 block (fill_8x8_layers) against those at samples[a], [b], [c], [d] -> elements 0, 4, 8, 12 of out.

    out: int32[16], of which the others are changed too.
    """
    s, t, u = stride, 2 * stride, 3 * stride
    total = satds(layers, (
        load_8x8_layers(samples, a, b, c, d, stride), load_8x8_layers(samples, a + s, b + s, c + s, d + s, stride),
        load_8x8_layers(samples, a + t, b + t, c + t, d + t, stride),
        load_8x8_layers(samples, a + u, b + u, c + u, d + u, stride),
    ))  # fmt: skip
    total = add(total, _swap_1(total, total))
    store(out, 0, add(total, _swap_2(total, total)))
