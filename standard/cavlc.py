"""CAVLC (9.2): Tables 9-5 and 9-7 to 9-10, as (length, code) for a writer and as look-up by next bits for a reader."""

import numpy as np

# ---------------------------------------------------------------------------------------------------------------------
# The tables as printed
# ---------------------------------------------------------------------------------------------------------------------

# Table 9-5: coeff_token. TrailingOnes, TotalCoeff | 0 <= nC < 2 | 2 <= nC < 4 | 4 <= nC < 8 | 8 <= nC | nC == -1
_TABLE_9_5 = """
0  0 | 1                   | 11                | 1111         | 0000 11 | 01
0  1 | 0001 01             | 0010 11           | 0011 11      | 0000 00 | 0001 11
1  1 | 01                  | 10                | 1110         | 0000 01 | 1
0  2 | 0000 0111           | 0001 11           | 0010 11      | 0001 00 | 0001 00
1  2 | 0001 00             | 0011 1            | 0111 1       | 0001 01 | 0001 10
2  2 | 001                 | 011               | 1101         | 0001 10 | 001
0  3 | 0000 0011 1         | 0000 111          | 0010 00      | 0010 00 | 0000 11
1  3 | 0000 0110           | 0010 10           | 0110 0       | 0010 01 | 0000 011
2  3 | 0000 101            | 0010 01           | 0111 0       | 0010 10 | 0000 010
3  3 | 0001 1              | 0101              | 1100         | 0010 11 | 0001 01
0  4 | 0000 0001 11        | 0000 0111         | 0001 111     | 0011 00 | 0000 10
1  4 | 0000 0011 0         | 0001 10           | 0101 0       | 0011 01 | 0000 0011
2  4 | 0000 0101           | 0001 01           | 0101 1       | 0011 10 | 0000 0010
3  4 | 0000 11             | 0100              | 1011         | 0011 11 | 0000 000
0  5 | 0000 0000 111       | 0000 0100         | 0001 011     | 0100 00 |
1  5 | 0000 0001 10        | 0000 110          | 0100 0       | 0100 01 |
2  5 | 0000 0010 1         | 0000 101          | 0100 1       | 0100 10 |
3  5 | 0000 100            | 0011 0            | 1010         | 0100 11 |
0  6 | 0000 0000 0111 1    | 0000 0011 1       | 0001 001     | 0101 00 |
1  6 | 0000 0000 110       | 0000 0110         | 0011 10      | 0101 01 |
2  6 | 0000 0001 01        | 0000 0101         | 0011 01      | 0101 10 |
3  6 | 0000 0100           | 0010 00           | 1001         | 0101 11 |
0  7 | 0000 0000 0101 1    | 0000 0001 111     | 0001 000     | 0110 00 |
1  7 | 0000 0000 0111 0    | 0000 0011 0       | 0010 10      | 0110 01 |
2  7 | 0000 0000 101       | 0000 0010 1       | 0010 01      | 0110 10 |
3  7 | 0000 0010 0         | 0001 00           | 1000         | 0110 11 |
0  8 | 0000 0000 0100 0    | 0000 0001 011     | 0000 1111    | 0111 00 |
1  8 | 0000 0000 0101 0    | 0000 0001 110     | 0001 110     | 0111 01 |
2  8 | 0000 0000 0110 1    | 0000 0001 101     | 0001 101     | 0111 10 |
3  8 | 0000 0001 00        | 0000 100          | 0110 1       | 0111 11 |
0  9 | 0000 0000 0011 11   | 0000 0000 1111    | 0000 1011    | 1000 00 |
1  9 | 0000 0000 0011 10   | 0000 0001 010     | 0000 1110    | 1000 01 |
2  9 | 0000 0000 0100 1    | 0000 0001 001     | 0001 010     | 1000 10 |
3  9 | 0000 0000 100       | 0000 0010 0       | 0011 00      | 1000 11 |
0 10 | 0000 0000 0010 11   | 0000 0000 1011    | 0000 0111 1  | 1001 00 |
1 10 | 0000 0000 0010 10   | 0000 0000 1110    | 0000 1010    | 1001 01 |
2 10 | 0000 0000 0011 01   | 0000 0000 1101    | 0000 1101    | 1001 10 |
3 10 | 0000 0000 0110 0    | 0000 0001 100     | 0001 100     | 1001 11 |
0 11 | 0000 0000 0001 111  | 0000 0000 1000    | 0000 0101 1  | 1010 00 |
1 11 | 0000 0000 0001 110  | 0000 0000 1010    | 0000 0111 0  | 1010 01 |
2 11 | 0000 0000 0010 01   | 0000 0000 1001    | 0000 1001    | 1010 10 |
3 11 | 0000 0000 0011 00   | 0000 0001 000     | 0000 1100    | 1010 11 |
0 12 | 0000 0000 0001 011  | 0000 0000 0111 1  | 0000 0100 0  | 1011 00 |
1 12 | 0000 0000 0001 010  | 0000 0000 0111 0  | 0000 0101 0  | 1011 01 |
2 12 | 0000 0000 0001 101  | 0000 0000 0110 1  | 0000 0110 1  | 1011 10 |
3 12 | 0000 0000 0010 00   | 0000 0000 1100    | 0000 1000    | 1011 11 |
0 13 | 0000 0000 0000 1111 | 0000 0000 0101 1  | 0000 0011 01 | 1100 00 |
1 13 | 0000 0000 0000 001  | 0000 0000 0101 0  | 0000 0011 1  | 1100 01 |
2 13 | 0000 0000 0001 001  | 0000 0000 0100 1  | 0000 0100 1  | 1100 10 |
3 13 | 0000 0000 0001 100  | 0000 0000 0110 0  | 0000 0110 0  | 1100 11 |
0 14 | 0000 0000 0000 1011 | 0000 0000 0011 1  | 0000 0010 01 | 1101 00 |
1 14 | 0000 0000 0000 1110 | 0000 0000 0010 11 | 0000 0011 00 | 1101 01 |
2 14 | 0000 0000 0000 1101 | 0000 0000 0011 0  | 0000 0010 11 | 1101 10 |
3 14 | 0000 0000 0001 000  | 0000 0000 0100 0  | 0000 0010 10 | 1101 11 |
0 15 | 0000 0000 0000 0111 | 0000 0000 0010 01 | 0000 0001 01 | 1110 00 |
1 15 | 0000 0000 0000 1010 | 0000 0000 0010 00 | 0000 0010 00 | 1110 01 |
2 15 | 0000 0000 0000 1001 | 0000 0000 0010 10 | 0000 0001 11 | 1110 10 |
3 15 | 0000 0000 0000 1100 | 0000 0000 0000 1  | 0000 0001 10 | 1110 11 |
0 16 | 0000 0000 0000 0100 | 0000 0000 0001 11 | 0000 0000 01 | 1111 00 |
1 16 | 0000 0000 0000 0110 | 0000 0000 0001 10 | 0000 0001 00 | 1111 01 |
2 16 | 0000 0000 0000 0101 | 0000 0000 0001 01 | 0000 0000 11 | 1111 10 |
3 16 | 0000 0000 0000 1000 | 0000 0000 0001 00 | 0000 0000 10 | 1111 11 |
"""

# Tables 9-7 and 9-8: total_zeros of 4x4 blocks. total_zeros | tzVlcIndex 1 to 15
_TABLE_9_7 = """
 0 | 1           | 111     | 0101    | 0001 1 | 0101   | 0000 01 | 0000 01
 1 | 011         | 110     | 111     | 111    | 0100   | 0000 1  | 0000 1
 2 | 010         | 101     | 110     | 0101   | 0011   | 111     | 101
 3 | 0011        | 100     | 101     | 0100   | 111    | 110     | 100
 4 | 0010        | 011     | 0100    | 110    | 110    | 101     | 011
 5 | 0001 1      | 0101    | 0011    | 101    | 101    | 100     | 11
 6 | 0001 0      | 0100    | 100     | 100    | 100    | 011     | 010
 7 | 0000 11     | 0011    | 011     | 0011   | 011    | 010     | 0001
 8 | 0000 10     | 0010    | 0010    | 011    | 0010   | 0001    | 001
 9 | 0000 011    | 0001 1  | 0001 1  | 0010   | 0000 1 | 001     | 0000 00
10 | 0000 010    | 0001 0  | 0001 0  | 0001 0 | 0001   | 0000 00 |
11 | 0000 0011   | 0000 11 | 0000 01 | 0000 1 | 0000 0 |         |
12 | 0000 0010   | 0000 10 | 0000 1  | 0000 0 |        |         |
13 | 0000 0001 1 | 0000 01 | 0000 00 |        |        |         |
14 | 0000 0001 0 | 0000 00 |         |        |        |         |
15 | 0000 0000 1 |         |         |        |        |         |
"""
_TABLE_9_8 = """
 0 | 0000 01 | 0000 01 | 0000 1 | 0000 | 0000 | 000 | 00 | 0
 1 | 0001    | 0000 00 | 0000 0 | 0001 | 0001 | 001 | 01 | 1
 2 | 0000 1  | 0001    | 001    | 001  | 01   | 1   | 1  |
 3 | 011     | 11      | 11     | 010  | 1    | 01  |    |
 4 | 11      | 10      | 10     | 1    | 001  |     |    |
 5 | 10      | 001     | 01     | 011  |      |     |    |
 6 | 010     | 01      | 0001   |      |      |     |    |
 7 | 001     | 0000 1  |        |      |      |     |    |
 8 | 0000 00 |         |        |      |      |     |    |
"""

# Table 9-9 a): total_zeros of chroma DC 2x2 blocks. total_zeros | tzVlcIndex 1 to 3
_TABLE_9_9A = """
0 | 1   | 1  | 1
1 | 01  | 01 | 0
2 | 001 | 00 |
3 | 000 |    |
"""

# Table 9-10: run_before. run_before | zerosLeft 1 to 6, greater than 6
_TABLE_9_10 = """
 0 | 1 | 1  | 11 | 11  | 11  | 11  | 111
 1 | 0 | 01 | 10 | 10  | 10  | 000 | 110
 2 |   | 00 | 01 | 01  | 011 | 001 | 101
 3 |   |    | 00 | 001 | 010 | 011 | 100
 4 |   |    |    | 000 | 001 | 010 | 011
 5 |   |    |    |     | 000 | 101 | 010
 6 |   |    |    |     |     | 100 | 001
 7 |   |    |    |     |     |     | 0001
 8 |   |    |    |     |     |     | 0000 1
 9 |   |    |    |     |     |     | 0000 01
10 |   |    |    |     |     |     | 0000 001
11 |   |    |    |     |     |     | 0000 0001
12 |   |    |    |     |     |     | 0000 0000 1
13 |   |    |    |     |     |     | 0000 0000 01
14 |   |    |    |     |     |     | 0000 0000 001
"""


def _columns(table: str) -> list[dict[tuple[int, ...], str]]:
    """A printed table as one {row label: code} for each column; empty cells left out."""
    rows = [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]
    return [
        {tuple(map(int, row[0].split())): row[column].replace(" ", "") for row in rows if row[column]}
        for column in range(1, len(rows[0]))
    ]


# ---------------------------------------------------------------------------------------------------------------------
# For writing: the last axis is (length in bits, code); length 0 = no such entry
# ---------------------------------------------------------------------------------------------------------------------

# nC -> row of COEFF_TOKEN; the last row is for chroma DC (nC == -1).
NC_CLASS = np.array([0, 0, 1, 1, 2, 2, 2, 2] + [3] * 9, np.int64)
NC_CLASS_CHROMA_DC = 4


def _codes(columns: list[dict[tuple[int, ...], str]], shape: tuple[int, ...]) -> np.ndarray:
    """int64[columns, *shape, 2]; the rows' labels, last number first, are the indices."""
    array = np.zeros((len(columns), *shape, 2), np.int64)
    for column, entries in enumerate(columns):
        for label, code in entries.items():
            array[(column, *reversed(label))] = len(code), int(code, 2)
    return array


_NO_COLUMN: list[dict[tuple[int, ...], str]] = [{}]
_COEFF_TOKEN_COLUMNS = _columns(_TABLE_9_5)
_TOTAL_ZEROS_COLUMNS = _NO_COLUMN + _columns(_TABLE_9_7) + _columns(_TABLE_9_8)
_TOTAL_ZEROS_DC_COLUMNS = _NO_COLUMN + _columns(_TABLE_9_9A)
_RUN_BEFORE_COLUMNS = _NO_COLUMN + _columns(_TABLE_9_10)

COEFF_TOKEN = _codes(_COEFF_TOKEN_COLUMNS, (17, 4))  # int64[5, 17, 4, 2]: [class, TotalCoeff, TrailingOnes]
TOTAL_ZEROS = _codes(_TOTAL_ZEROS_COLUMNS, (16,))  # int64[16, 16, 2]: [tzVlcIndex = TotalCoeff, total_zeros]
TOTAL_ZEROS_CHROMA_DC = _codes(_TOTAL_ZEROS_DC_COLUMNS, (4,))  # int64[4, 4, 2]: [tzVlcIndex, total_zeros]
RUN_BEFORE = _codes(_RUN_BEFORE_COLUMNS, (15,))  # int64[8, 15, 2]: [min(zerosLeft, 7), run_before]

# The lengths alone, for who weighs bits: [class 0..3, TotalCoeff, TrailingOnes], [TotalCoeff, total_zeros] with a row of
# zeros for 16, [min(zerosLeft, 7), run_before]
COEFF_TOKEN_BITS = COEFF_TOKEN[:4, :, :, 0].astype(np.uint8)
TOTAL_ZEROS_BITS = np.vstack([TOTAL_ZEROS[:, :, 0], np.zeros((1, 16), np.int64)]).astype(np.uint8)
RUN_BEFORE_BITS = RUN_BEFORE[:, :, 0].astype(np.uint8)

# Length and code in one number, for who looks them up in one load: length << 16 | code, the others length << 8 | code
COEFF_TOKEN_CODES = COEFF_TOKEN[..., 0] << 16 | COEFF_TOKEN[..., 1]
TOTAL_ZEROS_CODES = TOTAL_ZEROS[..., 0] << 8 | TOTAL_ZEROS[..., 1]
TOTAL_ZEROS_CHROMA_DC_CODES = TOTAL_ZEROS_CHROMA_DC[..., 0] << 8 | TOTAL_ZEROS_CHROMA_DC[..., 1]
RUN_BEFORE_CODES = RUN_BEFORE[..., 0] << 8 | RUN_BEFORE[..., 1]

# ---------------------------------------------------------------------------------------------------------------------
# For reading: indexed by the next bits of the stream; entry 0 = no such code
# ---------------------------------------------------------------------------------------------------------------------


def _lookup(columns: list[dict[tuple[int, ...], str]], bits: int, shift: int) -> np.ndarray:
    """int16[columns, 1 << bits]: the code's length << shift | its label, for every continuation of the code."""
    table = np.zeros((len(columns), 1 << bits), np.int16)
    for column, entries in enumerate(columns):
        for label, code in entries.items():
            value = label[0] if len(label) == 1 else label[1] << 2 | label[0]
            free = bits - len(code)
            first = int(code, 2) << free
            table[column, first : first + (1 << free)] = len(code) << shift | value
    return table


# coeff_token: b = the next 16 bits; entry [class, b >> 6 if b >= 1024 else 1024 + b]: no code with a one in its first
# six bits is longer than ten. Entry = length << 8 | TotalCoeff << 2 | TrailingOnes. int16[5, 2048]
_COEFF_TOKEN_16 = _lookup(_COEFF_TOKEN_COLUMNS, 16, 8)
COEFF_TOKEN_LOOKUP = np.ascontiguousarray(np.hstack([_COEFF_TOKEN_16[:, ::64], _COEFF_TOKEN_16[:, :1024]]))

# total_zeros: entry [tzVlcIndex, next 9 bits] = length << 4 | total_zeros. int16[16, 512]
TOTAL_ZEROS_LOOKUP = _lookup(_TOTAL_ZEROS_COLUMNS, 9, 4)

# total_zeros of chroma DC: entry [tzVlcIndex, next 3 bits] = length << 4 | total_zeros. int16[4, 8]
TOTAL_ZEROS_CHROMA_DC_LOOKUP = _lookup(_TOTAL_ZEROS_DC_COLUMNS, 3, 4)

# run_before: entry [min(zerosLeft, 7), next 11 bits] = length << 4 | run_before. int16[8, 2048]
RUN_BEFORE_LOOKUP = _lookup(_RUN_BEFORE_COLUMNS, 11, 4)

# ---------------------------------------------------------------------------------------------------------------------
# Levels (9.2.2)
# ---------------------------------------------------------------------------------------------------------------------

# 7.4.5.3.2, 9.2.2.1: level_prefix is at most 15 in the Baseline, Main, Extended and High profiles, which bounds what a
# level can be: levelCode <= (15 << suffixLength) + 4095 (+ 15 if suffixLength is 0). The least of these bounds:
MAX_LEVEL = 2063
