"""FLAC (RFC 9639): STREAMINFO, headers of frames, and the frames of a file, whose ends only their checks tell."""

from collections.abc import Iterator
from typing import NamedTuple

from ..standard.bits import BitstreamError
from .crc import CRC_8, CRC_16
from .reading import PIECE, Reader
from .stream import SoundFormat, SoundPacket, SoundStream

MAGIC = b"fLaC"
STREAM_INFO = 34  # bytes
_LARGEST_FRAME = 1 << 22  # bytes: 65535 samples of 8 channels and 32 bits are half of it
_SHORTEST_FRAME = 8  # bytes
LONGEST_HEADER = 16  # bytes
_MOST_TRIES = 8  # headers inside of a frame that look like the next one
_TAG = 128  # bytes of an ID3v1 tag at the end of a file


class FrameHeader(NamedTuple):
    """9.1: size: of the header in bytes; number: of the frame, or of its first sample in streams of variable blocks."""

    size: int
    number: int
    block: int


def format_of(stream_info: bytes) -> SoundFormat:
    """8.2: what STREAMINFO says; BitstreamError. The number of samples and their MD5 are left out: a copy may be cut."""
    if len(stream_info) < STREAM_INFO:
        raise BitstreamError(f"a STREAMINFO of {len(stream_info)} bytes, not {STREAM_INFO}")
    fields = int.from_bytes(stream_info[10:18], "big")
    rate, channels, bits = fields >> 44, (fields >> 41 & 7) + 1, (fields >> 36 & 31) + 1
    if not rate or bits < 4:
        raise BitstreamError(f"a STREAMINFO of {rate} samples a second, {bits} bits each")
    known = (fields >> 36 << 36).to_bytes(8, "big")
    return SoundFormat("flac", rate, channels, stream_info[:10] + known + bytes(16), bits)


def frame_header(data: bytes | bytearray | memoryview) -> FrameHeader | None:
    """9.1: the header at the beginning of `data`; None if there is none."""
    if len(data) < 6 or data[0] != 0xFF or data[1] & 0xFE != 0xF8 or data[3] & 1 or data[3] >> 4 > 10:
        return None
    block_code, rate_code = data[2] >> 4, data[2] & 15
    if not block_code or rate_code == 15:
        return None
    ones = 8 - (data[4] ^ 0xFF).bit_length()  # 9.1.5: bytes of the coded number, 0 for one
    if ones in (1, 8):
        return None
    end = 4 + max(1, ones)
    extra = {6: 1, 7: 2}.get(block_code, 0)
    size = end + extra + {12: 1, 13: 2, 14: 2}.get(rate_code, 0) + 1
    if len(data) < size or CRC_8.of_few(bytes(data[: size - 1])) != data[size - 1]:
        return None
    number = data[4] & (0x7F if not ones else 0x7F >> ones)
    for byte in data[5:end]:
        number = number << 6 | byte & 0x3F
    if extra:
        block = int.from_bytes(data[end : end + extra], "big") + 1
    else:
        block = {1: 192, **{code: 144 << code for code in range(2, 6)}}.get(block_code, 1 << block_code)
    return FrameHeader(size, number, block)


def frame_duration(data: bytes) -> int:
    """Samples of a whole frame; BitstreamError."""
    header = frame_header(data[:LONGEST_HEADER])
    if header is None:
        raise BitstreamError("no FLAC frame: its header is wrong")
    return header.block


def open_flac(reader: Reader) -> SoundStream:
    """A native FLAC file, from its magic on; BitstreamError, at once or with a packet."""
    reader.exactly(len(MAGIC), "its magic")
    stream_info, last = b"", False
    while not last:
        head = reader.exactly(4, "a metadata block")
        last, block_type, size = head[0] > 127, head[0] & 127, int.from_bytes(head[1:], "big")
        if not stream_info:
            if block_type:
                raise BitstreamError(f"the first metadata block is of type {block_type}, not STREAMINFO")
            stream_info = reader.exactly(min(size, STREAM_INFO), "STREAMINFO")
            size -= len(stream_info)
        reader.skip(size)
    return SoundStream(format_of(stream_info), _frames(reader))


def _frames(reader: Reader) -> Iterator[SoundPacket]:
    """9: the frames. One ends where its check is right and a header with the next number follows, or the file ends."""
    buffer, begin, number, at = bytearray(), 0, 0, reader.position
    while True:
        if begin > PIECE or begin == len(buffer):
            del buffer[:begin]
            begin = 0
        buffer += reader.some(PIECE) if len(buffer) - begin < PIECE else b""
        rest = len(buffer) - begin
        if not rest or (rest == _TAG and buffer.startswith(b"TAG", begin)):
            return
        header = frame_header(buffer[begin : begin + LONGEST_HEADER])
        end = _end_of_frame(reader, buffer, begin, header) if header is not None else 0
        if header is None or not end:
            raise _damaged(number, at)
        yield SoundPacket(bytes(buffer[begin:end]), header.block)
        number, at, begin = number + 1, at + end - begin, end


def _end_of_frame(reader: Reader, buffer: bytearray, begin: int, header: FrameHeader) -> int:
    """Where the frame at byte `begin` of the buffer ends, which grows as long as it does not; 0: nowhere."""
    following = header.number + (header.block if buffer[begin + 1] & 1 else 1)
    mark, at, tries = bytes(buffer[begin : begin + 2]), begin + _SHORTEST_FRAME, 0
    while True:
        at = buffer.find(mark, at)
        if at < 0 or at + LONGEST_HEADER > len(buffer):
            more = reader.some(max(PIECE, len(buffer))) if len(buffer) - begin < _LARGEST_FRAME else b""
            if more:
                at = len(buffer) - 1 if at < 0 else at  # half of the mark may end the buffer
                at = max(at, begin + _SHORTEST_FRAME)
                buffer += more
                continue
        if at < 0:
            return _last_end(buffer, begin)
        other = frame_header(buffer[at : at + LONGEST_HEADER])
        if other is not None and other.number == following:
            if not CRC_16(bytes(buffer[begin:at])):
                return at
            tries += 1  # so many are no accident, and each takes its time
            if tries > _MOST_TRIES:
                return 0
        at += 1


def _last_end(buffer: bytearray, begin: int) -> int:
    """Where the last frame ends, before a tag or at the end; 0 if it is cut off. With its own check a frame's check is 0."""
    ends = [len(buffer)] + ([len(buffer) - _TAG] if buffer[-_TAG : -_TAG + 3] == b"TAG" else [])
    for end in ends:
        if end - begin >= _SHORTEST_FRAME and not CRC_16(bytes(buffer[begin:end])):
            return end
    return 0


def _damaged(number: int, at: int) -> BitstreamError:
    return BitstreamError(f"FLAC frame {number} at byte {at} is damaged or cut off")
