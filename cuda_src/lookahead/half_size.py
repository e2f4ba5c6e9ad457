"""Half-size source frames on the GPU: launches half_size.cu."""

from ...cpu_simd.bundles import HalfSize
from ...cpu_simd.decisions.lookahead import LOOK_PAD
from ...cpu_simd.layout import COARSE_PAD
from ..runtime.array import DeviceArray, Stream

WORDS, ROWS = 32, 8  # of a block of threads
COLUMNS, ROWS_OF_COLUMN = 128, 16  # of a block of `sharpness`, and of a thread of it


def half_size(
    luma: DeviceArray,  # Sample[H, W], of display size or whole macroblocks
    row0: int,
    row1: int,
    out: HalfSize,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.half_size.half_size."""
    mb_height, mb_width = out.tiny.shape
    launch = luma.device.launch
    for name, pad, rows, first in (("half_size", LOOK_PAD, 8, (luma, *luma.shape)), ("quarter_size", COARSE_PAD, 4, ())):
        y0 = 0 if row0 == 0 else pad + rows * row0
        y1 = rows * mb_height + 2 * pad if row1 == mb_height else pad + rows * row1
        words = (rows * mb_width + 2 * pad) // 4
        arguments = [*first, out.planes, *(() if first else (out.coarse,)), mb_width, mb_height, y0, y1]
        launch("lookahead/half_size", name, (-(-words // WORDS), -(-(y1 - y0) // ROWS)), (WORDS, ROWS), arguments, stream)
    count = (row1 - row0) * mb_width
    launch(
        "lookahead/half_size", "tiny_size", (-(-count // 128),), (128,), [out.coarse, out.tiny, mb_width, row0, row1], stream
    )


def sharpness(
    luma: DeviceArray,  # Sample[H, W], of display size or whole macroblocks
    width: int,  # of the display
    height: int,
    total: DeviceArray,  # int64[1], added to
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.lookahead.half_size.sharpness, for the samples that are displayed."""
    grid = max(1, -(-(width - 2) // COLUMNS)), max(1, -(-(height - 2) // ROWS_OF_COLUMN))
    arguments = [luma, height, width, luma.shape[1], ROWS_OF_COLUMN, total]
    luma.device.launch("lookahead/half_size", "sharpness", grid, (COLUMNS,), arguments, stream)
