"""Broken and hostile videos end in frames or a BitstreamError, in time and memory by their bytes."""

import random
import time
import tracemalloc

import h264lite
import numpy as np
import pytest

from ..mp4 import hostile_files
from ..mp4.test_mp4_bounds import MOST, SIZE
from ..support import foreign_movies
from ..support.foreign_movies import B_FRAMES

CASES = 100


def read(data):
    """All frames that can be read, and the first error."""
    error, frames = "", 0
    try:
        with h264lite.VideoReader(data, format="gray", nearby=2) as reader:
            assert reader.metadata.num_frames == len(reader.durations) >= len(reader.key_frames)
            for index in range(len(reader)):
                try:
                    frames += reader[index].ndim == 2
                except h264lite.BitstreamError as problem:
                    error = error or str(problem)
                    if index > 3:
                        break
    except h264lite.BitstreamError as problem:
        error = str(problem)
    return frames, error


@pytest.mark.parametrize("kind", hostile_files.KINDS)
def test_time_and_memory_by_bytes(kind):
    read(hostile_files.KINDS[kind](1000))
    data = hostile_files.KINDS[kind](SIZE)
    begin = time.process_time()
    frames, error = read(data)
    seconds = time.process_time() - begin
    assert not frames and error
    assert seconds < MOST * len(data), (f"{seconds / len(data) * 1e6:.1f} us a byte", error)
    tracemalloc.start()
    read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * len(data) + (4 << 20), f"{peak / len(data):.0f} bytes a byte"


@pytest.mark.parametrize("kind", ["moov", "samples", "annexb", "cut"])
def test_changed_bytes(kind):
    """Any byte of the tables, of the samples or of a byte stream is another: nothing but frames and BitstreamError."""
    rng = random.Random(f"20261128 {kind}")
    movie = foreign_movies.movie("mp4", B_FRAMES)
    stream = b"".join(packet for packet, *_ in foreign_movies.packets(B_FRAMES))
    front = movie.rindex(b"moov")
    whole = refused = 0
    for _ in range(CASES):
        data = bytearray(stream if kind == "annexb" else movie)
        low, high = {"moov": (front, len(movie)), "samples": (48, front)}.get(kind, (0, len(data)))
        for _ in range(rng.choice((1, 1, 3, 20))):
            data[rng.randrange(low, high)] = rng.choice((0, 1, 255, rng.randrange(256)))
        if kind == "cut":
            data = data[rng.randrange(len(data)) :] if rng.random() < 0.3 else data[: rng.randrange(len(data))]
        frames, error = read(bytes(data))
        whole += frames == foreign_movies.FRAMES
        refused += bool(error)
    assert refused > CASES // 10 and (whole > 0 or kind == "cut")


def test_sizes_that_change_within_a_video():
    """Frames of another size than the first are refused by their number, in a batch too."""
    small = h264lite.encode([np.zeros((48, 32), np.uint8)] * 3, format="i420", fps=25)
    large = h264lite.encode([np.zeros((96, 64), np.uint8)] * 3, format="i420", fps=25)
    with h264lite.VideoReader(small + large) as reader:
        assert len(reader) == 6 and reader[:3].shape == (3, 32, 32, 3)
        for wanted in (3, slice(1, 5)):
            with pytest.raises(h264lite.BitstreamError, match="frame 3 has 64x64 samples, the first one 32x32"):
                reader[wanted]
