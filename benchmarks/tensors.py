"""Seconds from RGB frames in GPU memory to the bytes of a stream, in a process that has encoded before.

    python benchmarks/tensors.py [--size 1344x768] [--frames 124] [--rounds 7] [--preset medium] [--dtype uint8] [--profile]

Frames are tensors of PyTorch where that is installed, else arrays with a CUDA array interface: a texture that pans and zooms,
objects that move over it, a scene cut. Each round makes an encoder, feeds the frames one by one and joins the packets;
settings alternate; least and median are printed. --profile: the functions of one more round that take the host most time.
"""

import argparse
import cProfile
import pstats
import statistics
import time
from collections.abc import Iterator
from typing import Any

import h264lite
import numpy as np
from h264lite.cuda_src.runtime.device import Device, DeviceArray

ROWS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("P frames", {"bframes": 0, "scenecut": 0, "qp": 26}),
    ("bframes 3, fixed types", {"bframes": 3, "b_adapt": 0, "scenecut": 0, "qp": 26}),
    ("bframes 3, adaptive types", {"bframes": 3, "b_adapt": 1, "scenecut": 40, "qp": 26}),
    ("bframes 3, crf", {"bframes": 3, "b_adapt": 1, "scenecut": 40, "crf": 23, "no_mbtree": True}),
    ("bframes 3, crf, tree", {"bframes": 3, "b_adapt": 1, "scenecut": 40, "crf": 23}),
)


class OnGpu:
    """An array as another library gives it, written on the default stream."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array  # which keeps the memory
        self.__cuda_array_interface__ = array.__cuda_array_interface__ | {"stream": 1}


def pictures(width: int, height: int, count: int, dtype: str) -> Iterator[np.ndarray]:
    """Frames [3, height, width]: uint8, or floating-point in 0..1."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    scenes = []
    for _ in range(2):
        coarse = rng.integers(30, 220, (3, 2 + height // 16, 2 + width // 16)).astype(np.float32)
        large = coarse.repeat(32, 1).repeat(32, 2)
        scenes.append(large + rng.normal(0, 6, large.shape))
    for n in range(count):
        scene = scenes[n >= count // 2]
        zoom = 1 + n / (8 * count)
        rows, columns = (y[:, 0] * zoom + n).astype(np.int32), (x[0] * zoom + 2 * n).astype(np.int32)
        frame = scene[:, rows[:, None] % scene.shape[1], columns % scene.shape[2]]
        for k in range(3):
            left, up = width * (k + 1) / 4 + 3 * n, height / 2 + 40 * np.sin(n / 9 + k)
            frame[k, (x - left) ** 2 + (y - up) ** 2 < (height / 8) ** 2] = 240
        clipped = np.clip(frame, 0, 255)
        yield clipped.astype(np.uint8) if dtype == "uint8" else (clipped / 255).astype(dtype)


def upload(frames: Iterator[np.ndarray], gpu: Device) -> tuple[str, list[Any]]:
    """(the library, its arrays on the GPU)."""
    try:
        import torch
    except ImportError:
        with gpu:
            return "arrays", [OnGpu(gpu.upload(frame)) for frame in frames]
    return "torch", [torch.from_numpy(frame).cuda() for frame in frames]


def encode(frames: list[Any], width: int, height: int, options: dict[str, Any]) -> tuple[float, int]:
    """(seconds, bytes of the stream)."""
    start = time.perf_counter()
    with h264lite.Encoder(width, height, 24, device="cuda", **options) as encoder:
        packets = [packet.data for frame in frames for packet in encoder.encode(frame)]
        packets += [packet.data for packet in encoder.flush()]
        data = b"".join(packets)
    return time.perf_counter() - start, len(data)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1344x768")
    parser.add_argument("--frames", type=int, default=124)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--preset", default="medium")
    parser.add_argument("--dtype", choices=("float32", "uint8"), default="float32")
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    gpu = Device()
    library, frames = upload(pictures(width, height, args.frames, args.dtype), gpu)
    seconds: dict[str, list[float]] = {name: [] for name, _ in ROWS}
    sizes: dict[str, int] = {}
    for n in range(1 + args.rounds):
        for name, options in ROWS:
            spent, size = encode(frames, width, height, {"preset": args.preset, **options})
            if n:  # the first round compiles and allocates
                seconds[name].append(spent)
            if sizes.setdefault(name, size) != size:
                raise SystemExit(f"{name}: {sizes[name]} bytes, then {size}")
    print(f"{gpu.name}, {args.frames} frames {args.size}, {args.dtype}, {library}, preset {args.preset}")
    for name, spent_in in seconds.items():
        median = statistics.median(spent_in)
        rate = args.frames / median
        print(f"{name:28} {median:.4f} s (least {min(spent_in):.4f})  {rate:6.0f} frames/s  {sizes[name]} bytes")
    if args.profile:
        for name, options in ROWS[1:]:
            profile = cProfile.Profile()
            profile.runcall(encode, frames, width, height, {"preset": args.preset, **options})
            print(f"\n{name}")
            pstats.Stats(profile).sort_stats("tottime").print_stats(16)


if __name__ == "__main__":
    main()
