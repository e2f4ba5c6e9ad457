"""Compiles the kernels of the CPU path into their cache: all, or those of some stages for an encode with some options.

python -m h264lite.encoder.compile_kernels [OPTIONS STAGES]    (a JSON object; names separated by commas)
"""

import gc
import json
import sys
import time
from collections.abc import Collection

import numpy as np

from ..cpu_simd.layout import RGB_DTYPES
from ..scheduler.frames.host_rgb import RgbFrame
from ..scheduler.stages import TABLE
from .encoder import Encoder
from .settings.config import Config
from .settings.option_types import OptionValues
from .warm_up import choosing, load_writers

# Options that choose other kernels
_VARIANTS: tuple[OptionValues, ...] = (
    {}, {"profile": "baseline"}, {"bits_by_kind": True}, {"me": "step"}, {"me": "hex"}, {"subme": 4},
    {"subme": 6, "profile": "baseline"}, {"subme": 6}, {"merange": 8}, {"weightp": 1}, {"aq_mode": 1}, {"bframes": 1},
    {"bframes": 1, "subme": 6}, {"bframes": 1, "subme": 6, "no_cabac": True}, {"bframes": 1, "merange": 8},
)  # fmt: skip
_STEADY = {"qp": 26, "bframes": 0}  # of the variants but for the first, so that each is of few kernels


def compile_stages(options: OptionValues, names: Collection[str]) -> None:
    """Compile the kernels of these stages by a tiny encode in which the others do nothing, as in all later encodes."""
    for stage in TABLE:
        if stage.name not in names:
            vars(stage)["cpu_function"] = _nothing
    _encode(options | {"threads": 1})


def _nothing(*_: object) -> None:
    """In place of the function of a stage."""


def load_converters() -> None:
    """Convert a tiny RGB frame of each type."""
    for dtype, stored in zip(RGB_DTYPES, ("u1", "u2", "u2", "f4", "f8")):
        RgbFrame(dtype, 2, 2, np.zeros(12, stored), (0, 1, 2, 3, 6), 0.0, 1.0, None).planes()


def compile_for(config: Config | None = None) -> float:
    """Compile the kernels of an encode on the CPU by a tiny encode; return the seconds. config: None: default options."""
    begin = time.perf_counter()
    _encode(choosing(config) if config else {})
    return time.perf_counter() - begin


def compile_all() -> float:
    """Compile the kernels of encodes on the CPU with any options, and those of the host for a GPU; return the seconds."""
    begin = time.perf_counter()
    load_writers(hybrid=True)
    load_converters()
    for options in _VARIANTS:
        _encode(_STEADY | options if options else {})
    return time.perf_counter() - begin


def _encode(options: OptionValues) -> None:
    with Encoder(32, 32, device="cpu", **options) as encoder:
        for _ in range(2 + encoder.config.coding.bframes):  # B frames lie between two others
            encoder.encode(np.zeros((48, 32), np.uint8))
        encoder.flush()


if __name__ == "__main__":
    if sys.argv[1:]:
        gc.disable()  # this process compiles a part and ends soon; with all kernels it would grow to 2 GB
        compile_stages(json.loads(sys.argv[1]), sys.argv[2].split(","))
    else:
        compile_all()
