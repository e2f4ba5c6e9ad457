"""Mode decision on the card: launches mode_decision.cu."""

from typing import Any

import numpy as np

from .device import DeviceArray

WARPS, THREADS = 4, 128
BLOCKS_AN_SM = 4  # all of them have to run at once
WINDOW_BYTES, MEMORY_BYTES = 4 * 30 * 8, 480  # windows and Memory of the kernel
SHARED_BYTES = 220 << 10  # of a multiprocessor, less what each block takes besides


def mode_decision(
    source: DeviceArray,  # uint8[H, W]
    ref_luma: DeviceArray,  # uint8[n_slots, 4, H + 2 pad, W + 2 pad]
    ref_slots: DeviceArray,  # int32[n_ref]
    pad: int,
    search_cost: DeviceArray,  # int32[>= n_ref, n_mb, 41]
    search_mv: DeviceArray,  # int16[>= n_ref, n_mb, 41, 2]
    predictor: DeviceArray,  # int16[>= n_ref, n_mb, 2]
    intra_cost: DeviceArray,  # int32[n_mb]
    slice_first_mb: DeviceArray,  # int32[mb_height]
    lam: int,
    qp: int,
    subme: int,
    max_mv_y: int,
    n_ref: int,
    kinds: int,
    progress: Any,  # the CPU's; here not used
    row0: int,
    row1: int,
    mb_type: DeviceArray,
    sub_mb_type: DeviceArray,
    ref_idx: DeviceArray,
    mv: DeviceArray,
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.mode_decision.mode_decision."""
    height, width = source.shape
    mb_width, mb_height = width // 16, height // 16
    device, n_mb = source.device, mb_width * mb_height
    mb0, mb1 = row0 * mb_width, row1 * mb_width
    blocks = min(BLOCKS_AN_SM * device.multiprocessors, -(-(mb1 - mb0) // WARPS))
    told = device.scratch("told in mode decision", (1 + 2 * n_mb,), np.int32, stream)
    arguments = [search_cost, search_mv, n_ref, lam, n_mb, mb0, mb1, blocks, told, ref_idx, mv]
    device.launch("mode_decision", "mode_seed", (-(-(mb1 - mb0) // THREADS),), (THREADS,), arguments, stream)
    share = -(-(mb1 - mb0) // (WARPS * blocks))  # macroblocks a warp
    slot = MEMORY_BYTES + -(-n_ref * 41 * 8 // 16) * 16
    head = WINDOW_BYTES + -(-share // 4) * 16
    slots = max(1, min(share, (SHARED_BYTES // (BLOCKS_AN_SM * WARPS) - head) // slot))
    arguments = [source, ref_luma, ref_slots, pad, search_cost, search_mv, predictor, intra_cost, slice_first_mb]
    arguments += [lam, qp, int(subme >= 3), max_mv_y, n_ref, kinds, mb_width, mb_height, row0, row1, share, slots, slot]
    arguments += [told, mb_type, sub_mb_type, ref_idx, mv]
    shared = WARPS * (head + slots * slot)
    device.launch("mode_decision", "mode_decision", (blocks,), (32 * WARPS,), arguments, stream, shared=shared, alone=True)


def mark_skipped(
    slice_first_mb: DeviceArray,
    ref_idx: DeviceArray,
    mv: DeviceArray,
    cbp: DeviceArray,
    mb_width: int,
    row0: int,
    row1: int,
    mb_type: DeviceArray,
    stream: Any = None,
) -> None:
    """8.4.1.1: twin of cpu_simd.mode_decision.mark_skipped."""
    arguments = [slice_first_mb, ref_idx, mv, cbp, mb_width, row0 * mb_width, row1 * mb_width, mb_type]
    grid = (-(-(row1 - row0) * mb_width // THREADS),)
    mb_type.device.launch("mode_decision", "mark_skipped", grid, (THREADS,), arguments, stream)
