"""SIMD operations for the SATDs of Intra_4x4 and Intra_8x8 modes: of the sixteen 4x4 blocks of a macroblock, of four modes.

Of 4x4 blocks, raster order, each has a lane: samples are tuples of vectors, one of the blocks' samples each, so that
transforms and predictions move nothing across lanes. Of an 8x8 block each 128 bits have a row of another mode's prediction.
"""
# Samples of 8 bits only: 64 samples a vector.

from ...jit.intrinsics import cgutils, intrinsic, ir, types
from .block_rows import u8x64
from .vector import _abs, _address, _constant, _load, _mask, _undefined, u8x16, u8x32, u16x16

# Order of the samples round a 4x4 block: L3 L3 L2 L1 L0 corner T0 .. T7 T7. Every directional mode picks from the three-tap
# filter at each of them and from the mean of each and the next (HALVED further).
EDGE_4x4 = 15
HALVED = 16
_L, _CORNER, _T = 4, 5, 6  # L[i] at _L - i, T[i] at _T + i


def _vertical_right(x, y):
    if 2 * x - y < -1:
        return _L + 2 - y
    return _CORNER + x - (y >> 1) + (HALVED if y % 2 == 0 else 0)


def _horizontal_down(x, y):
    if 2 * y - x < -1:
        return _T - 2 + x
    return (_L - y + (x >> 1) + HALVED) if x % 2 == 0 else _CORNER - y + (x >> 1)


def _horizontal_up(x, y):
    if x + 2 * y > 5:
        return HALVED  # mean of L3 and L3
    return _L - 1 - y - (x >> 1) + (HALVED if x % 2 == 0 else 0)


# 8.3.1.2.4 to 8.3.1.2.9: by Intra4x4PredMode, where each sample is picked
_DIRECTIONAL = {
    3: lambda x, y: _T + 1 + x + y,
    4: lambda x, y: _CORNER + x - y,
    5: _vertical_right,
    6: _horizontal_down,
    7: lambda x, y: _T + x + (y >> 1) + (HALVED if y % 2 == 0 else 1),
    8: _horizontal_up,
}


@intrinsic
def load_4_u8x16(typingctx, array, i0, i1, i2, i3):
    """Four groups of sixteen samples, from four offsets, as one u8x64."""

    def codegen(context, builder, sig, args):
        rows = [_load(builder, _address(context, builder, sig.args[0], args[0], i, u8x16.ir)) for i in args[1:]]
        upper, lower = (builder.shuffle_vector(rows[i], rows[i + 1], _mask(range(32))) for i in (0, 2))
        return builder.shuffle_vector(upper, lower, _mask(range(64)))

    return u8x64(array, *[types.intp] * 4), codegen


@intrinsic
def columns_of_blocks(typingctx, layer):
    """The four samples of a row of each block, u8x16 each, of a layer (block_rows.py)."""

    def codegen(context, builder, sig, args):
        picked = [builder.shuffle_vector(args[0], args[0], _mask(range(x, 64, 4))) for x in range(4)]
        return context.make_tuple(builder, sig.return_type, picked)

    return types.UniTuple(u8x16.numba, 4)(layer), codegen


@intrinsic
def left_of_blocks(typingctx, layer, before):
    """u8x16: the sample left of a layer's row of each block; before: the layer one sample to the left."""

    def codegen(context, builder, sig, args):
        return builder.shuffle_vector(args[0], args[1], _mask([4 * b - 1 if b % 4 else 64 + 4 * b for b in range(16)]))

    return u8x16(layer, before), codegen


def _stage(builder, x, distance):
    """A butterfly of the Hadamard transform of a list of vectors."""
    return [builder.sub(x[i ^ distance], x[i]) if i & distance else builder.add(x[i], x[i ^ distance]) for i in range(len(x))]


def _total(builder, values):
    total = values[0]
    for value in values[1:]:
        total = builder.add(total, value)
    return total


def _satd(builder, differences):
    """Half the sums of absolute Hadamard coefficients; the last butterfly is a maximum, see cost.strip_satd."""
    x = differences
    for distance in (1, 2, 4):
        x = _stage(builder, x, distance)
    x = [_abs(builder, value) for value in x]
    return _total(builder, [builder.select(builder.icmp_signed(">", a, b), a, b) for a, b in zip(x[:8], x[8:])])


def _plain_satds(builder, samples, edge, dc):
    """SATDs of modes 0, 1 and 2, whose coefficients are 0 but for a row, a column and one."""

    def times(value, factor):
        return builder.mul(value, _constant(value.type, [factor] * 16))

    def rest(values, predicted, others):
        left = [_abs(builder, builder.sub(value, p)) for value, p in zip(values, predicted)]
        return builder.lshr(_total(builder, [*left, *others]), _constant(dc.type, [1] * 16))

    x = samples
    for distance in (1, 2, 4, 8):
        x = _stage(builder, x, distance)
    size = [_abs(builder, value) for value in x]
    row, column = _total(builder, size[1:4]), _total(builder, [size[4], size[8], size[12]])
    inner = _total(builder, [size[i] for i in range(5, 16) if i % 4])
    above, beside = ([edge[i] for i in order] for order in (range(_T, _T + 4), range(_L, _L - 4, -1)))
    for distance in (1, 2):
        above, beside = _stage(builder, above, distance), _stage(builder, beside, distance)
    return [
        rest(x[:4], [times(value, 4) for value in above], [column, inner]),
        rest(x[::4], [times(value, 4) for value in beside], [row, inner]),
        rest(x[:1], [times(dc, 16)], [row, column, inner]),
    ]


@intrinsic
def mode_satds(typingctx, samples, edge, dc):
    """SATD of each Intra_4x4 mode: nine u16x16, of all blocks, in those whose samples for it are not there undefined.

    samples: their sixteen u8x16, raster order; edge: EDGE_4x4 u8x16; dc: u16x16, the prediction of mode 2.
    """

    def codegen(context, builder, sig, args):
        wide = u16x16.ir
        source = [builder.zext(v, wide) for v in cgutils.unpack_tuple(builder, args[0], 16)]
        edge = [builder.zext(v, wide) for v in cgutils.unpack_tuple(builder, args[1], EDGE_4x4)]
        sums = [builder.add(a, b) for a, b in zip(edge, edge[1:])]
        one, two = _constant(wide, [1] * 16), _constant(wide, [2] * 16)
        picked = {HALVED + i: builder.lshr(builder.add(value, one), one) for i, value in enumerate(sums)}
        for i in range(1, EDGE_4x4 - 1):
            picked[i] = builder.lshr(builder.add(builder.add(sums[i - 1], sums[i]), two), two)
        satds = _plain_satds(builder, source, edge, args[2])
        for index_of in _DIRECTIONAL.values():
            predicted = [picked[index_of(x, y)] for y in range(4) for x in range(4)]
            satds.append(_satd(builder, [builder.sub(a, b) for a, b in zip(source, predicted)]))
        return context.make_tuple(builder, sig.return_type, satds)

    return types.UniTuple(u16x16.numba, 9)(samples, edge, dc), codegen


@intrinsic
def load_4_u8x8(typingctx, array, offset, step):
    """u8x32: eight samples each from offset, offset + step, offset + 2 step, offset + 3 step; step 0: the same four times."""

    def codegen(context, builder, sig, args):
        word = ir.IntType(64)
        value, at = _undefined(ir.VectorType(word, 4)), args[1]
        for lane in range(4):
            word_value = _load(builder, _address(context, builder, sig.args[0], args[0], at, word))
            value = builder.insert_element(value, word_value, ir.Constant(ir.IntType(32), lane))
            at = builder.add(at, args[2])
        return builder.bitcast(value, u8x32.ir)

    return u8x32(array, types.intp, types.intp), codegen


@intrinsic
def sums_of_fours(typingctx, a):
    """The sums of every four lanes of sixteen of 32 bits, as four integers."""

    def codegen(context, builder, sig, args):
        x = args[0]
        while x.type.count > 4:
            even, odd = (builder.shuffle_vector(x, x, _mask(range(n, x.type.count, 2))) for n in (0, 1))
            x = builder.add(even, odd)
        lanes = [builder.extract_element(x, ir.Constant(ir.IntType(32), i)) for i in range(4)]
        return context.make_tuple(builder, sig.return_type, [builder.zext(lane, ir.IntType(64)) for lane in lanes])

    return types.UniTuple(types.int64, 4)(a), codegen


@intrinsic
def join_edge(typingctx, column, corner, above):
    """u8x32: the first byte of `column` twice, its others, the corner, the samples above, the last one again six times."""

    def codegen(context, builder, sig, args):
        i32 = ir.IntType(32)
        value = builder.insert_element(_undefined(ir.VectorType(ir.IntType(64), 2)), args[0], ir.Constant(i32, 0))
        value = builder.insert_element(value, args[1], ir.Constant(i32, 1))
        order = [0, *range(8), 8, *range(16, 32), *[31] * 6]
        return builder.shuffle_vector(builder.bitcast(value, u8x16.ir), args[2], _mask(order))

    return u8x32(types.int64, types.int64, above), codegen
