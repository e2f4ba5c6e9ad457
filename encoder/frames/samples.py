"""Arrays of any library as address, shape, strides and type: NumPy, PyTorch, CuPy, JAX, PIL; DLPack, the array interfaces."""

import ctypes
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...cpu_simd.layout import RGB_DTYPES
from ..errors import InputError
from . import dlpack
from .producer import COMPLETE, LEGACY_STREAM, Producer, is_of, producer_of, stream_number, stream_of_torch

INTERFACE = "__cuda_array_interface__"
# what properties and methods of other libraries' arrays raise; no MemoryError, and no exception of a signal handler
REFUSALS = (ArithmeticError, AttributeError, BufferError, LookupError, RuntimeError, TypeError, ValueError)
_CUDA_DTYPES = {"u1": "uint8", "f2": "float16", "f4": "float32", "f8": "float64", "V2": "bfloat16"}
_LONGEST = 1 << 40  # elements along an axis
BYTES = dict(zip(RGB_DTYPES, (1, 2, 2, 4, 8)))
_ORIENTATION = 0x0112  # tag of EXIF
_TURNS = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270", 7: "TRANSVERSE",
    8: "ROTATE_90",
}  # fmt: skip


class Samples(NamedTuple):
    """An array in memory of the host or a GPU."""

    name: str  # in messages
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    dtype: str  # of the elements: one of RGB_DTYPES, or another type
    on_gpu: bool
    producer: Producer
    owner: object  # keeps the memory
    ordinal: int = 0  # of the GPU, if its library says it
    is_believed: bool = False  # the library is right about the GPU: the driver need not be asked
    is_image: bool = False  # an image of PIL: rows, columns and, if any, colours

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return BYTES[self.dtype]


def is_array(value: object) -> bool:
    """Whether `read` takes a value: not a list, tuple or generator of frames. InputError as `read`."""
    names = (INTERFACE, "__dlpack__", "__array_interface__", "__array__")
    try:
        return not isinstance(value, list | tuple) and (
            is_of(value, "torch", "Tensor") or any(hasattr(value, name) for name in names)
        )
    except REFUSALS as error:
        raise no_array(value, "frames", error) from None


def read(value: object, name: str = "frame", stream: object = None) -> Samples:
    """Read an array; InputError if it is none, of an unknown type, or its library refuses. stream: that of its producer, if
    it is on a GPU.
    """
    try:
        return _read(value, name, stream)
    except InputError:
        raise
    except REFUSALS as error:
        raise no_array(value, name, error) from None


def no_array(value: object, name: str, error: Exception) -> InputError:
    """The error for an array whose library gives none of it."""
    why = next(iter(str(error).splitlines()), type(error).__name__)
    return InputError(f"{name}: {type(value).__name__} gives no array ({why})")


def _read(value: object, name: str, stream: object) -> Samples:
    if is_of(value, "PIL.Image", "Image"):
        return _of_numpy(_image(value, name), name)._replace(is_image=True)
    if is_of(value, "torch", "Tensor"):
        return _checked(_of_torch(value, name, stream))
    if hasattr(value, INTERFACE):
        return _checked(_of_interface(value, name, stream))
    if isinstance(value, np.ndarray):
        return _checked(_of_numpy(value, name))
    if hasattr(value, "__dlpack__"):
        return _checked(_of_dlpack(value, name, stream))
    return _checked(_of_numpy(_as_numpy(value, name), name))


def host_copy(value: Any, axis: int = -1, k: int = 0) -> Any:
    """An array on a GPU in memory of the host, copied by its own library; InputError if that has no way.

    axis: the one of which only element k is copied; -1: all is copied.
    """
    name = type(value).__name__
    try:
        if axis >= 0:
            value = value[(slice(None),) * axis + (slice(k, k + 1),)]
        if is_of(value, "torch", "Tensor"):
            return value.detach().cpu()
        if is_of(value, "jax", "Array"):
            return np.asarray(value)
        if hasattr(value, "get"):
            return value.get()
        if hasattr(value, "copy_to_host"):
            return value.copy_to_host()
    except REFUSALS as error:
        raise InputError(f"{name} on a GPU: no copy on the host ({type(error).__name__}: {error})") from None
    raise InputError(
        f"{name} on a GPU, and this encoder runs on the CPU: with neither .cpu() nor .get(): copy it to the "
        "host, or take device='cuda'"
    )


def memory_of(samples: Samples) -> tuple[np.ndarray, int]:
    """(contiguous host memory that holds the array, as unsigned or floating-point elements; index of the first one).

    It keeps the owner.
    """
    assert not samples.on_gpu
    spans = [(n - 1) * stride for n, stride in zip(samples.shape, samples.strides)]
    below, above = (sum(span for span in spans if (span < 0) == negative) for negative in (True, False))
    size = samples.itemsize
    bytes_ = (ctypes.c_uint8 * (above - below + size)).from_address(samples.pointer + below)
    bytes_.owner = samples.owner  # type: ignore[attr-defined]
    memory = np.frombuffer(memoryview(bytes_).cast("B"), np.uint8)
    return memory.view("u2" if samples.dtype in ("float16", "bfloat16") else samples.dtype), -below // size


def _checked(samples: Samples) -> Samples:
    """InputError for types that cannot be samples, elements that are not at multiples of their size, strides that are not one
    an axis, and arrays without memory.
    """
    if samples.dtype not in RGB_DTYPES:
        raise InputError(f"{samples.name} of dtype {samples.dtype}: only uint8, or floating-point in 0..1")
    if not 0 < samples.pointer < 1 << 64 and 0 not in samples.shape:
        raise InputError(f"{samples.name} has no memory: it was freed, or stands for an array that does not exist yet")
    if not _is_array(samples.shape, samples.strides):
        raise InputError(f"{samples.name} of shape {samples.shape} with strides {samples.strides}: no array")
    size = BYTES[samples.dtype]
    if samples.pointer % size or not _is_aligned(samples.shape, samples.strides, size):
        raise InputError(f"{samples.name} of dtype {samples.dtype} is not aligned to the size of its elements")
    return samples


@lru_cache(64)  # frames of a loop are alike
def _is_array(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return len(strides) == len(shape) and all(0 <= n <= _LONGEST for n in shape)


@lru_cache(64)
def _is_aligned(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> bool:
    return not any(stride % size for n, stride in zip(shape, strides) if n > 1)


def _of_numpy(array: np.ndarray, name: str) -> Samples:
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InputError(f"{name} has a mask: not supported")
    dtype = array.dtype.name
    if not array.dtype.isnative or (array.dtype.itemsize > 1 and not array.flags.aligned):
        array = array.astype(array.dtype.newbyteorder("="))
    return Samples(name, array.ctypes.data, array.shape, array.strides, dtype, False, COMPLETE, array)


def _as_numpy(value: object, name: str) -> np.ndarray:
    if not (hasattr(value, "__array__") or hasattr(value, "__array_interface__")):
        raise InputError(f"{name}: {type(value).__name__} is not an array")
    return np.asarray(value)


def _image(image: Any, name: str) -> np.ndarray:
    """An image of PIL, upright, as uint8[H, W], [H, W, 3] or, with transparency, [H, W, 4]; other colours become RGB."""
    if image.mode.startswith(("I", "F")):
        raise InputError(f"{name}: an image of mode {image.mode}: 8 bits a sample are supported; convert it to RGB or L")
    mode = "RGBA" if has_transparency(image) else "L" if image.mode == "L" else "RGB"
    image = upright(image)
    return np.asarray(image if image.mode == mode else image.convert(mode))


def _of_torch(tensor: Any, name: str, stream: Any) -> Samples:
    """Each property of a tensor is a call of its library, so none is asked for twice."""
    torch, on_gpu = sys.modules["torch"], tensor.is_cuda
    if getattr(tensor, "requires_grad", True):
        tensor = tensor.detach()
    if getattr(tensor, "layout", torch.strided) is not torch.strided:
        raise InputError(f"{name}: a tensor of layout {tensor.layout}: only dense tensors are supported")
    if not on_gpu and tensor.device.type != "cpu":
        raise InputError(f"{name}: a tensor on device {tensor.device}: copy it to the host with .cpu()")
    if tensor.is_neg():
        raise InputError(f"{name}: a tensor whose memory has the negative values: take .resolve_neg() of it")
    strides, dtype = _form_of_tensor(tensor.stride(), tensor.element_size(), tensor.dtype)
    memory = tensor.data_ptr(), tuple(tensor.shape), strides, dtype
    if not on_gpu:
        return Samples(name, *memory, False, COMPLETE, tensor)
    ordinal = tensor.device.index or 0
    number = stream_of_torch(torch, ordinal) if stream is None else stream_number(stream)
    return Samples(name, *memory, True, Producer(number), tensor, ordinal, is_believed=True)


@lru_cache(64)
def _form_of_tensor(strides: tuple[int, ...], size: int, dtype: object) -> tuple[tuple[int, ...], str]:
    """Strides in bytes, and the type of the elements. strides: in elements of `size` bytes."""
    return tuple(size * n for n in strides), str(dtype).removeprefix("torch.")


def _of_dlpack(value: Any, name: str, stream: Any) -> Samples:
    device, ordinal = dlpack.device_of(value)
    if is_of(value, "jax", "Array"):
        value.block_until_ready()
    if device not in dlpack.ON_HOST + dlpack.ON_GPU:
        raise InputError(f"{name}: {type(value).__name__} on a device of type {device}: neither host nor CUDA")
    if device in dlpack.ON_HOST:
        capsule = dlpack.read(value)
        return Samples(name, *capsule[:4], False, COMPLETE, (value, capsule))
    number = LEGACY_STREAM if stream is None else stream_number(stream)
    capsule = dlpack.read(value, number)
    producer = COMPLETE if is_of(value, "jax", "Array") else Producer(number, waits=stream is not None)
    return Samples(name, *capsule[:4], True, producer, (value, capsule), ordinal)


def _of_interface(value: object, name: str, stream: object) -> Samples:
    interface: Mapping[str, Any] = getattr(value, INTERFACE)
    if not isinstance(interface, Mapping) or not {"shape", "typestr", "data"} <= set(interface):
        raise InputError(f"{name}: its {INTERFACE} says neither shape nor memory")
    typestr = str(interface["typestr"])
    if interface.get("mask") is not None:
        raise InputError(f"{name} has a mask: not supported")
    dtype = _CUDA_DTYPES.get(typestr[1:], typestr) if typestr[:1] in ("<", "|", "=") else typestr
    try:
        shape = tuple(map(int, interface["shape"]))
        strides = interface.get("strides")
        strides = dlpack.contiguous(shape, BYTES.get(dtype, 1)) if strides is None else tuple(map(int, strides))
        pointer = int(interface["data"][0] or 0)
        if int(interface.get("version", 0)) >= 3 and interface.get("stream") is not None:
            int(interface["stream"])
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise InputError(f"{name}: its {INTERFACE} is wrong ({error})") from None
    producer = Producer(stream_number(stream)) if stream is not None else producer_of(value, interface, name)
    said = getattr(getattr(value, "device", None), "id", None)  # CuPy's, JAX's
    memory = pointer, shape, strides, dtype, True, producer, value, said if isinstance(said, int) else 0
    return Samples(name, *memory, is_believed=isinstance(said, int) and is_of(value, "cupy", "ndarray"))


def upright(image: Any) -> Any:
    """An image as it is shown; ImageOps.exif_transpose fails where it cannot write the other tags again."""
    image.load()  # TIFF is turned by it
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION))
    except Exception:  # EXIF that cannot be read
        turn = None
    if turn is None:
        return image
    from PIL.Image import Transpose

    return image.transpose(Transpose[turn])


def has_transparency(image: Any) -> bool:
    """Whether an image has alpha, or a colour or palette entries that are transparent."""
    return image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info
