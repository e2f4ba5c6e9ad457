"""QP offsets of adaptive quantisation on the GPU: launches aq_offsets.cu."""

from ...cpu_simd.decisions.adaptation import BY_VARIANCE
from ..runtime.array import DeviceArray, Stream

THREADS = 1024


def aq_offsets(
    energy: DeviceArray,  # int32[n_mb]
    mode: int,
    strength: int,
    offsets: DeviceArray,  # int32[n_mb]
    weights: DeviceArray,  # int32[n_mb]
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of aq_offsets and error_weights in cpu_simd/quantiser/aq_offsets.py."""
    n_mb = energy.shape[0]
    blocks = -(-n_mb // THREADS) if mode == BY_VARIANCE else 1  # other modes add up over the frame
    arguments = [energy, n_mb, mode, strength, offsets, weights]
    energy.device.launch("quantiser/aq_offsets", "aq_offsets", (blocks,), (THREADS,), arguments, stream)
