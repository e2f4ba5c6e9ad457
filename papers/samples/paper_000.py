"""Papers 000 and 002 in cells: full search and step search of 32x32 blocks as plain loops, then rung by rung on a GPU.

python papers/samples/paper_000.py
"""

# %% Two pictures of a moving scene, luma
import time

import numpy as np
from h264lite.cuda_src.runtime.device import Device, available
from h264lite.papers.kernels import fsbm, scalar
from h264lite.samples.make_clip import make_frames

previous, current = [y for y, _, _ in make_frames(208, 120, 9)][::8]
blocks = np.arange(7 * 4)  # the last row and column are cut
vectors, sads = np.zeros((len(blocks), 2), np.int16), np.zeros(len(blocks), np.int32)

# %% Full search, +-64, candidates outside the picture left out; its residue is the sum of all SADs
scalar.full(current, previous, 32, 32, 64, True, blocks, vectors, sads)
full = sads.copy()
print(f"full search       residue {full.sum()}, vectors {vectors[:4].tolist()} ...")

# %% Step search: a larger grid sees more candidates and leaves less residue
for grid, distance in ((3, 32), (7, 16), (13, 8)):
    scalar.step(current, previous, 32, distance, fsbm.SHIFT[grid], grid, True, blocks, vectors, sads)
    print(f"step search {grid:2d}    residue {sads.sum()}, loss {sads.sum() / full.sum():.3f}")

# %% The ladder on a GPU: the same SADs from every rung (those with a launch a candidate take minutes)
if reason := available():
    print(f"no GPU: {reason}")
else:
    with Device() as gpu:
        for name, variant in fsbm.FSBM.items():
            if variant.search not in fsbm.SLOW:
                ladder = fsbm.Ladder(gpu, variant, [previous, current])
                ladder.run(blocks=[0])
                start = time.perf_counter()
                _, sads_of_rung = ladder.run()
                print(f"{name:18s} residue {sads_of_rung.sum()}, {1000 * (time.perf_counter() - start):.1f} ms")
