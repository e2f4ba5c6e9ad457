"""Search centres on the GPU: launches search_centre.cu."""

from typing import Any

from ..cpu_simd.layout import COARSE_PAD
from .runtime.device import DeviceArray

WARPS, WIDE, HIGH = 8, 4, 4
WORDS, ROWS = 8, 16  # of a block of threads


def subsample(
    source: DeviceArray,  # uint8[H, W]
    reference: DeviceArray,  # uint8[H + 2 pad, W + 2 pad]
    pad: int,
    row0: int,
    row1: int,
    coarse_source: DeviceArray,  # uint8[H / 4 + 64, W / 4 + 64]
    coarse_reference: DeviceArray,
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.search_centre.subsample."""
    height, width = coarse_source.shape
    y0 = 0 if row0 == 0 else COARSE_PAD + 4 * row0
    y1 = height if 4 * row1 == height - 2 * COARSE_PAD else COARSE_PAD + 4 * row1
    arguments = [source, source.shape[1], reference, reference.shape[1], pad, coarse_source, coarse_reference]
    arguments += [width, height, y0, y1]
    grid = (-(-width // (4 * WORDS)), -(-(y1 - y0) // ROWS), 2)
    source.device.launch("search_centre", "subsample", grid, (WORDS, ROWS), arguments, stream)


def search_centre(
    source: DeviceArray,  # uint8[H, W]
    reference: DeviceArray,  # uint8[H + 2 pad, W + 2 pad]
    pad: int,
    coarse_source: DeviceArray,
    coarse_reference: DeviceArray,
    previous_ref_idx: DeviceArray,  # int8[n_mb, 4]
    previous_mv: DeviceArray,  # int16[n_mb, 16, 2], quarter samples
    distance: int,
    qp: DeviceArray,  # uint8[n_mb]
    merange: int,
    max_mv_y: int,
    row0: int,
    row1: int,
    centre: DeviceArray,  # int16[n_mb, 2], integer samples
    predictor: DeviceArray,  # int16[n_mb, 2], quarter samples
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.search_centre.search_centre."""
    height, width = source.shape
    arguments = [source, reference, width, height, pad, coarse_source, coarse_reference, previous_ref_idx, previous_mv]
    arguments += [distance, qp, merange, max_mv_y, row0, row1, centre, predictor]
    grid = (-(-width // (16 * WIDE)), -(-(row1 - row0) // HIGH))
    source.device.launch("search_centre", "search_centre", grid, (32 * WARPS,), arguments, stream)
