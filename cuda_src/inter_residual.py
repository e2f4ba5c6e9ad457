"""Inter macroblocks on the GPU, prediction to reconstruction: launches inter_residual.cu."""

from typing import Any

from .runtime.device import DeviceArray

WARPS = 4


def inter_residual(
    src_y: DeviceArray,  # uint8[H, W]
    src_u: DeviceArray,
    src_v: DeviceArray,
    ref_luma: DeviceArray,  # uint8[n_slots, 4, H + 2 pad, W + 2 pad]
    ref_chroma: DeviceArray,  # uint8[n_slots, 2, H / 2 + pad, W / 2 + pad]
    ref_slots: DeviceArray,  # int32[n_ref]
    pad: int,
    mb_type: DeviceArray,
    sub_mb_type: DeviceArray,
    ref_idx: DeviceArray,
    mv: DeviceArray,
    qp: DeviceArray,
    chroma_qp_offset: int,
    trellis: int,
    row0: int,
    row1: int,
    rec_y: DeviceArray,
    rec_u: DeviceArray,
    rec_v: DeviceArray,
    levels: DeviceArray,  # int16[n_mb, 27, 16]
    total_coeff: DeviceArray,  # uint8[n_mb, 24]
    cbp: DeviceArray,
    stream: Any = None,
) -> None:
    """8.4, 8.5: twin of cpu_simd.inter_residual.inter_residual."""
    height, width = src_y.shape
    mb_width, mb_height = width // 16, height // 16
    arguments = [src_y, src_u, src_v, ref_luma, ref_chroma, ref_slots, pad, mb_width, mb_height, row0]
    arguments += [chroma_qp_offset, trellis]
    arguments += [sub_mb_type, qp, mb_type, ref_idx, mv, rec_y, rec_u, rec_v, levels, total_coeff, cbp]
    grid = (-(-mb_width // WARPS), row1 - row0)
    src_y.device.launch("inter_residual", "inter_residual", grid, (32 * WARPS,), arguments, stream)
