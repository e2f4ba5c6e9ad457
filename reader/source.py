"""What a reader reads from: the name of a file, bytes, or a binary file, at any place."""

import io
import os
from typing import Any

from ..mp4.opening import copied
from ..mp4.parsing import length, read_at

Video = str | os.PathLike[str] | bytes | bytearray | memoryview | Any  # or a binary file object


class Source:
    """A video's bytes. `file` is open at their beginning; a file object of the caller stays open.

    Pipes and sockets are copied first. A named file is read without a position of its own, so that a fork shares it.
    """

    def __init__(self, video: Video) -> None:
        self._owned = self._named_file = False
        self.named: Video = None  # what another process can open as well
        if isinstance(video, str | os.PathLike):
            self._owned = self._named_file = True
            self.named = os.path.abspath(os.fspath(video))
            self.file: Any = open(self.named, "rb")
        elif isinstance(video, bytes | bytearray | memoryview):
            self.named = bytes(video)
            self.file = io.BytesIO(self.named)
        elif callable(getattr(video, "read", None)) and not isinstance(video, io.TextIOBase):
            self.file = video
            if not (hasattr(video, "seek") and getattr(video, "seekable", lambda: True)()):
                self.file, self._owned = copied(b"", video, "a video"), True
        else:
            raise TypeError(f"a video is the name of a file, bytes or a binary file, not {type(video).__name__}")
        try:
            self.size = length(self.file)
            self.file.seek(0)
        except BaseException:
            self.close()
            raise

    def read(self, position: int, size: int) -> bytes:
        """Bytes that lie in the video by its size; BitstreamError where it has become shorter since."""
        if self._named_file:
            data = os.pread(self.file.fileno(), size, position)
            if len(data) == size:
                return data
        return read_at(self.file, position, size)

    def close(self) -> None:
        """Close the file, if it is not the caller's."""
        if self._owned:
            self.file.close()
