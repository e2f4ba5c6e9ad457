"""Whole videos from Python: frames to one byte stream."""

from collections.abc import Iterable
from typing import Any

from .errors import OptionError
from .feeder import Feeder
from .frames.layouts import Known
from .frames.reader import FrameReader
from .settings.options import BY_NAME, refuse_unbuilt


def encode(
    frames: Iterable[Any], fps: Any = 25, *, layout: str | None = None, format: str | None = None,
    value_range: tuple[float, float] | None = None, **options: Any,
) -> bytes:  # fmt: skip
    """Encode `frames` into one Annex B stream. The size is the first frame's. Frames and arguments: see write_video."""
    for name in options:
        refuse_unbuilt(name)
    width, height = (options.pop(name, None) for name in ("width", "height"))
    if (width is None) != (height is None):
        raise OptionError("width and height belong together: give both, or none")
    known = None
    if width is not None:
        known = Known("", BY_NAME["width"].value(width), BY_NAME["height"].value(height))
        options |= {"width": known.width, "height": known.height}
    with Feeder(FrameReader(layout, format, value_range, known), fps, options) as feeder:
        packets = [packet for some in feeder.feed_all(frames) for packet in some]
        packets += feeder.finish()
    return b"".join(packet.data for packet in packets)
