"""A data set of videos as those who train on them write it: small files, any frame of which is read by itself.

    python samples/data_set.py out/data_set

With a keyframe at every second frame a frame costs at most two to decode, wherever it is. An index says how long each one is,
and each file has its seed among its metadata.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import h264lite
import numpy as np

WIDTH, HEIGHT, FPS, EPISODES = 96, 96, 30, 4
OPTIONS = {"crf": 30, "keyint": 2, "bframes": 0, "preset": "fast"}


def episode(number: int) -> Iterator[np.ndarray]:
    """Frames of a simulator, uint8[HEIGHT, WIDTH, 3]: a ball over a plain ground, whose colour is the episode's."""
    rng = np.random.default_rng(number)
    ground, place, step = rng.integers(40, 200, 3), rng.uniform(20, 70, 2), rng.uniform(-1, 1, 2)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    for _ in range(20 + 5 * number):
        frame = np.broadcast_to(ground.astype(np.uint8), (HEIGHT, WIDTH, 3)).copy()
        frame[(y - place[0]) ** 2 + (x - place[1]) ** 2 < 100] = 255 - ground
        yield frame
        place = np.clip(place + step, 10, 86)


def batch(folder: Path, count: int, seed: int) -> np.ndarray:
    """uint8[count, HEIGHT, WIDTH, 3]: frames at random, as a training step takes them."""
    lengths = json.loads((folder / "index.json").read_text())
    rng, names = np.random.default_rng(seed), sorted(lengths)
    frames = []
    for name in rng.choice(names, count):
        with h264lite.VideoReader(folder / name) as reader:
            frames.append(reader[int(rng.integers(lengths[name]))])
    return np.stack(frames)


def main() -> int:
    """Write all episodes and read a batch back."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/data_set")
    folder.mkdir(parents=True, exist_ok=True)
    lengths = {}
    for number in range(EPISODES):
        name = f"episode_{number:06d}.mp4"
        metadata = {"title": f"episode {number}", "com.example.seed": str(number)}
        with h264lite.VideoWriter(folder / name, FPS, metadata=metadata, **OPTIONS) as writer:
            writer.write_all(episode(number))
            lengths[name] = writer.frames
    (folder / "index.json").write_text(json.dumps(lengths))
    size = sum((folder / name).stat().st_size for name in lengths)
    print(f"{folder}: {len(lengths)} episodes, {sum(lengths.values())} frames, {size} bytes")
    print(f"a batch of frames at random: {batch(folder, 8, 1).shape}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
