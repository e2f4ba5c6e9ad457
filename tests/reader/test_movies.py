"""VideoReader beside FFmpeg: the same frames at the same times, in sequence and at random, of files of other muxers."""

import functools
import random

import h264lite
import numpy as np
import pytest
from h264lite.samples.make_clip import make_frames

from ..decoder.test_conformance import NAMES
from ..support import foreign_movies, sequences
from ..support.foreign_movies import DELAYED_BY_FFMPEG, MOVIES

SEEKS = 1000


@functools.cache
def movie(name):
    """(bytes, [(seconds, planes)] by FFmpeg)"""
    data = MOVIES[name]()
    return data, list(foreign_movies.frames_of_ffmpeg(data))


def equal(ours, theirs):
    return all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", MOVIES)
def test_frames_and_times_are_those_of_ffmpeg(name):
    data, theirs = movie(name)
    with h264lite.VideoReader(data, format="planes") as reader:
        assert len(reader) == len(theirs) > 0
        assert reader.timestamps.tolist() == [seconds for seconds, _ in theirs]
        assert [n for n, (frame, (_, other)) in enumerate(zip(reader, theirs)) if not equal(frame, other)] == []
        assert reader._pictures.decoded <= foreign_movies.FRAMES * (2 if "edits" in name or "twice" in name else 1)


@pytest.mark.parametrize("name", DELAYED_BY_FFMPEG)
def test_times_of_fragments_with_negative_offsets(name):
    delay, make = DELAYED_BY_FFMPEG[name]
    data = make()
    theirs = list(foreign_movies.frames_of_ffmpeg(data))
    with h264lite.VideoReader(data, format="planes") as reader:
        assert reader.timestamps[0] == 0 and len(reader) == len(theirs)
        assert (reader.timestamps + delay).tolist() == pytest.approx([seconds for seconds, _ in theirs])
        assert all(equal(frame, other) for frame, (_, other) in zip(reader, theirs))


SLOW = [("open GOPs", 8), ("one GOP, pyramid", 0), ("one GOP, pyramid", 8), ("two edits", 8)]


@pytest.mark.parametrize(
    "name, nearby",
    [("variable rate", 8), ("B frames", 0), *(pytest.param(*pair, marks=pytest.mark.slow) for pair in SLOW)],
)
def test_a_thousand_seeks(name, nearby):
    """Frames at random places are those of the sequence; memory is bounded."""
    data, theirs = movie(name)
    rng = random.Random(20261128)
    with h264lite.VideoReader(data, format="planes", nearby=nearby) as reader:
        for _ in range(SEEKS):
            index = rng.randrange(len(reader))
            frame = reader.get_frame_at(index)
            assert frame.pts_seconds == theirs[index][0] and equal(frame.data, theirs[index][1]), index
            assert len(reader._pictures._kept) <= nearby + 4  # and what three B frames reorder


@pytest.mark.parametrize("options", [{}, {"fragment": 0.5}, {"bframes": 0}, {"bframes": 7, "b_pyramid": "dyadic"}], ids=str)
def test_what_write_video_writes(options, tmp_path):
    """Frames are the encoder's reconstruction, times those of the input: of a file and of bytes."""
    frames = [tuple(frame) for frame in make_frames(96, 80, 50)]
    path = tmp_path / "own.mp4"
    words = {"fps": "30000/1001", "keyint": 20, "preset": "fast", **options}
    h264lite.write_video(path, frames, format="i420", **words)
    theirs = list(foreign_movies.frames_of_ffmpeg(path.read_bytes()))
    for video in (path, path.read_bytes()):
        with h264lite.VideoReader(video, format="planes") as reader:
            assert len(reader) == 50 and reader.timestamps.tolist() == [n * 1001 / 30000 for n in range(50)]
            assert [seconds for seconds, _ in theirs] == reader.timestamps.tolist()
            assert all(equal(frame, other) for frame, (_, other) in zip(reader, theirs))
            assert str(reader.metadata.fps) == "30000/1001"


def ffmpeg_frames(stream):
    """All frames by FFmpeg's decoder, which may not guess how far pictures are reordered."""
    av = pytest.importorskip("av")
    context = av.CodecContext.create("h264", "r")
    context.options, context.thread_count = {"strict": "1"}, 1
    packets = [*context.parse(stream), *context.parse(None), None]
    return [[np.frombuffer(p, np.uint8).reshape(p.height, p.line_size)[:, : p.width].copy() for p in frame.planes]
            for packet in packets for frame in context.decode(packet)]


LONG = ("LS_SVA_D.264", "CI1_FT_B.264", "HCBP2_HHI_A.264", "CANL1_TOSHIBA_G.264", "MR4_TANDBERG_C.264", "MR5_TANDBERG_C.264")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in NAMES])
def test_conformance_streams(name):
    """All frames are FFmpeg's, in its order; some at random are the same again."""
    path = sequences.conformance_folder() / name
    theirs = ffmpeg_frames(path.read_bytes())
    reader = h264lite.VideoReader(path, format="planes")
    assert len(reader) == len(theirs) and all(equal(frame, other) for frame, other in zip(reader, theirs))
    assert reader._pictures.decoded == len(theirs)
    rng = random.Random(1)
    assert all(equal(reader[n], theirs[n]) for n in (rng.randrange(len(theirs)) for _ in range(30)))


@pytest.mark.parametrize("name", ["FM1_FT_E.264", "FM2_SVA_B.264"])
def test_streams_beyond_the_decoder_are_refused_by_name(name):
    with pytest.raises(h264lite.Unsupported, match="slice groups"):
        h264lite.VideoReader(sequences.conformance_folder() / name)
