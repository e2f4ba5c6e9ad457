"""A live stream for browsers and players: HLS segments and a playlist that grows, in a folder that any web server gives out.

python samples/live_hls.py out/live/stream.m3u8 [SECONDS]
python -m http.server -d out/live  # then open http://localhost:8000/stream.m3u8 in Safari, VLC, mpv or hls.js

A name that ends with .mpd makes the same for DASH.
"""

import sys
import time
from pathlib import Path

import h264lite
from h264lite.samples.make_clip import make_frames

FPS = 25


def main() -> int:
    """Encode made-up frames as a camera gives them, in segments of two seconds."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/live/stream.m3u8")
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    path.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with h264lite.VideoWriter(path, FPS, fragment=2.0, preset="veryfast", tune="zerolatency") as writer:
        for number, planes in enumerate(make_frames(320, 180, round(seconds * FPS))):
            time.sleep(max(0.0, begin + number / FPS - time.monotonic()))
            writer.write(planes)
    print(f"{path}: {len(list(path.parent.glob(path.stem + '_*.m4s')))} segments")
    return 0


if __name__ == "__main__":
    sys.exit(main())
