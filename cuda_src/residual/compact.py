"""Packs the levels of coded 4x4 blocks for the download: launches compact.cu. cpu_simd/residual/expand.py unpacks them."""

import numpy as np

from ..runtime.array import DeviceArray, Stream

THREADS, SEGMENT = 256, 32


def index_length(mb_width: int, mb_height: int) -> int:
    """uint32 words of the index: blocks before each row, blocks in all (word mb_height), a mask a macroblock."""
    return mb_height + 1 + mb_width * mb_height


def compact(
    mb_type: DeviceArray,
    cbp: DeviceArray,
    total_coeff: DeviceArray,  # uint8[n_mb, 24]
    levels: DeviceArray,  # int16[n_mb, 27, 16]
    mb_width: int,
    index: DeviceArray,  # uint32[index_length]
    blocks: DeviceArray,  # int16[27 n_mb, 16]: room for all; the first index[mb_height] are written
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: a mask of the blocks that may have levels, and these blocks packed.

    In order of macroblocks and of `levels`; none of I_PCM and skipped ones. The host reads the index, then that many blocks.
    """
    device, mb_height = levels.device, levels.shape[0] // mb_width
    counts = device.scratch("compact counts", (mb_height,), np.uint32, stream)
    arguments = [mb_type, cbp, total_coeff, mb_width, mb_height, counts, index]
    device.launch("residual/compact", "compact_masks", (mb_height,), (THREADS,), arguments, stream)
    grid = (-(-mb_width // SEGMENT), mb_height)
    arguments = [levels, mb_width, mb_height, counts, index, blocks]
    device.launch("residual/compact", "compact_levels", grid, (THREADS,), arguments, stream)
