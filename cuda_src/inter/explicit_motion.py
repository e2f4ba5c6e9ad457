"""Motion of direct macroblocks beside I_PCM on the GPU, written explicitly: launches explicit_motion.cu."""

from ...cpu_simd.bundles import Motion
from ..runtime.array import DeviceArray, Stream

THREADS = 128


def explicit_motion(
    motion: Motion, colocated_still: DeviceArray, slice_first_mb: DeviceArray, mb_width: int, row0: int, row1: int,
    stream: Stream | None = None,
) -> None:  # fmt: skip
    """8.4.1.2.2: twin of cpu_simd.inter.explicit_motion.explicit_motion."""
    arguments = [*motion, colocated_still, slice_first_mb, mb_width, row0 * mb_width, row1 * mb_width]
    grid = (-(-(row1 - row0) * mb_width // THREADS),)
    motion.mb_type.device.launch("inter/explicit_motion", "explicit_motion", grid, (THREADS,), arguments, stream)
