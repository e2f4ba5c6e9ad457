"""Slice data of the GPU: what the CPU's writer gives, for random states, headers of any length, slices, PCM, long runs."""

import numpy as np
import pytest
from h264lite.cpu_simd.entropy import MACROBLOCK_BYTES, slice_buffer_bytes, write_slice_data
from h264lite.cpu_simd.layout import ENTRY_BYTES
from h264lite.cuda_src.entropy import write_slices
from h264lite.standard.cavlc import MAX_LEVEL
from h264lite.standard.macroblock import I_PCM, P_SKIP, I_16x16

from .. import naive_entropy
from ..cuda_emulator.fixtures import device  # noqa: F401

SEED = 8264


def bits_of(gpu, state, rows, headers, n_ref, qp):
    """The bits of each slice as text, header's bits first; None where the GPU says that it is too long."""
    width, height = state.mb_width, len(state.mb_type) // state.mb_width
    first = np.repeat(np.array(rows[:-1]) * width, np.diff(rows)).astype(np.int32)
    layout = np.array([*zip(rows[:-1], headers), (height, 0)], np.int32)
    arrays = [gpu.upload(a) for a in state.arrays()]
    data, sizes = gpu.array((height * (width + 1) * ENTRY_BYTES,), np.uint8).fill(0xA5), gpu.array((height,), np.int32)
    write_slices(gpu.upload(first), gpu.upload(layout), n_ref, qp, width, *arrays[-3:], *arrays[:-3], data, sizes)
    bytes_, found = data.get(), sizes.get()
    places = [bytes_[row * (width + 1) * ENTRY_BYTES :] for row in rows[:-1]]
    return [None if n < 0 else "".join(format(b, "08b") for b in p[: -(-n // 8)])[:n] for n, p in zip(found, places)]


def expected(state, rows, headers, n_ref, qp):
    width, n_mb = state.mb_width, len(state.mb_type)
    texts = []
    for row0, row1, header in zip(rows, rows[1:], headers):
        out = np.zeros(slice_buffer_bytes(n_mb) + n_mb * MACROBLOCK_BYTES, np.uint8)
        bits = np.zeros(n_mb, np.int32)
        end = write_slice_data(out, header, row0 * width, row1 * width, width, n_ref, qp, *state.arrays(), bits)
        whole = "".join(format(b, "08b") for b in out[: end // 8])
        texts.append(whole[: whole.rindex("1") + 1])  # the GPU leaves rbsp_alignment_zero_bit out
    return texts


CASES = [  # mb_width, mb_height, n_ref, density, largest level
    (3, 4, 0, 0.3, 40),
    (4, 3, 1, 0.3, 40),
    (3, 4, 2, 0.2, MAX_LEVEL),
    (5, 3, 4, 0.1, 2),
    (1, 5, 1, 0.5, 5),
    (7, 1, 16, 0.05, 1),
    (45, 26, 1, 0.02, 1),
]


@pytest.mark.parametrize("case", CASES)
def test_slices(device, case):  # noqa: F811
    mb_width, mb_height, n_ref, density, largest = case
    for seed in range(3):
        rng = np.random.default_rng(SEED + seed)
        qp = int(rng.integers(0, 52))
        state = naive_entropy.random_state(rng, mb_width, mb_height, n_ref, qp, density, largest)
        if seed == 1 and n_ref:
            state.mb_type[-3:] = P_SKIP  # the slice ends in a run
        for rows in ([0, mb_height], sorted({0, mb_height // 3, mb_height // 2, mb_height}), [*range(mb_height + 1)]):
            headers = [int(n) for n in rng.integers(0, 100, len(rows) - 1)]
            assert bits_of(device, state, rows, headers, n_ref, qp) == expected(state, rows, headers, n_ref, qp), (seed, rows)


@pytest.mark.parametrize("kind", [P_SKIP, I_PCM])
def test_all_alike(device, kind):  # noqa: F811
    """More than a look at 32 macroblocks back; and every position that bytes can begin at."""
    rng = np.random.default_rng(SEED)
    state = naive_entropy.random_state(rng, 40, 4, 1, 26, 0.05, 2)
    state.mb_type[1:] = kind
    state.mb_type[119] = state.mb_type[0]
    for header in range(9):
        assert bits_of(device, state, [0, 4], [header], 1, 26) == expected(state, [0, 4], [header], 1, 26)


def test_too_long(device):  # noqa: F811
    """A macroblock of more bits than A.3.1 allows is told, not cut off."""
    state = naive_entropy.random_state(np.random.default_rng(SEED), 2, 2, 0, 26, 1.0, MAX_LEVEL)
    state.mb_type[:] = I_16x16
    state.cbp[:] = 47
    state.levels[:] = 0
    state.levels[0, :24, :16] = MAX_LEVEL
    state.total_coeff[0] = 15
    assert bits_of(device, state, [0, 1, 2], [5, 5], 0, 26)[0] is None
