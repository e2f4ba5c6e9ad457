"""QP of macroblocks without residual on the GPU, where QP varies within frames: launches decoded_qp.cu."""

from ..runtime.array import DeviceArray, Stream

THREADS = 1024


def decoded_qp(
    mb_type: DeviceArray, cbp: DeviceArray, slice_first_mb: DeviceArray, frame_params: DeviceArray, mb_width: int,
    first_mb: int, end_mb: int, qp: DeviceArray, stream: Stream | None = None,
) -> None:  # fmt: skip
    """7.4.5: twin of cpu_simd.quantiser.decoded_qp.decoded_qp."""
    arguments = [mb_type, cbp, slice_first_mb, frame_params, mb_width, first_mb, end_mb, qp]
    qp.device.launch("quantiser/decoded_qp", "decoded_qp", (1,), (THREADS,), arguments, stream)
