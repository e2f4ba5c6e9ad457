"""Paper 004 in cells: SAD reuse over the 41 partitions of a macroblock, and what vectors of the CPU make of it.

python papers/samples/paper_004.py
"""

# %% Two pictures, a macroblock and a candidate
import time

import numpy as np
from h264lite.cpu_simd.bundles import SearchResult, SearchStart
from h264lite.cpu_simd.layout import PARTITIONS
from h264lite.cpu_simd.search.full_search import full_search
from h264lite.papers.kernels import scalar
from h264lite.samples.make_clip import make_frames

previous, current = (np.ascontiguousarray(y) for y, _, _ in make_frames(352, 288, 2))
x, y, dx, dy = 160, 128, 3, -2
difference = np.abs(current[y : y + 16, x : x + 16].astype(int) - previous[y + dy : y + dy + 16, x + dx : x + dx + 16])

# %% Sixteen SADs of 4x4 blocks; every other partition's is a sum of some of them
blocks = difference.reshape(4, 4, 4, 4).sum((1, 3))
for px, py, w, h in PARTITIONS:
    reused = blocks[py // 4 : (py + h) // 4, px // 4 : (px + w) // 4].sum()
    assert reused == difference[py : py + h, px : px + w].sum()
anew, additions = sum(w * h for _, _, w, h in PARTITIONS), sum(w * h // 16 - 1 for _, _, w, h in PARTITIONS)
print(f"a candidate: {anew} differences without reuse, 256 and at most {additions} additions with")

# %% All 1024 candidates of all macroblocks: plain loops for one partition, vector instructions for all 41
pad, n_mb = 48, 22 * 18
qp = np.zeros(n_mb, np.uint8)  # QP 0: vectors cost nothing during the search, and a unit a bit after it
zero, cost, mv = np.zeros((n_mb, 2), np.int16), np.zeros((n_mb, 41), np.int32), np.zeros((n_mb, 41, 2), np.int16)
start, search_result = SearchStart(zero, zero), SearchResult(cost, mv)
vectors, sads = np.zeros((n_mb, 2), np.int16), np.zeros(n_mb, np.int32)
reference = np.pad(previous, pad, mode="edge")
work = {
    "plain loops, 16x16": lambda: scalar.full(current, previous, 16, 16, 16, False, np.arange(n_mb), vectors, sads),
    "vectors, 41 partitions": lambda: full_search(current, reference, pad, start, qp, 16, 0, 18, search_result),
}
for name, call in work.items():
    call()  # compiles
    before = time.perf_counter()
    call()
    print(f"{name:24s}{1000 * (time.perf_counter() - before):8.1f} ms")
bits = (1 + 2 * np.frexp(np.abs(mv[:, 40]))[1]).sum(1)  # se(v), 9.1.1
assert np.array_equal(cost[:, 40], sads + bits) and np.array_equal(mv[:, 40], 4 * vectors)
