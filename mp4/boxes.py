"""Boxes, the units of an MP4 file (ISO/IEC 14496-12, 4.2)."""

import struct

LARGEST_32 = (1 << 32) - 1
VIDEO_TRACK, SOUND_TRACK = 1, 2  # their numbers
UPRIGHT = (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)  # 6.2.2: the matrix of video that is not rotated


def box(box_type: bytes, *fields: bytes) -> bytes:
    """4.2: Box: size, type, contents. ValueError above 4 GiB: only mdat may be so large, and `mdat_header` makes that."""
    size = 8 + sum(map(len, fields))
    if size > LARGEST_32:
        raise ValueError(f"a box {box_type.decode()} of {size} bytes")
    return b"".join((struct.pack(">I4s", size, box_type), *fields))


def full_box(box_type: bytes, version: int, flags: int, *fields: bytes) -> bytes:
    """4.2: FullBox: a Box whose contents begin with version and flags."""
    return box(box_type, struct.pack(">I", version << 24 | flags), *fields)


def mdat_header(size: int) -> bytes:
    """8.1.1: the header of the box with the media data, `size` bytes; the size takes 64 bits where it must."""
    return struct.pack(">I4s", 8 + size, b"mdat") if 8 + size <= LARGEST_32 else struct.pack(">I4sQ", 1, b"mdat", 16 + size)


def fixed_point(value: float) -> int:
    """A number as 16.16, rounded; ValueError if it does not fit."""
    number = round(value * 65536)
    if not 0 <= number <= LARGEST_32:
        raise ValueError(f"{value} does not fit 16.16 bits")
    return number


def header_times(duration: int, between: bytes, after: bytes) -> tuple[int, bytes]:
    """(version, contents) of a header: no dates of creation, `between`, the duration in 32 or 64 bits, `after`."""
    if duration > LARGEST_32:
        return 1, struct.pack(">QQ", 0, 0) + between + struct.pack(">Q", duration) + after
    return 0, struct.pack(">II", 0, 0) + between + struct.pack(">I", duration) + after


def this_file() -> bytes:
    """8.7.1: dinf: the samples are in this file."""
    return box(b"dinf", full_box(b"dref", 0, 0, struct.pack(">I", 1), full_box(b"url ", 0, 1)))
