"""Arrays of other libraries, as their protocols show them: DLPack, the array interfaces; and the same video in every form."""

import ctypes

import numpy as np

CODES = {"uint8": (1, 8), "float16": (2, 16), "bfloat16": (4, 16), "float32": (2, 32), "float64": (2, 64), "int64": (0, 64)}
TYPES = {"uint8": "|u1", "float16": "<f2", "bfloat16": "<V2", "float32": "<f4", "float64": "<f8"}
LAYOUTS = {"THWC": (0, 1, 2, 3), "TCHW": (0, 3, 1, 2), "CTHW": (3, 0, 1, 2)}  # axes of THWC


class _Tensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )  # fmt: skip


class Dlpack:
    """An array that has DLPack and nothing else; `bits`: of bfloat16 as uint16."""

    def __init__(self, bits, kind, pointer=None, device=(1, 0), given=None):
        self.owner, self.kind, self.device, self.streams = given, kind, device, []
        size = CODES[kind][1] // 8
        self.shape = (ctypes.c_int64 * bits.ndim)(*bits.shape)
        self.strides = (ctypes.c_int64 * bits.ndim)(*(n // size for n in bits.strides))
        self.bits, self.pointer = bits, bits.ctypes.data if pointer is None else pointer
        self.tensors = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        code, bits = CODES[self.kind]
        shape, strides = (ctypes.cast(numbers, ctypes.c_void_p) for numbers in (self.shape, self.strides))
        self.tensors.append(_Tensor(self.pointer - 8, *self.device, len(self.shape), code, bits, 1, shape, strides, 8))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensors[-1]), b"dltensor", None)


class HostInterface:
    """An array with `__array_interface__` and nothing else."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


class GpuInterface:
    """A window into memory of a GPU with `__cuda_array_interface__`, like `layout`, an array on the host."""

    def __init__(self, memory, layout, kind, stream=1):
        self.memory = memory
        self.__cuda_array_interface__ = {
            "shape": layout.shape, "strides": layout.strides, "typestr": TYPES[kind], "data": (memory.ptr, False),
            "version": 3, "stream": stream,
        }  # fmt: skip


def stored(values, kind):
    """Samples of 0..1 as a type; bfloat16, of which NumPy knows nothing, as uint16."""
    if kind == "uint8":
        return np.floor(255 * values + 0.5).astype(np.uint8)
    if kind == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(kind)


def numbers(samples, kind):
    """The values of stored samples: uint8 as 0..255, others as float32."""
    if kind == "bfloat16":
        return (samples.astype(np.uint32) << 16).view(np.float32)
    return samples if kind == "uint8" else samples.astype(np.float32)


def video(frames, width, height, seed):
    """A smooth moving clip in 0..1, float64[T, H, W, 3], that a codec keeps nearly as it is."""
    t, y, x, c = np.meshgrid(np.arange(frames), np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return 0.5 + 0.4 * np.sin(x / 9 + t / 3 + c + seed) * np.cos(y / 7 - t / 4 + 2 * c)
