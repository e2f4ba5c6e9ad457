"""Pictures whose residual leaves the range that 8.5.10 to 8.5.13 set for 8-bit video: no stream may hold such data.

Each value of the scaling and of the transforms, as they are in the clauses, without a limit on its width.
"""

from collections.abc import Iterator
from unittest import mock

import h264lite
import numpy as np
from h264lite.decoder import layout as at
from h264lite.decoder import picture_decoding
from h264lite.standard.macroblock import I_PCM, LAST_INTRA, I_16x16

LOWEST, HIGHEST = -32768, 32767  # -2 ** (7 + bitDepth), 2 ** (7 + bitDepth) - 1
HIGHEST_SUM = HIGHEST - 32  # of h in 8.5.12.2 and of m in 8.5.13.2, to which 32 is added
HADAMARD = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, -1, 1], [1, -1, 1, -1]])
HADAMARD_2 = np.array([[1, 1], [1, -1]])

Values = list[np.ndarray]


def spoiled_frames(stream: bytes) -> set[int]:
    """Places, in the order of output, of the frames that are out of range; with all until the next IDR picture, which may
    refer to them."""
    spoiled: set[int] = set()  # by decode_index
    decode_slice, reconstruct = picture_decoding.PictureDecoding.decode_slice, picture_decoding.reconstruct_slice
    is_spoiled = [False]

    def measured(p, m, planes, motion, references, factors_4x4, factors_8x8, traces):  # type: ignore[no-untyped-def]
        is_spoiled[0] = is_spoiled[0] or any(
            leaves_range(m, mb, factors_4x4, factors_8x8) for mb in range(int(p[at.P_FIRST_MB]), int(p[at.P_END_MB]))
        )
        return reconstruct(p, m, planes, motion, references, factors_4x4, factors_8x8, traces)

    def by_picture(self, *arguments):  # type: ignore[no-untyped-def]
        if self.header.idr and not self.slices:
            is_spoiled[0] = False
        decode_slice(self, *arguments)
        if is_spoiled[0]:
            spoiled.add(self.picture.decode_index)

    with (
        mock.patch.object(picture_decoding, "reconstruct_slice", measured),
        mock.patch.object(picture_decoding.PictureDecoding, "decode_slice", by_picture),
    ):
        coder = h264lite.Decoder()
        frames = [*coder.decode(stream), *coder.flush()]
    return {n for n, frame in enumerate(frames) if frame.decode_index in spoiled}


def leaves_range(m: at.Macroblocks, mb: int, factors_4x4: np.ndarray, factors_8x8: np.ndarray) -> bool:
    """Whether any value of a parsed macroblock is out of range; arrays as reconstruct_slice takes them."""
    if m.mb_type[mb] == I_PCM or not m.levels[mb].any():
        return False
    for values, highest in _macroblock(m, mb, factors_4x4, factors_8x8):
        if any(v.min() < LOWEST or v.max() > highest for v in values):
            return True
    return False


def _macroblock(m: at.Macroblocks, mb: int, factors_4x4: np.ndarray, factors_8x8: np.ndarray) -> Iterator[tuple[Values, int]]:
    """Values of the macroblock, and the highest they may be."""
    kind, qp, levels = int(m.mb_type[mb]), int(m.qp[mb]), m.levels[mb].astype(np.int64)
    inter = int(kind > LAST_INTRA)
    yield [levels], HIGHEST
    if m.transform_8x8[mb]:
        d = (levels[:256].reshape(4, 8, 8) * factors_8x8[inter, qp].reshape(8, 8) + 32) >> 6
        yield from _both_directions(d, one_dimension_8)
    else:
        d, factors = _scaled(levels[:256], factors_4x4[inter, 0, qp])
        if kind == I_16x16:
            f = HADAMARD @ levels[:16].reshape(4, 4) @ HADAMARD
            dc = (f * factors[0, 0, 0] + 32) >> 6
            yield [f, dc], HIGHEST
            d[:, 0, 0] = dc.ravel()
        yield from _both_directions(d, one_dimension_4)
    d, factors = _scaled(levels[256:], factors_4x4[inter, 1, qp])
    for c in range(0, 8, 4):
        f = HADAMARD_2 @ levels[256 + c : 260 + c].reshape(2, 2) @ HADAMARD_2
        dc = (f * factors[c, 0, 0]) >> 5
        yield [f, dc], HIGHEST
        d[c : c + 4, 0, 0] = dc.ravel()
    yield from _both_directions(d[:8], one_dimension_4)


def _scaled(levels: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """8.5.12.1 for 16 blocks, [block, row, column]: d; and the factors."""
    c, factors = (a.astype(np.int64).reshape(4, 4, 16).transpose(2, 0, 1) for a in (levels, factors))
    return (c * factors + 8) >> 4, factors


def _both_directions(d, one_dimension) -> Iterator[tuple[Values, int]]:  # type: ignore[no-untyped-def]
    """Blocks d[..., row, column], their rows and then their columns transformed."""
    *inner, f = one_dimension(d)
    *more, h = one_dimension(f.swapaxes(-1, -2))
    yield [d, *inner, f, *more], HIGHEST
    yield [h], HIGHEST_SUM


def one_dimension_4(w: np.ndarray) -> Values:
    """8.5.12.2: e and f, or g and h, of vectors w[..., 4]."""
    w0, w1, w2, w3 = np.moveaxis(w, -1, 0)
    e = [w0 + w2, w0 - w2, (w1 >> 1) - w3, w1 + (w3 >> 1)]
    return [*e, np.stack((e[0] + e[3], e[1] + e[2], e[1] - e[2], e[0] - e[3]), -1)]


def one_dimension_8(w: np.ndarray) -> Values:
    """8.5.13.2: e, f and g, or h, k and m, of vectors w[..., 8]."""
    w0, w1, w2, w3, w4, w5, w6, w7 = np.moveaxis(w, -1, 0)
    e = [w0 + w4, -w3 + w5 - w7 - (w7 >> 1), w0 - w4, w1 + w7 - w3 - (w3 >> 1)]
    e += [(w2 >> 1) - w6, -w1 + w7 + w5 + (w5 >> 1), w2 + (w6 >> 1), w3 + w5 + w1 + (w1 >> 1)]
    f = [e[0] + e[6], e[1] + (e[7] >> 2), e[2] + e[4], e[3] + (e[5] >> 2)]
    f += [e[2] - e[4], (e[3] >> 2) - e[5], e[0] - e[6], e[7] - (e[1] >> 2)]
    g = (f[0] + f[7], f[2] + f[5], f[4] + f[3], f[6] + f[1], f[6] - f[1], f[4] - f[3], f[2] - f[5], f[0] - f[7])
    return [*e, *f, np.stack(g, -1)]
