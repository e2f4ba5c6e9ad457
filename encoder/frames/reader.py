"""Reads frames of callers: arrays of any library, layout and type, or planes, as sources of the encoder, without a copy."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...scheduler.frames.host_rgb import RgbFrame
from ...standard.sample_format import Sample, chroma_shape
from ..errors import InputError, OptionError
from ..settings.option_types import show
from .device_frame import DeviceFrame, of_planes, of_rgb
from .layouts import PACKED, Known, Layout, find_layout, read_format, read_layout, steps_of
from .producer import common, order_of
from .samples import Samples, memory_of, read
from .source import Planes

FrameSource = Planes | RgbFrame | DeviceFrame
_SAMPLE = np.dtype(Sample)
ALPHA = "the alpha of RGBA frames is dropped: H.264 video has none"


@dataclass(eq=False, repr=False, slots=True)
class Chunk:
    """The frames of one array, or one frame of planes. samples: the array, or the planes in order."""

    samples: tuple[Samples, ...]
    layout: Layout
    width: int
    height: int
    frames: int
    values: tuple[float, float]  # of black and white
    checked: bool  # the samples must be of this range

    @property
    def on_gpu(self) -> bool:
        """Whether it lies on a GPU."""
        return self.samples[0].on_gpu

    def check_size(self, width: int, height: int) -> None:
        """InputError if the frames are of another size."""
        if (self.width, self.height) == (width, height):
            return
        text = f"a frame of shape {self.samples[0].shape} is {self.layout.format} of {self.width}x{self.height}: "
        if self.layout.format not in (*PACKED, "gray"):
            raise InputError(f"{text}all frames of this stream are {width}x{height}, resize it before")
        if width % 2 or height % 2:
            chroma = chroma_shape(height, width)
            raise InputError(f"{text}{width}x{height} is odd: give planes (y, u, v), chroma {chroma}, or RGB")
        raise InputError(f"{text}{width}x{height} in I420 is ({height * 3 // 2}, {width})")

    def source(self, k: int) -> FrameSource:
        """Frame k."""
        if len(self.samples) > 1:
            return self._of_planes(self.samples, 0)
        samples = self.samples[0]
        steps = steps_of(self.layout, samples.strides)
        pointer = samples.pointer + k * steps.frame
        if self.layout.format in PACKED:
            return self._of_planes(self._split(self._packed(pointer)), k)
        red, green, blue, step, pitch = steps.rgb
        if samples.on_gpu:
            order = order_of(samples.producer, k == 0, k == self.frames - 1)
            addresses = (pointer + red, pointer + green, pointer + blue, step, pitch)
            return of_rgb(samples, addresses, self.values, order, k == 0, self.checked)
        memory, at = memory_of(samples)
        at += (pointer - samples.pointer) // samples.itemsize
        red, green, blue, step, pitch = (number // samples.itemsize for number in steps.rgb)
        offsets = (at + red, at + green, at + blue, step, pitch)
        return RgbFrame(samples.dtype, self.width, self.height, memory, offsets, *self.values, samples.owner, self.checked)

    def _packed(self, pointer: int) -> Samples:
        """The rows of a packed frame, contiguous; InputError if they are not on a GPU."""
        samples, axes = self.samples[0], self.layout.axes
        shape, strides = zip(*((samples.shape[axes.index(axis)], samples.strides[axes.index(axis)]) for axis in "HW"))
        packed = samples._replace(pointer=pointer, shape=shape, strides=strides)
        if strides == (self.width, 1):
            return packed
        if samples.on_gpu:
            raise InputError(
                f"a frame with strides {strides}: {self.layout.format} in one array must be contiguous; or give planes"
            )
        rows = np.ascontiguousarray(as_numpy(packed))
        return packed._replace(pointer=rows.ctypes.data, strides=rows.strides, owner=rows)

    def _split(self, packed: Samples) -> tuple[Samples, ...]:
        """The planes of a packed frame."""
        samples, pointer, width, height = packed, packed.pointer, self.width, self.height
        if self.layout.format == "nv12":
            shapes = ((height, width, pointer), (height // 2, width, pointer + height * width))
            return tuple(samples._replace(shape=(h, w), strides=(w, 1), pointer=at) for h, w, at in shapes)
        half, luma = width // 2, width * height
        places = ((height, width, pointer), (height // 2, half, pointer + luma), (height // 2, half, pointer + luma * 5 // 4))
        return tuple(samples._replace(shape=(h, w), strides=(w, 1), pointer=at) for h, w, at in places)

    def _of_planes(self, planes: tuple[Samples, ...], k: int) -> FrameSource:
        producer = common([plane.producer for plane in planes])
        owner = tuple(plane.owner for plane in self.samples)
        if self.on_gpu:
            return of_planes(planes, order_of(producer, k == 0, k == self.frames - 1), owner, k == 0)
        arrays = [as_numpy(plane) for plane in planes]
        if len(arrays) == 2:
            pairs = arrays[1].reshape(*arrays[1].shape[:1], -1, 2)
            arrays = [arrays[0], pairs[..., 0], pairs[..., 1]]
        return tuple(np.ascontiguousarray(array) for array in arrays)  # type: ignore[return-value]


class FrameReader:
    """Reads frames and chunks of one video. known: the size, if the encoder has one; warn: called with a sentence."""

    def __init__(
        self, layout: object = None, format: object = None, value_range: object = None, known: Known | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.layout, self.format = read_layout(layout), read_format(format)
        self.value_range = read_value_range(value_range)
        self.known, self._alpha_said = known, False
        self._warn = warn or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=4))

    def plain(self, frame: object) -> Planes | None:
        """The planes of a frame that needs no reading: see plain_planes; else None."""
        if self.known is None or self.layout is not None or self.format not in (None, "i420"):
            return None
        return plain_planes(frame, self.known.width, self.known.height)

    def chunk(self, value: object, stream: object = None, whole: bool = False, name: str = "frame") -> Chunk:
        """The frames of an array, tensor or image, or of the planes of one frame as a tuple; InputError."""
        if isinstance(value, tuple):
            return self._planes(value, stream)
        samples = read(value, name, stream)
        if len(samples.shape) < 2:
            raise InputError(f"{name} of shape {samples.shape}: a frame has two dimensions or more")
        layout = self._layout(samples, whole)
        width, height = layout.size(samples.shape)
        if layout.format in PACKED and samples.dtype != "uint8":
            raise InputError(f"{name} of dtype {samples.dtype}: {layout.format} is uint8")
        if layout.format.endswith("a") and not self._alpha_said:
            self._alpha_said = True
            self._warn(ALPHA)
        values, checked = self._values(samples)
        return Chunk((samples,), layout, width, height, layout.frames(samples.shape), values, checked)

    def remember(self, chunk: Chunk) -> None:
        """Later arrays that have several readings are read as this one."""
        before, (axes, format) = self.known, chunk.layout
        if before is None or before[:3] != (format, chunk.width, chunk.height) or axes not in before.axes:
            known = before.axes if before is not None else frozenset()
            self.known = Known(format, chunk.width, chunk.height, known | {axes})

    def _layout(self, samples: Samples, whole: bool) -> Layout:
        if samples.is_image:
            axes = "HWC" if len(samples.shape) == 3 else "HW"
            return Layout(axes, {"HW": "gray"}.get(axes) or ("rgba" if samples.shape[2] == 4 else "rgb"))
        try:
            return find_layout(samples.shape, samples.dtype == "uint8", self.layout, self.format, self.known, whole)
        except InputError as error:
            raise InputError(f"{samples.name}: {error}" if samples.name != "frame" else str(error)) from None

    def _values(self, samples: Samples) -> tuple[tuple[float, float], bool]:
        """The values of black and white, and whether samples far outside are refused."""
        if samples.dtype == "uint8":
            if self.value_range not in (None, (0.0, 255.0)):
                raise InputError(f"{samples.name} of dtype uint8: its range is 0..255, not value_range={self.value_range}")
            return (0.0, 255.0), False
        return self.value_range or (0.0, 1.0), self.value_range is None

    def _planes(self, value: tuple[object, ...], stream: object) -> Chunk:
        names = {2: ("y", "uv"), 3: ("y", "u", "v")}.get(len(value))
        if names is None:
            raise InputError(f"a frame of {len(value)} planes: there must be three, (y, u, v), or two, (y, uv) for NV12")
        planes = tuple(read(array, f"plane {name}", stream) for array, name in zip(value, names))
        for plane in planes:
            if plane.on_gpu != planes[0].on_gpu:
                host, gpu = (next(p for p in planes if p.on_gpu == where) for where in (False, True))
                raise InputError(f"{host.name} is not on the GPU, and {gpu.name} is")
            if plane.dtype != "uint8":
                raise InputError(f"{plane.name} of dtype {plane.dtype}: planes are uint8")
            if len(plane.shape) < 2 or len(planes[0].shape) > 2 or 0 in plane.shape:
                raise InputError(f"{plane.name} of shape {plane.shape}: a plane has two dimensions, and samples")
        height, width = planes[0].shape if self.known is None else (self.known.height, self.known.width)
        chroma = chroma_shape(height, width)
        expected = [(height, width), *([chroma] * 2 if len(planes) == 3 else [(chroma[0], 2 * chroma[1])])]
        for plane, shape in zip(planes, expected):
            pairs = plane.name == "plane uv" and plane.shape == (*chroma, 2)
            if plane.shape != shape and not pairs:
                raise InputError(f"{plane.name} of shape {plane.shape}: {width}x{height} needs {shape}")
        return Chunk(planes, Layout("HW", "nv12" if len(planes) == 2 else "i420"), width, height, 1, (0.0, 255.0), False)


def plain_planes(frame: Any, width: int, height: int) -> Planes | None:
    """The planes of a frame of this size that needs no reading: contiguous uint8 of NumPy, as I420 or (y, u, v); else None.

    It takes a microsecond, where `FrameReader.chunk` takes twenty.
    """
    chroma = chroma_shape(height, width)
    if type(frame) is np.ndarray:
        if frame.dtype != _SAMPLE or frame.shape != (height * 3 // 2, width) or not frame.flags.c_contiguous:
            return None
        if width % 2 or height % 2:
            return None
        flat, luma, n_chroma = frame.reshape(-1), width * height, chroma[0] * chroma[1]
        return frame[:height], flat[luma : luma + n_chroma].reshape(chroma), flat[luma + n_chroma :].reshape(chroma)
    if type(frame) not in (tuple, list) or len(frame) != 3:
        return None
    for plane, shape in zip(frame, ((height, width), chroma, chroma)):
        if type(plane) is not np.ndarray or plane.dtype != _SAMPLE or plane.shape != shape or not plane.flags.c_contiguous:
            return None
    return tuple(frame)


def as_numpy(samples: Samples) -> np.ndarray:
    """A view of an array on the host."""
    if isinstance(samples.owner, np.ndarray) and samples.owner.shape == samples.shape:
        return samples.owner  # no part of it has its shape
    memory, first = memory_of(samples)
    return np.ndarray(samples.shape, memory.dtype, memory, first * memory.itemsize, samples.strides)


def read_value_range(value: Any) -> tuple[float, float] | None:
    """(value of black, value of white) of floating-point samples, None for 0..1 with a check; OptionError."""
    if value is None:
        return None
    try:
        low, high = (float(number) for number in value)
        if isinstance(value, str) or not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError
    except (TypeError, ValueError):
        raise OptionError(f"{show(value)}: not a pair such as (0, 1), (-1, 1) or (0, 255)", "value_range") from None
    return low, high
