"""The byte stream of an open file, which may be an MP4."""

import io
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..standard.bits import BitstreamError

if TYPE_CHECKING:
    from .reader import Mp4Reader

PIECE = 1 << 20  # bytes read at a time
JOINED = 1 << 16  # bytes of samples that are given out together: there may be very many tiny ones
IN_MEMORY = 1 << 26  # bytes of an MP4 from a pipe that are kept in memory, before a temporary file
FROM_PIPE = 1 << 32  # bytes of one at most, and of the temporary disk at most half of what is free: a pipe may be endless


def pieces(stream: "io.BufferedReader | io.BytesIO") -> "tuple[Iterator[bytes], Mp4Reader | None]":
    """The byte stream of an open file, in pieces; for an MP4, which its first bytes tell, also its reader."""
    from .reader import Mp4Reader, is_mp4

    first = stream.read(8)
    if not is_mp4(first):
        return chain((first,), iter(lambda: stream.read(PIECE), b"")), None
    file: Any = stream
    if not stream.seekable() or stream.tell() != len(first):
        file = copied(first, stream)
    reader = Mp4Reader(file)
    return _joined(reader.byte_stream()), reader


def copied(first: bytes, stream: Any, what: str = "an MP4") -> Any:
    """A pipe as a file that can be read at any place: `first` and what it has still. BitstreamError where it is too large."""
    import shutil  # 2 ms of --help
    import tempfile

    file, size = tempfile.SpooledTemporaryFile(IN_MEMORY), len(first)
    most = max(IN_MEMORY, min(FROM_PIPE, shutil.disk_usage(tempfile.gettempdir()).free // 2))
    file.write(first)
    while piece := stream.read(PIECE):
        size += len(piece)
        if size > most:
            file.close()
            raise BitstreamError(f"{what} of more than {most >> 20} MiB from a pipe: give it as a file")
        file.write(piece)
    return file


def _joined(access_units: Iterator[bytes]) -> Iterator[bytes]:
    """The byte stream in larger pieces, also of those before an error."""
    waiting, size = [], 0
    try:
        for data in access_units:
            waiting.append(data)
            size += len(data)
            if size >= JOINED:
                yield b"".join(waiting)
                waiting, size = [], 0
    except BitstreamError:
        yield b"".join(waiting)
        raise
    yield b"".join(waiting)
