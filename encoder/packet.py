"""Packets of the Python API: the finished frames of a session."""

from dataclasses import dataclass

from .frames.source import Planes
from .session import Session


@dataclass(frozen=True)
class Packet:
    """One access unit, Annex B. Times count frames: seconds = pts / fps; or they are in the unit of the pts that frames
    were given. dts <= pts, and the first dts may be negative.
    """

    data: bytes
    pts: int
    dts: int
    duration: int
    is_keyframe: bool
    frame_type: str  # "I", "P" or "B"
    qp: float  # mean over the macroblocks
    reconstruction: Planes | None = None  # the decoder's output, if requested


def take_packets(session: Session, keep_reconstruction: bool = False) -> list[Packet]:
    """Finished frames as packets; made before `hand_out`, so that an interrupt loses none."""
    packets = [
        Packet(frame.data, frame.pts, frame.dts, 1, frame.is_idr, frame.frame_type, float(frame.avg_qp),
               frame.reconstruction if keep_reconstruction else None)
        for frame in session.ready
    ]  # fmt: skip
    session.hand_out()
    return packets
