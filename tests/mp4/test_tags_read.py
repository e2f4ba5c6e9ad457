"""Metadata and chapters of MP4 files are read as they were written, here and by FFmpeg; damage in them is no error."""

import io
import json
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.mp4.parsing import Contents
from h264lite.mp4.tags import FileTags, read_tags

METADATA = {"title": "A clip \u2013 \u00e9", "artist": "Me", "com.example.seed": "42", "keyw\u00f6rd": "x\ny"}
CHAPTERS = [(0, "Start"), (Fraction(1, 4), "\u00dcber")]
FRAMES = [np.full((32, 48, 3), 30 * n, np.uint8) for n in range(8)]


def test_what_is_written_is_read():
    tags = FileTags(METADATA, [(Fraction(at), title) for at, title in CHAPTERS])
    assert read_tags(Contents(tags.boxes(), "moov")) == tags
    assert not read_tags(Contents(b"", "moov")) and not FileTags().boxes()


@pytest.mark.parametrize("fragment", (None, 0.1))
def test_by_the_reader_and_by_info(tmp_path, capsys, fragment):
    path = tmp_path / "o.mp4"
    h264lite.write_video(path, FRAMES, 16, metadata=METADATA, chapters=CHAPTERS, fragment=fragment, preset="ultrafast")
    facts = h264lite.VideoReader(path).metadata
    assert (facts.tags, facts.chapters) == (METADATA, [(0, "Start"), (0.25, "\u00dcber")])
    assert main(["info", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"artist: Me", "com.example.seed: 42", "keyw\u00f6rd: x\\ny", "chapter at 0.250 s: \u00dcber"} <= set(lines)
    assert main(["info", "--json", str(path)]) == 0
    of_file = json.loads(capsys.readouterr().out)["mp4"]
    assert (of_file["metadata"], of_file["chapters"]) == (METADATA, [[0, "Start"], [0.25, "\u00dcber"]])
    bare = h264lite.VideoReader(h264lite.write_video(None, FRAMES, 16, preset="ultrafast")).metadata
    assert (bare.tags, bare.chapters) == ({}, [])


@pytest.mark.parametrize("options", ({}, {"movflags": "use_metadata_tags"}), ids=str)
def test_those_of_ffmpeg(options):
    av = pytest.importorskip("av")
    data, file = h264lite.write_video(None, FRAMES, 16, preset="ultrafast"), io.BytesIO()
    with av.open(io.BytesIO(data)) as source, av.open(file, "w", "mp4", options=options) as movie:
        movie.metadata.update({"title": "T", "comment": "C"})
        stream = movie.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.size:
                packet.stream = stream
                movie.mux(packet)
    tags = h264lite.VideoReader(file.getvalue()).metadata.tags
    assert (tags["title"], tags["comment"]) == ("T", "C")


def test_damage_is_no_error():
    good = FileTags(METADATA, [(Fraction(at), title) for at, title in CHAPTERS]).boxes()
    rng = np.random.default_rng(5)
    for size in range(len(good)):
        assert len(read_tags(Contents(good[:size], "moov")).metadata) <= len(METADATA)
    for _ in range(2000):
        data = np.frombuffer(good, np.uint8).copy()
        data[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
        tags = read_tags(Contents(data.tobytes(), "moov"))
        assert all(isinstance(text, str) for text in tags.metadata.values()) and len(tags.chapters) <= 255
