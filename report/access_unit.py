"""What the page needs of access units beside their macroblocks: bytes for the browser's decoder, SEI messages, times."""

from contextlib import suppress
from dataclasses import dataclass

from ..analysis.frame import AnalysedFrame
from ..decoder.info import nal_name
from ..standard.bits import NAL_FILLER, NAL_PPS, NAL_SEI, NAL_SPS, BitstreamError, split_byte_stream
from ..standard.syntax import Pps, Sps, parse_pps, parse_sps, sei_messages
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

_START_CODE = b"\0\0\0\1"


@dataclass
class AccessUnit:
    """One coded picture with the NAL units that belong to it.

    data: Annex B without filler data; an IDR picture begins with its parameter sets, even where the stream has them only
    once. size: bytes in the stream, start codes and filler data included. names: the NAL units by name, with their bytes.
    """

    data: bytes
    size: int
    sps: Sps
    names: list[tuple[str, int]]
    period: BufferingPeriod | None = None
    timing: PicTiming | None = None


class AccessUnits:
    """`add` for each frame in coding order; sps, pps: parameter sets by number so far, sei: all messages."""

    def __init__(self) -> None:
        self.sps: dict[int, Sps] = {}
        self.pps: dict[int, Pps] = {}
        self.sei = SeiMessages()
        self._sets: dict[tuple[int, int], bytes] = {}  # NAL units of the parameter sets by type and number

    def add(self, frame: AnalysedFrame) -> AccessUnit:
        """The access unit of a frame."""
        names = [(nal_name(nal_unit_type), size) for nal_unit_type, size in frame.units]
        unit = AccessUnit(b"", frame.bits // 8, frame.sps, names)
        units, has_sps = [], False
        for nal_unit in split_byte_stream(frame.data):
            data, nal_unit_type = nal_unit.data, nal_unit.nal_unit_type
            has_sps |= nal_unit_type == NAL_SPS
            if nal_unit_type != NAL_FILLER:
                units.append(data)
            with suppress(BitstreamError):
                self._read(nal_unit_type, nal_unit.rbsp(), data, unit)
        if frame.is_idr and not has_sps:
            units[:0] = [data for _, data in sorted(self._sets.items())]
        unit.data = b"".join(_START_CODE + data for data in units)
        return unit

    def _read(self, nal_unit_type: int, rbsp: bytes, data: bytes, unit: AccessUnit) -> None:
        """Keep what a parameter set or an SEI NAL unit says."""
        if nal_unit_type == NAL_SPS:
            sps = parse_sps(rbsp)
            self.sps[sps.seq_parameter_set_id] = sps
            self._sets[nal_unit_type, sps.seq_parameter_set_id] = data
        elif nal_unit_type == NAL_PPS:
            pps = parse_pps(rbsp)
            if pps.seq_parameter_set_id in self.sps:
                pps = parse_pps(rbsp, self.sps[pps.seq_parameter_set_id])
            self.pps[pps.pic_parameter_set_id] = pps
            self._sets[nal_unit_type, pps.pic_parameter_set_id] = data
        elif nal_unit_type == NAL_SEI:
            for payload_type, payload in sei_messages(rbsp):
                self.sei.add(payload_type, payload)
                if payload_type == SEI_BUFFERING_PERIOD:  # D.1.1, D.1.2: when the picture leaves the buffer
                    unit.period = parse_buffering_period(payload, self.sps.get(named_sps(payload), unit.sps))
                elif payload_type == SEI_PIC_TIMING:
                    unit.timing = parse_pic_timing(payload, unit.sps)
