"""Makes the source frames of callers' arrays on a GPU, which are checked here."""

from functools import lru_cache

import numpy as np

from ...scheduler.frames.device_frame import DeviceFrame, Order
from ...scheduler.frames.host_rgb import scale
from ..errors import InputError
from .samples import Samples

MOST_BYTES = 2**31 - 1  # from row to row: kernels take 32-bit numbers


def check_device(name: str, array_gpu: int | None, encoder_gpu: int) -> None:
    """InputError for an array that is not on GPU `encoder_gpu` (-1: the GPU is lost); array_gpu: its GPU, or None."""
    if array_gpu is None or array_gpu != encoder_gpu:
        where = "on no GPU" if array_gpu is None else f"on GPU {array_gpu}"
        here = f"GPU {encoder_gpu}" if encoder_gpu >= 0 else "the CPU, since the GPU is lost"
        raise InputError(f"{name} lies {where}, and this encoder runs on {here}")


def of_planes(planes: tuple[Samples, ...], order: Order, frame: object, first: bool = True) -> DeviceFrame:
    """I420 as (y, u, v), or NV12 as (y, uv), whose sizes are checked; InputError for gaps between the samples of a row."""
    if len(planes) == 2:
        y, uv = planes
        if len(uv.shape) == 3 and uv.strides[1:] != (2, 1):
            raise InputError(f"plane uv with strides {uv.strides}: Cb and Cr must be neighbours")
        pitch = uv.strides[0] if len(uv.shape) == 3 else rows(uv)
        pointers = {"input_y": y.pointer, "input_u": uv.pointer, "input_v": uv.pointer + 1}
        numbers: dict[str, int | str] = {"pitch": rows(y), "chroma_pitch": pitch, "chroma_step": 2}
        return DeviceFrame("load_i420", pointers, numbers, order, frame, first, ordinal=_believed(planes))
    pitches = [rows(plane) for plane in planes]
    if pitches[1] != pitches[2]:
        raise InputError(f"planes u and v with rows {pitches[1]} and {pitches[2]} bytes apart: they must be alike")
    pointers = {f"input_{name}": plane.pointer for name, plane in zip("yuv", planes)}
    numbers = {"pitch": pitches[0], "chroma_pitch": pitches[1], "chroma_step": 1}
    return DeviceFrame("load_i420", pointers, numbers, order, frame, first, ordinal=_believed(planes))


def of_rgb(
    samples: Samples, addresses: tuple[int, int, int, int, int], values: tuple[float, float], order: Order, first: bool,
    checked: bool,
) -> DeviceFrame:  # fmt: skip
    """RGB; addresses: of the first red, green and blue, then bytes from column to column and row to row; values: of black and
    white."""
    red, green, blue, step, pitch = addresses
    if not -MOST_BYTES <= step <= MOST_BYTES or not -MOST_BYTES <= pitch <= MOST_BYTES:
        raise InputError(f"{samples.name}: rows or columns more than {MOST_BYTES} bytes apart: copy it")
    pointers = {"input_red": red, "input_green": green, "input_blue": blue}
    numbers = _numbers_of_rgb(samples.dtype, step, pitch, *values)
    return DeviceFrame("load_rgb", pointers, numbers, order, samples.owner, first, checked, None, _believed((samples,)))


@lru_cache(64)  # frames of a loop are alike
def _numbers_of_rgb(dtype: str, step: int, pitch: int, black: float, white: float) -> dict[str, int | str]:
    """The arguments of load_rgb beside the pointers."""
    low, factor = (int(number.view(np.int32)) for number in (np.float32(black), scale(black, white)))
    return {"rgb_dtype": dtype, "rgb_step": step, "rgb_pitch": pitch, "rgb_low": low, "rgb_scale": factor}


def _believed(arrays: tuple[Samples, ...]) -> int | None:
    """The ordinal of the GPU of these arrays, if their libraries are right about it."""
    ordinal = arrays[0].ordinal
    return ordinal if all(array.is_believed and array.ordinal == ordinal for array in arrays) else None


def rows(plane: Samples) -> int:
    """Pitch of a plane in bytes; InputError if rows have gaps between samples, overlap or are in reverse order."""
    if plane.strides[-1] != 1 and plane.shape[-1] > 1:
        raise InputError(f"{plane.name}: samples of a row {plane.strides[-1]} bytes apart; they must be neighbours")
    if plane.strides[-2] < plane.shape[-1]:
        raise InputError(f"{plane.name}: rows {plane.strides[-2]} bytes apart: turned over or overlapping")
    return plane.strides[-2]
