"""SIMD operations of the motion search: sums of absolute differences, minima with positions."""

from ...jit.intrinsics import intrinsic, ir, types
from .vector import (
    AVX2,
    Vec,
    _abs,
    _address,
    _constant,
    _llvm,
    _load,
    _mask,
    _splat,
    u8x16,
    u8x32,
    u16x16,
    u16x32,
    u64x4,
)


def _abs_diff_sum(builder, window, block, window_lane, block_lane):
    """The portable mpsadbw: lane i = sum over k of |window[lane + i + k] - block[block_lane + k]|."""
    wide = ir.VectorType(ir.IntType(16), 16)
    total = _constant(wide, [0] * 16)
    for k in range(4):
        # each half of the window has its own sixteen samples; lane 8 + i is in the upper half
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
    """Sixteen candidates by four vmpsadbw on two overlapping windows, eight samples apart."""
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
    """32 candidates by four vdbpsadbw; six groups of eight samples are arranged so that each 128-bit lane holds two.

    The instruction compares four bytes of the block with bytes 0-3, 1-4, 2-5 and 3-6 of eight bytes of the window, for two
    sets of eight bytes that its immediate selects by dwords: 0, 1 and 1, 2, or 1, 2 and 2, 3.
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
    """Plain LLVM, sample by sample: one source sample against the samples of all candidates at its position."""
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
    """u16x16: lane 4 i + k is lane i of u64x4 number k, which must be at most 65535."""

    def codegen(context, builder, sig, args):
        total = args[0]
        for k in range(1, 4):
            total = builder.or_(total, builder.shl(args[k], _constant(u64x4.ir, [16 * k] * 4)))
        return builder.bitcast(total, u16x16.ir)

    return u16x16(u64x4, u64x4, u64x4, u64x4), codegen


@intrinsic
def join_sums(typingctx, a, b):
    """i32x16: lanes 0, 2, 4, 6 are those of u64x4 a, lanes 8, 10, 12, 14 those of b, all below 2^31; the others are 0."""

    def codegen(context, builder, sig, args):
        words = ir.VectorType(ir.IntType(32), 8)
        return builder.shuffle_vector(*(builder.bitcast(x, words) for x in args), _mask(range(16)))

    return Vec(32, 16)(a, b), codegen


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
