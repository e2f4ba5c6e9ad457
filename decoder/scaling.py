"""8.5.9: what transform coefficient levels are multiplied by, as the residual kernels take it."""

import functools

import numpy as np

from ..standard.syntax import Pps, Sps, scaling_lists
from ..standard.tables import QP_CHROMA, level_scale_4x4, level_scale_8x8

_QP = np.arange(52)


def residual_factors(sps: Sps, pps: Pps) -> tuple[np.ndarray, np.ndarray]:
    """LevelScale(qP % 6, ...) << qP / 6, of 4x4 blocks int32[2, 2, 52, 256] and of 8x8 blocks int32[2, 52, 64].

    First index: 0 intra, 1 inter macroblocks. 4x4 blocks: [.., luma or chroma, QP_Y, 16 * position + block], for 16 luma
    blocks or 4 of Cb and 4 of Cr, each with its own QP; 8x8 blocks: [.., QP_Y, position]. Positions in raster order.
    """
    small, large = scaling_lists(sps, pps)
    offsets = pps.chroma_qp_index_offset, pps.chroma_qp_index_offset_cr
    return _factors(tuple(map(bytes, small.astype(np.uint8))), tuple(map(bytes, large[:2].astype(np.uint8))), offsets)


@functools.lru_cache(maxsize=16)
def _factors(small: tuple[bytes, ...], large: tuple[bytes, ...], offsets: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The same from scaling lists and chroma QP offsets."""
    by_qp = [level_scale_4x4(np.frombuffer(x, np.uint8))[_QP % 6] << (_QP // 6)[:, None] for x in small]
    blocks = np.zeros((2, 2, 52, 16, 16), np.int32)
    for inter in range(2):
        blocks[inter, 0] = by_qp[3 * inter][..., None]
        for c, offset in enumerate(offsets):
            qp = QP_CHROMA[np.clip(_QP + offset, 0, 51)]
            blocks[inter, 1, :, :, 4 * c : 4 * c + 4] = by_qp[3 * inter + 1 + c][qp][..., None]
    squares = [level_scale_8x8(np.frombuffer(x, np.uint8))[_QP % 6] << (_QP // 6)[:, None] for x in large]
    return blocks.reshape(2, 2, 52, 256), np.array(squares, np.int32)
