"""Vectors of the neighbours, tried for every partition, on the GPU: launches neighbour_vectors.cu."""

from ...cpu_simd.bundles import SearchResult
from ...cpu_simd.decisions.search import ALL_PARTITIONS, SMALL_PARTITIONS
from ..runtime.array import DeviceArray, Stream

WARPS, THREADS = 4, 128


def _launch(
    again: int, source: DeviceArray, luma: DeviceArray, pad: int, qp: DeviceArray, max_mv_y: int, row0: int, row1: int,
    predictor: DeviceArray, whole_mv: DeviceArray, search_result: SearchResult, stream: Stream | None,
) -> None:  # fmt: skip
    """One round."""
    height, width = source.shape
    mb_width, mb_height = width // 16, height // 16
    arguments = [source, luma, pad, qp, max_mv_y, again, mb_width, mb_height, row0, predictor, whole_mv, *search_result]
    grid = (-(-mb_width // WARPS), row1 - row0)
    source.device.launch("search/neighbour_vectors", "neighbour_vectors", grid, (32 * WARPS,), arguments, stream)


def neighbour_vectors(
    source: DeviceArray,  # Sample[H, W]
    luma: DeviceArray,  # Sample[4, H + 2 pad, W + 2 pad]
    pad: int,
    qp: DeviceArray,  # uint8[n_mb]
    max_mv_y: int,
    row0: int,
    row1: int,
    predictor: DeviceArray,  # int16[n_mb, 2], in place
    whole_mv: DeviceArray,  # int16[n_mb, 2]
    search_result: SearchResult,  # in place
    partition_mask: int = ALL_PARTITIONS,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.search.neighbour_vectors.neighbour_vectors, but for sizes not wanted."""
    _launch(0, source, luma, pad, qp, max_mv_y, row0, row1, predictor, whole_mv, search_result, stream)


def neighbour_vectors_again(
    source: DeviceArray, luma: DeviceArray, pad: int, qp: DeviceArray, max_mv_y: int, row0: int, row1: int,
    predictor: DeviceArray, whole_mv: DeviceArray, search_result: SearchResult, partition_mask: int = ALL_PARTITIONS,
    stream: Stream | None = None,
) -> None:  # fmt: skip
    """Not part of the standard: twin of cpu_simd.search.neighbour_vectors.neighbour_vectors_again, but for sizes not
    wanted.
    """
    if partition_mask & SMALL_PARTITIONS:
        _launch(1, source, luma, pad, qp, max_mv_y, row0, row1, predictor, whole_mv, search_result, stream)
        return
    first, end = (row * (source.shape[1] // 16) for row in (row0, row1))
    arguments = [whole_mv, first, end, search_result.mv]
    source.device.launch(
        "search/neighbour_vectors", "take_whole", (-(-(end - first) // THREADS), 1), (THREADS,), arguments, stream
    )
