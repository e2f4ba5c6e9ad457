"""What the host does for a frame on a GPU: encodes with a driver that does nothing, and prints the processor time a frame.

    python benchmarks/host_work.py [--frames N] [--size WxH] [--rounds R] [--profile] [encoder options as name=value ...]

The streams are no streams, since no kernel runs: lookahead costs and slice data are zeros. Needs cuda-bindings and a C
compiler, and no GPU. --profile prints the functions that take the most time, of all threads.
"""

import argparse
import cProfile
import ctypes
import os
import pstats
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ["H264LITE_CUDA_DRIVER"] = "bindings"


def load_idle_driver() -> ctypes.CDLL:
    """This process's libcuda.so.1 from here on."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "libcuda.so.1"
        source = Path(__file__).with_name("idle_driver.c")
        options = ["-O2", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
        subprocess.run(["cc", *options, str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


kept = load_idle_driver()

import h264lite  # noqa: E402
import numpy as np  # noqa: E402
from h264lite.cuda_src.runtime import device, driver_table  # noqa: E402
from h264lite.scheduler.lookahead import gpu_costs  # noqa: E402

device.is_kept = lambda *_: True
driver_table.load_codes = lambda names, *_: [b"\0" * 64 for _ in names]
_levels_between, COUNTS = gpu_costs.levels_between, np.full(256, 99, np.int32)
gpu_costs.levels_between = lambda reference, frame: _levels_between(COUNTS, COUNTS)  # no kernel counts samples


def clip(width: int, height: int, frames: int) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(1)
    shapes = (height, width), (height // 2, width // 2), (height // 2, width // 2)
    return [tuple(rng.integers(0, 256, shape, np.uint8) for shape in shapes) for _ in range(min(frames, 8))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--size", default="352x288")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("options", nargs="*", metavar="name=value")
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    options = {key: int(value) if value.isdigit() else value for key, _, value in (o.partition("=") for o in args.options)}
    planes = clip(width, height, args.frames)

    def encode(frames: int) -> list[h264lite.Packet]:
        with h264lite.Encoder(width, height, 30, device="cuda", **options) as encoder:
            packets = []
            for n in range(frames):
                packets += encoder.encode(planes[n % len(planes)])
            return packets + list(encoder.flush())

    types = Counter(str(packet.frame_type) for packet in encode(60))
    print("frames by type:", dict(types))
    if args.profile:
        profile = cProfile.Profile(time.thread_time)
        profile.runcall(encode, args.frames)
        pstats.Stats(profile).sort_stats("tottime").print_stats(60)
        return
    for name, clock in (("processor", time.process_time), ("caller's thread", time.thread_time)):
        rounds = []
        for _ in range(args.rounds):
            before = clock()
            encode(args.frames)
            rounds.append(1000 * (clock() - before) / args.frames)
        print(f"{name}: {statistics.median(rounds):.3f} ms a frame, least {min(rounds):.3f}")


if __name__ == "__main__":
    main()
