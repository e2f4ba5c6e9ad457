"""MP4 in a browser: headless Chromium plays it, in the right colours, seeks in it, and takes fragments by MediaSource."""

import os
import re
import shutil
import threading
import urllib.parse
from fractions import Fraction
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import h264lite
import numpy as np
import pytest
from h264lite import Encoder, VideoWriter, write_video
from h264lite.encoder.files.output_mp4 import Mp4Sink

from ..support import sounds
from ..support.browser import Chromium, skip_without_chromium

av = pytest.importorskip("av", reason="PyAV makes the file to compare with")
WIDTH, HEIGHT, FRAMES, RATE = 320, 192, 30, Fraction(30)
# Y, Cb, Cr of vertical bars: the primaries and their complements, as BT.601 or BT.709 has them, and greys
BARS = [(16, 128, 128), (63, 102, 240), (173, 42, 26), (32, 240, 118), (219, 16, 138), (188, 154, 16), (78, 214, 230),
        (235, 128, 128)]  # fmt: skip

PAGE = """<!doctype html><canvas id=c width=320 height=192></canvas><script>
const c = document.getElementById('c').getContext('2d', {willReadFrequently: true});
let v;
const event = (on, name) => new Promise((yes, no) => {
  on.addEventListener(name, yes, {once: true});
  v.addEventListener('error', () => no(new Error(v.error ? v.error.message : name)), {once: true});
});
async function pixels() {  // of the middle of each bar, when the frame is shown: soon after the event that says so
  await new Promise(yes => setTimeout(yes, 300));
  c.drawImage(v, 0, 0, 320, 192);
  return [...Array(8).keys()].map(n => [...c.getImageData(40 * n + 20, 96, 1, 1).data.slice(0, 3)]);
}
function start(url) {
  if (v) v.remove();
  v = document.createElement('video'); v.muted = true; document.body.append(v);
  v.src = url;
}
async function seek(time) { v.currentTime = time; await event(v, 'seeked'); return pixels(); }
async function play(url) {
  start(URL.createObjectURL(await (await fetch(url, {cache: 'no-store'})).blob()));  // where it can seek
  await event(v, 'loadeddata');
  const first = await pixels(), middle = await seek(0.71);
  v.playbackRate = 2; v.play(); await event(v, 'ended');
  return {first, middle, duration: v.duration, end: v.currentTime, last: await pixels(), width: v.videoWidth,
          height: v.videoHeight};
}
async function stream(url, sizes, type) {
  const source = new MediaSource(), data = await (await fetch(url, {cache: 'no-store'})).arrayBuffer();
  start(URL.createObjectURL(source)); await event(source, 'sourceopen');
  const buffer = source.addSourceBuffer(type), ends = [];
  for (let at = 0, n = 0; n < sizes.length; at += sizes[n++]) {
    buffer.appendBuffer(data.slice(at, at + sizes[n])); await event(buffer, 'updateend');
    ends.push(v.buffered.length ? v.buffered.end(v.buffered.length - 1) : 0);
  }
  source.endOfStream();
  const ranges = v.buffered.length, begin = v.buffered.start(0), middle = await seek(0.71);
  v.playbackRate = 2; v.play(); await event(v, 'ended');
  return {ends, ranges, begin, middle, duration: v.duration};
}
const opened = [], add = MediaSource.prototype.addSourceBuffer;  // by players: [type, source buffer]
MediaSource.prototype.addSourceBuffer = function (type) {
  opened.push([type, add.call(this, type)]);
  return opened.at(-1)[1];
};
async function playlist(url, script) {
  opened.length = 0;
  const tag = document.createElement('script'); tag.src = script; document.head.append(tag);
  await new Promise((yes, no) => { tag.onload = yes; tag.onerror = no; });
  if (v) v.remove();
  v = document.createElement('video'); v.muted = true; document.body.append(v);
  if (script === 'hls.js') { const hls = new Hls(); hls.loadSource(url); hls.attachMedia(v); }
  else dashjs.MediaPlayer().create().initialize(v, url, false);
  await event(v, 'loadeddata');
  const first = await pixels(), middle = await seek(0.71);
  v.playbackRate = 2; v.play(); await event(v, 'ended');
  const ranges = opened.map(([type, {buffered: b}]) => [type, b.length, b.start(0), b.end(b.length - 1)]);
  return {first, middle, duration: v.duration, end: v.currentTime, last: await pixels(), ranges,
          sound: v.webkitAudioDecodedByteCount};
}
async function heard(url, rate) {  // samples of the first channel, decoded by the browser
  const data = await (await fetch(url, {cache: 'no-store'})).arrayBuffer();
  const buffer = await new OfflineAudioContext(1, 1, rate).decodeAudioData(data);
  return {samples: [...buffer.getChannelData(0)].map(x => Math.round(x * 32768)), channels: buffer.numberOfChannels};
}
</script>"""


class Browser(Chromium):
    """The page of a folder that a web server of this process gives out."""

    def __init__(self, folder, profile):
        handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: handler(*args, directory=str(folder)))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        super().__init__(f"http://127.0.0.1:{self._server.server_address[1]}/page.html", profile)

    def close(self):
        super().close()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "page.html").write_text(PAGE)
    return folder


@pytest.fixture(scope="module")
def browser(folder, tmp_path_factory):
    skip_without_chromium()
    browser = Browser(folder, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def bars(n):
    """Frame n: the bars, one place further to the left every half second."""
    columns = np.roll(np.array(BARS, np.uint8), -(n // 15), axis=0)
    y, u, v = (np.repeat(columns[:, plane], 40 if plane == 0 else 20) for plane in range(3))
    return np.tile(y, (HEIGHT, 1)), np.tile(u, (HEIGHT // 2, 1)), np.tile(v, (HEIGHT // 2, 1))


def write(target, matrix, fragment=None, **more):
    names = {1: "bt709", 6: "smpte170m"}[matrix]
    options = {"colorprim": names, "transfer": names, "colormatrix": names, "range": "tv", "qp": 10, "keyint": 10} | more
    sink = Mp4Sink(target, fps=RATE, fragment=fragment)
    with Encoder(WIDTH, HEIGHT, RATE, threads=1, **options) as encoder:
        for packet in [p for n in range(FRAMES) for p in encoder.encode(bars(n))] + encoder.flush():
            sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
    sink.close()


def write_by_ffmpeg(path, matrix):
    """The same frames by libx264 and FFmpeg's muxer."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=RATE, options={"qp": "10", "bf": "0", "profile": "baseline"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        context = stream.codec_context
        context.color_primaries = context.color_trc = context.colorspace = matrix
        context.color_range = 1
        for n in range(FRAMES):
            planes = np.concatenate([plane.reshape(-1, WIDTH) for plane in bars(n)])
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            frame.color_primaries = frame.color_trc = frame.colorspace = matrix
            frame.color_range = 1
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def assert_near(colours, expected):
    assert np.abs(np.array(colours, int) - np.array(expected, int)).max() <= 3, (colours, expected)


@pytest.mark.parametrize("matrix", (1, pytest.param(6, marks=pytest.mark.slow)))
def test_it_plays_in_the_colours_of_a_file_of_ffmpeg(browser, folder, matrix):
    write_by_ffmpeg(folder / "ffmpeg.mp4", matrix)
    expected = browser.call("play", "ffmpeg.mp4")
    assert np.ptp(expected["first"], axis=0).min() > 200, "these are no bars"
    for name, fragment in (("movie.mp4", None), ("fragments.mp4", 0.3)):
        write(folder / name, matrix, fragment)
        played = browser.call("play", name)
        for part in ("first", "middle", "last"):
            assert_near(played[part], expected[part])
        assert (played["width"], played["height"]) == (WIDTH, HEIGHT)
        assert played["duration"] == pytest.approx(1, abs=0.01) and played["end"] == pytest.approx(1, abs=0.01), name
    assert np.abs(np.array(expected["first"], int) - np.array(expected["middle"], int)).max() > 100


B_FRAMES = ({"bframes": 3, "b_adapt": 0, "scenecut": 0}, {"bframes": 7, "b_adapt": 0, "b_pyramid": "dyadic", "scenecut": 0})


@pytest.mark.parametrize("options", B_FRAMES, ids=("normal", "dyadic"))
def test_b_frames_play_as_p_frames_do(browser, folder, options):
    write(folder / "p.mp4", 1)
    expected = browser.call("play", "p.mp4")
    for name, fragment in (("b.mp4", None), ("b_fragments.mp4", 0.3)):
        write(folder / name, 1, fragment, **options)
        played = browser.call("play", name)
        for part in ("first", "middle", "last"):
            assert_near(played[part], expected[part])
        assert played["duration"] == pytest.approx(1, abs=0.01) and played["end"] == pytest.approx(1, abs=0.01), name


@pytest.mark.parametrize("options", ({}, *B_FRAMES), ids=("P", "normal", "dyadic"))
def test_fragments_through_media_source(browser, folder, options):
    pieces = []
    write(type("Pipe", (), {"write": lambda self, data: pieces.append(bytes(data))})(), 1, 0.3, **options)
    (folder / "all.mp4").write_bytes(b"".join(pieces))
    write(folder / "movie.mp4", 1)
    expected = browser.call("play", "movie.mp4")
    record = pieces[0][pieces[0].index(b"avcC") + 5 :][:3].hex()
    played = browser.call("stream", "all.mp4", [len(piece) for piece in pieces], f'video/mp4; codecs="avc1.{record}"')
    assert played["ends"] == pytest.approx([0, 1 / 3, 2 / 3, 1], abs=0.001)
    assert (played["ranges"], played["begin"]) == (1, 0) and played["duration"] == pytest.approx(1, abs=0.001)
    assert_near(played["middle"], expected["middle"])


def with_sound(target, kind, fragment, tmp_path, **options):
    """The bars, which move after half a second, and a click then; AAC and Opus by FFmpeg, FLAC by our encoder."""
    samples = np.zeros((48000, 2), np.int16)
    samples[24000:24200] = 20000 * np.sin(np.arange(200) * 0.9)[:, None]
    audio = (samples, 48000)
    if kind != "flac":
        audio = sounds.write(tmp_path / {"aac": "s.m4a", "opus": "s.ogg"}[kind], {"opus": "libopus"}.get(kind, kind), samples)
    frames = (bars(n) for n in range(FRAMES))
    options = {"qp": 10, "keyint": 10, "threads": 1, "device": "cpu", "width": WIDTH, "height": HEIGHT, **options}
    h264lite.write_video(target, frames, RATE, format="i420", audio=audio, fragment=fragment, **options)
    return samples[:, 0].astype(int)


@pytest.mark.parametrize("kind", ("flac", "aac", "opus"))
@pytest.mark.parametrize("fragment", (None, 0.3), ids=("movie", "fragments"))
def test_sound_is_played_in_time(browser, folder, kind, fragment, tmp_path):
    """The file plays to its end, and the browser's own decoder has each sample of FLAC, and the click at its sample."""
    expected = with_sound(folder / "s.mp4", kind, fragment, tmp_path, bframes=3, b_adapt=0)
    played = browser.call("play", "s.mp4")
    assert played["duration"] == pytest.approx(1, abs=0.03) and played["end"] == pytest.approx(1, abs=0.03)
    heard = browser.call("heard", "s.mp4", 48000)
    samples = np.array(heard["samples"])
    assert heard["channels"] == 2
    if kind == "flac":
        assert len(samples) == 48000 and np.abs(samples - expected).max() <= 1  # it scales positive numbers by 32767
    else:
        late = 0
        if kind == "opus" and fragment is None:  # Chromium's decodeAudioData skips the pre-skip twice, in files of FFmpeg too
            sounds.write(folder / "ffmpeg_s.mp4", "libopus", np.stack([expected, expected], 1).astype(np.int16))
            late = click(browser.call("heard", "ffmpeg_s.mp4", 48000)["samples"], expected)
        assert abs(click(samples, expected) - late) <= 1


def click(samples, expected):
    """By how many samples the click is late."""
    alike = np.correlate(np.array(samples[23000:26000], float), expected[24000:24200].astype(float))
    return int(alike.argmax()) - 1000


@pytest.mark.parametrize("kind", ("flac", "aac", "opus"))
def test_sound_through_media_source(browser, folder, kind, tmp_path):
    """Fragments of both tracks: one range from 0 to the end, without a hole."""
    pieces = []
    with_sound(type("Pipe", (), {"write": lambda self, data: pieces.append(bytes(data))})(), kind, 0.3, tmp_path)
    (folder / "all.mp4").write_bytes(b"".join(pieces))
    record = pieces[0][pieces[0].index(b"avcC") + 5 :][:3].hex()
    codecs = f"avc1.{record}, {'mp4a.40.2' if kind == 'aac' else kind}"
    played = browser.call("stream", "all.mp4", [len(piece) for piece in pieces], f'video/mp4; codecs="{codecs}"')
    assert played["ranges"] == 1 and played["begin"] == 0 and played["duration"] == pytest.approx(1, abs=0.03)
    assert all(abs(end - n / 3) < 0.03 for n, end in enumerate(played["ends"]))


@pytest.mark.slow
def test_variable_rate_and_reordered_times(browser, folder):
    """Frames at 0 and 0.75 s; then with times as if frames were reordered: the presentation begins at 0 by the edit list."""
    with Encoder(WIDTH, HEIGHT, RATE, threads=1, qp=10, keyint=1) as encoder:
        packets = [p for n in (0, 15) for p in encoder.encode(bars(n))] + encoder.flush()
    for name, times, fragment in (("v.mp4", [(0, 0), (750, 750)], None), ("b.mp4", [(0, -500), (750, 0)], None),
                                  ("bf.mp4", [(0, -500), (750, 0)], 0.1)):
        sink = Mp4Sink(folder / name, fps=RATE, time_base=Fraction(1, 1000), fragment=fragment)
        for packet, (pts, dts) in zip(packets, times):
            sink.write_packet(packet.data, pts, dts, packet.is_keyframe, 300)
        sink.close()
        played = browser.call("play", name)
        assert played["first"][0] == [0, 0, 0]
        assert played["duration"] == pytest.approx(1.05 if name == "v.mp4" else 0.8, abs=0.01)  # of decoding times
        assert np.abs(np.array(played["first"], int) - np.array(played["last"], int)).max() > 100


TIMES = [0, 1, 2, 5, 6, 7, 8, 12, 13, 14, 15, 16, 20, 21, 22, 23, 24, 25, 26, 29]  # in 30ths: as bars(n) has them


@pytest.mark.parametrize("options", ({"tune": "zerolatency"}, {}), ids=("zerolatency", "defaults"))
@pytest.mark.parametrize("fragment", (0.3, "chunk", "mpd"))
def test_times_and_fragments_from_python_through_media_source(browser, folder, fragment, options):
    """Frames at their own times: the browser has one range of one second, and seeks to the right frame."""
    write(folder / "movie.mp4", 1)
    expected = browser.call("play", "movie.mp4")
    options = {"colorprim": "bt709", "transfer": "bt709", "colormatrix": "bt709", "range": "tv", "qp": 10, **options}
    pieces = []
    target = type("Pipe", (), {"write": lambda self, data: pieces.append(bytes(data))})()
    if fragment == "mpd":
        target, fragment = folder / "live.mpd", 0.3
        for old in folder.glob("live_*"):
            old.unlink()
    with VideoWriter(target, RATE, fragment=fragment, threads=1, **options) as writer:
        for at in range(0, len(TIMES), 5):
            times = TIMES[at : at + 5]
            writer.write([bars(n) for n in times], timestamps=[n / 30 for n in times])
    if not pieces:
        text = target.read_text()
        codecs = re.search(r'codecs="([^"]*)"', text)[1]
        segments = sorted(folder.glob("live_0*.m4s"))
        lasts = [int(entry[1]) * (1 + int(entry[2] or 0)) for entry in re.finditer(r' d="(\d+)"(?: r="(\d+)")?', text)]
        assert sum(lasts) == int(re.search(r'timescale="(\d+)"', text)[1]) and len(segments) == 3
        pieces += [path.read_bytes() for path in (folder / "live_init.mp4", *segments)]
    else:
        codecs = "avc1." + pieces[0][pieces[0].index(b"avcC") + 5 :][:3].hex()
    (folder / "all.mp4").write_bytes(b"".join(pieces))
    played = browser.call("stream", "all.mp4", [len(piece) for piece in pieces], f'video/mp4; codecs="{codecs}"')
    assert (played["ranges"], played["begin"]) == (1, 0) and played["duration"] == pytest.approx(1, abs=0.001)
    assert len(played["ends"]) == (5 if fragment == "chunk" else 4)
    assert_near(played["middle"], expected["middle"])


PLAYERS = {"hls.js": ("m3u8", "hls.js/dist/hls.min.js"), "dash.js": ("mpd", "dashjs/dist/modern/umd/dash.all.min.js")}


def copied(player, folder):
    """Put a player into the folder; the ending of its playlists."""
    ending, script = PLAYERS[player]
    script = os.path.join(os.environ.get("H264LITE_NODE_MODULES", ""), script)
    if not os.path.isfile(script):
        pytest.skip(f"no {player} in $H264LITE_NODE_MODULES (npm install hls.js dashjs)")
    shutil.copy(script, folder / player)
    return ending


@pytest.mark.parametrize("kind", ("flac", "aac", "opus"))
@pytest.mark.parametrize("player", PLAYERS)
def test_players_play_the_sound_of_playlists(browser, folder, player, kind, tmp_path):
    """The browser takes the codecs that the player names; both tracks are one range from 0 to the end, and are decoded."""
    ending = copied(player, folder)
    with_sound(folder / f"{kind} {ending}.{ending}", kind, 0.3, tmp_path, bframes=3, b_adapt=0)
    played = browser.call("playlist", urllib.parse.quote(f"{kind} {ending}.{ending}"), player)
    assert played["duration"] == pytest.approx(1, abs=0.03) and played["end"] == pytest.approx(1, abs=0.03)
    assert len(played["ranges"]) == {"hls.js": 1, "dash.js": 2}[player] and played["sound"] > 0
    assert all(count == 1 and begin == pytest.approx(0, abs=0.001) for _, count, begin, _ in played["ranges"])
    assert all(end == pytest.approx(1, abs=0.03) for _, _, _, end in played["ranges"])
    codecs = " ".join(media_type for media_type, *_ in played["ranges"])
    assert "avc1." in codecs and {"flac": "flac", "aac": "mp4a.40.2", "opus": "opus"}[kind] in codecs.lower(), codecs


@pytest.mark.parametrize("kind", ("flac", "aac", "opus"))
@pytest.mark.parametrize("player", PLAYERS)
def test_players_go_on_after_the_sound(browser, folder, player, kind, tmp_path):
    """A second of sound, three of video in segments of half a second: neither player waits."""
    ending = copied(player, folder)
    codec = {"opus": "libopus"}.get(kind, kind)
    audio = sounds.write(tmp_path / {"aac": "s.m4a", "opus": "s.ogg", "flac": "s.flac"}[kind], codec, sounds.pcm(48000))
    options = {"qp": 10, "threads": 1, "device": "cpu", "width": WIDTH, "height": HEIGHT, "fragment": 0.5}
    write_video(folder / f"{kind}.{ending}", (bars(n) for n in range(90)), RATE, format="i420", audio=audio, **options)
    played = browser.call("playlist", f"{kind}.{ending}", player)
    assert played["end"] == pytest.approx(3, abs=0.03) and played["duration"] == pytest.approx(3, abs=0.03)
    assert all(begin == pytest.approx(0, abs=0.001) for _, _, begin, _ in played["ranges"]) and played["sound"] > 0


@pytest.mark.parametrize("times", (None, TIMES), ids=("constant", "variable"))
@pytest.mark.parametrize("player", PLAYERS)
def test_players_play_the_playlists(browser, folder, player, times):
    """hls.js and dash.js play HLS and DASH from a web server, in the right order and length, and seek."""
    ending = copied(player, folder)
    write(folder / "movie.mp4", 1)
    expected = browser.call("play", "movie.mp4")
    options = {"colorprim": "bt709", "transfer": "bt709", "colormatrix": "bt709", "range": "tv", "qp": 10}
    name = f"list {ending}{bool(times)}.{ending}"
    given = None if times is None else [n / 30 for n in times]
    frames = (bars(n) for n in (range(FRAMES) if times is None else times))
    write_video(folder / name, frames, RATE, fragment=0.3, timestamps=given, threads=1, **options)
    played = browser.call("playlist", urllib.parse.quote(name), player)
    for part in ("first", "middle", "last"):
        assert_near(played[part], expected[part])
    assert played["duration"] == pytest.approx(1, abs=0.01) and played["end"] == pytest.approx(1, abs=0.01)
