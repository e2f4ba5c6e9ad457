"""The streams that fuzzing of the decoder begins with: of the project's encoder, of x264, of the conformance suite.

They depend on what is installed (PyAV with libx264) and on $H264LITE_CONFORMANCE; the rest of a case on its seed alone.
"""

import csv
import hashlib
import os
from pathlib import Path

import h264lite
import numpy as np

CONFORMANCE_BYTES = 16_000  # of each stream: some pictures
X264 = {
    "baseline": {"profile": "baseline", "ref": 3},
    "sixteen references": {"ref": 16, "bframes": 0, "cabac": 0, "qp": 20, "keyint": 30},
    "pyramid, temporal": {"ref": 16, "bframes": 7, "b_adapt": 0, "b_pyramid": "normal", "direct": "temporal"},
    "explicit weights": {"weightp": 2, "ref": 5, "bframes": 2},
    "small slices": {"slice_max_size": 150, "bframes": 2},
    "small slices, CAVLC": {"slice_max_size": 150, "bframes": 2, "cabac": 0},
    "three macroblocks a slice": {"slice_max_mbs": 3, "bframes": 2, "direct": "spatial"},
    "scaling lists": {"cqm": "jvt", "bframes": 2},
    "constrained intra": {"constrained_intra": 1, "bframes": 2},
    "open GOP": {"open_gop": 1, "keyint": 5, "min_keyint": 1, "bframes": 3, "b_adapt": 0, "b_pyramid": "strict"},
    "intra refresh": {"intra_refresh": 1, "keyint": 6, "bframes": 0},
    "qp 1": {"qp": 1, "bframes": 0, "cabac": 0},
    "qp 1, CABAC": {"qp": 1, "bframes": 1},
    "qp 51": {"qp": 51, "bframes": 3},
    "8x8 intra": {"keyint": 1, "partitions": "i8x8"},
    "CAVLC, 8x8, direct": {"cabac": 0, "bframes": 3, "partitions": "all", "direct": "auto"},
    "delimiters": {"aud": 1, "pic_struct": 1, "bframes": 1},
    "fake interlaced": {"fake_interlaced": 1, "bframes": 2},
    "interlaced, refused": {"tff": 1, "bframes": 1},
}
SIZES = ((48, 32), (64, 48), (16, 16), (2, 2), (96, 16), (16, 96), (50, 38))


def picture(width: int, height: int, rng: np.random.Generator, step: int) -> list[np.ndarray]:
    """(y, u, v): blocks of noise that move by three samples a step, and some noise of their own."""
    planes = []
    for h, w in ((height, width), (-(-height // 2), -(-width // 2)), (-(-height // 2), -(-width // 2))):
        tile = np.kron(np.random.default_rng(h).integers(30, 226, (h // 4 + 8, w // 4 + 8)), np.ones((4, 4), np.int64))
        part = tile[2 * step % 16 : 2 * step % 16 + h, 3 * step % 16 : 3 * step % 16 + w]
        planes.append(np.clip(part + rng.integers(-3, 4, (h, w)), 0, 255).astype(np.uint8))
    return planes


def clip(width: int, height: int, frames: int) -> list[list[np.ndarray]]:
    """A clip of such pictures; every fifth is noise alone, which is a change of scene."""
    rng = np.random.default_rng(width + 1000 * height)
    pictures = [picture(width, height, rng, n) for n in range(frames)]
    for n in range(4, frames, 5):
        pictures[n] = [rng.integers(0, 256, plane.shape, np.uint8) for plane in pictures[n]]
    return pictures


def own(width: int, height: int, frames: int, **options: object) -> bytes:
    """A stream of the project's encoder."""
    with h264lite.Encoder(width, height, 25, device="cpu", threads=1, **options) as encoder:
        packets = [packet for planes in clip(width, height, frames) for packet in encoder.encode(tuple(planes))]
        packets += encoder.flush()
    return b"".join(packet.data for packet in packets)


def own_streams() -> list[bytes]:
    """Small streams of the project's encoder."""
    return [
        own(48, 32, 6, qp=32, keyint=3),
        own(64, 48, 6, qp=30, keyint=4, ref=3, slices=3),
        own(33, 17, 3, qp=1, keyint=2, no_deblock=True),
        own(16, 16, 8, qp=40, keyint=8, ref=4),
    ]


def wide_streams() -> list[bytes]:
    """Streams of odd shapes and of many macroblocks, whose pictures another size makes leave the arrays."""
    sizes = ((1040, 16), (16, 1040), (320, 32), (32, 320), (160, 160), (672, 64))
    return [own(*size, 4, qp=44, preset="ultrafast", keyint=2) for size in sizes]


def x264_streams() -> list[bytes]:
    """Streams of libx264 with each of its stranger tools, where PyAV brings it."""
    try:
        import av
        import pytest

        from ..support import x264_streams as x264
    except ImportError:
        return []
    streams = []
    for n, options in enumerate(X264.values()):
        try:
            streams.append(x264.encode(clip(*SIZES[n % 2 if n % 3 else n % len(SIZES)], 9), preset="medium", **options))
        except (x264.Refused, av.error.FFmpegError):
            continue
        except pytest.skip.Exception:
            return []
    return streams


def conformance_streams() -> list[bytes]:
    """The beginnings of the conformance streams, if available."""
    folder = os.environ.get("H264LITE_CONFORMANCE")
    if not folder:
        return []
    with open(Path(folder) / "manifest.csv", newline="") as table:
        data = [(Path(folder) / row["file"]).read_bytes()[:CONFORMANCE_BYTES] for row in csv.DictReader(table)]
    return [part[: part.rindex(b"\0\0\1")] for part in data if part.count(b"\0\0\1") > 3]


def all_streams() -> tuple[list[bytes], str]:
    """The streams, and which they are: cases are the same only where these are."""
    groups = {"own": own_streams(), "x264": x264_streams(), "conformance": conformance_streams()}
    streams = [stream for group in groups.values() for stream in group]
    digest = hashlib.sha256(b"".join(streams)).hexdigest()[:8]
    return streams, ", ".join(f"{len(group)} {name}" for name, group in groups.items()) + f" ({digest})"
