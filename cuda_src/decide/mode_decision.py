"""Mode decision on the GPU: launches mode_decision.cu."""

import numpy as np

from ...cpu_simd.bundles import DecisionSettings, LumaReferences, Motion, OtherCosts, Searches
from ...cpu_simd.decisions.common import BY_COST
from ..runtime.array import DeviceArray, Stream

WARPS = 8
MARKING = 128  # threads of a block of mark_skipped
TILE = 8  # macroblock columns of a tile
TILE_ROWS = 1, 2, 4
MV_CACHE = 30  # 5 rows of 6 blocks for the prediction, block at (by + 1, bx + 1): row above, left column, own blocks
MV_CACHE_BYTES, CACHE_BYTES = 4 * MV_CACHE * 8, 1424  # of the mv_caches of a warp, of MacroblockCache in mode_memory.cuh
FIXED_BYTES = 9 << 10  # static shared memory of the kernel, and the reserve of a block


def mode_decision(
    source: DeviceArray,  # Sample[H, W]
    references: LumaReferences,
    searches: Searches,
    other_costs: OtherCosts,
    slice_first_mb: DeviceArray,  # int32[n_mb]
    qp: DeviceArray,  # uint8[n_mb]
    settings: DecisionSettings,
    progress: object,  # for the CPU; not used here
    row0: int,
    row1: int,
    motion: Motion,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.decide.mode_decision.mode_decision."""
    n_ref = references.n_ref
    height, width = source.shape
    mb_width, mb_height = width // 16, height // 16
    device, n_mb = source.device, mb_width * mb_height
    slot = CACHE_BYTES + -(-n_ref * 41 * 8 // 16) * 16
    mv_caches = (WARPS - 1) * MV_CACHE_BYTES
    most = min(device.tile_rows, max(1, (device.shared_limit - FIXED_BYTES - mv_caches) // (TILE * slot)))
    tile_rows = max(rows for rows in TILE_ROWS if rows <= most)
    tiles_x, tiles_y = -(-(mb_width + tile_rows - 1) // TILE), -(-(row1 - row0) // tile_rows)
    tiles = tiles_x * tiles_y
    words = 32 * (1 + 2 * tiles + n_mb)
    inboxes = device.scratch("messages of mode decision", (words,), np.int32, stream, zeros=True)
    arguments = [source, references.luma, references.slots, references.pad, *searches, *other_costs, slice_first_mb]
    arguments += [qp, int(settings.subme >= 3), int(settings.subme >= BY_COST), settings.psy_rd, settings.max_mv_y, n_ref]
    arguments += [settings.partition_mask, mb_width, mb_height, row0, row1, tile_rows, tiles_x, slot, inboxes, *motion[:4]]
    shared = mv_caches + TILE * tile_rows * slot
    device.launch("decide/mode_decision", "mode_decision", (tiles,), (32 * WARPS,), arguments, stream, shared=shared)


def mark_skipped(
    slice_first_mb: DeviceArray,
    ref_idx: DeviceArray,
    mv: DeviceArray,
    cbp: DeviceArray,
    mb_width: int,
    row0: int,
    row1: int,
    mb_type: DeviceArray,
    stream: Stream | None = None,
) -> None:
    """8.4.1.1: twin of cpu_simd.decide.mode_decision.mark_skipped."""
    arguments = [slice_first_mb, ref_idx, mv, cbp, mb_width, row0 * mb_width, row1 * mb_width, mb_type]
    grid = (-(-(row1 - row0) * mb_width // MARKING),)
    mb_type.device.launch("decide/mode_decision", "mark_skipped", grid, (MARKING,), arguments, stream)
