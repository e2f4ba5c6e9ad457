"""Streams that libx264 makes through PyAV: tools that the project's encoder does not have, for the decoder's tests."""

import functools
from fractions import Fraction

import numpy as np
import pytest

from . import round_trip

WIDTH, HEIGHT, FRAMES = 80, 64, 24


@functools.cache
def clip(frames: int = FRAMES, seed: int = 7) -> list[round_trip.Planes]:
    """Moving texture that x264 finds worth every tool: pans, noise, a fade, and a cut to another scene."""
    other = round_trip.noise_clip(WIDTH, HEIGHT, frames, seed + 1)
    pictures = round_trip.noise_clip(WIDTH, HEIGHT, frames, seed)
    for n in range(frames):
        if n > 2 * frames // 3:
            pictures[n] = other[n]
        elif n > frames // 3:
            dark = 1 - (n - frames // 3) / frames
            pictures[n] = [(plane * dark).astype(np.uint8) for plane in pictures[n]]
    return pictures


class Refused(Exception):
    """x264 takes the options one by one, but not together."""


def encode(pictures: list[round_trip.Planes], profile: str = "high", preset: str = "slow", **options: object) -> bytes:
    """The Annex B stream of x264 with `options` in its own names, underlines for hyphens."""
    av = pytest.importorskip("av", reason="PyAV brings libx264")
    try:
        context = av.CodecContext.create("libx264", "w")
    except ValueError:  # av.codec.codec.UnknownCodecError
        pytest.skip("this PyAV has no libx264")
    words = {"threads": 1, "qp": 28} | options
    if "crf" in words or "bitrate" in words:
        del words["qp"]
    context.height, context.width = pictures[0][0].shape
    context.pix_fmt = "yuv420p"
    context.framerate, context.time_base = Fraction(25), Fraction(1, 25)
    params = ":".join(f"{name.replace('_', '-')}={value}" for name, value in words.items())
    context.options = {"preset": preset, "profile": profile, "x264-params": params}
    data = bytearray()
    try:
        context.open()
    except av.error.ExternalError as error:
        raise Refused(error) from None
    for n, planes in enumerate(pictures):
        frame = av.VideoFrame(context.width, context.height, "yuv420p")
        for plane, samples in zip(frame.planes, planes):
            rows = np.zeros((plane.height, plane.line_size), np.uint8)
            rows[:, : plane.width] = samples
            plane.update(rows.tobytes())
        frame.pts = n
        for packet in context.encode(frame):
            data += bytes(packet)
    for packet in context.encode(None):
        data += bytes(packet)
    return bytes(data)
