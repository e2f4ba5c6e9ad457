"""Weighted references for the search and sums of the source on the GPU: launches weighting.cu."""

from ...cpu_simd.bundles import Planes
from ...cpu_simd.layout import SUM_SAMPLES, sum_block
from ..runtime.array import DeviceArray, Stream

THREADS, ROWS = 64, 4
SUMMING = 256  # threads


def weight_reference(
    luma: DeviceArray, weights: DeviceArray, pad: int, row0: int, row1: int, weighted: DeviceArray,
    stream: Stream | None = None,
) -> None:  # fmt: skip
    """Not part of the standard: twin of cpu_simd.inter.weighting.weight_reference."""
    height, width = luma.shape[1:]
    y0 = 0 if row0 == 0 else pad + 16 * row0
    y1 = height if pad + 16 * row1 == height - pad else pad + 16 * row1
    grid = (-(-width // (4 * THREADS)), -(-(y1 - y0) // ROWS), 4)
    arguments = [luma, weights, width, height, y0, y1, weighted]
    luma.device.launch("inter/weighting", "weight_reference", grid, (THREADS, ROWS), arguments, stream)


def source_sums(source: Planes, width: int, height: int, block_sums: DeviceArray, stream: Stream | None = None) -> None:
    """Not part of the standard: sums of blocks of the source, and of their squares, int32[2, n]; see weighting.cu.

    source: of coded size; width, height: of the display area. The numbers of cpu_simd.inter.weighting.block_sums.
    """
    side, step = sum_block(width, height)
    threads = -(-width // side) * -(-height // side) * SUM_SAMPLES // 4
    arguments = [*source, source.y.shape[1], width, height, side, step, block_sums]
    source.y.device.launch("inter/weighting", "source_sums", (-(-threads // SUMMING), 3), (SUMMING,), arguments, stream)
