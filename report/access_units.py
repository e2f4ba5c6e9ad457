"""The access units of a byte stream, as the page gives them to the browser's decoder, with their headers and sizes."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from ..decoder.info import NAL_NAMES
from ..standard.bits import (
    NAL_AUD,
    NAL_END_OF_SEQUENCE,
    NAL_END_OF_STREAM,
    NAL_FILLER,
    NAL_IDR,
    NAL_PPS,
    NAL_SEI,
    NAL_SLICE,
    NAL_SPS,
    BitstreamError,
    ByteStreamSplitter,
    NalUnit,
    parse_nal_unit,
)
from ..standard.syntax import (
    Pps,
    SliceHeader,
    Sps,
    parse_pps,
    parse_slice_header,
    parse_sps,
    sei_messages,
    starts_new_picture,
)
from ..standard.syntax_sei import (
    SEI_BUFFERING_PERIOD,
    SEI_PIC_TIMING,
    BufferingPeriod,
    PicTiming,
    named_sps,
    parse_buffering_period,
    parse_pic_timing,
)
from .sei_text import SeiMessages

# 7.4.1.2.3: NAL units that begin an access unit where slices precede them.
_BEFORE_SLICES = (NAL_SEI, NAL_SPS, NAL_PPS, NAL_AUD, *range(14, 19))
_START_CODE = b"\0\0\0\1"


@dataclass
class AccessUnit:
    """One coded picture with the NAL units that belong to it.

    data: Annex B without filler data; an IDR picture begins with its parameter sets, even where the stream has them only
    once. size: bytes in the stream, start codes and filler data included. names: the NAL units by name, with their bytes.
    """

    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    is_key: bool = False
    slices: list[tuple[SliceHeader, int]] = field(default_factory=list)  # header, slice QP
    names: list[tuple[str, int]] = field(default_factory=list)
    sps: Sps | None = None
    pps: Pps | None = None
    period: BufferingPeriod | None = None
    timing: PicTiming | None = None


class AccessUnits:
    """Cuts a byte stream that comes in pieces into access units; sps, pps: parameter sets by number, sei: all messages."""

    def __init__(self) -> None:
        self.sps: dict[int, Sps] = {}
        self.pps: dict[int, Pps] = {}
        self.sei = SeiMessages()
        self._sets: dict[tuple[int, int], bytes] = {}  # NAL units of the parameter sets by type and number
        self._splitter = ByteStreamSplitter()
        self._end = 0  # of the NAL unit before, in the stream
        self._last: SliceHeader | None = None
        self._active: Sps | None = None
        self._unit = AccessUnit()

    def feed(self, piece: bytes) -> Iterator[AccessUnit]:
        """The access units that a piece completes, in coding order."""
        for offset, data in self._splitter.feed(piece):
            yield from self._nal_unit(offset, data)

    def flush(self) -> Iterator[AccessUnit]:
        """The last access units of the stream."""
        for offset, data in self._splitter.flush():
            yield from self._nal_unit(offset, data)
        yield from self._end_unit()

    def _nal_unit(self, offset: int, data: bytes) -> Iterator[AccessUnit]:
        """Add one NAL unit; the bytes before it, of start codes and zeros, belong to it."""
        unit = parse_nal_unit(data, offset)
        kind = unit.nal_unit_type
        size = offset + len(data) - self._end
        self._end += size
        header, pps = None, None
        if kind in (NAL_SLICE, NAL_IDR):
            with suppress(BitstreamError):  # the decoder says what is wrong
                header, sps, pps, _ = parse_slice_header(kind, unit.nal_ref_idc, unit.rbsp(), self.sps, self.pps)
                self._active = sps
        follows = header is not None and self._last is not None and starts_new_picture(header, self._last)
        if self._unit.slices and (kind in _BEFORE_SLICES or (follows and header and not header.redundant_pic_cnt)):
            yield from self._end_unit()
        self._add(unit, size)
        if header is not None and pps is not None:
            self._add_slice(header, pps)
        if kind in (NAL_END_OF_SEQUENCE, NAL_END_OF_STREAM):  # where the decoder ends its picture, too
            yield from self._end_unit()

    def _add(self, unit: NalUnit, size: int) -> None:
        kind, current = unit.nal_unit_type, self._unit
        current.size += size
        current.names.append((NAL_NAMES.get(kind, f"type {kind}"), size))
        if kind != NAL_FILLER:
            current.data += _START_CODE + unit.data
        with suppress(BitstreamError):
            if kind == NAL_SPS:
                found = parse_sps(unit.rbsp())
                self.sps[found.seq_parameter_set_id] = found
                self._sets[kind, found.seq_parameter_set_id] = unit.data
            elif kind == NAL_PPS:
                pps = parse_pps(unit.rbsp())
                if pps.seq_parameter_set_id in self.sps:
                    pps = parse_pps(unit.rbsp(), self.sps[pps.seq_parameter_set_id])
                self.pps[pps.pic_parameter_set_id] = pps
                self._sets[kind, pps.pic_parameter_set_id] = unit.data
            elif kind == NAL_SEI:
                self._add_times(unit.rbsp())

    def _add_slice(self, header: SliceHeader, pps: Pps) -> None:
        current = self._unit
        if not current.slices:
            current.sps, current.pps, current.is_key = self._active, pps, bool(header.idr)
            if current.is_key and not any(name == "SPS" for name, _ in current.names):
                sets = (_START_CODE + data for _, data in sorted(self._sets.items()))
                current.data[:0] = b"".join(sets)
        current.slices.append((header, header.qp(pps)))
        self._last = header

    def _add_times(self, rbsp: bytes) -> None:
        """D.1.1, D.1.2: the messages that say when the picture leaves the coded picture buffer."""
        for payload_type, payload in sei_messages(rbsp):
            self.sei.add(payload_type, payload)
            if payload_type == SEI_BUFFERING_PERIOD and (named := named_sps(payload)) in self.sps:
                self._active = self.sps[named]
                self._unit.period = parse_buffering_period(payload, self._active)
            elif payload_type == SEI_PIC_TIMING and self._active is not None:
                self._unit.timing = parse_pic_timing(payload, self._active)

    def _end_unit(self) -> Iterator[AccessUnit]:
        if self._unit.slices:
            unit, self._unit, self._last = self._unit, AccessUnit(), None
            yield unit
