"""Entropy coding on one core: frames of a real clip by CABAC and by CAVLC, and the CABAC engine alone on their bins.

    python benchmarks/entropy.py [--clip foreman_352x288_30] [--frames 12] [--qp 22 27] [--rounds 7]

Times are those of the thread's processor, the least of the rounds.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np
from h264lite.benchmarks.clips import load
from h264lite.cpu_simd.entropy import cabac, entropy
from h264lite.encoder.encoder import Encoder
from h264lite.jit.kernel import closed_kernel

TOOLS, COUNTS = 7, 9  # arguments of write_slices


write_slices = entropy.write_slices
calls: list[list[Any]] = []  # arguments of write_slices for each frame of an encode


def _keep(*arguments: Any) -> None:
    """In place of the stage: keeps its arguments."""
    write_slices(*arguments)
    calls.append([_copied(argument) for argument in arguments])


def encode_clip(clip: Any, qp: int) -> None:
    """Fills `calls` by an encode with CABAC."""
    entropy.write_slices = _keep  # before the encoder looks it up
    calls.clear()
    with Encoder(clip.width, clip.height, clip.fps, qp=qp, profile="main", bframes=0, threads=1, device="cpu") as encoder:
        for picture in clip.pictures:
            planes = picture.ravel()[clip.width * clip.height :].reshape(2, clip.height // 2, clip.width // 2)
            encoder.encode((picture[: clip.height], *planes))
        encoder.flush()


def write_all(flag: int) -> None:
    """All frames, by CABAC if the flag is 1."""
    for arguments in calls:
        write_slices(*arguments[:TOOLS], arguments[TOOLS]._replace(cabac=flag), *arguments[TOOLS + 1 :])


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return value._make(map(_copied, value))  # type: ignore[attr-defined]
    return np.array(value) if isinstance(value, np.ndarray) else value


@closed_kernel
def encode(bins, count, contexts, state, out):  # type: ignore[no-untyped-def]
    """The engine over all symbols."""
    cabac.start_contexts(contexts, 0, 26)
    cabac.start_engine(state, 0)
    cabac.encode_bins(bins, count, contexts, state, out, len(out) - 8)


def seconds(rounds: int, work: Callable[[], None]) -> float:
    """The least time of the rounds, after a first one that compiles."""
    work()
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def engine_rate(rounds: int) -> float:
    """Bins a second of the engine alone: 200 contexts with LPS of 5 to 45 %, a bypass bin after every fourth."""
    count, rng = 3_200_000, np.random.default_rng(1)
    context = rng.integers(0, 200, count)
    value = rng.random(count) < rng.uniform(0.05, 0.45, 200)[context]
    paired = rng.random(count) < 0.25
    bypass = paired * (cabac.PAIRED | rng.integers(0, 2, count) << cabac.PAIRED_BIT + 1)
    bins = (context << 1 | value | bypass).astype(np.uint16)
    scratch = np.zeros(cabac.N_STATES, np.uint8), np.zeros(4, np.int64), np.zeros(count, np.uint8)
    return (count + paired.sum()) / seconds(rounds, lambda: encode(bins, count, *scratch))


def main() -> None:
    """Prints a line for the engine and one for each QP."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", default="foreman_352x288_30")
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--qp", type=int, nargs="+", default=[22, 27])
    parser.add_argument("--rounds", type=int, default=7)
    settings = parser.parse_args()
    print(f"engine alone: {engine_rate(settings.rounds) / 1e6:.0f} Mbin/s")
    clip = load(settings.clip, settings.frames)
    for qp in settings.qp:
        encode_clip(clip, qp)
        cavlc_time = seconds(settings.rounds, lambda: write_all(0))
        cavlc_bits = sum(int(call[COUNTS].sizes[0]) for call in calls)
        cabac_time = seconds(settings.rounds, lambda: write_all(1))
        bits, bins = (sum(int(call[COUNTS][k][0]) for call in calls) for k in range(2))
        each = 1000 / len(calls)
        print(
            f"{clip.name} QP {qp}: CABAC {each * cabac_time:.2f} ms a frame, {bins / cabac_time / 1e6:.0f} Mbin/s, "
            f"{bins / bits:.2f} bins a bit; CAVLC {each * cavlc_time:.2f} ms, bits {100 * bits / cavlc_bits - 100:+.1f} %"
        )


if __name__ == "__main__":
    main()
