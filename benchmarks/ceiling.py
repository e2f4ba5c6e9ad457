"""Limits of this machine (SAD instruction rate, memory copy rate), and the share of them that each stage reaches.

    python benchmarks/ceiling.py [--frames 6] [--rounds 5]

A pair of 1920x1088 frames is encoded with preset medium on one thread; the ceilings are measured between its rounds, on the
same core. For each stage: its time, the time of its SAD instructions alone, the time to read and write its arrays once at
the rate of a copy, and the larger of the two as a share of its time. A stage with much computation (refinement, decision,
coding) has a small share: only its own instructions bound it.
"""

import argparse
import os
import statistics
import time
from typing import Any

os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np
from h264lite.cpu_simd.simd.search import mpsadbw, row_sads
from h264lite.cpu_simd.simd.vector import (
    SIMD_LEVEL,
    WIDE,
    add,
    load_overlapping,
    load_twice,
    splat_u16x16,
    splat_u16x32,
    store,
)
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.stages import CUDA, STAGES
from numba import njit

WIDTH, HEIGHT, MERANGE = 1920, 1088, 16
N_MB = WIDTH * HEIGHT // 256
# mpsadbw a macroblock (16 candidates, a row of 4 samples): 32 x 32 candidates x 64 rows; 20 x 32 candidates x 16 rows
SADS = {"full_search": 4 * MERANGE * MERANGE * 64 // 16, "search_centre": 20 * 32 * 16 // 16}


@njit(nogil=True)
def mpsadbw_loop(samples, out, count):
    """Runs 4 vmpsadbw count times, with almost no other instructions."""
    window, block = load_overlapping(samples, 0), load_twice(samples, 32)
    one = load_twice(samples, 64)
    a = b = c = d = splat_u16x16(0)
    for _ in range(count):
        a = add(a, mpsadbw(window, block, 0, 0))
        b = add(b, mpsadbw(window, block, 4, 4))
        c = add(c, mpsadbw(window, block, 0, 8))
        d = add(d, mpsadbw(window, block, 4, 12))
        window = add(window, one)
    store(out, 0, add(add(a, b), add(c, d)))


@njit(nogil=True)
def row_loop(samples, out, count, like):
    """count rows of four times four samples against as many candidates as `like` has lanes, from the first-level cache."""
    a = b = c = d = like
    for n in range(count):
        s0, s1, s2, s3 = row_sads(samples, n & 31, samples, 64 + (n & 63), like)
        a, b, c, d = add(a, s0), add(b, s1), add(c, s2), add(d, s3)
    store(out, 0, add(add(a, b), add(c, d)))


@njit(nogil=True)
def row_loop_16(samples, out, count):
    row_loop(samples, out, count, splat_u16x16(0))


@njit(nogil=True)
def row_loop_32(samples, out, count):
    row_loop(samples, out, count, splat_u16x32(0))


def seconds(function: Any, *args: Any) -> float:
    """CPU time of a call in seconds."""
    start = time.process_time()
    function(*args)
    return time.process_time() - start


class Ceilings:
    """Rates of this machine; every call of `measure` adds a sample."""

    def __init__(self) -> None:
        self.samples = np.random.default_rng(1).integers(0, 256, 256).astype(np.uint8)
        self.samples[64:96] = 1
        self.out = np.zeros(32, np.uint16)
        self.block = np.zeros(64 << 20, np.uint8), np.ones(64 << 20, np.uint8)  # beyond any cache
        self.instruction: list[float] = []  # seconds of one mpsadbw
        self.row: list[float] = []  # the same with loads, in the widest form
        self.byte: list[float] = []  # seconds of a byte read or written
        mpsadbw_loop(self.samples, self.out, 1)
        self._rows(1)

    def _rows(self, count: int) -> None:
        (row_loop_32 if SIMD_LEVEL == WIDE else row_loop_16)(self.samples, self.out, count)

    def measure(self) -> None:
        """A sample of each."""
        count = 2_000_000
        self.instruction.append(seconds(mpsadbw_loop, self.samples, self.out, count) / (4 * count))
        self.row.append(seconds(self._rows, count) / (4 * count * (1 + (SIMD_LEVEL == WIDE))))
        self.byte.append(seconds(np.copyto, *self.block) / (2 * self.block[0].nbytes))

    def sad(self) -> float:
        """Seconds for the work of one mpsadbw, by the fastest method."""
        return min(statistics.median(self.instruction), statistics.median(self.row))

    def copy(self) -> float:
        """Seconds of a byte read or written."""
        return statistics.median(self.byte)

    def text(self) -> str:
        """A line of text with the rates."""
        a, b = statistics.median(self.instruction), statistics.median(self.row)
        return (
            f"ceilings of a core: vmpsadbw {1e-9 / a:.2f} G a second; rows of SADs with loads {1e-9 / b:.2f} G a second "
            f"(as many vmpsadbw); copy {2e-9 / self.copy() / 2:.1f} GB a second read and as many written"
        )


def traffic(stage: str, state: dict[str, Any]) -> int:
    """Bytes of the arrays that a stage reads or writes, each once, those that it changes twice; 0 where content decides."""
    if stage == "intra" or stage not in STAGES or STAGES[stage].only == CUDA:
        return 0
    row, total = STAGES[stage], 0
    if stage.startswith("extend"):  # only the border
        plane = state[row.written[0]]
        border = state["pad"] if stage == "extend_luma" else state["chroma_pad"]
        return int(plane.nbytes - plane[border:-border, border:-border].size)
    for name in row.names:
        value = state.get(name)
        if isinstance(value, np.ndarray):
            total += value.nbytes // (len(value) if name in ("ref_luma", "ref_chroma") else 1)
            total += value.nbytes if name in row.written else 0
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    from h264lite.benchmarks import full_search

    ceilings, times = Ceilings(), {}
    source, reference = full_search.pictures()
    pad = full_search.PAD
    chroma = np.full((HEIGHT // 2, WIDTH // 2), 128, np.uint8)
    both = [np.ascontiguousarray(reference[pad:-pad, pad:-pad]), source]
    pipeline = Pipeline(
        Config.from_options(width=WIDTH, height=HEIGHT, threads=1, device="cpu", qp=27, bframes=0, level="5.1")
    )
    for n in range(args.rounds):
        ceilings.measure()
        for k in range(args.frames):
            for done in pipeline.encode((both[(n * args.frames + k) % 2], chroma, chroma)):
                for name, spent in done.stage_seconds.items():
                    if done.index > 1:  # the second one compiled
                        times.setdefault(name, []).append(spent)
    frame, loop = pipeline.executor.ring.frames[0], pipeline.executor.loop
    state = loop._state(frame, frame, 0) | loop.arrays.reference_state(0)
    print(ceilings.text())
    print(f"{'stage':16} {'ms a frame':>10} {'SAD':>8} {'memory':>8} {'share':>7}")
    for name, spent in sorted(times.items(), key=lambda item: -statistics.median(item[1])):
        took = statistics.median(spent)
        sads = SADS.get(name, 0) * N_MB * ceilings.sad()
        memory = traffic(name, state) * ceilings.copy()
        share = f"{100 * max(sads, memory) / took:6.1f} %" if max(sads, memory) else "-"
        print(f"{name:16} {1e3 * took:10.2f} {1e3 * sads:8.2f} {1e3 * memory:8.2f} {share:>8}")
    pipeline.close()


if __name__ == "__main__":
    main()
