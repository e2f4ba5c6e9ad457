"""Paper 003 in cells: what makes PSNR, and what does not: candidates and sizes of blocks do, memories do not.

python papers/samples/paper_003.py
"""

# %% Two pictures of QCIF, and the full search of 16x16 blocks, +-16, inside the picture
import numpy as np
from h264lite.cuda_src.runtime.device import Device, available
from h264lite.papers.kernels import scalar
from h264lite.papers.kernels.memory import MEMORY, Search, predicted, psnr
from h264lite.samples.make_clip import make_frames

previous, current = [y for y, _, _ in make_frames(176, 144, 5)][::4]


def search(wide: int, high: int, inside: bool) -> float:
    """PSNR of the picture predicted by a vector for every wide x high samples."""
    count = -(-176 // wide) * -(-144 // high)
    vectors, sads = np.zeros((count, 2), np.int16), np.zeros(count, np.int32)
    scalar.full(current, previous, wide, high, 16, inside, np.arange(count), vectors, sads)
    return psnr(current, predicted(previous, vectors, wide, high))


base = search(16, 16, True)
print(f"16x16, inside the picture     {base:.2f} dB")

# %% Searches that differ
print(f"candidates outside it too     {search(16, 16, False) - base:+.2f} dB")
for wide, high in ((16, 4), (1, 16), (4, 4)):
    print(f"a vector for every {wide:2d}x{high:<2d}      {search(wide, high, True) - base:+.2f} dB")
print(f"no search                     {psnr(current, previous) - base:+.2f} dB")

# %% Memories that differ
if reason := available():
    print(f"no GPU: {reason}")
else:
    with Device() as gpu:
        for name, variant in MEMORY.items():
            work = Search(gpu, variant, current.shape)
            vectors, _ = work.vectors(work.run(work.stage(current), work.stage(previous)))
            rule = "inside" if variant.inside else "edges repeated"
            print(f"{name:15s} {rule:14s} {psnr(current, predicted(previous, vectors)) - base:+.2f} dB")
