"""Paper 004, to compare: deblocking of whole frames as a wavefront, in the standard's order; launches wavefront.cu."""

from collections.abc import Sequence

import numpy as np
from h264lite.cpu_simd.bundles import Deblocking, Planes, Quantiser, StrengthData
from h264lite.cuda_src.loopfilter.deblock import interiors, strengths
from h264lite.cuda_src.runtime.array import DeviceArray, Stream

MODULE = "papers/wavefront"


def deblock(
    planes: Sequence[DeviceArray],  # uint8[H, W] and two of uint8[H/2, W/2], before deblocking
    state: Sequence[DeviceArray],  # the members of StrengthData, qp
    offsets: Sequence[int],  # of chroma QP, alpha, beta
    disable_idc: int,
    slice_first_mb: DeviceArray,
    out: Sequence[DeviceArray],  # uint8[H + 2 pad, W + 2 pad] and half of it twice: the interior is written
    stream: Stream | None = None,
) -> None:
    """8.7: the frames that cuda_src.loopfilter.deblock.deblock gives."""
    device, (height, width) = planes[0].device, planes[0].shape
    mb_width, mb_height = width // 16, height // 16
    *strength_data, qp = state
    chroma_qp, alpha, beta = offsets
    quantiser, deblocking = Quantiser(qp, chroma_qp), Deblocking(alpha, beta, disable_idc)
    data = StrengthData(*strength_data)
    records = strengths(data, quantiser, deblocking, slice_first_mb, mb_width, 0, mb_height, stream)
    targets = interiors(Planes(*out), width)
    progress = device.scratch("wavefront progress", (mb_height,), np.int32, stream).fill(0, stream)
    device.launch(MODULE, "deblock_copy", (mb_width, mb_height), (32,), [*planes, mb_width, *targets], stream)
    device.launch(MODULE, "deblock_wavefront", (mb_height,), (32,), [records, mb_width, *targets, progress], stream)
