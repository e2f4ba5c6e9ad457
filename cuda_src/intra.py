"""Intra macroblocks on the GPU, coding and reconstruction: launches intra.cu."""

from typing import Any

import numpy as np

from ..cpu_simd.bundles import CodingTools, IntraChoice, Planes, Quantiser, Residual
from .inter_residual import fraction
from .runtime.device import DeviceArray

PARTS = 8
# By whether modes are given and by transform_8x8_mode: the kernel and its threads
KERNELS = {
    (False, 0): ("intra", 128),
    (True, 0): ("intra_given", 128),
    (False, 1): ("intra_8x8", 160),
    (True, 1): ("intra_given_8x8", 128),
}
PACKETS, PACKET = 32, 18  # 32-bit words of `progress` before the packets of macroblocks, and of each packet


def intra(
    source: Planes,
    slice_first_mb: DeviceArray,
    n_ref: int,
    intra_modes: DeviceArray,  # uint8[n_mb, 16], used if n_ref > 0
    first_mb: int,  # whole rows of macroblocks
    end_mb: int,
    intra_choice: IntraChoice,
    quantiser: Quantiser,
    tools: CodingTools,
    rec: Planes,
    residual: Residual,
    stream: Any = None,
) -> None:
    """8.3, 8.5: twin of cpu_simd.intra.intra."""
    device, (height, width) = source.y.device, source.y.shape
    mb_width, mb_height = width // 16, height // 16
    row0, rows = first_mb // mb_width, (end_mb - first_mb) // mb_width
    progress = device.scratch("intra progress", (PACKETS + PACKET * mb_width * mb_height,), np.int32, stream, zeros=True)
    arguments = [*source, slice_first_mb, quantiser.chroma_offset, fraction(tools.dead_zone_intra), intra_modes]
    arguments += [row0, mb_width, *intra_choice, quantiser.qp, *rec, *residual, progress]
    kernel, threads = KERNELS[n_ref > 0, tools.transform_8x8_mode]
    kernel += "_trellis" if n_ref == 0 and tools.trellis and tools.cabac else ""
    device.launch("intra", kernel, (rows * PARTS,), (threads,), arguments, stream)
