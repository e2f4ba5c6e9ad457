"""Pictures on the page: the stream's access units, and further videos that h264lite itself codes with a fine quantiser."""

from fractions import Fraction
from typing import Any

from ..encoder.encoder import Encoder, Packet
from .page_file import PageFile
from .quality import Planes

GROUP = 1 << 20  # bytes of access units that the page keeps together
GOP = 24  # frames, so that a frame in the middle is there soon
FINER, LEAST_QP, MOST_QP = 7, 6, 24  # than the first QP of the stream: 7 is an error of less than half


class PictureGroups:
    """Access units of a coded video, `add` for each in coding order: groups of them are pieces of the page.

    access: group, first byte, bytes, is_key of each access unit.
    """

    def __init__(self, page: PageFile, prefix: str) -> None:
        self._page, self._prefix = page, prefix
        self._group, self._groups = bytearray(), 0
        self.access: list[list[int]] = []

    def add(self, data: bytes, is_key: bool) -> None:
        """One access unit in Annex B."""
        if self._group and len(self._group) + len(data) > GROUP:
            self.finish()
        self.access.append([self._groups, len(self._group), len(data), int(is_key)])
        self._group += data

    def finish(self) -> None:
        """The last group."""
        if self._group:
            self._page.add(f"{self._prefix}{self._groups}", bytes(self._group))
            self._group = bytearray()
            self._groups += 1


def fine_qp(first: int) -> int:
    """The QP of pictures beside a stream that begins with this QP."""
    return min(MOST_QP, max(LEAST_QP, first - FINER))


class SideVideo:
    """`encode` for each frame in display order, which may run in a thread of its own, and `take` for what it returns.

    Then `finish`; `meta` is what page/pictures.js needs.
    """

    def __init__(self, page: PageFile, prefix: str, width: int, height: int, qp: int) -> None:
        self._groups, self._prefix, self._qp = PictureGroups(page, prefix), prefix, qp
        self._encoder = Encoder(
            width,
            height,
            Fraction(25),
            profile="baseline",
            preset="ultrafast",
            qp=qp,
            keyint=GOP,
            threads=1,
            device="cpu",
            scenecut=0,
        )
        self._codec = ""

    def encode(self, planes: Planes) -> list[Packet]:
        """The packets of one frame: y, u, v, uint8."""
        return self._encoder.encode(planes)

    def finish(self) -> None:
        """The frames that wait in the encoder."""
        self.take(self._encoder.flush())
        self._encoder.close()
        self._groups.finish()

    def take(self, packets: list[Packet]) -> None:
        """Add packets to the page."""
        for packet in packets:
            if not self._codec:
                at = packet.data.index(b"\0\0\1\x67") + 4
                self._codec = f"avc1.{packet.data[at : at + 3].hex()}"
            self._groups.add(packet.data, packet.is_keyframe)

    def meta(self) -> dict[str, Any]:
        """Names, codec and places of the access units, and the QP."""
        return {"prefix": self._prefix, "codec": self._codec, "access": self._groups.access, "qp": self._qp}
