"""Where two raw I420 files first differ: frame, plane, sample and macroblock.

python samples/compare_yuv.py rec.yuv decoded.yuv --size 352x288
"""

import argparse
import sys
from pathlib import Path

import numpy as np


def first_difference(a: np.ndarray, b: np.ndarray, width: int, height: int) -> str | None:
    """Words about the first differing sample of two files, uint8[bytes]; None where there is none."""
    chroma_width, chroma_height = (width + 1) // 2, (height + 1) // 2
    size = width * height + 2 * chroma_width * chroma_height
    common = min(len(a), len(b))
    for start in range(0, common, size):
        one, two = a[start : min(start + size, common)], b[start : min(start + size, common)]
        if np.array_equal(one, two):
            continue
        at, frame = int(np.flatnonzero(one != two)[0]), start // size
        for plane, columns, rows, unit in (
            ("luma", width, height, 16),
            ("Cb", chroma_width, chroma_height, 8),
            ("Cr", chroma_width, chroma_height, 8),
        ):
            if at < columns * rows:
                y, x = divmod(at, columns)
                return (
                    f"frame {frame}, {plane}, sample x {x} y {y}, macroblock x {x // unit} y {y // unit}: "
                    f"{one[np.flatnonzero(one != two)[0]]} and {two[np.flatnonzero(one != two)[0]]}"
                )
            at -= columns * rows
    if len(a) != len(b):
        return f"equal for {common / size:g} frames, then one ends: {len(a) / size:g} and {len(b) / size:g} frames"
    return None


def main() -> int:
    """Exit code 1 if the files differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--size", required=True, metavar="WxH")
    given = parser.parse_args()
    width, height = map(int, given.size.split("x"))
    words = first_difference(np.fromfile(given.first, np.uint8), np.fromfile(given.second, np.uint8), width, height)
    print(words or "equal")
    return 1 if words else 0


if __name__ == "__main__":
    sys.exit(main())
