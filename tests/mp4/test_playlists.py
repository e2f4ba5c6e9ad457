"""HLS and DASH: playlists by the grammar of RFC 8216 and ISO/IEC 23009-1, segments that are what the playlists say."""

import functools
import http.server
import io
import os
import re
import threading
import xml.etree.ElementTree
from fractions import Fraction
from urllib.parse import quote, unquote

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.errors import OptionError, OutputError

from ..support.moving import boxes_of, moving

WIDTH, HEIGHT, FRAMES = 48, 34, 70
RATE = Fraction(30000, 1001)

# RFC 8216, 4.2: values of attributes; 4.3: the tags of a media playlist that may occur here, each as often as it may
_FLOAT, _INT, _TEXT = r"\d+(\.\d+)?", r"\d{1,20}", r'"[^"\r\n]*"'
TAGS = {
    "#EXTM3U": (r"", 1, 1),
    "#EXT-X-VERSION": (rf":{_INT}", 1, 1),
    "#EXT-X-TARGETDURATION": (rf":{_INT}", 1, 1),
    "#EXT-X-MEDIA-SEQUENCE": (rf":{_INT}", 0, 1),
    "#EXT-X-PLAYLIST-TYPE": (r":(EVENT|VOD)", 0, 1),
    "#EXT-X-INDEPENDENT-SEGMENTS": (r"", 0, 1),
    "#EXT-X-MAP": (rf":URI={_TEXT}(,BYTERANGE={_TEXT})?", 1, 1),
    "#EXTINF": (rf":{_FLOAT},[^\r\n]*", 0, 10**6),
    "#EXT-X-ENDLIST": (r"", 0, 1),
}
_URI = re.compile(r"(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})+", re.ASCII)  # RFC 3986: a relative reference


def parsed(text):
    """(values of tags, [(seconds, URI)], URI of the initialisation segment) of a media playlist; fails if it is none."""
    assert text.endswith("\n") and "\r" not in text and not text.startswith("\ufeff")
    lines = text.split("\n")[:-1]
    assert lines[0] == "#EXTM3U"
    tags, segments, seconds = {name: [] for name in TAGS}, [], None
    for line in lines:
        if line.startswith("#EXT"):
            name = re.match(r"#[A-Z0-9-]+", line)[0]
            pattern, _, _ = TAGS[name]
            assert re.fullmatch(pattern, line[len(name) :]), line
            tags[name].append(line[len(name) + 1 :])
            assert not segments or name in ("#EXTINF", "#EXT-X-ENDLIST"), "tags of all segments come first"
            if name == "#EXTINF":
                assert seconds is None
                seconds = Fraction(line[len(name) + 1 :].split(",")[0])
        elif line and line[0] != "#":
            assert seconds is not None and _URI.fullmatch(line)
            segments.append((seconds, unquote(line)))
            seconds = None
    assert seconds is None
    for name, (_, least, most) in TAGS.items():
        assert least <= len(tags[name]) <= most, name
    assert int(tags["#EXT-X-VERSION"][0]) >= 6  # section 7: EXT-X-MAP
    target = int(tags["#EXT-X-TARGETDURATION"][0])
    assert all(int(s + Fraction(1, 2)) <= target for s, _ in segments)  # 4.3.3.1
    return tags, segments, unquote(tags["#EXT-X-MAP"][0].removeprefix("URI=").strip('"'))


# ISO/IEC 23009-1, 5.3 and its schema: elements that may occur here: their attributes (those with * must), their children in
# order
_UNSIGNED, _TIME, _DATE = r"\d+", r"PT(\d+H)?(\d+M)?(\d+(\.\d+)?S)?", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
_RATIO = r"\d+:\d+"
SCHEMA = {
    "MPD": ({"profiles*": r"\S+", "type": "static|dynamic", "availabilityStartTime": _DATE, "publishTime": _DATE,
             "mediaPresentationDuration": _TIME, "minimumUpdatePeriod": _TIME, "minBufferTime*": _TIME,
             "maxSegmentDuration": _TIME}, ["Period"]),
    "Period": ({"id": r".+", "start": _TIME}, ["AdaptationSet"]),
    "AdaptationSet": ({"contentType": "video|audio", "segmentAlignment": "true|false", "startWithSAP": "[0-6]"},
                      ["Representation"]),
    "Representation": ({"id*": r"\S+", "bandwidth*": _UNSIGNED, "mimeType": "(video|audio)/mp4",
                        "codecs": r"avc1\.[0-9a-f]{6}|mp4a\.40\.\d+|Opus|fLaC", "audioSamplingRate": _UNSIGNED,
                        "width": _UNSIGNED, "height": _UNSIGNED, "frameRate": r"\d+(/[1-9]\d*)?", "sar": _RATIO},
                       ["AudioChannelConfiguration", "SegmentTemplate"]),
    "AudioChannelConfiguration": ({"schemeIdUri*": r"urn:[\w:]+", "value": _UNSIGNED}, []),
    "SegmentTemplate": ({"timescale": _UNSIGNED, "initialization": r"\S+", "media": r"\S*\$Number%0\d+d\$\S*",
                         "startNumber": _UNSIGNED}, ["SegmentTimeline"]),
    "SegmentTimeline": ({}, ["S"]),
    "S": ({"t": _UNSIGNED, "d*": r"[1-9]\d*", "r": r"-?\d+"}, []),
}  # fmt: skip


def manifest(text):
    """The root of an MPD; fails if it is none."""
    root = xml.etree.ElementTree.fromstring(text.encode())

    def check(element, name):
        assert element.tag == f"{{urn:mpeg:dash:schema:mpd:2011}}{name}"
        attributes, children = SCHEMA[name]
        known = {key.rstrip("*"): pattern for key, pattern in attributes.items()}
        assert {key.rstrip("*") for key in attributes if key.endswith("*")} <= element.attrib.keys() <= known.keys()
        for key, value in element.attrib.items():
            assert re.fullmatch(known[key], value), (name, key, value)
        assert bool(len(element)) == bool(children)
        names = [child.tag.partition("}")[2] for child in element]
        assert [children.index(name) for name in names] == sorted(map(children.index, names))
        for child, child_name in zip(element, names):
            check(child, child_name)

    check(root, "MPD")
    if root.attrib["type"] == "dynamic":  # 5.3.1.2
        assert "availabilityStartTime" in root.attrib and "publishTime" in root.attrib
    else:
        assert "mediaPresentationDuration" in root.attrib
    return root


def segments_of(root, content="video"):
    """(initialisation segment, [(seconds, file)]) by 5.3.9.4.4 and 5.3.9.6. The sound may begin later than 0."""
    sets = root.iter("{urn:mpeg:dash:schema:mpd:2011}AdaptationSet")
    (adaptation,) = (one for one in sets if one.attrib["contentType"] == content)
    template = next(adaptation.iter("{urn:mpeg:dash:schema:mpd:2011}SegmentTemplate"))
    number, entries, time = int(template.attrib["startNumber"]), [], 0
    for entry in adaptation.iter("{urn:mpeg:dash:schema:mpd:2011}S"):
        time = int(entry.attrib["t"]) if content == "audio" and not entries else time
        assert int(entry.attrib.get("t", time)) == time
        for _ in range(1 + int(entry.attrib.get("r", 0))):
            file = re.sub(r"\$Number%(0\d+d)\$", lambda match: f"%{match[1]}" % number, template.attrib["media"])  # noqa: B023
            entries.append((Fraction(int(entry.attrib["d"]), int(template.attrib["timescale"])), unquote(file)))
            time, number = time + int(entry.attrib["d"]), number + 1
    return unquote(template.attrib["initialization"]), entries


def listed(path):
    """(initialisation segment, [(seconds, file)], whether it is complete) of either playlist."""
    text = path.read_text()
    if path.suffix == ".mpd":
        root = manifest(text)
        return *segments_of(root), root.attrib["type"] == "static"
    tags, segments, first = parsed(text)
    return first, segments, bool(tags["#EXT-X-ENDLIST"])


def packets_of(*parts):
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(b"".join(part.read_bytes() for part in parts))) as container:
        return [(p.pts * p.time_base, p.is_keyframe) for p in container.demux(video=0) if p.size]


@pytest.mark.parametrize("name", ("o.m3u8", "o.mpd", "with blank & <ü>$.m3u8", "with blank & <ü>$.mpd"))
@pytest.mark.parametrize("options", ({}, {"bframes": 0, "tune": "zerolatency"}), ids=str)
def test_segments_are_what_the_playlist_says(tmp_path, name, options):
    """A scene cut at frame 37; each segment has its frames, begins with a keyframe and plays behind the initialisation."""
    clip = moving(FRAMES, WIDTH, HEIGHT, cut=37)
    h264lite.write_video(tmp_path / name, clip, RATE, fragment=0.5, device="cpu", **options)
    first, segments, is_complete = listed(tmp_path / name)
    assert is_complete and {first, name, *(file for _, file in segments)} == set(os.listdir(tmp_path))
    counts = [round(seconds * RATE) for seconds, _ in segments]
    assert counts == [15, 15, 15, 15, 10]
    assert all(abs(seconds - count / RATE) < 1e-6 for (seconds, _), count in zip(segments, counts))
    at = 0
    for count, (_, file) in zip(counts, segments):
        assert [kind for kind, _ in boxes_of((tmp_path / file).read_bytes())] == [b"moof", b"mdat"]
        times = packets_of(tmp_path / first, tmp_path / file)
        assert sorted(time for time, _ in times) == [n / RATE for n in range(at, at + count)]
        assert [is_keyframe for _, is_keyframe in times] == [True] + [False] * (count - 1)
        at += count


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Without a log."""

    def log_message(self, *_):
        """Nothing."""


def test_ffmpeg_plays_and_seeks_over_http(tmp_path):
    av = pytest.importorskip("av")
    h264lite.write_video(tmp_path / "a b.m3u8", moving(FRAMES, WIDTH, HEIGHT, cut=20), RATE, fragment=0.5, device="cpu")
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with av.open(f"http://127.0.0.1:{server.server_port}/{quote('a b.m3u8')}") as container:
                frames = [(frame.pts * frame.time_base, frame.key_frame) for frame in container.decode(video=0)]
                start = frames[0][0]  # FFmpeg does not take the shift of the edit list
                assert [time - start for time, _ in frames] == [n / RATE for n in range(FRAMES)]
                assert [n for n, (_, is_keyframe) in enumerate(frames) if is_keyframe] == [0, 15, 30, 45, 60]
                container.seek(int(1.1 * 1_000_000))
                frame = next(container.decode(video=0))
                assert frame.key_frame and abs(frame.pts * frame.time_base - start - 30 / RATE) < 0.01
        finally:
            server.shutdown()


@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
def test_a_playlist_that_grows_names_whole_segments_only(tmp_path, ending):
    """RFC 8216, 6.2.1: nothing but lines at the end may come, so that the tags of the first playlist stay."""
    path, seen, texts = tmp_path / f"live.{ending}", set(), []
    with h264lite.VideoWriter(path, 25, fragment=0.4, device="cpu", tune="zerolatency") as writer:
        for frame in moving(45, WIDTH, HEIGHT):
            writer.write(frame)
            if path.exists():
                first, segments, is_complete = listed(path)
                assert not is_complete and (tmp_path / first).exists() and not list(tmp_path.glob("*.part*"))
                assert all((tmp_path / file).exists() for _, file in segments)
                seen.add(len(segments))
                texts.append(path.read_text())
    assert seen == {1, 2, 3, 4}
    first, segments, is_complete = listed(path)
    assert is_complete and len(segments) == 5
    if ending == "m3u8":
        texts.append(path.read_text())
        assert all(later.startswith(earlier) for earlier, later in zip(texts, texts[1:]))


def test_a_variable_rate(tmp_path):
    """Segments by time; the target is not broken, and DASH says no frame rate."""
    times = (np.cumsum(np.random.default_rng(3).choice([1, 2, 5], 60)) / 60).tolist()
    for name in ("o.m3u8", "o.mpd"):
        h264lite.write_video(tmp_path / name, moving(60, WIDTH, HEIGHT), 25, timestamps=times, fragment=0.5, device="cpu")
        first, segments, _ = listed(tmp_path / name)
        shown = [time for _, file in segments for time, _ in packets_of(tmp_path / first, tmp_path / file)]
        assert len(shown) == 60 and max(abs(a - (b - times[0])) for a, b in zip(sorted(shown), times)) < 1e-4
        assert all(seconds >= 0.48 for seconds, _ in segments[:-1])
    assert "frameRate" not in (tmp_path / "o.mpd").read_text()


def test_by_the_command(tmp_path):
    """Four seconds without --fragment; the name or --muxer decides; the codecs are those of the SPS."""
    y4m = tmp_path / "in.y4m"
    frame = b"FRAME\n" + bytes(range(256))[:192] * 2
    y4m.write_bytes(b"YUV4MPEG2 W16 H16 F10:1 Ip C420\n" + frame * 90)
    assert main(["encode", str(y4m), str(tmp_path / "o.m3u8"), "--quiet", "--device", "cpu"]) == 0
    assert [round(seconds, 3) for seconds, _ in listed(tmp_path / "o.m3u8")[1]] == [4, 4, 1]
    words = ["--muxer", "dash", "--fragment", "3", "--sar", "4:3", "--profile", "main"]
    assert main(["encode", str(y4m), str(tmp_path / "list.mpd"), "--quiet", "--device", "cpu", *words]) == 0
    assert [seconds for seconds, _ in listed(tmp_path / "list.mpd")[1]] == [3, 3, 3]
    text = (tmp_path / "list.mpd").read_text()
    assert 'codecs="avc1.4d4' in text and 'sar="4:3"' in text and 'frameRate="10/1"' in text


def test_what_playlists_cannot_be_is_refused(tmp_path, capsys):
    clip = moving(2, WIDTH, HEIGHT)
    with pytest.raises(OptionError, match="length in seconds"):
        h264lite.write_video(tmp_path / "o.m3u8", clip, 25, device="cpu", fragment="chunk")
    with pytest.raises(OutputError, match="there is no folder"):
        h264lite.write_video(tmp_path / "none" / "o.mpd", clip, 25, device="cpu")
    assert main(["encode", "in_16x16.yuv", "-", "--muxer", "hls"]) in (1, 2)
    (tmp_path / "in_16x16.yuv").write_bytes(bytes(384))
    assert main(["encode", str(tmp_path / "in_16x16.yuv"), "-", "--muxer", "hls"]) == 2
    assert "hls writes several files" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["in_16x16.yuv"]


def test_other_files_are_left_alone(tmp_path, capsys):
    """An input that is named as a segment; a playlist that another writer writes; one whose first frame is refused."""
    clip, path = moving(30, WIDTH, HEIGHT), tmp_path / "o.m3u8"
    with h264lite.VideoWriter(path, 25, fragment=0.4, device="cpu", preset="ultrafast", tune="zerolatency") as writer:
        writer.write(clip)
        with pytest.raises(OutputError, match="another writer"):
            h264lite.write_video(path, clip, 25, device="cpu", preset="ultrafast")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(before) == 5 and listed(path)[2]
    with pytest.raises(h264lite.InputError):
        h264lite.write_video(path, [], 25, device="cpu")
    assert main(["encode", str(tmp_path / "o_init.mp4"), str(path), "--quiet"]) == 2
    assert "the first segment and input are the same" in capsys.readouterr().err
    assert before == {file.name: file.read_bytes() for file in tmp_path.iterdir()}
