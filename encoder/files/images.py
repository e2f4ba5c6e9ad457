"""Image files as a video: one frame each, RGB converted to BT.709 in limited range."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...scheduler.frames.host_rgb import RgbFrame
from ..errors import InputError
from ..frames.samples import has_transparency, upright
from ..sei import Message
from .output import error_text
from .times import FrameTimes
from .video import Planes, VideoFormat

if TYPE_CHECKING:
    from concurrent.futures import Future

COLOURS: dict[str, str | None] = {"colorprim": "bt709", "transfer": "bt709", "colormatrix": "bt709"}  # after conversion
THREADS = 4  # that decode images
_AHEAD = 8  # images decoded before they are asked for, at most
_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA")  # of Pillow: up to 8 bits a sample
ALPHA, FURTHER = "alpha", "further pictures of the same file"
MISSING = "images need Pillow or PyAV (pip install 'h264lite[images]')"
Read = Callable[[str], "Picture"]


class ImageSource:
    """A Source. The size is the first image's, upright."""

    times: FrameTimes | None = None

    def __init__(self, names: Sequence[str]):
        self._names, self._read = names, _reader(names[0])
        self.left_over = 0
        self.sei: dict[int, list[Message]] = {}
        first = self._load(names[0])
        self.left_out, self._first_by = list(first.left_out), first.by
        self.format = VideoFormat(*first.size, full_range=False, frames=len(names), file_type="images", colours=COLOURS)

    def frames(self, seek: int = 0, count: int = 0) -> Iterator[Planes]:
        """See Source. Later images are decoded by threads meanwhile."""
        from concurrent.futures import ThreadPoolExecutor

        names = iter(self._names[seek : seek + count if count else None])
        pool = ThreadPoolExecutor(THREADS, "h264lite-image")
        try:
            waiting: deque[Future[tuple[Planes, list[str]]]] = deque(
                pool.submit(self._converted, name) for name in islice(names, _AHEAD)
            )
            while waiting:
                planes, left_out = waiting.popleft().result()
                waiting.extend(pool.submit(self._converted, name) for name in islice(names, 1))
                self.left_out += [words for words in left_out if words not in self.left_out]
                yield planes
        finally:
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """See Source: no file is open between frames."""

    def _converted(self, name: str) -> tuple[Planes, list[str]]:
        """The planes of an image of the first one's size, and what they lack of the file."""
        picture = self._load(name)
        width, height = picture.size
        if (width, height) != (self.format.width, self.format.height):
            raise InputError(
                f"{name} is {width}x{height}{picture.by}, and {self._names[0]} is {self.format.width}x"
                f"{self.format.height}{self._first_by}: images of a video have one size"
            )
        return picture.planes(), picture.left_out

    def _load(self, name: str) -> "Picture":
        if not os.path.isfile(name):
            there = "is a directory" if os.path.isdir(name) else "not a regular file"
            raise InputError(f"{name}: {there if os.path.exists(name) else 'no such file or directory'}")
        try:
            return self._read(name)
        except InputError:
            raise
        except Exception as error:  # decoders of damaged images raise anything
            raise InputError(f"{name}: no image that can be read ({error_text(error)})") from None


class Picture(NamedTuple):
    """An image, upright. left_out: what of the file it lacks. by: what its size follows from, in messages."""

    rgb: np.ndarray  # uint8[height, width, 3]
    left_out: list[str]
    by: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.rgb.shape[1], self.rgb.shape[0]

    def planes(self) -> Planes:
        """Converted to BT.709."""
        rgb, (width, height) = self.rgb, self.size
        return RgbFrame("uint8", width, height, rgb.reshape(-1), (0, 1, 2, 3, 3 * width), 0.0, 255.0, rgb).planes()[0]


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


def _by_pillow(library: Any, name: str) -> Picture:
    with library.open(name) as image:
        if image.mode not in _MODES:
            raise InputError(f"{name}: samples of mode {image.mode} are not supported; only 8-bit grey, palette and RGB are")
        if any(";16" in str(tile) for tile in image.tile):  # raw modes as RGB;16B, which Pillow reads as 8 bits
            raise InputError(f"{name}: 16 bits a sample are not supported; only 8 are")
        has_alpha, size = has_transparency(image), image.size
        further = getattr(image, "n_frames", 1) > 1 and image.format != "MPO"  # MPO: previews of a camera
        turned = upright(image)
        by = " by its EXIF orientation" if turned.size != size else ""
        return Picture(np.ascontiguousarray(turned.convert("RGB")), has_alpha * [ALPHA] + further * [FURTHER], by)


def _by_pyav(library: Any, name: str) -> Picture:
    with library.open(name) as container:
        frames = container.decode(video=0)
        frame = next(frames)
        components = frame.format.components
        if max(component.bits for component in components) > 8:
            raise InputError(f"{name}: {frame.format.name} is not supported; only images with 8 bits a sample are")
        if getattr(frame, "rotation", 0):  # which does not tell turning from mirroring
            raise InputError(f"{name}: its EXIF orientation turns it, which needs Pillow (pip install 'h264lite[images]')")
        further = next(frames, None) is not None
        has_alpha = any(component.is_alpha for component in components)
        return Picture(np.ascontiguousarray(frame.to_ndarray(format="rgb24")), has_alpha * [ALPHA] + further * [FURTHER])
