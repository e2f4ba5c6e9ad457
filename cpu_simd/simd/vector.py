"""SIMD vectors for kernels: LLVM vectors as Numba types, with the lane-by-lane operations of video coding.

A value of type u8x16, u16x16 ... is in a vector register inside a kernel. Operations are generic: `add(a, b)` adds
lanes of any type. Lanes wrap as in C. All operations are plain LLVM and run on any processor, except that `mpsadbw` and
similar operations become one instruction with AVX2. Offsets of loads and stores count elements from the start of the array,
for any number of dimensions; bounds are not checked.

H264LITE_SIMD=portable selects the portable path (PORTABLE below) for the searches; avx2 excludes AVX-512.
NUMBA_CPU_NAME=generic compiles everything for the baseline processor of the architecture, without either. All results are
the same.
"""
# Samples of 8 bits only: u8 lanes are samples; a `load_u8...` is where a kernel takes them.

import errno
import os

import numpy as np

from ...jit.intrinsics import cgutils, intrinsic, ir, setting, types
from ...jit.kernel import kernel

CACHE_LINE = 64  # bytes


class Vec:
    """A type of vectors: Numba's `VecType`, made when a kernel is compiled. bits: of each of the `lanes` integers."""

    def __init__(self, bits, lanes):
        self.bits = bits
        self.lanes = lanes

    @property
    def ir(self):
        return ir.VectorType(ir.IntType(self.bits), self.lanes)

    @property
    def numba(self):
        from .vector_type import VecType

        return VecType(self.bits, self.lanes)

    def __call__(self, *arguments):
        """The signature of a function of these arguments, Numba's types or Vec, which returns such a vector."""
        return self.numba(*[argument.numba if isinstance(argument, Vec) else argument for argument in arguments])


u8x8, u8x16, u8x32 = Vec(8, 8), Vec(8, 16), Vec(8, 32)
u16x8, u16x16, u16x32 = Vec(16, 8), Vec(16, 16), Vec(16, 32)
i32x8 = Vec(32, 8)
u64x4 = Vec(64, 4)


def host_has(feature: str) -> bool:
    """Whether kernels may use an LLVM feature such as "avx2" of the target: Numba's configured CPU features or this CPU's."""
    told = setting("CPU_FEATURES")
    if told is not None:
        return f"+{feature}" in told.split(",")
    import llvmlite.binding as llvm

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
    # An OSError, as for files: the command line reports it in one line.
    raise OSError(errno.EINVAL, "use portable, avx2 or avx512", f"H264LITE_SIMD={_FORCED}")
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
load_u16x16 = _make_load(u16x16)


@intrinsic
def store(typingctx, array, offset, value):
    """Stores all lanes at array[offset...]."""

    def codegen(context, builder, sig, args):
        builder.store(args[2], _address(context, builder, sig.args[0], args[0], args[1], sig.args[2].ir)).align = 1
        return context.get_dummy_value()

    return types.void(array, types.intp, value), codegen


@intrinsic
def prefetch(typingctx, array, offset):
    """Asks for the cache line of array[offset], which is read soon."""

    def codegen(context, builder, sig, args):
        byte, word = ir.IntType(8), ir.IntType(32)
        address = _address(context, builder, sig.args[0], args[0], args[1], byte)
        given = [address, *(ir.Constant(word, value) for value in (0, 3, 1))]  # to read, into all caches, data
        _llvm(builder, "llvm.prefetch.p0i8", ir.VoidType(), given)
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def load_4_u8x4(typingctx, array, i0, i1, i2, i3):
    """Four groups of four samples, from four offsets, as one u8x16."""

    def codegen(context, builder, sig, args):
        word = ir.IntType(32)
        value = _undefined(ir.VectorType(word, 4))
        for lane in range(4):
            word_value = _load(builder, _address(context, builder, sig.args[0], args[0], args[1 + lane], word))
            value = builder.insert_element(value, word_value, ir.Constant(word, lane))
        return builder.bitcast(value, u8x16.ir)

    return u8x16(array, types.intp, types.intp, types.intp, types.intp), codegen


@intrinsic
def load_2_u8x16(typingctx, array, i0, i1):
    """Two groups of sixteen samples, from two offsets, as one u8x32."""

    def codegen(context, builder, sig, args):
        a, b = (_load(builder, _address(context, builder, sig.args[0], args[0], i, u8x16.ir)) for i in args[1:])
        return builder.shuffle_vector(a, b, _mask(range(32)))

    return u8x32(array, types.intp, types.intp), codegen


@intrinsic
def load_overlapping(typingctx, array, offset):
    """u8x32: samples offset..offset+15 and, in the upper half, offset+8..offset+23: the input of mpsadbw."""

    def codegen(context, builder, sig, args):
        later = builder.add(args[1], ir.Constant(args[1].type, 8))
        a, b = (_load(builder, _address(context, builder, sig.args[0], args[0], i, u8x16.ir)) for i in (args[1], later))
        return builder.shuffle_vector(a, b, _mask(range(32)))

    return u8x32(array, types.intp), codegen


@intrinsic
def load_twice(typingctx, array, offset):
    """u8x32: the same sixteen samples in both halves."""

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
splat_i32x8, splat_u64x4 = _make_splat(i32x8), _make_splat(u64x4)


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
    """The number of lanes of the type of `like`."""

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
    """x * literal, low half of the product."""

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
    """u8 lanes to the same number of 16-bit lanes, zero-extended."""
    result = Vec(16, a.lanes)

    def codegen(context, builder, sig, args):
        return builder.zext(args[0], result.ir)

    return result(a), codegen


@intrinsic
def widen_signed(typingctx, a):
    """Signed lanes to the same number of lanes of twice the width."""
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


@kernel
def aligned(size):
    """np.empty(size, np.uint8) from the start of a cache line on; `view` and `reshape` make others of it.

    A vector of 512 bits that does not begin at one touches two lines.
    """
    array = np.empty(size + CACHE_LINE, np.uint8)
    first = -array.ctypes.data % CACHE_LINE
    return array[first : first + size]
