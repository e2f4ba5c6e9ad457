"""samples/live_webrtc.py: viewers decode what the encoder has made, to the sample; keyframes come when they are wanted."""

import asyncio
import itertools
import threading
import time
import urllib.error
import urllib.request

import h264lite
import numpy as np
import pytest
from h264lite.cuda_src.runtime.device import Device

from .cuda_emulator.fixtures import driver  # noqa: F401
from .support.browser import VIDEO_STATE, Chromium, skip_without_chromium
from .support.foreign_arrays import GpuInterface, stored, video
from .support.waiting import wait_for

av = pytest.importorskip("av")
aiortc = pytest.importorskip("aiortc")
live_webrtc = pytest.importorskip("h264lite.samples.live_webrtc")
ice = pytest.importorskip("aioice.ice")


@pytest.fixture(autouse=True)
def by_loopback(monkeypatch):
    """Peers meet on this machine's loopback, which ICE leaves out by itself."""
    monkeypatch.setattr(ice, "get_host_addresses", lambda **_: ["127.0.0.1"])


class Recorded(live_webrtc.Live):
    """Keeps what is sent: (pts, whether it is a keyframe, bytes) of each packet."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def send(self, data, is_keyframe, pts):
        self.sent.append((pts, is_keyframe, data))
        super().send(data, is_keyframe, pts)

    def keyframes(self):
        """Their indices."""
        return [index for index, (_, is_keyframe, _) in enumerate(self.sent) if is_keyframe]


def run(viewers, seconds=float("inf")):
    """Runs viewers(live, address) beside the server, in one loop; the server is stopped after it."""

    async def both():
        live, address = Recorded(), asyncio.get_running_loop().create_future()
        server = asyncio.create_task(live_webrtc.serve(0, seconds, live, address.set_result))
        try:
            await viewers(live, await address)
        finally:
            server.cancel()
            (ended,) = await asyncio.gather(server, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended
        assert not live.views and not live.connections

    asyncio.run(asyncio.wait_for(both(), 300))


def post(address, offer):
    with urllib.request.urlopen(urllib.request.Request(address + "offer", offer.encode()), timeout=60) as answer:
        assert answer.headers["Content-Type"] == "application/sdp"
        return answer.read().decode()


class Viewer:
    """A peer that watches: aiortc, which decodes by FFmpeg."""

    def __init__(self):
        self.connection = aiortc.RTCPeerConnection(aiortc.RTCConfiguration(iceServers=[]))
        self.transceiver = self.connection.addTransceiver("video", direction="recvonly")
        self.receiver = self.transceiver.receiver

    async def offer(self):
        await self.connection.setLocalDescription(await self.connection.createOffer())
        return self.connection.localDescription.sdp

    async def watch(self, address):
        sdp = await asyncio.to_thread(post, address, await self.offer())
        await self.connection.setRemoteDescription(aiortc.RTCSessionDescription(sdp, "answer"))

    async def frames(self, count):
        return [await asyncio.wait_for(self.receiver.track.recv(), 120) for _ in range(count)]


async def until(condition):
    """wait_for of support/waiting.py for a loop."""
    await asyncio.to_thread(wait_for, condition)


def decoded(sent):
    """FFmpeg's frames of the encoder's packets, uint8[H * 3 / 2, W]."""
    decoder = av.CodecContext.create("h264", "r")
    packets = [av.Packet(data) for _, _, data in sent]
    return [frame.to_ndarray() for packet in (*packets, None) for frame in decoder.decode(packet)]


def begin_of(frames, live):
    """The index, in the encoder's stream, of the first of a viewer's frames; all of them are those of the stream."""
    stream = decoded(live.sent)
    assert len(stream) == len(live.sent)
    (begin,) = (index for index, frame in enumerate(stream) if np.array_equal(frame, frames[0].to_ndarray()))
    for index, frame in enumerate(frames, begin):
        assert np.array_equal(frame.to_ndarray(), stream[index])
        assert frame.pts - frames[0].pts == live.sent[index][0] - live.sent[begin][0]
    return begin


def test_viewers_decode_the_stream_of_the_encoder():
    """Each begins with a keyframe of its own; no sample is lost, none is encoded again; a request (PLI) makes a keyframe."""

    async def viewers(live, address):
        first, second = Viewer(), Viewer()
        await first.watch(address)
        frames = await first.frames(12)
        assert live.keyframes() == [0] == [begin_of(frames, live)]
        await second.watch(address)
        before = len(live.sent)
        later = await second.frames(12)
        assert live.keyframes() == [0, begin_of(later, live)] and live.keyframes()[1] <= before + live_webrtc.FPS
        begin_of(frames + await first.frames(12), live)

        (source,) = second.receiver.getSynchronizationSources()
        before = len(live.sent)
        await second.receiver._send_rtcp_pli(source.source)  # what it does after a loss
        await until(lambda: len(live.keyframes()) == 3)
        assert live.keyframes()[2] <= before + live_webrtc.FPS
        await second.frames(len(live.sent) - live.keyframes()[1] - 12)
        await until(lambda: len(live.sent) > before + 12)
        assert len(live.keyframes()) == 3
        for viewer in (first, second):
            await viewer.connection.close()

    run(viewers)


def test_a_view_begins_with_a_keyframe():
    """Also that of a viewer who comes while another frame is encoded."""

    async def packets():
        live = live_webrtc.Live()
        view = live_webrtc.View(live)
        live.views.add(view)
        for pts, is_keyframe in enumerate((False, True, False)):
            live.send(b"data", is_keyframe, pts)
        assert [(await view.recv()).pts for _ in range(2)] == [1, 2]

    asyncio.run(packets())


def test_tensors_on_a_gpu(driver, monkeypatch):  # noqa: F811
    """They are encoded there."""
    clip, devices = stored(video(8, 64, 48, 0), "uint8"), set()
    monkeypatch.setattr(live_webrtc, "WIDTH", 64)
    monkeypatch.setattr(live_webrtc, "HEIGHT", 48)
    encode = h264lite.Encoder.encode

    def watched(encoder, *arguments, **options):
        devices.add(encoder.config.machine.device)
        return encode(encoder, *arguments, **options)

    monkeypatch.setattr(h264lite.Encoder, "encode", watched)
    with Device() as other:

        def pictures():
            for frame in itertools.cycle(clip):
                array = GpuInterface(other.upload(frame), frame, "uint8")
                array.is_cuda = True
                yield array

        monkeypatch.setattr(live_webrtc, "pictures", pictures)

        async def viewers(live, address):
            viewer = Viewer()
            await viewer.watch(address)
            for frame in await viewer.frames(6):
                pixels = frame.to_ndarray(format="rgb24").astype(int)
                assert min(np.abs(pixels - source).mean() for source in clip) < 8  # 19 between neighbours
            await viewer.connection.close()

        run(viewers)
    assert devices == {"cuda"}


def test_frames_are_encoded_while_somebody_watches():
    async def viewers(live, address):
        for _ in range(2):
            viewer, before = Viewer(), len(live.sent)
            await viewer.watch(address)
            assert begin_of(await viewer.frames(3), live) == before
            await viewer.connection.close()
            await until(lambda: not live.views)
            count = len(live.sent)
            await asyncio.sleep(0.5)
            assert len(live.sent) <= count + 1  # the frame at work

    run(viewers)


def test_it_may_be_stopped_at_work(monkeypatch):
    """Ctrl-C while a frame is encoded: the call ends, then the encoder."""
    is_encoding, has_encoded, encode = threading.Event(), threading.Event(), h264lite.Encoder.encode

    def slow(encoder, *arguments, **options):
        is_encoding.set()
        time.sleep(0.5)
        packets = encode(encoder, *arguments, **options)
        has_encoded.set()
        return packets

    monkeypatch.setattr(h264lite.Encoder, "encode", slow)

    async def viewers(live, address):
        viewer = Viewer()
        await viewer.watch(address)
        await until(is_encoding.is_set)
        assert not has_encoded.is_set()
        await viewer.connection.close()

    run(viewers)
    assert has_encoded.is_set()


def test_the_video_ends():
    async def viewers(live, address):
        viewer = Viewer()
        await viewer.watch(address)
        count = 0
        with pytest.raises(aiortc.mediastreams.MediaStreamError):
            while True:
                await viewer.frames(1)
                count += 1
        assert 0 < count <= 2 * live_webrtc.FPS
        await viewer.connection.close()

    run(viewers, 2.0)


def test_what_is_no_offer_is_refused():
    async def viewers(live, address):
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert b"<video" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address + "other", timeout=60)
        without = Viewer()
        codecs = aiortc.RTCRtpReceiver.getCapabilities("video").codecs
        without.transceiver.setCodecPreferences([codec for codec in codecs if codec.mimeType == "video/VP8"])
        for offer in ("", "what", await without.offer()):
            with pytest.raises(urllib.error.HTTPError, match="400"):
                await asyncio.to_thread(post, address, offer)
        await without.connection.close()

    run(viewers)


# In the page: what the browser says of the video that it gets
RECEIVED = """async () => {
  const entries = [...await connection.getStats()].map(entry => entry[1]);
  return entries.find(entry => entry.type === "inbound-rtp");
}"""


def test_a_browser_plays_it(tmp_path, monkeypatch):
    """Pictures have their size and move, as many as are made; it asks for a keyframe after packets that never come."""
    skip_without_chromium()
    is_lost = threading.Event()
    send_rtp = aiortc.RTCDtlsTransport._send_rtp

    async def send(transport, data):
        if not is_lost.is_set():
            await send_rtp(transport, data)

    monkeypatch.setattr(aiortc.RTCDtlsTransport, "_send_rtp", send)

    def look(live, address):
        browser = Chromium(address, tmp_path)
        try:
            wait_for(lambda: browser.call(VIDEO_STATE)["time"] > 0.3)
            assert_it_plays(browser)
            received = browser.call(RECEIVED)
            assert received["framesDropped"] == received["packetsLost"] == 0
            assert received["keyFramesDecoded"] == len(live.keyframes())
            is_lost.set()
            time.sleep(4)
            is_lost.clear()
            wait_for(lambda: browser.call(RECEIVED)["keyFramesDecoded"] > received["keyFramesDecoded"], 8)
            assert_it_plays(browser)
            browser.show("about:blank")
            wait_for(lambda: not live.views, 10)
        finally:
            browser.close()

    run(lambda live, address: asyncio.to_thread(look, live, address))


def assert_it_plays(browser):
    states, begin = [], time.monotonic()
    for _ in range(3):
        states.append(browser.call(VIDEO_STATE) | browser.call(RECEIVED))
        time.sleep(0.7)
    spent = time.monotonic() - begin
    for earlier, later in zip(states, states[1:]):
        change = np.abs(np.subtract(later["pixels"], earlier["pixels"]))
        assert later["time"] > earlier["time"] + 0.2 and change.mean() > 5
        assert (later["width"], later["height"], later["failure"]) == (live_webrtc.WIDTH, live_webrtc.HEIGHT, "")
    assert states[-1]["framesDecoded"] - states[0]["framesDecoded"] > 0.5 * live_webrtc.FPS * spent
