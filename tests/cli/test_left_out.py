"""What an input has and the output lacks is told, each thing once; images are shown upright."""

import io
import sys
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.files import left_out
from h264lite.encoder.files.opening import open_source
from h264lite.standard.bits import NAL_IDR, NAL_SEI, NAL_SLICE, nal_unit, split_byte_stream

from .test_input_metadata import av, encode, make, one_warning

Image = pytest.importorskip("PIL.Image", reason="Pillow writes the images")
CAPTIONS = bytes([4, 14, 0xB5, 0, 0x31]) + b"GA94" + bytes([3, 0x41, 0xFF, 0xFC, 0x94, 0x2C, 0xFF, 0x80])  # ATSC A/53, SEI


def captioned(path, first):
    """A stream with captions from access unit `first` on."""
    frames, data, n = np.random.default_rng(2).integers(0, 256, (4, 32, 48, 3), np.uint8), b"", 0
    for unit in split_byte_stream(h264lite.encode(frames, qp=40, bframes=0, ref=1, device="cpu")):
        if unit.nal_unit_type in (NAL_IDR, NAL_SLICE):
            data += nal_unit(NAL_SEI, 0, CAPTIONS) * (n >= first)
            n += 1
        data += b"\0\0\0\1" + unit.data
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("first", [0, 2])
def test_captions_are_kept(tmp_path, capfd, first):
    source = captioned(tmp_path / "in.264", first)
    with av.open(str(source)) as container:
        assert ["A53_CC" in frame.side_data for frame in container.decode(video=0)] == [n >= first for n in range(4)]
    assert encode(source, tmp_path / "o.mp4") == 0
    assert not capfd.readouterr().err
    with av.open(str(tmp_path / "o.mp4")) as container:
        assert ["A53_CC" in frame.side_data for frame in container.decode(video=0)] == [n >= first for n in range(4)]


def full(path):
    """A clip with whatever Matroska holds."""
    with av.open(str(path), "w") as out:
        out.metadata.update({"title": "T", "artist": "A", "comment": "", "encoder": "E"})
        out.set_chapters([{"id": k, "start": 10 * k, "end": 10 * k + 9, "time_base": Fraction(1, 1000), "metadata": {}}
                          for k in range(2)])  # fmt: skip
        videos = [out.add_stream("ffv1", rate=25, width=48, height=32, pix_fmt="yuv420p") for _ in range(2)]
        sounds = [out.add_stream("pcm_s16le", rate=48000, layout="mono") for _ in range(3)]
        out.add_attachment("font.ttf", "font/ttf", b"font")
        for stream in videos:
            out.mux(stream.encode(av.VideoFrame(48, 32, "yuv420p")))
            out.mux(stream.encode(None))
        for stream in sounds:
            frame = av.AudioFrame("s16", "mono", 960)
            frame.sample_rate = 48000
            out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
    return path


def test_tracks_are_told_and_chapters_and_metadata_kept(tmp_path, capfd):
    source = full(tmp_path / "in.mkv")
    assert encode(source, tmp_path / "o.mp4", "--audio", str(source)) == 0
    one_warning(capfd.readouterr().err, "in.mkv: left out: the second video track, 2 more sound tracks, an attachment\n")
    with av.open(str(tmp_path / "o.mp4")) as container:
        assert container.metadata["title"] == "T" and container.metadata["artist"] == "A" and len(container.chapters()) == 2
    assert encode(make(tmp_path / "plain.mkv", codec="ffv1"), tmp_path / "o.mp4") == 0
    assert encode(make(tmp_path / "plain.mp4", codec="mpeg4"), tmp_path / "o.mp4") == 0
    assert not capfd.readouterr().err, "nothing but the samples was in it"


class Stream:
    """What `of_container` looks at."""

    class disposition(int):
        attached_pic = 1024

    def __init__(self, index, kind, cover=False, **metadata):
        self.index, self.type, self.metadata, self.disposition = index, kind, metadata, Stream.disposition(1024 * cover)


def test_words_of_other_tracks():
    kinds = ["video", "audio", "subtitle", "subtitle", "data", "data"]
    streams = [Stream(k, kind, ALPHA_MODE="1", handler_name="H") for k, kind in enumerate(kinds)] + [Stream(6, "video", True)]

    class Container:
        metadata = dict.fromkeys("abcdefgh", "x") | {"major_brand": "isom", "_STATISTICS": "x"}

        def chapters(self):
            return [{"start": k, "time_base": Fraction(1), "metadata": {}} for k in range(left_out.MOST_CHAPTERS + 1)]

    Container.streams = streams
    others = ["2 tracks of subtitles", "a data track", "the cover picture", "a chapter"]
    assert left_out.of_container(Container(), streams[0]) == [*others, "alpha"]
    Container.metadata = dict.fromkeys("abcdefgh", "x" * (left_out._LONGEST_TEXT + 1))
    long = "metadata (a, b, c, d, e, f, and others)"
    assert left_out.of_container(Container(), streams[0]) == [*others, long, "alpha"]


def test_side_data_of_unknown_types_says_nothing():
    class Frame:
        @property
        def side_data(self):
            raise ValueError("31 is not a valid Type")

    assert left_out.of_frame(Frame()) == [] and left_out.side_data(Frame()).get("DISPLAYMATRIX") is None


# Images --------------------------------------------------------------------------------------------------------------


def oriented(path, orientation, format=None, size=(12, 8), **more):
    """An image whose EXIF asks to turn it; returns what is shown."""
    rgb = np.random.default_rng(orientation).integers(0, 256, (size[1], size[0], 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(rgb).save(path, format, exif=exif, **more)
    rows = rgb if orientation < 5 else rgb.transpose(1, 0, 2)
    down, across = 1 - 2 * (orientation in (3, 4, 7, 8)), 1 - 2 * (orientation in (2, 3, 6, 7))
    return np.ascontiguousarray(rows[::down, ::across])




@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_upright(tmp_path, orientation):
    for kind in ("png", "tif", "webp"):
        path = tmp_path / f"a.{kind}"
        upright = oriented(path, orientation, **({"lossless": True} if kind == "webp" else {}))
        source = open_images(path)
        assert (source.format.width, source.format.height) == upright.shape[1::-1]
        array = io.BytesIO()
        Image.fromarray(upright).save(array, "png")
        plain = tmp_path / "plain.png"
        plain.write_bytes(array.getvalue())
        for plane, expected in zip(next(source.frames()), next(open_images(plain).frames())):
            np.testing.assert_array_equal(plane, expected)
        with Image.open(path) as image:
            assert h264lite.encode([image], qp=0, device="cpu") == h264lite.encode([upright], qp=0, device="cpu")


def open_images(*paths):
    from h264lite.encoder.files.images import ImageSource

    return ImageSource([str(path) for path in paths])


def test_orientations_that_differ(tmp_path, capfd):
    for name, orientation, size in (("a", 1, (12, 8)), ("b", 3, (12, 8)), ("c", 6, (12, 8)), ("d", 6, (8, 12))):
        oriented(tmp_path / f"{name}.png", orientation, size=size)
    names = [str(tmp_path / f"{name}.png") for name in "abdc"]
    assert main(["encode", *names[:3], str(tmp_path / "o.264"), "--quiet"]) == 0, "all are 12x8 upright"
    assert main(["encode", *names, str(tmp_path / "o.264"), "--quiet"]) == 1
    said = capfd.readouterr().err
    assert "c.png is 8x12 by its EXIF orientation, and " in said and "a.png is 12x8: images of a video have one size" in said


def test_broken_exif_turns_nothing(tmp_path):
    rgb = np.random.default_rng(1).integers(0, 256, (4, 6, 3), np.uint8)
    for k, exif in enumerate((b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12", b"nonsense")):
        Image.fromarray(rgb).save(tmp_path / f"{k}.webp", exif=exif, lossless=True)
        assert open_images(tmp_path / f"{k}.webp").format.width == 6


def test_without_pillow_turned_images_are_refused(tmp_path, capfd, monkeypatch):
    oriented(tmp_path / "a.png", 6)
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["encode", str(tmp_path / "a.png"), str(tmp_path / "o.264"), "--quiet"]) == 1
    assert "a.png: its EXIF orientation turns it, which needs Pillow" in capfd.readouterr().err


@pytest.mark.parametrize("library", ["PIL", "av"])
def test_alpha_of_a_later_image_and_further_pictures_are_told(tmp_path, capfd, monkeypatch, library):
    monkeypatch.chdir(tmp_path)
    still = Image.new("RGB", (12, 8))
    still.save("a.png")
    Image.new("RGBA", (12, 8)).save("b.png")
    still.save("c.png", save_all=True, append_images=[Image.new("RGB", (12, 8), 7)] * 2)
    if library == "av":
        monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["encode", "a.png", "b.png", "a.png", "b.png", "o.264", "--quiet"]) == 0
    one_warning(capfd.readouterr().err, "a.png and others: left out: alpha\n")
    if library == "PIL":  # PyAV reads such a file as a video
        assert main(["encode", "c.png", "o.264", "--quiet"]) == 0
        one_warning(capfd.readouterr().err, "c.png: left out: further pictures of the same file\n")


def test_transparency_of_images_in_memory_is_told(tmp_path):
    Image.new("P", (12, 8)).save(tmp_path / "p.png", transparency=0)
    with Image.open(tmp_path / "p.png") as palette:
        for image in (Image.new("LA", (12, 8)), Image.new("RGBA", (12, 8)), palette):
            with pytest.warns(RuntimeWarning, match="alpha"):
                h264lite.encode([image], qp=40, device="cpu")


def test_a_source_of_raw_video_leaves_out_nothing(tmp_path):
    (tmp_path / "x_4x4.yuv").write_bytes(bytes(24))
    assert open_source(str(tmp_path / "x_4x4.yuv"), None).left_out == []
