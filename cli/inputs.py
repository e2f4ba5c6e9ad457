"""What follows from the input of an encode: lines for the user, and colours of images."""

from typing import Any

from ..encoder.errors import OptionError
from ..encoder.files.names import size_from_name
from ..encoder.files.video import VideoFormat
from ..encoder.settings.config import Config


def notes(name: str, video: VideoFormat, config: Config, option_texts: dict[str, Any]) -> list[str]:
    """Lines on frame rate and size where they are assumed or taken from the file's name, or contradict it."""
    lines, named_size = [], size_from_name(name)
    if video.kind == "raw" and named_size and named_size != (video.width, video.height):
        lines.append(f"--input-res {video.width}x{video.height} overrides {named_size[0]}x{named_size[1]} of the file's name")
    if "fps" in option_texts and video.fps not in (None, config.fps):
        lines.append(f"--fps {config.fps} overrides {video.fps} of the {'name' if video.kind == 'raw' else 'input'}")
    elif "fps" not in option_texts and video.kind in ("raw", "images"):
        what = "raw video has" if video.kind == "raw" else "images have"
        lines.append(f"{config.fps} fps are assumed: {what} no frame rate; see --fps" if video.fps is None
                     else f"{config.fps} fps by the file's name; --fps overrides it")  # fmt: skip
    return lines


def check_colours_of_images(options: dict[str, Any]) -> None:
    """OptionError if options contradict the conversion of RGB images, which become BT.709 in limited range."""
    for name, value in (("colormatrix", "bt709"), ("range", "tv")):
        if options[name] != value:
            raise OptionError(f"{options[name]}: images become BT.709 in limited range ({value})", name)
