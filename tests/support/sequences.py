"""The real clips of the tests: found by $H264LITE_SEQUENCES, unpacked once into the user's cache folder, MD5 checked.

`clip("foreman_176x144_30")` gives a Clip or skips the test with the reason; `$H264LITE_CONFORMANCE` likewise through
`conformance_folder()`.
"""

import csv
import functools
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@dataclass(frozen=True)
class Clip:
    """A raw I420 file and what it holds."""

    name: str
    path: Path
    width: int
    height: int
    fps: Fraction
    frames: int

    @property
    def frame_bytes(self) -> int:
        """Bytes of one frame; all clips have even sizes."""
        return self.width * self.height * 3 // 2

    def pictures(self, count: int = 0, start: int = 0) -> np.ndarray:
        """Frames start .. start + count - 1 (count 0: to the end), uint8[n, H * 3 // 2, W]."""
        count = count or self.frames - start
        data = np.fromfile(self.path, np.uint8, count * self.frame_bytes, offset=start * self.frame_bytes)
        return data.reshape(-1, self.height * 3 // 2, self.width)

    def cut(self, folder: Path, count: int, start: int = 0) -> Path:
        """A raw file of some frames in `folder`, with the size in its name."""
        path = folder / f"{self.name.rsplit('_', 2)[0]}_{self.width}x{self.height}.yuv"
        path.write_bytes(self.pictures(count, start).tobytes())
        return path


def cache_folder() -> Path:
    """$XDG_CACHE_HOME (if absolute) or ~/.cache, in it h264lite/sequences."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "h264lite" / "sequences"


def _folder(variable: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set: no test material")
    folder = Path(value)
    if not (folder / "manifest.csv").is_file():
        pytest.skip(f"{variable}={value} holds no manifest.csv")
    return folder


def sequence_folder() -> Path:
    """Where the packed clips lie; skips the test if nowhere."""
    return _folder("H264LITE_SEQUENCES")


def conformance_folder() -> Path:
    """Where the conformance streams lie; skips the test if nowhere."""
    return _folder("H264LITE_CONFORMANCE")


@functools.cache
def manifest(folder: Path) -> dict[str, dict[str, str]]:
    """Rows of manifest.csv by name, which is the file's without its ending."""
    with open(folder / "manifest.csv", newline="") as table:
        return {Path(row["file"]).stem: row for row in csv.DictReader(table)}


@functools.cache
def clip(name: str) -> Clip:
    """The clip, unpacked."""
    folder = sequence_folder()
    row = manifest(folder)[name]
    path = cache_folder() / f"{name}.yuv"
    size = int(row["width"]) * int(row["height"]) * 3 // 2 * int(row["frames"])
    if not (path.exists() and path.stat().st_size == size and _md5(path) == row["md5"]):
        _unpack(folder / row["file"], path, row["md5"])
    return Clip(name, path, int(row["width"]), int(row["height"]), Fraction(row["fps"]), int(row["frames"]))


def _md5(path: Path) -> str:
    with open(path, "rb") as raw:
        return hashlib.file_digest(raw, "md5").hexdigest()


def _unpack(packed: Path, raw: Path, md5: str) -> None:
    """Decode without loss into `raw`, which is complete and right, or absent."""
    pytest.importorskip("av", reason="PyAV unpacks the test clips")
    raw.parent.mkdir(parents=True, exist_ok=True)
    part = raw.with_name(f"{raw.name}.{os.getpid()}.part")
    digest = hashlib.md5()
    try:
        with open(part, "wb") as out:
            for picture in decode(packed):
                for plane in picture:
                    digest.update(plane)
                    out.write(plane)
        assert digest.hexdigest() == md5, f"{packed.name}: the decoded MD5 is {digest.hexdigest()}, not {md5}"
        os.replace(part, raw)
    finally:
        part.unlink(missing_ok=True)


def decode(source: Any) -> Iterator[tuple[bytes, bytes, bytes]]:
    """y, u, v of every frame that FFmpeg returns, row by row and never converted: a conversion rescales full range.

    source: a path, or a binary file with a raw H.264 stream.
    """
    import av

    with av.open(source, format=None if isinstance(source, Path | str) else "h264") as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            assert frame.format.name in ("yuv420p", "yuvj420p"), frame.format.name
            y, u, v = (
                np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width].tobytes()
                for plane in frame.planes
            )
            yield y, u, v
