"""Reads DLPack capsules (dlpack.h, version 0): address, shape, strides and type of an array of another library."""

import ctypes
from functools import lru_cache
from typing import Any, NamedTuple

_NAME = b"dltensor"
_MOST_AXES = 64  # NumPy's limit
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
ON_HOST, ON_GPU = (CPU, CUDA_HOST), (CUDA, CUDA_MANAGED)
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}  # DLDataTypeCode


class _Tensor(ctypes.Structure):
    """DLTensor, the first member of DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class Capsule(NamedTuple):
    """What a capsule says; it owns the memory until it is dropped."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    dtype: str  # such as uint8, bfloat16
    capsule: object


def device_of(value: object) -> tuple[int, int]:
    """(DLDeviceType, ordinal) of an array with the protocol, the CPU if it does not say; ValueError."""
    said = getattr(value, "__dlpack_device__", None)
    try:
        device_type, ordinal = (CPU, 0) if said is None else said()
        return int(device_type), int(ordinal)
    except (TypeError, ValueError) as error:
        raise ValueError(f"it does not say its device: {error}") from None


def read(value: Any, stream: int | None = None) -> Capsule:
    """The capsule of an array; raises what its library raises if it gives none. stream: see the array API standard, None on
    the host.
    """
    capsule = value.__dlpack__() if stream is None else value.__dlpack__(stream=stream)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(get(capsule, _NAME))
    if not 0 <= tensor.ndim <= _MOST_AXES or (tensor.ndim and not tensor.shape):
        raise ValueError(f"of {tensor.ndim} axes")
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    size = tensor.bits // 8 * tensor.lanes
    if tensor.strides:
        strides = tuple(size * tensor.strides[k] for k in range(tensor.ndim))
    else:
        strides = contiguous(shape, size)
    dtype = f"{_CODES.get(tensor.code, f'type {tensor.code} ')}{tensor.bits}" + f"x{tensor.lanes}" * (tensor.lanes != 1)
    return Capsule((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, capsule)


@lru_cache(64)  # frames of a loop are alike
def contiguous(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Strides in bytes of a contiguous array; size: bytes of an element."""
    strides: list[int] = []
    for n in reversed(shape):
        strides.insert(0, size)
        size *= n
    return tuple(strides)
