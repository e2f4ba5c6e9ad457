"""Real clips for benchmarks: lossless files of $H264LITE_SEQUENCES, decoded into memory by PyAV."""

import os
import re
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ALL = (
    "foreman_176x144_30",
    "BasketballPass_416x240_50",
    "foreman_352x288_30",
    "mobile_352x288_30",
    "city_704x576_30",
    "crowd_run_1280x720_50",
    "driving_1920x1080_30",
)
SPEED = ("foreman_352x288_30", "BasketballPass_416x240_50", "city_704x576_30", "driving_1920x1080_30")


@dataclass
class Clip:
    """Frames as uint8[H*3/2, W] I420."""

    name: str
    width: int
    height: int
    fps: int
    pictures: list[np.ndarray]


def require(name: str) -> Any:
    """A module of the extra `bench`; without it the program ends with the line to type."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        sys.exit(f"{name} is not installed: pip install 'h264lite[bench]'")


def load(name: str, frames: int = 0) -> Clip:
    """Decodes a clip without conversion of its samples (which would rescale full-range video)."""
    av = require("av")
    folder = os.environ.get("H264LITE_SEQUENCES")
    if not folder:
        sys.exit("set H264LITE_SEQUENCES to the folder of test sequences")
    path = next((p for p in Path(folder).iterdir() if p.stem == name and p.suffix in (".mkv", ".264")), None)
    if path is None:
        sys.exit(f"no clip {name} in {folder}")
    width, height, fps = map(int, re.search(r"_(\d+)x(\d+)_(\d+)$", name).groups())  # type: ignore[union-attr]
    pictures = []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            pictures.append(picture_of(frame))
            if len(pictures) == frames:
                break
    return Clip(name, width, height, fps, pictures)


def picture_of(frame) -> np.ndarray:  # type: ignore[no-untyped-def]
    """An av.VideoFrame's planes, row by row, as one uint8[H*3/2, W] array."""
    rows = [
        np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width].ravel()
        for plane in frame.planes
    ]
    return np.concatenate(rows).reshape(-1, frame.width)
