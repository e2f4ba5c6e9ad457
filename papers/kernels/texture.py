"""Texture objects over arrays on the GPU, by the driver's own functions: texture references are gone since CUDA 12."""

import ctypes

import numpy as np
from h264lite.cuda_src.runtime.device import Device, DeviceArray

PITCH = 32  # bytes: what a row of a two-dimensional texture is aligned to
_PITCH_2D, _UNSIGNED_8, _CLAMP, _POINT, _AS_INTEGER = 3, 1, 1, 0, 1  # CUresourcetype, CUarray_format, ...


class _Pitch2D(ctypes.Structure):
    _fields_ = (("pointer", ctypes.c_uint64), ("format", ctypes.c_int), ("channels", ctypes.c_uint),
                ("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("pitch", ctypes.c_size_t))  # fmt: skip


class _Union(ctypes.Union):
    _fields_ = (("pitch2D", _Pitch2D), ("reserved", ctypes.c_int * 32))


class ResourceDescriptor(ctypes.Structure):
    """CUDA_RESOURCE_DESC."""

    _fields_ = (("kind", ctypes.c_int), ("res", _Union), ("flags", ctypes.c_uint))


class TextureDescriptor(ctypes.Structure):
    """CUDA_TEXTURE_DESC."""

    _fields_ = (("address_mode", ctypes.c_int * 3), ("filter_mode", ctypes.c_int), ("flags", ctypes.c_uint),
                ("max_anisotropy", ctypes.c_uint), ("mipmap", ctypes.c_float * 4), ("border", ctypes.c_float * 4),
                ("reserved", ctypes.c_int * 12))  # fmt: skip


class Texture:
    """uint8[H, stride] on the GPU as a texture of `width` columns: point sampling, coordinates clamped to the picture.

    `handle` goes into a launch. What is written into the array later is what later launches see.
    """

    def __init__(self, gpu: Device, array: DeviceArray, width: int) -> None:
        height, stride = array.shape
        if stride % PITCH or width > stride:
            raise ValueError(f"stride {stride}: a multiple of {PITCH}, and at least the width {width}")
        self.gpu, self.array = gpu, array
        self.cuda = gpu.calls.library
        resource = ResourceDescriptor(kind=_PITCH_2D)
        resource.res.pitch2D = _Pitch2D(int(array.ptr), _UNSIGNED_8, 1, width, height, stride)
        texture = TextureDescriptor(address_mode=(_CLAMP,) * 3, filter_mode=_POINT, flags=_AS_INTEGER)
        handle = ctypes.c_uint64()
        descriptors = ctypes.byref(resource), ctypes.byref(texture)
        code = self.cuda.cuTexObjectCreate(ctypes.byref(handle), *descriptors, ctypes.c_void_p(None))
        if code:
            raise gpu.failed("cuTexObjectCreate", f"error {code}")
        self.handle = np.uint64(handle.value)

    def close(self) -> None:
        """Gives the object back; the array stays."""
        self.cuda.cuTexObjectDestroy(ctypes.c_uint64(int(self.handle)))


def pitched(frame: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """uint8[H, W] in uint8[H, stride], into `out` or a new array."""
    height, width = frame.shape
    target = np.empty((height, -(-width // PITCH) * PITCH), np.uint8) if out is None else out
    target[:, :width] = frame
    target[:, width:] = frame[:, -1:]
    return target
