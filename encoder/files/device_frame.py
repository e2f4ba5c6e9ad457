"""Input frames on a GPU: reads and checks arrays with `__cuda_array_interface__`."""

from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
from .producer import Producer, common, producer_of, stream_number

INTERFACE = "__cuda_array_interface__"


@dataclass(frozen=True)
class DeviceFrame:
    """A frame on the GPU, as the arguments of the stage that reads it.

    stage: load_i420, load_nv12 or load_rgb; pointers: input_y and so on; numbers: pitches in bytes. frame: the user's
    object, kept so that its library does not reuse the memory.
    """

    stage: str
    pointers: dict[str, int]
    numbers: dict[str, int | None]
    producer: Producer
    is_rgb: bool = False
    frame: Any = None


@dataclass
class _Array:
    """One array, with strides in bytes (here: elements)."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int
    producer: Producer = field(default=Producer(None))

    def rows(self) -> int:
        """Pitch of a plane in bytes; InputError if rows have gaps between samples, overlap or are in reverse order."""
        if self.strides[-1] != 1 and self.shape[-1] > 1:
            raise InputError(f"{self.name}: samples of a row {self.strides[-1]} bytes apart; they must be neighbours")
        if self.strides[-2] < self.shape[-1]:
            raise InputError(f"{self.name}: rows {self.strides[-2]} bytes apart: turned over or overlapping")
        return self.strides[-2]


def is_on_gpu(frame: Any) -> bool:
    """Whether a frame, or one of its planes, has the interface."""
    parts = frame if isinstance(frame, tuple | list) else (frame,)
    return any(hasattr(part, INTERFACE) for part in parts)


def check_device(name: str, found: int | None, encoder_gpu: int) -> None:
    """InputError for an array that is not on GPU `encoder_gpu` (-1: the GPU is lost); found: its GPU, or None."""
    if found is None or found != encoder_gpu:
        where = "on no GPU" if found is None else f"on GPU {found}"
        here = f"GPU {encoder_gpu}" if encoder_gpu >= 0 else "the CPU, since the GPU is lost"
        raise InputError(f"{name} lies {where}, and this encoder runs on {here}")


def describe(frame: Any, width: int, height: int, stream: Any = None) -> DeviceFrame:
    """Read a frame on the GPU; InputError if its format is not supported.

    uint8: I420 (H * 3 // 2, W); (y, u, v); NV12 as (y, uv), uv (H / 2, W) or (H / 2, W / 2, 2); RGB (H, W, 3) or (3, H, W).
    """
    chroma = (height + 1) // 2, (width + 1) // 2
    if isinstance(frame, tuple | list):
        names = {2: ("y", "uv"), 3: ("y", "u", "v")}.get(len(frame))
        if names is None:
            raise InputError(f"a frame of {len(frame)} planes: (y, u, v), or (y, uv) for NV12")
        planes = [_read(part, f"plane {name}") for part, name in zip(frame, names)]
        _expect(planes[0], (height, width))
        producer = _producer(planes, stream)
        if len(planes) == 2:
            return _nv12(planes[0], planes[1], chroma, producer)
        for plane in planes[1:]:
            _expect(plane, chroma)
        pitches = planes[1].rows(), planes[2].rows()
        if pitches[0] != pitches[1]:
            raise InputError(f"planes u and v with rows {pitches[0]} and {pitches[1]} bytes apart: they must be alike")
        pointers = {f"input_{name}": plane.pointer for name, plane in zip("yuv", planes)}
        return DeviceFrame("load_i420", pointers, {"pitch": planes[0].rows(), "chroma_pitch": pitches[0]}, producer)
    array = _read(frame, "frame")
    producer = _producer([array], stream)
    if len(array.shape) == 3:
        return _rgb(array, width, height, producer)
    if width % 2 or height % 2:
        raise InputError(f"{width}x{height} is odd: give planes (y, u, v), chroma {chroma}")
    if array.shape != (height * 3 // 2, width):
        raise InputError(f"a frame of shape {array.shape}: {width}x{height} in I420 is ({height * 3 // 2}, {width})")
    if array.strides != (width, 1):
        raise InputError(f"a frame with strides {array.strides}: I420 in one array must be contiguous; or give planes")
    at = array.pointer
    pointers = {"input_y": at, "input_u": at + width * height, "input_v": at + width * height * 5 // 4}
    return DeviceFrame("load_i420", pointers, {"pitch": width, "chroma_pitch": width // 2}, producer)


def _nv12(y: _Array, uv: _Array, chroma: tuple[int, int], producer: Producer) -> DeviceFrame:
    if uv.shape == (*chroma, 2):
        if uv.strides[1:] != (2, 1):
            raise InputError(f"plane uv with strides {uv.strides}: Cb and Cr must be neighbours")
        uv = _Array(uv.name, (chroma[0], 2 * chroma[1]), (uv.strides[0], 1), uv.pointer)
    _expect(uv, (chroma[0], 2 * chroma[1]))
    pitches = {"pitch": y.rows(), "chroma_pitch": uv.rows()}
    return DeviceFrame("load_nv12", {"input_y": y.pointer, "input_uv": uv.pointer}, dict(pitches), producer)


def _rgb(array: _Array, width: int, height: int, producer: Producer) -> DeviceFrame:
    numbers: dict[str, int | None]
    if array.shape == (height, width, 3):
        if array.strides[1:] != (3, 1):
            raise InputError(f"a frame with strides {array.strides}: the colours of a sample must be neighbours, and samples")
        numbers = {"pitch": array.strides[0], "plane_pitch": None}
    elif array.shape == (3, height, width):
        numbers = {"pitch": array.rows(), "plane_pitch": array.strides[0]}
    else:
        raise InputError(f"a frame of shape {array.shape}: RGB is ({height}, {width}, 3) or (3, {height}, {width})")
    return DeviceFrame("load_rgb", {"input_rgb": array.pointer}, numbers, producer, is_rgb=True)


def _expect(array: _Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InputError(f"{array.name} of shape {array.shape}: it must be {shape}")


def _producer(arrays: list[_Array], stream: Any) -> Producer:
    """The producer by the caller's stream if given, else by the arrays."""
    return Producer(stream_number(stream)) if stream is not None else common([array.producer for array in arrays])


def _read(value: Any, name: str) -> _Array:
    if not hasattr(value, INTERFACE):
        raise InputError(f"{name} is not on the GPU, and other planes are")
    interface = getattr(value, INTERFACE)
    if not {"shape", "typestr", "data"} <= set(interface):
        raise InputError(f"{name}: its {INTERFACE} says neither shape nor place")
    kind = str(interface["typestr"])
    if kind[1:] != "u1":
        raise InputError(f"{name} of dtype {kind}: only uint8 is supported")
    if interface.get("mask") is not None:
        raise InputError(f"{name} has a mask: not supported")
    shape = tuple(int(n) for n in interface["shape"])
    strides = interface.get("strides")
    if len(shape) < 2:
        raise InputError(f"{name} of shape {shape}: a plane has two dimensions")
    if strides is None:
        strides, step = [], 1
        for n in reversed(shape):
            strides.insert(0, step)
            step *= n
    return _Array(name, shape, tuple(int(n) for n in strides), int(interface["data"][0]), producer_of(value, interface, name))
