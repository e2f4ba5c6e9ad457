"""Paper 001 in cells: SADs of 4x4 to 8x8 blocks by addition, then the three scenarios of streams on a GPU.

python papers/samples/paper_001.py
"""

# %% Two pictures, and a block of 8x8 samples
import time

import numpy as np
from h264lite.cuda_src.runtime.device import Device, available
from h264lite.papers.kernels import streams
from h264lite.samples.make_clip import make_frames

frames = [y for y, _, _ in make_frames(352, 288, 9)]
x, y = 160, 120
block, window = frames[1][y : y + 8, x : x + 8].astype(int), frames[0][y - 14 : y + 18, x - 14 : x + 18].astype(int)


# %% One 4x4 SAD for each displacement and quarter; larger blocks by addition, as far as they stay in the 32x32 window
def sads(block: np.ndarray, left: int, top: int) -> np.ndarray:
    """int[25, 25]: SADs of a part of the block that begins at (left, top) of it."""
    views = np.lib.stride_tricks.sliding_window_view(window, block.shape)
    return np.abs(views[top : top + 25, left : left + 25] - block).sum((2, 3))


quarters = [sads(block[top : top + 4, left : left + 4], left, top) for top in (0, 4) for left in (0, 4)]
assert np.array_equal(sum(quarters), sads(block, 0, 0))
best = np.unravel_index(int(sum(quarters).argmin()), (25, 25))
print(f"8x8 block at ({x}, {y}): vector ({best[1] - 14}, {best[0] - 14}), SAD {int(sum(quarters).min())}")

# %% The scenarios on a GPU: the same results, other orders of copies and kernels
if reason := available():
    print(f"no GPU: {reason}")
else:
    with Device() as gpu:
        work = streams.Scenarios(gpu, frames)
        for name, how in streams.SCENARIOS.items():
            work.run(name)
            start = time.perf_counter()
            keys = work.run(name)
            print(f"{name} ({how}): {1000 * (time.perf_counter() - start) / 8:.2f} ms a picture")
        vectors, sads = work.vectors(keys)
        print(f"on the GPU: vector {vectors[0, 3, y // 4, x // 4].tolist()}, SAD {sads[0, 3, y // 4, x // 4]}")
