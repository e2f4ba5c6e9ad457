"""`h264lite.analyse`: a stream in, a frame after the other out, each with the arrays of its macroblocks."""

import heapq
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, BinaryIO

from ..decoder.decoder import Decoder
from ..decoder.errors import BitstreamError
from ..mp4.opening import pieces
from .frame import AnalysedFrame
from .recorder import Recorder

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO


def analyse(source: Source, *, samples: bool = False) -> Iterator[AnalysedFrame]:
    """How each frame of an H.264 stream is coded, in coding order.

    source: the name of a file, its bytes, or a binary file object, of Annex B or MP4. samples: frames carry their decoded
    and predicted samples, too. Frames are decoded as they are asked for; memory is that of a decoder, and of as many frames
    as the stream reorders. BitstreamError where the stream is broken, Unsupported where the decoder lacks a tool, both
    behind the frames before; OSError of the file; TypeError for another source.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        file: Any = nullcontext(io.BytesIO(source))
    elif isinstance(source, str | os.PathLike):
        file = open(source, "rb")  # errors of the name are raised here, not at the first frame
    elif hasattr(source, "read"):
        file = nullcontext(source)
    else:
        raise TypeError(f"source is the name of a file, bytes or a binary file, not {type(source).__name__}")
    return _frames(file, samples)


def _frames(file: Any, samples: bool) -> Iterator[AnalysedFrame]:
    decoder: Any = Decoder(observer=Recorder(samples))
    with file as stream:
        try:
            for piece in pieces(stream)[0]:
                yield from decoder.decode(piece)
            yield from decoder.flush()
        except BitstreamError:
            yield from decoder.flush()
            raise


def in_display_order(frames: Iterable[AnalysedFrame]) -> Iterator[AnalysedFrame]:
    """The frames of `analyse` in the order in which they are shown, without those that never are.

    Holds as many frames as the stream reorders.
    """
    waiting: list[tuple[int, AnalysedFrame]] = []
    following = 0
    for frame in frames:
        if frame.display_index >= 0:
            heapq.heappush(waiting, (frame.display_index, frame))
        while waiting and waiting[0][0] == following:
            yield heapq.heappop(waiting)[1]
            following += 1
    while waiting:
        yield heapq.heappop(waiting)[1]
