"""Creates the context of a GPU while Python imports the encoder: imports little."""

from ..cuda_src.runtime.context_warmup import ContextWarmup


def begin_warmup(device: str) -> ContextWarmup:
    """Begin with the context of "cuda:N"; nothing for "cpu"."""
    device_type, _, ordinal = device.partition(":")
    return ContextWarmup([int(ordinal or 0)] if device_type == "cuda" else [])
