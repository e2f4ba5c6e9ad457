"""Converts frames of display size and other layouts on the GPU to padded I420 planes: launches convert.cu.

Sources are at any address; distances are in bytes. Samples beyond the display area repeat its last column and row. RGB
becomes ITU-R BT.709 limited range in integers, s the sums over the 2x2 samples of a chroma sample (an odd last column or row
counts twice):

    Y  = ( 11966 R + 40254 G +  4064 B + (16 << 16) + (1 << 15)) >> 16
    Cb = (-6596 sR - 22188 sG + 28784 sB + (128 << 18) + (1 << 17)) >> 18
    Cr = (28784 sR - 26145 sG -  2639 sB + (128 << 18) + (1 << 17)) >> 18

R, G, B of floating-point samples v, in float32 where each operation rounds to nearest even; what is no number becomes 0:

    floor(min(max((v - low) * scale, 0), 255) + 0.5)       scale = float32(255 / (value of white - low))

Grey samples are RGB with equal colours.
"""

from ...cpu_simd.bundles import InputPlanes, InputRgb, Planes
from ..runtime.array import DeviceArray, Stream

COLUMNS, ROWS = 32, 8  # threads


def load_i420(
    planes: InputPlanes,  # chroma (n + 1) // 2
    width: int,  # of the display area
    height: int,
    load_qp: DeviceArray,  # int32: QP_Y of all macroblocks; negative: uint8[n_mb] follow, that of each
    out: Planes,  # of coded size
    qp: DeviceArray,  # uint8[n_mb]
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: I420 or NV12 of display size to planes of coded size; sets qp."""
    coded_height, coded_width = out.y.shape
    arguments = [*planes, width, height, coded_width, coded_height, load_qp, *out, qp]
    grid = (-(-coded_width // (4 * COLUMNS)), -(-coded_height // ROWS), 3)
    out.y.device.launch("source/convert", "load_planes", grid, (COLUMNS, ROWS), arguments, stream)


def load_rgb(
    rgb: InputRgb,
    width: int,
    height: int,
    load_qp: DeviceArray,
    out: Planes,
    qp: DeviceArray,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: RGB to BT.709 limited range as the file's docstring says, planes of coded size; sets qp."""
    coded_height, coded_width = out.y.shape
    arguments = [rgb.red, rgb.green, rgb.blue, rgb.step, rgb.pitch, rgb.low, rgb.scale]
    arguments += [width, height, coded_width, coded_height, load_qp, *out, qp, rgb.outside]
    grid = (-(-coded_width // (4 * COLUMNS)), -(-coded_height // (2 * ROWS)))
    out.y.device.launch("source/convert", f"load_rgb_{rgb.dtype}", grid, (COLUMNS, ROWS), arguments, stream)
