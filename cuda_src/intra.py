"""Intra macroblocks on the GPU, coding and reconstruction: launches intra.cu."""

from typing import Any

import numpy as np

from .runtime.device import DeviceArray

THREADS, PARTS = 128, 8
PACKETS, PACKET = 32, 18  # 32-bit words of `progress` before the packets of macroblocks, and of each packet


def intra(
    src_y: DeviceArray,  # uint8[H, W]
    src_u: DeviceArray,
    src_v: DeviceArray,
    slice_first_mb: DeviceArray,
    chroma_qp_offset: int,
    n_ref: int,
    intra_modes: DeviceArray,  # uint8[n_mb, 16], used if n_ref > 0
    first_mb: int,  # whole rows of macroblocks
    end_mb: int,
    mb_type: DeviceArray,
    intra4x4_mode: DeviceArray,
    intra16x16_mode: DeviceArray,
    intra_chroma_mode: DeviceArray,
    qp: DeviceArray,
    rec_y: DeviceArray,
    rec_u: DeviceArray,
    rec_v: DeviceArray,
    levels: DeviceArray,  # int16[n_mb, 27, 16]
    total_coeff: DeviceArray,  # uint8[n_mb, 24]
    cbp: DeviceArray,
    stream: Any = None,
) -> None:
    """8.3, 8.5: twin of cpu_simd.intra.intra."""
    device, mb_width = src_y.device, src_y.shape[1] // 16
    row0, rows = first_mb // mb_width, (end_mb - first_mb) // mb_width
    mb_height = src_y.shape[0] // 16
    progress = device.scratch("intra progress", (PACKETS + PACKET * mb_width * mb_height,), np.int32, stream, zeros=True)
    arguments = [src_y, src_u, src_v, slice_first_mb, chroma_qp_offset, intra_modes, row0, mb_width, mb_type]
    arguments += [intra4x4_mode, intra16x16_mode, intra_chroma_mode, qp, rec_y, rec_u, rec_v, levels, total_coeff, cbp]
    arguments += [progress]
    device.launch("intra", "intra_given" if n_ref else "intra", (rows * PARTS,), (THREADS,), arguments, stream)
