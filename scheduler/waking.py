"""Creates the context of a GPU while Python imports the encoder: imports little."""

from ..cuda_src.runtime.context_warmup import ContextWarmup


def wake(device: str) -> ContextWarmup:
    """Begin with the context of "cuda:N"; nothing for "cpu"."""
    kind, _, ordinal = device.partition(":")
    return ContextWarmup([int(ordinal or 0)] if kind == "cuda" else [])
