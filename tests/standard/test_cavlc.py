"""The CAVLC tables as codes, the look-up tables made from them, and Tables 7-x, 8-x and 9-4 by what they must obey."""

from fractions import Fraction

import numpy as np
import pytest
from h264lite.standard import cavlc, tables

# Code space that a table leaves unused: the remainder of the Kraft sum.
CODES = [
    *((f"coeff_token {i}", cavlc.COEFF_TOKEN[i], n, Fraction(unused)) for i, n, unused in (
        (0, 62, "1/32768"), (1, 62, "1/8192"), (2, 62, "1/1024"), (3, 62, "1/32"), (4, 14, "0"))),
    *((f"total_zeros {i}", cavlc.TOTAL_ZEROS[i], 17 - i, Fraction(int(i == 1), 512)) for i in range(1, 16)),
    *((f"total_zeros chroma DC {i}", cavlc.TOTAL_ZEROS_CHROMA_DC[i], 5 - i, Fraction(0)) for i in range(1, 4)),
    *((f"run_before {i}", cavlc.RUN_BEFORE[i], i + 1, Fraction(0)) for i in range(1, 7)),
    ("run_before > 6", cavlc.RUN_BEFORE[7], 15, Fraction(1, 2048)),
]  # fmt: skip


@pytest.mark.parametrize("name, table, entries, unused", CODES, ids=[code[0] for code in CODES])
def test_codes(name, table, entries, unused):
    """All entries are there, no code begins another one, and the code space is used up where it should be."""
    pairs = [(int(length), int(code)) for length, code in table.reshape(-1, 2) if length]
    codes = sorted(format(code, f"0{length}b") for length, code in pairs)
    assert len(codes) == entries
    assert all(code < 1 << length for length, code in pairs)
    assert not any(second.startswith(first) for first, second in zip(codes, codes[1:]))
    assert 1 - sum(Fraction(1, 1 << length) for length, _ in pairs) == unused


def test_possible_entries():
    """TrailingOnes <= TotalCoeff; total_zeros <= 16 - TotalCoeff; run_before <= zerosLeft."""
    for total in range(17):
        for ones in range(4):
            assert (cavlc.COEFF_TOKEN[:4, total, ones, 0] > 0).all() == (ones <= total)
            assert (cavlc.COEFF_TOKEN[4, total, ones, 0] > 0) == (ones <= total <= 4)
    for total in range(1, 16):
        assert np.flatnonzero(cavlc.TOTAL_ZEROS[total, :, 0]).tolist() == list(range(17 - total))
    for zeros in range(1, 7):
        assert np.flatnonzero(cavlc.RUN_BEFORE[zeros, :, 0]).tolist() == list(range(zeros + 1))


def check_lookup(codes: np.ndarray, bits: int, find) -> None:
    """find(next bits) gives (length, label...) of the code they begin with, or length 0."""
    known = np.zeros(1 << bits, bool)
    for label in np.ndindex(codes.shape[:-1]):
        length, code = (int(x) for x in codes[label])
        if length:
            first = code << bits - length
            for b in {first, first + (1 << bits - length) - 1}:
                assert find(b) == (length, *label)
            known[first : first + (1 << bits - length)] = True
    for b in np.flatnonzero(~known)[:4]:
        assert find(int(b))[0] == 0


def test_lookups():
    for row in range(5):

        def token(b, row=row):
            entry = int(cavlc.COEFF_TOKEN_LOOKUP[row, b >> 6 if b >= 1024 else 1024 + b])
            return entry >> 8, entry >> 2 & 31, entry & 3

        check_lookup(cavlc.COEFF_TOKEN[row], 16, token)
    for codes, lookup, bits in (
        (cavlc.TOTAL_ZEROS, cavlc.TOTAL_ZEROS_LOOKUP, 9),
        (cavlc.TOTAL_ZEROS_CHROMA_DC, cavlc.TOTAL_ZEROS_CHROMA_DC_LOOKUP, 3),
        (cavlc.RUN_BEFORE, cavlc.RUN_BEFORE_LOOKUP, 11),
    ):
        for row in range(1, len(codes)):
            check_lookup(codes[row], bits, lambda b, t=lookup[row]: (int(t[b]) >> 4, int(t[b]) & 15))


def test_scans():
    """A zig-zag scan visits diagonal after diagonal, in turn down and up, the first step to the right."""
    for size, scan in ((4, tables.ZIGZAG_4x4), (8, tables.ZIGZAG_8x8)):
        def order(p, size=size):
            y, x = divmod(p, size)
            return y + x, y if (y + x) % 2 else x

        assert scan.tolist() == sorted(range(size * size), key=order)
    assert tables.ZIGZAG_4x4[tables.ZIGZAG_4x4_INVERSE].tolist() == list(range(16))


def test_quantisation():
    """Forward and inverse multipliers undo each other and the transforms' norms (16, 25, 20 by position)."""
    norm = np.array([[16, 20, 16, 20], [20, 25, 20, 25]] * 2).ravel()
    product = tables.QUANT_MF * tables.NORM_ADJUST_4x4 * norm / 2**21
    assert np.allclose(product, 1, atol=2e-3)
    assert (tables.level_scale_4x4() == 16 * tables.NORM_ADJUST_4x4).all()
    assert (tables.level_scale_8x8() == 16 * tables.NORM_ADJUST_8x8).all()
    ramp = tables.level_scale_4x4(np.arange(16)) // tables.NORM_ADJUST_4x4
    assert ramp[0, tables.ZIGZAG_4x4].tolist() == list(range(16))


def test_coded_block_patterns():
    for table, inverse in ((tables.CBP_INTRA, tables.CBP_INTRA_CODE), (tables.CBP_INTER, tables.CBP_INTER_CODE)):
        assert sorted(table) == list(range(48))
        assert table[inverse].tolist() == list(range(48))


def test_deblocking_tables():
    assert len(tables.ALPHA) == len(tables.BETA) == tables.TC0.shape[1] == len(tables.QP_CHROMA) == 52
    for table in (tables.ALPHA, tables.BETA, *tables.TC0, tables.QP_CHROMA):
        assert (np.diff(table) >= 0).all()
    assert (np.diff(tables.TC0, axis=0) >= 0).all()
    # the curves behind the tables: 0.8 (2^(i/6) - 1) and 0.5 i - 7
    i = np.arange(16, 50)
    assert np.abs(tables.ALPHA[16:50] - 0.8 * (2 ** (i / 6) - 1)).max() < 4
    assert np.abs(tables.BETA[16:] - (0.5 * np.arange(16, 52) - 7)).max() < 2


def test_bit_lengths():
    for value in (0, 1, 2, 3, 6, 7, 254, 255, 65534, 65535, 65536):
        assert tables.UE_BITS[value] == 2 * (value + 1).bit_length() - 1
