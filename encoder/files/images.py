"""Image files as a video: one frame each, RGB converted to BT.709 in limited range."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ...scheduler.frames.host_rgb import RgbFrame
from ..errors import InputError
from .output import error_text
from .times import FrameTimes
from .video import Planes, VideoFormat

if TYPE_CHECKING:
    from concurrent.futures import Future

COLOURS: dict[str, str | None] = {"colorprim": "bt709", "transfer": "bt709", "colormatrix": "bt709"}  # after conversion
THREADS = 4  # that decode images
_AHEAD = 8  # images decoded before they are asked for, at most
_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA")  # of Pillow: up to 8 bits a sample
ALPHA = "alpha is dropped: H.264 video has none"
MISSING = "images need Pillow or PyAV (pip install 'h264lite[images]')"
Read = Callable[[str], tuple[np.ndarray, bool]]


class ImageSource:
    """A Source. The size is the first image's. notes: lines for the user."""

    times: FrameTimes | None = None

    def __init__(self, names: Sequence[str]):
        self._names, self._read = names, _reader(names[0])
        self.left_over = 0
        first, had_alpha = self._load(names[0])
        height, width = first.shape[:2]
        self.notes = [ALPHA] if had_alpha else []
        self.format = VideoFormat(width, height, full_range=False, frames=len(names), kind="images", colours=COLOURS)

    def frames(self, seek: int = 0, count: int = 0) -> Iterator[Planes]:
        """See Source. Later images are decoded by threads meanwhile."""
        from concurrent.futures import ThreadPoolExecutor

        names = iter(self._names[seek : seek + count if count else None])
        pool = ThreadPoolExecutor(THREADS, "h264lite-image")
        try:
            waiting: deque[Future[Planes]] = deque(pool.submit(self._planes, name) for name in islice(names, _AHEAD))
            while waiting:
                planes = waiting.popleft().result()
                waiting.extend(pool.submit(self._planes, name) for name in islice(names, 1))
                yield planes
        finally:
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """See Source: no file is open between frames."""

    def _planes(self, name: str) -> Planes:
        rgb, _ = self._load(name)
        height, width = rgb.shape[:2]
        if (width, height) != (self.format.width, self.format.height):
            raise InputError(f"{name} is {width}x{height}, and {self._names[0]} is {self.format.width}x{self.format.height}: "
                             "images of a video have one size")  # fmt: skip
        return RgbFrame("uint8", width, height, rgb.reshape(-1), (0, 1, 2, 3, 3 * width), 0.0, 255.0, rgb).planes()[0]

    def _load(self, name: str) -> tuple[np.ndarray, bool]:
        """(uint8[height, width, 3], whether there was alpha)."""
        if not os.path.isfile(name):
            there = "is a directory" if os.path.isdir(name) else "not a regular file"
            raise InputError(f"{name}: {there if os.path.exists(name) else 'no such file or directory'}")
        try:
            return self._read(name)
        except InputError:
            raise
        except Exception as error:  # decoders of damaged images raise anything
            raise InputError(f"{name}: no image that can be read ({error_text(error)})") from None


def _reader(name: str) -> Read:
    """The function that reads an image by Pillow, or by PyAV where that is missing; InputError."""
    try:
        from PIL import Image
    except ImportError:
        try:
            import av
        except ImportError:
            raise InputError(f"{name}: {MISSING}") from None
        return lambda name: _by_pyav(av, name)
    return lambda name: _by_pillow(Image, name)


def _by_pillow(library: Any, name: str) -> tuple[np.ndarray, bool]:
    with library.open(name) as image:
        if image.mode not in _MODES:
            raise InputError(f"{name}: samples of mode {image.mode} are not supported; only 8-bit grey, palette and RGB are")
        if any(";16" in str(tile) for tile in image.tile):  # raw modes as RGB;16B, which Pillow reads as 8 bits
            raise InputError(f"{name}: 16 bits a sample are not supported; only 8 are")
        had_alpha = image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info
        return np.ascontiguousarray(image.convert("RGB")), had_alpha


def _by_pyav(library: Any, name: str) -> tuple[np.ndarray, bool]:
    with library.open(name) as container:
        frame = next(container.decode(video=0))
        parts = frame.format.components
        if max(part.bits for part in parts) > 8:
            raise InputError(f"{name}: {frame.format.name} is not supported; only images with 8 bits a sample are")
        return np.ascontiguousarray(frame.to_ndarray(format="rgb24")), any(part.is_alpha for part in parts)
