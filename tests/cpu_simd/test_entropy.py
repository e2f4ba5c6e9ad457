"""The entropy stage against a slow writer in plain Python; payload escaping; sizes of buffers."""

import numpy as np
import pytest
from h264lite.cpu_simd.entropy.cavlc import close_sink, open_sink, put_block, put_se, put_te, put_ue
from h264lite.cpu_simd.entropy.entropy import begin_slice, write_slices
from h264lite.cpu_simd.layout import ENTRY_BYTES, N_LEVEL_BLOCKS
from h264lite.standard import bits as standard_bits
from h264lite.standard.cavlc import MAX_LEVEL, NC_CLASS
from h264lite.standard.macroblock import I_PCM, P_SKIP, I_16x16

from ..support import naive_entropy

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
    (3, 4, 0, 0.3, 40),
    (3, 4, 0, 0.3, MAX_LEVEL),
    (4, 3, 1, 0.3, 40),
    (3, 4, 2, 0.2, MAX_LEVEL),
    (3, 4, 2, 0.9, MAX_LEVEL),
    (5, 3, 4, 0.1, 2),
    (1, 5, 1, 0.5, 5),
    (7, 1, 16, 0.05, 1),
]


@pytest.mark.parametrize("case", CASES)
def test_slices(case):
    mb_width, mb_height, n_ref, density, largest = case
    for seed in range(3):
        rng = np.random.default_rng(SEED + seed)
        qp = int(rng.integers(0, 52))
        state = naive_entropy.random_state(rng, mb_width, mb_height, n_ref, qp, density, largest, seed & 1)
        if seed == 1 and n_ref:
            state.mb_type[-3:] = P_SKIP  # the slice ends in a run
        for rows in ([0, mb_height], sorted({0, mb_height // 2, mb_height}), [*range(mb_height + 1)]):
            headers = [int(n) for n in rng.integers(0, 100, len(rows) - 1)]
            expected = naive_entropy.slices(state, rows, headers, qp)
            assert naive_entropy.written(write_slices, state, rows, headers, qp) == expected, (seed, rows)


def state_of(kind, n_ref=0, mb_width=4):
    """Two rows of macroblocks of one type, with few levels."""
    state = naive_entropy.random_state(np.random.default_rng(SEED), mb_width, 2, n_ref, 26, 0.05, 2)
    state.mb_type[:] = kind
    return state


@pytest.mark.parametrize("header", range(9))
def test_all_pcm(header):
    """Samples begin at any byte; all macroblocks have their largest size."""
    state = state_of(I_PCM)
    expected = naive_entropy.slices(state, [0, 1, 2], [header, header + 1], 26)
    assert None not in expected
    assert naive_entropy.written(write_slices, state, [0, 1, 2], [header, header + 1], 26) == expected


@pytest.mark.parametrize("mb_width", (1, 4))
def test_too_long(mb_width):
    """A macroblock of more than ENTRY_BYTES spoils its slice only, and writes nothing beyond the slice's place."""
    for mb in range(2 * mb_width):
        state = state_of(I_16x16, mb_width=mb_width)
        state.cbp[mb] = 47
        state.levels[mb] = MAX_LEVEL
        slices = naive_entropy.written(write_slices, state, [0, 1, 2], [5, 5], 26)
        assert slices == naive_entropy.slices(state, [0, 1, 2], [5, 5], 26)
        assert [text is None for text in slices] == [mb < mb_width, mb >= mb_width]


def test_the_longest_that_fits():
    """Exactly 8 ENTRY_BYTES bits fit, one more does not."""
    answers = set()
    for levels in range(1, 16 * N_LEVEL_BLOCKS):
        state = state_of(I_16x16, mb_width=1)
        state.cbp[:] = 47
        state.levels[:] = 0
        state.levels[0].ravel()[:levels] = MAX_LEVEL
        slices = naive_entropy.written(write_slices, state, [0, 1, 2], [0, 0], 26)
        size = naive_entropy.slice_data(state, 0, 1, 26, 0)[1][0]
        assert (slices[0] is None) == (size > 8 * ENTRY_BYTES), size
        answers.add(slices[0] is None)
    assert answers == {False, True}


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
