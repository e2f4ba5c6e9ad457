"""A live view in a browser, by the standard library alone: each page gets an encoder and fragments of MP4 over HTTP.

python samples/live_http.py [PORT] [SECONDS]  # then open http://localhost:8000/

Frames are those that a program makes: tensors of PyTorch on a GPU, if there is one, else arrays of NumPy. No frame waits in
the encoder, and each is out as a fragment when `write` returns. A page that is closed ends its encoder.
"""

import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import h264lite
import numpy as np

FPS, WIDTH, HEIGHT = 30, 640, 360
BEHIND = 0.5  # seconds by which a page may be behind what it has got
PAGE = """<!doctype html><title>live</title><video id=video autoplay muted playsinline></video><script>
const video = document.getElementById("video"), source = new MediaSource();
source.onsourceopen = async () => {
  const answer = await fetch("live.mp4");
  const buffer = source.addSourceBuffer(answer.headers.get("Content-Type")), reader = answer.body.getReader();
  const ready = () => new Promise(yes => buffer.addEventListener("updateend", yes, {once: true}));
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    buffer.appendBuffer(part.value);
    await ready();
    const ranges = video.buffered, end = ranges.length ? ranges.end(ranges.length - 1) : 0;
    if (end > video.currentTime + BEHIND) video.currentTime = end;  // the page was slow, or hidden
    if (video.currentTime > 20) { buffer.remove(0, video.currentTime - 10); await ready(); }
  }
  source.endOfStream();
};
video.src = URL.createObjectURL(source);
</script>""".replace("BEHIND", str(BEHIND))


def pictures() -> Iterator[Any]:
    """RGB frames without an end, uint8[HEIGHT, WIDTH, 3]: a wave that moves. Put your renderer, simulator or model here."""
    xp: Any = np
    try:
        import torch

        if torch.cuda.is_available():
            torch.set_default_device("cuda")  # of this thread
            xp = torch
    except ImportError:
        pass
    y, x = xp.arange(HEIGHT)[:, None], xp.arange(WIDTH)[None, :]
    for n in count():
        waves = [xp.sin((x + speed * n) / 40.0) * xp.cos((y - n) / 30.0) for speed in (1, 3, 5)]
        frame = xp.stack([128 + 127 * wave for wave in waves], -1)
        yield frame.to(torch.uint8) if xp is not np else frame.astype(np.uint8)


class Body:
    """The target of a VideoWriter: the body of an answer, whose headers are sent when the type of the video is known."""

    def __init__(self, request: BaseHTTPRequestHandler) -> None:
        self._request, self._has_begun = request, False

    def write(self, data: bytes) -> int:
        """Send data; the first has the boxes ftyp and moov, in which avcC names profile and level (RFC 6381)."""
        if not self._has_begun:
            self._has_begun = True
            profile_and_level = data[data.index(b"avcC") + 5 :][:3].hex()
            self._request.send_response(200)
            self._request.send_header("Content-Type", f'video/mp4; codecs="avc1.{profile_and_level}"')
            self._request.send_header("Cache-Control", "no-store")
            self._request.end_headers()
        return self._request.wfile.write(data)


class Handler(BaseHTTPRequestHandler):
    """The page, and the video, which goes on until the page is closed: one thread each (ThreadingHTTPServer)."""

    seconds = float("inf")

    def do_GET(self) -> None:
        """Called by the server."""
        if self.path == "/live.mp4":
            self.live()
            return
        data = PAGE.encode()
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        if self.path == "/":
            self.wfile.write(data)

    def live(self) -> None:
        """Encode frames as they are made, at FPS, each at once."""
        options: Any = {"tune": "zerolatency", "preset": "veryfast", "keyint": 2 * FPS}
        writer = h264lite.VideoWriter(Body(self), FPS, fragment="chunk", **options)
        begin = time.monotonic()
        try:
            for number, frame in enumerate(pictures()):
                if number >= self.seconds * FPS:
                    break
                time.sleep(max(0.0, begin + number / FPS - time.monotonic()))
                writer.write(frame)
            writer.close()
        except h264lite.OutputError:  # the page is closed
            writer.abort()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


def server(port: int, seconds: float = float("inf")) -> ThreadingHTTPServer:
    """A server of this machine alone. port: 0 = any that is free; seconds: of the video."""
    return ThreadingHTTPServer(("127.0.0.1", port), type("Limited", (Handler,), {"seconds": seconds}))


def main() -> int:
    """Serve until Ctrl-C."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    with server(port, float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")) as http:
        print(f"http://localhost:{http.server_address[1]}/")
        try:
            http.serve_forever()
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
