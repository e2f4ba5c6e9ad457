"""What is in a stream: one line a NAL unit, and a summary; reads headers only, so streams that are refused too."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ..standard.bits import (
    NAL_AUD,
    NAL_FILLER,
    NAL_IDR,
    NAL_PPS,
    NAL_SEI,
    NAL_SLICE,
    NAL_SPS,
    ByteStreamSplitter,
    parse_nal_unit,
)
from ..standard.levels import level_name, profile_name
from ..standard.syntax import (
    SEI_USER_DATA_UNREGISTERED,
    SLICE_TYPE_NAMES,
    Hrd,
    Pps,
    SliceHeader,
    Sps,
    parse_access_unit_delimiter,
    parse_pps,
    parse_slice_header,
    parse_sps,
    sei_messages,
    starts_new_picture,
)
from ..standard.syntax_sei import (
    SEI_BUFFERING_PERIOD,
    SEI_PIC_TIMING,
    PicTiming,
    named_sps,
    parse_buffering_period,
    parse_pic_timing,
)
from .errors import MOST_LINES, BitstreamError, Lines

# Table 7-1
NAL_NAMES = {
    1: "slice", 2: "data partition A", 3: "data partition B", 4: "data partition C", 5: "IDR slice", 6: "SEI", 7: "SPS",
    8: "PPS", 9: "access unit delimiter", 10: "end of sequence", 11: "end of stream", 12: "filler data",
    13: "SPS extension", 14: "prefix", 15: "subset SPS", 19: "auxiliary slice", 20: "slice extension",
    21: "3D slice extension",
}  # fmt: skip
# Table 7-5
PRIMARY_PIC_TYPES = ("I", "I, P", "I, P, B", "SI", "SI, SP", "I, SI", "I, SI, P, SP", "I, SI, P, SP, B")

MOST_MESSAGES = 16  # of an SEI NAL unit that its line names
LONGEST_TEXT = 1000  # characters of user data
UUID_BYTES = 16


def nal_name(nal_unit_type: int) -> str:
    """Table 7-1: what a NAL unit is."""
    return NAL_NAMES.get(nal_unit_type, f"type {nal_unit_type}")


def user_data_texts(rbsp: bytes, distinct: Lines) -> list[str]:
    """D.1.7: texts of the user_data_unregistered messages of an SEI NAL unit; new ones are added to `distinct`."""
    texts = []
    for payload_type, payload in islice(sei_messages(rbsp), MOST_MESSAGES):
        text = payload[UUID_BYTES : UUID_BYTES + LONGEST_TEXT].rstrip(b"\0").decode("ascii", "replace")
        if payload_type == SEI_USER_DATA_UNREGISTERED and text and text.isprintable() and "\ufffd" not in text:
            texts.append(text)
            if text not in distinct:
                distinct.add(text)
    return texts


def _chroma_offset(pps: Pps) -> str:
    """What a picture parameter set adds to the QP of chroma, in words; nothing if it is 0."""
    of_cb, of_cr = pps.chroma_qp_index_offset, pps.chroma_qp_index_offset_cr
    if not of_cb and not of_cr:
        return ""
    return f"chroma QP offset {of_cb}" + (f" (Cb), {of_cr} (Cr)" if of_cb != of_cr else "")


def buffers(hrd: Hrd) -> list[str]:
    """E.2.2: rate and size of each buffer of hrd_parameters(), in words."""
    rates = [(value + 1) << (6 + hrd.bit_rate_scale) for value in hrd.bit_rate_value_minus1]
    sizes = [(value + 1) << (4 + hrd.cpb_size_scale) for value in hrd.cpb_size_value_minus1]
    return [
        f"{rate} bit/s {'constant' if constant else 'at most'}, buffer of {size} bits"
        for rate, size, constant in zip(rates, sizes, hrd.cbr_flag)
    ]


def _timing_text(timing: PicTiming) -> list[str]:
    """D.2.2: a picture's delays, in clock ticks, and how it is shown."""
    texts = {
        "removal delay": timing.cpb_removal_delay,
        "output delay": timing.dpb_output_delay,
        "pic_struct": timing.pic_struct,
    }
    return [", ".join(f"{name} {value}" for name, value in texts.items() if value is not None)]


class UnitInfo(NamedTuple):
    """A NAL unit in words. nal_unit_type, nal_ref_idc: -1 where its header is broken."""

    offset: int  # bytes from the beginning of the stream to its header
    size: int  # bytes without the start code
    nal_unit_type: int
    nal_ref_idc: int
    name: str
    text: str  # what it says; of a broken one the reason

    def line(self) -> str:
        """One line."""
        number = f"{self.nal_unit_type:2d} " if self.nal_unit_type >= 0 else ""
        reference = f" ref {self.nal_ref_idc}" if self.nal_ref_idc > 0 else ""
        return f"{self.offset:10d} {self.size:8d}  {number}{self.name}{reference}{self.text}"


@dataclass
class PictureInfo:
    """The coded picture at work: its slice types, size and the QP of its slices."""

    idr: bool
    types: str = ""
    size: int = 0  # bytes of its slices' NAL units
    slices: int = 0
    qp_sum: int = 0
    qp_min: int = 99
    qp_max: int = -99

    @property
    def picture_type(self) -> str:
        """IDR, or the "largest" type of its slices."""
        return "IDR" if self.idr else next((name for name in "BPI" if name in self.types), self.types)


@dataclass
class TypeTotals:
    """Sums over the pictures of a type: a stream has more pictures than memory should hold."""

    pictures: int = 0
    size: int = 0
    size_min: int = 1 << 62
    size_max: int = 0
    slices: int = 0
    qp_sum: int = 0
    qp_min: int = 99
    qp_max: int = -99

    def add(self, picture: PictureInfo) -> None:
        """One more picture."""
        self.pictures += 1
        self.size += picture.size
        self.size_min, self.size_max = min(self.size_min, picture.size), max(self.size_max, picture.size)
        self.slices += picture.slices
        self.qp_sum += picture.qp_sum
        self.qp_min, self.qp_max = min(self.qp_min, picture.qp_min), max(self.qp_max, picture.qp_max)


class StreamInfo:
    """Collects what a stream's headers say; `lines` describes each NAL unit, `summary` the whole."""

    def __init__(self) -> None:
        self.sps: dict[int, Sps] = {}
        self.pps: dict[int, Pps] = {}
        self.sets: list[Sps] = []  # those of `sequences`, the first hundred
        self.sequences = Lines()  # distinct sequence parameter sets in use, in words
        self.user_data = Lines()  # distinct texts: encoders say there what they are
        self.pictures = 0
        self.nal_types: Counter[int] = Counter()
        self.errors = Lines()
        self.size = 0
        self.entropy: set[str] = set()
        self.tools: dict[str, int] = {}  # slices by tool
        self._splitter = ByteStreamSplitter()
        self._last: SliceHeader | None = None
        self._active: Sps | None = None  # of the last slice or buffering period
        self.filler = 0  # bytes of filler data
        self._picture: PictureInfo | None = None  # at work
        self.picture_types: dict[str, TypeTotals] = {}

    def feed(self, data: bytes) -> Iterator[str]:
        """Lines of the NAL units that a piece of the stream completes."""
        return (unit.line() for unit in self.units(data))

    def flush(self) -> Iterator[str]:
        """The line of the last NAL unit."""
        return (unit.line() for unit in self.last_units())

    def units(self, data: bytes) -> Iterator[UnitInfo]:
        """The NAL units that a piece of the stream completes."""
        self.size += len(data)
        for offset, unit in self._splitter.feed(data):
            yield self._unit(offset, unit)

    def last_units(self) -> Iterator[UnitInfo]:
        """The last NAL unit."""
        for offset, unit in self._splitter.flush():
            yield self._unit(offset, unit)

    def _unit(self, offset: int, data: bytes) -> UnitInfo:
        try:
            unit = parse_nal_unit(data, offset)
            nal_unit_type = unit.nal_unit_type
            self.nal_types[nal_unit_type] += 1
            self.filler += len(data) if nal_unit_type == NAL_FILLER else 0
            text = self._describe(nal_unit_type, unit.nal_ref_idc, unit.rbsp, len(data))
            return UnitInfo(offset, len(data), nal_unit_type, unit.nal_ref_idc, nal_name(nal_unit_type), text)
        except BitstreamError as error:
            self.errors.add(f"NAL unit at byte {offset}: {error}")
            return UnitInfo(offset, len(data), -1, -1, "broken", f": {error}")

    def _describe(self, nal_unit_type, nal_ref_idc, rbsp, size) -> str:  # type: ignore[no-untyped-def]
        if nal_unit_type == NAL_SPS:
            sps = parse_sps(rbsp())
            self.sps[sps.seq_parameter_set_id] = sps
            text = self._sequence(sps)
            return f"  {sps.seq_parameter_set_id}: {text}"
        if nal_unit_type == NAL_PPS:
            pps = parse_pps(rbsp())
            if pps.seq_parameter_set_id in self.sps:
                pps = parse_pps(rbsp(), self.sps[pps.seq_parameter_set_id])
            self.pps[pps.pic_parameter_set_id] = pps
            coding = "CABAC" if pps.entropy_coding_mode_flag else "CAVLC"
            extra = f", {pps.num_slice_groups_minus1 + 1} slice groups" if pps.num_slice_groups_minus1 else ""
            extra += ", 8x8 transform" if pps.transform_8x8_mode_flag else ""
            extra += ", weighted prediction" if pps.weighted_pred_flag or pps.weighted_bipred_idc else ""
            extra += ", scaling matrices" if pps.pic_scaling_matrix_present_flag else ""
            extra += f", {offset}" if (offset := _chroma_offset(pps)) else ""
            return f"  {pps.pic_parameter_set_id}: of SPS {pps.seq_parameter_set_id}, {coding}{extra}"
        if nal_unit_type == NAL_SEI:
            return self._sei(rbsp())
        if nal_unit_type == NAL_AUD:
            return f"  {PRIMARY_PIC_TYPES[parse_access_unit_delimiter(rbsp())]} slices"
        if nal_unit_type in (NAL_SLICE, NAL_IDR):
            return self._slice(nal_unit_type, nal_ref_idc, rbsp(), size)
        return ""

    def _sei(self, rbsp: bytes) -> str:
        """Types of the messages, and the text of user data."""
        types = [str(payload_type) for payload_type, _ in islice(sei_messages(rbsp), MOST_MESSAGES + 1)]
        texts = self._times(rbsp) + user_data_texts(rbsp, self.user_data)
        return (
            "  payload types "
            + ", ".join(types[:MOST_MESSAGES])
            + ", ..." * (len(types) > MOST_MESSAGES)
            + "".join(f": {text}" for text in texts)
        )

    def _times(self, rbsp: bytes) -> list[str]:
        """D.1.1, D.1.2: delays of a buffering period, and of the picture timing by the active parameter set, in words; those
        that cannot be read are no error, since decoding does not need them.
        """
        texts: list[str] = []
        with suppress(BitstreamError):
            self._add_times(rbsp, texts)
        return texts

    def _add_times(self, rbsp: bytes, texts: list[str]) -> None:
        for payload_type, payload in islice(sei_messages(rbsp), MOST_MESSAGES):
            if payload_type == SEI_BUFFERING_PERIOD and (named := named_sps(payload)) in self.sps:
                self._active = self.sps[named]
                period = parse_buffering_period(payload, self._active)
                delays = [(d.initial_cpb_removal_delay, d.initial_cpb_removal_delay_offset) for d in period.nal + period.vcl]
                texts.append("initial delay " + ", ".join(f"{delay} + {offset}" for delay, offset in delays) + " of 90000")
            elif payload_type == SEI_PIC_TIMING and self._active is not None:
                texts += _timing_text(parse_pic_timing(payload, self._active))

    def _slice(self, nal_unit_type: int, nal_ref_idc: int, rbsp: bytes, size: int) -> str:
        header, sps, pps, _ = parse_slice_header(nal_unit_type, nal_ref_idc, rbsp, self.sps, self.pps)
        self._active = sps
        if (text := self._sequence(sps)) not in self.sequences:
            self.sequences.add(text)
            if len(self.sets) < MOST_LINES:
                self.sets.append(sps)
        if self._last is None or self._picture is None or starts_new_picture(header, self._last):
            self.end_picture()
            self._picture = PictureInfo(bool(header.idr))
            self.pictures += 1
        self._last = header
        self.entropy.add("CABAC" if pps.entropy_coding_mode_flag else "CAVLC")
        weighted = any(w.luma_weight_flag or w.chroma_weight_flag for w in header.weights_l0 + header.weights_l1)
        matrices = sps.seq_scaling_matrix_present_flag or pps.pic_scaling_matrix_present_flag
        for tool, used in (
            ("8x8 transform", pps.transform_8x8_mode_flag),
            ("weighted prediction", weighted),
            ("implicit weights", SLICE_TYPE_NAMES[header.type_mod_5] == "B" and pps.weighted_bipred_idc == 2),
            ("scaling matrices", matrices),
            (offset := _chroma_offset(pps), offset),
        ):
            if used:
                self.tools[tool] = self.tools.get(tool, 0) + 1
        picture, name, qp = self._picture, SLICE_TYPE_NAMES[header.type_mod_5], header.qp(pps)
        picture.size += size
        picture.slices += 1
        picture.qp_sum += qp
        picture.qp_min, picture.qp_max = min(picture.qp_min, qp), max(picture.qp_max, qp)
        if name not in picture.types:
            picture.types += name
        field_text = " field" if header.field_pic_flag else ""
        return (
            f"  {name}{field_text}, picture {self.pictures - 1}, first macroblock {header.first_mb_in_slice},"
            f" frame_num {header.frame_num}, QP {qp}"
        )

    @staticmethod
    def _sequence(sps: Sps) -> str:
        """Profile, level, size and what else matters of a sequence parameter set."""
        level = level_name(sps.level_idc, sps.profile_idc, sps.constraint_set3_flag)
        profile = profile_name(sps.profile_idc, sps.constraint_set1_flag, sps.constraint_set3_flag)
        phrases = [f"{profile} profile, level {level}, {sps.width}x{sps.height}"]
        if sps.chroma_format_idc != 1:
            phrases.append(("4:0:0", "4:2:0", "4:2:2", "4:4:4")[sps.chroma_format_idc])
        if sps.bit_depth_luma_minus8 or sps.bit_depth_chroma_minus8:
            phrases.append(f"{8 + max(sps.bit_depth_luma_minus8, sps.bit_depth_chroma_minus8)} bits")
        if not sps.frame_mbs_only_flag:
            phrases.append("interlaced tools")
        if sps.seq_scaling_matrix_present_flag:
            phrases.append("scaling matrices")
        vui = sps.vui
        if vui.timing_info_present_flag and vui.num_units_in_tick and vui.time_scale:
            phrases.append(f"{vui.time_scale / (2 * vui.num_units_in_tick):.3f} frames/s")
        phrases.append(f"{sps.max_num_ref_frames} reference frame{'s' * (sps.max_num_ref_frames != 1)}")
        if vui.bitstream_restriction_flag and vui.max_num_reorder_frames:
            phrases.append(f"{vui.max_num_reorder_frames} frame{'s' * (vui.max_num_reorder_frames != 1)} reordered")
        if vui.nal_hrd_parameters_present_flag:
            phrases.append("NAL HRD " + " and ".join(buffers(vui.nal_hrd)))
        if vui.vcl_hrd_parameters_present_flag:
            phrases.append("VCL HRD " + " and ".join(buffers(vui.vcl_hrd)))
        return ", ".join(phrases)

    def summary(self) -> list[str]:
        """The stream in a few lines."""
        self.end_picture()
        lines = [f"{self.size} bytes, {self.nal_types.total()} NAL units, {self.pictures} pictures"]
        lines += self.sequences
        lines += [f"user data: {text}" for text in self.user_data]
        if self.nal_types[NAL_AUD]:
            lines.append(f"{self.nal_types[NAL_AUD]} access unit delimiters")
        if self.filler:
            lines.append(f"{self.nal_types[NAL_FILLER]} NAL units with filler data, {self.filler} bytes")
        if self.entropy:
            lines.append("entropy coding " + " and ".join(sorted(self.entropy)))
        for name, k in self.in_order():
            lines.append(
                f"{name:4s}{k.pictures:6d} pictures, {k.size_min} to {k.size_max} bytes (mean {k.size / k.pictures:.0f}),"
                f" slice QP {k.qp_min} to {k.qp_max} (mean {k.qp_sum / k.slices:.2f})"
            )
        slices = sum(k.slices for k in self.picture_types.values())
        lines += [f"{tool} in {count} of {slices} slices" for tool, count in self.tools.items()]
        if slices > self.pictures:
            lines.append(f"{slices / self.pictures:.2f} slices a picture")
        return lines + [f"error: {error}" for error in self.errors]

    def in_order(self) -> list[tuple[str, TypeTotals]]:
        """`picture_types` in the order IDR, I, P, B."""
        return sorted(self.picture_types.items(), key=lambda item: "IDR I P B".find(item[0]))

    def end_picture(self) -> None:
        """The picture at work is complete."""
        if self._picture is not None:
            self.picture_types.setdefault(self._picture.picture_type, TypeTotals()).add(self._picture)
            self._picture = None
