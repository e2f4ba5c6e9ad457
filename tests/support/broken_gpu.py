"""The command line on a GPU that breaks for good, as a program, since a broken context cannot be repaired within its process:

    python tests/support/broken_gpu.py 3 encode in.yuv out.264 --device hybrid ...

Before frame 3 the GPU gets a kernel of this project that works on an address where nothing is, ahead of all that its
streams get from then on: an illegal access, after which no call for that context succeeds. `hybrid` divides each picture in
halves, `auto` takes the GPU for pictures of any size, and no tuning file has a say.

BROKEN_GPU=emulated: the same on emulated GPUs, whose waiting callers are told that they are lost.
BROKEN_ORDINAL=N: of two GPUs, each of which takes a GOP before any begins, GPU N breaks before its own frame 3.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Any

from h264lite.cli import encode as encode_command
from h264lite.cuda_src.inter.interpolate import extend_borders
from h264lite.cuda_src.runtime.device import Device, DeviceArray, use_driver
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings import device, tuning_lookup

NOWHERE = 256  # an address that no process has


def break_for_good(gpu: Device) -> None:
    """On the default stream, for which streams made without flags wait: nothing that follows is done."""
    if hasattr(gpu.driver, "gpus"):
        broken = gpu.driver.gpus[gpu.ordinal]
        broken.fail_after, broken.silent = broken.launches, True
        return
    with gpu:
        extend_borders(DeviceArray(gpu, NOWHERE, (256, 256), "u1"), 32)


def install(at: int, ordinal: int | None) -> None:
    """The GPU, or of two the one of that number, breaks when frame `at` is about to enter."""
    from inside import changed, gpu_of, on_each_frame, ring_of  # type: ignore[import-not-found]

    make_config = encode_command.make_config
    lock, together, broken = threading.Lock(), threading.Barrier(2), []

    def break_once(pipeline: Pipeline, spec: Any) -> Any:
        gpu, count = gpu_of(pipeline), ring_of(pipeline).count
        if ordinal is not None and count == 0:
            together.wait(60)
        with lock:
            mine = ordinal is None or (gpu is not None and gpu.ordinal == ordinal)
            number = spec.display_index if ordinal is None else count
            if gpu is not None and mine and number == at and not broken:
                broken.append(gpu)
                break_for_good(gpu)
        return spec

    def divided(*arguments: Any) -> Any:
        config = make_config(*arguments)
        return changed(config, split=(config.coding.mb_height // 2, 1)) if config.machine.device == "hybrid" else config

    on_each_frame(setattr, break_once)
    encode_command.make_config = divided
    device.SMALLEST_FOR_CUDA = 1
    tuning_lookup.cache_file = lambda: Path("no tuning")


if __name__ == "__main__":
    from h264lite.__main__ import main

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    if os.environ.get("BROKEN_GPU") == "emulated":
        from cuda_emulator.driver import EmulatedDriver  # type: ignore[import-not-found]

        use_driver(EmulatedDriver(devices=2 if "BROKEN_ORDINAL" in os.environ else 1))
    os.environ["H264LITE_WORKERS"] = "0"
    one_of_two = os.environ.get("BROKEN_ORDINAL")
    install(int(sys.argv.pop(1)), int(one_of_two) if one_of_two else None)
    sys.exit(main())
