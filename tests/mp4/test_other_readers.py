"""MP4 of our own as ffprobe, GPAC's reader (MP4Box.js) and FFmpeg with frames of libx264 see it."""

import io
import json
import os
import shutil
import subprocess
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite import Encoder
from h264lite.decoder.decoder import Decoder
from h264lite.encoder.files.output_mp4 import Mp4Sink
from h264lite.mp4.reader import Mp4Reader

from ..support import round_trip, sounds

RATE, FRAMES = Fraction(24000, 1001), 20


@pytest.fixture(params=[None, 0.2], ids=["movie", "fragments"])
def movie(request, tmp_path):
    path = tmp_path / "o.mp4"
    colours = {"colorprim": "bt2020", "transfer": "smpte2084", "colormatrix": "bt2020nc", "range": "pc", "sar": "16:11"}
    sink = Mp4Sink(path, fps=RATE, fragment=request.param)
    with Encoder(64, 48, RATE, keyint=6, bframes=0, threads=1, **colours) as encoder:
        for packet in [p for f in round_trip.noise_clip(64, 48, FRAMES, 3) for p in encoder.encode(f)] + encoder.flush():
            sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
    sink.close()
    return path


def test_ffprobe(movie):
    if shutil.which("ffprobe") is None:
        pytest.skip("no ffprobe (Debian: apt-get install ffmpeg)")
    words = ["ffprobe", "-v", "warning", "-count_frames", "-show_streams", "-show_packets", "-show_format", "-of", "json"]
    done = subprocess.run([*words, movie], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr
    facts = json.loads(done.stdout)
    (stream,), packets = facts["streams"], facts["packets"]
    expected = {"codec_tag_string": "avc1", "width": 64, "height": 48, "nb_read_frames": str(FRAMES), "has_b_frames": 0,
                "color_range": "pc", "color_space": "bt2020nc", "color_transfer": "smpte2084", "color_primaries": "bt2020",
                "sample_aspect_ratio": "16:11", "r_frame_rate": "24000/1001", "avg_frame_rate": "24000/1001",
                "time_base": "1/24000", "start_pts": 0, "duration_ts": FRAMES * 1001}  # fmt: skip
    assert {name: stream.get(name) for name in expected} == expected
    assert [(p["pts"], p["dts"], p["duration"]) for p in packets] == [(1001 * n, 1001 * n, 1001) for n in range(FRAMES)]
    assert [p["flags"][0] for p in packets] == ["K" if n % 6 == 0 else "_" for n in range(FRAMES)]
    assert facts["format"]["tags"]["compatible_brands"] == "isomiso6avc1mp41"


@pytest.mark.parametrize("rate", (Fraction(25), Fraction(30000, 1001)), ids=str)
@pytest.mark.parametrize("bframes, pyramid, delay", ((1, "none", 1), (3, "normal", 2), (7, "dyadic", 3)))
@pytest.mark.parametrize("fragment", (None, 0.2), ids=("movie", "fragments"))
def test_ffprobe_of_b_frames(tmp_path, rate, bframes, pyramid, delay, fragment):
    """Times are exact, of frames and of packets; the presentation begins at 0."""
    if shutil.which("ffprobe") is None:
        pytest.skip("no ffprobe (Debian: apt-get install ffmpeg)")
    sink, options = Mp4Sink(tmp_path / "b.mp4", fps=rate, fragment=fragment), {"b_adapt": 0, "scenecut": 0, "keyint": 12}
    with Encoder(64, 48, rate, threads=1, bframes=bframes, b_pyramid=pyramid, **options) as encoder:
        packets = [p for f in round_trip.noise_clip(64, 48, FRAMES, 3) for p in encoder.encode(f)] + encoder.flush()
        for packet in packets:
            sink.write_packet(packet.data, packet.pts, packet.dts, packet.is_keyframe)
    sink.close()
    words = ["ffprobe", "-v", "warning", "-count_frames", "-show_streams", "-show_packets", "-show_frames", "-of", "json"]
    done = subprocess.run([*words, tmp_path / "b.mp4"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr
    facts = json.loads(done.stdout)
    (stream,), both = facts["streams"], facts["packets_and_frames"]
    tick = 1 / rate / Fraction(stream["time_base"])
    expected = {"nb_read_frames": str(FRAMES), "has_b_frames": delay, "start_pts": 0, "duration_ts": FRAMES * tick,
                "r_frame_rate": f"{rate.numerator}/{rate.denominator}"}  # fmt: skip
    assert {name: stream.get(name) for name in expected} == expected
    frames = [frame["pts"] for frame in both if frame["type"] == "frame"]
    assert frames == [tick * n for n in range(FRAMES)]
    read = [(p["pts"], p["dts"], p["duration"], p["flags"][0] == "K") for p in both if p["type"] == "packet"]
    assert read == [(tick * p.pts, tick * p.dts, tick, p.is_keyframe) for p in packets]


SCRIPT = """
const {createFile} = require('mp4box'), fs = require('fs');
const data = fs.readFileSync(process.argv[2]), file = createFile(), samples = [];
let info;
file.onError = (where, what) => { throw new Error(where + what); };
file.onReady = movie => { info = movie; file.setExtractionOptions(movie.tracks[0].id, null, {nbSamples: 1});
                          file.start(); };
file.onSamples = (id, user, chunk) => samples.push(...chunk);
const buffer = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
buffer.fileStart = 0; file.appendBuffer(buffer); file.flush();
const track = info.tracks[0];
console.log(JSON.stringify({progressive: info.isProgressive, fragmented: info.isFragmented, brands: info.brands,
  codec: track.codec, video: track.video, width: track.track_width, timescale: track.timescale,
  samples: samples.map(s => [s.cts, s.dts, s.duration, s.size, s.is_sync])}));
"""


def test_mp4box_js_of_gpac(movie, tmp_path):
    folder = os.environ.get("H264LITE_NODE_MODULES", "")
    if not (shutil.which("node") and os.path.isdir(os.path.join(folder, "mp4box"))):
        pytest.skip("no node, or no mp4box in $H264LITE_NODE_MODULES (npm install mp4box)")
    (tmp_path / "read.js").write_text(SCRIPT)
    done = subprocess.run(["node", str(tmp_path / "read.js"), str(movie)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "NODE_PATH": folder})  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    facts = json.loads(done.stdout)
    with open(movie, "rb") as file:
        samples = list(Mp4Reader(file).samples())
    assert facts["samples"] == [[s.pts, s.dts, s.duration, s.size, s.is_keyframe] for s in samples] and len(samples) == FRAMES
    assert facts["fragmented"] == (b"moof" in movie.read_bytes()) and facts["timescale"] == 24000
    assert facts["progressive"] or facts["fragmented"]
    assert facts["codec"].startswith("avc1.6400") and facts["video"] == {"width": 64, "height": 48}
    assert facts["width"] == pytest.approx(64 * 16 / 11, abs=0.001)
    assert facts["brands"][-4:] == ["isom", "iso6", "avc1", "mp41"]


BOTH = """
const {createFile} = require('mp4box'), fs = require('fs');
const data = fs.readFileSync(process.argv[2]), file = createFile(), samples = {};
let info;
file.onError = (where, what) => { throw new Error(where + what); };
file.onReady = movie => { info = movie;
                          for (const track of movie.tracks) file.setExtractionOptions(track.id, null, {nbSamples: 1});
                          file.start(); };
file.onSamples = (id, user, chunk) => { (samples[id] ??= []).push(...chunk.map(s => [s.cts, s.duration, [...s.data]])); };
const buffer = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
buffer.fileStart = 0; file.appendBuffer(buffer); file.flush();
console.log(JSON.stringify(info.tracks.map(t => [t.codec, t.timescale, t.edits, t.audio, samples[t.id]])));
"""


CODECS = (("m4a", "aac", "mp4a.40.2"), ("ogg", "libopus", "Opus"), ("flac", "flac", "fLaC"))


@pytest.mark.parametrize("ending, codec, name", CODECS)
@pytest.mark.parametrize("fragment", (None, 0.3))
def test_sound_in_mp4box_js_of_gpac(tmp_path, ending, codec, name, fragment):
    """Codec, rate, channels, every packet with its time; media time of the edit list is the priming."""
    folder = os.environ.get("H264LITE_NODE_MODULES", "")
    if not (shutil.which("node") and os.path.isdir(os.path.join(folder, "mp4box"))):
        pytest.skip("no node, or no mp4box in $H264LITE_NODE_MODULES (npm install mp4box)")
    source = sounds.write(tmp_path / f"s.{ending}", codec, sounds.pcm(30000))
    frames = [planes for planes in round_trip.noise_clip(64, 48, FRAMES, 3)]
    h264lite.write_video(tmp_path / "o.mp4", frames, 24, audio=source, fragment=fragment, keyint=6, device="cpu")
    (tmp_path / "read.js").write_text(BOTH)
    done = subprocess.run(["node", str(tmp_path / "read.js"), str(tmp_path / "o.mp4")], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "NODE_PATH": folder})  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    _, (box_type, scale, edits, audio, samples) = json.loads(done.stdout)
    assert (box_type, scale) == (name, 48000) and audio == {"sample_rate": 48000, "channel_count": 2, "sample_size": 16}
    priming = {"m4a": 1024, "ogg": 312, "flac": 0}[ending]
    assert (edits[0]["media_time"] if edits else 0) == priming
    assert [bytes(data) for _, _, data in samples] == sounds.packets(source)
    times = [time for time, _, _ in samples]
    assert times[0] == 0 and all(b == a + samples[n][1] for n, (a, b) in enumerate(zip(times, times[1:])))
    assert times[-1] + samples[-1][1] == 30000 + priming


@pytest.mark.parametrize("fragment", (None, 0.3))
def test_b_frames_of_libx264(fragment):
    """Frames that are really reordered: FFmpeg and our decoder give them in order, at their times."""
    av = pytest.importorskip("av")
    try:
        context = av.CodecContext.create("libx264", "w")
    except av.codec.codec.UnknownCodecError:
        pytest.skip("this PyAV has no libx264")
    context.width, context.height, context.pix_fmt, context.time_base = 64, 48, "yuv420p", 1 / RATE
    context.options = {"bf": "3", "b_strategy": "0", "g": "8", "sc_threshold": "0", "x264-params": "log-level=none"}
    target = io.BytesIO()
    sink, packets = Mp4Sink(target, fps=RATE, fragment=fragment), []
    for n, planes in enumerate(round_trip.noise_clip(64, 48, FRAMES, 3)):
        frame = av.VideoFrame.from_ndarray(np.concatenate([plane.reshape(-1, 64) for plane in planes]), format="yuv420p")
        frame.pts, frame.time_base = n, 1 / RATE
        packets += context.encode(frame)
    for packet in packets + context.encode(None):
        sink.write_packet(bytes(packet), packet.pts, packet.dts, packet.is_keyframe)
    sink.close()
    data = target.getvalue()
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(video=0))
    assert [frame.pts * frame.time_base for frame in frames] == [n / RATE for n in range(FRAMES)]
    assert any(sample.pts != sample.dts + 1001 for sample in Mp4Reader(io.BytesIO(data)).samples())
    decoder = Decoder()
    ours = [frame for piece in Mp4Reader(io.BytesIO(data)).byte_stream() for frame in decoder.decode(piece)]
    ours += decoder.flush()
    assert len(ours) == len(frames) == FRAMES
    assert all(np.array_equal(a.y, b.to_ndarray()[:48]) for a, b in zip(ours, frames))
