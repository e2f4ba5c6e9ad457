"""The byte stream of an open file, which may be an MP4."""

import io
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .reader import Mp4Reader

PIECE = 1 << 20  # bytes read at a time
IN_MEMORY = 1 << 26  # bytes of an MP4 from a pipe that are kept in memory, before a temporary file


def pieces(stream: "io.BufferedReader | io.BytesIO") -> "tuple[Iterator[bytes], Mp4Reader | None]":
    """The byte stream of an open file, in pieces; for an MP4, which its first bytes tell, also its reader."""
    from .reader import Mp4Reader, is_mp4

    first = stream.read(8)
    if not is_mp4(first):
        return chain((first,), iter(lambda: stream.read(PIECE), b"")), None
    file: Any = stream
    if not stream.seekable() or stream.tell() != len(first):
        import tempfile  # 2 ms of --help

        file = tempfile.SpooledTemporaryFile(IN_MEMORY)
        file.write(first)
        while piece := stream.read(PIECE):
            file.write(piece)
    reader = Mp4Reader(file)
    return reader.byte_stream(), reader
