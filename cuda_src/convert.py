"""Converts frames of display size and other layouts on the GPU to padded I420 planes: launches convert.cu.

Sources are bytes at any address; a pitch is the distance of two rows in bytes. Samples beyond the display area repeat its
last column and row. RGB becomes ITU-R BT.709 limited range in integers, s the sums over the 2x2 samples of a chroma
sample (an odd last column or row counts twice):

    Y  = ( 11966 R + 40254 G +  4064 B + (16 << 16) + (1 << 15)) >> 16
    Cb = (-6596 sR - 22188 sG + 28784 sB + (128 << 18) + (1 << 17)) >> 18
    Cr = (28784 sR - 26145 sG -  2639 sB + (128 << 18) + (1 << 17)) >> 18
"""

from typing import Any

from .runtime.device import DeviceArray

COLUMNS, ROWS = 32, 8  # threads


def load_i420(
    y: DeviceArray,
    u: DeviceArray,
    v: DeviceArray,
    pitch: int,
    chroma_pitch: int,
    width: int,  # of the display area
    height: int,
    frame_params: DeviceArray,  # int32[>= 1]: QP_Y of all macroblocks first
    out_y: DeviceArray,  # uint8[H, W], the coded size
    out_u: DeviceArray,
    out_v: DeviceArray,
    qp: DeviceArray,  # uint8[n_mb]
    stream: Any = None,
) -> None:
    """Not part of the standard: planes of display size (chroma (n + 1) // 2) to those of coded size; sets qp."""
    _load_planes(y, u, v, pitch, chroma_pitch, 1, width, height, frame_params, out_y, out_u, out_v, qp, stream)


def load_nv12(
    y: DeviceArray,
    uv: DeviceArray,  # Cb and Cr in turn
    pitch: int,
    chroma_pitch: int,
    width: int,
    height: int,
    frame_params: DeviceArray,  # int32[>= 1]: QP_Y of all macroblocks first
    out_y: DeviceArray,
    out_u: DeviceArray,
    out_v: DeviceArray,
    qp: DeviceArray,  # uint8[n_mb]
    stream: Any = None,
) -> None:
    """Not part of the standard: NV12 of display size to planes of coded size; sets qp."""
    v = DeviceArray(uv.device, uv.ptr + 1, (1,), uv.dtype, uv)
    _load_planes(y, uv, v, pitch, chroma_pitch, 2, width, height, frame_params, out_y, out_u, out_v, qp, stream)


def _load_planes(
    y: DeviceArray,
    u: DeviceArray,
    v: DeviceArray,
    pitch: int,
    chroma_pitch: int,
    chroma_step: int,
    width: int,
    height: int,
    frame_params: DeviceArray,  # int32[>= 1]: QP_Y of all macroblocks first
    out_y: DeviceArray,
    out_u: DeviceArray,
    out_v: DeviceArray,
    qp: DeviceArray,  # uint8[n_mb]
    stream: Any,
) -> None:
    coded_height, coded_width = out_y.shape
    arguments = [y, u, v, pitch, chroma_pitch, chroma_step, width, height, coded_width, coded_height, frame_params]
    arguments += [out_y, out_u, out_v, qp]
    grid = (-(-coded_width // (4 * COLUMNS)), -(-coded_height // ROWS), 3)
    out_y.device.launch("convert", "load_planes", grid, (COLUMNS, ROWS), arguments, stream)


def load_rgb(
    picture: DeviceArray,  # uint8[height, width, 3], or uint8[3, height, width] if planar
    pitch: int,
    plane: int | None,  # planar: bytes from colour to colour; None: interleaved
    width: int,
    height: int,
    frame_params: DeviceArray,  # int32[>= 1]: QP_Y of all macroblocks first
    out_y: DeviceArray,
    out_u: DeviceArray,
    out_v: DeviceArray,
    qp: DeviceArray,  # uint8[n_mb]
    stream: Any = None,
) -> None:
    """Not part of the standard: RGB to BT.709 limited range as the file's docstring says, planes of coded size; sets qp."""
    coded_height, coded_width = out_y.shape
    step, colours = (3, 1) if plane is None else (1, plane)
    arguments = [picture, pitch, step, colours, width, height, coded_width, coded_height, frame_params]
    arguments += [out_y, out_u, out_v, qp]
    grid = (-(-coded_width // (4 * COLUMNS)), -(-coded_height // (2 * ROWS)))
    out_y.device.launch("convert", "load_rgb", grid, (COLUMNS, ROWS), arguments, stream)
