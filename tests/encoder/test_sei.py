"""What an input says beside its samples is in the output: captions, user data, HDR display, title, chapters."""

import io
import struct
import types
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.errors import OptionError
from h264lite.encoder.files.left_out import hdr_of, of_container, tags_of
from h264lite.encoder.sei import captions, user_data, with_messages
from h264lite.standard.bits import NAL_SEI, split_byte_stream
from h264lite.standard.syntax import parse_sei

from ..support.moving import moving

WIDTH, HEIGHT, FRAMES = 64, 48, 9
UUID = bytes(range(16))
DISPLAY = "G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1)"


def of_frame(n):
    """Captions of frame n (CEA-608, field 1) and user data, which has start codes in it."""
    return [*captions(bytes((0xFC, 0x94, 0x20 + n))), *user_data(UUID + b"\0\0\0\1" + bytes((n,)) + b"\0\0\2")]


def stream(**options):
    """A byte stream with messages in all frames, and its packets."""
    with h264lite.Encoder(WIDTH, HEIGHT, 25, device="cpu", **options) as encoder:
        packets = [p for frame in moving(FRAMES, WIDTH, HEIGHT) for p in encoder.encode(frame)] + encoder.flush()
    return b"".join(with_messages(packet.data, of_frame(packet.pts)) for packet in packets)


def side_data(path):
    """(captions, user data) of each frame, by FFmpeg."""
    av = pytest.importorskip("av")
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            data = {entry.type.name: bytes(entry) for entry in frame.side_data}
            yield data.get("A53_CC"), data.get("SEI_UNREGISTERED")


def encode(*words):
    return main(["encode", *map(str, words), "--device", "cpu"])


WANTED = [(bytes((0xFC, 0x94, 0x20 + n)), UUID + b"\0\0\0\1" + bytes((n,)) + b"\0\0\2") for n in range(FRAMES)]


@pytest.mark.parametrize("options", ({}, {"bframes": 0, "aud": True, "slices": 2}), ids=str)
def test_captions_and_user_data_are_kept(tmp_path, capsys, options):
    pytest.importorskip("av")
    (tmp_path / "in.264").write_bytes(stream(**options))
    assert list(side_data(tmp_path / "in.264")) == WANTED
    for name in ("o.mp4", "o.264", "o.mkv"):
        assert encode(tmp_path / "in.264", tmp_path / name) == 0
        assert list(side_data(tmp_path / name)) == WANTED
    assert "left out" not in capsys.readouterr().err
    assert encode(tmp_path / "in.264", tmp_path / "o.264", "--seek", "3", "--frames", "4") == 0
    assert list(side_data(tmp_path / "o.264")) == WANTED[3:7]


def test_a_promised_buffer_has_no_room_for_them(tmp_path, capsys):
    pytest.importorskip("av")
    (tmp_path / "in.264").write_bytes(stream())
    buffer = ("--fps", "25", "--vbv-maxrate", "900", "--vbv-bufsize", "900", "--nal-hrd", "vbr")
    assert encode(tmp_path / "in.264", tmp_path / "o.264", *buffer) == 0
    assert list(side_data(tmp_path / "o.264")) == [(None, None)] * FRAMES
    assert capsys.readouterr().err.count("left out: captions and user data (--nal-hrd)") == 1


def test_messages_stand_before_the_first_slice_and_change_nothing_else():
    plain, told = b"", stream(slices=3)
    for unit in split_byte_stream(told):
        if unit.nal_unit_type == NAL_SEI and parse_sei(unit.rbsp())[0][0] == 4:
            assert parse_sei(unit.rbsp())[1][1][:16] == UUID
        else:
            plain += unit.data
    with h264lite.Encoder(WIDTH, HEIGHT, 25, device="cpu", slices=3) as encoder:
        packets = [p for frame in moving(FRAMES, WIDTH, HEIGHT) for p in encoder.encode(frame)] + encoder.flush()
    assert plain == b"".join(unit.data for packet in packets for unit in split_byte_stream(packet.data))
    assert with_messages(packets[0].data, []) == packets[0].data


def test_what_user_data_is_not_kept():
    """That of the encoder of the input, which says options that are not this one's; and what is no message."""
    x264 = bytes.fromhex("dc45e9bde6d948b7962cd820d923eeef")
    assert user_data(x264 + b"x264 - core 164") == [] and user_data(b"short") == []
    assert captions(bytes(3 * 40))[0][1][8] == 0x40 | 31 and len(captions(bytes(3 * 40))) == 2


def test_the_display_of_hdr_is_written_and_kept(tmp_path):
    av = pytest.importorskip("av")
    data = h264lite.write_video(
        None, moving(6, WIDTH, HEIGHT), 25, device="cpu", keyint=3, mastering_display=DISPLAY, cll="1000,400"
    )
    (tmp_path / "in.mp4").write_bytes(data)
    assert encode(tmp_path / "in.mp4", tmp_path / "kept.mp4") == 0
    assert encode(tmp_path / "in.mp4", tmp_path / "none.mp4", "--mastering-display", "undef", "--cll", "undef") == 0
    for name, told in (("in.mp4", True), ("kept.mp4", True), ("none.mp4", False)):
        with av.open(str(tmp_path / name)) as container:
            frame = next(container.decode(video=0))
            light = {entry.type.name: bytes(entry) for entry in frame.side_data}
        assert ("MASTERING_DISPLAY_METADATA" in light) == ("CONTENT_LIGHT_LEVEL" in light) == told
        if told:
            assert np.frombuffer(light["CONTENT_LIGHT_LEVEL"], np.uint32)[:2].tolist() == [1000, 400]
            numbers = np.frombuffer(light["MASTERING_DISPLAY_METADATA"], np.int32)[:20].reshape(10, 2).tolist()
            values = [Fraction(*pair) for pair in numbers]  # red, green, blue, white; least light, most
            wanted = [Fraction(n, 50000) for n in (34000, 16000, 13250, 34500, 7500, 3000, 15635, 16450)]
            assert values == [*wanted, Fraction(1, 10000), 1000]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mastering_display": "G(1,2)"}, "not of the form"),
        ({"mastering_display": (1, 2, 3)}, "not of the form"),
        ({"mastering_display": DISPLAY.replace("34500", "50001")}, "not in 0..50000"),
        ({"mastering_display": DISPLAY.replace("L(10000000,1)", "L(5,5)")}, "below"),
        ({"cll": "1"}, "MAX,AVG"),
        ({"cll": (1, 70000)}, "65535"),
    ],
)
def test_displays_that_cannot_be_are_refused(options, said):
    with pytest.raises(OptionError, match=said):
        h264lite.Encoder(WIDTH, HEIGHT, 25, device="cpu", **options)


def display_of(*numbers, has=(1, 1), light=(1000, 400)):
    """A frame with FFmpeg's structures: fractions of red, green, blue, white, least and most light."""
    pairs = [part for number in numbers for part in (number if isinstance(number, tuple) else (number, 50000))]
    data = {"MASTERING_DISPLAY_METADATA": struct.pack("22i", *pairs, *has), "CONTENT_LIGHT_LEVEL": struct.pack("2I", *light)}
    return types.SimpleNamespace(side_data=data)


GOOD = (34000, 16000, 13250, 34500, 7500, 3000, 15635, 16450, (1, 10000), (1000, 1))


@pytest.mark.parametrize(
    ("frame", "wanted"),
    [
        (display_of(*GOOD), {"mastering_display": DISPLAY, "cll": "1000,400"}),
        (display_of(*GOOD, has=(1, 0), light=(70000, 0)), {"cll": "65535,0"}),
        (display_of(*GOOD[:8], (5, 1), (5, 1)), {"cll": "1000,400"}),  # no light between
        (display_of(*((0, 0),) * 10), {"cll": "1000,400"}),
        (display_of(-1, *GOOD[1:]), {"cll": "1000,400"}),
    ],
)
def test_displays_of_inputs_that_cannot_be_are_left_out(frame, wanted):
    assert hdr_of(frame) == wanted


def test_odd_tags_of_inputs_end_no_encode():
    """Chapters before the start and in a million years, more than a byte counts; a text of many pages."""
    starts = [-5, *range(300), 10**18]
    chapters = [{"start": at, "time_base": Fraction(1, 1000), "metadata": {}} for at in starts]
    container = types.SimpleNamespace(
        streams=[], chapters=lambda: chapters, metadata={"title": "T", "lyrics": "a" * 70000, "_private": "b"}
    )
    video = types.SimpleNamespace(index=0, metadata={"encoder": "x"})
    tags = tags_of(container, video)
    assert tags.metadata == {"title": "T"} and len(tags.chapters) == 255 and tags.chapters[0] == (0, "")
    assert len(tags.boxes()) > 255
    assert of_container(container, video) == ["47 chapters", "metadata (lyrics)"]


# Title and chapters -----------------------------------------------------------------------------------------------------

METADATA = {"title": "Käse", "artist": "A", "comment": "two\nlines", "com.example.seed": "42"}
CHAPTERS = [(0, "Start"), (Fraction(1, 10), "Middle"), (0.25, "Ende ü")]


def told(source):
    """(metadata in lower case but that of containers, chapters in seconds), by FFmpeg."""
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(source) if isinstance(source, bytes) else str(source)) as container:
        chapters = [(float(c["start"] * c["time_base"]), c["metadata"].get("title")) for c in container.chapters()]
        names = {name.lower(): text for name, text in container.metadata.items()}
    of_format = ("encoder", "minor_version", "major_brand", "compatible_brands")
    return {name: text for name, text in names.items() if name not in of_format}, chapters


@pytest.mark.parametrize("fragment", (None, 0.2))
def test_metadata_and_chapters(tmp_path, fragment):
    clip, both = moving(10, WIDTH, HEIGHT), {"metadata": METADATA, "chapters": CHAPTERS}
    wanted = METADATA, [(float(begin), title) for begin, title in CHAPTERS]
    assert told(h264lite.write_video(None, clip, 25, device="cpu", fragment=fragment, **both)) == wanted
    for name in () if fragment else ("o.mp4", "o.mov", "o.mkv"):
        h264lite.write_video(tmp_path / name, clip, 25, device="cpu", **both)
        assert told(tmp_path / name) == wanted
        assert encode(tmp_path / name, tmp_path / "again.mp4") == 0  # kept by an encode of the file
        assert told(tmp_path / "again.mp4") == wanted
        assert encode(tmp_path / name, tmp_path / "part.mp4", "--seek", "4") == 0  # which skips 0.16 s
        assert [title for _, title in told(tmp_path / "part.mp4")[1]] == ["Middle", "Ende ü"]
        assert [round(begin, 3) for begin, _ in told(tmp_path / "part.mp4")[1]] == [0, 0.09]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metadata": "title"}, "not names and texts"),
        ({"metadata": {1: "a"}}, "not a name"),
        ({"metadata": {"a": ["b"]}}, "not a text"),
        ({"metadata": {"a": "\ud800"}}, "no Unicode"),
        ({"metadata": {"a": "b" * (1 << 20) + "c"}}, "not more than"),
        ({"chapters": "a"}, "not pairs"),
        ({"chapters": [(1, "a"), (0, "b")]}, "in order"),
        ({"chapters": [(0, 5)]}, "not pairs"),
        ({"chapters": [(n, "a") for n in range(256)]}, "256 chapters"),
    ],
)
def test_what_files_cannot_say_is_refused(options, said, tmp_path):
    with pytest.raises(OptionError, match=said):
        h264lite.VideoWriter(None, 25, **options)
    with pytest.raises(OptionError, match="a byte stream has none"):
        h264lite.VideoWriter(tmp_path / "o.264", 25, metadata=METADATA)
