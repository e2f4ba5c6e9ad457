"""The entropy stage against a slow writer in plain Python; payload escaping; sizes of buffers."""

import numpy as np
import pytest
from h264lite.cpu_simd.cavlc import close_sink, open_sink, put_block, put_se, put_te, put_ue, residual_block_bits
from h264lite.cpu_simd.entropy import MACROBLOCK_BYTES, begin_slice, slice_buffer_bytes, write_slice_data
from h264lite.standard import bits as standard_bits
from h264lite.standard.cavlc import MAX_LEVEL, NC_CLASS
from h264lite.standard.macroblock import P_SKIP

from .. import naive_entropy

SEED = 20250


def text(buffer: np.ndarray, start: int, end: int) -> str:
    return "".join(format(byte, "08b") for byte in buffer[: -(-end // 8)])[start:end]


@pytest.mark.parametrize("first, most", [(0, 16), (1, 15), (0, 4)])
def test_blocks(first, most):
    rng = np.random.default_rng(SEED + most)
    sink, out = np.zeros(3, np.int64), np.zeros(1024, np.uint8)
    for i in range(3500):
        levels = np.zeros((1, 1, 16), np.int16)
        levels[0, 0, first : first + most] = naive_entropy.random_levels(rng, most, rng.random(), MAX_LEVEL)
        nc = -1 if most == 4 else int(rng.integers(0, 17))
        nc_class = 4 if most == 4 else int(NC_CLASS[nc])
        expected = naive_entropy.residual_block(levels[0, 0, first : first + most].tolist(), nc)
        position = i % 64
        open_sink(out, position, sink)
        put_block(out, sink, levels, 0, 0, first, most, nc_class)
        end = close_sink(out, sink)
        assert text(out, position, end) == expected, (levels, nc)
        assert residual_block_bits(levels, 0, 0, first, most, nc_class) == len(expected)


def test_largest_level():
    """MAX_LEVEL fits wherever it stands; one more does not."""
    for ones in range(4):
        for sign in (-1, 1):
            levels = [sign * MAX_LEVEL] * 5 + [1] * ones + [0] * (11 - ones)
            naive_entropy.residual_block(levels, 0)
    with pytest.raises(ValueError):
        naive_entropy.residual_block([MAX_LEVEL + 1, 1, 1, 1] + [0] * 12, 0)


def test_exp_golomb():
    sink, out = np.zeros(3, np.int64), np.zeros(4096, np.uint8)
    expected = ""
    open_sink(out, 0, sink)
    for value in [0, 1, 2, 3, 7, 8, 254, 255, 65535, 65536, 2**31 - 1, 2**32 - 2]:
        put_ue(out, sink, value)
        expected += naive_entropy.ue(value)
    for value in [0, 1, -1, 2, -2, 32768, -32768, 2**30]:
        put_se(out, sink, value)
        expected += naive_entropy.se(value)
    for value, largest in ((0, 1), (1, 1), (0, 2), (2, 15)):
        put_te(out, sink, value, largest)
        expected += naive_entropy.te(value, largest)
    assert text(out, 0, close_sink(out, sink)) == expected


CASES = [  # mb_width, mb_height, n_ref, density, largest level
    (3, 4, 0, 0.3, MAX_LEVEL),
    (4, 3, 1, 0.3, 40),
    (3, 4, 2, 0.9, MAX_LEVEL),
    (5, 3, 4, 0.1, 2),
    (1, 5, 1, 0.5, 5),
    (7, 1, 16, 0.05, 1),
]


@pytest.mark.parametrize("case", CASES)
def test_slice_data(case):
    mb_width, mb_height, n_ref, density, largest = case
    for seed in range(3):
        rng = np.random.default_rng(SEED + seed)
        slice_qp = int(rng.integers(0, 52))
        state = naive_entropy.random_state(rng, mb_width, mb_height, n_ref, slice_qp, density, largest)
        if seed == 1 and n_ref:
            state.mb_type[-3:] = P_SKIP  # the slice ends in a run
        n_mb = mb_width * mb_height
        for first_row in (0, mb_height // 2):
            first, end = first_row * mb_width, n_mb if first_row else (mb_height + 1) // 2 * mb_width
            position = int(rng.integers(0, 100))
            out = np.full(slice_buffer_bytes(n_mb) + n_mb * MACROBLOCK_BYTES, 255, np.uint8)
            mb_bits = np.full(n_mb, -1, np.int32)
            out[: position // 8 + 1] = 0xA5
            final = write_slice_data(out, position, first, end, mb_width, n_ref, slice_qp, *state.arrays(), mb_bits)
            expected, sizes = naive_entropy.slice_data(state, first, end, slice_qp, position)
            assert text(out, position, final) == expected, (case, seed, first_row)
            assert text(out, 0, position) == ("10100101" * 20)[:position]
            assert mb_bits[first:end].tolist() == sizes
            assert (mb_bits[:first] == -1).all() and (mb_bits[end:] == -1).all()


def test_buffer_too_small():
    rng = np.random.default_rng(SEED)
    state = naive_entropy.random_state(rng, 4, 4, 1, 26, 1.0, MAX_LEVEL)
    out = np.zeros(MACROBLOCK_BYTES + 900, np.uint8)
    assert write_slice_data(out, 0, 0, 16, 4, 1, 26, *state.arrays(), np.zeros(16, np.int32)) == -1


@pytest.mark.parametrize("choices", [(0, 1), (0, 3, 4), (0, 0, 0, 1, 2, 3, 255), (0, 255), (*range(256), *[0] * 30)])
def test_which_slices_need_emulation_prevention(choices):
    rng = np.random.default_rng(SEED)
    header = np.array([0x41, 0x80], np.uint8)
    header.flags.writeable = False
    answers = set()
    for n in [*range(3, 140), *range(30, 70), *[200] * 60]:
        data = rng.choice(np.array(choices, np.uint8), n + int(rng.integers(0, 40))).astype(np.uint8)
        data[:2] = 0
        data[n - 1] |= 1
        data[n:] = 0  # of another picture, and not of this slice
        rbsp = header.tobytes() + data[2:n].tobytes()
        answers.add(begin_slice(data, header, n))
        assert data[:n].tobytes() == rbsp
        assert begin_slice(data, header, n) == (standard_bits.escape(rbsp) != rbsp), rbsp
    assert answers == {False, True}
