"""What the host does for a frame on a GPU: encodes with a driver that does nothing, and prints the processor time a frame.

    python benchmarks/host_work.py [--frames N] [--size WxH] [--rounds R] [--on-gpu | --rows N] [--profile] [name=value ...]

The streams are no streams, since no kernel runs: results are zeros, but for the costs of intra prediction, which would make
each frame a scene of its own. name=value: options of the encoder. --on-gpu: RGB pictures that lie on the GPU, to an MP4 in
memory. --rows: grey frames of device hybrid, so many rows of each on the CPU, which decides about modes; a narrow frame
(--size 16x1088) has little other work. --profile: samples of what the caller's thread does, by function. Needs
cuda-bindings and a C compiler, and no GPU.
"""

import argparse
import ctypes
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

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
from h264lite.cuda_src.runtime import driver_table, modules  # noqa: E402
from h264lite.encoder.settings.config import Config  # noqa: E402
from h264lite.scheduler.lookahead.gpu_or_host import GpuOrHostCosts  # noqa: E402

ROOT = f"{Path(__file__).resolve().parents[1]}/"
modules.is_kept = lambda *_: True
driver_table.load_codes = lambda names, *_: [b"\0" * 64 for _ in names]
_intra = GpuOrHostCosts.intra
GpuOrHostCosts.intra = lambda self, frame: _intra(self, frame) + 1  # else no prediction would seem to gain anything
INTERVAL = 0.001  # seconds of processor time between samples


class OnGpu:
    """An array that CUDA programs exchange, by its address."""

    def __init__(self, memory: np.ndarray) -> None:
        self._memory = memory
        self.__cuda_array_interface__ = dict(memory.__array_interface__, version=3, stream=None)


def planes_of(width: int, height: int, count: int) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(1)
    shapes = (height, width), (height // 2, width // 2), (height // 2, width // 2)
    return [tuple(rng.integers(0, 256, shape, np.uint8) for shape in shapes) for _ in range(count)]


class Samples:
    """Counts of functions at work, with and without those that they call."""

    def __init__(self) -> None:
        self.own, self.total, self.count = Counter[str](), Counter[str](), 0

    def take(self, _: int, frame: FrameType | None) -> None:
        """A handler of signals."""
        stack = []
        while frame is not None:
            stack.append(f"{frame.f_code.co_filename.removeprefix(ROOT)}:{frame.f_code.co_qualname}")
            frame = frame.f_back
        self.count += 1
        self.own[stack[0]] += 1
        self.total.update(set(stack))

    def print(self, microseconds: float) -> None:
        """microseconds: of a frame."""
        unit = microseconds / self.count
        print(f"{self.count} samples; microseconds of a frame, with what is called and without:")
        for name, count in self.total.most_common(120):
            print(f"{unit * count:8.1f} {unit * self.own[name]:8.1f}  {name}")
        print("without what is called:")
        for name, count in self.own.most_common(40):
            print(f"{unit * count:8.1f}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--on-gpu", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("options", nargs="*", metavar="name=value")
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    options = {key: int(value) if value.isdigit() else value for key, _, value in (o.partition("=") for o in args.options)}
    planes = planes_of(width, height, 8)
    device = "cuda" if args.rows is None else "hybrid"
    config = Config.from_options(width=width, height=height, fps=30, device=device, **options)
    if args.rows is not None:
        config = config._replace(machine=config.machine._replace(split=(args.rows, 0), tuning=None))
        planes = [tuple(np.full_like(plane, 100) for plane in some) for some in planes]
    pictures = [OnGpu(np.zeros((height, width, 3), np.uint8)) for _ in range(8)]

    def encode(frames: int) -> list[h264lite.Packet]:
        if args.on_gpu:
            h264lite.write_video(None, (pictures[n % 8] for n in range(frames)), 30, device="cuda", **options)
            return []
        with h264lite.Encoder.from_config(config) as encoder:
            packets = []
            for n in range(frames):
                packets += encoder.encode(planes[n % 8])
            return packets + list(encoder.flush())

    types = Counter(str(packet.frame_type) for packet in encode(60))
    print("frames by type:", dict(types))
    if args.profile:
        samples = Samples()
        signal.signal(signal.SIGPROF, samples.take)
        before = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        encode(args.frames)
        signal.setitimer(signal.ITIMER_PROF, 0)
        samples.print(1e6 * (time.process_time() - before) / args.frames)
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
