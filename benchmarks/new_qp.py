"""Frames a second of whole encodes with one QP, and with a new QP for each frame.

    python benchmarks/new_qp.py [--size 1920x1080] [--frames 600] [--device cuda] [--rounds 5]

Frames are synthetic and in memory. The two are timed by turns; each line has the best and the median of the rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import h264lite
import numpy as np
from h264lite.benchmarks.cuda_loop import synthetic_pictures
from h264lite.encoder.pipeline import Pipeline

LOW, HIGH = 26, 28  # the QPs that frames have in turn, near each other: frames differ little; their mean is the one QP


@contextmanager
def qps(qp_of: Callable[[int], int]) -> Iterator[None]:
    """Within it frame n of an encode has qp_of(n)."""
    encode_frame = Pipeline._encode

    def encode_with_qp(self: Any, frame: Any, spec: Any, *given: Any) -> Any:
        spec = spec or self.decider.next()
        return encode_frame(self, frame, spec._replace(qp=qp_of(spec.display_index)), *given)

    Pipeline._encode = encode_with_qp  # type: ignore[method-assign]
    try:
        yield
    finally:
        Pipeline._encode = encode_frame  # type: ignore[method-assign]


CASES = {"one QP": lambda n: (LOW + HIGH) // 2, "a new QP each frame": lambda n: LOW + n % (HIGH - LOW + 1)}


def encode(pictures: list[np.ndarray], width: int, height: int, count: int, device: str) -> float:
    """Frames a second."""
    with h264lite.Encoder(width, height, 30, device=device, qp=(LOW + HIGH) // 2, bframes=0, keyint=count) as encoder:
        for picture in pictures:  # the first frames open the GPU and make recordings
            encoder.encode(picture)
        start = time.perf_counter()
        for n in range(count):
            encoder.encode(pictures[n % len(pictures)])
        encoder.flush()
        return count / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    pictures = synthetic_pictures(width, height, 24)
    rates: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(args.rounds):
        for name, qp_of in CASES.items():
            with qps(qp_of):
                rates[name].append(encode(pictures, width, height, args.frames, args.device))
    for name, fps in rates.items():
        print(f"{name:20s} best {max(fps):8.1f} median {statistics.median(fps):8.1f} frames/s")


if __name__ == "__main__":
    main()
