"""Compiles the kernels of the CPU path into their cache: all, or with `background` the stages warm_up.IN_BACKGROUND.

python -m h264lite.encoder.compile_kernels [background PROFILE]
"""

import sys
import time
from typing import Any

import numpy as np

from ..cpu_simd.layout import KINDS
from ..scheduler.frames.host_rgb import RgbFrame
from .encoder import Encoder
from .pipeline import Pipeline
from .settings.config import Config
from .warm_up import IN_BACKGROUND, load_writers

# Options that choose other kernels than the default ones
_VARIANTS: tuple[dict[str, Any], ...] = (
    {"profile": "baseline"}, {"bits_by_kind": True}, {"me": "step"}, {"subme": 4}, {"subme": 6, "profile": "baseline"},
    {"subme": 6}, {"merange": 8}, {"weightp": 1}, {"aq_mode": 1}, {"bframes": 1}, {"bframes": 1, "subme": 6},
    {"bframes": 1, "subme": 6, "no_cabac": True}, {"bframes": 1, "merange": 8},
)  # fmt: skip
_CHOOSE = ("me", "merange", "subme", "profile", "weightp", "bframes", "aq_mode", "bits_by_kind")


def compile_stages(profile: str, names: tuple[str, ...] = IN_BACKGROUND) -> None:
    """Run stages once on an empty frame to compile and cache their kernels."""
    pipeline = Pipeline(Config.from_options(width=32, height=32, threads=1, device="cpu", profile=profile))
    load_writers()
    pipeline.compile(names)
    pipeline.close()


def load_converters() -> None:
    """Convert a tiny RGB frame of each type."""
    for kind, stored in zip(KINDS, ("u1", "u2", "u2", "f4", "f8")):
        RgbFrame(kind, 2, 2, np.zeros(12, stored), (0, 1, 2, 3, 6), 0.0, 1.0, None).planes()


def compile_for(config: Config | None = None) -> float:
    """Compile the kernels of an encode on the CPU by a tiny encode; return the seconds. config: None: default options."""
    begin = time.perf_counter()
    _encode({name: getattr(config, name) for name in _CHOOSE} | {"no_cabac": not config.cabac} if config else {})
    return time.perf_counter() - begin


def compile_all() -> float:
    """Compile the kernels of encodes on the CPU with any options, and those of the host for a GPU; return the seconds."""
    begin = time.perf_counter()
    load_writers(hybrid=True)
    load_converters()
    for options in _VARIANTS:
        _encode(options)
    return time.perf_counter() - begin


def _encode(options: dict[str, Any]) -> None:
    with Encoder(32, 32, device="cpu", **options) as encoder:
        for _ in range(2 + options.get("bframes", 0)):  # B frames lie between two others
            encoder.encode(np.zeros((48, 32), np.uint8))
        encoder.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["background"]:
        compile_stages(sys.argv[2])
    else:
        compile_all()
