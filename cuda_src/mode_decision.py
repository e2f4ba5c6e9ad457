"""Mode decision on the card: launches mode_decision.cu."""

from typing import Any

from .device import DeviceArray

WARPS, THREADS = 4, 128
WINDOW_BYTES = 5 * 6 * 12 + 2 * 4 + 2 * 8  # Choice of the kernel


def mode_seed(
    search_cost: DeviceArray,  # int32[>= n_ref, n_mb, 41]
    search_mv: DeviceArray,  # int16[>= n_ref, n_mb, 41, 2]
    n_ref: int,
    lam: int,
    row0: int,
    row1: int,
    mb_width: int,
    ref_idx: DeviceArray,
    mv: DeviceArray,
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.mode_decision.mode_seed."""
    n_mb = search_cost.shape[1]
    arguments = [search_cost, search_mv, n_ref, lam, n_mb, row0 * mb_width, row1 * mb_width, ref_idx, mv]
    grid = (-(-(row1 - row0) * mb_width // THREADS),)
    ref_idx.device.launch("mode_decision", "mode_seed", grid, (THREADS,), arguments, stream)


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
    row0: int,
    row1: int,
    prior_ref_idx: DeviceArray,
    prior_mv: DeviceArray,
    mb_type: DeviceArray,
    sub_mb_type: DeviceArray,
    ref_idx: DeviceArray,
    mv: DeviceArray,
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.mode_decision.mode_decision."""
    height, width = source.shape
    mb_width = width // 16
    arguments = [source, ref_luma, ref_slots, pad, search_cost, search_mv, predictor, intra_cost, slice_first_mb]
    arguments += [lam, qp, int(subme >= 3), max_mv_y, n_ref, kinds, mb_width, height // 16, row0]
    arguments += [prior_ref_idx, prior_mv]
    arguments += [mb_type, sub_mb_type, ref_idx, mv]
    shared = WARPS * (WINDOW_BYTES + n_ref * 41 * 8)
    grid = (-(-mb_width // WARPS), row1 - row0)
    source.device.launch("mode_decision", "mode_decision", grid, (32 * WARPS,), arguments, stream, shared=shared)


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
