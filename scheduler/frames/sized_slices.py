"""Arrays of frames whose slices are cut by their sizes: where slices begin, and what the entropy stage writes about them.

Slices are then no bands of rows: there may be as many as macroblocks, and they differ from frame to frame. The stages read
their first macroblocks from arrays that are written anew for each frame; so one frame at a time is coded, and its slice data
is written on the host, which measures how many bits each macroblock takes.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ...cpu_simd.layout import ENTRY_BYTES, HEADER_BITS
from ..bundles import State
from ..coding_settings import CodingSettings
from .frame import Frame


class SizedSlices:
    """The arrays of the frame in flight, by their names in scheduler/arrays.py."""

    def __init__(self, settings: CodingSettings, put_first: Callable[[np.ndarray], None]) -> None:
        """put_first: copies `slice_first_mb` to the memory of the stages."""
        n_mb = settings.n_mb
        self._put_first = put_first
        self._params = np.zeros(HEADER_BITS + n_mb, np.int32)
        self._starts = np.zeros(n_mb + 1, np.int32)
        self._first, self._sizes, self._bins, self._ends = (np.zeros(n_mb, np.int32) for _ in range(4))
        self._data = np.zeros(2 * n_mb * ENTRY_BYTES, np.uint8)  # pages exist once written

    def enter(self, frame: Frame) -> None:
        """The next frame, which has its spec and headers."""
        spec, bits = frame.spec, frame.headers.bits
        first, end = np.array(spec.slices).T
        self._first[:] = np.repeat(first, end - first)
        self._put_first(self._first)
        self._starts[: len(first)], self._starts[len(first)] = first, end[-1]
        self._params[:2] = spec.qp, spec.cabac_init_idc
        self._params[HEADER_BITS : HEADER_BITS + len(bits)] = bits
        frame.slice_data, frame.mb_ends, frame.has_sized_slices = self._data, self._ends, True
        vars(frame).update(slice_sizes=self._sizes, slice_bins=self._bins)

    def state(self) -> State:
        """Arguments of the entropy stage in place of the frame's."""
        return {
            "slice_first_mb": self._first, "slice_starts": self._starts, "frame_params": self._params, "mb_ends": self._ends,
            "slice_sizes": self._sizes, "slice_bins": self._bins, "slice_data": self._data,
        }  # fmt: skip


def bits_of_macroblocks(ends: np.ndarray, slices: Sequence[tuple[int, int]], header_bits: Sequence[int]) -> np.ndarray:
    """int64[n_mb]: bits of each macroblock, of mb_ends; headers are counted for none."""
    before = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    before[[first for first, _ in slices]] = header_bits
    return np.maximum(ends - before, 0)
