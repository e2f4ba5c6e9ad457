"""A live view in browsers by WebRTC: frames are encoded once for all who watch, and aiortc sends the packets as they are.

pip install aiortc
python samples/live_webrtc.py [PORT] [SECONDS]  # then open http://localhost:8000/

Frames are those of live_http.py: tensors of PyTorch on a GPU, if there is one, else arrays of NumPy. Who begins to watch, or
has lost a packet for good, gets a keyframe. Elsewhere than in the network of this machine add a STUN or TURN server.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import av
import h264lite
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from h264lite.samples.live_http import FPS, HEIGHT, WIDTH, pictures

CLOCK = 90000  # units of RTP's times in a second
PAGE = """<!doctype html><title>live</title><video id=video autoplay muted playsinline></video><script>
const video = document.getElementById("video"), connection = new RTCPeerConnection();
connection.addTransceiver("video", {direction: "recvonly"});
connection.ontrack = event => { video.srcObject = new MediaStream([event.track]); };
connection.onicegatheringstatechange = async () => {
  if (connection.iceGatheringState !== "complete") return;
  const answer = await fetch("offer", {method: "POST", body: connection.localDescription.sdp});
  await connection.setRemoteDescription({type: "answer", sdp: await answer.text()});
};
connection.setLocalDescription();
addEventListener("pagehide", () => connection.close());  // else the viewer is missed after half a minute
</script>"""


class View(MediaStreamTrack):
    """The packets that one viewer gets, from a keyframe on."""

    kind = "video"

    def __init__(self, live: "Live") -> None:
        super().__init__()
        self._live, self._packets, self._has_begun = live, asyncio.Queue[av.Packet | None](), False

    async def recv(self) -> av.Packet:
        """The next packet. aiortc calls it when the connection stands, and packs what is no frame without encoding it."""
        if self not in self._live.views:
            self._live.views.add(self)
            self.ask()
        packet = await self._packets.get()
        if packet is None:
            raise MediaStreamError
        return packet

    def ask(self) -> None:
        """The viewer wants a keyframe."""
        self._live.wants_keyframe = True

    def add(self, packet: av.Packet | None) -> None:
        """Called with each packet; None: the video ends."""
        self._has_begun |= packet is None or packet.is_keyframe
        if self._has_begun:
            self._packets.put_nowait(packet)

    def stop(self) -> None:
        """Called by aiortc when the viewer has gone."""
        super().stop()
        self._live.views.discard(self)


class Live:
    """The encoder and its viewers. Methods run in the loop of asyncio; frames are made and encoded in a thread."""

    def __init__(self) -> None:
        self.views: set[View] = set()
        self.wants_keyframe = False
        self.connections: set[RTCPeerConnection] = set()

    async def run(self, seconds: float) -> None:
        """Make frames, at FPS, and encode those that somebody sees, each at once."""
        # aiortc negotiates Baseline. After keyint a viewer is helped whose request for a keyframe was lost
        options: Any = {"tune": "zerolatency", "preset": "veryfast", "profile": "baseline", "keyint": 10 * FPS}
        frames = pictures()
        frame = next(frames)
        device = "cuda" if getattr(frame, "is_cuda", False) else "cpu"  # where tensors are encoded
        with (
            h264lite.Encoder(width=WIDTH, height=HEIGHT, fps=FPS, device=device, **options) as encoder,
            ThreadPoolExecutor(1) as thread,  # it ends before the encoder does, when this task is cancelled
        ):
            call = partial(asyncio.get_running_loop().run_in_executor, thread)
            begin = due = time.monotonic()
            while due < begin + seconds:
                await asyncio.sleep(due - time.monotonic())
                if self.views:
                    wants_keyframe, self.wants_keyframe = self.wants_keyframe, False
                    for packet in await call(partial(encoder.encode, frame, keyframe=wants_keyframe)):
                        self.send(packet.data, packet.is_keyframe, round((due - begin) * CLOCK))
                frame = await call(next, frames)
                due = max(due + 1 / FPS, time.monotonic())  # frames that are late do not hurry the next ones
        for view in set(self.views):
            view.add(None)

    def send(self, data: bytes, is_keyframe: bool, pts: int) -> None:
        """A packet for all viewers. pts: 1 / CLOCK seconds."""
        packet = av.Packet(data)
        packet.pts, packet.time_base, packet.is_keyframe = pts, Fraction(1, CLOCK), is_keyframe
        for view in self.views:
            view.add(packet)

    async def answer(self, offer: str) -> str:
        """A new viewer: the answer to the offer, both as SDP. ValueError: the offer is none, or has no H.264."""
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.connections.add(connection)
        view = View(self)
        sender = connection.addTrack(view)
        codecs = RTCRtpSender.getCapabilities("video").codecs
        connection.getTransceivers()[0].setCodecPreferences([codec for codec in codecs if codec.mimeType == "video/H264"])

        # What is called when a viewer asks for a keyframe (PLI, FIR): aiortc tells its own encoders, but no tracks
        setattr(sender, "_send_keyframe", view.ask)  # noqa: B010 (mypy refuses the assignment)

        async def change() -> None:
            if connection.connectionState in ("failed", "closed"):
                self.connections.discard(connection)
                await connection.close()

        connection.on("connectionstatechange", change)
        try:
            await connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
            await connection.setLocalDescription(await connection.createAnswer())
        except Exception as error:  # aiortc raises what its parser and its checks do
            await connection.close()
            raise ValueError("no offer of H.264") from error
        return connection.localDescription.sdp

    async def close(self) -> None:
        """End all connections."""
        await asyncio.gather(*(connection.close() for connection in set(self.connections)))


class Handler(BaseHTTPRequestHandler):
    """The page, and the exchange of offer and answer; each request in a thread (ThreadingHTTPServer)."""

    live: Live
    loop: asyncio.AbstractEventLoop

    def do_GET(self) -> None:
        """Called by the server."""
        self.reply(*((200, PAGE.encode(), "text/html; charset=utf-8") if self.path == "/" else (404, b"", "text/plain")))

    def do_POST(self) -> None:
        """An offer."""
        offer = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode(errors="replace")
        try:
            answer = asyncio.run_coroutine_threadsafe(self.live.answer(offer), self.loop).result(30)
            self.reply(200, answer.encode(), "application/sdp")
        except ValueError as error:
            self.reply(400, str(error).encode(), "text/plain")

    def reply(self, status: int, data: bytes, content_type: str) -> None:
        """Send an answer."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


async def serve(port: int, seconds: float, live: Live, tell: Callable[[str], object] = print) -> None:
    """Serve pages to this machine alone. port: 0 = any that is free; seconds: of the video; tell gets the page's address."""
    values = {"live": live, "loop": asyncio.get_running_loop()}
    with ThreadingHTTPServer(("127.0.0.1", port), type("Bound", (Handler,), values)) as http:
        tell(f"http://localhost:{http.server_address[1]}/")
        threading.Thread(target=http.serve_forever, daemon=True).start()
        try:
            await live.run(seconds)
        finally:
            await asyncio.to_thread(http.shutdown)
            await live.close()


def main() -> int:
    """Serve until Ctrl-C."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    try:
        asyncio.run(serve(port, float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"), Live()))
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
