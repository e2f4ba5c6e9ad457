"""SIMD operations on one row of all sixteen 4x4 blocks of a macroblock: 64 samples, one vector of AVX-512.

A "layer" r is row r of the blocks: rows r, 4 + r, 8 + r, 12 + r of the macroblock, so that the sums over the four samples of
a block's row stay in neighbouring lanes, and blocks come out in raster order. Four blocks of 8x8 samples, with their 4x4
blocks in raster order, lie alike: each 128 bits hold rows r and 4 + r of one.
"""
# Samples of 8 bits only: 64 samples a vector, products of bytes.

from ...jit.intrinsics import intrinsic, ir, types
from .vector import (
    AVX2,
    SIMD_LEVEL,
    WIDE,
    Vec,
    _abs,
    _address,
    _constant,
    _llvm,
    _load,
    _make_load,
    _make_splat,
    _mask,
    _splat,
    u8x16,
    u16x32,
)

u8x64 = Vec(8, 64)
load_u8x64, load_u16x32 = _make_load(u8x64), _make_load(u16x32)
splat_u16x64 = _make_splat(Vec(16, 64))


def _some_lanes(builder, x, first, count):
    return builder.shuffle_vector(x, x, _mask(range(first, first + count)))


def _on_halves(builder, name, result, args):
    """An instruction of AVX2 on both halves of vectors of 512 bits; result: of a half."""
    halves = []
    for half in range(2):
        halves_of_args = [_some_lanes(builder, x, half * x.type.count // 2, x.type.count // 2) for x in args]
        halves.append(_llvm(builder, name, result, halves_of_args))
    return builder.shuffle_vector(*halves, _mask(range(2 * result.count)))


@intrinsic
def load_layer(typingctx, array, offset, stride):
    """u8x64: sixteen samples each from offset, offset + 4 stride, 8 stride, 12 stride."""

    def codegen(context, builder, sig, args):
        rows = []
        first = _address(context, builder, sig.args[0], args[0], args[1], ir.VectorType(ir.IntType(8), 1))
        first = builder.bitcast(first, ir.IntType(8).as_pointer())
        for k in range(4):
            step = builder.mul(args[2], ir.Constant(args[2].type, 4 * k))
            rows.append(_load(builder, builder.bitcast(builder.gep(first, [step]), u8x16.ir.as_pointer())))
        upper, lower = (builder.shuffle_vector(rows[i], rows[i + 1], _mask(range(32))) for i in (0, 2))
        return builder.shuffle_vector(upper, lower, _mask(range(64)))

    return u8x64(array, types.intp, types.intp), codegen


@intrinsic
def load_8x8_layers(typingctx, array, a, b, c, d, stride):
    """u8x64: of four 8x8 blocks at the offsets a, b, c, d: eight samples from there and eight four rows below."""

    def codegen(context, builder, sig, args):
        word, value = ir.IntType(64), ir.Constant(ir.VectorType(ir.IntType(64), 8), ir.Undefined)
        below = builder.mul(args[5], ir.Constant(args[5].type, 4))
        for lane in range(8):
            at = args[1 + lane // 2]
            if lane % 2:
                at = builder.add(at, below)
            word_value = _load(builder, _address(context, builder, sig.args[0], args[0], at, word))
            value = builder.insert_element(value, word_value, ir.Constant(ir.IntType(32), lane))
        return builder.bitcast(value, u8x64.ir)

    return u8x64(array, *[types.intp] * 5), codegen


def _pairs(builder, name, layer, factors, bits):
    """An instruction that sums neighbouring products, for vectors of 256 and 512 bits; bits: of the result's lanes."""
    count = layer.type.count // 2
    if layer.type.count * layer.type.element.width == 256:
        return _llvm(builder, f"llvm.x86.avx2.{name}", ir.VectorType(ir.IntType(bits), count), [layer, factors])
    if SIMD_LEVEL == WIDE:
        wide = {"pmadd.ub.sw": "pmaddubs.w.512", "pmadd.wd": "pmaddw.d.512"}[name]
        return _llvm(builder, f"llvm.x86.avx512.{wide}", ir.VectorType(ir.IntType(bits), count), [layer, factors])
    return _on_halves(builder, f"llvm.x86.avx2.{name}", ir.VectorType(ir.IntType(bits), count // 2), [layer, factors])


@intrinsic
def butterflies(typingctx, layer):
    """(left, right), 16 bits: a + b, a - b of the samples a, b, c, d of each row of a block; c + d, c - d.

    layer: u8x64, or half of one, u8x32.
    """
    half = Vec(16, layer.lanes // 2)

    def codegen(context, builder, sig, args):
        sides = []
        for first in (0, 2):
            a, b = ([i // 4 * 4 + first + k for i in range(0, layer.lanes, 2)] for k in (0, 1))
            if AVX2:
                both = builder.shuffle_vector(args[0], args[0], _mask([i for pair in zip(a, b) for i in pair]))
                signs = _constant(layer.ir, (1, 1, 1, -1) * (layer.lanes // 4))
                sides.append(_pairs(builder, "pmadd.ub.sw", both, signs, 16))
            else:
                x, y = (builder.zext(builder.shuffle_vector(args[0], args[0], _mask(k)), half.ir) for k in (a, b))
                sides.append(builder.add(x, builder.mul(y, _constant(half.ir, (1, -1) * (half.lanes // 2)))))
        return context.make_tuple(builder, sig.return_type, sides)

    return types.UniTuple(half.numba, 2)(layer), codegen


@intrinsic
def sums_of_pairs(typingctx, a):
    """The sums of neighbouring signed lanes of 16 bits (16 or 32), in lanes of 32 bits."""

    def codegen(context, builder, sig, args):
        result = sig.return_type.ir
        if AVX2:
            return _pairs(builder, "pmadd.wd", args[0], _constant(a.ir, [1] * a.lanes), 32)
        even, odd = (builder.shuffle_vector(args[0], args[0], _mask(range(n, a.lanes, 2))) for n in (0, 1))
        return builder.add(builder.sext(even, result), builder.sext(odd, result))

    return Vec(32, a.lanes // 2)(a), codegen


def _differences(builder, x, y):
    wide = ir.VectorType(ir.IntType(16), x.type.count)
    return _abs(builder, builder.sub(builder.zext(x, wide), builder.zext(y, wide)))


@intrinsic
def differences_of_pairs(typingctx, a, b):
    """u16x32: the sums of neighbouring lanes of |a - b|, u8x64."""

    def codegen(context, builder, sig, args):
        a, b = args
        both = builder.or_(
            _llvm(builder, "llvm.usub.sat.v64i8", a.type, [a, b]), _llvm(builder, "llvm.usub.sat.v64i8", a.type, [b, a])
        )
        ones = _constant(u8x64.ir, [1] * 64)
        if AVX2:
            return _pairs(builder, "pmadd.ub.sw", both, ones, 16)
        even, odd = (builder.shuffle_vector(both, both, _mask(range(n, 64, 2))) for n in (0, 1))
        return builder.add(builder.zext(even, u16x32.ir), builder.zext(odd, u16x32.ir))

    return u16x32(a, b), codegen


@intrinsic
def differences_of_octets(typingctx, a, b):
    """i32x16: lane 2 i is the sum of |a - b| over lanes 8 i ... 8 i + 7 of u8x64; the others are 0."""

    def codegen(context, builder, sig, args):
        words = ir.VectorType(ir.IntType(64), 8)
        if SIMD_LEVEL == WIDE:
            total = _llvm(builder, "llvm.x86.avx512.psad.bw.512", words, args)
        elif AVX2:
            total = _on_halves(builder, "llvm.x86.avx2.psad.bw", ir.VectorType(ir.IntType(64), 4), args)
        else:
            x = _differences(builder, *args)
            while x.type.count > 8:
                even, odd = (builder.shuffle_vector(x, x, _mask(range(n, x.type.count, 2))) for n in (0, 1))
                x = builder.add(even, odd)
            total = builder.zext(x, words)
        return builder.bitcast(total, sig.return_type.ir)

    return Vec(32, 16)(a, b), codegen


@intrinsic
def weighted_sum(typingctx, a, b, weight):
    """8.4.2.3.2 with logWD 5 and no offset: u8x64 a * (64 - weight) + b * weight; weight: -63..127, as bytes have them."""

    def codegen(context, builder, sig, args):
        a, b, weight = args
        byte, wide = ir.IntType(8), ir.VectorType(ir.IntType(16), 32)
        other = builder.sub(ir.Constant(weight.type, 64), weight)
        sums = []
        for first in (0, 8):  # of each 16 lanes, so that AVX2 and AVX-512 unpack and pack them
            lanes = [i // 8 * 16 + first + i % 8 for i in range(32)]
            if AVX2:
                pairs = builder.shuffle_vector(a, b, _mask([n + 64 * k for n in lanes for k in (0, 1)]))
                weights = _splat(
                    builder,
                    ir.VectorType(ir.IntType(16), 32),
                    builder.or_(
                        builder.and_(other, ir.Constant(other.type, 255)), builder.shl(weight, ir.Constant(weight.type, 8))
                    ),
                )
                weights = builder.bitcast(weights, u8x64.ir)
                total = _pairs(builder, "pmadd.ub.sw", pairs, weights, 16)
            else:
                x, y = (builder.zext(builder.shuffle_vector(v, v, _mask(lanes)), wide) for v in (a, b))
                x, y = (builder.mul(v, _splat(builder, wide, w)) for v, w in ((x, other), (y, weight)))
                total = builder.add(x, y)
            total = builder.ashr(builder.add(total, _constant(wide, [32] * 32)), _constant(wide, [6] * 32))
            zero, top = _constant(wide, [0] * 32), _constant(wide, [255] * 32)
            total = builder.select(builder.icmp_signed(">", total, zero), total, zero)
            total = builder.select(builder.icmp_signed("<", total, top), total, top)
            sums.append(builder.trunc(total, ir.VectorType(byte, 32)))
        order = [i // 16 * 8 + i % 8 + (32 if i % 16 >= 8 else 0) for i in range(64)]
        return builder.shuffle_vector(*sums, _mask(order))

    return u8x64(a, b, types.int64), codegen
