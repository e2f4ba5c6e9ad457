"""Syntax structures of 7.3 in one place: parameter sets, slice header, SEI, access unit delimiter.

Each is described once: a function of `rw`, which is a BitWriter or a BitReader, and a dataclass with the element names:
`rw.ue("max_num_ref_frames", sps, 0, 16)` = element, descriptor, legal range. The files: syntax_sps, syntax_pps, syntax_slice.
"""

import re
from collections.abc import Iterator

from .bits import BitReader, BitstreamError, BitWriter
from .syntax_pps import Pps, parse_pps, scaling_lists, write_pps
from .syntax_slice import (
    SI,
    SLICE_TYPE_NAMES,
    SP,
    B,
    I,
    ListModification,
    MarkingOperation,
    P,
    SliceHeader,
    Weight,
    parse_slice_header,
    starts_new_picture,
    write_slice_header,
)
from .syntax_sps import (
    BASELINE,
    EXTENDED,
    EXTENDED_SAR,
    HIGH,
    MAIN,
    PROFILES_WITH_CHROMA_FORMAT,
    Hrd,
    ScalingMatrix,
    Sps,
    Vui,
    parse_sps,
    write_sps,
)

__all__ = [
    "BASELINE",
    "EXTENDED",
    "EXTENDED_SAR",
    "HIGH",
    "MAIN",
    "PROFILES_WITH_CHROMA_FORMAT",
    "SEI_RECOVERY_POINT",
    "SEI_USER_DATA_UNREGISTERED",
    "SI",
    "SLICE_TYPE_NAMES",
    "SP",
    "B",
    "Hrd",
    "I",
    "ListModification",
    "MarkingOperation",
    "P",
    "Pps",
    "ScalingMatrix",
    "SliceHeader",
    "Sps",
    "Vui",
    "Weight",
    "parse_access_unit_delimiter",
    "parse_pps",
    "parse_sei",
    "parse_slice_header",
    "parse_sps",
    "scaling_lists",
    "sei_messages",
    "starts_new_picture",
    "write_access_unit_delimiter",
    "write_pps",
    "write_sei",
    "write_slice_header",
    "write_sps",
]

# D.1.1: payloadType
SEI_USER_DATA_UNREGISTERED, SEI_RECOVERY_POINT = 5, 6

_FF_BYTES = re.compile(rb"\xff*")


def write_sei(messages: list[tuple[int, bytes]]) -> bytes:
    """7.3.2.3: RBSP of supplemental enhancement information from (payloadType, payload) pairs."""
    writer = BitWriter()
    for payload_type, payload in messages:
        for number in (payload_type, len(payload)):
            for byte in [255] * (number // 255) + [number % 255]:
                writer.put_u(8, byte)
        for byte in payload:
            writer.put_u(8, byte)
    writer.trailing_bits()
    return writer.to_bytes()


def parse_sei(rbsp: bytes) -> list[tuple[int, bytes]]:
    """7.3.2.3: (payloadType, payload) of each message; what they say is not looked at."""
    return list(sei_messages(rbsp))


def sei_messages(rbsp: bytes) -> Iterator[tuple[int, bytes]]:
    """7.3.2.3: the same one by one, for when the first suffice."""
    reader = BitReader(rbsp)
    while reader.more_rbsp_data():
        payload_type, size = _sei_number(reader, rbsp), _sei_number(reader, rbsp)
        start = reader.position // 8
        if 8 * size > reader.end - reader.position:
            raise BitstreamError(f"an SEI message of {size} bytes is longer than its NAL unit", reader.position)
        yield payload_type, rbsp[start : start + size]
        reader.skip(8 * size)


def _sei_number(reader: BitReader, rbsp: bytes) -> int:
    """7.3.2.3.1: bytes of 255 and another, added up."""
    start = reader.position // 8
    run = _FF_BYTES.match(rbsp, start)
    count = run.end() - start if run else 0
    reader.skip(8 * count)
    return 255 * count + reader.get_u(8)


def write_access_unit_delimiter(primary_pic_type: int) -> bytes:
    """7.3.2.4: RBSP; primary_pic_type 0: I slices only, 1: I and P, 2: I, P and B (Table 7-5)."""
    writer = BitWriter()
    writer.put_u(3, primary_pic_type)
    writer.trailing_bits()
    return writer.to_bytes()


def parse_access_unit_delimiter(rbsp: bytes) -> int:
    """7.3.2.4: primary_pic_type."""
    return BitReader(rbsp).get_u(3)
