"""One stream on the page: decoded frame by frame, its arrays and pictures added to the page as they come."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from typing import Any, NamedTuple

from ..analysis.analyse import in_display_order
from ..analysis.frame import AnalysedFrame
from ..analysis.recorder import Recorder
from ..decoder.decoder import Decoder
from ..decoder.errors import BitstreamError
from ..decoder.info import StreamInfo
from ..encoder.encoder import Packet
from ..encoder.errors import OptionError
from ..encoder.files.video import Source
from ..standard.macroblock import MB_TYPE_NAMES
from ..standard.syntax import Sps
from . import packing
from .access_unit import AccessUnit, AccessUnits
from .frame_data import ENERGY_SCALE, KIND_NAMES, KIND_SCALE, quality_of, row_of, sections_of
from .fullness import CodedPictureBuffer, Fullness
from .page_file import PageFile
from .parameter_text import SLICE_COLUMNS, parameter_sets
from .quality import Planes
from .side_video import PictureGroups, SideVideo, fine_qp
from .totals import FRAME_TYPES, Totals

ALL_PICTURES = ("source", "prediction")
LARGEST_WITH_ALL = 1280 * 720  # luma samples; larger frames have their source alone, unless both are asked for
MOST_LINES = 4000  # of NAL units that the page lists
WAITING = 6  # frames between the decoder and the threads that pack them and encode their source


class Options(NamedTuple):
    """limit: frames after which the page ends; pictures: which further ones it has, of ALL_PICTURES; None: by their size."""

    limit: int | None = None
    pictures: tuple[str, ...] | None = None


class StreamReport:
    """`run` adds a stream to the page; `meta` is what the page says about it, `error` why it ends early.

    key: prefix of the names of its data. rate: frames a second, if a container says it.
    """

    def __init__(self, page: PageFile, key: str, name: str, source: Source | None, rate: Fraction | None, options: Options):
        self._page, self._key, self._name, self._source, self._rate = page, key, name, source, rate
        self._options = options
        self.error, self.cut = "", False
        self.frames: list[dict[str, Any]] = []
        self._units, self._info, self._buffer = AccessUnits(), StreamInfo(), CodedPictureBuffer()
        self._units_of: dict[int, tuple[AccessUnit, Fullness | None]] = {}  # of frames that wait, by coding_index
        self._begun = 0  # frames that are packed, or wait for it
        self._waiting: deque[tuple[Future[tuple[bytes, dict[str, Any]]], dict[SideVideo, Future[list[Packet]]]]] = deque()
        self._pictures = PictureGroups(page, f"{key}u")
        self._videos: dict[str, SideVideo] = {}
        self._lines: list[str] = []
        self._more_lines = 0
        self._totals = Totals()
        self._sps: Sps | None = None

    def run(self, pieces: Iterator[bytes]) -> None:
        """Decode the stream; of a broken one the frames before the error are on the page."""
        name = f"h264lite-report-{self._key}"
        with ThreadPoolExecutor(1, name) as packer, ThreadPoolExecutor(1, f"{name}-pictures") as encoder:
            try:
                for frame, source in self._with_source(in_display_order(self._decoded(pieces))):
                    if self._options.limit is not None and self._begun >= self._options.limit:
                        self.cut = True
                        break
                    unit, fullness = self._units_of.pop(frame.coding_index)
                    pictures = self._pictures_of(frame, source)
                    packets = {video: encoder.submit(video.encode, planes) for video, planes in pictures}
                    self._waiting.append((packer.submit(self._packed, frame, unit, fullness, source), packets))
                    self._begun += 1
                    if len(self._waiting) > WAITING:
                        self._add_frame()
            except BitstreamError as error:
                self.error = str(error)
            while self._waiting:
                self._add_frame()
        self._pictures.finish()
        for side in self._videos.values():
            side.finish()

    def _decoded(self, pieces: Iterator[bytes]) -> Iterator[AnalysedFrame]:
        """The frames in coding order, whose access units are added to the page."""
        decoder: Any = Decoder(observer=Recorder(samples=True))
        try:
            for piece in pieces:
                self._lines_of(self._info.feed(piece))
                yield from map(self._access_unit, decoder.decode(piece))
            self._lines_of(self._info.flush())
            yield from map(self._access_unit, decoder.flush())
        except BitstreamError as error:
            yield from map(self._access_unit, decoder.flush())
            self.error = str(error)

    def _lines_of(self, lines: Iterator[str]) -> None:
        for line in lines:
            if len(self._lines) < MOST_LINES:
                self._lines.append(line)
            else:
                self._more_lines += 1

    def _access_unit(self, frame: AnalysedFrame) -> AnalysedFrame:
        """Keep what the browser's decoder and the packer need of a frame."""
        unit = self._units.add(frame)
        self._pictures.add(unit.data, frame.is_idr)
        fullness = self._buffer.add(unit)
        if frame.display_index >= 0:
            self._units_of[frame.coding_index] = unit, fullness
        unit.data = b""
        return frame

    def _with_source(self, frames: Iterator[AnalysedFrame]) -> Iterator[tuple[AnalysedFrame, Planes | None]]:
        """Each frame with its source, None behind the end of that; BitstreamError where the size changes."""
        sources = self._source.frames(0, 0) if self._source is not None else iter(())
        for number, frame in enumerate(frames):
            sps = self._sps or frame.sps
            if (frame.width, frame.height) != (sps.width, sps.height):
                size = f"{frame.width}x{frame.height}"
                raise BitstreamError(f"the size changes to {size} after {number} frames: the page ends there")
            self._sps = sps
            planes = next(sources, None)
            if planes is not None:
                _check_size(planes, frame)
            yield frame, None if planes is None else (planes[0].copy(), planes[1].copy(), planes[2].copy())

    def _packed(
        self, frame: AnalysedFrame, unit: AccessUnit, fullness: Fullness | None, source: Planes | None
    ) -> tuple[bytes, dict[str, Any]]:
        """Arrays and facts of one frame; frames come in display order, in one thread."""
        quality = quality_of(frame, source) if source is not None else None
        sections = sections_of(frame)
        if quality is not None:
            sections["error"] = quality.error
        self._totals.add(frame, sections)
        return packing.pack(sections), row_of(frame, unit, fullness, quality)

    def _add_frame(self) -> None:
        """Add the frame that has waited longest: always after the same number of others, so that pages are the same."""
        packed, packets = self._waiting.popleft()
        blob, row = packed.result()
        self._page.add(f"{self._key}f{len(self.frames)}", blob)
        self.frames.append(row)
        for video, packet in packets.items():
            video.take(packet.result())

    def _pictures_of(self, frame: AnalysedFrame, source: Planes | None) -> list[tuple[SideVideo, Planes]]:
        """The further pictures of a frame, and the videos that they belong to."""
        wanted = self._options.pictures
        if wanted is None:
            wanted = ALL_PICTURES if frame.width * frame.height <= LARGEST_WITH_ALL else ALL_PICTURES[:1]
        pictures = []
        for name, planes in (("source", source), ("prediction", frame.prediction)):
            if planes is not None and name in wanted:
                if name not in self._videos:
                    height, width = planes[0].shape
                    prefix, qp = f"{self._key}{name[0]}v", fine_qp(frame.slices[0].qp)
                    self._videos[name] = SideVideo(self._page, prefix, width, height, qp)
                pictures.append((self._videos[name], planes))
        return pictures

    def meta(self) -> dict[str, Any]:
        """What the page says about the stream, for JSON."""
        sps = self._sps or Sps()
        return {
            "key": self._key, "name": self._name, "error": self.error, "cut": self.cut,
            "size": self._info.size, "summary": self._info.summary(), "lines": self._lines, "more_lines": self._more_lines,
            "sets": parameter_sets(self._units.sps, self._units.pps), "sei": self._units.sei.as_list(),
            "width": sps.width, "height": sps.height, "mb_width": sps.mb_width, "mb_height": sps.mb_height, "crop": sps.crop,
            "rate": list((self._rate or _rate(sps)).as_integer_ratio()), "codec": _codec(sps),
            "access": self._pictures.access, "frames": self.frames, "totals": self._totals.as_dict(),
            **{name: video.meta() for name, video in self._videos.items()},
        }  # fmt: skip


def _check_size(source: Planes, frame: AnalysedFrame) -> None:
    """OptionError unless a source has the size of its frame, or one sample less, which the encoder makes even."""
    height, width = source[0].shape
    if frame.width - width not in (0, 1) or frame.height - height not in (0, 1):
        raise OptionError(f"is {width}x{height}, and the stream {frame.width}x{frame.height}", "source")


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
    "sections": [(name, dtype) for name, dtype, _ in packing.SECTIONS], "kinds": KIND_NAMES, "kind_scale": KIND_SCALE,
    "energy_scale": ENERGY_SCALE,
}  # fmt: skip
