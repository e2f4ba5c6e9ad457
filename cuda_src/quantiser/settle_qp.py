"""QP of macroblocks without residual on the GPU, where QP varies within frames: launches settle_qp.cu."""

from ..runtime.array import DeviceArray, Stream

THREADS = 1024


def settle_qp(
    mb_type: DeviceArray, cbp: DeviceArray, slice_first_mb: DeviceArray, frame_params: DeviceArray, mb_width: int,
    first_mb: int, end_mb: int, qp: DeviceArray, stream: Stream | None = None,
) -> None:  # fmt: skip
    """7.4.5: twin of cpu_simd.quantiser.settle_qp.settle_qp."""
    arguments = [mb_type, cbp, slice_first_mb, frame_params, mb_width, first_mb, end_mb, qp]
    qp.device.launch("quantiser/settle_qp", "settle_qp", (1,), (THREADS,), arguments, stream)
