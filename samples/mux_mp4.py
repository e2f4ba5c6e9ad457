"""Packets into an MP4 in memory with PyAV (pip install av): what a server sends.

    python samples/mux_mp4.py out/api.mp4
"""

import sys
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import av
import h264lite
from h264lite.samples.make_clip import make_frames


def mux(packets: list[h264lite.Packet], fps: Fraction) -> bytes:
    """Fragmented MP4: unlike +faststart it needs no file that can be opened again."""
    out = BytesIO()
    template = av.open(BytesIO(packets[0].data), format="h264")
    flags = {"movflags": "+frag_keyframe+empty_moov+default_base_moof"}
    with av.open(out, "w", format="mp4", options=flags) as container:
        stream = container.add_stream_from_template(template.streams.video[0])
        for made in packets:
            packet = av.Packet(made.data)
            packet.stream, packet.time_base = stream, 1 / fps
            packet.pts, packet.dts, packet.duration = made.pts, made.dts, made.duration
            packet.is_keyframe = made.is_keyframe
            container.mux(packet)
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
