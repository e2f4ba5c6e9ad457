"""Costs of half-size frames on the GPU: launches lookahead.cu."""

from typing import Any

from ..cpu_simd.bundles import HalfSize
from ..cpu_simd.decisions import CAMERA_X, CAMERA_Y
from .runtime.device import DeviceArray

WARPS = 4
CAMERA_THREADS = 128
CANDIDATES = (2 * CAMERA_X + 1) * (2 * CAMERA_Y + 1) + 1  # of lookahead_camera, at most
Motion = tuple[DeviceArray, DeviceArray]


def lookahead_camera(
    current: HalfSize,
    reference: HalfSize,
    totals: DeviceArray,  # int32[CANDIDATES], scratch
    camera: DeviceArray,  # int16[2]
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead_camera, with scratch memory."""
    find_motion(current.tiny, reference.tiny, totals, camera, stream)


def find_motion(here: DeviceArray, there: DeviceArray, totals: DeviceArray, camera: DeviceArray, stream: Any = None) -> None:
    """Twin of cpu_simd.search_centre.whole_motion in coarse samples; here, there: uint8[h, w]; see lookahead_camera."""
    height, width = here.shape
    count = (2 * min(CAMERA_X, width // 2) + 1) * (2 * min(CAMERA_Y, height // 2) + 1) + 1
    launch = camera.device.launch
    arguments = [here, there, width, height, totals]
    launch("lookahead", "camera_totals", (count,), (CAMERA_THREADS,), arguments, stream)
    launch("lookahead", "camera_choice", (1,), (32,), [totals, width, height, count, camera], stream)


def lookahead_search(
    current: HalfSize,
    reference: HalfSize,
    camera: DeviceArray,  # int16[2]
    row0: int,
    row1: int,
    vector: DeviceArray,  # int16[n_mb, 2]
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead_search."""
    mb_height, mb_width = current.tiny.shape
    frames = [current.planes, current.coarse, reference.planes, reference.coarse]
    arguments = [*frames, camera, mb_width, mb_height, row0, row1, vector]
    camera.device.launch("lookahead", "lookahead_search", *_warps(mb_width, row0, row1), arguments, stream)


def lookahead_refine(
    current: HalfSize,
    reference: HalfSize,
    vector: DeviceArray,  # int16[n_mb, 2]
    row0: int,
    row1: int,
    mv: DeviceArray,  # int16[n_mb, 2]
    cost: DeviceArray,  # uint16[n_mb]
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead_refine."""
    mb_height, mb_width = current.tiny.shape
    arguments = [current.planes, reference.planes, vector, mb_width, mb_height, row0, row1, mv, cost]
    cost.device.launch("lookahead", "lookahead_refine", *_warps(mb_width, row0, row1), arguments, stream)


def lookahead_intra(current: HalfSize, row0: int, row1: int, cost: DeviceArray, stream: Any = None) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead_intra."""
    mb_width = current.tiny.shape[1]
    arguments = [current.planes, mb_width, row0, row1, cost]
    cost.device.launch("lookahead_intra", "lookahead_intra", *_warps(mb_width, row0, row1), arguments, stream)


def lookahead_both(
    frames: tuple[HalfSize, HalfSize, HalfSize],
    position: int,
    motions: tuple[Motion, Motion, Motion],
    row0: int,
    row1: int,
    cost: DeviceArray,  # uint16[n_mb]
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead_both."""
    mb_height, mb_width = frames[0].tiny.shape
    (mv0, cost0), (mv1, cost1), (direct, _) = motions
    planes = [frame.planes for frame in frames]
    arguments = [*planes, position, mv0, cost0, mv1, cost1, direct, mb_width, mb_height, row0, row1, cost]
    blocks = -(-4 * (row1 - row0) * mb_width // (32 * WARPS))
    cost.device.launch("lookahead", "lookahead_both", (blocks,), (32 * WARPS,), arguments, stream)


def _warps(mb_width: int, row0: int, row1: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Grid and block of a kernel with a warp a macroblock."""
    return (-(-(row1 - row0) * mb_width // WARPS),), (32 * WARPS,)
