"""Compiles the kernels of the CPU path into their cache: all, or with `beside` the stages warm_up.BESIDE.

    python -m h264lite.encoder.compile_kernels [beside]
"""

import sys
import time

import numpy as np

from ..cpu_simd.convert import KINDS
from ..scheduler.frames.host_rgb import RgbFrame
from .encoder import Encoder
from .pipeline import Pipeline
from .settings.config import Config
from .warm_up import IN_BACKGROUND, load_writers


def compile_stages(names: tuple[str, ...] = IN_BACKGROUND) -> None:
    """Run stages once on an empty frame to compile and cache their kernels."""
    pipeline = Pipeline(Config.from_options(width=32, height=32, threads=1, device="cpu"))
    load_writers()
    pipeline.compile(names)
    pipeline.close()


def load_converters() -> None:
    """Convert a tiny RGB frame of each type."""
    for kind, stored in zip(KINDS, ("u1", "u2", "u2", "f4", "f8")):
        RgbFrame(kind, 2, 2, np.zeros(12, stored), (0, 1, 2, 3, 6), 0.0, 1.0, None).planes()


def compile_all() -> float:
    """Compile all kernels of an encode on the CPU by a tiny encode; return the seconds."""
    begin = time.perf_counter()
    load_writers()
    load_converters()
    with Encoder(32, 32, device="cpu") as encoder:
        for _ in range(2):
            encoder.encode(np.zeros((48, 32), np.uint8))
        encoder.flush()
    return time.perf_counter() - begin


if __name__ == "__main__":
    if sys.argv[1:] == ["beside"]:
        compile_stages()
    else:
        compile_all()
