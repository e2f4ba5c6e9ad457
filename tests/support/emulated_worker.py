"""A worker process with emulated GPUs. FAIL_WORKER=N: GPU N fails after the launches that FAIL_AFTER says."""

import os

from h264lite.cuda_src.runtime import device as device_module
from h264lite.encoder.workers import worker

from ..cuda_emulator.driver import EmulatedDriver


def main(descriptor: int, device: str) -> None:
    emulated = EmulatedDriver(devices=2)
    device_module.use_driver(emulated)
    for gpu in os.environ.get("FAIL_WORKER", "").split():
        emulated.gpus[int(gpu)].fail_after = int(os.environ["FAIL_AFTER"])
    worker.main(descriptor, device)
