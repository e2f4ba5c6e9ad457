"""Costs of half-size frames on the GPU: launches lookahead.cu, each kernel once for many pairs and triples of frames.

What a launch does is said in a table on the GPU, int64[n, WORDS], a row a job: pointers, and a sum, to which the kernels add.
"""

from typing import NamedTuple

from ...cpu_simd.bundles import HalfSize
from ...cpu_simd.decisions.lookahead import CAMERA_X, CAMERA_Y
from ..runtime.array import DeviceArray, Stream

WARPS = 4
CAMERA_THREADS = 256
CAMERA_WORDS = (2 * CAMERA_X + 1) * (2 * CAMERA_Y + 1) + 2  # a sum for each candidate, and a counter, 0 between launches
WORDS = 16  # of a job, eight bytes each
SUM = WORDS - 1  # its sum, without the macroblocks at the border if there are others
SHARPNESS = SUM - 1  # of a new frame, in its row


class Motion(NamedTuple):
    """Of a frame from another one."""

    mv: DeviceArray  # int16[n_mb, 2]
    cost: DeviceArray  # uint16[n_mb]


class Used(NamedTuple):
    """Cost, vectors and lists of each macroblock between two frames, as of cpu_simd.lookahead.lookahead.lookahead_used."""

    cost: DeviceArray  # uint16[n_mb]
    vectors: DeviceArray  # int16[n_mb, 4]
    lists: DeviceArray  # uint8[n_mb]


class SearchMemory(NamedTuple):
    """What the stages of one job pass on."""

    totals: DeviceArray  # int32[CAMERA_WORDS], zeros
    camera: DeviceArray  # int16[2]
    vector: DeviceArray  # int16[n_mb, 2]


def motion_job(
    current: HalfSize, reference: HalfSize, intra: DeviceArray | None, memory: SearchMemory, out: Motion
) -> list[int]:
    """The row of a job of lookahead_camera, lookahead_search and lookahead_refine -> memory, out.

    intra: uint16[n_mb], costs of the current frame by intra prediction: the sum is of the lesser one of each macroblock.
    """
    of_intra = 0 if intra is None else intra.ptr
    return [
        current.planes.ptr, current.coarse.ptr, current.tiny.ptr,
        reference.planes.ptr, reference.coarse.ptr, reference.tiny.ptr,
        of_intra, memory.totals.ptr, memory.camera.ptr, memory.vector.ptr, out.mv.ptr, out.cost.ptr, 0, 0, 0, 0,
    ]  # fmt: skip


def between_job(
    frames: tuple[HalfSize, HalfSize, HalfSize],
    position: int,
    motions: tuple[Motion, Motion, Motion],
    used: Used | None = None,
) -> list[int]:
    """The row of a job of lookahead_both. Arguments: see cpu_simd.lookahead.lookahead.lookahead_used; without `used`, of
    lookahead_both, for the sum alone.
    """
    (current, earlier, later), (first, second, direct) = frames, motions
    of_used = (0, 0, 0) if used is None else (used.cost.ptr, used.vectors.ptr, used.lists.ptr)
    return [
        current.planes.ptr, earlier.planes.ptr, later.planes.ptr, position, first.mv.ptr, first.cost.ptr,
        second.mv.ptr, second.cost.ptr, direct.mv.ptr, *of_used, 0, 0, 0, 0,
    ]  # fmt: skip


def find_motion(
    here: DeviceArray, there: DeviceArray, totals: DeviceArray, camera: DeviceArray, stream: Stream | None = None
) -> None:
    """Twin of cpu_simd.search.search_centre.whole_motion in coarse samples; here, there: Sample[h, w].

    totals: int32[CAMERA_WORDS], zeros, scratch; camera: int16[2].
    """
    height, width = here.shape
    grid, arguments = (_candidates(width, height),), [here, there, width, height, totals, camera]
    camera.device.launch("lookahead/lookahead", "camera", grid, (CAMERA_THREADS,), arguments, stream)


def lookahead_camera(jobs: DeviceArray, mb_width: int, mb_height: int, stream: Stream | None = None) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead.lookahead_camera, for all jobs of motion_job."""
    grid = _candidates(mb_width, mb_height), jobs.shape[0]
    jobs.device.launch(
        "lookahead/lookahead", "lookahead_camera", grid, (CAMERA_THREADS,), [jobs, mb_width, mb_height], stream
    )


def lookahead_search(
    jobs: DeviceArray, mb_width: int, mb_height: int, row0: int, row1: int, quick: bool = False, stream: Stream | None = None
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead.lookahead_search, for all jobs of motion_job."""
    _launch("lookahead_search", jobs, (mb_width, mb_height, row0, row1), WARPS, stream, int(quick))


def lookahead_refine(
    jobs: DeviceArray, mb_width: int, mb_height: int, row0: int, row1: int, quick: bool = False, stream: Stream | None = None
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead.lookahead_refine, for all jobs of motion_job."""
    _launch("lookahead_refine", jobs, (mb_width, mb_height, row0, row1), WARPS, stream, int(quick))


def lookahead_both(
    jobs: DeviceArray, mb_width: int, mb_height: int, row0: int, row1: int, stream: Stream | None = None
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead.lookahead_both, lookahead_used, for all jobs of
    between_job.
    """
    _launch("lookahead_both", jobs, (mb_width, mb_height, row0, row1), 8 * WARPS, stream)


def lookahead_intra(
    current: HalfSize,
    row0: int,
    row1: int,
    cost: DeviceArray,  # uint16[n_mb]
    total: DeviceArray,  # int64[1], added to
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.lookahead.lookahead_intra, with the sum of the costs."""
    mb_height, mb_width = current.tiny.shape
    arguments = [current.planes, mb_width, mb_height, row0, row1, cost, total]
    blocks = -(-(row1 - row0) * mb_width // WARPS)
    cost.device.launch("lookahead/lookahead_intra", "lookahead_intra", (blocks,), (32 * WARPS,), arguments, stream)


def _candidates(width: int, height: int) -> int:
    """Motions of a frame of this size, in coarse samples, that are tried."""
    return (2 * min(CAMERA_X, width // 2) + 1) * (2 * min(CAMERA_Y, height // 2) + 1) + 1


def _launch(
    name: str, jobs: DeviceArray, size: tuple[int, int, int, int], of_a_block: int, stream: Stream | None, *more: int
) -> None:
    """size: mb_width, mb_height, row0, row1; of_a_block: macroblocks of a block of threads; more: further arguments."""
    blocks = -(-(size[3] - size[2]) * size[0] // of_a_block)
    jobs.device.launch("lookahead/lookahead", name, (blocks, jobs.shape[0]), (32 * WARPS,), [jobs, *size, *more], stream)
