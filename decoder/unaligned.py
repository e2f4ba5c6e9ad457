"""Words of memory in kernels: 8 or 16 samples copied or added to, blocks turned, 32 bits of a stream, leading zeros.

Numba has none of these; LLVM has each as one or two instructions. Positions count bytes from the first of a flat uint8
array. With NUMBA_BOUNDSCHECK, and without compilation, the plain definitions run.
"""
# Samples of 8 bits only: eight or sixteen bytes at once.

import numpy as np

from ..jit.intrinsics import intrinsic, ir, setting, types
from ..jit.kernel import helper
from ..standard.sample_format import SAMPLE_MAX

_PLAIN = bool(setting("DISABLE_JIT") or setting("BOUNDSCHECK"))


def _address(context, builder, array_type, array, at):  # type: ignore[no-untyped-def]
    """Where array[at] lies."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [at])


def _copy(size):  # type: ignore[no-untyped-def]
    """An intrinsic that copies `size` bytes."""
    word = ir.VectorType(ir.IntType(8), size)

    def typing(typing_context, out, to, source, at):  # type: ignore[no-untyped-def]
        def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            to_address = _address(context, builder, signature.args[0], *arguments[:2])
            from_address = _address(context, builder, signature.args[2], *arguments[2:])
            value = builder.load(builder.bitcast(from_address, word.as_pointer()), align=1)
            builder.store(value, builder.bitcast(to_address, word.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.none(out, to, source, at), code

    return intrinsic(typing)


def _add(size):  # type: ignore[no-untyped-def]
    """An intrinsic that adds `size` numbers to as many samples."""
    word, wide = (ir.VectorType(ir.IntType(bits), size) for bits in (8, 16))

    def typing(typing_context, plane, to, rest, at):  # type: ignore[no-untyped-def]
        def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            address = _address(context, builder, signature.args[0], *arguments[:2])
            address = builder.bitcast(address, word.as_pointer())
            from_address = _address(context, builder, signature.args[2], *arguments[2:])
            value = builder.load(builder.bitcast(from_address, wide.as_pointer()), align=2)
            value = builder.add(value, builder.zext(builder.load(address, align=1), wide))
            for beyond, limit in (("<", 0), (">", 255)):
                bound = ir.Constant(wide, [limit] * size)
                value = builder.select(builder.icmp_signed(beyond, value, bound), bound, value)
            builder.store(builder.trunc(value, word), address, align=1)
            return context.get_dummy_value()

        return types.none(plane, to, rest, at), code

    return intrinsic(typing)


def _interleave(builder, rows):  # type: ignore[no-untyped-def]
    """Vectors of 8 or 16 bytes, the first half of them merged byte by byte with the second: vectors of 16."""
    half, size = len(rows) // 2, rows[0].type.count
    merged = []
    for start in range(0, size, 8):
        lanes = [lane for i in range(start, start + 8) for lane in (i, i + size)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 16), lanes)
        merged.append([builder.shuffle_vector(a, b, mask) for a, b in zip(rows[:half], rows[half:])])
    return [row for pair in zip(*merged) for row in pair] if len(merged) == 2 else merged[0]


def _turn(inwards):  # type: ignore[no-untyped-def]
    """An intrinsic that transposes 16 rows of 8 samples, 8 each of two planes, into 8 rows of 16, or back."""
    short, long = (ir.VectorType(ir.IntType(8), n) for n in (8, 16))
    i32, i64 = ir.IntType(32), ir.IntType(64)

    def typing(typing_context, lines, first, at, second, at2, stride):  # type: ignore[no-untyped-def]
        def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            lines, first, at, second, at2, stride = arguments
            types = signature.args
            rows = [(plane, builder.add(start, builder.mul(stride, i64(k))))
                      for plane, start in ((first, at), (second, at2)) for k in range(8)]  # fmt: skip
            outside = [builder.bitcast(_address(context, builder, types[1], *row), short.as_pointer()) for row in rows]
            inside = [
                builder.bitcast(_address(context, builder, types[0], lines, i64(16 * k)), long.as_pointer()) for k in range(8)
            ]
            rows = [builder.load(address, align=1) for address in (outside if inwards else inside)]
            for _ in range(4 if inwards else 3):
                rows = _interleave(builder, rows)
            if inwards:
                for row, address in zip(rows, inside):
                    builder.store(row, address, align=1)
            for k, address in () if inwards else enumerate(outside):
                lanes = ir.Constant(ir.VectorType(i32, 8), [*range(k % 2 * 8, k % 2 * 8 + 8)])
                builder.store(builder.shuffle_vector(rows[k // 2], rows[k // 2], lanes), address, align=1)
            return context.get_dummy_value()

        return types.none(lines, first, at, second, at2, stride), code

    return intrinsic(typing)


def _peek(typing_context, data, position):  # type: ignore[no-untyped-def]
    """An intrinsic that reads a big-endian word and shifts it."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        i64 = ir.IntType(64)
        at = builder.lshr(arguments[1], i64(3))
        address = builder.bitcast(_address(context, builder, signature.args[0], arguments[0], at), i64.as_pointer())
        word = builder.bswap(builder.load(address, align=1))
        return builder.lshr(builder.shl(word, builder.and_(arguments[1], i64(7))), i64(32))

    return types.int64(data, position), code


def _zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """An intrinsic that counts leading zeros of the low 32 bits."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        count = builder.ctlz(builder.trunc(arguments[0], ir.IntType(32)), ir.IntType(1)(0))
        return builder.zext(count, ir.IntType(64))

    return types.int64(word), code


if _PLAIN:

    @helper
    def copy8(out, to, source, at):
        """Eight samples from source[at] to out[to]."""
        for i in range(8):
            out[to + np.uint64(i)] = source[at + np.uint64(i)]

    @helper
    def copy16(out, to, source, at):
        """Sixteen samples from source[at] to out[to]."""
        for i in range(16):
            out[to + np.uint64(i)] = source[at + np.uint64(i)]

    @helper
    def add8(plane, to, rest, at):
        """8.5.14: eight residual samples from rest[at], int16, added to plane[to]; the sum is clipped."""
        for i in range(8):
            value = np.int64(plane[to + np.uint64(i)]) + rest[at + np.uint64(i)]
            plane[to + np.uint64(i)] = min(SAMPLE_MAX, max(0, value))

    @helper
    def add16(plane, to, rest, at):
        """The same for sixteen."""
        add8(plane, to, rest, at)
        add8(plane, to + np.uint64(8), rest, at + np.uint64(8))

    @helper
    def transpose_in(lines, first, at, second, at2, stride):
        """Eight rows of 8 samples at first[at] and eight at second[at2] into `lines`, as 8 rows of 16."""
        for i in range(64):
            y, x = np.uint64(i & 7), np.uint64(i >> 3)
            lines[np.uint64(16) * x + y] = first[at + y * stride + x]
            lines[np.uint64(16) * x + y + np.uint64(8)] = second[at2 + y * stride + x]

    @helper
    def transpose_out(lines, first, at, second, at2, stride):
        """The reverse of transpose_in."""
        for i in range(64):
            y, x = np.uint64(i & 7), np.uint64(i >> 3)
            first[at + y * stride + x] = lines[np.uint64(16) * x + y]
            second[at2 + y * stride + x] = lines[np.uint64(16) * x + y + np.uint64(8)]

    @helper
    def peek32(data, position):
        """The 32 bits at a bit position, as a non-negative int64."""
        word = 0
        for i in range(5):
            word = word << 8 | np.int64(data[(position >> 3) + i])
        return word >> 8 - (position & 7) & 0xFFFFFFFF

    @helper
    def leading_zeros32(word):
        """Leading zero bits of a 32-bit number in an int64; 32 for 0."""
        n = 32
        while word:
            word >>= 1
            n -= 1
        return n

else:
    transpose_in, transpose_out = _turn(True), _turn(False)
    add8, add16 = _add(8), _add(16)
    copy8, copy16, peek32, leading_zeros32 = _copy(8), _copy(16), intrinsic(_peek), intrinsic(_zeros)
