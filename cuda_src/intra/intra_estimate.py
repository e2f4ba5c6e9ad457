"""Estimates the best intra modes of macroblocks and their cost on the GPU: launches intra_estimate.cu."""

from ...cpu_simd.bundles import CodingTools
from ...cpu_simd.decisions.common import QUICK, QUIET
from ..runtime.array import DeviceArray, Stream

WARPS = 4


def intra_estimate(
    source: DeviceArray,  # Sample[H, W]
    qp: DeviceArray,  # uint8[n_mb]
    search_cost: DeviceArray,  # int32[>= n_ref, n_mb, 41]
    n_ref: int,
    slice_first_mb: DeviceArray,  # int32[n_mb]
    tools: CodingTools,
    row0: int,
    row1: int,
    intra_cost: DeviceArray,  # int32[n_mb]
    intra_modes: DeviceArray,  # uint8[n_mb, 16]
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.intra.intra_estimate.intra_estimate."""
    mb_width = source.shape[1] // 16
    grid = (-(-mb_width // (2 * WARPS)), row1 - row0)
    arguments = [source, mb_width, qp, search_cost, n_ref, intra_cost.size, slice_first_mb, row0]
    arguments += [QUIET if tools.subme <= QUICK else 0, intra_cost, intra_modes]
    kernel = "intra_estimate_8x8" if tools.transform_8x8_mode and tools.intra_8x8 else "intra_estimate"
    source.device.launch("intra/intra_estimate", kernel, grid, (32 * WARPS,), arguments, stream)
