"""The macroblock tree on the GPU: launches macroblock_tree.cu, for any number of frames at once.

A job is a row of a table on the GPU, int64[n, WORDS]: see tree_job.
"""

from ..runtime.array import DeviceArray, Stream
from .lookahead import WORDS, Motion, Used

THREADS = 128
MOST_BLOCKS = 128  # of a launch: the encode beside it needs the others


# words of a job: what its frame is, and what its place among the frames makes of it
INTRA, ERROR_WEIGHTS, COST, VECTORS, LISTS, AMOUNT, GIFTS = range(7)
OFFSETS, WEIGHT, STRENGTH, AFTER, NOISE = range(8, 13)


def tree_job(
    intra: DeviceArray,  # uint16[n_mb]
    error_weights: DeviceArray | None,  # int32[n_mb], of a cost, in 1 / 65536
    motion: Motion | Used | None,  # of an I frame: None
    weight: int,
    strength: int,
    noise: int,  # of hidden costs, where a worth is 1
) -> list[int]:
    """The row of a job as far as it depends on its frame alone. Arguments: see cpu_simd.lookahead.macroblock_tree.

    Others write AMOUNT, GIFTS (two), OFFSETS: addresses of int64[n_mb], int64[n_mb] of the references or 0, int32[n_mb]; and
    AFTER: jobs before it that must have ended.
    """
    row = [0] * WORDS
    row[INTRA], row[ERROR_WEIGHTS], row[WEIGHT] = intra.ptr, 0 if error_weights is None else error_weights.ptr, weight
    row[STRENGTH], row[NOISE] = strength, noise
    if isinstance(motion, Used):
        row[COST : LISTS + 1] = motion.cost.ptr, motion.vectors.ptr, motion.lists.ptr
    elif motion is not None:
        row[COST], row[VECTORS] = motion.cost.ptr, motion.mv.ptr
    return row


def tree_propagate(
    jobs: DeviceArray,  # int64[n, WORDS]: each behind those that give to it
    mb_width: int,
    mb_height: int,
    progress: DeviceArray,  # int32[2], zeros
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.macroblock_tree.tree_propagate, for all jobs."""
    n_jobs = jobs.shape[0]
    blocks = min(MOST_BLOCKS, -(-mb_width * mb_height // THREADS) * n_jobs)
    arguments = [jobs, n_jobs, mb_width, mb_height, progress]
    jobs.device.launch("lookahead/macroblock_tree", "tree_propagate", (blocks,), (THREADS,), arguments, stream)


def tree_offsets(
    jobs: DeviceArray,
    n_mb: int,
    logarithms: DeviceArray,  # int32[1024], TREE_LOG2 of the twin
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.macroblock_tree.tree_offsets, for all jobs."""
    grid = -(-n_mb // THREADS), jobs.shape[0]
    jobs.device.launch("lookahead/macroblock_tree", "tree_offsets", grid, (THREADS,), [jobs, n_mb, logarithms], stream)
