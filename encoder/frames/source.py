"""What a frame that enters an encode is given as, and how it comes into a buffer."""

from collections.abc import Sequence

import numpy as np

from ...scheduler.frames.device_frame import DeviceFrame
from ...scheduler.frames.frame import split_planes
from ...scheduler.frames.host_rgb import RgbFrame
from ..errors import InputError
from ..files.read_ahead import Read

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Y, Cb, Cr, uint8 of display size."""
HostSource = Planes | np.ndarray | RgbFrame
"""A frame on the host. An array is I420, uint8[n]; nothing is copied if it is what FramePipeline.next_buffer has returned."""
Source = HostSource | DeviceFrame | Read
"""A frame: on the host, on a GPU, or, if FramePipeline.takes_reads, one that the encoder reads when its turn comes."""


def planes_of(source: Planes | np.ndarray, display: Sequence[tuple[int, int]]) -> Sequence[np.ndarray]:
    """Y, Cb, Cr; display: (height, width) of each."""
    return split_planes(source, display) if isinstance(source, np.ndarray) else source


def load(source: HostSource, buffer: np.ndarray, display: Sequence[tuple[int, int]], index: int) -> Sequence[np.ndarray]:
    """Put a frame into a buffer, uint8[n], as I420, unless it was read into it. Its planes there; index: of the frame.

    InputError for samples far outside of their range.
    """
    planes = split_planes(buffer, display)
    if isinstance(source, RgbFrame):
        check_range(source, source.convert(planes), index)
    elif source is not buffer:
        for target, plane in zip(planes, planes_of(source, display)):
            np.copyto(target, plane)
    return planes


def check_range(source: RgbFrame, is_outside: bool, index: int) -> None:
    """InputError for frame `index` if samples are far outside of the range that they must have."""
    if is_outside and source.checked:
        raise InputError(outside_text(index))


def outside_text(index: int) -> str:
    """The message for samples far outside of their range."""
    return (
        f"frame {index} has values far outside of 0..1, or no numbers: say value_range=(-1, 1) or (0, 255) if that is "
        "their range, or value_range=(0, 1) to clip them"
    )
