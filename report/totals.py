"""Sums over the frames of a stream for the page: types, bits, QPs, vectors, references, transforms."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..decoder.picture import MacroblockArrays
from ..standard.macroblock import MB_TYPE_NAMES

FRAME_TYPES = ("I", "P", "B")
N_QP = 52
# Vectors in the histogram: a bin is one luma sample, the outermost bins hold all beyond.
REACH = 24
BINS = 2 * REACH + 1
MOST_REFERENCES = 16  # ref_idx from there on count together


class Totals:
    """`add` for each frame; `as_dict` for the page. Areas are in 4x4 blocks of luma."""

    def __init__(self, kinds: int = 0) -> None:
        n = len(MB_TYPE_NAMES)
        self.types = np.zeros((len(FRAME_TYPES), n), np.int64)
        self.type_bits = np.zeros((len(FRAME_TYPES), n), np.int64)
        self.kinds = np.zeros((len(FRAME_TYPES), kinds), np.int64)  # bits by kind
        self.other_bits = np.zeros(len(FRAME_TYPES), np.int64)  # of headers and other NAL units
        self.qp = np.zeros((len(FRAME_TYPES), N_QP), np.int64)
        self.transform_8x8 = np.zeros(len(FRAME_TYPES), np.int64)
        self.vectors = np.zeros((BINS, BINS), np.int64)  # area by y, x
        self.lengths = np.zeros(REACH + 1, np.int64)  # area by length in whole luma samples
        self.references = np.zeros((2, MOST_REFERENCES), np.int64)  # area by list, ref_idx

    def add(
        self, frame_type: str, bits: int, mbs: MacroblockArrays, motion: Mapping[str, np.ndarray],
        kinds: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """A frame of `bits` bits; motion: as packing.py gives it; kinds: int[kinds, n] bits by kind of each macroblock."""
        k, n = FRAME_TYPES.index(frame_type), len(MB_TYPE_NAMES)
        self.types[k] += np.bincount(mbs.mb_type, minlength=n)
        self.type_bits[k] += np.bincount(mbs.mb_type, mbs.bits, n).astype(np.int64)
        self.other_bits[k] += bits - int(mbs.bits.sum())
        self.qp[k] += np.bincount(mbs.qp, minlength=N_QP)[:N_QP]
        self.transform_8x8[k] += int(mbs.transform_8x8.sum())
        if kinds is not None:
            self.kinds[k] += kinds.sum(axis=1)
        self._add_motion(motion["vector"].reshape(-1, 2).astype(np.int32), motion["area"])
        for direction in range(2):
            found = mbs.ref_idx[:, direction]
            index = np.minimum(found[found >= 0], MOST_REFERENCES - 1)
            self.references[direction] += 4 * np.bincount(index, minlength=MOST_REFERENCES)

    def _add_motion(self, vectors: np.ndarray, area: np.ndarray) -> None:
        whole = np.clip((vectors + 2) >> 2, -REACH, REACH) + REACH
        places = np.bincount(whole[:, 1] * BINS + whole[:, 0], area, BINS * BINS)
        self.vectors += places.astype(np.int64).reshape(BINS, BINS)
        lengths = np.minimum(np.sqrt((vectors * vectors).sum(axis=1)) / 4 + 0.5, REACH).astype(np.int64)
        self.lengths += np.bincount(lengths, area, REACH + 1).astype(np.int64)

    def as_dict(self) -> dict[str, Any]:
        """Lists by name, for JSON."""
        return {name: array.tolist() for name, array in vars(self).items()} | {"reach": REACH}
