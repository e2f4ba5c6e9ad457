"""Intra refresh on the GPU, macroblocks that become intra: launches intra_refresh.cu."""

import numpy as np

from ...cpu_simd.bundles import CodingTools, Motion
from ..runtime.array import DeviceArray, Stream
from .intra_estimate import intra_estimate

THREADS = 128


def intra_refresh(
    source: DeviceArray,  # Sample[H, W]
    qp: DeviceArray,  # uint8[n_mb]
    slice_first_mb: DeviceArray,  # int32[n_mb]
    tools: CodingTools,
    refresh_columns: DeviceArray,  # int32[2]
    disable_idc: int,
    row0: int,
    row1: int,
    motion: Motion,
    intra_modes: DeviceArray,  # uint8[n_mb, 16]
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.intra.intra_refresh.intra_refresh. All macroblocks are estimated: the
    columns differ between frames of a recording.
    """
    device, mb_width, n_mb = source.device, source.shape[1] // 16, intra_modes.shape[0]
    cost = device.scratch("costs of intra refresh", (n_mb,), np.int32, stream)
    modes = device.scratch("modes of intra refresh", (n_mb, 16), np.uint8, stream)
    intra_estimate(source, qp, cost, 0, slice_first_mb, tools, row0, row1, cost, modes, stream)
    arguments = [slice_first_mb, refresh_columns, disable_idc, mb_width, row0 * mb_width, row1 * mb_width, modes]
    grid = (-(-(row1 - row0) * mb_width // THREADS),)
    arguments += [*motion[:4], intra_modes]
    device.launch("intra/intra_refresh", "intra_refresh", grid, (THREADS,), arguments, stream)
