"""A video with sound out of arrays: a tone that follows a moving bar, in an MP4 that browsers play; no FFmpeg.

python samples/sound_and_video.py out/sound.mp4
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import h264lite
import numpy as np

FPS, RATE, SECONDS = 30, 48000, 2
WIDTH, HEIGHT = 160, 96


def frames() -> Iterator[np.ndarray]:
    """RGB frames, uint8[HEIGHT, WIDTH, 3]: a bar that goes from left to right."""
    for n in range(FPS * SECONDS):
        frame = np.full((HEIGHT, WIDTH, 3), 30, np.uint8)
        left = (WIDTH - 8) * n // (FPS * SECONDS)
        frame[:, left : left + 8] = 255, 180, 60
        yield frame


def sound() -> Iterator[np.ndarray]:
    """Pieces of sound, float32[n, 2] in -1..1, as a program makes them: the tone rises and goes from left to right."""
    for begin in range(0, RATE * SECONDS, 4800):
        time = np.arange(begin, begin + 4800) / RATE
        tone = 0.4 * np.sin(2 * np.pi * (220 + 110 * time) * time)
        pan = time / SECONDS
        yield np.stack((tone * (1 - pan), tone * pan), 1).astype(np.float32)


def main() -> int:
    """Write the file; the sound may also be one array, the name of a file, or packets (docs/python.md)."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/sound.mp4")
    path.parent.mkdir(parents=True, exist_ok=True)
    h264lite.write_video(path, frames(), FPS, audio=(sound(), RATE), preset="fast")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
