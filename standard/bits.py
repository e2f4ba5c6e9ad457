"""Bits and NAL units: reader and writer of header syntax elements (7.2, 9.1), NAL units and Annex B byte streams.

BitReader and BitWriter share one face, so that a syntax structure is described once for both (see syntax.py):
`rw.ue("log2_max_frame_num_minus4", sps, 0, 12)` writes that field of `sps`, or reads it into `sps`; a value outside the
legal range is refused by its name. Slice data, where speed counts, has kernels of its own.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

# Table 7-1: nal_unit_type
NAL_SLICE, NAL_PARTITION_A, NAL_PARTITION_B, NAL_PARTITION_C, NAL_IDR, NAL_SEI, NAL_SPS, NAL_PPS = range(1, 9)
NAL_AUD, NAL_END_OF_SEQUENCE, NAL_END_OF_STREAM, NAL_FILLER = range(9, 13)
NAL_SPS_EXTENSION, NAL_PREFIX, NAL_SUBSET_SPS = range(13, 16)
NAL_AUXILIARY_SLICE, NAL_SLICE_EXTENSION, NAL_SLICE_3D_EXTENSION = 19, 20, 21

# More than a NAL unit can hold: 384 samples of I_PCM and some bits for each macroblock of the largest frame (Table A-1).
LARGEST_NAL_UNIT = 1 << 26  # bytes

MAX_UE = (1 << 32) - 2
MAX_SE = (1 << 31) - 1


class BitstreamError(ValueError):
    """A stream that is not what the standard says; `position` is in bits of the RBSP, or in bytes of a byte stream."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class SyntaxElements:
    """What a syntax description may say, whether it writes or reads: one syntax element of one object at a time.

    `index` selects an entry of a list-valued field; a reader appends it.
    """

    writing: bool

    def u(self, n: int, name: str, obj: Any, low: int = 0, high: int | None = None, index: int | None = None) -> int:
        """u(n): n bits, the most significant first."""
        return self._element("u", n, name, obj, low, (1 << n) - 1 if high is None else high, index)

    def flag(self, name: str, obj: Any, index: int | None = None) -> int:
        """u(1), as 0 or 1."""
        return self._element("u", 1, name, obj, 0, 1, index)

    def ue(self, name: str, obj: Any, low: int = 0, high: int = MAX_UE, index: int | None = None) -> int:
        """ue(v): unsigned Exp-Golomb code."""
        return self._element("ue", 0, name, obj, low, high, index)

    def se(self, name: str, obj: Any, low: int = -MAX_SE, high: int = MAX_SE, index: int | None = None) -> int:
        """se(v): signed Exp-Golomb code."""
        return self._element("se", 0, name, obj, low, high, index)

    def reserved(self, n: int) -> None:
        """Bits that are written as 0 and ignored by a reader."""
        raise NotImplementedError

    def infer(self, name: str, obj: Any, value: int) -> None:
        """The value of an absent element: a reader sets it, a writer refuses an object that says otherwise."""
        raise NotImplementedError

    def more_data(self, wanted: bool) -> bool:
        """7.2: more_rbsp_data(); a writer answers that what follows is `wanted`."""
        raise NotImplementedError

    def trailing_bits(self) -> None:
        """7.3.2.11: rbsp_trailing_bits()."""
        raise NotImplementedError

    def _element(self, descriptor: str, n: int, name: str, obj: Any, low: int, high: int, index: int | None) -> int:
        raise NotImplementedError


def _full_name(name: str, index: int | None) -> str:
    return name if index is None else f"{name}[{index}]"


class BitWriter(SyntaxElements):
    """Writes syntax elements into an RBSP; for headers."""

    writing = True

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._tail = 0  # the bits that do not fill a byte yet ...
        self._tail_bits = 0  # ... and how many there are

    @property
    def position(self) -> int:
        """Bits written so far."""
        return 8 * len(self._bytes) + self._tail_bits

    def put_u(self, n: int, value: int) -> None:
        """u(n)."""
        if not 0 <= value < 1 << n:
            raise ValueError(f"{value} does not fit in {n} bits")
        tail = self._tail << n | value
        bits = self._tail_bits + n
        whole, self._tail_bits = divmod(bits, 8)
        self._bytes += (tail >> self._tail_bits).to_bytes(whole, "big")
        self._tail = tail & ((1 << self._tail_bits) - 1)

    def put_ue(self, value: int) -> None:
        """9.1: ue(v)."""
        if not 0 <= value <= MAX_UE:
            raise ValueError(f"ue(v) cannot carry {value}")
        self.put_u(2 * (value + 1).bit_length() - 1, value + 1)

    def put_se(self, value: int) -> None:
        """9.1.1: se(v)."""
        self.put_ue(2 * value - 1 if value > 0 else -2 * value)

    def put_te(self, value: int, largest: int) -> None:
        """9.1: te(v) with range 0..largest."""
        if largest > 1:
            self.put_ue(value)
        else:
            self.put_u(1, 1 - value)

    def trailing_bits(self) -> None:
        self.put_u(1, 1)
        self.align()

    def align(self, bit: int = 0) -> None:
        """Fill the last byte with copies of one bit."""
        n = -self._tail_bits % 8
        self.put_u(n, ((1 << n) - 1) * bit)

    def to_bytes(self) -> bytes:
        """All bits, the last byte filled with zeros."""
        tail = self._tail << (-self._tail_bits % 8)
        return bytes(self._bytes) + tail.to_bytes(1 if self._tail_bits else 0, "big")

    def reserved(self, n: int) -> None:
        self.put_u(n, 0)

    def infer(self, name: str, obj: Any, value: int) -> None:
        if getattr(obj, name) != value:
            raise ValueError(f"{name} = {getattr(obj, name)} cannot be written here: it is inferred to be {value}")

    def more_data(self, wanted: bool) -> bool:
        return wanted

    def _element(self, descriptor: str, n: int, name: str, obj: Any, low: int, high: int, index: int | None) -> int:
        value = int(getattr(obj, name) if index is None else getattr(obj, name)[index])
        if not low <= value <= high:
            raise ValueError(f"{_full_name(name, index)} = {value} is outside {low}..{high}")
        if descriptor == "u":
            self.put_u(n, value)
        elif descriptor == "ue":
            self.put_ue(value)
        else:
            self.put_se(value)
        return value


class BitReader(SyntaxElements):
    """Reads syntax elements of an RBSP (emulation prevention already removed); never beyond its end."""

    writing = False

    def __init__(self, rbsp: bytes | bytearray | memoryview, position: int = 0) -> None:
        self._data = bytes(rbsp)
        self.position = position  # in bits
        self.end = 8 * len(self._data)
        stripped = self._data.rstrip(b"\0")
        last = stripped[-1] if stripped else 0
        # position of rbsp_stop_one_bit; -1 where there is none
        self._stop = 8 * len(stripped) - (last & -last).bit_length() if stripped else -1

    def peek(self, n: int) -> int:
        """The next n bits without moving on; zeros beyond the end."""
        first = self.position >> 3
        size = (self.position + n + 7 >> 3) - first
        piece = self._data[first : first + size]
        value = int.from_bytes(piece, "big") << 8 * (size - len(piece))
        return value >> (8 * (first + size) - self.position - n) & ((1 << n) - 1)

    def skip(self, n: int) -> None:
        """Move on by n bits."""
        if n > self.end - self.position:
            raise BitstreamError("the data ends within a syntax element", self.position)
        self.position += n

    def get_u(self, n: int) -> int:
        """u(n)."""
        value = self.peek(n)
        self.skip(n)
        return value

    def get_ue(self) -> int:
        """9.1: ue(v)."""
        zeros = 32 - self.peek(32).bit_length()
        if zeros == 32:
            reason = "the data ends within a syntax element" if self.end - self.position <= 32 else "no Exp-Golomb code"
            raise BitstreamError(reason, self.position)
        value = self.peek(2 * zeros + 1) - 1
        self.skip(2 * zeros + 1)
        return value

    def get_se(self) -> int:
        """9.1.1: se(v)."""
        code = self.get_ue()
        return (code + 1) // 2 if code & 1 else -(code // 2)

    def more_rbsp_data(self) -> bool:
        """7.2: whether anything but rbsp_trailing_bits() is left."""
        return self.position < self._stop

    def trailing_bits(self) -> None:
        if self.position != self._stop:
            raise BitstreamError("rbsp_trailing_bits() expected", self.position)
        self.position = self.end

    def reserved(self, n: int) -> None:
        self.skip(n)

    def infer(self, name: str, obj: Any, value: int) -> None:
        setattr(obj, name, value)

    def more_data(self, wanted: bool) -> bool:
        return self.more_rbsp_data()

    def _element(self, descriptor: str, n: int, name: str, obj: Any, low: int, high: int, index: int | None) -> int:
        start = self.position
        try:
            value = self.get_u(n) if descriptor == "u" else self.get_ue() if descriptor == "ue" else self.get_se()
        except BitstreamError as error:
            raise BitstreamError(f"{_full_name(name, index)}: {error}", start) from None
        if not low <= value <= high:
            raise BitstreamError(f"{_full_name(name, index)} = {value} is outside {low}..{high}", start)
        if index is None:
            setattr(obj, name, value)
        else:
            getattr(obj, name)[index:] = [value]
        return value


# ---------------------------------------------------------------------------------------------------------------------
# NAL units (7.3.1, 7.4.1) and byte streams (Annex B)
# ---------------------------------------------------------------------------------------------------------------------

_NEEDS_ESCAPE = re.compile(rb"\x00\x00(?=[\x00-\x03])")


def escape(rbsp: bytes) -> bytes:
    """7.4.1: emulation prevention: no 00 00 00, 00 00 01, 00 00 02 and no foreign 00 00 03 in a NAL unit."""
    payload = _NEEDS_ESCAPE.sub(b"\x00\x00\x03", rbsp)
    return payload + b"\x03" if payload.endswith(b"\0") else payload


def unescape(payload: bytes) -> bytes:
    """7.3.1: the RBSP of a NAL unit's payload: emulation_prevention_three_byte removed."""
    return payload.replace(b"\x00\x00\x03", b"\x00\x00")


@cache
def start_of_nal_unit(nal_unit_type: int, nal_ref_idc: int, long_start_code: bool = True) -> bytes:
    """B.1.1: start code (4 bytes for parameter sets and at the start of an access unit) and NAL unit header."""
    return (b"\0\0\0\1" if long_start_code else b"\0\0\1") + bytes([nal_ref_idc << 5 | nal_unit_type])


def nal_unit(nal_unit_type: int, nal_ref_idc: int, rbsp: bytes, long_start_code: bool = True) -> bytes:
    """7.3.1, B.1.1: one NAL unit with its start code, from an RBSP with its trailing bits."""
    return start_of_nal_unit(nal_unit_type, nal_ref_idc, long_start_code) + escape(rbsp)


class NalUnit(NamedTuple):
    """One NAL unit of a byte stream: header fields, payload and where it lies."""

    offset: int  # bytes from the beginning of the stream to the NAL unit's header byte
    nal_ref_idc: int
    nal_unit_type: int
    data: bytes  # header byte and payload, emulation prevention still in it

    def rbsp(self) -> bytes:
        """The payload without emulation prevention."""
        return unescape(self.data[1:])


def parse_nal_unit(data: bytes, offset: int = 0) -> NalUnit:
    """7.3.1: header of a NAL unit."""
    if not data:
        raise BitstreamError("empty NAL unit", offset)
    if data[0] & 0x80:
        raise BitstreamError("forbidden_zero_bit is 1", offset)
    return NalUnit(offset, data[0] >> 5 & 3, data[0] & 31, data)


class ByteStreamSplitter:
    """B.1: cuts a byte stream that comes in pieces into NAL units; holds no more than the unit that is not finished."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.offset = 0  # of the buffer in the stream
        self._started = False  # the buffer begins with a NAL unit (not with what precedes the first start code)
        self._complained = False  # about what precedes it
        self._searched = 0  # no start code begins before this index

    def feed(self, piece: bytes) -> list[tuple[int, bytes]]:
        """(offset, data) of every NAL unit that the piece completes: header byte and payload.

        After an error feed(b"") gives what follows.
        """
        self._buffer += piece
        if not self._started:
            self._start()
        buffer, units, begin = self._buffer, [], 0
        while self._started and (code := buffer.find(b"\0\0\1", max(begin, self._searched))) >= 0:
            units += self._unit(begin, code)
            begin, self._searched = code + 3, 0
        self._drop(begin)
        self._searched = max(0, len(buffer) - 2)
        if len(buffer) > LARGEST_NAL_UNIT and not units:  # else the next call says so
            at = self.offset
            self.clear()
            raise BitstreamError(f"a NAL unit of more than {LARGEST_NAL_UNIT} bytes", at)
        return units

    def flush(self) -> list[tuple[int, bytes]]:
        """(offset, data) of the last NAL unit of the stream."""
        units = self._unit(0, len(self._buffer)) if self._started else []
        self.clear()
        return units

    def clear(self, complain: bool = True) -> None:
        """Forget what is held; complain: what comes next begins anew, and with a start code."""
        self._drop(len(self._buffer))
        self._started, self._complained = False, not complain
        self._searched = 0

    def _start(self) -> None:
        """B.1.1: skip leading_zero_8bits and the first start code; anything else before it is an error, once."""
        buffer, at = self._buffer, self.offset
        code = buffer.find(b"\0\0\1")
        broken = bool((buffer[:code] if code >= 0 else buffer).strip(b"\0"))
        self._started = code >= 0
        self._drop(code + 3 if self._started else max(0, len(buffer) - 2))
        if broken and not self._complained:
            self._complained = True
            raise BitstreamError("no start code: this is not an H.264 byte stream (Annex B)", at)

    def _drop(self, count: int) -> None:
        del self._buffer[:count]
        self.offset += count

    def _unit(self, begin: int, end: int) -> list[tuple[int, bytes]]:
        data = bytes(self._buffer[begin:end]).rstrip(b"\0")  # trailing_zero_8bits, and zero_byte of the next start code
        return [(self.offset + begin, data)] if data else []


def split_byte_stream(stream: bytes) -> Iterator[NalUnit]:
    """B.1: the NAL units of a whole byte stream."""
    splitter = ByteStreamSplitter()
    for offset, data in splitter.feed(stream):
        yield parse_nal_unit(data, offset)
    for offset, data in splitter.flush():
        yield parse_nal_unit(data, offset)
