"""The index of a video: its access units, the frames that are shown and when, and what it says of itself."""

from array import array
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..decoder.headers import HeaderDecoder, StreamMap, map_of
from ..mp4.avc import Colour, aspect_ratio_of
from ..mp4.opening import PIECE
from ..mp4.reader import Mp4Reader, is_mp4
from ..mp4.tags import FileTags
from ..standard.bits import BitstreamError
from ..standard.syntax import Sps
from .access_units import AccessUnits, Mp4Units, StreamUnits
from .edits import Shown, presentation
from .source import Source

_LONGEST_TIME = 1 << 62  # units of a timescale
_FIRST_SAMPLES = 8  # in which a picture must begin
_RATE = Fraction(25)  # of a byte stream that says none


class Index(NamedTuple):
    """What a reader knows before it decodes."""

    container: str  # mp4 or annexb
    units: AccessUnits
    shown: Shown  # access unit, time and duration of each frame
    timescale: int  # units a second of times
    rank: np.ndarray  # int64[access units], place in the order of times; -1: never shown
    keyframes: np.ndarray  # int64[n], access units where the video says that decoding can begin
    sps: Sps  # of the first picture
    colour: Colour
    aspect_ratio: tuple[int, int]  # horizontal and vertical; (0, 0): not said
    matrix: tuple[int, ...] | None  # of tkhd (8.3.2 of ISO/IEC 14496-12)
    tags: FileTags


def index_of(source: Source, fps: Fraction | None) -> Index:
    """Of MP4 by its tables and the headers of its first picture, of Annex B by the headers of all pictures.

    fps: of a byte stream, in place of its own. BitstreamError if the video is damaged, or has no H.264 or no frame;
    Unsupported by the name of what the decoder lacks.
    """
    return _mp4(source) if is_mp4(source.read(0, min(8, source.size))) else _byte_stream(source, fps)


def _byte_stream(source: Source, fps: Fraction | None) -> Index:
    pieces = (source.read(at, min(PIECE, source.size - at)) for at in range(0, source.size, PIECE))
    stream_map = map_of(pieces)
    order = np.array(stream_map.shown_pictures, np.int64)
    if stream_map.sps is None or not len(order):
        raise BitstreamError("no frames")
    rate = fps or _rate_of(stream_map.sps) or _RATE
    times = np.arange(len(order), dtype=np.int64) * rate.denominator
    rank = np.full(len(stream_map.positions), -1, np.int64)
    rank[order] = np.arange(len(order))
    return Index(
        container="annexb",
        units=StreamUnits(source, stream_map),
        timescale=rate.numerator,
        rank=rank,
        sps=stream_map.sps,
        shown=Shown(order, times, np.full(len(order), rate.denominator, np.int64)),
        keyframes=np.flatnonzero(np.frombuffer(bytes(stream_map.is_idr), np.uint8)),
        colour=_colour(stream_map.sps, None),
        aspect_ratio=aspect_ratio_of(stream_map.sps),
        matrix=None,
        tags=FileTags(),
    )


def _rate_of(sps: Sps) -> Fraction | None:
    """E.2.1: frames a second, two ticks each."""
    vui = sps.vui
    if vui.timing_info_present_flag and vui.num_units_in_tick and vui.time_scale:
        return Fraction(vui.time_scale, 2 * vui.num_units_in_tick)
    return None


def _mp4(source: Source) -> Index:
    reader = Mp4Reader(source.file)
    columns = [array("q") for _ in range(5)]
    keyframes = array("q")
    for number, sample in enumerate(reader.samples()):
        if max(abs(sample.pts), sample.duration) > _LONGEST_TIME:
            raise BitstreamError(f"sample {number} has a time beyond all clocks")
        for column, value in zip(columns, (sample.position, sample.size, sample.entry, sample.pts, sample.duration)):
            column.append(value)
        if sample.is_keyframe:
            keyframes.append(number)
    positions, sizes, entries, times, durations = (np.array(column, np.int64) for column in columns)
    if not len(times):
        raise BitstreamError("no frames")
    keys = np.array(keyframes, np.int64)
    units = Mp4Units(source, reader.entries, (positions, sizes, entries), keys)
    edits = reader.edits()
    scale = Fraction(reader.timescale, reader.movie_timescale()) if edits else Fraction(1)
    shown = presentation(edits, scale, times, durations)
    if not len(shown.samples):
        raise BitstreamError("the edit list shows no frame")
    rank = np.empty(len(times), np.int64)
    rank[np.argsort(times, kind="stable")] = np.arange(len(times))
    sps, entry = _first_sps(units, len(times)), reader.entries[int(entries[0])]
    return Index(
        container="mp4",
        units=units,
        shown=shown,
        timescale=reader.timescale,
        rank=rank,
        keyframes=keys,
        sps=sps,
        colour=_colour(sps, entry.colour()),
        aspect_ratio=entry.aspect_ratio() or aspect_ratio_of(sps),
        matrix=reader.matrix,
        tags=reader.tags(),
    )


def _first_sps(units: AccessUnits, count: int) -> Sps:
    """The sequence parameter set of the first picture, whose headers a decoder must accept."""
    stream_map = StreamMap()
    decoder = HeaderDecoder(observer=stream_map)
    for n in range(min(count, _FIRST_SAMPLES)):
        before = units.sets_before(n) if not n else []
        for _ in decoder.decode_access_unit(before + units.units(n)):
            pass
        if stream_map.sps is not None:
            return stream_map.sps
    raise BitstreamError(f"no picture in the first {_FIRST_SAMPLES} samples")


def _colour(sps: Sps, container: Colour | None) -> Colour:
    """E.2.1: what the stream says; where it says nothing, the container."""
    vui = sps.vui
    of_stream = Colour(vui.colour_primaries, vui.transfer_characteristics, vui.matrix_coefficients, vui.video_full_range_flag)
    if container is None or (vui.video_signal_type_present_flag and vui.colour_description_present_flag):
        return of_stream
    return container._replace(full_range=of_stream.full_range) if vui.video_signal_type_present_flag else container
