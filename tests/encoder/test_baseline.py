"""Constrained Baseline keeps its bytes: what other profiles gain changes no stream of `--profile baseline`."""

import hashlib

import numpy as np
import pytest

from ..support import round_trip

WIDTH, HEIGHT = 96, 80
GOLDEN = {
    "preset=ultrafast": "b830f0984087dbe4",
    "preset=superfast": "9594ab1e048f9bd1",
    "preset=veryfast": "d0fdafea57cdf04a",
    "preset=faster": "3f07ee025131d7d5",
    "preset=fast": "54aca5d46f5310be",
    "": "418302741911b21b",
    "preset=slow": "da0818ba0cb4fb95",
    "preset=slower": "c51675867e2f9436",
    "preset=veryslow": "6e54a4773ce57809",
    "preset=placebo": "6a7c5416a343702d",
    "me=dia": "870479824ff571fe",
    "me=hex": "0a257911d68cf6e4",
    "me=umh": "473ff505409477fe",
    "me=step": "b2bc52f7049cbaa0",
    "trellis=0 slices=2 deblock=1:-1": "5786a6e2cf8c2ed4",
    "qp=0": "8b64564d8590ab77",
    "qp=47 keyint=2": "2910cd368f21273e",
    "subme=7 ref=2": "3af9d54392d82387",
}  # fmt: skip


def clip(count: int = 5) -> list:
    """A textured ground that moves, a square that moves otherwise, one brighter frame; integers alone, no random numbers."""
    y, x = np.mgrid[: HEIGHT + 32, : WIDTH + 32].astype(np.int64)
    ground = 90 + (x * 7 + y * 3) % 23 * 2 + (x * x // 9 + y * y // 5) % 31 + (x // 8 * 5 + y // 8 * 11) % 40
    frames = []
    for n in range(count):
        luma = ground[n : n + HEIGHT, 2 * n : 2 * n + WIDTH] + (n == 3) * 9
        luma[20 + 3 * n : 44 + 3 * n, 60 - 4 * n : 84 - 4 * n] = ground[40:64, 30:54] // 2 + 70
        chroma = [(luma[k::2, k::2] * 3 + 40 * k) // 4 for k in (0, 1)]
        frames.append([plane.astype(np.uint8) for plane in (luma, *chroma)])
    return frames


@pytest.mark.parametrize("options", GOLDEN, ids=lambda options: options or "medium")
def test_bytes(options: str) -> None:
    words = dict(word.split("=") for word in options.split())
    stream = round_trip.check(
        clip(), WIDTH, HEIGHT, qp=words.pop("qp", "24"), profile="baseline", threads=2, device="cpu", **words
    )
    assert hashlib.sha256(stream).hexdigest()[:16] == GOLDEN[options]
