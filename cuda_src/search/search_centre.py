"""Search centres on the GPU: launches search_centre.cu."""

import numpy as np

from ...cpu_simd.bundles import Coarse, PreviousMotion, SearchStart
from ...cpu_simd.layout import COARSE_PAD
from ...standard.sample_format import Sample
from ..lookahead.lookahead import CAMERA_WORDS, find_motion
from ..runtime.array import DeviceArray, Stream

WARPS, WIDE, HIGH = 8, 4, 4
WORDS, ROWS = 8, 16  # of a block of threads


def subsample(
    source: DeviceArray,  # Sample[H, W]
    reference: DeviceArray,  # Sample[H + 2 pad, W + 2 pad]
    pad: int,
    row0: int,
    row1: int,
    coarse: Coarse,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.search.search_centre.subsample."""
    height, width = coarse.source.shape
    y0 = 0 if row0 == 0 else COARSE_PAD + 4 * row0
    y1 = height if 4 * row1 == height - 2 * COARSE_PAD else COARSE_PAD + 4 * row1
    arguments = [source, source.shape[1], reference, reference.shape[1], pad, *coarse]
    arguments += [width, height, y0, y1]
    grid = (-(-width // (4 * WORDS)), -(-(y1 - y0) // ROWS), 2)
    source.device.launch("search/search_centre", "subsample", grid, (WORDS, ROWS), arguments, stream)


def search_centre(
    source: DeviceArray,  # Sample[H, W]
    reference: DeviceArray,  # Sample[H + 2 pad, W + 2 pad]
    pad: int,
    coarse: Coarse,
    previous: PreviousMotion,
    qp: DeviceArray,  # uint8[n_mb]
    merange: int,
    max_mv_y: int,
    row0: int,
    row1: int,
    start: SearchStart,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.search.search_centre.search_centre."""
    height, width = source.shape
    arguments = [source, reference, width, height, pad, *coarse, *previous, qp, merange, max_mv_y, row0, row1, *start]
    grid = (-(-width // (16 * WIDE)), -(-(row1 - row0) // HIGH))
    source.device.launch("search/search_centre", "search_centre", grid, (32 * WARPS,), arguments, stream)


def camera(coarse: Coarse, camera: DeviceArray, stream: Stream | None = None) -> None:
    """Not part of the standard: twin of cpu_simd.search.search_centre.camera; kernels of the lookahead. camera: int16[2]."""
    scratch = camera.device.scratch
    height, width = ((size - 2 * COARSE_PAD) // 4 for size in coarse.source.shape)
    here, there = (scratch(f"means of {name}", (height, width), Sample, stream) for name in coarse._fields)
    grid, arguments = (-(-height * width // 128), 2), [*coarse, here, there, width, height]
    camera.device.launch("lookahead/half_size", "tiny_sizes", grid, (128,), arguments, stream)
    totals = scratch("totals of camera", (CAMERA_WORDS,), np.int32, stream, zeros=True)
    find_motion(here, there, totals, camera, stream)
