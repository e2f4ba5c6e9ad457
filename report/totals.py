"""Sums over the frames of a stream for the page: types, bits, QPs, vectors, references, transforms."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..analysis.frame import BIT_KINDS, BIT_UNIT, AnalysedFrame
from ..standard.macroblock import MB_TYPE_NAMES

FRAME_TYPES = ("I", "P", "B")
N_QP = 52
# Vectors in the histogram: a bin is one luma sample, the outermost bins hold all beyond.
REACH = 24
BINS = 2 * REACH + 1
MOST_REFERENCES = 16  # ref_idx from there on count together


class Totals:
    """`add` for each frame; `as_dict` for the page. Areas are in 4x4 blocks of luma."""

    def __init__(self) -> None:
        types, n = len(FRAME_TYPES), len(MB_TYPE_NAMES)
        self.types = np.zeros((types, n), np.int64)
        self.type_bits = np.zeros((types, n), np.int64)
        self.kinds = np.zeros((types, len(BIT_KINDS)), np.int64)  # in 1 / BIT_UNIT bits
        self.header_bits = np.zeros(types, np.int64)  # outside of slice data
        self.qp = np.zeros((types, N_QP), np.int64)
        self.transform_8x8 = np.zeros(types, np.int64)
        self.vectors = np.zeros((BINS, BINS), np.int64)  # area by y, x
        self.lengths = np.zeros(REACH + 1, np.int64)  # area by length in whole luma samples
        self.references = np.zeros((2, MOST_REFERENCES), np.int64)  # area by list, ref_idx

    def add(self, frame: AnalysedFrame, sections: Mapping[str, np.ndarray]) -> None:
        """A frame with its sections as `frame_data.sections_of` gives them."""
        k, n, mbs = FRAME_TYPES.index(frame.frame_type), len(MB_TYPE_NAMES), frame.macroblocks
        types = mbs.mb_type.ravel()
        self.types[k] += np.bincount(types, minlength=n)
        self.type_bits[k] += np.bincount(types, mbs.bits.ravel(), n).astype(np.int64)
        self.kinds[k] += mbs.bits_by_kind.sum(axis=(0, 1), dtype=np.int64)
        self.header_bits[k] += frame.header_bits
        self.qp[k] += np.bincount(mbs.qp.ravel(), minlength=N_QP)[:N_QP]
        self.transform_8x8[k] += int(mbs.transform_8x8.sum())
        self._add_vectors(sections["vector"].reshape(-1, 2).astype(np.int32), sections["area"])
        for direction in range(2):
            indices = sections["indices"][:, direction]
            index = np.minimum(indices[indices >= 0], MOST_REFERENCES - 1)
            self.references[direction] += 4 * np.bincount(index, minlength=MOST_REFERENCES)

    def _add_vectors(self, vectors: np.ndarray, area: np.ndarray) -> None:
        whole = np.clip((vectors + 2) >> 2, -REACH, REACH) + REACH
        counts = np.bincount(whole[:, 1] * BINS + whole[:, 0], area, BINS * BINS)
        self.vectors += counts.astype(np.int64).reshape(BINS, BINS)
        lengths = np.minimum(np.sqrt((vectors * vectors).sum(axis=1)) / 4 + 0.5, REACH).astype(np.int64)
        self.lengths += np.bincount(lengths, area, REACH + 1).astype(np.int64)

    def as_dict(self) -> dict[str, Any]:
        """Lists by name, for JSON."""
        return {name: array.tolist() for name, array in vars(self).items()} | {"reach": REACH, "unit": BIT_UNIT}
