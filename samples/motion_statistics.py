"""How a stream was coded, from the decoder's arrays: types, vectors, QP and bits of every macroblock, for research.

    python samples/motion_statistics.py STREAM.264 [ARRAYS.npz]

Prints a line a frame: its type, bits, mean QP, share of skipped and intra macroblocks, mean length of the vectors.
With a second name, stores the arrays of all frames (frame, macroblock, ...) as NumPy's .npz.
"""

import sys
from pathlib import Path

import h264lite
import numpy as np
from h264lite.standard.macroblock import LAST_INTRA, MB_TYPE_NAMES

SKIPPED = [n for n, name in enumerate(MB_TYPE_NAMES) if name.endswith("Skip")]
QUADRANT = np.array([(block >> 3) * 2 + (block & 3) // 2 for block in range(16)])  # of a 4x4 block in raster order


def main(name: str, out: str = "") -> int:
    """Print the table; store the arrays."""
    decoder = h264lite.Decoder(macroblocks=True)
    frames = [*decoder.decode(Path(name).read_bytes()), *decoder.flush()]
    print("frame type     bits    QP  skip %  intra %  vector")
    for number, frame in enumerate(frames):
        mbs = frame.macroblocks
        used = mbs.ref_idx[:, :, QUADRANT] >= 0  # by macroblock, list and 4x4 block
        lengths = np.hypot(mbs.mv[..., 0], mbs.mv[..., 1])[used] / 4  # luma samples
        print(
            f"{number:5d} {frame.slice_types:4s} {mbs.bits.sum():8d} {mbs.qp.mean():5.1f}"
            f" {100 * np.isin(mbs.mb_type, SKIPPED).mean():7.1f} {100 * (mbs.mb_type <= LAST_INTRA).mean():8.1f}"
            f" {lengths.mean() if lengths.size else 0:7.2f}"
        )
    if out:
        fields = ("mb_type", "sub_type", "ref_idx", "mv", "qp", "cbp", "bits", "total_coeff")
        np.savez_compressed(out, **{key: np.stack([getattr(f.macroblocks, key) for f in frames]) for key in fields})
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
