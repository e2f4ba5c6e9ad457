"""Intra macroblocks on the GPU, coding and reconstruction: launches intra.cu."""

import numpy as np

from ...cpu_simd.bundles import CodingTools, IntraChoice, Planes, Quantiser, Residual, SliceOrder
from ...cpu_simd.decisions.common import BY_COST, BY_COST_INTRA
from ..residual.inter_residual import fraction
from ..runtime.array import DeviceArray, Stream

PARTS = 8  # blocks of threads a row
THREADS_OF_ONE, THREADS_OF_CHOICE = 128, 160  # of a block, with one transform and with the choice of it
# By whether modes are given and whether Intra_8x8 may be chosen: the kernel and its threads
KERNELS = {
    (False, False): ("intra", THREADS_OF_ONE),
    (True, False): ("intra_fixed_modes", THREADS_OF_ONE),
    (False, True): ("intra_8x8", THREADS_OF_CHOICE),
    (True, True): ("intra_fixed_modes_8x8", THREADS_OF_ONE),
}
PACKETS = 32  # 32-bit words of `progress` before the packets of macroblocks
PACKET = 9  # 64-bit words of a macroblock: the last row of luma, of Cb, of Cr, the last row of modes


def intra(
    source: Planes,
    slice_order: SliceOrder,  # `progress` is for the CPU; not used here
    n_ref: int,
    intra_modes: DeviceArray,  # uint8[n_mb, 16], used if n_ref > 0
    first_mb: int,  # whole rows of macroblocks
    end_mb: int,
    intra_choice: IntraChoice,
    quantiser: Quantiser,
    tools: CodingTools,
    rec: Planes,
    residual: Residual,
    stream: Stream | None = None,
) -> None:
    """8.3, 8.5: twin of cpu_simd.intra.intra.intra."""
    device, (height, width) = source.y.device, source.y.shape
    mb_width, mb_height = width // 16, height // 16
    row0, rows = first_mb // mb_width, (end_mb - first_mb) // mb_width
    progress = device.scratch("intra progress", (PACKETS + 2 * PACKET * mb_width * mb_height,), np.int32, stream, zeros=True)
    arguments = [*source, slice_order.first_mb, quantiser.chroma_offset, fraction(tools.dead_zone_intra), int(n_ref > 0)]
    arguments += [intra_modes, row0, mb_width, *intra_choice, quantiser.qp, *rec, *residual, progress]
    weighed = bool(tools.trellis and tools.cabac)
    by_cost = weighed and not quantiser.has_scaling_lists and tools.subme >= (BY_COST_INTRA if n_ref else BY_COST)
    kernel, threads = KERNELS[n_ref > 0 and not by_cost, bool(tools.transform_8x8_mode and tools.intra_8x8)]
    if by_cost:
        kernel += "_cost"
    elif weighed and not n_ref:
        kernel += "_trellis"
    if quantiser.has_scaling_lists:
        kernel, arguments = kernel + "_lists", [*arguments, quantiser.scaling]
    device.launch("intra/intra", kernel, (rows * PARTS,), (threads,), arguments, stream)
