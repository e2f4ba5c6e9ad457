"""A clip in memory at several quantisers: one call each way, and what it costs and gives.

python samples/rate_and_quality.py
"""

import sys

import h264lite
from h264lite.samples.make_clip import make_frames


def main() -> int:
    """Print kilobits a second and PSNR for a few quantisers."""
    clip = list(make_frames(176, 144, 12))
    print(" qp      kb/s   PSNR")
    for qp in (20, 28, 36):
        with h264lite.Encoder(176, 144, fps=25, qp=qp) as encoder:
            packets = [packet for planes in clip for packet in encoder.encode(planes)] + encoder.flush()
            told = encoder.stats.summary()
        assert len(packets) == len(clip)
        print(f"{qp:3d} {told['kbps']:9.1f}  {told['all']['psnr_global']['avg']:5.2f}")
    stream = h264lite.encode(clip, fps=25, qp=28)
    print(f"in one call: {len(stream)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
