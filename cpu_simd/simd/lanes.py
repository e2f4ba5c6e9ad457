"""SIMD operations across lanes: sums, minima, butterflies, shuffles; integers as bit masks of lanes."""

from ...jit.intrinsics import intrinsic, ir, types
from .vector import (
    Vec,
    _abs,
    _address,
    _constant,
    _llvm,
    _load,
    _mask,
    _splat,
    _suffix,
    u8x32,
    u16x16,
)


def _butterfly(builder, x, distance):
    """Lanes a, b at a distance become a + b, a - b (distance 1 or 2, within groups of four)."""
    count = x.type.count
    swapped = builder.shuffle_vector(x, x, _mask([i ^ distance for i in range(count)]))
    signs = _constant(x.type, [-1 if i & distance else 1 for i in range(count)])
    return builder.add(swapped, builder.mul(x, signs))


@intrinsic
def hadamard_rows(typingctx, a):
    """The Hadamard transform of every group of four 16-bit lanes (order of coefficients: 0, 1, 2, 3 mixed)."""

    def codegen(context, builder, sig, args):
        return _butterfly(builder, _butterfly(builder, args[0], 1), 2)

    return a(a), codegen


@intrinsic
def dct_rows(typingctx, a):
    """The forward core transform of every group of four 16-bit lanes (its rows; the inverse's counterpart of 8.5.12)."""

    def codegen(context, builder, sig, args):
        x = args[0]

        def pick(v, order):
            return builder.shuffle_vector(v, v, _mask([i // 4 * 4 + order[i % 4] for i in range(a.lanes)]))

        def scale(v, factors):
            return builder.mul(v, _constant(v.type, [factors[i % 4] for i in range(a.lanes)]))

        u = builder.add(pick(x, (3, 2, 1, 0)), scale(x, (1, 1, -1, -1)))  # a + d, b + c, b - c, a - d
        return builder.add(scale(pick(u, (0, 3, 0, 3)), (1, 2, 1, 1)), scale(pick(u, (1, 2, 1, 2)), (1, 1, -1, -2)))

    return a(a), codegen


@intrinsic
def where_above(typingctx, a, limit, value):
    """value where a > limit (signed), else 0."""

    def codegen(context, builder, sig, args):
        above = builder.icmp_signed(">", args[0], args[1])
        return builder.select(above, args[2], _constant(args[2].type, [0] * a.lanes))

    return value(a, limit, value), codegen


@intrinsic
def sums_of_4(typingctx, a):
    """The sums of the four groups of four 16-bit lanes of a vector of 16, as four integers."""

    def codegen(context, builder, sig, args):
        x = args[0]
        wide = ir.VectorType(ir.IntType(32), 8)
        pairs = [builder.zext(builder.shuffle_vector(x, x, _mask(range(first, 16, 2))), wide) for first in (0, 1)]
        x = builder.add(pairs[0], pairs[1])
        x = builder.add(
            builder.shuffle_vector(x, x, _mask(range(0, 8, 2))), builder.shuffle_vector(x, x, _mask(range(1, 8, 2)))
        )
        values = [builder.zext(builder.extract_element(x, ir.Constant(ir.IntType(32), i)), ir.IntType(64)) for i in range(4)]
        return context.make_tuple(builder, sig.return_type, values)

    return types.UniTuple(types.int64, 4)(a), codegen


@intrinsic
def squares_of_pairs(typingctx, a):
    """a[0]^2 + a[1]^2, a[2]^2 + a[3]^2 ... of signed 16-bit lanes, in half as many 32-bit lanes (pmaddwd)."""

    def codegen(context, builder, sig, args):
        x = builder.sext(args[0], ir.VectorType(ir.IntType(32), a.lanes))
        x = builder.mul(x, x)
        even, odd = (builder.shuffle_vector(x, x, _mask(range(first, a.lanes, 2))) for first in (0, 1))
        return builder.add(even, odd)

    return Vec(32, a.lanes // 2)(a), codegen


@intrinsic
def sums_of_lanes(typingctx, a, b, c, d):
    """i32x16: the sums (below 65536) of every four unsigned 16-bit lanes of a, then of b, c and d, sixteen lanes each."""

    def codegen(context, builder, sig, args):
        def halve(x, y):
            even, odd = (builder.shuffle_vector(x, y, _mask(range(first, 32, 2))) for first in (0, 1))
            return builder.add(even, odd)

        total = halve(halve(args[0], args[1]), halve(args[2], args[3]))
        return builder.zext(total, sig.return_type.ir)

    return Vec(32, 16)(a, b, c, d), codegen


@intrinsic
def where_less(typingctx, a, b, x, y):
    """Lanes of x where a < b (signed), else those of y."""

    def codegen(context, builder, sig, args):
        return builder.select(builder.icmp_signed("<", args[0], args[1]), args[2], args[3])

    return x(a, b, x, y), codegen


@intrinsic
def where_bits(typingctx, bits, x, y):
    """Lanes of x where the lane's bit of an integer is set, else those of y."""

    def codegen(context, builder, sig, args):
        lanes = builder.bitcast(builder.trunc(args[0], ir.IntType(x.lanes)), ir.VectorType(ir.IntType(1), x.lanes))
        return builder.select(lanes, args[1], args[2])

    return x(types.int64, x, y), codegen


@intrinsic
def equal_lanes(typingctx, a, b):
    """Bit i of the result: whether lane i of a equals lane i of b."""

    def codegen(context, builder, sig, args):
        same = builder.icmp_unsigned("==", args[0], args[1])
        return builder.zext(builder.bitcast(same, ir.IntType(a.lanes)), ir.IntType(64))

    return types.int64(a, b), codegen


def make_shuffle(mask):
    """Makes an operation that picks lanes of a and b (n lanes each): lane i is lane mask[i] of a, or mask[i] - n of b."""

    @intrinsic
    def shuffle(typingctx, a, b):
        result = Vec(a.bits, len(mask))

        def codegen(context, builder, sig, args):
            return builder.shuffle_vector(args[0], args[1], _mask(mask))

        return result(a, b), codegen

    return shuffle


@intrinsic
def block_satd(typingctx, a):
    """Half the sum of absolute Hadamard coefficients of a 4x4 block in raster order, as an integer."""

    def codegen(context, builder, sig, args):
        x = args[0]
        for distance in (1, 2, 4):
            x = _butterfly(builder, x, distance)
        x = _abs(builder, x)  # |p + q| + |p - q| = 2 max(|p|, |q|): the last butterfly is a maximum
        p, q = (builder.shuffle_vector(x, x, _mask(range(first, first + 8))) for first in (0, 8))
        x = builder.select(builder.icmp_signed(">", p, q), p, q)
        total = _llvm(builder, "llvm.vector.reduce.add.v8i16", x.type.element, [x])
        return builder.zext(total, ir.IntType(64))

    return types.int64(a), codegen


@intrinsic
def sum_of_lanes(typingctx, a):
    """The sum of all lanes, wrapping, as an integer."""

    def codegen(context, builder, sig, args):
        total = _llvm(builder, f"llvm.vector.reduce.add.{_suffix(args[0])}", args[0].type.element, [args[0]])
        return total if a.bits == 64 else builder.zext(total, ir.IntType(64))

    return types.int64(a), codegen


@intrinsic
def smallest(typingctx, a):
    """The smallest lane, unsigned, as an integer."""

    def codegen(context, builder, sig, args):
        low = _llvm(builder, f"llvm.vector.reduce.umin.{_suffix(args[0])}", args[0].type.element, [args[0]])
        return builder.zext(low, ir.IntType(64))

    return types.int64(a), codegen


@intrinsic
def first_where(typingctx, a, value, rank):
    """The smallest lane of `rank` among the lanes where a == value."""

    def codegen(context, builder, sig, args):
        a_, value_, rank_ = args
        same = builder.icmp_unsigned("==", a_, _splat(builder, a_.type, value_))
        rank_ = builder.select(same, rank_, _constant(rank_.type, [-1] * rank_.type.count))
        low = _llvm(builder, f"llvm.vector.reduce.umin.{_suffix(rank_)}", rank_.type.element, [rank_])
        return builder.zext(low, ir.IntType(64))

    return types.int64(a, types.int64, rank), codegen


@intrinsic
def lane_numbers(typingctx):
    """u16x16: 0, 1, 2 ... 15."""

    def codegen(context, builder, sig, args):
        return _constant(u16x16.ir, range(16))

    return u16x16(), codegen


# --- integers as bit masks of lanes ------------------------------------------------------------------------------------
@intrinsic
def bit_length(typingctx, value):
    """The number of bits of a non-negative integer, 0 for 0 (int.bit_length)."""

    def codegen(context, builder, sig, args):
        zeros = _llvm(builder, "llvm.ctlz.i64", ir.IntType(64), [args[0], ir.Constant(ir.IntType(1), 0)])
        return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

    return types.int64(types.int64), codegen


@intrinsic
def bit_lengths(typingctx, a):
    """bit_length of each lane, none of which is negative."""

    def codegen(context, builder, sig, args):
        zeros = _llvm(builder, f"llvm.ctlz.{_suffix(args[0])}", a.ir, [args[0], ir.Constant(ir.IntType(1), 0)])
        return builder.sub(_constant(a.ir, [a.bits] * a.lanes), zeros)

    return a(a), codegen


@intrinsic
def nonzero_lanes(typingctx, array, offset):
    """Bit i of the result: whether element offset + i of an array is not 0; 16 elements."""

    def codegen(context, builder, sig, args):
        vector_type = ir.VectorType(ir.IntType(array.dtype.bitwidth), 16)
        lanes = _load(builder, _address(context, builder, sig.args[0], args[0], args[1], vector_type))
        different = builder.icmp_unsigned("!=", lanes, ir.Constant(vector_type, None))
        return builder.zext(builder.bitcast(different, ir.IntType(16)), ir.IntType(64))

    return types.int64(array, types.intp), codegen


@intrinsic
def zero_pairs(typingctx, array, offset):
    """Bit i of the result: whether elements offset + i and the next of a uint8 array are both 0; 32 pairs."""

    def codegen(context, builder, sig, args):
        first = _load(builder, _address(context, builder, sig.args[0], args[0], args[1], u8x32.ir))
        at = builder.add(args[1], ir.Constant(args[1].type, 1))
        second = _load(builder, _address(context, builder, sig.args[0], args[0], at, u8x32.ir))
        both = builder.icmp_unsigned("==", builder.or_(first, second), ir.Constant(u8x32.ir, None))
        return builder.zext(builder.bitcast(both, ir.IntType(32)), ir.IntType(64))

    return types.int64(array, types.intp), codegen


@intrinsic
def bit_count(typingctx, value):
    """The number of set bits of an integer (int.bit_count)."""

    def codegen(context, builder, sig, args):
        return _llvm(builder, "llvm.ctpop.i64", ir.IntType(64), [args[0]])

    return types.int64(types.int64), codegen
