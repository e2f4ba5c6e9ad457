"""The vectors of a stream as optical flow: dense fields, how well they predict, and pictures of them (matplotlib).

    python samples/motion_field.py STREAM [OUT.png]

In cells (`# %%`), for editors that run a file as a notebook.
"""

# %% What is read: frames in display order, with their samples
import sys
from itertools import pairwise

import h264lite
import numpy as np
from h264lite.analysis.analyse import in_display_order
from h264lite.analysis.flow import motion_field

MOST_FRAMES = 100


def read(name: str) -> list:
    """The first frames of a stream, with decoded samples."""
    frames = []
    for frame in in_display_order(h264lite.analyse(name, samples=True)):
        frames.append(frame)
        if len(frames) == MOST_FRAMES:
            break
    return frames


# %% One field a frame: motion to the next frame in luma samples, from whichever list is used; NaN in intra macroblocks
def flow_of(frame: object) -> np.ndarray:
    """float32[height, width, 2]: mean of both lists where both are used."""
    fields = np.stack([motion_field(frame, k, per_frame=True) for k in range(2)])
    known = ~np.isnan(fields)
    sums = np.where(known, fields, 0).sum(axis=0)
    counts = known.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).astype(np.float32)


# %% A check: the frame before, moved by the field, is nearer to the frame than the frame before itself
def warped(before: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """`before` at p - flow[p], to the nearest sample; unmoved where the flow is not known."""
    height, width = before.shape
    y, x = np.mgrid[:height, :width]
    step = np.rint(np.nan_to_num(flow)).astype(int)
    return before[np.clip(y - step[..., 1], 0, height - 1), np.clip(x - step[..., 0], 0, width - 1)]


def mean_error(a: np.ndarray, b: np.ndarray) -> float:
    """Mean absolute difference of two planes."""
    return float(np.abs(a.astype(int) - b).mean())


# %% A picture: colour is the direction, brightness the length (the wheel of optical-flow benchmarks)
def colours(flow: np.ndarray) -> np.ndarray:
    """uint8[height, width, 3]; grey where the flow is not known."""
    angle = np.arctan2(flow[..., 1], flow[..., 0])
    length = np.hypot(flow[..., 0], flow[..., 1])
    scale = max(1.0, float(np.nanpercentile(length, 99))) if np.isfinite(length).any() else 1.0
    wheel = np.stack([np.cos(angle - k * 2 * np.pi / 3) for k in range(3)], axis=-1) / 2 + 0.5
    image = wheel * np.minimum(length / scale, 1)[..., None]
    return (255 * np.where(np.isnan(image), 0.5, image)).astype(np.uint8)


# %% All of it
def main(name: str, out: str = "") -> int:
    """Print a line a frame; draw the field of the frame with the most motion."""
    frames = read(name)
    print("frame type  known %  length  error without  with motion")
    most, drawn = -1.0, None
    for before, frame in pairwise(frames):
        flow = flow_of(frame)
        known = ~np.isnan(flow[..., 0])
        length = float(np.hypot(flow[..., 0], flow[..., 1])[known].mean()) if known.any() else 0.0
        still = mean_error(frame.samples.y, before.samples.y)
        moved = mean_error(frame.samples.y, warped(before.samples.y, flow))
        row = f"{100 * known.mean():8.1f} {length:7.2f} {still:14.2f} {moved:12.2f}"
        print(f"{frame.display_index:5d} {frame.frame_type:4s} {row}")
        if length > most:
            most, drawn = length, flow
    if out and drawn is not None:
        from matplotlib import image

        image.imsave(out, colours(drawn))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
