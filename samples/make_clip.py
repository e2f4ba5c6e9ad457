"""Make a clip that looks like a camera's: textured ground, moving things, a slow pan, light that changes, grain.

    python samples/make_clip.py out/sample_640x360.yuv --size 640x360 --frames 60 --seed 1
    python samples/make_clip.py out/sample.y4m --size 352x288

The same arguments give the same bytes. The ending of the name decides between Y4M and raw I420.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]


def noise(rng: np.random.Generator, height: int, width: int, cell: int) -> np.ndarray:
    """Smooth random texture, float32[height, width] in -1..1: random values every `cell` samples, blended between."""
    grid = rng.uniform(-1, 1, (height // cell + 3, width // cell + 3)).astype(np.float32)
    y, x = np.arange(height, dtype=np.float32) / cell, np.arange(width, dtype=np.float32) / cell
    y0, x0 = y.astype(int), x.astype(int)
    fy, fx = (y - y0)[:, None], (x - x0)[None, :]
    fy, fx = fy * fy * (3 - 2 * fy), fx * fx * (3 - 2 * fx)
    top = grid[y0][:, x0] * (1 - fx) + grid[y0][:, x0 + 1] * fx
    bottom = grid[y0 + 1][:, x0] * (1 - fx) + grid[y0 + 1][:, x0 + 1] * fx
    return top * (1 - fy) + bottom * fy


def shifted(image: np.ndarray, y: float, x: float, height: int, width: int) -> np.ndarray:
    """A window of `image` at a fractional position, blended bilinearly, as a sensor would."""
    y0, x0 = int(y), int(x)
    fy, fx = np.float32(y - y0), np.float32(x - x0)
    window = image[y0 : y0 + height + 1, x0 : x0 + width + 1]
    rows = window[:-1] * (1 - fy) + window[1:] * fy
    return rows[:, :-1] * (1 - fx) + rows[:, 1:] * fx


class Scene:
    """What is filmed: a large textured ground and things that move over it, all from one seed."""

    def __init__(self, width: int, height: int, seed: int):
        self.rng = np.random.default_rng(seed)
        self.width, self.height = width, height
        self.margin = 64  # samples that the camera may move
        tall, wide = height + 2 * self.margin + 2, width + 2 * self.margin + 2
        ground = sum(
            noise(self.rng, tall, wide, cell) * strength for cell, strength in ((96, 40), (24, 26), (8, 18), (3, 12), (1, 5))
        )
        stripes = 18 * np.sign(np.sin(np.arange(wide) / 5.3))[None, :] * (noise(self.rng, tall, wide, 80) > 0.25)
        self.ground = (np.float32(118) + ground + stripes).astype(np.float32)
        self.ground_u = (128 + 22 * noise(self.rng, tall, wide, 70)).astype(np.float32)
        self.ground_v = (128 + 22 * noise(self.rng, tall, wide, 90)).astype(np.float32)
        self.things = [self._thing() for _ in range(5)]

    def _thing(self) -> dict[str, np.ndarray | float]:
        """A textured ellipse with a position, a velocity (samples a frame) and a colour."""
        size = max(4, int(min(self.width, self.height) * self.rng.uniform(0.12, 0.4)))
        y, x = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
        return {
            "shape": np.clip((1 - np.hypot(y * self.rng.uniform(0.9, 1.4), x)) * size / 3, 0, 1).astype(np.float32),
            "texture": (self.rng.uniform(60, 190) + 35 * noise(self.rng, size, size, 5)).astype(np.float32),
            "u": self.rng.uniform(80, 176), "v": self.rng.uniform(80, 176),
            "x": self.rng.uniform(0, self.width), "y": self.rng.uniform(0, self.height),
            "dx": self.rng.uniform(-5, 5), "dy": self.rng.uniform(-3, 3),
        }  # fmt: skip

    def frame(self, number: int) -> Planes:
        """Picture `number`; pictures must be asked for in order, because the grain is drawn on the way."""
        pan_x = self.margin + 40 * np.sin(number / 31) + 2 * np.sin(number / 3.1)  # a slow pan of an unsteady hand
        pan_y = self.margin + 25 * np.sin(number / 43 + 1) + 1.5 * np.sin(number / 2.3)
        y, u, v = (
            shifted(plane, pan_y, pan_x, self.height, self.width) for plane in (self.ground, self.ground_u, self.ground_v)
        )
        for thing in self.things:
            self._draw(thing, number, y, u, v)
        y = y * np.float32(1 + 0.04 * np.sin(number / 17))
        y += self.rng.normal(0, 1.2, y.shape).astype(np.float32)
        return to_uint8(y), to_uint8(halved(u)), to_uint8(halved(v))

    def _draw(self, thing: dict[str, np.ndarray | float], number: int, *planes: np.ndarray) -> None:
        shape, texture = np.asarray(thing["shape"]), np.asarray(thing["texture"])
        size = len(shape)
        span_x, span_y = self.width + 2 * size, self.height + 2 * size
        left = (float(thing["x"]) + number * float(thing["dx"]) + size) % span_x - size
        top = (float(thing["y"]) + number * float(thing["dy"]) + size) % span_y - size
        x0, y0 = int(np.floor(left)), int(np.floor(top))
        window = (
            slice(min(max(0, y0), self.height), min(max(0, y0 + size), self.height)),
            slice(min(max(0, x0), self.width), min(max(0, x0 + size), self.width)),
        )
        inner = (slice(window[0].start - y0, window[0].stop - y0), slice(window[1].start - x0, window[1].stop - x0))
        mask = shape[inner]
        for plane, value in zip(planes, (texture[inner], float(thing["u"]), float(thing["v"]))):
            plane[window] += mask * (value - plane[window])


def halved(plane: np.ndarray) -> np.ndarray:
    """Chroma at half size, rounded up: the mean of four, edges repeated."""
    even = np.pad(plane, ((0, plane.shape[0] % 2), (0, plane.shape[1] % 2)), mode="edge")
    return (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4


def to_uint8(plane: np.ndarray) -> np.ndarray:
    """Rounded and clipped to the limited range of video."""
    return np.clip(np.rint(plane), 16, 235).astype(np.uint8)


def make_frames(width: int, height: int, frames: int, seed: int = 1) -> Iterator[Planes]:
    """`frames` pictures (y, u, v), uint8; chroma ((h + 1) // 2, (w + 1) // 2)."""
    scene = Scene(width, height, seed)
    for number in range(frames):
        yield scene.frame(number)


def write_clip(path: Path, width: int, height: int, frames: int, seed: int = 1, fps: int = 30) -> None:
    """Write raw I420, or Y4M if `path` ends so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    y4m = path.suffix == ".y4m"
    with open(path, "wb") as out:
        if y4m:
            out.write(f"YUV4MPEG2 W{width} H{height} F{fps}:1 Ip A1:1 C420jpeg\n".encode())
        for planes in make_frames(width, height, frames, seed):
            if y4m:
                out.write(b"FRAME\n")
            for plane in planes:
                out.write(plane.tobytes())


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--size", default="640x360", metavar="WxH")
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fps", type=int, default=30)
    given = parser.parse_args()
    try:
        width, height = map(int, given.size.split("x"))
    except ValueError:
        parser.error(f"--size {given.size}: not a size such as 640x360")
    if min(width, height, given.frames, given.fps) < 1:
        parser.error("size, frames and fps must be at least 1")
    write_clip(given.path, width, height, given.frames, given.seed, given.fps)
    print(given.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
