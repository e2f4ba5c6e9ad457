"""CABAC of whole slices on the GPU: the bytes of the serial encoder, for random and extreme bins, slices, and I_PCM."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Planes
from h264lite.cpu_simd.entropy.entropy import write_slices as cpu_write_slices
from h264lite.cpu_simd.layout import BYPASS, ENTRY_BYTES, HEADER_BITS, TERMINATE
from h264lite.cuda_src.entropy import cabac
from h264lite.cuda_src.entropy.cabac import CHUNK
from h264lite.cuda_src.entropy.entropy import write_slices
from h264lite.standard.cavlc import MAX_LEVEL
from h264lite.standard.macroblock import I_PCM, P_SKIP, I_16x16

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support import naive_cabac

SEED = 9340
CONTEXTS = np.array([*range(277), *range(399, 436)])


def put(engine, symbol):
    context, value = symbol >> 1, symbol & 1
    if context == BYPASS:
        engine.bypass(value)
    elif context == TERMINATE:
        engine.terminate(value)
    else:
        engine.decision(context, value)


def encoded(words: list[np.ndarray], samples: list[bytes], header: int, init: int, slice_qp: int) -> str:
    """A slice: zeros for its header, then code words, bins as in cpu_simd/entropy/cabac.py, each but the last followed by
    samples.
    """
    engine = naive_cabac.Engine(init, slice_qp)
    text = "0" * header
    for n, word in enumerate(words):
        engine.restart()
        engine.bits = ""
        for symbol in word.tolist():
            put(engine, symbol)
        text += engine.bits
        if n + 1 < len(words):
            text += "0" * (-len(text) % 8) + "".join(format(v, "08b") for v in samples[n])
    return text


def random_word(rng: np.random.Generator, size: int, contexts: np.ndarray, share: float, bypass: float = 0.15) -> np.ndarray:
    """uint16[size]: bins of random contexts, each with a probability of 1 near `share`; the last ends the engine."""
    likely = np.clip(rng.normal(share, 0.1, 1024), 0.0, 1.0)
    chosen = rng.choice(contexts, size) if len(contexts) else np.full(size, TERMINATE)
    symbols = chosen.astype(np.int64) << 1 | (rng.random(size) < likely[np.minimum(chosen, 1023)])
    kind = rng.random(size)
    symbols = np.where(kind < bypass, BYPASS << 1 | (rng.random(size) < 0.5), symbols)
    symbols = np.where(kind > 0.98, TERMINATE << 1, symbols)
    symbols = np.where(symbols >> 1 == TERMINATE, TERMINATE << 1, symbols)
    symbols[-1] = TERMINATE << 1 | 1
    return symbols.astype(np.uint16)


def placed(slices, mb_width, mb_height, mbs):
    """Bins of the code words of each slice as `Bins` wants them, on the host; mbs: the I_PCM macroblock after each word."""
    entries = mb_height * (mb_width + 1)
    symbols = np.full((entries * CHUNK,), 0xABCD, np.uint16)
    sizes, begins = np.full(entries, -9, np.int32), np.full(entries, -9, np.int32)
    slice_chunks = np.zeros((mb_height, 2), np.int32)
    for n, (row0, words) in enumerate(slices):
        chunk = first = row0 * (mb_width + 1)
        for k, word in enumerate(words):
            symbols[chunk * CHUNK : chunk * CHUNK + len(word)] = word
            begin = 0 if k == 0 else 1 + mbs[n][k - 1]
            for at in range(0, len(word), CHUNK):
                sizes[chunk], begins[chunk] = min(CHUNK, len(word) - at), begin if at == 0 else -1
                chunk += 1
        slice_chunks[n] = first, chunk - first
    return symbols.reshape(-1, CHUNK), sizes, begins, slice_chunks


def samples_of(planes, mb, mb_width):
    x, y = mb % mb_width, mb // mb_width
    return b"".join(p[s * y : s * y + s, s * x : s * x + s].tobytes() for p, s in zip(planes, (16, 8, 8)))


def check(gpu, size, rows, words, mbs=(), qp=26, init=1, headers=None):
    """words: of each slice, a list of code words; rows: first row of each slice; size: in macroblocks."""
    mb_width, mb_height = size
    mbs = mbs or [[] for _ in rows]
    headers = headers or [40 + 8 * n for n in range(len(rows))]
    rng = np.random.default_rng(SEED)
    planes = [rng.integers(0, 256, (s * mb_height, s * mb_width), np.uint8) for s in (16, 8, 8)]
    arrays = placed(list(zip(rows, words)), mb_width, mb_height, mbs)
    bins = cabac.Bins(*(gpu.upload(a) for a in arrays))
    first_mb = np.repeat(np.array(rows) * mb_width, np.diff([*rows, mb_height]) * mb_width).astype(np.int32)
    params = [qp, init % 3, *[0] * (HEADER_BITS - 2), *headers]
    layout = first_mb, mb_width * np.array([*rows, mb_height], np.int32), np.array(params, np.int32)
    slices = cabac.Slices(*(gpu.upload(a) for a in layout), int(init < 3), mb_width)
    data = gpu.upload(np.full(mb_height * (mb_width + 1) * ENTRY_BYTES, 0xA5, np.uint8))
    sizes = cabac.Sizes(*(gpu.upload(np.zeros(mb_height, np.int32)) for _ in range(2)))
    source = Planes(*(gpu.upload(p) for p in planes))
    cells = cabac.code_bins(slices, bins, source, sizes)
    cabac.write_bytes(slices, cells, sizes, data)
    data, (sizes, totals) = data.get(), (a.get().tolist() for a in sizes)
    for n, row in enumerate(rows):
        samples = [samples_of(planes, mb, mb_width) for mb in mbs[n]]
        expected = encoded(words[n], samples, headers[n], init, qp)
        pitch, room = (mb_width + 1) * ENTRY_BYTES, ([*rows, mb_height][n + 1] - row) * (mb_width + 1) * ENTRY_BYTES
        if (len(expected) + 7) // 8 > room - 8:
            assert (sizes[n], totals[n]) == (-1, 0)
            continue
        bits = "".join(map(str, np.unpackbits(data[row * pitch :][: -(-sizes[n] // 8)]).tolist()))
        assert sizes[n] == len(expected)
        first = next((i for i, (a, b) in enumerate(zip(bits, expected)) if a != b), None)
        assert first is None, (n, first, len(expected))
        assert set(bits[sizes[n] :]) <= {"0"}
        assert totals[n] == sum(map(len, words[n]))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5])
@pytest.mark.parametrize("size", [1, 40, 2048, 2049, 7000])
def test_a_slice(device, share, size):  # noqa: F811
    rng = np.random.default_rng(SEED + size)
    word = random_word(rng, size, CONTEXTS[rng.permutation(len(CONTEXTS))[:40]], share)
    check(device, (7, 3), [0], [[word]], init=3 if size == 40 else 0)


@pytest.mark.parametrize("rows", [[0, 1, 2], [0, 1]])
def test_slices(device, rows):  # noqa: F811
    rng = np.random.default_rng(SEED)
    sizes = [3000, 1, 2048]
    words = [[random_word(rng, n, CONTEXTS, 0.3)] for n in sizes[: len(rows)]]
    check(device, (5, 3), rows, words)


def test_pcm(device):  # noqa: F811
    """Code words of any length between samples; the contexts go on."""
    rng = np.random.default_rng(SEED)
    contexts = CONTEXTS[:5]
    words = [[random_word(rng, n, contexts, 0.2) for n in lengths] for lengths in ([1, 3000, 2, 1, 500], [7], [2048, 9])]
    check(device, (6, 3), [0, 1, 2], words, [[0, 1, 2, 5], [], [13]], headers=[8, 16, 2040])


def test_states_that_do_not_meet(device):  # noqa: F811
    """0 and 1 by turns keep the extreme states apart, so that pieces begin at the context's first bin."""
    word = np.append(np.tile([54 << 1, 54 << 1 | 1], 1500), TERMINATE << 1 | 1).astype(np.uint16)
    check(device, (3, 2), [0], [[word]])


@pytest.mark.parametrize("bypass", [0.0, 0.05])
def test_chunks_without_lps(device, bypass):  # noqa: F811
    """A frame of skipped macroblocks, with bypass bins, and LPS far from each other."""
    rng = np.random.default_rng(SEED)
    word = np.tile([13 << 1 | 1, TERMINATE << 1], 5000).astype(np.uint16)
    word[rng.random(len(word)) < bypass] = BYPASS << 1 | 1
    word[[0, 9, 6500]] = 13 << 1
    word[-1] = TERMINATE << 1 | 1
    check(device, (7, 2), [0], [[word]], qp=30, init=0)


@pytest.mark.parametrize("carry", [0, 1])
def test_carries(device, carry):  # noqa: F811
    """Bypass bins that leave 200 bits open, which are then decided by a carry or by none; several times."""
    symbols: list[int] = []
    engine = naive_cabac.Engine(1, 26)

    def bypass(value):
        symbols.append(BYPASS << 1 | value)
        engine.bypass(value)

    for n in range(5):
        for _ in range(n):
            bypass(0)
        for _ in range(200):
            open_after = [v for v in (0, 1) if 512 <= 2 * engine.low + v * engine.range < 1024]
            bypass(max(open_after, default=1))
        assert engine.outstanding > 60
        for _ in range(12):
            bypass(carry)
    word = np.array([*symbols, TERMINATE << 1 | 1], np.uint16)
    check(device, (7, 2), [0], [[word]])


def test_too_long(device):  # noqa: F811
    rng = np.random.default_rng(SEED)
    words = [[random_word(rng, n, CONTEXTS[:3], 0.5, 0.9)] for n in (4000, 40)]
    check(device, (1, 2), [0, 1], words)


CASES = [  # mb_width, mb_height, n_ref, density, largest level
    (3, 4, 0, 0.3, 40),
    (3, 3, 0, 0.9, MAX_LEVEL),
    (4, 3, 1, 0.3, 40),
    (3, 4, 2, 0.1, MAX_LEVEL),
    (5, 3, 4, 0.05, 2),
    (1, 5, 1, 0.5, 5),
    (7, 1, 16, 0.05, 1),
]


@pytest.mark.parametrize("mode_8x8", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_macroblocks(device, case, mode_8x8):  # noqa: F811
    """The stage, from random macroblocks."""
    mb_width, mb_height, n_ref, density, largest = case
    for seed in range(2):
        rng = np.random.default_rng(SEED + seed)
        qp, init = int(rng.integers(0, 52)), int(rng.integers(0, 3))
        make = naive_cabac.random_state_8x8 if mode_8x8 else naive_cabac.random_state
        state = make(rng, mb_width, mb_height, n_ref, qp, density, largest)
        if n_ref and seed == 1:
            state.mb_type[-3:] = P_SKIP
        for rows in ([0, mb_height], sorted({0, mb_height // 2, mb_height})):
            arguments = state, rows, [int(n) for n in rng.integers(0, 100, len(rows) - 1)], qp, init, mode_8x8
            expected = naive_cabac.written(cpu_write_slices, *arguments)
            assert naive_cabac.written(write_slices, *arguments, device.upload) == expected, (seed, rows)


@pytest.mark.parametrize(("kind", "n_ref"), [(I_PCM, 0), (I_PCM, 1), (P_SKIP, 1)])
def test_all_alike(device, kind, n_ref):  # noqa: F811
    """More than a look at 32 macroblocks back."""
    state = naive_cabac.random_state(np.random.default_rng(SEED), 20, 4, n_ref, 26, 0.05, 2)
    state.mb_type[1:40] = state.mb_type[41:] = kind
    for rows in ([0, 4], [0, 1, 4]):
        arguments = state, rows, [5] * (len(rows) - 1), 26, 0, False
        expected = naive_cabac.written(cpu_write_slices, *arguments)
        assert naive_cabac.written(write_slices, *arguments, device.upload) == expected


@pytest.mark.parametrize("n_ref", [0, 1])
def test_more_bins_than_places(device, n_ref):  # noqa: F811
    """Levels of which each takes 18 bins but few bits, between samples; the slice beside has its bins as others do."""
    state = naive_cabac.random_state(np.random.default_rng(SEED), 4, 3, n_ref, 26, 0.05, 2)
    state.mb_type[:8] = I_16x16
    state.mb_type[2] = I_PCM
    state.cbp[:8] = 47
    state.levels[:8] = 16
    state.levels[:8, :24, 0] = 0
    state.levels[:8, 25:, 4:] = 0
    state.total_coeff[:8] = 15
    state.total_coeff[2] = 16
    arguments = state, [0, 2, 3], [5, 6], 26, 0, False
    expected = naive_cabac.written(cpu_write_slices, *arguments)
    assert expected[0][1] > 10 * CHUNK > expected[1][1]
    assert naive_cabac.written(write_slices, *arguments, device.upload) == expected


def test_entries_that_share_chunks(device, monkeypatch):  # noqa: F811
    """As in large frames: rows of an odd number of entries, slices of one row, some with too many bins."""
    monkeypatch.setattr(cabac, "SMALL", 1)
    for seed, width in enumerate((2, 3, 4)):
        state = naive_cabac.random_state(np.random.default_rng(SEED + seed), width, 6, 1, 26, 0.7, 3)
        arguments = state, [0, 1, 2, 3, 6], [5, 6, 7, 8], 26, 0, False
        expected = naive_cabac.written(cpu_write_slices, *arguments)
        assert naive_cabac.written(write_slices, *arguments, device.upload) == expected
