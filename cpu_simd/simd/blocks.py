"""SIMD operations on 4x4 blocks: transforms inside a vector, scans, rows of blocks.

Two layouts of sixteen lanes occur: a "block", the samples of one 4x4 block in raster order, and a "row", one row of
four adjacent blocks. Transforms along rows work on both, transforms along columns on blocks.
"""
# Samples of 8 bits only: transposes of bytes.

from ...jit.intrinsics import cgutils, intrinsic, ir, types
from ...standard.tables import ZIGZAG_4x4
from .vector import (
    AVX2,
    SIMD_LEVEL,
    WIDE,
    Vec,
    _address,
    _constant,
    _llvm,
    _load,
    _make_binary,
    _make_load,
    _make_splat,
    _mask,
    _undefined,
    u8x8,
    u8x16,
    u16x8,
    u16x16,
)

i32x16 = Vec(32, 16)
load_i32x16, load_u16x8 = _make_load(i32x16), _make_load(u16x8)
splat_u8x8, splat_u8x16, splat_i32x16 = _make_splat(u8x8), _make_splat(u8x16), _make_splat(i32x16)
splat_u16x4 = _make_splat(Vec(16, 4))


# --- parts of vectors, several addresses -----------------------------------------------------------------------------
def _make_lanes(first, vec):
    @intrinsic
    def lanes(typingctx, a):
        def codegen(context, builder, sig, args):
            return builder.shuffle_vector(args[0], args[0], _mask(range(first, first + vec.lanes)))

        return vec(a), codegen

    return lanes


low_8, high_8 = _make_lanes(0, u8x8), _make_lanes(8, u8x8)
low_4, low_2 = _make_lanes(0, Vec(8, 4)), _make_lanes(0, Vec(8, 2))


@intrinsic
def join(typingctx, a, b):
    """The lanes of a, then those of b."""

    def codegen(context, builder, sig, args):
        return builder.shuffle_vector(args[0], args[1], _mask(range(2 * a.lanes)))

    return Vec(a.bits, 2 * a.lanes)(a, b), codegen


@intrinsic
def load_block(typingctx, array, offset):
    """A block of 16-bit values from an array of rows of sixteen: four lanes each from offset + 0, 16, 32, 48."""

    def codegen(context, builder, sig, args):
        word = ir.IntType(64)
        value = _undefined(ir.VectorType(word, 4))
        for row in range(4):
            at = builder.add(args[1], ir.Constant(args[1].type, 16 * row))
            word_value = _load(builder, _address(context, builder, sig.args[0], args[0], at, word))
            value = builder.insert_element(value, word_value, ir.Constant(ir.IntType(32), row))
        return builder.bitcast(value, u16x16.ir)

    return u16x16(array, types.intp), codegen


@intrinsic
def store_block(typingctx, array, offset, stride, value):
    """Stores sixteen samples as a 4x4 block: four at array[offset], and four in each next row, `stride` further."""

    def codegen(context, builder, sig, args):
        word = ir.IntType(32)
        words = builder.bitcast(args[3], ir.VectorType(word, 4))
        at = args[1]
        for row in range(4):
            word_value = builder.extract_element(words, ir.Constant(word, row))
            builder.store(word_value, _address(context, builder, sig.args[0], args[0], at, word)).align = 1
            at = builder.add(at, args[2])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), codegen


# --- lane by lane ----------------------------------------------------------------------------------------------------
@intrinsic
def narrow(typingctx, a):
    """The low half of every lane."""
    result = Vec(a.bits // 2, a.lanes)

    def codegen(context, builder, sig, args):
        return builder.trunc(args[0], result.ir)

    return result(a), codegen


@intrinsic
def narrow_saturated(typingctx, a):
    """Non-negative 32-bit lanes as 16-bit lanes, at most 32767."""
    result = Vec(16, a.lanes)

    def codegen(context, builder, sig, args):
        top = ir.Constant(args[0].type, [32767] * a.lanes)
        small = builder.icmp_signed("<", args[0], top)
        return builder.trunc(builder.select(small, args[0], top), result.ir)

    return result(a), codegen


@intrinsic
def multiply_wide(typingctx, a, b):
    """a * b of signed 16-bit lanes, in lanes of 32 bits (pmaddwd, in place of a slower multiplication of 32 bits)."""
    result = Vec(32, a.lanes)

    def codegen(context, builder, sig, args):
        if not AVX2 or (a.lanes == 16 and SIMD_LEVEL != WIDE):
            return builder.mul(*(builder.sext(v, result.ir) for v in args))
        x, y = (builder.zext(v, result.ir) for v in args)  # the second product of each pair is 0
        name = "llvm.x86.avx512.pmaddw.d.512" if a.lanes == 16 else "llvm.x86.avx2.pmadd.wd"
        pairs = ir.VectorType(ir.IntType(16), 2 * a.lanes)
        return _llvm(builder, name, result.ir, [builder.bitcast(v, pairs) for v in (x, y)])

    return result(a, b), codegen


@intrinsic
def multiply_high(typingctx, a, b):
    """The high half of a * b of unsigned 16-bit lanes."""

    def codegen(context, builder, sig, args):
        if AVX2 and a.lanes == 16:
            return _llvm(builder, "llvm.x86.avx2.pmulhu.w", a.ir, args)
        wide = ir.VectorType(ir.IntType(32), a.lanes)
        product = builder.mul(*(builder.zext(v, wide) for v in args))
        return builder.trunc(builder.lshr(product, _constant(wide, [16] * a.lanes)), a.ir)

    return a(a, b), codegen


@intrinsic
def shift_right(typingctx, a, count):
    """Arithmetic shift of 32-bit lanes by an integer."""

    def codegen(context, builder, sig, args):
        one = builder.insert_element(_undefined(a.ir), builder.trunc(args[1], ir.IntType(32)), ir.Constant(ir.IntType(32), 0))
        counts = builder.shuffle_vector(one, _undefined(a.ir), _mask([0] * a.lanes))
        return builder.ashr(args[0], counts)

    return a(a, types.int64), codegen


@intrinsic
def with_sign(typingctx, a, sign):
    """a where `sign` is not negative, else -a."""

    def codegen(context, builder, sig, args):
        signs = builder.ashr(args[1], _constant(a.ir, [a.bits - 1] * a.lanes))
        return builder.sub(builder.xor(args[0], signs), signs)

    return a(a, a), codegen


# --- transforms inside a vector --------------------------------------------------------------------------------------
def _picked(builder, x, indices, factors):
    """factors[i] * x[indices[i]] for every lane i."""
    picked = builder.shuffle_vector(x, x, _mask(indices))
    return builder.mul(picked, _constant(x.type, factors)) if set(factors) != {1} else picked


def _forward(builder, x, step):
    """The forward core transform of every group of four lanes `step` apart (within groups of 4 * step)."""
    rows = ((1, 1, 1, 1), (2, 1, -1, -2), (1, -1, -1, 1), (1, -2, 2, -1))
    index = [(i // step) % 4 for i in range(16)]
    base = [i - step * index[i] for i in range(16)]
    total = None
    for k in range(4):
        term = _picked(builder, x, [b + step * k for b in base], [rows[i][k] for i in index])
        total = term if total is None else builder.add(total, term)
    return total


def _inverse(builder, x, step):
    """8.5.12.2: the inverse transform of every group of four lanes `step` apart, without rounding."""
    index = [(i // step) % 4 for i in range(16)]
    base = [i - step * index[i] for i in range(16)]
    half = builder.ashr(x, _constant(x.type, [1] * 16))
    even = builder.add(
        _picked(builder, x, base, [1] * 16),
        _picked(builder, x, [b + 2 * step for b in base], [(1, -1, -1, 1)[i] for i in index]),
    )
    # factors of the second value: 1, 1/2, -1/2, -1; of the fourth value: 1/2, -1, 1, -1/2
    second = builder.shuffle_vector(x, half, _mask([b + step + (0, 16, 16, 0)[i] for b, i in zip(base, index)]))
    fourth = builder.shuffle_vector(x, half, _mask([b + 3 * step + (16, 0, 0, 16)[i] for b, i in zip(base, index)]))
    second = builder.mul(second, _constant(x.type, [(1, 1, -1, -1)[i] for i in index]))
    fourth = builder.mul(fourth, _constant(x.type, [(1, -1, 1, -1)[i] for i in index]))
    return builder.add(even, builder.add(second, fourth))


def _make_unary(emit, doc):
    @intrinsic
    def operation(typingctx, a):
        def codegen(context, builder, sig, args):
            return emit(builder, args[0])

        return a(a), codegen

    operation.__doc__ = doc
    return operation


forward_rows = _make_unary(lambda b, x: _forward(b, x, 1), "forward core transform along rows")
forward_columns = _make_unary(lambda b, x: _forward(b, x, 4), "forward core transform along columns")
inverse_rows = _make_unary(lambda b, x: _inverse(b, x, 1), "8.5.12.2 along rows")
inverse_columns = _make_unary(lambda b, x: _inverse(b, x, 4), "8.5.12.2 along columns, without rounding")
zigzag = _make_unary(
    lambda b, x: b.shuffle_vector(x, x, _mask(ZIGZAG_4x4.tolist())), "8.5.6: a block from raster into zig-zag order"
)


@intrinsic
def transpose_8x8(typingctx, rows):
    """Transposes the 8x8 matrix in every eight lanes of eight vectors: a tuple of rows to a tuple of columns."""
    lanes = rows.dtype.lanes

    def codegen(context, builder, sig, args):
        vectors = cgutils.unpack_tuple(builder, args[0], 8)
        low, high = (_mask([i // 8 * 8 + first + i % 8 // 2 + lanes * (i % 2) for i in range(lanes)]) for first in (0, 4))
        for _ in range(3):  # each rotates the six bits of (row, column) by one
            vectors = [builder.shuffle_vector(vectors[i], vectors[i + 4], mask) for i in range(4) for mask in (low, high)]
        return context.make_tuple(builder, sig.return_type, vectors)

    return rows(rows), codegen


# --- across lanes ----------------------------------------------------------------------------------------------------
@intrinsic
def count_nonzero(typingctx, a):
    """The number of lanes that are not 0."""

    def codegen(context, builder, sig, args):
        mask = builder.icmp_signed("!=", args[0], _constant(args[0].type, [0] * a.lanes))
        bits = builder.bitcast(mask, ir.IntType(a.lanes))
        return builder.zext(_llvm(builder, f"llvm.ctpop.i{a.lanes}", bits.type, [bits]), ir.IntType(64))

    return types.int64(a), codegen


@intrinsic
def nonzero_groups(typingctx, a):
    """Bit i: whether any of the 16-bit lanes 4 i..4 i + 3 of a row is not 0."""

    def codegen(context, builder, sig, args):
        words = builder.bitcast(args[0], ir.VectorType(ir.IntType(64), a.lanes // 4))
        mask = builder.icmp_signed("!=", words, _constant(words.type, [0] * (a.lanes // 4)))
        return builder.zext(builder.bitcast(mask, ir.IntType(a.lanes // 4)), ir.IntType(64))

    return types.int64(a), codegen


# --- filters across edges --------------------------------------------------------------------------------------------
@intrinsic
def less(typingctx, a, b):
    """All bits of a lane set where a < b, signed."""

    def codegen(context, builder, sig, args):
        return builder.sext(builder.icmp_signed("<", args[0], args[1]), a.ir)

    return a(a, a), codegen


bit_and = _make_binary(lambda b, x, y: b.and_(x, y), "x & y")
min_s = _make_binary(lambda b, x, y: b.select(b.icmp_signed("<", x, y), x, y), "the smaller one, signed")


@intrinsic
def choose(typingctx, mask, a, b):
    """a where `mask` is all ones, b where it is 0."""

    def codegen(context, builder, sig, args):
        return builder.or_(builder.and_(args[0], args[1]), builder.and_(builder.not_(args[0]), args[2]))

    return a(a, a, a), codegen


def _make_spread(repeat):
    @intrinsic
    def spread(typingctx, a, b, c, d):
        def codegen(context, builder, sig, args):
            value = _undefined(u16x16.ir)
            for lane, x in enumerate(args):
                x = builder.trunc(x, ir.IntType(16))
                value = builder.insert_element(value, x, ir.Constant(ir.IntType(32), lane))
            return builder.shuffle_vector(value, value, _mask([lane // repeat % 4 for lane in range(16)]))

        return u16x16(*[types.int64] * 4), codegen

    return spread


spread_4, spread_2 = _make_spread(4), _make_spread(2)  # a a a a b b b b ...; a a b b c c d d a a ...


def _interleaved(builder, rows, times):
    """`times` perfect shuffles of 8 vectors of 16 lanes, taken as one sequence of 128."""
    low = _mask([i // 2 + 16 * (i % 2) for i in range(16)])
    high = _mask([8 + i // 2 + 16 * (i % 2) for i in range(16)])
    for _ in range(times):
        rows = [builder.shuffle_vector(rows[i], rows[i + 4], mask) for i in range(4) for mask in (low, high)]
    return rows


@intrinsic
def load_columns(typingctx, a, at_a, b, at_b, stride):
    """The eight columns (u8x16 each) of 16 rows of eight samples: eight rows from a[at_a], eight from b[at_b]."""

    def codegen(context, builder, sig, args):
        rows = []
        for array_type, array, at in ((sig.args[0], args[0], args[1]), (sig.args[2], args[2], args[3])):
            for _ in range(8):
                rows.append(_load(builder, _address(context, builder, array_type, array, at, u8x8.ir)))
                at = builder.add(at, args[4])
        pairs = [builder.shuffle_vector(rows[i], rows[i + 1], _mask(range(16))) for i in range(0, 16, 2)]
        return context.make_tuple(builder, sig.return_type, _interleaved(builder, pairs, 4))

    return types.UniTuple(u8x16.numba, 8)(a, types.intp, b, types.intp, types.intp), codegen


@intrinsic
def store_columns(typingctx, a, at_a, b, at_b, stride, columns):
    """Stores eight columns to the rows from which load_columns loads them."""

    def codegen(context, builder, sig, args):
        rows = _interleaved(builder, cgutils.unpack_tuple(builder, args[5], 8), 3)
        for i, (array_type, array, at) in enumerate(((sig.args[0], args[0], args[1]), (sig.args[2], args[2], args[3]))):
            for k in range(8):
                half = _mask(range(8 * (k % 2), 8 * (k % 2) + 8))
                row = builder.shuffle_vector(rows[4 * i + k // 2], rows[4 * i + k // 2], half)
                builder.store(row, _address(context, builder, array_type, array, at, u8x8.ir)).align = 1
                at = builder.add(at, args[4])
        return context.get_dummy_value()

    return types.void(a, types.intp, b, types.intp, types.intp, columns), codegen
