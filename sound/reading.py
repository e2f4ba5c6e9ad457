"""Reading of sound files from their beginning to their end: exact sizes, bounded memory, no seeking."""

from collections.abc import Iterator
from typing import Any

from ..standard.bits import BitstreamError

PIECE = 1 << 16  # bytes read at a time
_ID3_HEAD = 10


class Reader:
    """A file that is read once, from its beginning; it need not seek."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._ahead = b""  # bytes that were looked at and not read
        self.position = 0

    def peek(self, size: int) -> bytes:
        """The next bytes, fewer at the end of the file; they are left unread."""
        while len(self._ahead) < size and (piece := self._file.read(max(size - len(self._ahead), PIECE))):
            self._ahead += piece
        return self._ahead[:size]

    def some(self, size: int) -> bytes:
        """The next bytes, fewer at the end of the file."""
        data = self.peek(size)
        self._ahead = self._ahead[len(data) :]
        self.position += len(data)
        return data

    def exactly(self, size: int, what: str) -> bytes:
        """The next bytes; BitstreamError if the file ends before."""
        at, data = self.position, self.some(size)
        if len(data) < size:
            raise BitstreamError(f"the file ends in {what} at byte {at}")
        return data

    def skip(self, size: int) -> None:
        """Leave bytes out; the end of the file is no error."""
        while size > 0 and (piece := self.some(min(size, PIECE))):
            size -= len(piece)

    def pieces(self, size: int | None, each: int) -> Iterator[bytes]:
        """The next `size` bytes, None: all, `each` at a time; the end of the file ends them."""
        while (size is None or size > 0) and (data := self.some(each if size is None else min(each, size))):
            size = size if size is None else size - len(data)
            yield data

    def skip_id3(self) -> None:
        """Leave out tags of ID3v2, which players let stand in front of any stream."""
        while self.peek(3) == b"ID3" and len(head := self.peek(_ID3_HEAD)) == _ID3_HEAD:
            size = head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9]
            self.skip(_ID3_HEAD + size + (_ID3_HEAD if head[5] & 0x10 else 0))
