"""Packets into an MP4 in memory: what a server sends.

python samples/mux_mp4.py out/api.mp4
"""

import sys
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import h264lite
from h264lite.encoder.files.output_mp4 import Mp4Sink
from h264lite.samples.make_clip import make_frames


def mux(packets: list[h264lite.Packet], fps: Fraction) -> bytes:
    """One movie, moov in front; with fragment=SECONDS each write would be a segment for HLS, DASH or MediaSource."""
    out = BytesIO()
    sink = Mp4Sink(out, fps=fps)
    for packet in packets:
        sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
    sink.close()
    return out.getvalue()


def main() -> int:
    """Encode and mux one second."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/api.mp4")
    path.parent.mkdir(parents=True, exist_ok=True)
    fps = Fraction(24)
    with h264lite.Encoder(176, 144, fps=fps, qp=28) as encoder:
        packets = [packet for planes in make_frames(176, 144, 24) for packet in encoder.encode(planes)]
        packets += encoder.flush()
    path.write_bytes(mux(packets, fps))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
