"""Mode decision on the card: launches mode_decision.cu."""

from typing import Any

from .device import DeviceArray

TILE_WIDTH, TILE_HEIGHT, SLANT = 16, 10, 1  # as cpu_simd/mode_decision.py
WINDOW_BYTES = 4 * 30 * 8  # a row's windows
FIXED_BYTES = 12 << 10  # static shared memory of the kernel, and what a block takes besides
THREADS = 128


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
    device = source.device
    tiles_x = -(-(mb_width + SLANT * (TILE_HEIGHT - 1)) // TILE_WIDTH)
    tiles_y = -(-row1 // TILE_HEIGHT) - row0 // TILE_HEIGHT
    sizes = [TILE_HEIGHT * (WINDOW_BYTES + buffers * 84 * n_ref * 4) for buffers in (1, 2)]
    buffers = 2 if sizes[1] + FIXED_BYTES <= device.shared_limit else 1
    arguments = [source, ref_luma, ref_slots, pad, search_cost, search_mv, predictor, intra_cost, slice_first_mb]
    arguments += [lam, qp, int(subme >= 3), max_mv_y, n_ref, kinds, mb_width, mb_height, row0, row1, tiles_x, buffers]
    arguments += [mb_type, sub_mb_type, ref_idx, mv]
    grid, block = (tiles_x * tiles_y,), (64 * TILE_HEIGHT,)
    device.launch("mode_decision", "mode_decision", grid, block, arguments, stream, shared=sizes[buffers - 1])


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
