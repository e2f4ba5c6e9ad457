"""SIMD operations of the motion search: sums of absolute differences, minima with positions."""
# Samples of 8 bits only: differences of bytes (mpsadbw, psadbw).

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


@intrinsic
def candidates(typingctx, wide):
    """Zeros in a vector with a lane for each candidate of a step: u16x16 where `wide` is None, else u16x32."""
    vec = u16x16 if isinstance(wide, types.NoneType) else u16x32

    def codegen(context, builder, sig, args):
        return _constant(vec.ir, [0] * vec.lanes)

    return vec(wide), codegen


def _abs_diff_sum(builder, window, block, window_lane, block_lane):
    """The portable mpsadbw: lane i = sum over k of |window[lane + i + k] - block[block_lane + k]|."""
    wide = ir.VectorType(ir.IntType(16), 16)
    total = _constant(wide, [0] * 16)
    for k in range(4):
        # each half of the window has its own sixteen samples; lane 8 + i is in the upper half
        indices = [half * 16 + window_lane + i + k for half in range(2) for i in range(8)]
        w = builder.zext(builder.shuffle_vector(window, window, _mask(indices)), wide)
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


WINDOW = 128  # bytes of an arranged row, see arrange_row


def _windows_16(builder, at_reference):
    """Two overlapping windows, eight samples apart, of a row of sixteen candidates."""
    thirds = [_load(builder, at_reference(8 * i, u8x16.ir)) for i in range(3)]
    return [builder.shuffle_vector(thirds[i], thirds[i + 1], _mask(range(32))) for i in range(2)]


def _sads_16(builder, at_source, windows):
    """Sixteen candidates by four vmpsadbw."""
    block = _load(builder, at_source(0, u8x16.ir))
    block = builder.shuffle_vector(block, block, _mask([*range(16), *range(16)]))
    sads = []
    for column in range(4):
        control = (column & 1) << 2 | column
        imm = ir.Constant(ir.IntType(8), control | control << 3)
        sads.append(_llvm(builder, "llvm.x86.avx2.mpsadbw", u16x16.ir, [windows[column >> 1], block, imm]))
    return sads


def _windows_32(builder, at_reference):
    """Windows of 32 candidates: six groups of eight samples, arranged so that each 128-bit lane holds two."""
    groups = ir.VectorType(ir.IntType(64), 4)
    low, high = (_load(builder, at_reference(offset, groups)) for offset in (0, 16))  # groups 0-3 and 2-5
    indices = ((0, 1, 1, 2, 2, 3, 3, 6), (1, 2, 2, 3, 3, 6, 6, 7))
    return [builder.bitcast(builder.shuffle_vector(low, high, _mask(p)), _BYTES_64.ir) for p in indices]


def _sads_32(builder, at_source, windows):
    """32 candidates by four vdbpsadbw.

    The instruction compares four bytes of the block with bytes 0-3, 1-4, 2-5 and 3-6 of eight bytes of the window, for two
    sets of eight bytes that its immediate selects by dwords: 0, 1 and 1, 2, or 1, 2 and 2, 3.
    """
    words = ir.VectorType(ir.IntType(32), 16)
    sads = []
    for column in range(4):
        block = _splat(builder, words, _load(builder, at_source(4 * column, words.element)))
        imm = ir.Constant(ir.IntType(32), (0b10010100, 0b11101001)[column & 1])
        args = [builder.bitcast(block, _BYTES_64.ir), windows[column >> 1], imm]
        sads.append(_llvm(builder, "llvm.x86.avx512.dbpsadbw.512", u16x32.ir, args))
    return sads


_BYTES_64, _ROW_32 = Vec(8, 64), Vec(64, 4)
_WINDOWS = {16: (_windows_16, _sads_16, u8x32), 32: (_windows_32, _sads_32, _BYTES_64)}  # by candidates


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


def _place(context, builder, sig, args, n):
    """A function that makes the address of an element of array number n, whose offset follows it, by more elements."""

    def address(more, pointee):
        offset = builder.add(args[n + 1], ir.Constant(args[n + 1].type, more))
        return _address(context, builder, sig.args[n], args[n], offset, pointee)

    return address


def _make_row_sads(native, arranged):
    @intrinsic
    def row_sads(typingctx, source, source_at, reference, reference_at, like):
        def codegen(context, builder, sig, args):
            at_source, at_reference = (_place(context, builder, sig, args, n) for n in (0, 2))
            if not native:
                sads = _row_sads_portable(builder, at_source, at_reference, like.lanes)
            else:
                make, compare, vec = _WINDOWS[like.lanes]
                windows = (
                    make(builder, at_reference)
                    if not arranged
                    else [_load(builder, at_reference(n * vec.lanes, vec.ir)) for n in range(2)]
                )
                sads = compare(builder, at_source, windows)
            return context.make_tuple(builder, sig.return_type, sads)

        return types.UniTuple(like, 4)(source, types.intp, reference, types.intp, like), codegen

    row_sads.__doc__ = """Sums of absolute differences of a row of four times four samples at candidates side by side.

    As many candidates as `like` (a vector of 16 or 32) has lanes; lane i of result c compares source samples 4 c ...
    4 c + 3 with the reference's i further on.
    """ + ("reference, reference_at: a row of arrange_row." if arranged else "")
    return row_sads


row_sads, arranged_sads = _make_row_sads(AVX2, False), _make_row_sads(AVX2, True)
row_sads_portable = _make_row_sads(False, False)  # also of arranged rows


def _make_arrange_row(native):
    @intrinsic
    def arrange_row(typingctx, reference, reference_at, windows, to, like):
        def codegen(context, builder, sig, args):
            at_reference, at_window = (_place(context, builder, sig, args, n) for n in (0, 2))
            if native:
                numbered = enumerate(_WINDOWS[like.lanes][0](builder, at_reference))
                vectors = [(n * loaded.type.count, loaded) for n, loaded in numbered]
            else:
                loads = (0, ir.VectorType(ir.IntType(8), like.lanes)), (like.lanes - 1, u8x16.ir)
                vectors = [(offset, _load(builder, at_reference(offset, vector_type))) for offset, vector_type in loads]
            for offset, loaded in vectors:
                builder.store(loaded, at_window(offset, loaded.type)).align = 1
            return context.get_dummy_value()

        return types.void(reference, types.intp, windows, types.intp, like), codegen

    arrange_row.__doc__ = """Stores the samples of a row of candidates as arranged_sads takes them: WINDOW bytes."""
    return arrange_row


arrange_row, arrange_row_portable = _make_arrange_row(AVX2), _make_arrange_row(False)


@intrinsic
def arrange_two_rows(typingctx, reference, at, below, windows, to, like):
    """arrange_row for sixteen candidates of the row at reference[at], then sixteen of that `below` further, of 32 lanes.

    With 16 lanes the first ones alone.
    """

    def codegen(context, builder, sig, args):
        at_window = _place(context, builder, sig, args, 3)
        rows = [
            _address(context, builder, sig.args[0], args[0], at, _ROW_32.ir)
            for at in (args[1], builder.add(args[1], args[2]))
        ]
        rows = [_load(builder, row) for row in rows]
        for n, indices in enumerate(((0, 1, 1, 2), (1, 2, 2, 3))):
            both = [*indices, *(4 + p for p in indices)][: like.lanes // 4]
            both_rows = builder.shuffle_vector(*rows, _mask(both))
            builder.store(both_rows, at_window(8 * n * both_rows.type.count, both_rows.type)).align = 1
        return context.get_dummy_value()

    return types.void(reference, types.intp, types.intp, windows, types.intp, like), codegen


@intrinsic
def window_of(typingctx, reference, at, like):
    """Samples from reference[at] on as quarter_sads takes them for as many candidates as `like` has lanes; at most 64."""

    def codegen(context, builder, sig, args):
        at_reference = _place(context, builder, sig, args, 0)
        if like.lanes == 16:
            return _windows_16(builder, at_reference)[0]
        groups = _load(builder, at_reference(0, ir.VectorType(ir.IntType(64), 8)))
        indices = (0, 1, 1, 2, 2, 3, 3, 4)
        return builder.bitcast(builder.shuffle_vector(groups, groups, _mask(indices)), _BYTES_64.ir)

    return (u8x32 if like.lanes == 16 else _BYTES_64)(reference, types.intp, like), codegen


@intrinsic
def quarter_sads(typingctx, source, at, window, like):
    """The first result of row_sads, of four samples, by a window of window_of."""

    def codegen(context, builder, sig, args):
        at_source, window = _place(context, builder, sig, args, 0), args[2]
        words = ir.VectorType(ir.IntType(32), like.lanes // 2)
        block = builder.bitcast(_splat(builder, words, _load(builder, at_source(0, words.element))), window.type)
        if like.lanes == 32:
            args = [block, window, ir.Constant(ir.IntType(32), 0b10010100)]
            return _llvm(builder, "llvm.x86.avx512.dbpsadbw.512", u16x32.ir, args)
        if not AVX2:
            return _abs_diff_sum(builder, window, block, 0, 0)
        return _llvm(builder, "llvm.x86.avx2.mpsadbw", u16x16.ir, [window, block, ir.Constant(ir.IntType(8), 0)])

    return like(source, types.intp, window, like), codegen


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
def where_below(typingctx, a, b, x, y):
    """Lanes of x where a < b, unsigned, else those of y."""

    def codegen(context, builder, sig, args):
        return builder.select(builder.icmp_unsigned("<", args[0], args[1]), args[2], args[3])

    return x(a, b, x, y), codegen
