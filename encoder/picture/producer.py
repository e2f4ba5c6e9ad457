"""Which stream another library writes an array on: by the array's interface, or by the library where that names none."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ..errors import InputError

LEGACY_STREAM = 1  # the default stream that everything of a context waits for


class Producer(NamedTuple):
    """stream: the one to be ordered after, None if nothing is under way. waits: it waits until the frame is read; otherwise
    the host does, since what may overwrite the frame is unknown.
    """

    stream: int | None
    waits: bool = True


def stream_number(stream: Any) -> int:
    """The driver's number of a stream object of any library; 0 is the legacy default stream."""
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            stream = getattr(stream, name)
            break
    try:
        return int(stream) or LEGACY_STREAM
    except (TypeError, ValueError):
        raise InputError(f"stream: {type(stream).__name__} is neither a number nor a CUDA stream") from None


def producer_of(value: Any, interface: Mapping[str, Any], name: str) -> Producer:
    """The producer of an array with `__cuda_array_interface__`; name: in messages.

    Version 3 of the interface names the stream. PyTorch and older CuPy give version 2: their current stream of this thread
    counts, as for all their own operations. JAX has streams of its own and arrays that never change: the host waits. Other
    libraries may order the default stream behind themselves by DLPack's protocol.
    """
    if _is(value, "torch", "Tensor"):
        return Producer(stream_number(sys.modules["torch"].cuda.current_stream(value.device)))
    if _is(value, "jax", "Array"):
        value.block_until_ready()
        return Producer(None)
    if int(interface.get("version", 0)) >= 3:
        stream = interface.get("stream")
        if stream == 0:
            raise InputError(f"{name}: stream 0 in its interface means nothing; 1 is the default stream")
        return Producer(stream)
    if _is(value, "cupy", "ndarray"):
        return Producer(stream_number(sys.modules["cupy"].cuda.get_current_stream()))
    with suppress(AttributeError, TypeError, BufferError):  # it has no such protocol, or not for this stream
        value.__dlpack__(stream=LEGACY_STREAM)
        return Producer(LEGACY_STREAM, waits=False)
    return Producer(LEGACY_STREAM)


def common(producers: "list[Producer]") -> Producer:
    """The producer of all planes of a frame."""
    streams = {producer.stream for producer in producers} - {None}
    if len(streams) > 1:
        raise InputError(f"planes of different streams {sorted(map(str, streams))}: say which one with stream=")
    return Producer(next(iter(streams), None), all(producer.waits for producer in producers))


def _is(value: Any, library: str, kind: str) -> bool:
    """Whether it is of a class of a library, which is not imported for that."""
    found = getattr(sys.modules.get(library), kind, None)
    return isinstance(found, type) and isinstance(value, found)
