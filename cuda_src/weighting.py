"""A weighted copy of reference 0 on the GPU, for the search: launches weighting.cu."""

from typing import Any

from .runtime.device import DeviceArray

THREADS, ROWS = 64, 4


def weight_reference(
    ref_luma: DeviceArray, ref_slots: DeviceArray, weights: DeviceArray, weighted_slot: int, pad: int, row0: int, row1: int,
    stream: Any = None,
) -> None:  # fmt: skip
    """Not part of the standard: twin of cpu_simd.weighting.weight_reference."""
    height, width = ref_luma.shape[2:]
    y0 = 0 if row0 == 0 else pad + 16 * row0
    y1 = height if pad + 16 * row1 == height - pad else pad + 16 * row1
    grid = (-(-width // (4 * THREADS)), -(-(y1 - y0) // ROWS), 4)
    arguments = [ref_luma, ref_slots, weights, weighted_slot, width, height, y0, y1]
    ref_luma.device.launch("weighting", "weight_reference", grid, (THREADS, ROWS), arguments, stream)
