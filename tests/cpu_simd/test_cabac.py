"""CABAC: slices against a slow writer in plain Python, the engine at its limits, slices that are too long."""

import numpy as np
import pytest
from h264lite.cpu_simd.entropy import cabac
from h264lite.cpu_simd.entropy.entropy import write_slices
from h264lite.cpu_simd.layout import BYPASS, TERMINATE
from h264lite.jit.kernel import closed_kernel
from h264lite.standard.cavlc import MAX_LEVEL
from h264lite.standard.macroblock import I_PCM, P_SKIP, I_16x16

from ..support import naive_cabac

SEED = 9300

CASES = [  # mb_width, mb_height, n_ref, density, largest level
    (3, 4, 0, 0.3, 40),
    (3, 3, 0, 0.9, MAX_LEVEL),
    (4, 3, 1, 0.3, 40),
    (3, 4, 2, 0.1, MAX_LEVEL),
    (5, 3, 4, 0.05, 2),
    (1, 5, 1, 0.5, 5),
    (7, 1, 16, 0.05, 1),
]


@pytest.mark.parametrize("mode_8x8", (False, True))
@pytest.mark.parametrize("case", CASES)
def test_slices(case, mode_8x8):
    mb_width, mb_height, n_ref, density, largest = case
    for seed in range(3):
        rng = np.random.default_rng(SEED + seed)
        qp, init = int(rng.integers(0, 52)), int(rng.integers(0, 3))
        make = naive_cabac.random_state_8x8 if mode_8x8 else naive_cabac.random_state
        state = make(rng, mb_width, mb_height, n_ref, qp, density, largest)
        if n_ref and seed == 1:
            state.mb_type[-3:] = P_SKIP
        for rows in ([0, mb_height], sorted({0, mb_height // 2, mb_height})):
            headers = [int(n) for n in rng.integers(0, 100, len(rows) - 1)]
            expected = naive_cabac.slices(state, rows, headers, qp, init, mode_8x8)
            assert naive_cabac.written(write_slices, state, rows, headers, qp, init, mode_8x8) == expected, (seed, rows)


@closed_kernel
def encoded(symbols, contexts, engine, out, last, parts):
    """The symbols through the engine in `parts` calls from byte 1 on, ended; the bit position."""
    cabac.start_contexts(contexts, 3, 20)
    cabac.start_engine(engine, 1)
    for k in range(parts):
        part = symbols[len(symbols) * k // parts : len(symbols) * (k + 1) // parts]
        cabac.encode_bins(part, len(part), contexts, engine, out, last)
    return cabac.finish_engine(engine, out, last)


def symbols_of(bins, rng):
    """Bins as the engine takes them: bypass bins by themselves or with the bin before; uint16[]."""
    symbols = []
    for symbol in bins.tolist():
        if symbol >> 1 != BYPASS:
            symbols.append(symbol)
            continue
        paired = cabac.PAIRED | (symbol & 1) << (cabac.PAIRED_BIT + 1)
        if symbols and symbols[-1] < cabac.PAIRED and rng.random() < 0.8:
            symbols[-1] |= paired
        else:
            symbols.append(BYPASS << 1 | paired)
    return np.array(symbols, np.uint16)


@closed_kernel
def counted(symbols):
    """The number of bins."""
    return cabac.count_bins(symbols, len(symbols))


def naive_bits(bins):
    """The same by the standard's engine."""
    engine = naive_cabac.Engine(3, 20)
    for symbol in bins.tolist():
        context, value = symbol >> 1, symbol & 1
        if context == BYPASS:
            engine.bypass(value)
        elif context == TERMINATE:
            engine.terminate(value)
        else:
            engine.decision(context, value)
    return engine.bits


@pytest.mark.parametrize("kind", ("ones", "zeros", "fair", "skewed", "carries"))
def test_engine(kind):
    """Runs of outstanding bits of any length, states at their ends, calls that end at any bin."""
    rng = np.random.default_rng(SEED)
    for length in (1, 2, 30, 400, 5000):
        context = rng.choice(np.r_[BYPASS, TERMINATE, rng.integers(0, 400, 6)], length)
        value = {"ones": 1, "zeros": 0, "fair": rng.integers(0, 2, length), "skewed": rng.random(length) < 0.03}.get(kind, 1)
        if kind == "carries":  # bypass ones keep codILow beside 1023: bits stay outstanding until another bin decides
            context = np.where(rng.random(length) < 0.01, context, BYPASS)
        bins = (context << 1 | np.where(context == TERMINATE, 0, value)).astype(np.uint16)
        bins = np.r_[bins, np.uint16(TERMINATE << 1 | 1)]
        out = np.zeros(length + 100, np.uint8)
        symbols = symbols_of(bins, rng)
        assert counted(symbols) == len(bins)
        scratch = np.zeros(cabac.N_STATES, np.uint8), np.zeros(4, np.int64)
        position = encoded(symbols, *scratch, out, length, min(7, len(symbols)))
        text = "".join(format(byte, "08b") for byte in out[1:])
        assert text[: position - 8] == naive_bits(bins)
        assert "1" not in text[position - 8 :]


def state_of(kind, n_ref=0, mb_width=4):
    """Two rows of macroblocks of one type, with few levels."""
    state = naive_cabac.random_state(np.random.default_rng(SEED), mb_width, 2, n_ref, 26, 0.05, 2)
    state.mb_type[:] = kind
    return state


@pytest.mark.parametrize("n_ref", (0, 1))
@pytest.mark.parametrize("kind", (I_PCM, P_SKIP))
def test_all_alike(kind, n_ref):
    """The largest macroblocks fit, and the smallest."""
    if kind == P_SKIP and not n_ref:
        return
    state = state_of(kind, n_ref)
    for rows in ([0, 2], [0, 1, 2]):
        headers = list(range(len(rows) - 1))
        expected = naive_cabac.slices(state, rows, headers, 26, 0, False)
        assert naive_cabac.written(write_slices, state, rows, headers, 26, 0, False) == expected


def test_too_long():
    """A slice that does not fit spoils itself only, and writes nothing beyond its place."""
    for row in range(2):
        state = state_of(I_PCM)
        state.mb_type[4 * row : 4 * row + 4] = I_16x16
        state.cbp[4 * row : 4 * row + 4] = 47
        state.levels[4 * row : 4 * row + 4] = MAX_LEVEL
        slices = naive_cabac.written(write_slices, state, [0, 1, 2], [5, 5], 26, 0, False)
        assert [own is None for own in slices] == [row == 0, row == 1]
        assert slices[1 - row] == naive_cabac.slices(state, [0, 1, 2], [5, 5], 26, 0, False)[1 - row]
