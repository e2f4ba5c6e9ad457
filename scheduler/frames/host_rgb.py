"""An RGB frame on the host as a source: converted to the planes of a frame by bands of rows."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ...cpu_simd.bundles import Planes
from ...standard.sample_format import Sample, chroma_shape

Part = Callable[[], None]
LEAST_ROWS = 64  # of chroma in a band: fewer cost more to hand out than to convert


class RgbFrame(NamedTuple):
    """width x height samples of one of cpu_simd.layout.RGB_DTYPES; offsets: of red, green and blue, then step and pitch, in
    elements.
    """

    dtype: str
    width: int
    height: int
    memory: np.ndarray
    offsets: tuple[int, int, int, int, int]
    low: float  # the value of black
    high: float  # the value of white
    owner: object  # keeps the memory
    checked: bool = False  # samples far outside of the range are refused

    def convert(
        self, planes: Sequence[np.ndarray], run: Callable[[Sequence[Part]], None] | None = None, threads: int = 1
    ) -> bool:
        """Write the display area of planes; whether samples are far outside of the range. run: runs parts concurrently."""
        from ...cpu_simd.source.convert import HostRgb, load_rgb  # frames on a GPU need none of its kernels

        outside, rows = np.zeros(1, np.int32), self.display[1][0]
        rgb = HostRgb(self.memory, *self.offsets, np.float32(self.low), scale(self.low, self.high), outside)
        bands = max(1, min(threads, rows // LEAST_ROWS)) if run is not None else 1
        cuts = [rows * k // bands for k in range(bands + 1)]
        out = Planes(*planes)
        parts = [partial(load_rgb, self.dtype, rgb, self.width, self.height, a, b, out) for a, b in zip(cuts, cuts[1:])]
        if run is not None and bands > 1:
            run(parts)
        else:
            for part in parts:
                part()
        return bool(outside[0])

    @property
    def display(self) -> tuple[tuple[int, int], ...]:
        """(height, width) of the planes of display size."""
        chroma = chroma_shape(self.height, self.width)
        return (self.height, self.width), chroma, chroma

    def planes(self) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], bool]:
        """(new planes of display size, whether samples are far outside of the range)."""
        y, u, v = (np.empty(shape, Sample) for shape in self.display)
        planes = y, u, v
        return planes, self.convert(planes)


def scale(low: float, high: float) -> np.float32:
    """float32: 255 / (high - low), by which samples are multiplied."""
    return np.float32(255 / (high - low))
