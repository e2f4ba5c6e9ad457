"""A worker process that encodes nothing: it answers each frame with a packet of some bytes at once, to measure its parent."""

import socket
import threading

import numpy as np
from h264lite.encoder.encoded_frame import EncodedFrame
from h264lite.encoder.workers.connection import Connection
from h264lite.encoder.workers.worker import show_life


def main(descriptor: int, size: int) -> None:
    """size: bytes of a packet."""
    parent = Connection(socket.socket(fileno=descriptor))
    threading.Thread(target=show_life, args=(parent,), daemon=True).start()
    parent.receive()
    parent.send(("ready",))
    messages = 0
    try:
        while True:
            (kind, *rest), _ = parent.receive()
            if kind == "frames":
                messages += 1
                done = [answer(spec, bytes([at // 4096 % 256]) * size) for spec, _, at, _ in rest[1]]
                for first in range(0, len(done), 16):
                    parent.send(("done", done[first : first + 16], []))
            parent.send(("idle", messages))
    except (EOFError, OSError):
        pass


def answer(spec, data: bytes) -> EncodedFrame:
    """A finished frame with these bytes."""
    return EncodedFrame(
        index=spec.display_index, coding_index=spec.coding_index, pts=spec.pts, dts=spec.dts, frame_type=spec.frame_type,
        is_idr=spec.is_idr, qp=spec.qp, avg_qp=float(spec.qp), qp_range=(spec.qp, spec.qp), qp_by=spec.qp_by,
        is_reference=spec.is_reference, is_qp_requested=False, over_factor=0, predicted=0, mean_qp=0, data=data,
        mb_counts=np.ones(15, np.int64), transform_8x8=0, ssd=(1, 1, 1), sums=[0, 0, 0], bits=8 * len(data),
        bits_by_kind=None, stage_seconds={"loop": 1e-3, "entropy": 1e-3, "search": 1e-3}, reconstruction=None,
    )  # fmt: skip
