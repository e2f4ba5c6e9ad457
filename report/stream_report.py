"""One stream on the page: decoded frame by frame, its arrays and pictures added to the page as they come."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ..decoder.decoder import Decoder
from ..decoder.errors import BitstreamError
from ..decoder.info import StreamInfo
from ..decoder.picture import Frame
from ..encoder.files.video import Source
from ..standard.macroblock import I_PCM, LAST_INTRA, MB_TYPE_NAMES, P_SKIP, B_SKIP
from ..standard.syntax import Sps
from . import packing
from .access_units import AccessUnit, AccessUnits
from .fullness import CodedPictureBuffer, Fullness
from .page_file import PageFile
from .parameter_text import SLICE_COLUMNS, parameter_sets, slice_row
from .quality import Quality, compare
from .totals import FRAME_TYPES, Totals

GROUP = 1 << 20  # bytes of access units that the page keeps together, at least
MOST_LINES = 4000  # of NAL units that the page lists


@dataclass
class Coded:
    """What is known about a picture before it is decoded."""

    unit: AccessUnit
    fullness: Fullness | None
    group: int  # of access units, in the page
    place: tuple[int, int]  # in that group: first byte, bytes


@dataclass
class StreamReport:
    """`run` adds a stream to the page; `meta` is what the page says about it.

    key: prefix of the names of its data. limit: frames after which the page ends; None: no limit.
    """

    page: PageFile
    key: str
    name: str
    source: Source | None = None
    limit: int | None = None
    error: str = ""
    frames: list[dict[str, Any]] = field(default_factory=list)
    cut: bool = False  # the stream has more frames than the limit

    def __post_init__(self) -> None:
        self._units, self._info, self._buffer = AccessUnits(), StreamInfo(), CodedPictureBuffer()
        self._coded: list[Coded] = []
        self._access: list[list[int]] = []  # group, first byte, bytes, is_key of each access unit
        self._group, self._groups = bytearray(), 0
        self._lines: list[str] = []
        self._more_lines = 0
        self._totals = Totals()
        self._size: tuple[int, int] | None = None
        self._sps: Sps | None = None

    def run(self, pieces: Iterator[bytes]) -> None:
        """Decode the stream; BitstreamError is kept as `error`, and the frames before it are on the page."""
        frames = self.source.frames(0, 0) if self.source is not None else None
        decoder = Decoder(macroblocks=True)
        try:
            for frame in self._decoded(decoder, pieces):
                if self.limit is not None and len(self.frames) >= self.limit:
                    self.cut = True
                    break
                self._frame(frame, next(frames, None) if frames is not None else None)
        except BitstreamError as error:
            self.error = str(error)
        self._end_group()

    def _decoded(self, decoder: Decoder, pieces: Iterator[bytes]) -> Iterator[Frame]:
        for piece in pieces:
            self._lines_of(self._info.feed(piece))
            for unit in self._units.feed(piece):
                self._access_unit(unit)
            yield from decoder.decode(piece)
        self._lines_of(self._info.flush())
        for unit in self._units.flush():
            self._access_unit(unit)
        yield from decoder.flush()

    def _lines_of(self, lines: Iterator[str]) -> None:
        for line in lines:
            if len(self._lines) < MOST_LINES:
                self._lines.append(line)
            else:
                self._more_lines += 1

    def _access_unit(self, unit: AccessUnit) -> None:
        """Keep an access unit for the browser's decoder."""
        if self._group and len(self._group) + len(unit.data) > GROUP:
            self._end_group()
        place = len(self._group), len(unit.data)
        self._access.append([self._groups, *place, int(unit.is_key)])
        self._group += unit.data
        self._coded.append(Coded(unit, self._buffer.add(unit), self._groups, place))
        unit.data = bytearray()

    def _end_group(self) -> None:
        if self._group:
            self.page.add(f"{self.key}u{self._groups}", bytes(self._group))
            self._group = bytearray()
            self._groups += 1

    def _frame(self, frame: Frame, source: Any) -> None:
        """One decoded frame, in display order."""
        mbs = frame.macroblocks
        assert mbs is not None
        if self._size not in (None, (frame.width, frame.height)):
            raise BitstreamError(f"the size changes to {frame.width}x{frame.height} after {len(self.frames)} frames: the page"
                                 " shows those before")
        self._size, self._sps = (frame.width, frame.height), frame.sps
        coded = self._coded[frame.decode_index]
        unit = coded.unit
        kind = next((name for name in "BPI" if name in frame.slice_types), "I")
        quality = None
        if source is not None:
            crop = frame.sps.crop
            quality = compare((frame.y, frame.u, frame.v), source, crop[0], crop[2], frame.sps.mb_width, frame.sps.mb_height)
        sections = {
            "type": mbs.mb_type, "qp": mbs.qp, "cbp": mbs.cbp,
            "modes": mbs.transform_8x8 | mbs.chroma_mode << 1 | mbs.intra16x16_mode << 3,
            "slice": mbs.slice_id, "bits": np.minimum(mbs.bits, 65535), "coded": packing.block_mask(mbs.total_coeff),
            "sub": packing.sub_types(mbs.mb_type, mbs.sub_type), "intra": packing.intra_modes(mbs.mb_type, mbs.intra_mode),
            **packing.motion(mbs.mv, mbs.ref_idx),
        }  # fmt: skip
        if quality is not None:
            sections["error"] = quality.error
        number = len(self.frames)
        self.page.add(f"{self.key}f{number}", packing.pack(sections))
        self._totals.add(kind, 8 * unit.size, mbs)
        self.frames.append(self._row(frame, coded, kind, quality))

    def _row(self, frame: Frame, coded: Coded, kind: str, quality: Quality | None) -> dict[str, Any]:
        """What the timeline shows of a frame."""
        mbs, unit = frame.macroblocks, coded.unit
        assert mbs is not None
        qps = mbs.qp[mbs.mb_type != I_PCM]
        row: dict[str, Any] = {
            "coded": frame.decode_index, "type": FRAME_TYPES.index(kind), "idr": int(frame.is_idr), "poc": frame.poc,
            "num": frame.frame_num, "ref": unit.slices[0][0].nal_ref_idc if unit.slices else 0, "bits": 8 * unit.size,
            "mb_bits": int(mbs.bits.sum()), "qp": round(float(mbs.qp.mean()), 4),
            "qp_least": int(qps.min()) if len(qps) else 0, "qp_most": int(qps.max()) if len(qps) else 0,
            "intra": int((mbs.mb_type <= LAST_INTRA).sum()),
            "skip": int(((mbs.mb_type == P_SKIP) | (mbs.mb_type == B_SKIP)).sum()),
            "slices": [slice_row(header, qp) for header, qp in unit.slices], "units": unit.names,
        }  # fmt: skip
        if coded.fullness is not None:
            row["buffer"] = [coded.fullness.bits, coded.fullness.left, coded.fullness.size]
        if quality is not None:
            row["psnr"] = [round(value, 4) for value in quality.psnr]
            row["ssim"] = round(quality.ssim, 7)
        return row

    def meta(self) -> dict[str, Any]:
        """What the page says about the stream, for JSON."""
        sps = self._sps
        return {
            "key": self.key, "name": self.name, "error": self.error, "cut": self.cut,
            "size": self._info.size, "summary": self._info.summary(), "lines": self._lines, "more_lines": self._more_lines,
            "sets": parameter_sets(self._units.sps, self._units.pps),
            "width": sps.width if sps else 0, "height": sps.height if sps else 0,
            "mb_width": sps.mb_width if sps else 0, "mb_height": sps.mb_height if sps else 0,
            "crop": sps.crop if sps else (0, 0, 0, 0), "rate": list(_rate(sps).as_integer_ratio()) if sps else [25, 1],
            "codec": _codec(sps) if sps else "", "access": self._access, "frames": self.frames,
            "totals": self._totals.as_dict(),
        }  # fmt: skip


def _codec(sps: Sps) -> str:
    """RFC 6381: the name of the stream's codec."""
    flags = sum(getattr(sps, f"constraint_set{k}_flag") << (7 - k) for k in range(6))
    return f"avc1.{sps.profile_idc:02x}{flags:02x}{sps.level_idc:02x}"


def _rate(sps: Sps) -> Fraction:
    """Frames a second by the VUI, or 25."""
    vui = sps.vui
    if vui.timing_info_present_flag and vui.num_units_in_tick and vui.time_scale:
        return Fraction(vui.time_scale, 2 * vui.num_units_in_tick)
    return Fraction(25)


CONSTANTS = {
    "types": MB_TYPE_NAMES, "frame_types": FRAME_TYPES, "slice_columns": SLICE_COLUMNS,
    "sections": [(name, dtype) for name, dtype, _ in packing.SECTIONS],
}  # fmt: skip
