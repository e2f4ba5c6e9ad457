"""MP4 and QuickTime files of FFmpeg's muxers, through PyAV, with streams of libx264; and what FFmpeg reads of a file."""

import functools
import io
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from h264lite.mp4.avc import without_parameter_sets

from . import round_trip

WIDTH, HEIGHT, FRAMES = 80, 64, 60
TICKS = Fraction(1, 600)
FRAME, DELAY = 640, 1280  # units of the files' tracks: a frame, and how much later B frames make the first one
B_FRAMES = "bframes=3:b-adapt=0:keyint=12:scenecut=0"
NO_B_FRAMES = "bframes=0:keyint=12:scenecut=0"
OPEN_GOPS = "bframes=3:b-adapt=0:keyint=12:min-keyint=12:scenecut=0:open-gop=1:ref=3"
ONE_GOP = "bframes=3:b-adapt=1:keyint=250:b-pyramid=strict"

Coded = list[tuple[bytes, int, int, bool]]  # access unit in Annex B, pts, dts, is_keyframe


def steady(n: int) -> int:
    """Times in 1 / 600 s, of 30 frames a second."""
    return 20 * n


def uneven(n: int) -> int:
    """Times of a variable rate."""
    return 20 * n + (7 * n * n) % 17


@functools.cache
def packets(params: str, times: Callable[[int], int] = steady) -> Coded:
    """The packets of libx264 with these parameters, times in 1 / 600 s."""
    av = pytest.importorskip("av", reason="PyAV brings libx264 and FFmpeg's muxers")
    try:
        context = av.CodecContext.create("libx264", "w")
    except ValueError:
        pytest.skip("this PyAV has no libx264")
    context.width, context.height, context.pix_fmt, context.time_base = WIDTH, HEIGHT, "yuv420p", TICKS
    context.framerate = Fraction(30)
    context.options = {"preset": "fast", "x264-params": f"threads=1:qp=30:log-level=none:{params}"}
    coded = []
    for n, planes in enumerate(round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 11)):
        frame = av.VideoFrame.from_ndarray(np.concatenate([p.reshape(-1, WIDTH) for p in planes]), format="yuv420p")
        frame.pts, frame.time_base = times(n), TICKS
        coded += context.encode(frame)
    coded += context.encode(None)
    return [(bytes(p), p.pts, p.dts, p.is_keyframe) for p in coded]


def movie(
    form: str, params: str, times: Callable[[int], int] = steady, shift: int = 0, sound: bool = False, **options: str
) -> bytes:
    """A file by a muxer of FFmpeg with these options. shift: added to all times; sound: silence beside it."""
    av = pytest.importorskip("av")
    coded = packets(params, times)
    raw = io.BytesIO(b"".join(data for data, *_ in coded))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "movie")
        with av.open(raw, format="h264") as template, av.open(path, "w", format=form, options=options) as container:
            _mux(container, template.streams.video[0], coded, shift, sound)
        with open(path, "rb") as file:
            return file.read()


def _mux(container: Any, template: Any, coded: Coded, shift: int, sound: bool) -> None:
    import av

    stream = container.add_stream_from_template(template)
    stream.time_base = TICKS
    tones = container.add_stream("aac", rate=48000) if sound else None
    for n, (data, pts, dts, is_keyframe) in enumerate(coded):
        packet = av.Packet(without_parameter_sets(data))  # which the muxer has in the sample entry
        packet.stream, packet.time_base, packet.is_keyframe = stream, TICKS, is_keyframe
        packet.pts, packet.dts, packet.duration = pts + shift, dts + shift, 20
        container.mux(packet)
        if tones is not None and n % 2 == 0:
            silence = av.AudioFrame.from_ndarray(np.zeros((2, 3200), np.float32), format="fltp", layout="stereo")
            silence.sample_rate, silence.pts = 48000, 1600 * n
            container.mux(tones.encode(silence))


def frames_of_ffmpeg(data: bytes) -> Iterator[tuple[float, list[np.ndarray]]]:
    """(seconds, planes) of each frame that FFmpeg shows, in its order."""
    import av

    with av.open(io.BytesIO(data)) as container:
        for frame in container.decode(video=0):
            planes = [np.frombuffer(p, np.uint8).reshape(p.height, p.line_size)[:, : p.width].copy() for p in frame.planes]
            yield float(frame.pts * frame.time_base), planes


def box(kind: bytes, *parts: bytes) -> bytes:
    """A box of ISO/IEC 14496-12."""
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def with_edits(data: bytes, *edits: tuple[int, int], version: int = 0) -> bytes:
    """A file whose moov is last, with another edit list: (duration in ms, media_time in units of the track) of each edit."""
    at = data.rindex(b"moov") - 4
    assert at + struct.unpack_from(">I", data, at)[0] == len(data), "moov is last"
    rows = [struct.pack(">qqhh" if version else ">iihh", *edit, 1, 0) for edit in edits]
    table = struct.pack(">II", version << 24, len(edits)) + b"".join(rows)

    def rebuilt(contents: bytes, inside: bytes) -> bytes:
        parts, place = [], 0
        while place < len(contents):
            size, kind = struct.unpack_from(">I4s", contents, place)
            part = contents[place : place + size]
            if kind == b"trak":
                part = box(kind, rebuilt(part[8:], kind))
            if kind != b"edts":
                parts.append(part)
            if kind == b"tkhd" and inside == b"trak":
                parts.append(box(b"edts", box(b"elst", table)))
            place += size
        return b"".join(parts)

    return data[:at] + box(b"moov", rebuilt(data[at + 8 :], b"moov"))


def edited(params: str, *edits: tuple[int, int], version: int = 0) -> bytes:
    """An MP4 with this edit list."""
    return with_edits(movie("mp4", params), *edits, version=version)


FRAGMENTS = "+frag_keyframe+empty_moov+default_base_moof"
MOVIES: dict[str, Callable[[], bytes]] = {
    "mp4": lambda: movie("mp4", NO_B_FRAMES),
    "B frames": lambda: movie("mp4", B_FRAMES),
    "mov": lambda: movie("mov", B_FRAMES),
    "3gp": lambda: movie("3gp", B_FRAMES),
    "one GOP, pyramid": lambda: movie("mp4", ONE_GOP),
    "open GOPs": lambda: movie("mp4", OPEN_GOPS),
    "negative composition offsets": lambda: movie("mp4", B_FRAMES, movflags="+negative_cts_offsets"),
    "no edit list": lambda: movie("mp4", B_FRAMES, use_editlist="0"),
    "variable rate": lambda: movie("mp4", B_FRAMES, uneven),
    "late start": lambda: movie("mp4", B_FRAMES, shift=500),
    "cut beginning": lambda: movie("mp4", B_FRAMES, shift=-130),
    "sound, moov in front": lambda: movie("mp4", B_FRAMES, sound=True, movflags="+faststart"),
    "fragments": lambda: movie("mp4", B_FRAMES, movflags=FRAGMENTS),
    "a fragment a frame": lambda: movie("mp4", B_FRAMES, uneven, movflags="+frag_every_frame+empty_moov"),
    "fragments after a movie": lambda: movie("mp4", B_FRAMES, movflags="+frag_keyframe"),
    "fragments with sound": lambda: movie("mp4", B_FRAMES, sound=True, movflags=FRAGMENTS),
    "dash": lambda: movie("mp4", B_FRAMES, movflags="+dash+frag_keyframe+delay_moov"),
    "edit within a frame": lambda: edited(B_FRAMES, (1000, DELAY + 3 * FRAME + 100)),
    "edit within a GOP": lambda: edited(B_FRAMES, (1000, DELAY + 2 * FRAME), version=1),
    "early end": lambda: edited(B_FRAMES, (510, DELAY)),
    "empty edit": lambda: edited(B_FRAMES, (300, -1), (1000, DELAY)),
    "two edits": lambda: edited(B_FRAMES, (400, DELAY), (400, DELAY + 24 * FRAME)),
    "the same twice": lambda: edited(NO_B_FRAMES, (400, 0), (400, 0)),
}
# FFmpeg adds as much to all times of fragments as makes the least composition offset 0; ISO/IEC 14496-12 does not
DELAYED_BY_FFMPEG: dict[str, tuple[float, Callable[[], bytes]]] = {
    "cmaf": (2 / 30, lambda: movie("mp4", B_FRAMES, movflags="+cmaf+frag_keyframe")),
    "mov of fragments": (0.085, lambda: movie("mov", B_FRAMES, uneven, movflags=f"{FRAGMENTS}+negative_cts_offsets")),
}
