"""Arrays and numbers that stages take together, for the kernels of both devices; scheduler/bundles.py says which arrays.

Arrays are np.ndarray on the CPU, DeviceArray on a GPU. Sizes of a frame: H x W luma samples, n_mb macroblocks.
"""

from typing import Any, NamedTuple


class Planes(NamedTuple):
    """Samples of one frame, each plane uint8; rows may be longer than the frame."""

    y: Any  # [H, W]
    u: Any  # [H / 2, W / 2]
    v: Any


class Quantiser(NamedTuple):
    """Quantisation of the macroblocks."""

    qp: Any  # uint8[n_mb], QP_Y
    chroma_offset: int  # chroma_qp_index_offset


class Deblocking(NamedTuple):
    """Parameters of the deblocking filter."""

    alpha_offset: int  # FilterOffsetA
    beta_offset: int  # FilterOffsetB
    disable_idc: int  # disable_deblocking_filter_idc
