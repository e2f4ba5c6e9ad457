"""Arrays of every library, layout and type as sources: the same frames as their plain definition, without a copy."""

import sys
import types
from unittest import mock

import numpy as np
import pytest
from h264lite.cpu_simd.layout import RGB_DTYPES
from h264lite.encoder.errors import InputError, OptionError
from h264lite.encoder.frames.layouts import Known
from h264lite.encoder.frames.reader import ALPHA, FrameReader
from h264lite.encoder.frames.samples import is_array, read

from ..cuda_src.test_cuda_convert import bt709, levels
from ..support.foreign_arrays import CODES, LAYOUTS, Dlpack, GpuInterface, HostInterface, stored, video

SIZES = ((16, 16), (33, 17))
FRAMES = 5


def sources(array, **options):
    """Planes of all frames by the reader."""
    chunk = FrameReader(**options, warn=lambda text: None).chunk(array, whole=True)
    return [frame.planes()[0] if hasattr(frame, "planes") else frame for frame in map(chunk.source, range(chunk.frames))]


def expected(samples, kind):
    """Planes by the definition; samples: [T, H, W, 3] as stored."""
    if kind != "uint8":
        samples = levels(samples.view(np.uint16) if kind.endswith("16") else samples, kind)
    return [bt709(frame) for frame in samples]


def compare(frames, wanted):
    assert len(frames) == len(wanted)
    for frame, other in zip(frames, wanted):
        for a, b in zip(frame, other):
            np.testing.assert_array_equal(a, b)


def torch_tensor(array, kind):
    torch = pytest.importorskip("torch")
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if kind == "bfloat16" else torch.from_numpy(array)


def jax_array(array, kind):
    jax = pytest.importorskip("jax")
    if kind == "float64":
        pytest.skip("JAX has float64 on demand only")
    return jax.numpy.asarray(array.view(pytest.importorskip("ml_dtypes").bfloat16) if kind == "bfloat16" else array)


MAKERS = {
    "numpy": lambda array, kind: array,
    "array interface": lambda array, kind: HostInterface(array),
    "dlpack": Dlpack,
    "torch": torch_tensor,
    "jax": jax_array,
}


@pytest.mark.parametrize("kind", RGB_DTYPES)
@pytest.mark.parametrize("library", MAKERS)
def test_every_layout_and_type(library, kind):
    if kind == "bfloat16" and library in ("numpy", "array interface"):
        pytest.skip("no such type")
    for width, height in SIZES:
        samples = stored(video(FRAMES, width, height, 3), kind)
        wanted = expected(samples, kind)
        for layout, order in LAYOUTS.items():
            inverse = np.argsort(order)
            whole = np.ascontiguousarray(samples.transpose(order))
            views = [whole, np.ascontiguousarray(samples).transpose(order)]  # contiguous, and a view of another layout
            if library == "numpy":
                views += [whole.transpose(inverse)[:, ::-1].copy()[:, ::-1].transpose(order), np.asfortranarray(whole)]
            for view in views:
                compare(sources(MAKERS[library](view, kind), layout=layout), wanted)
                compare(sources(MAKERS[library](view, kind)), wanted)
                compare(sources(MAKERS[library](view[None], kind)), wanted)


def test_formats():
    samples = stored(video(FRAMES, 32, 18, 3), "uint8")
    wanted = expected(samples, "uint8")
    compare(sources(samples[..., ::-1], format="bgr"), wanted)
    alpha = np.concatenate([samples, samples[..., :1]], 3)
    compare(sources(alpha), wanted)
    compare(sources(alpha[..., [2, 1, 0, 3]], format="bgra"), wanted)
    grey = np.repeat(samples[..., :1], 3, 3)
    for array in (grey[..., 0], grey[..., :1]):
        compare(sources(array, format="gray"), expected(grey, "uint8"))
    packed = np.stack([np.concatenate([p.ravel() for p in frame]).reshape(-1, 32) for frame in wanted])
    pairs = np.stack([np.concatenate([y, np.stack([u, v], 2).reshape(9, 32)]) for y, u, v in wanted])
    for array, format in ((packed, "i420"), (pairs, "nv12")):
        compare(sources(array, format=format), wanted)
        compare(sources(np.pad(array, 3)[3:-3, 3:-3, 3:-3], format=format), wanted)
        compare(sources(Dlpack(array, "uint8"), format=format), wanted)
    compare(sources(tuple(wanted[0])), wanted[:1])


def test_ranges():
    values = video(2, 32, 18, 3)
    wanted = expected(stored(values, "float32"), "float32")
    for low, high in ((-1, 1), (0, 255), (0, 1)):
        moved = (values * (high - low) + low).astype(np.float32)
        in_range = sources(moved, value_range=(low, high))
        for frame, other in zip(in_range, wanted):
            for a, b in zip(frame, other):
                assert abs(a.astype(int) - b).max() <= 1
    for value in ((1, 0), (0,), "01", (0, float("nan")), 5):
        with pytest.raises(OptionError, match="value_range"):
            FrameReader(value_range=value)
    with pytest.raises(InputError, match=r"its range is 0\.\.255"):
        sources(np.zeros((18, 32, 3), np.uint8), value_range=(-1, 1))


def test_what_is_no_frame():
    tall = np.zeros((2, 18, 32, 3))
    for array, words in (
        (tall.astype(np.int64), "dtype int64"), (tall.astype(bool), "dtype bool"), (tall.astype(complex), "complex128"),
        (Dlpack(np.zeros((2, 18, 32, 3), np.int64), "int64"), "dtype int64"), (tall[0, 0, 0], "two dimensions or more"),
        (np.zeros((2, 18, 32, 0)), "no samples"), (Dlpack(tall, "float64", device=(8, 0)), "neither host nor CUDA"),
        ((tall[0, :, :, 0],) * 3, "planes are uint8"), ((np.zeros((3, 4, 5), np.uint8),) * 3, "two dimensions"),
        ((np.zeros((0, 4), np.uint8),) * 3, "two dimensions"),
        (np.zeros((27, 32), np.float32)[None, None, None, None], "no known"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            sources(array)


@pytest.mark.parametrize(("width", "height"), ((1, 1), (2, 2), (1, 3), (3, 1), (4, 3), (3, 4), (2, 16)))
def test_tiny_frames_of_a_known_size(width, height):
    """As an encoder knows it: nothing is ambiguous but grey of colours' number."""
    rgb = stored(video(1, width, height, 1), "uint8")[0]
    known, wanted = Known("", width, height), expected(rgb[None], "uint8")
    for array in (rgb, np.moveaxis(rgb, 2, 0)):
        compare([FrameReader(known=known).chunk(array).source(0).planes()[0]], wanted)
    if width % 2 == height % 2 == 0:
        packed = np.concatenate([plane.ravel() for plane in wanted[0]]).reshape(-1, width)
        compare([FrameReader(known=known).chunk(packed).source(0)], wanted)


def test_odd_bytes_and_orders():
    samples = stored(video(2, 32, 18, 3), "float32")
    wanted = expected(samples, "float32")
    compare(sources(samples.astype(">f4")), wanted)
    shifted = np.frombuffer(b"x" + samples.tobytes(), np.float32, offset=1).reshape(samples.shape)
    compare(sources(shifted), wanted)
    samples.flags.writeable = False
    compare(sources(samples), wanted)


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    samples = stored(video(FRAMES, 32, 18, 3), "float32")
    wanted = expected(samples, "float32")
    tensor = torch.from_numpy(samples).permute(0, 3, 1, 2)
    compare(sources(tensor.clone().requires_grad_(True)), wanted)
    compare(sources(tensor.contiguous(memory_format=torch.channels_last)), wanted)
    compare(sources(torch.flip(tensor, (2,)).flip(2)), wanted)
    freed, traced = tensor.clone(), []
    freed.untyped_storage().resize_(0)
    torch.vmap(lambda part: (traced.append(part), part)[1])(tensor)
    for bad, words in (
        (tensor.to_sparse(), "dense"), (tensor.to("meta"), "device meta"), (tensor.to(torch.int32), "int32"),
        (torch._neg_view(tensor), "resolve_neg"), (freed, "no memory"), (traced[0], "gives no array"),
        (torch.nested.nested_tensor(list(tensor)), "gives no array"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            sources(bad)


def test_arrays_of_jax_that_are_none():
    jax = pytest.importorskip("jax")
    deleted, traced = jax.numpy.zeros((18, 32, 3)), []
    jax.jit(lambda part: (traced.append(part), part)[1])(deleted)
    deleted.delete()
    for bad in (deleted, traced[0], jax.random.key(0), jax.numpy.zeros((18, 32, 3), jax.numpy.int4)):
        with pytest.raises(InputError, match=r"frame: \w+ gives no array"):
            sources(bad)


class Raises:
    """An array whose library raises something; where: dlpack, its device, or a property."""

    def __init__(self, error, where):
        self.error, self.where = error, where

    def __dlpack__(self, stream=None):
        raise self.error

    def __dlpack_device__(self):
        if self.where == "device":
            raise self.error
        return (1, 0)

    @property
    def __cuda_array_interface__(self):
        raise self.error if self.where == "property" else AttributeError


@pytest.mark.parametrize("where", ("dlpack", "device", "property"))
def test_what_libraries_raise(where):
    """Each is a refusal by name, whether it says something or not; what comes of signals and of lack of memory stays so."""
    for error in (RuntimeError("deleted\nlong ago"), BufferError(), TypeError("traced"), KeyError("x"), OverflowError("y")):
        with pytest.raises(InputError, match=r"^frame: Raises gives no array \([^\n]+\)$"):
            sources(Raises(error, where))
    for error in (TimeoutError(), MemoryError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            sources(Raises(error, where))
    if where == "property":
        with pytest.raises(InputError, match="frames: Raises gives no array"):
            is_array(Raises(ValueError(), where))


@pytest.mark.parametrize("said", ({"shape": "ab"}, {"strides": (96, 1)}, {"shape": (-18, 32, 3)}, {"typestr": ""},
                                  {"version": "x"}, {"data": None}, {"data": (0, False)}, {"stream": -1}, {"stream": "x"}),
                         ids=str)  # fmt: skip
def test_interfaces_that_say_nonsense(said):
    rgb = np.zeros((18, 32, 3), np.uint8)
    array = GpuInterface(types.SimpleNamespace(ptr=rgb.ctypes.data), rgb, "uint8")
    assert read(array).shape == rgb.shape
    array.__cuda_array_interface__ |= said
    with pytest.raises(InputError):
        sources(array)


def test_arrays_without_memory():
    """NumPy makes new memory of the address 0, with whatever is in it."""

    class Freed(Dlpack):
        def __dlpack__(self, stream=None):
            capsule = super().__dlpack__(stream)
            self.tensors[-1].data, self.tensors[-1].byte_offset = None, 0
            return capsule

    with pytest.raises(InputError, match="no memory"):
        sources(Freed(np.zeros((18, 32, 3), np.uint8), "uint8"))
    masked = np.ma.masked_array(np.zeros((18, 32, 3), np.uint8))
    assert len(sources(masked)) == 1
    masked[0, 0, 0] = np.ma.masked
    with pytest.raises(InputError, match="mask"):
        sources(masked)


def test_images_of_pil():
    image = pytest.importorskip("PIL.Image")
    samples = stored(video(1, 33, 18, 3), "uint8")[0]
    picture = image.fromarray(samples)
    compare(sources(picture), expected(samples[None], "uint8"))
    grey = np.repeat(np.asarray(picture.convert("L"))[None, ..., None], 3, 3)
    compare(sources(picture.convert("L")), expected(grey, "uint8"))
    compare(sources(picture.convert("RGBA")), expected(samples[None], "uint8"))
    palette = picture.convert("P")
    compare(sources(palette), expected(np.asarray(palette.convert("RGB"))[None], "uint8"))
    with pytest.raises(InputError, match="mode F"):
        sources(picture.convert("F"))


@pytest.mark.parametrize("lie", [
    {"shape": None}, {"shape": (-1, 32, 3)}, {"shape": (1 << 70, 32, 3)}, {"shape": ("a", 32, 3)}, {"strides": (1,)},
    {"strides": 5}, {"data": None}, {"data": (None, False)}, {"data": (0, False)}, {"data": ()}, {"data": (-4096, False)},
    {"data": (1 << 70, False)},
    {"typestr": ""}, {"typestr": None}, {"version": "x"}, {"version": None}, {"stream": "s"}, {"stream": [1]}, {"mask": 1},
], ids=repr)  # fmt: skip
def test_interfaces_of_gpu_arrays_that_lie(lie):
    true = {"shape": (18, 32, 3), "typestr": "|u1", "data": (4096, False), "version": 3, "strides": None}
    assert read(types.SimpleNamespace(__cuda_array_interface__=true)).on_gpu
    with pytest.raises(InputError, match="frame"):
        read(types.SimpleNamespace(__cuda_array_interface__={**true, **lie}))


def test_alpha_is_said_once():
    said = []
    reader = FrameReader(warn=said.append)
    for _ in range(3):
        reader.chunk(np.zeros((18, 32, 4), np.uint8))
    assert said == [ALPHA]


def test_where_arrays_lie():
    on_gpu = Dlpack(np.zeros((2, 18, 32, 3), np.uint8), "uint8", device=(2, 1))
    samples = read(on_gpu)
    assert (samples.on_gpu, samples.ordinal, samples.producer) == (True, 1, (1, False)) and on_gpu.streams == [1]
    assert read(on_gpu, stream=7).producer == (7, True) and on_gpu.streams == [1, 7]
    with pytest.raises(InputError, match="gives no array"):
        read(types.SimpleNamespace(__dlpack__=lambda: None))
    for said in (None, (), (1,), 7, "ab", ("a", 0), (1, None), (1, 0, 0)):
        lying = Dlpack(np.zeros((18, 32, 3), np.uint8), "uint8", device=(1, 0))
        lying.__class__ = type("Lying", (Dlpack,), {"__dlpack_device__": lambda self, said=said: said})
        with pytest.raises(InputError, match="Lying gives no array"):
            read(lying)
    for error in (ValueError(), IndexError("first\nsecond"), KeyError("k")):
        failing = types.SimpleNamespace(__dlpack__=mock.Mock(side_effect=error))
        with pytest.raises(InputError, match="gives no array") as caught:
            read(failing)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="has no memory"):
        read(Dlpack(np.zeros((18, 32, 3), np.uint8), "uint8", pointer=0))
    assert not [name for name in ("cupy",) if name in sys.modules], "nothing is imported to read arrays"
    assert set(CODES) > set(RGB_DTYPES)
