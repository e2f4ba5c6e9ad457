"""Frames of a video by index and time: what it says of itself, its greatest change, and thumbnails at even times.

    python samples/read_frames.py VIDEO [OUT.png]

OUT.png takes Pillow. Any number of frames: they are read in batches, and few are in memory at once.
"""

import sys
from itertools import pairwise

import h264lite
import numpy as np

COLUMNS, ROWS = 4, 3
WIDEST = 240  # columns of a thumbnail


def changes(reader: h264lite.VideoReader) -> np.ndarray:
    """float64[frames - 1]: mean absolute difference of each frame from the one before."""
    differences: list[float] = []
    before = None
    for batch in reader.batches(16):
        frames = [*([] if before is None else [before]), *batch.data]
        differences += [float(np.abs(a.astype(np.int16) - b).mean()) for a, b in pairwise(frames)]
        before = frames[-1]
    return np.array(differences)


def thumbnails(reader: h264lite.VideoReader) -> np.ndarray:
    """uint8[H, W, 3]: a table of small frames, which are shown at even times."""
    facts = reader.metadata
    count = COLUMNS * ROWS
    times = facts.begin_stream_seconds + facts.duration_seconds * np.arange(count) / count
    step = -(-facts.width // WIDEST)
    small = reader.get_frames_played_at(times).data[:, ::step, ::step]
    height, width = small.shape[1:3]
    return small.reshape(ROWS, COLUMNS, height, width, 3).swapaxes(1, 2).reshape(ROWS * height, COLUMNS * width, 3)


def main(video: str, out: str = "") -> int:
    """Print what the video is and its frame that differs most from the one before; write thumbnails."""
    with h264lite.VideoReader(video) as reader:
        facts = reader.metadata
        size = f"{facts.width}x{facts.height}"
        print(f"{len(reader)} frames of {size}, {facts.duration_seconds:.3f} s, profile {facts.profile}")
        print(f"keyframes: {', '.join(map(str, reader.key_frames[:10]))}")
        if len(reader) > 1:
            frame = int(changes(reader).argmax()) + 1
            print(f"most changed: frame {frame} at {reader.timestamps[frame]:.3f} s, mean {reader[frame].mean():.1f}")
        if out:
            from PIL import Image

            Image.fromarray(thumbnails(reader)).save(out)
            print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
