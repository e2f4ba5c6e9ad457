"""H.264 as MP4 has it: NAL units with their lengths, parameter sets and colour in the sample entry (ISO/IEC 14496-15, 5)."""

import re
import struct
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from ..standard.bits import (
    NAL_AUD,
    NAL_END_OF_SEQUENCE,
    NAL_END_OF_STREAM,
    NAL_FILLER,
    NAL_PPS,
    NAL_SPS,
    unescape,
)
from ..standard.syntax import EXTENDED_SAR, Sps, parse_sps
from .boxes import box

# Not part of a sample. Parameter sets are in the sample entry; a sample is one access unit, which needs no delimiter; the
# ends of sequence and stream say what follows, and samples may be cut and joined; filler data is for constant bit rates.
_LEFT_OUT = (NAL_SPS, NAL_PPS, NAL_AUD, NAL_END_OF_SEQUENCE, NAL_END_OF_STREAM, NAL_FILLER)
_WITH_CHROMA = (100, 110, 122, 144)  # 5.3.3.1.2: the profiles whose avcC has chroma format and bit depths
_LARGEST_SET = 65535  # bytes
_START_CODE, _NOT_ZERO = re.compile(b"\0\0\1"), re.compile(b"[^\0]")
# Table E-1: sample aspect ratio by aspect_ratio_idc
_ASPECT_RATIOS = ((0, 0), (1, 1), (12, 11), (10, 11), (16, 11), (40, 33), (24, 11), (20, 11), (32, 11), (80, 33), (18, 11),
                  (15, 11), (64, 33), (160, 99), (4, 3), (3, 2), (2, 1))  # fmt: skip


def aspect_ratio_of(sps: Sps) -> tuple[int, int]:
    """E.2.1: sample aspect ratio, horizontal and vertical; (0, 0) = not specified."""
    vui = sps.vui
    if vui.aspect_ratio_idc == EXTENDED_SAR:
        return vui.sar_width, vui.sar_height
    return _ASPECT_RATIOS[vui.aspect_ratio_idc] if vui.aspect_ratio_idc < len(_ASPECT_RATIOS) else (0, 0)


class ParameterSets:
    """The parameter sets of a track, as its first access unit has them; a stream that changes them later is refused."""

    def __init__(self, first: Iterable[bytes]) -> None:
        units = list(dict.fromkeys(first))
        self.sps_units = [unit for unit in units if unit[0] & 31 == NAL_SPS]
        self.pps_units = [unit for unit in units if unit[0] & 31 == NAL_PPS]
        if not self.sps_units or not self.pps_units:
            raise ValueError("the first access unit has no parameter sets")
        if len(self.sps_units) > 31 or len(self.pps_units) > 255 or max(map(len, units)) > _LARGEST_SET:
            raise ValueError("too many parameter sets, or too large ones")
        self._known = set(units)
        self.sps: Sps = parse_sps(unescape(self.sps_units[0][1:]))

    def check(self, units: Iterable[bytes]) -> None:
        """5.3.3: samples of `avc1` have no parameter sets, so later ones must equal the first; else ValueError."""
        if not self._known.issuperset(units):
            raise ValueError("the parameter sets change, which an MP4 track of type avc1 cannot say")

    @property
    def sample_aspect_ratio(self) -> tuple[int, int]:
        """E.2.1: horizontal and vertical; (0, 0) = not specified."""
        return aspect_ratio_of(self.sps)

    @property
    def display_size(self) -> tuple[Fraction, Fraction]:
        """Width and height of the shown video in square samples: the width takes the aspect ratio."""
        across, down = self.sample_aspect_ratio
        scale = Fraction(across, down) if across and down else Fraction(1)
        return self.sps.width * scale, Fraction(self.sps.height)

    def sample_entry(self) -> bytes:
        """5.4.2.1, and 12.1.3 of 14496-12: AVCSampleEntry with avcC, and with pasp and colr if the SPS says them."""
        sps = self.sps
        if max(sps.width, sps.height) > 65535:
            raise ValueError(f"{sps.width}x{sps.height} is too large for MP4")
        head = struct.pack(">6xH16xHHIIxxxxH32sHh", 1, sps.width, sps.height, 72 << 16, 72 << 16, 1, b"", 24, -1)
        return box(b"avc1", head, self.configuration(), self._aspect_ratio(), self._colour())

    def configuration(self) -> bytes:
        """5.3.3.1.2: avcC, the AVCDecoderConfigurationRecord."""
        sps, first = self.sps, self.sps_units[0]
        fields = [bytes((1, *first[1:4], 0xFC | 3, 0xE0 | len(self.sps_units)))]  # lengths of NAL units take 3 + 1 bytes
        fields += [struct.pack(">H", len(unit)) + unit for unit in self.sps_units]
        fields += [bytes((len(self.pps_units),)), *(struct.pack(">H", len(unit)) + unit for unit in self.pps_units)]
        if sps.profile_idc in _WITH_CHROMA:
            depths = sps.bit_depth_luma_minus8, sps.bit_depth_chroma_minus8
            fields.append(bytes((0xFC | sps.chroma_format_idc, 0xF8 | depths[0], 0xF8 | depths[1], 0)))
        return box(b"avcC", *fields)

    def _aspect_ratio(self) -> bytes:
        """12.1.4 of 14496-12: pasp; nothing if not specified."""
        ratio = self.sample_aspect_ratio
        return box(b"pasp", struct.pack(">II", *ratio)) if all(ratio) else b""

    def _colour(self) -> bytes:
        """12.1.5 of 14496-12: colr of type nclx, with the code points of the VUI; nothing if it has none."""
        vui = self.sps.vui
        if not vui.video_signal_type_present_flag:
            return b""
        points = vui.colour_primaries, vui.transfer_characteristics, vui.matrix_coefficients
        return box(b"colr", struct.pack(">4sHHHB", b"nclx", *points, vui.video_full_range_flag << 7))


def to_sample(access_unit: bytes) -> tuple[bytes, list[bytes]]:
    """5.3.2: (sample, parameter sets) of an access unit in Annex B: each NAL unit follows its length, 4 bytes.

    Parameter sets are returned apart, without start codes. SEI stays in the sample; delimiters, filler data and ends of
    sequence and stream are left out. ValueError if this is no byte stream, or nothing is left.
    """
    chunks: list[bytes | memoryview] = []
    sets: list[bytes] = []
    for unit in _units(access_unit):
        nal_unit_type = unit[0] & 31
        if nal_unit_type in (NAL_SPS, NAL_PPS):
            sets.append(bytes(unit))
        elif nal_unit_type not in _LEFT_OUT:
            chunks += [struct.pack(">I", len(unit)), unit]
    if not chunks:
        raise ValueError("an access unit without slices")
    return b"".join(chunks), sets


class Colour(NamedTuple):
    """Code points of colour (Tables E-3 to E-5), and the range of samples: 1 is full."""

    primaries: int
    transfer: int
    matrix: int
    full_range: int


def to_byte_stream(sample: bytes, length_size: int) -> bytes:
    """5.3.2: the NAL units of a sample in Annex B, each with a start code; ValueError if a length is too large."""
    stream = bytearray()
    for begin, end in units_in(sample, length_size):
        stream += b"\0\0\0\1"
        stream += sample[begin:end]
    return bytes(stream)


def units_in(sample: bytes, length_size: int) -> Iterator[tuple[int, int]]:
    """5.3.2: [begin, end) of each NAL unit of a sample that is not empty; ValueError if a length is too large."""
    at = 0
    while at < len(sample):
        size = int.from_bytes(sample[at : at + length_size], "big")
        begin = at + length_size
        at = begin + size
        if at > len(sample):
            raise ValueError(f"a NAL unit of {size} bytes at byte {begin} of a sample of {len(sample)} bytes")
        if size:
            yield begin, at
        else:  # zeros, perhaps of a whole sample, are skipped in one step
            following = _NOT_ZERO.search(sample, at)
            at += ((following.start() if following else len(sample)) - at) // length_size * length_size


def without_parameter_sets(access_unit: bytes) -> bytes:
    """An access unit in Annex B without SPS and PPS, for writers that have them elsewhere."""
    return b"".join(b"\0\0\0\1" + unit for unit in _units(access_unit) if unit[0] & 31 not in (NAL_SPS, NAL_PPS))


def _units(stream: bytes) -> Iterator[memoryview]:
    """B.1: the NAL units of a whole byte stream, as `standard.bits.split_byte_stream` has them, several times as fast."""
    view, starts = memoryview(stream), [match.start() for match in _START_CODE.finditer(stream)]
    if not starts or any(stream[: starts[0]]):
        raise ValueError("no start code: this is not an H.264 byte stream (Annex B)")
    for begin, end in zip(starts, [*starts[1:], len(stream)]):
        begin += 3
        while end > begin and not stream[end - 1]:
            end -= 1
        if end > begin:
            yield view[begin:end]
