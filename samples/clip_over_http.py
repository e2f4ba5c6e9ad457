"""A server that makes a clip for each request, as those of generated video do: frames of a model in, the bytes of an MP4 out.

    python samples/clip_over_http.py [PORT]  # then open http://localhost:8000/clip.mp4?seed=5

No file is written. Frames are a tensor of PyTorch, on a GPU if there is one, images of Pillow, or an array of NumPy:
`write_video` takes each.
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qs, urlsplit

import h264lite
import numpy as np

FRAMES, WIDTH, HEIGHT, FPS = 24, 128, 96, 24
FORMS = ("torch", "pil", "numpy")


def frames_of(seed: int, form: str) -> Any:
    """What stands for a model's answer: waves, as uint8 or as floating-point in -1..1, which the tensor has."""
    n, y, x = np.mgrid[0:FRAMES, 0:HEIGHT, 0:WIDTH]
    waves = np.sin((x * (1 + seed % 3) + y + 4 * n) / 12)[..., None] * np.array([1, 0.6, -0.8])  # [FRAMES, HEIGHT, WIDTH, 3]
    if form == "torch":
        import torch

        return torch.as_tensor(waves, dtype=torch.float32, device="cuda" if torch.cuda.is_available() else "cpu")
    samples = (127.5 + 127.5 * waves).round().astype(np.uint8)
    if form == "pil":
        from PIL import Image

        return [Image.fromarray(frame) for frame in samples]
    return samples


def clip(seed: int, form: str) -> bytes:
    """The MP4 of an answer."""
    value_range = (-1.0, 1.0) if form == "torch" else None
    metadata = {"title": f"seed {seed}"}
    data = h264lite.write_video(
        None, frames_of(seed, form), FPS, layout=None if form == "pil" else "THWC", value_range=value_range, preset="fast",
        metadata=metadata, threads=1,
    )  # fmt: skip
    assert data is not None  # of target None
    return data


class Handler(BaseHTTPRequestHandler):
    """Answers GET /clip.mp4?seed=N&form=FORM."""

    def do_GET(self) -> None:
        """A clip; 404 for what is none."""
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        form, seed = query.get("form", "torch" if find_spec("torch") else "numpy"), query.get("seed", "0")
        if url.path != "/clip.mp4" or form not in FORMS or not seed.isdecimal() or len(seed) > 9:
            self.send_error(404)
            return
        data = clip(int(seed), form)
        self.send_response(200)
        self.send_header("Content-Type", "video/mp4")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """No line for each request."""


def main() -> int:
    """Serve until Ctrl-C."""
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/clip.mp4?seed=5", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
