"""Half- and quarter-sample refinement on the GPU: launches subpel_refine.cu."""

from ...cpu_simd.bundles import SearchResult
from ...cpu_simd.decisions.common import QUICK, QUIET
from ...cpu_simd.decisions.search import ALL_PARTITIONS, EVERY
from ..runtime.array import DeviceArray, Stream

THREADS, MACROBLOCKS = 256, 8  # of a block
# By subme, 1 to 4 and higher; subme 0 keeps integer vectors
KERNELS = ("", "refine_half_sad", "refine_sad_sad", "refine_sad_satd", "refine_satd_satd")


def subpel_refine(
    source: DeviceArray,  # Sample[H, W]
    luma: DeviceArray,  # Sample[4, H + 2 pad, W + 2 pad]
    pad: int,
    predictor: DeviceArray,  # int16[n_mb, 2], quarter samples
    qp: DeviceArray,  # uint8[n_mb]
    subme: int,
    row0: int,
    row1: int,
    search_result: SearchResult,  # in place
    partition_mask: int = ALL_PARTITIONS,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.search.subpel_refine.subpel_refine."""
    kernel = KERNELS[min(subme, len(KERNELS) - 1)]
    if not kernel:
        return
    _, height, width = luma.shape
    mb_width = source.shape[1] // 16
    every, quiet = int(subme >= EVERY), QUIET if subme <= QUICK else 0
    arguments = [
        source,
        luma,
        width,
        height,
        pad,
        predictor,
        qp,
        partition_mask,
        every,
        quiet,
        row0,
        mb_width,
        *search_result,
    ]
    source.device.launch(
        "search/subpel_refine", kernel, (-(-mb_width // MACROBLOCKS), row1 - row0), (THREADS,), arguments, stream
    )
