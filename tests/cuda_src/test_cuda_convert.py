"""Frames to padded planes on the GPU, against their definition in NumPy: odd sizes, pitches, any alignment, colours."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import InputPlanes, InputRgb, Planes
from h264lite.cpu_simd.source import convert
from h264lite.cpu_simd.source.convert import RGB_DTYPES, HostRgb
from h264lite.cuda_src.runtime.device import DeviceArray
from h264lite.cuda_src.source.convert import load_i420, load_rgb
from h264lite.scheduler.frames.frame import Frame

from ..cuda_emulator.fixtures import device  # noqa: F401

SIZES = [(16, 16), (17, 33), (47, 31), (1, 1), (130, 18), (62, 46)]  # width, height
QP = 37


def padded(width, height, y, u, v):
    """What the CPU path codes."""
    frame = Frame(-(-width // 16), -(-height // 16))
    frame.load(y, u, v)
    return frame.planes


def bt709(rgb):
    """The definition: uint8[height, width, 3] -> planes of display size."""
    height, width, _ = rgb.shape
    r, g, b = np.moveaxis(rgb.astype(np.int64), 2, 0)
    y = (11966 * r + 40254 * g + 4064 * b + (16 << 16) + (1 << 15)) >> 16
    even = np.pad(rgb.astype(np.int64), ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    sums = even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]
    r, g, b = np.moveaxis(sums, 2, 0)
    u = (-6596 * r - 22188 * g + 28784 * b + (128 << 18) + (1 << 17)) >> 18
    v = (28784 * r - 26145 * g - 2639 * b + (128 << 18) + (1 << 17)) >> 18
    return [p.astype(np.uint8) for p in (y, u, v)]


def place(device, rng, plane, extra, skew):  # noqa: F811
    """uint8[rows, bytes] on the GPU with `extra` bytes after each row, `skew` bytes after an aligned address."""
    rows, width = plane.shape
    pitch = width + extra
    memory = rng.integers(0, 256, rows * pitch + skew).astype(np.uint8)
    for row in range(rows):
        memory[skew + row * pitch :][:width] = plane[row]
    whole = device.upload(memory)
    return DeviceArray(device, whole.ptr + skew, (rows, pitch), np.uint8, whole), pitch


def outputs(device, planes):  # noqa: F811
    """load_qp, planes and qp."""
    load_qp = device.upload(np.array([QP, 99], np.int32))
    n_mb = planes[0].size // 256
    out = Planes(*(device.array(p.shape, np.uint8).fill(0x77) for p in planes))
    return load_qp, out, device.array((n_mb,), np.uint8).fill(0x77)


def compare(got, want):
    for name, a, b in zip("yuv", got[1], want):
        np.testing.assert_array_equal(a.get(), b, err_msg=name)
    assert (got[-1].get() == QP).all()


def test_qps_of_macroblocks_lie_behind_a_negative_one(device):  # noqa: F811
    for width, height in SIZES:
        y, u, v = (np.zeros(shape, np.uint8) for shape in ((height, width), *[((height + 1) // 2, (width + 1) // 2)] * 2))
        want = padded(width, height, y, u, v)
        _, planes, qp = outputs(device, want)
        each = np.arange(qp.size, dtype=np.uint8) % 52
        behind = np.frombuffer(np.int32(-1).tobytes() + each.tobytes() + bytes(-each.size % 4), np.int32)
        at = [device.upload(plane) for plane in (y, u, v)]
        load_i420(InputPlanes(*at, width, u.shape[1], 1), width, height, device.upload(behind), planes, qp)
        assert np.array_equal(qp.get(), each)


@pytest.mark.parametrize("extra, skew", [(0, 0), (5, 0), (64, 4), (3, 1)])
def test_i420_and_nv12(device, extra, skew):  # noqa: F811
    rng = np.random.default_rng(seed := 91)
    print("seed", seed)
    for width, height in SIZES:
        y = rng.integers(0, 256, (height, width)).astype(np.uint8)
        u, v = (rng.integers(0, 256, ((height + 1) // 2, (width + 1) // 2)).astype(np.uint8) for _ in range(2))
        want = padded(width, height, y, u, v)
        (at_y, pitch), (at_u, chroma_pitch), (at_v, _) = (place(device, rng, p, extra, skew) for p in (y, u, v))
        out = outputs(device, want)
        load_i420(InputPlanes(at_y, at_u, at_v, pitch, chroma_pitch, 1), width, height, *out)
        compare(out, want)
        pairs = np.stack([u, v], 2).reshape(len(u), -1)
        at_uv, chroma_pitch = place(device, rng, pairs, extra, skew)
        at_v = DeviceArray(device, at_uv.ptr + 1, (1,), np.uint8, at_uv)
        out = outputs(device, want)
        load_i420(InputPlanes(at_y, at_uv, at_v, pitch, chroma_pitch, 2), width, height, *out)
        compare(out, want)


def stored(values, kind):
    """Samples of 0..1 as arrays of a type; bfloat16, of which NumPy knows nothing, cut off to its upper bits."""
    if kind == "uint8":
        return np.rint(255 * np.clip(np.nan_to_num(values), 0, 1)).astype(np.uint8)
    if kind == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(kind).view(np.uint16) if kind == "float16" else values.astype(kind)


def levels(samples, kind, low=0.0, high=1.0):
    """The definition: 8 bits of samples."""
    if kind == "uint8":
        return samples
    if kind == "bfloat16":
        values = (samples.astype(np.uint32) << 16).view(np.float32)
    else:
        values = (samples.view(np.float16) if kind == "float16" else samples).astype(np.float32)
    with np.errstate(all="ignore"):
        scaled = (values - np.float32(low)) * np.float32(255 / (high - low))
    clipped = np.clip(np.where(np.isnan(scaled), np.float32(0), scaled), np.float32(0), np.float32(255))
    return np.floor(clipped + np.float32(0.5)).astype(np.uint8)


def on_host(memory, at, kind, size, low=0.0, high=1.0):
    """Planes of display size and the flag by the CPU; at: offsets of the colours, step and pitch in elements."""
    (width, height), outside = size, np.zeros(1, np.int32)
    chroma = (height + 1) // 2, (width + 1) // 2
    out = Planes(np.empty((height, width), np.uint8), np.empty(chroma, np.uint8), np.empty(chroma, np.uint8))
    rgb = HostRgb(memory, *at, np.float32(low), np.float32(255 / (high - low)), outside)
    half = chroma[0] // 2
    convert.load_rgb(kind, rgb, width, height, 0, half, out)
    convert.load_rgb(kind, rgb, width, height, half, chroma[0], out)
    return out, int(outside[0])


def on_gpu(device, memory, at, kind, size, planes, low=0.0, high=1.0, skew=0):  # noqa: F811
    """The same on a GPU, in coded size."""
    item = memory.itemsize
    whole = device.upload(np.concatenate([np.zeros(skew, memory.dtype), memory]))
    colours = [DeviceArray(device, whole.ptr + item * (skew + offset), (1,), np.uint8, whole) for offset in at[:3]]
    bits = [int(np.float32(number).view(np.int32)) for number in (low, 255 / (high - low))]
    flag = device.upload(np.zeros(1, np.int32))
    out = outputs(device, planes)
    load_rgb(InputRgb(*colours, kind, item * at[3], item * at[4], *bits, flag), *size, *out)
    return out, int(flag.get()[0])


def arrangements(samples):
    """(memory, (offsets of red, green and blue, step, pitch)) of layouts of [height, width, 3]."""
    height, width, _ = samples.shape
    plane = height * width
    yield samples.ravel(), (0, 1, 2, 3, 3 * width)
    yield samples[..., ::-1].ravel(), (2, 1, 0, 3, 3 * width)  # BGR
    yield np.pad(samples, ((0, 0), (0, 0), (0, 1))).ravel(), (0, 1, 2, 4, 4 * width)  # RGBA
    yield np.moveaxis(samples, 2, 0).ravel(), (0, plane, 2 * plane, 1, width)
    yield samples[::-1, ::-1].ravel(), (3 * plane - 3, 3 * plane - 2, 3 * plane - 1, -3, -3 * width)  # turned by 180 degrees
    yield samples.transpose(2, 1, 0).ravel(), (0, plane, 2 * plane, height, 1)


@pytest.mark.parametrize("kind", RGB_DTYPES)
def test_rgb(device, kind):  # noqa: F811
    """Each layout and type by its definition, on both devices."""
    rng = np.random.default_rng(seed := 92)
    print("seed", seed)
    for width, height in SIZES:
        for extreme in (False, True):
            values = rng.random((height, width, 3))
            samples = stored(np.rint(values) if extreme else values, kind)
            want = padded(width, height, *bt709(levels(samples, kind)))
            for k, (memory, at) in enumerate(arrangements(samples)):
                memory = np.ascontiguousarray(memory)
                planes, outside = on_host(memory, at, kind, (width, height))
                assert not outside
                for name, got, expected in zip("yuv", padded(width, height, *planes), want):
                    np.testing.assert_array_equal(got, expected, err_msg=f"{name} {k}")
                out, outside = on_gpu(device, memory, at, kind, (width, height), want, skew=k % 2)
                assert not outside
                compare(out, want)


@pytest.mark.parametrize("kind", RGB_DTYPES[1:])
def test_every_value_rounds_alike(device, kind):  # noqa: F811
    """All values of 16 bits, no numbers among them; of 32 and 64 bits those around each step."""
    if kind.endswith("16"):
        samples = np.arange(1 << 16, dtype=np.uint16)
    else:
        steps = ((np.arange(-30, 290) + 0.5) / 255).astype(kind)
        near = [steps + n * np.spacing(steps) for n in range(-3, 4)]
        odd = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e-40, -1e-40, 3e38, -3e38], kind)
        samples = np.concatenate([*near, odd]).astype(kind)
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)):
        grey = samples[: len(samples) // 2 * 2].reshape(-1, 2)
        size, at = (2, len(grey)), (0, 0, 0, 1, 2)
        rgb = np.repeat(levels(grey, kind, low, high)[..., None], 3, 2)
        want = padded(*size, *bt709(rgb))
        planes, outside = on_host(grey.ravel(), at, kind, size, low, high)
        np.testing.assert_array_equal(planes.y, bt709(rgb)[0])
        out, also = on_gpu(device, grey.ravel(), at, kind, size, want, low, high)
        compare(out, want)
        assert outside == also == 1
        assert (planes.u == 128).all() and (planes.v == 128).all()


def test_what_is_far_outside_is_noticed(device):  # noqa: F811
    """From a tenth of the range on, anywhere in the frame."""
    size, at = (17, 5), (0, 1, 2, 3, 51)
    for value, expected in ((-0.09, 0), (1.09, 0), (-0.11, 1), (1.11, 1), (np.nan, 1), (np.inf, 1)):
        for place_of_it in (0, 3 * 85 - 1, 100):
            samples = np.full(3 * 85, 0.5, np.float32)
            samples[place_of_it] = value
            planes, outside = on_host(samples, at, "float32", size)
            want = padded(*size, *planes)
            out, also = on_gpu(device, samples, at, "float32", size, want)
            compare(out, want)
            assert outside == also == expected, value


def test_the_colours_are_those_of_bt709():
    """Within one of the matrix in real numbers; black, white and the primaries exactly at their places."""
    rng = np.random.default_rng(93)
    colours = np.concatenate([rng.integers(0, 256, (500, 3)), 255 * (np.arange(8)[:, None] >> np.arange(3) & 1)])
    for colour in colours:
        r, g, b = colour / 255
        luma = 0.2126 * r + 0.7152 * g + 0.0722 * b
        exact = 16 + 219 * luma, 128 + 224 * (b - luma) / 1.8556, 128 + 224 * (r - luma) / 1.5748
        got = [int(p[0, 0]) for p in bt709(np.tile(colour.astype(np.uint8), (2, 2, 1)))]
        assert np.abs(np.array(exact) - got).max() < 0.52
    assert [int(p[0, 0]) for p in bt709(np.full((1, 1, 3), 255, np.uint8))] == [235, 128, 128]
    assert [int(p[0, 0]) for p in bt709(np.zeros((1, 1, 3), np.uint8))] == [16, 128, 128]
