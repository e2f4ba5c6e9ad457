"""Encode, decode with FFmpeg and with the project's own decoder, compare with the reconstruction; name the difference."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import h264lite
import numpy as np
import pytest
from h264lite.encoder.encoded_frame import EncodedFrame
from h264lite.encoder.statistics import FrameRow

from .steady import steady

Planes = Sequence[np.ndarray]


def noise_clip(width: int, height: int, frames: int, seed: int) -> list[Planes]:
    """Moving texture with an edge and some noise, any size: (y, u, v) a frame."""
    rng = np.random.default_rng(seed)
    tile = rng.integers(40, 216, (height // 4 + 12, width // 4 + 12)).astype(np.float64)
    big = np.kron(tile, np.ones((4, 4)))
    big = (big + np.roll(big, 1, 0) + np.roll(big, 1, 1) + np.roll(big, 2, 0)) / 4
    clip = []
    for n in range(frames):
        x, y = 3 * n % 16, 2 * n % 16
        luma = big[y : y + height, x : x + width] + rng.normal(0, 3, (height, width))
        luma[:, width // 2 :] += 40 * (n % 2)
        chroma = [big[::2, ::2][k : k + (height + 1) // 2, k : k + (width + 1) // 2] for k in (y // 2, x // 2)]
        clip.append([np.clip(plane, 0, 255).astype(np.uint8) for plane in (luma, *chroma)])
    return clip


def write_raw(clip: Sequence[Planes], folder: Path) -> Path:
    """A file of a clip, I420, with its size in its name."""
    height, width = clip[0][0].shape
    path = folder / f"in_{width}x{height}.yuv"
    path.write_bytes(b"".join(plane.tobytes() for frame in clip for plane in frame))
    return path


def packets_of(encoder: h264lite.Encoder, frames: Iterable[Any]) -> list[h264lite.Packet]:
    """All packets of frames, in coding order. Lists are planes; the encoder is flushed and not closed."""
    packets = [packet for frame in frames for packet in encoder.encode(tuple(frame) if isinstance(frame, list) else frame)]
    return packets + encoder.flush()


def shown(packets: Iterable[h264lite.Packet]) -> list[Planes]:
    """The reconstructions in display order."""
    return [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]


def encode(clip: Iterable[Planes], width: int, height: int, **options: object) -> tuple[bytes, list[Planes]]:
    """The stream and the reconstruction of every frame, in display order, of `steady` options."""
    options = steady(options)
    with h264lite.Encoder(width, height, options.pop("fps", 30), keep_reconstruction=True, **options) as encoder:
        packets = packets_of(encoder, map(tuple, clip))
    return b"".join(packet.data for packet in packets), shown(packets)


def rows(clip: Iterable[Planes], width: int, height: int, **options: object) -> list[tuple[EncodedFrame, FrameRow]]:
    """The encoded frames with their statistics, of `steady` options."""
    with h264lite.Encoder(width, height, 30, **steady(options)) as encoder:
        return finished(encoder, clip)


def finished(encoder: h264lite.Encoder, clip: Iterable[Planes]) -> list[tuple[EncodedFrame, FrameRow]]:
    """All frames of a clip, encoded, with their statistics, in coding order."""
    for planes in clip:
        encoder._session.encode(tuple(planes))
    encoder._session.drain()
    return [(frame, encoder.stats.row(frame)) for frame in encoder._session.hand_out()]


def ffmpeg_frames(stream: bytes) -> list[Planes]:
    """All frames by FFmpeg's decoder, as they are; any warning of the decoder fails the test."""
    av = pytest.importorskip("av", reason="PyAV brings the independent decoder")
    level = av.logging.get_level()
    av.logging.set_level(av.logging.WARNING)
    try:
        with av.logging.Capture() as log, av.open(io.BytesIO(stream), format="h264") as container:
            frames = [
                [
                    np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width].copy()
                    for plane in frame.planes
                ]
                for frame in container.decode(video=0)
            ]
    finally:
        av.logging.set_level(level)
    warnings = [text for _, name, text in log if "timestamps" not in text and "duration" not in text]
    assert not warnings, warnings
    return frames


def written(path: Path) -> tuple[bytes, int]:
    """A command's output, and how many frames FFmpeg finds in it; no file without a frame is left."""
    data = path.read_bytes() if path.exists() else b""
    return data, len(ffmpeg_frames(data)) if data else 0


def own_frames(stream: bytes) -> list[Planes]:
    """All frames by the project's decoder."""
    decoder = h264lite.Decoder()
    frames = [*decoder.decode(stream), *decoder.flush()]
    return [[frame.y, frame.u, frame.v] for frame in frames]


def assert_same(decoded: list[Planes], expected: list[Planes], who: str) -> None:
    """Every frame, every sample; the first difference as frame, macroblock, plane."""
    assert len(decoded) == len(expected), f"{who}: {len(decoded)} frames of {len(expected)}"
    for n, (got, wanted) in enumerate(zip(decoded, expected)):
        for plane, a, b in zip("yuv", got, wanted):
            assert a.shape == b.shape, f"{who}: frame {n}, plane {plane}: {a.shape}, not {b.shape}"
            rows, columns = np.nonzero(a != b)
            if len(rows):
                size = 16 if plane == "y" else 8
                x, y = int(columns[0]), int(rows[0])
                pytest.fail(f"{who}: frame {n}, macroblock ({x // size}, {y // size}), plane {plane}, sample ({x}, {y}): "
                            f"{a[y, x]} instead of {b[y, x]}; {len(rows)} samples differ")


def check(clip: Sequence[Planes], width: int, height: int, own: bool = True, **options: object) -> bytes:
    """The stream, after both decoders have returned exactly the reconstruction."""
    stream, expected = encode(clip, width, height, **options)
    assert len(expected) == len(clip)
    assert_same(ffmpeg_frames(stream), expected, "FFmpeg")
    if own:
        assert_same(own_frames(stream), expected, "own decoder")
    return stream
