"""The macroblock tree on the GPU: launches macroblock_tree.cu, for any number of frames at once.

A job is a row of a table on the GPU, int64[n, WORDS]: see tree_job.
"""

from typing import Any

from .lookahead import WORDS, Motion, Used
from .runtime.device import DeviceArray

THREADS = 128


def tree_job(
    intra: DeviceArray,  # uint16[n_mb]
    worth: DeviceArray | None,  # int64[n_mb], of a cost, in 1 / 2^24
    motion: Motion | Used | None,  # of an I frame: None
    amount: DeviceArray,  # int64[n_mb]
    gifts: tuple[DeviceArray | None, DeviceArray | None],  # amounts of the earlier and of the later reference
    weight: int,
    offsets: tuple[DeviceArray, int],  # int32[n_mb] out, and the strength
) -> list[int]:
    """The row of a job. Arguments: see cpu_simd.macroblock_tree; without gifts nothing is given."""
    words = [intra.ptr, _ptr(worth)]
    if isinstance(motion, Used):
        words += [motion.cost.ptr, motion.vectors.ptr, motion.lists.ptr]
    else:
        words += [motion.cost.ptr, motion.mv.ptr, 0] if motion is not None else [0, 0, 0]
    words += [amount.ptr, *(_ptr(array) for array in gifts), offsets[0].ptr, weight, offsets[1]]
    return [*words, *[0] * (WORDS - len(words))]


def tree_propagate(jobs: DeviceArray, mb_width: int, mb_height: int, stream: Any = None) -> None:
    """Not part of the standard: twin of cpu_simd.macroblock_tree.tree_propagate, for all jobs: none gives to another."""
    blocks = -(-mb_width * mb_height // THREADS)
    arguments = [jobs, mb_width, mb_height]
    jobs.device.launch("macroblock_tree", "tree_propagate", (blocks, jobs.shape[0]), (THREADS,), arguments, stream)


def tree_offsets(
    jobs: DeviceArray,
    n_mb: int,
    logarithms: DeviceArray,  # int32[1024], TREE_LOG2 of the twin
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.macroblock_tree.tree_offsets, for all jobs."""
    grid = -(-n_mb // THREADS), jobs.shape[0]
    jobs.device.launch("macroblock_tree", "tree_offsets", grid, (THREADS,), [jobs, n_mb, logarithms], stream)


def _ptr(array: DeviceArray | None) -> int:
    return 0 if array is None else array.ptr
