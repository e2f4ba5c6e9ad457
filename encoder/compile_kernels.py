"""Compiles the kernels of the CPU path into their cache: all, or those that a parent process asks for (prepare_kernels.py).

python -m h264lite.encoder.compile_kernels
"""

import gc
import json
import sys
import time

import numpy as np

from ..cpu_simd.inter.weighting import weight_reference
from ..cpu_simd.layout import N_WEIGHTS, RGB_DTYPES
from ..jit.address_calls import address_of
from ..jit.atomics import wait_until
from ..jit.listing import list_versions
from ..scheduler.frames.host_rgb import RgbFrame
from ..scheduler.threads import frame_team
from ..scheduler.threads.parallel_steps import run_steps, take_part
from .encoder import Encoder
from .settings.config import Config
from .settings.option_types import OptionValues
from .settings.resolve import SHORTEST_CYCLE
from .warm_up import choosing, load_writers

# Options that choose other kernels
_VARIANTS: tuple[OptionValues, ...] = (
    {}, {"profile": "baseline"}, {"bits_by_kind": True}, {"me": "step"}, {"me": "hex"}, {"subme": 4},
    {"subme": 6, "profile": "baseline"}, {"subme": 6}, {"merange": 8}, {"weightp": 1}, {"aq_mode": 1}, {"bframes": 1},
    {"bframes": 1, "subme": 6}, {"bframes": 1, "subme": 6, "no_cabac": True}, {"bframes": 1, "merange": 8},
    {"bframes": 1, "me": "hex"}, {"bframes": 1, "bits_by_kind": True}, {"intra_refresh": True, "keyint": SHORTEST_CYCLE},
    {"subme": 10, "aq_mode": 1}, {"bframes": 1, "subme": 10, "aq_mode": 1},
    *({"bframes": bframes, "cqm": "jvt", **more} for bframes in (0, 1)
      for more in ({}, {"subme": 6}, {"subme": 6, "no_cabac": True}, {"subme": 10, "aq_mode": 1})),
)  # fmt: skip
_COLLECT = 8.0  # seconds between collections of garbage in a process that compiles
_STEADY = {"qp": 26, "bframes": 0}  # of the variants but for the first, so that each is of few kernels


def serve() -> None:
    """The work of a process that compiles for another one. Its argument: options, a JSON object.

    It prints the names of all kernels of an encode, and of those that no cache has, as a JSON list. Then it compiles the
    kernels whose names come by standard input, a line each, and prints for each whether other processes find it in a cache.
    """
    gc.disable()  # the compiler's garbage is collected now and then: else for a tenth of the time
    options = json.loads(sys.argv[1])
    versions = {version.name: version for version in list_versions(lambda: _call_all(options))}
    missing = [name for name, version in versions.items() if not version.is_kept()]
    print(json.dumps([list(versions), missing]), flush=True)
    collected = time.monotonic()
    for line in sys.stdin:
        name = line.rstrip("\n")
        versions[name].compile()
        print(json.dumps(versions[name].is_kept()), flush=True)
        if time.monotonic() - collected > _COLLECT:
            gc.collect()
            gc.freeze()  # what stays is not looked at again
            collected = time.monotonic()


def _call_all(options: OptionValues) -> None:
    """Call all kernels of an encode, where calls only list them. Types of frames are fixed: no costs decide about them."""
    fixed = {**options, "threads": 1}
    _encode(fixed | {"b_adapt": 0, "scenecut": 0})
    _encode(fixed)
    if options.get("weightp"):  # black frames do not fade
        luma = np.zeros((4, 48, 48), np.uint8)
        weight_reference(luma, np.zeros(N_WEIGHTS, np.int32), 16, 0, 1, luma)
    if options["threads"] > 1:
        numbers = np.zeros(1, np.int64)
        pairs, triples = np.zeros((1, 2), np.int64), np.zeros((1, 3), np.int64)
        steps = pairs, numbers, numbers, numbers, numbers, triples
        run_steps(*steps, 0, 0, 0)
        address_of(take_part, (*steps, 0))
        frame_team.open_frame(numbers, numbers, 0, 0, 0, *steps)
        frame_team.serve(numbers, numbers, 0, 0, 0, numbers)
        wait_until(numbers, 0, 0, 0)


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
        coding = encoder.config.coding  # B frames lie between two others, the first cycle of intra refresh is not at once
        for _ in range(2 + coding.bframes + coding.refresh_cycle):
            encoder.encode(np.zeros((48, 32), np.uint8))
        encoder.flush()


if __name__ == "__main__":
    compile_all()
