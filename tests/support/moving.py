"""A clip in which things move and a new scene begins, and the boxes of an MP4, for tests of files from Python."""

import numpy as np


def moving(frames, width, height, cut=None):
    """uint8[frames, height, width, 3]: a bar over slowly brighter grey; from frame `cut` on inverted."""
    clip = np.zeros((frames, height, width, 3), np.uint8)
    y, x = np.mgrid[0:height, 0:width]
    for n in range(frames):
        clip[n] = (60 + 50 * np.sin(x / 5 + n / 4) + 40 * np.cos(y / 7) + n).clip(0, 255)[..., None]
        clip[n, :, (2 * n) % width :][:, :8] = 250
        if cut is not None and n >= cut:
            clip[n] = 255 - clip[n][::-1]
    return clip


def boxes_of(data):
    """(type, contents) of the boxes of a file, or of a box's contents."""
    boxes, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        boxes.append((bytes(data[at + 4 : at + 8]), bytes(data[at + 8 : at + size])))
        at += size
    return boxes
