"""A process that encodes on a GPU, for tests of several processes, of signals and of kernels of other libraries that fail:

    python tests/support/gpu_process.py encode OUT DEVICE      # says "begun" after the first frames, and waits for a line
    python tests/support/gpu_process.py fault OUT DEVICE WHEN  # PyTorch makes the GPU fail before or between frames

It says what was raised in one line of JSON: {"error": name of the type or null, "text": message, "warnings": [...]}.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import h264lite
import numpy as np
from h264lite.encoder.settings import device as device_setting
from h264lite.encoder.settings import tuning_lookup

WIDTH, HEIGHT, FRAMES, BEGUN = 352, 288, 60, 8
OPTIONS = {"bframes": 2, "qp": 27, "threads": 2, "keyint": 20}


def clip() -> list[np.ndarray]:
    """RGB frames of a moving texture."""
    small = np.random.default_rng(9).integers(0, 256, (HEIGHT // 8 + 20, WIDTH // 8 + 20, 3), np.uint8)
    texture = small.repeat(8, 0).repeat(8, 1)
    return [np.ascontiguousarray(texture[n : n + HEIGHT, 2 * n : 2 * n + WIDTH]) for n in range(FRAMES)]


def fail() -> None:
    """An index of PyTorch out of range: an assertion in its kernel, after which no call for the context succeeds."""
    import torch

    torch.zeros(4, device="cuda")[torch.tensor([1 << 30], device="cuda")]


def encode(device: str, when: str = "", nap: float = 0.0) -> bytes:
    """The stream. when: "before" or "between", for a fault."""
    if when == "before":
        fail()
    packets = []
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device=device, **OPTIONS) as encoder:
        for n, frame in enumerate(clip()):
            if n == BEGUN and nap:
                print("begun", flush=True)
                sys.stdin.readline()
            if n == BEGUN and when == "between":
                fail()
            time.sleep(nap if n >= BEGUN else 0)
            packets += encoder.encode(frame)
        packets += encoder.flush()
    return b"".join(packet.data for packet in packets)


if __name__ == "__main__":
    what, out, device, *more = sys.argv[1:]
    device_setting.SMALLEST_FOR_CUDA = 1  # `auto` takes the GPU
    tuning_lookup.cache_file = lambda: Path("no tuning")
    outcome: dict[str, object] = {"error": None, "text": ""}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            Path(out).write_bytes(encode(device, *more, nap=0.03 if what == "encode" else 0.0))
        except h264lite.Error as error:
            outcome = {"error": type(error).__name__, "text": str(error)}
    print(json.dumps({**outcome, "warnings": [str(w.message) for w in said if w.category is RuntimeWarning]}), flush=True)
