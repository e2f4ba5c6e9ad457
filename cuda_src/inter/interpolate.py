"""Half-sample planes and borders on the GPU: launches interpolate.cu."""

from ..runtime.array import DeviceArray, Stream

THREADS, ROWS = 64, 16  # of a block; rows of a thread


def interpolate(luma: DeviceArray, pad: int, row0: int, row1: int, stream: Stream | None = None) -> None:
    """8.4.2.2.1: planes 1..3 of luma Sample[4, H + 2 pad, W + 2 pad] from plane 0, sample rows of MB rows [row0, row1).

    The first and the last row of macroblocks take the rows of the border with them.
    """
    _, height, width = luma.shape
    y0 = 0 if row0 == 0 else pad + 16 * row0
    y1 = height if pad + 16 * row1 == height - pad else pad + 16 * row1
    grid = (-(-width // (4 * THREADS)), -(-(y1 - y0) // ROWS))
    luma.device.launch("inter/interpolate", "interpolate", grid, (THREADS,), [luma, width, height, y0, y1], stream)


def extend_borders(plane: DeviceArray, pad: int, stream: Stream | None = None) -> None:
    """Repeats edge samples into the border: plane Sample[height, width] or [n, height, width], interior final."""
    count = plane.shape[0] if len(plane.shape) == 3 else 1
    height, width = plane.shape[-2:]
    grid = (-(-width // (4 * THREADS)), -(-height // 8), count)
    plane.device.launch("inter/interpolate", "extend_borders", grid, (THREADS, 8), [plane, width, height, pad], stream)
