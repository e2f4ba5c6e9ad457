"""Further pictures on the page, as the source or the prediction, coded by h264lite itself with a fine quantiser."""

from fractions import Fraction
from typing import Any

import numpy as np

from ..encoder.encoder import Encoder
from .page_file import PageFile

GROUP = 1 << 20  # bytes of access units that the page keeps together, at least
GOP = 24  # frames, so that a frame in the middle is there soon
FINER, LEAST_QP, MOST_QP = 9, 6, 24  # than the mean QP of the stream: 9 is an error of a third


def fine_qp(mean: float) -> int:
    """The QP of pictures beside a stream of this mean QP."""
    return int(min(MOST_QP, max(LEAST_QP, round(mean) - FINER)))


class SideVideo:
    """`add` for each frame in display order, then `finish`; `meta` is what page/pictures.js needs."""

    def __init__(self, page: PageFile, prefix: str, width: int, height: int, qp: int) -> None:
        self._page, self._prefix, self.qp = page, prefix, qp
        self._encoder = Encoder(
            width, height, Fraction(25), profile="baseline", preset="ultrafast", qp=qp, keyint=GOP, threads=1, device="cpu",
            scenecut=0,
        )  # fmt: skip
        self._access: list[list[int]] = []
        self._group, self._groups = bytearray(), 0
        self._codec = ""

    def add(self, planes: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        """One frame: y, u, v, uint8."""
        for packet in self._encoder.encode(planes):
            self._packet(packet)

    def finish(self) -> None:
        """The frames that wait in the encoder."""
        for packet in self._encoder.flush():
            self._packet(packet)
        self._encoder.close()
        self._end_group()

    def _packet(self, packet: Any) -> None:
        if not self._codec:
            at = packet.data.index(b"\0\0\1\x67") + 4
            self._codec = f"avc1.{packet.data[at : at + 3].hex()}"
        if self._group and len(self._group) + len(packet.data) > GROUP:
            self._end_group()
        self._access.append([self._groups, len(self._group), len(packet.data), int(packet.is_keyframe)])
        self._group += packet.data

    def _end_group(self) -> None:
        if self._group:
            self._page.add(f"{self._prefix}{self._groups}", bytes(self._group))
            self._group = bytearray()
            self._groups += 1

    def meta(self) -> dict[str, Any]:
        """Names, codec and places of the access units, and the QP."""
        return {"prefix": self._prefix, "codec": self._codec, "access": self._access, "qp": self.qp}
