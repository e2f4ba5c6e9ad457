"""SIMD vectors for kernels: LLVM vectors as Numba types, and the operations on them that video coding needs.

A value of type u8x16, u16x16 ... lives in a vector register inside a kernel. The operations are functions of their
operands' types: `add(a, b)` adds lane by lane whatever the lanes are. Lanes wrap as in C. Everything is plain LLVM and
runs on any processor, except that `mpsadbw` and the like become one instruction where AVX2 is present. Offsets of loads
and stores count elements from the first one of the array, whatever its number of dimensions; no bounds are checked.

H264LITE_SIMD=portable makes the searches take the portable path (PORTABLE below), avx2 keeps them from AVX-512.
NUMBA_CPU_NAME=generic compiles everything for the least processor of its kind, without any of them. The results are the
same.
"""

import os

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic, models, register_model


class Vec(types.Type):
    """A vector of `lanes` integers of `bits` bits; signedness belongs to the operations, not to the type."""

    def __init__(self, bits, lanes):
        self.bits = bits
        self.lanes = lanes
        super().__init__(name=f"Vec(i{bits}x{lanes})")

    @property
    def ir(self):
        return ir.VectorType(ir.IntType(self.bits), self.lanes)


@register_model(Vec)
class VecModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, fe_type.ir)


u8x8, u8x16, u8x32 = Vec(8, 8), Vec(8, 16), Vec(8, 32)
u16x8, u16x16, u16x32 = Vec(16, 8), Vec(16, 16), Vec(16, 32)
i32x8 = Vec(32, 8)
u64x4 = Vec(64, 4)


def host_has(feature: str) -> bool:
    """Whether kernels may use an LLVM feature, such as "avx2": Numba compiles for this processor, or for what it is told."""
    told = getattr(config, "CPU_FEATURES", None)
    if told is not None:
        return f"+{feature}" in told.split(",")
    try:
        return bool(llvm.get_host_cpu_features().get(feature, False))
    except RuntimeError:
        return False


AVX2 = host_has("avx2")
AVX512 = AVX2 and host_has("avx512bw") and host_has("avx512vl")
PORTABLE, NATIVE, WIDE = 0, 1, 2  # plain LLVM; AVX2; AVX-512
_LEVELS = {"portable": PORTABLE, "avx2": NATIVE, "avx512": WIDE}
_FORCED = os.environ.get("H264LITE_SIMD", "")
if _FORCED and _FORCED not in _LEVELS:
    raise ValueError(f"H264LITE_SIMD={_FORCED}: use portable, avx2 or avx512")
SIMD_LEVEL = min(_LEVELS[_FORCED or "avx512"], AVX2 + AVX512)


# --- building blocks of the intrinsics -------------------------------------------------------------------------------
def _address(context, builder, array_type, array, offset, vec_ir):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), vec_ir.as_pointer())


def _load(builder, address):
    value = builder.load(address)
    value.align = 1
    return value


def _constant(vec_ir, values):
    return ir.Constant(vec_ir, list(values))


def _mask(indices):
    return ir.Constant(ir.VectorType(ir.IntType(32), len(indices)), list(indices))


def _undefined(vec_ir):
    return ir.Constant(vec_ir, ir.Undefined)


def _llvm(builder, name, result, args):
    fnty = ir.FunctionType(result, [a.type for a in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, fnty, name), args)


def _splat(builder, vec_ir, scalar):
    value = scalar
    if value.type.width > vec_ir.element.width:
        value = builder.trunc(value, vec_ir.element)
    one = builder.insert_element(_undefined(vec_ir), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, _undefined(vec_ir), _mask([0] * vec_ir.count))


def _umin(builder, a, b):
    return builder.select(builder.icmp_unsigned("<", a, b), a, b)


# --- loads, stores, constants ----------------------------------------------------------------------------------------
def _make_load(vec):
    @intrinsic
    def load(typingctx, array, offset):
        def codegen(context, builder, sig, args):
            return _load(builder, _address(context, builder, sig.args[0], args[0], args[1], vec.ir))

        return vec(array, types.intp), codegen

    return load


load_u8x8, load_u8x16, load_u8x32 = _make_load(u8x8), _make_load(u8x16), _make_load(u8x32)
load_u16x8, load_u16x16 = _make_load(u16x8), _make_load(u16x16)


@intrinsic
def store(typingctx, array, offset, value):
    """Store all lanes at array[offset...]."""

    def codegen(context, builder, sig, args):
        builder.store(args[2], _address(context, builder, sig.args[0], args[0], args[1], sig.args[2].ir)).align = 1
        return context.get_dummy_value()

    return types.void(array, types.intp, value), codegen


@intrinsic
def load_4_u8x4(typingctx, array, i0, i1, i2, i3):
    """Four groups of four samples, from four offsets, as one u8x16."""

    def codegen(context, builder, sig, args):
        word = ir.IntType(32)
        value = _undefined(ir.VectorType(word, 4))
        for lane in range(4):
            part = _load(builder, _address(context, builder, sig.args[0], args[0], args[1 + lane], word))
            value = builder.insert_element(value, part, ir.Constant(word, lane))
        return builder.bitcast(value, u8x16.ir)

    return u8x16(array, types.intp, types.intp, types.intp, types.intp), codegen


@intrinsic
def load_2_u8x8(typingctx, array, i0, i1):
    """Two groups of eight samples, from two offsets, as one u8x16."""

    def codegen(context, builder, sig, args):
        a, b = (_load(builder, _address(context, builder, sig.args[0], args[0], i, u8x8.ir)) for i in args[1:])
        return builder.shuffle_vector(a, b, _mask(range(16)))

    return u8x16(array, types.intp, types.intp), codegen


@intrinsic
def load_2_u8x16(typingctx, array, i0, i1):
    """Two groups of sixteen samples, from two offsets, as one u8x32."""

    def codegen(context, builder, sig, args):
        a, b = (_load(builder, _address(context, builder, sig.args[0], args[0], i, u8x16.ir)) for i in args[1:])
        return builder.shuffle_vector(a, b, _mask(range(32)))

    return u8x32(array, types.intp, types.intp), codegen


@intrinsic
def load_overlapping(typingctx, array, offset):
    """u8x32: samples offset..offset+15 and, in the upper half, offset+8..offset+23: what mpsadbw wants."""

    def codegen(context, builder, sig, args):
        later = builder.add(args[1], ir.Constant(args[1].type, 8))
        a, b = (
            _load(builder, _address(context, builder, sig.args[0], args[0], i, u8x16.ir)) for i in (args[1], later)
        )
        return builder.shuffle_vector(a, b, _mask(range(32)))

    return u8x32(array, types.intp), codegen


@intrinsic
def load_twice(typingctx, array, offset):
    """u8x32: sixteen samples, in both halves."""

    def codegen(context, builder, sig, args):
        a = _load(builder, _address(context, builder, sig.args[0], args[0], args[1], u8x16.ir))
        return builder.shuffle_vector(a, a, _mask([*range(16), *range(16)]))

    return u8x32(array, types.intp), codegen


def _make_splat(vec):
    @intrinsic
    def splat(typingctx, value):
        def codegen(context, builder, sig, args):
            return _splat(builder, vec.ir, args[0])

        return vec(types.int64), codegen

    return splat


splat_u8x16 = _make_splat(u8x16)
splat_u16x8, splat_u16x16, splat_u16x32 = _make_splat(u16x8), _make_splat(u16x16), _make_splat(u16x32)
splat_i32x8 = _make_splat(i32x8)


@intrinsic
def load_like(typingctx, like, array, offset):
    """A vector of the type of `like`."""

    def codegen(context, builder, sig, args):
        return _load(builder, _address(context, builder, sig.args[1], args[1], args[2], like.ir))

    return like(like, array, types.intp), codegen


@intrinsic
def splat_like(typingctx, like, value):
    """A vector of the type of `like` with the same integer in all lanes."""

    def codegen(context, builder, sig, args):
        return _splat(builder, like.ir, args[1])

    return like(like, types.int64), codegen


@intrinsic
def lanes_of(typingctx, like):
    """How many lanes the type of `like` has."""

    def codegen(context, builder, sig, args):
        return ir.Constant(ir.IntType(64), like.lanes)

    return types.int64(like), codegen


@intrinsic
def lane_numbers_like(typingctx, like):
    """0, 1, 2 ... in the lanes of the type of `like`."""

    def codegen(context, builder, sig, args):
        return _constant(like.ir, range(like.lanes))

    return like(like), codegen


# --- lane by lane ----------------------------------------------------------------------------------------------------
def _make_binary(emit, doc):
    @intrinsic
    def operation(typingctx, a, b):
        def codegen(context, builder, sig, args):
            return emit(builder, args[0], args[1])

        return a(a, b), codegen

    operation.__doc__ = doc
    return operation


def _suffix(value):
    return f"v{value.type.count}i{value.type.element.width}"


add = _make_binary(lambda b, x, y: b.add(x, y), "x + y, wrapping")
sub = _make_binary(lambda b, x, y: b.sub(x, y), "x - y, wrapping")
mul = _make_binary(lambda b, x, y: b.mul(x, y), "x * y, the low half")
bit_or = _make_binary(lambda b, x, y: b.or_(x, y), "x | y")
min_u = _make_binary(_umin, "the smaller one, unsigned")
max_s = _make_binary(lambda b, x, y: b.select(b.icmp_signed(">", x, y), x, y), "the larger one, signed")
add_sat_u = _make_binary(
    lambda b, x, y: _llvm(b, f"llvm.uadd.sat.{_suffix(x)}", x.type, [x, y]), "x + y, unsigned, saturating"
)


def _average(builder, x, y):
    wide = ir.VectorType(ir.IntType(16), x.type.count)
    total = builder.add(builder.zext(x, wide), builder.zext(y, wide))
    total = builder.add(total, _constant(wide, [1] * wide.count))
    return builder.trunc(builder.lshr(total, _constant(wide, [1] * wide.count)), x.type)


average = _make_binary(_average, "(x + y + 1) >> 1 of u8 lanes")


@intrinsic(prefer_literal=True)
def shift_left(typingctx, a, count):
    def codegen(context, builder, sig, args):
        return builder.shl(args[0], _constant(a.ir, [count.literal_value] * a.lanes))

    return a(a, count), codegen


@intrinsic(prefer_literal=True)
def times(typingctx, a, factor):
    """x * literal, the low half."""

    def codegen(context, builder, sig, args):
        return builder.mul(args[0], _constant(a.ir, [factor.literal_value] * a.lanes))

    return a(a, factor), codegen


@intrinsic(prefer_literal=True)
def plus(typingctx, a, summand):
    """x + literal, wrapping."""

    def codegen(context, builder, sig, args):
        return builder.add(args[0], _constant(a.ir, [summand.literal_value] * a.lanes))

    return a(a, summand), codegen


@intrinsic(prefer_literal=True)
def shift_right_s(typingctx, a, count):
    """Arithmetic shift."""

    def codegen(context, builder, sig, args):
        return builder.ashr(args[0], _constant(a.ir, [count.literal_value] * a.lanes))

    return a(a, count), codegen


def _abs(builder, x):
    zero = _constant(x.type, [0] * x.type.count)
    return builder.select(builder.icmp_signed("<", x, zero), builder.sub(zero, x), x)


@intrinsic
def absolute(typingctx, a):
    """|x| of signed lanes."""

    def codegen(context, builder, sig, args):
        return _abs(builder, args[0])

    return a(a), codegen


@intrinsic
def widen(typingctx, a):
    """u8 lanes to as many 16-bit lanes."""
    result = Vec(16, a.lanes)

    def codegen(context, builder, sig, args):
        return builder.zext(args[0], result.ir)

    return result(a), codegen


@intrinsic
def widen_signed(typingctx, a):
    """Signed lanes to as many lanes of twice the width."""
    result = Vec(2 * a.bits, a.lanes)

    def codegen(context, builder, sig, args):
        return builder.sext(args[0], result.ir)

    return result(a), codegen


@intrinsic
def clip_to_u8(typingctx, a):
    """Signed lanes clipped to 0..255, as u8 lanes (Clip1)."""
    result = Vec(8, a.lanes)

    def codegen(context, builder, sig, args):
        x = args[0]
        zero, top = (_constant(x.type, [v] * a.lanes) for v in (0, 255))
        x = builder.select(builder.icmp_signed(">", x, zero), x, zero)
        x = builder.select(builder.icmp_signed("<", x, top), x, top)
        return builder.trunc(x, result.ir)

    return result(a), codegen


# --- across lanes ----------------------------------------------------------------------------------------------------
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
        pairs = [
            builder.zext(builder.shuffle_vector(x, x, _mask(range(first, 16, 2))), wide) for first in (0, 1)
        ]
        x = builder.add(pairs[0], pairs[1])
        x = builder.add(
            builder.shuffle_vector(x, x, _mask(range(0, 8, 2))), builder.shuffle_vector(x, x, _mask(range(1, 8, 2)))
        )
        values = [
            builder.zext(builder.extract_element(x, ir.Constant(ir.IntType(32), i)), ir.IntType(64)) for i in range(4)
        ]
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


def make_shuffle(mask):
    """An operation that picks lanes: mask[i] < n is lane mask[i] of a, n and more are those of b (n lanes each)."""

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
def sum_abs_diff(typingctx, a, b):
    """The sum of |x - y| of u8 lanes, as an integer (psadbw)."""

    def codegen(context, builder, sig, args):
        wide = ir.VectorType(ir.IntType(32), a.lanes)
        x, y = (builder.zext(v, wide) for v in args)
        total = _llvm(builder, f"llvm.vector.reduce.add.v{a.lanes}i32", wide.element, [_abs(builder, builder.sub(x, y))])
        return builder.zext(total, ir.IntType(64))

    return types.int64(a, a), codegen


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


# --- sums of absolute differences, minima with positions -------------------------------------------------------------
def _abs_diff_sum(builder, window, block, window_lane, block_lane):
    """The portable mpsadbw: lane i = sum over k of |window[lane + i + k] - block[block_lane + k]|."""
    wide = ir.VectorType(ir.IntType(16), 16)
    total = _constant(wide, [0] * 16)
    for k in range(4):
        # each half of the window holds its own sixteen samples; lane 8 + i is in the upper one
        places = [half * 16 + window_lane + i + k for half in range(2) for i in range(8)]
        w = builder.zext(builder.shuffle_vector(window, window, _mask(places)), wide)
        c = builder.zext(builder.shuffle_vector(block, block, _mask([block_lane + k] * 16)), wide)
        total = builder.add(total, _abs(builder, builder.sub(w, c)))
    return total


def _make_mpsadbw(native):
    @intrinsic(prefer_literal=True)
    def mpsadbw(typingctx, window, block, window_lane, block_lane):
        w, c = window_lane.literal_value, block_lane.literal_value

        def codegen(context, builder, sig, args):
            if not native:
                return _abs_diff_sum(builder, args[0], args[1], w, c)
            control = (w // 4) << 2 | c // 4
            imm = ir.Constant(ir.IntType(8), control | control << 3)
            return _llvm(builder, "llvm.x86.avx2.mpsadbw", u16x16.ir, [args[0], args[1], imm])

        return u16x16(u8x32, u8x32, window_lane, block_lane), codegen

    mpsadbw.__doc__ = """Sixteen sums of four absolute differences (see load_overlapping, load_twice).

    Lane i compares the window's samples window_lane + i ... + 3 (window_lane 0 or 4) with the block's samples
    block_lane ... + 3 (0, 4, 8 or 12).
    """
    return mpsadbw


mpsadbw = _make_mpsadbw(AVX2)


def _row_sads_16(builder, at_source, at_reference):
    """Two overlapping windows, eight samples apart, and four vmpsadbw."""
    block = _load(builder, at_source(0, u8x16.ir))
    block = builder.shuffle_vector(block, block, _mask([*range(16), *range(16)]))
    thirds = [_load(builder, at_reference(8 * i, u8x16.ir)) for i in range(3)]
    windows = [builder.shuffle_vector(thirds[i], thirds[i + 1], _mask(range(32))) for i in range(2)]
    sads = []
    for column in range(4):
        control = (column & 1) << 2 | column
        imm = ir.Constant(ir.IntType(8), control | control << 3)
        sads.append(_llvm(builder, "llvm.x86.avx2.mpsadbw", u16x16.ir, [windows[column >> 1], block, imm]))
    return sads


def _row_sads_32(builder, at_source, at_reference):
    """Six groups of eight samples spread so that each 128-bit lane holds two of them, and four vdbpsadbw.

    The instruction takes four bytes of the block twice against bytes 0-3, 1-4 and 2-5, 3-6 of eight bytes of the window,
    for two lots of eight that its immediate picks by dwords: 0, 1 and 1, 2 or 1, 2 and 2, 3.
    """
    bytes_, groups = ir.VectorType(ir.IntType(8), 64), ir.VectorType(ir.IntType(64), 4)
    words = ir.VectorType(ir.IntType(32), 16)
    low, high = (_load(builder, at_reference(offset, groups)) for offset in (0, 16))  # groups 0-3 and 2-5
    places = ((0, 1, 1, 2, 2, 3, 3, 6), (1, 2, 2, 3, 3, 6, 6, 7))
    windows = [builder.bitcast(builder.shuffle_vector(low, high, _mask(p)), bytes_) for p in places]
    sads = []
    for column in range(4):
        block = _splat(builder, words, _load(builder, at_source(4 * column, words.element)))
        imm = ir.Constant(ir.IntType(32), (0b10010100, 0b11101001)[column & 1])
        args = [builder.bitcast(block, bytes_), windows[column >> 1], imm]
        sads.append(_llvm(builder, "llvm.x86.avx512.dbpsadbw.512", u16x32.ir, args))
    return sads


def _row_sads_portable(builder, at_source, at_reference, lanes):
    """Sample by sample: the candidates' samples at one place against the same source sample."""
    wide, narrow = ir.VectorType(ir.IntType(16), lanes), ir.VectorType(ir.IntType(8), lanes)
    sads = []
    for column in range(4):
        total = _constant(wide, [0] * lanes)
        for k in range(4 * column, 4 * column + 4):
            c = builder.zext(_load(builder, at_source(k, narrow.element)), wide.element)
            w = builder.zext(_load(builder, at_reference(k, narrow)), wide)
            total = builder.add(total, _abs(builder, builder.sub(w, _splat(builder, wide, c))))
        sads.append(total)
    return sads


def _make_row_sads(native):
    @intrinsic
    def row_sads(typingctx, source, source_at, reference, reference_at, like):
        def codegen(context, builder, sig, args):
            def at(n):
                def address(more, kind):
                    offset = builder.add(args[n + 1], ir.Constant(args[n + 1].type, more))
                    return _address(context, builder, sig.args[n], args[n], offset, kind)

                return address

            if not native:
                sads = _row_sads_portable(builder, at(0), at(2), like.lanes)
            else:
                sads = (_row_sads_16 if like.lanes == 16 else _row_sads_32)(builder, at(0), at(2))
            return context.make_tuple(builder, sig.return_type, sads)

        return types.UniTuple(like, 4)(source, types.intp, reference, types.intp, like), codegen

    row_sads.__doc__ = """Sums of absolute differences of a row of four times four samples at candidates side by side.

    As many candidates as `like` (a vector of 16 or 32) has lanes; lane i of result c compares source samples 4 c ...
    4 c + 3 with the reference's i further on.
    """
    return row_sads


row_sads = _make_row_sads(AVX2)
row_sads_portable = _make_row_sads(False)


def _make_octet_sads(native):
    @intrinsic
    def octet_sads(typingctx, a, b):
        """Sums of |x - y| of every eight u8 lanes of u8x32, in four lanes of 64 bits (psadbw)."""

        def codegen(context, builder, sig, args):
            if native:
                return _llvm(builder, "llvm.x86.avx2.psad.bw", u64x4.ir, args)
            wide = ir.VectorType(ir.IntType(16), 32)
            x, y = (builder.zext(v, wide) for v in args)
            x = _abs(builder, builder.sub(x, y))
            while x.type.count > 4:
                even, odd = (builder.shuffle_vector(x, x, _mask(range(n, x.type.count, 2))) for n in (0, 1))
                x = builder.add(even, odd)
            return builder.zext(x, u64x4.ir)

        return u64x4(u8x32, u8x32), codegen

    return octet_sads


octet_sads = _make_octet_sads(AVX2)
octet_sads_portable = _make_octet_sads(False)


@intrinsic
def pack_sums(typingctx, a, b, c, d):
    """u16x16: lane 4 i + k is what lane i of u64x4 number k holds, at most 65535."""

    def codegen(context, builder, sig, args):
        total = args[0]
        for k in range(1, 4):
            total = builder.or_(total, builder.shl(args[k], _constant(u64x4.ir, [16 * k] * 4)))
        return builder.bitcast(total, u16x16.ir)

    return u16x16(u64x4, u64x4, u64x4, u64x4), codegen


@intrinsic
def keep_smallest(typingctx, best, position, k, value, index):
    """Where value < best[k] (vector number k, unsigned lanes): best[k] = value, position[k] = index."""

    def codegen(context, builder, sig, args):
        offset = builder.mul(args[2], ir.Constant(args[2].type, value.lanes))
        best_at = _address(context, builder, sig.args[0], args[0], offset, value.ir)
        position_at = _address(context, builder, sig.args[1], args[1], offset, value.ir)
        before = _load(builder, best_at)
        smaller = builder.icmp_unsigned("<", args[3], before)
        builder.store(builder.select(smaller, args[3], before), best_at).align = 1
        builder.store(builder.select(smaller, args[4], _load(builder, position_at)), position_at).align = 1
        return context.get_dummy_value()

    return types.void(best, position, types.intp, value, index), codegen


@intrinsic
def bit_length(typingctx, value):
    """The number of bits of a non-negative integer, 0 for 0 (int.bit_length)."""

    def codegen(context, builder, sig, args):
        zeros = _llvm(builder, "llvm.ctlz.i64", ir.IntType(64), [args[0], ir.Constant(ir.IntType(1), 0)])
        return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

    return types.int64(types.int64), codegen


@intrinsic
def nonzero_lanes(typingctx, array, offset):
    """Bit i of the result: whether element offset + i of an int16 array is not 0; 16 elements."""

    def codegen(context, builder, sig, args):
        lanes = _load(builder, _address(context, builder, sig.args[0], args[0], args[1], u16x16.ir))
        different = builder.icmp_unsigned("!=", lanes, ir.Constant(u16x16.ir, None))
        return builder.zext(builder.bitcast(different, ir.IntType(16)), ir.IntType(64))

    return types.int64(array, types.intp), codegen


@intrinsic
def bit_count(typingctx, value):
    """The number of ones of an integer (int.bit_count)."""

    def codegen(context, builder, sig, args):
        return _llvm(builder, "llvm.ctpop.i64", ir.IntType(64), [args[0]])

    return types.int64(types.int64), codegen
