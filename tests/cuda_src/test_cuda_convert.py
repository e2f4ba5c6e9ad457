"""Frames to padded planes on the GPU, against their definition in NumPy: odd sizes, pitches, any alignment, colours."""

import numpy as np
import pytest
from h264lite.cuda_src.convert import load_i420, load_nv12, load_rgb
from h264lite.cuda_src.runtime.device import DeviceArray
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
    """frame_params, planes and qp."""
    params = device.upload(np.array([QP, 99], np.int32))
    n_mb = planes[0].size // 256
    return [params, *(device.array(p.shape, np.uint8).fill(0x77) for p in planes), device.array((n_mb,), np.uint8).fill(0x77)]


def compare(got, want):
    for name, a, b in zip("yuv", got[1:], want):
        np.testing.assert_array_equal(a.get(), b, err_msg=name)
    assert (got[-1].get() == QP).all()


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
        load_i420(at_y, at_u, at_v, pitch, chroma_pitch, width, height, *out)
        compare(out, want)
        pairs = np.stack([u, v], 2).reshape(len(u), -1)
        at_uv, chroma_pitch = place(device, rng, pairs, extra, skew)
        out = outputs(device, want)
        load_nv12(at_y, at_uv, pitch, chroma_pitch, width, height, *out)
        compare(out, want)


@pytest.mark.parametrize("extra, skew", [(0, 0), (7, 1)])
def test_rgb(device, extra, skew):  # noqa: F811
    rng = np.random.default_rng(seed := 92)
    print("seed", seed)
    for width, height in SIZES:
        for extreme in (False, True):
            rgb = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
            if extreme:
                rgb = np.where(rgb < 128, 0, 255).astype(np.uint8)
            want = padded(width, height, *bt709(rgb))
            picture, pitch = place(device, rng, rgb.reshape(height, -1), extra, skew)
            out = outputs(device, want)
            load_rgb(picture, pitch, None, width, height, *out)
            compare(out, want)
            picture, pitch = place(device, rng, np.moveaxis(rgb, 2, 0).reshape(3 * height, width), extra, skew)
            out = outputs(device, want)
            load_rgb(picture, pitch, pitch * height, width, height, *out)
            compare(out, want)


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
