"""Finds the stream on which another library writes an array: from its interface, or from the library."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ...scheduler.frames.device_frame import Order
from ..errors import InputError

LEGACY_STREAM = 1  # the default stream, which synchronises with the other streams of a context


class Producer(NamedTuple):
    """stream: the read is ordered after it; None if the array is complete. waits: the stream waits until the frame is read;
    otherwise the host waits, since the stream that may overwrite the frame is unknown.
    """

    stream: int | None
    waits: bool = True


COMPLETE = Producer(None)


def order_of(producer: Producer, first: bool, last: bool) -> Order:
    """The order for a frame of an array: only its first frame waits for the producer, the producer only for its last one."""
    stream, waits = producer
    waits_at_end = last and waits
    return Order(stream if first else None, stream if waits_at_end else None, last and (stream is None or not waits))


def stream_number(stream: object) -> int:
    """The driver's number of a stream object of any library; 0 is the legacy default stream. InputError."""
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            stream = getattr(stream, name)
            break
    try:
        number = int(stream)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise InputError(f"stream: {type(stream).__name__} is neither a number nor a CUDA stream") from None
    if number < 0:  # -1 in DLPack: the array is not to be waited for
        raise InputError(f"stream {number}: no CUDA stream has this number")
    return number or LEGACY_STREAM


def producer_of(value: Any, interface: Mapping[str, Any], name: str) -> Producer:
    """The producer of an array with `__cuda_array_interface__`; name: in messages.

    Version 3 of the interface names the stream. PyTorch and older CuPy give version 2: the stream is their current one of
    this thread, as for their own operations. JAX has its own streams and immutable arrays: the host waits. Other libraries
    may order the default stream after their work by DLPack's protocol.
    """
    if is_of(value, "torch", "Tensor"):
        return Producer(stream_of_torch(sys.modules["torch"], value.device.index or 0))
    if is_of(value, "jax", "Array"):
        value.block_until_ready()
        return COMPLETE
    if int(interface.get("version", 0)) >= 3:
        stream = interface.get("stream")
        if stream == 0:
            raise InputError(f"{name}: stream 0 in its interface means nothing; 1 is the default stream")
        return COMPLETE if stream is None else Producer(stream_number(stream))
    if is_of(value, "cupy", "ndarray"):
        return Producer(stream_number(sys.modules["cupy"].cuda.get_current_stream()))
    with suppress(AttributeError, TypeError, BufferError):  # the protocol is missing, or refuses this stream
        value.__dlpack__(stream=LEGACY_STREAM)
        return Producer(LEGACY_STREAM, waits=False)
    return Producer(LEGACY_STREAM)


def stream_of_torch(torch: Any, ordinal: int) -> int:
    """The driver's number of PyTorch's current stream of this thread on a GPU."""
    quick = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)  # makes no object
    return (quick(ordinal) or LEGACY_STREAM) if quick else stream_number(torch.cuda.current_stream(ordinal))


def current_stream(frames: Any) -> Any:
    """The current stream of this thread where frames are an array of PyTorch or CuPy on a GPU, or a list of these: for a read
    in another thread, which has a current stream of its own. None for others.
    """
    while isinstance(frames, list | tuple) and frames:
        frames = frames[0]
    if is_of(frames, "torch", "Tensor"):
        return sys.modules["torch"].cuda.current_stream(frames.device) if frames.is_cuda else None
    return sys.modules["cupy"].cuda.get_current_stream() if is_of(frames, "cupy", "ndarray") else None


def common(producers: "list[Producer]") -> Producer:
    """The common producer of the planes of a frame; InputError if their streams differ."""
    if all(producer == producers[0] for producer in producers):
        return producers[0]
    streams = {producer.stream for producer in producers} - {None}
    if len(streams) > 1:
        raise InputError(f"planes of different streams {sorted(map(str, streams))}: say which one with stream=")
    return Producer(next(iter(streams), None), all(producer.waits for producer in producers))


def is_of(value: object, library: str, class_name: str) -> bool:
    """Whether `value` is an instance of the library's class; does not import the library."""
    cls = getattr(sys.modules.get(library), class_name, None)
    return isinstance(cls, type) and isinstance(value, cls)
