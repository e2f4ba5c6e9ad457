"""Squared error for PSNR on the GPU: launches ssd.cu."""

from ..runtime.array import DeviceArray, Stream

THREADS = 512


def ssd(
    source: DeviceArray,  # Sample[h, w]
    decoded: DeviceArray,  # Sample[h + 2 border, w + 2 border]
    border: int,
    height: int,  # of the display area, in samples of this plane
    width: int,
    unit: int,  # samples a macroblock row: 16 luma, 8 chroma
    row0: int,
    row1: int,
    errors: DeviceArray,  # int64[mb_height]
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.source.ssd.ssd. w and border are multiples of four."""
    stride = decoded.shape[1]
    inside = DeviceArray(decoded.device, decoded.ptr + border * stride + border, (1,), decoded.dtype, decoded)
    arguments = [source, source.shape[1], inside, stride, height, width, unit, row0, errors]
    source.device.launch("source/ssd", "ssd", (row1 - row0,), (THREADS,), arguments, stream)
