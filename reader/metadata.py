"""What a video says of itself: size, rate, times, colours."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..encoder.settings.options import COLOUR_MATRIX, COLOUR_PRIMARIES, TRANSFER
from ..standard.levels import level_name, profile_name
from .index import Index


@dataclass(frozen=True)
class VideoMetadata:
    """Of the whole video. Seconds are those of the presentation: edit lists are applied."""

    container: str  # mp4 (QuickTime too) or annexb
    codec: str  # h264
    profile: str  # "High"
    level: str  # "4.0"
    width: int  # luma samples, of the first frame
    height: int
    num_frames: int
    begin_stream_seconds: float  # of the first frame
    end_stream_seconds: float  # of the last frame's end
    duration_seconds: float  # from the first frame to the end
    average_fps: float | None  # None where the duration is 0
    fps: Fraction | None  # frames a second, where all frames but the last last as long; None: variable
    bit_rate: float | None  # bits a second of the whole file
    pixel_aspect_ratio: Fraction | None  # width of a sample by its height; None: not said
    rotation: float  # degrees clockwise by which a player turns the frames, which are not turned here
    color_primaries: str | None  # x264's names (docs/options.md); None: not said
    color_transfer_characteristic: str | None
    color_space: str | None  # of the matrix
    color_range: str  # tv: 16..235, or pc: 0..255
    tags: dict[str, str]  # title, artist and the like, and keys of programs, as write_video(metadata=...) has them
    chapters: list[tuple[float, str]]  # seconds at which each begins, and its title


def metadata_of(index: Index, file_size: int) -> VideoMetadata:
    """The metadata of a video. file_size: bytes."""
    shown, sps, scale = index.shown, index.sps, index.timescale
    begin, end = int(shown.times[0]), int((shown.times + shown.durations).max())
    seconds, count = (end - begin) / scale, len(shown.times)
    steps = np.unique(shown.durations[:-1] if count > 1 else shown.durations)
    across, down = index.aspect_ratio
    colour = index.colour
    return VideoMetadata(
        container=index.container,
        codec="h264",
        profile=profile_name(sps.profile_idc, sps.constraint_set1_flag, sps.constraint_set3_flag),
        level=level_name(sps.level_idc, sps.profile_idc, sps.constraint_set3_flag),
        width=sps.width,
        height=sps.height,
        num_frames=count,
        begin_stream_seconds=begin / scale,
        end_stream_seconds=end / scale,
        duration_seconds=seconds,
        average_fps=count / seconds if seconds > 0 else None,
        fps=Fraction(scale, int(steps[0])) if len(steps) == 1 and steps[0] > 0 else None,
        bit_rate=8 * file_size / seconds if seconds > 0 else None,
        pixel_aspect_ratio=Fraction(across, down) if across and down else None,
        rotation=_rotation(index.matrix),
        color_primaries=_name(COLOUR_PRIMARIES, colour.primaries),
        color_transfer_characteristic=_name(TRANSFER, colour.transfer),
        color_space=_name(COLOUR_MATRIX, colour.matrix),
        color_range="pc" if colour.full_range else "tv",
        tags=dict(index.tags.metadata),
        chapters=[(float(begin), title) for begin, title in index.tags.chapters],
    )


def _name(names: dict[str, int | None], number: int) -> str | None:
    return next((name for name, value in names.items() if value == number), None)


def _rotation(matrix: tuple[int, ...] | None) -> float:
    """6.2.2 of ISO/IEC 14496-12: the angle of a matrix, clockwise."""
    if matrix is None:
        return 0.0
    return round(math.degrees(math.atan2(matrix[1], matrix[0])), 3) % 360
