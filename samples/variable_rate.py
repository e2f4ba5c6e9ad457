"""A video whose frames come when they come: each has a time, and the file keeps it (a variable frame rate).

python samples/variable_rate.py out/variable.mp4
"""

import sys
from pathlib import Path

import h264lite
import numpy as np

WIDTH, HEIGHT, FRAMES = 320, 180, 60


def screen(now: float) -> np.ndarray:
    """A dial that turns once in four seconds. uint8[HEIGHT, WIDTH, 3], RGB."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    angle = np.arctan2(y - HEIGHT / 2, x - WIDTH / 2) + np.pi * now / 2
    grey = (128 + 100 * np.sin(3 * angle)).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)


def main() -> int:
    """Frames of a program that draws as fast as it can: 8 to 60 frames a second."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/variable.mp4")
    path.parent.mkdir(parents=True, exist_ok=True)
    steps, now = np.random.default_rng(1).uniform(1 / 60, 1 / 8, FRAMES), 0.0
    with h264lite.VideoWriter(path, fps=20, preset="fast") as writer:  # fps: about how many; the last one lasts 1 / fps
        for step in steps:
            writer.write(screen(now), timestamps=now)
            now += float(step)
    print(f"{path}: {FRAMES} frames in {now:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
