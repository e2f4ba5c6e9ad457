"""Motion of a decoded frame on the GPU, kept for later frames: launches colocated.cu."""

from ...cpu_simd.bundles import KeptMotion, Motion
from ..runtime.array import Stream

THREADS = 128
OF_BLOCK = THREADS // 16  # macroblocks of a block of threads


def keep_motion(motion: Motion, mb_width: int, row0: int, row1: int, kept: KeptMotion, stream: Stream | None = None) -> None:
    """8.4.1.2.1, 8.4.1.2.2: twin of cpu_simd.inter.colocated.keep_motion."""
    arguments = [motion.ref_idx, motion.mv, motion.ref_idx1, motion.mv1, row0 * mb_width, row1 * mb_width, *kept]
    grid = (-(-(row1 - row0) * mb_width // OF_BLOCK),)
    kept.still.device.launch("inter/colocated", "keep_motion", grid, (THREADS,), arguments, stream)
