"""The arrays of a frame's macroblocks as bytes for the page: sections of numbers, little-endian, compressed by zlib.

The page reads the same layout in page/data.js. A blob is uint32 lengths of all SECTIONS in bytes, then the sections, each
filled up to a multiple of 4 bytes.
"""

import zlib
from collections.abc import Mapping

import numpy as np

from ..standard.macroblock import B_8x8, I_4x4, I_8x8, P_8x8

# Name, dtype and meaning of each section; n: macroblocks of the frame. An absent section is empty.
SECTIONS = (
    ("type", "u1", "n: index of MB_TYPE_NAMES"),
    ("qp", "u1", "n: QP_Y"),
    ("cbp", "u1", "n: coded_block_pattern"),
    ("modes", "u1", "n: transform_size_8x8_flag | intra_chroma_pred_mode << 1 | Intra16x16PredMode << 3"),
    ("slice", "u2", "n: number of the slice in the frame"),
    ("bits", "u2", "n: bits of macroblock_layer() and of what precedes it"),
    ("kinds", "u2", "5 n: bits by kind of syntax element (frame_data.KIND_NAMES) in 1 / 4, kind after kind"),
    ("coded", "u2", "n: bit k is set where luma block k, in raster order, has levels"),
    ("energy", "u2", "n: root of the sum of squares of luma minus prediction, in 1 / 16"),
    ("error", "u4", "n: sum of squared differences of luma to the source"),
    ("detail", "u1", "n: vectors of a list: 0 none, 1 one of one reference, 2 four, 3 sixteen; list 1 << 2"),
    ("sub", "u1", "4 for each P_8x8 and B_8x8: sub_mb_type; 0 8x8, 1 8x4, 2 4x8, 3 4x4, 4 direct"),
    ("intra", "u1", "16 for each I_4x4, 4 for each I_8x8: prediction modes"),
    ("ref", "i1", "8 for each macroblock with vectors: ref_idx of list 0, then list 1, by quadrant; -1 not used"),
    ("vector", "i2", "x, y of each vector in quarter samples, as `detail` counts them: by macroblock, list, block"),
)
ONE, FOUR, SIXTEEN = 1, 2, 3  # values of `detail`
COUNT = np.array([0, 1, 4, 16])  # vectors by detail
LEVEL = 3  # of zlib: a third of the time of 6 for 4 % more bytes
_QUADRANT_FIRST = np.array([0, 2, 8, 10])  # 4x4 blocks in raster order


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The compressed blob of sections given by name; those not given are empty."""
    sections = [np.ascontiguousarray(arrays.get(name, ()), f"<{dtype}").tobytes() for name, dtype, _ in SECTIONS]
    lengths = np.array([len(section) for section in sections], "<u4").tobytes()
    return zlib.compress(b"".join((lengths, *(section + bytes(-len(section) % 4) for section in sections))), LEVEL)


def unpack(blob: bytes) -> dict[str, np.ndarray]:
    """The sections of a blob, for tests and programs."""
    data = zlib.decompress(blob)
    at, sections = 4 * len(SECTIONS), {}
    for (name, dtype, _), length in zip(SECTIONS, np.frombuffer(data, "<u4", len(SECTIONS)).tolist()):
        sections[name] = np.frombuffer(data, f"<{dtype}", length // np.dtype(dtype).itemsize, at)
        at += length + -length % 4
    return sections


def motion(mv: np.ndarray, ref_idx: np.ndarray) -> dict[str, np.ndarray]:
    """Sections detail, ref, vector of mv int16[n, 2, 16, 2] and ref_idx int8[n, 2, 4]; mv is 0 where ref_idx is -1.

    Beside them `area`: the number of 4x4 blocks that have each vector, 0 for those of quadrants without the list.
    """
    n = len(mv)
    both = np.ascontiguousarray(mv).view(np.int32)[..., 0]  # x and y of a vector compared at once
    quadrants = both.reshape(n, 2, 2, 2, 2, 2).swapaxes(3, 4).reshape(n, 2, 4, 4)
    used = ref_idx >= 0
    is_one = (both == both[..., :1]).all(-1) & (ref_idx == ref_idx[..., :1]).all(-1)
    is_four = (quadrants == quadrants[..., :1]).all((-1, -2))
    detail = np.where(used.any(-1), np.where(is_one, ONE, np.where(is_four, FOUR, SIXTEEN)), 0)
    counts = COUNT[detail].ravel()
    ends = np.cumsum(counts)
    vectors = np.empty(int(ends[-1]) if n else 0, np.int32)
    area = np.empty(len(vectors), np.uint8)
    starts, details = ends - counts, detail.ravel()
    blocks, is_used = both.reshape(-1, 16), used.reshape(-1, 4)
    for detail_of_row, blocks_at in ((ONE, np.array([0])), (FOUR, _QUADRANT_FIRST), (SIXTEEN, np.arange(16))):
        rows = np.flatnonzero(details == detail_of_row)
        targets = starts[rows, None] + np.arange(len(blocks_at))
        vectors[targets] = blocks[rows[:, None], blocks_at]
        area[targets] = is_used[rows[:, None], blocks_at // 8 * 2 + blocks_at % 4 // 2] * (16 // len(blocks_at))
    has_vectors = detail.any(-1)
    return {
        "detail": detail[:, 0] | detail[:, 1] << 2,
        "ref": ref_idx[has_vectors],
        "vector": vectors.view(np.int16),
        "area": area,
    }


def intra_modes(mb_type: np.ndarray, intra_mode: np.ndarray) -> np.ndarray:
    """Section intra: of intra_mode int8[n, 16] those that a macroblock of that type has, in the order of addresses."""
    wanted = np.zeros((len(mb_type), 16), bool)
    wanted[mb_type == I_4x4] = True
    wanted[(mb_type == I_8x8)[:, None] & np.isin(np.arange(16), _QUADRANT_FIRST)] = True
    return intra_mode[wanted]


def sub_types(mb_type: np.ndarray, sub_type: np.ndarray) -> np.ndarray:
    """Section sub: of sub_type uint8[n, 4] that of macroblocks with four quadrants of their own."""
    return sub_type[(mb_type == P_8x8) | (mb_type == B_8x8)]


def block_mask(total_coeff: np.ndarray) -> np.ndarray:
    """Section coded of total_coeff uint8[n, 16]."""
    return (total_coeff > 0) @ (1 << np.arange(16))
