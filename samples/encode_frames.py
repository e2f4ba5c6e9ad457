"""Frames in, packets out: the streaming API, with memory that does not grow.

python samples/encode_frames.py out/api.264
"""

import sys
from pathlib import Path

import h264lite
from h264lite.samples.make_clip import make_frames


def main() -> int:
    """Encode 30 frames of made-up video."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/api.264")
    path.parent.mkdir(parents=True, exist_ok=True)
    with h264lite.Encoder(320, 240, fps=30, qp=28, keyint=15, preset="fast") as encoder, open(path, "wb") as sink:
        for planes in make_frames(320, 240, 30):
            for packet in encoder.encode(planes):
                sink.write(packet.data)
        for packet in encoder.flush():
            sink.write(packet.data)
        for line in encoder.stats.lines():
            print(line)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
