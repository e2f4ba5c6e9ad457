"""Image files as input: lists, counters and patterns, their order, sizes and colours; both libraries that read them."""

import struct
import sys
import zlib

import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.errors import InputError, OptionError
from h264lite.encoder.files.images import ImageSource
from h264lite.encoder.files.names import image_files
from h264lite.scheduler.frames.host_rgb import RgbFrame

from ..support import fake_pipeline
from .test_cli import FRAME, fake, one_error  # noqa: F401

Image = pytest.importorskip("PIL.Image", reason="Pillow writes the images")
WIDTH, HEIGHT = 22, 18


def planes(rgb):
    """By the conversion of the encoder."""
    height, width = rgb.shape[:2]
    return RgbFrame("uint8", width, height, rgb.reshape(-1), (0, 1, 2, 3, 3 * width), 0.0, 255.0, rgb).planes()[0]


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """frame_1.png .. frame_12.png in the current folder; returns their RGB samples."""
    monkeypatch.chdir(tmp_path)
    rgb = np.random.default_rng(5).integers(0, 256, (12, HEIGHT, WIDTH, 3), np.uint8)
    for n, samples in enumerate(rgb, 1):
        Image.fromarray(samples).save(f"frame_{n}.png")
    return rgb


@pytest.mark.parametrize("words", ["frame_%d.png", "*.png", "frame_[0-9]*.png", None], ids=str)
@pytest.mark.parametrize("library", ["PIL", "av"])
def test_frames_in_natural_order_by_either_library(pictures, fake, monkeypatch, capfd, words, library):  # noqa: F811
    pytest.importorskip(library)
    monkeypatch.setitem(sys.modules, "PIL" if library == "av" else "av", None)
    inputs = [words] if words else sorted(f"frame_{n}.png" for n in range(1, 13))  # as a shell lists *.png
    seen = []
    monkeypatch.setattr(fake_pipeline.Pipeline, "close", lambda self: seen.append(self.config))
    assert fake(*inputs, "--qp", 30, "out.264", "--dump-yuv", "r.yuv", "--progress", "none") == 0
    expected = b"".join(plane.tobytes() for rgb in pictures for plane in planes(rgb))
    assert open("r.yuv", "rb").read() == expected
    config = seen[0]
    assert (config.coding.width, config.coding.height, config.video.fps) == (WIDTH, HEIGHT, 25) and config.rate.qp == 30
    assert (config.video.colorprim, config.video.transfer, config.video.colormatrix, config.video.range) == (1, 1, 1, 0)
    assert "25 fps are assumed: images have no frame rate; see --fps" in capfd.readouterr().err


def test_seek_frames_and_a_single_image(pictures, fake):  # noqa: F811
    assert fake("*.png", "o.264", "--seek", 9, "--frames", 2, "--dump-yuv", "r.yuv", "--quiet") == 0
    assert open("r.yuv", "rb").read() == b"".join(p.tobytes() for rgb in pictures[9:11] for p in planes(rgb))
    assert fake("frame_3.png", "o.264", "--dump-yuv", "r.yuv", "--quiet") == 0
    assert open("r.yuv", "rb").read() == b"".join(p.tobytes() for p in planes(pictures[2]))
    assert len(FRAME.findall(open("o.264", "rb").read())) == 1


def test_which_files_are_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "a/f_0007.png a/f_0008.png a/f_0010.png a/f_8.png b/x1.png b/x02.png b/x10.PNG 100%d.png".split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert image_files(["b/x1.png", "b/x10.PNG", "b/x2.png"]) == ["b/x1.png", "b/x2.png", "b/x10.PNG"]
    assert image_files(["b.png", "a.png", "c9.png", "c10.png"]) == ["b.png", "a.png", "c9.png", "c10.png"], "the user's order"
    assert image_files(["100%d.png"]) == ["100%d.png"] and image_files(["clip.yuv"]) == image_files(["-"]) == []
    assert image_files(["b/x*.png"]) == ["b/x1.png", "b/x02.png"] and image_files(["no.png"]) == ["no.png"]
    with pytest.raises(InputError, match=r"a/f_%04d.png: number 9 is missing, after f_0008.png"):
        image_files(["a/f_%04d.png"])
    (tmp_path / "a/f_0010.png").unlink()
    assert image_files(["a/f_%04d.png"]) == ["a/f_0007.png", "a/f_0008.png"] and image_files(["a/f_%d.png"]) == ["a/f_8.png"]
    for name in ("a/g_%04d.png", "no/f_%d.png", "c*.png", "b/y?.jpg"):
        with pytest.raises(InputError, match="no such f"):
            image_files([name])
    with pytest.raises(OptionError, match=r"clip.yuv: with several inputs all are images"):
        image_files(["a.png", "clip.yuv"])


def test_samples_of_other_kinds(tmp_path, fake, capfd, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    rgba = np.random.default_rng(6).integers(0, 256, (4, 6, 4), np.uint8)
    Image.fromarray(rgba).save("rgba.png")
    Image.fromarray(rgba[..., 0]).save("grey.png")
    Image.fromarray(rgba[..., :3]).quantize(200).save("palette.png")
    Image.fromarray(rgba[..., 0].astype(np.uint16) * 256).save("deep.png")
    assert fake("rgba.png", "grey.png", "o.264", "--dump-yuv", "r.yuv", "--progress", "none") == 0
    assert "rgba.png and others: left out: alpha" in capfd.readouterr().err
    grey = np.repeat(rgba[..., :1], 3, axis=2)
    assert open("r.yuv", "rb").read() == b"".join(
        p.tobytes() for rgb in (np.ascontiguousarray(rgba[..., :3]), grey) for p in planes(rgb))
    assert fake("palette.png", "o.264", "--quiet") == 0
    for missing, expected in (("none", "only 8-bit"), ("PIL", "only images with 8 bits"), ("av", "need Pillow or PyAV")):
        monkeypatch.setitem(sys.modules, missing, None)
        assert fake("deep.png", "p.264") == 1
        one_error(capfd.readouterr().err, "deep.png: ", expected)


def test_images_that_are_refused(pictures, fake, tmp_path, capfd):  # noqa: F811
    Image.new("RGB", (WIDTH, HEIGHT + 2)).save("other.png")
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "cut.png").write_bytes((tmp_path / "frame_1.png").read_bytes()[:200])
    for words, code, expected in (
        (["frame_1.png", "other.png", "o.264"], 1, f"other.png is {WIDTH}x{HEIGHT + 2}, and frame_1.png is {WIDTH}x{HEIGHT}"),
        (["absent.png", "o.264"], 1, "absent.png: no such file"), (["text.png", "o.264"], 1, "text.png: no image that"),
        (["cut.png", "o.264"], 1, "cut.png: no image that can be read"), (["*.jpg", "o.264"], 1, "*.jpg: no such files"),
        (["frame_1.png", "frame_2.png", "frame_3.png"], 2, "frame_3.png: .png is no output format"),
        (["frame_*.png", "o.264", "--colormatrix", "smpte170m"], 2, "--colormatrix smpte170m: images become BT.709 in"),
        (["frame_*.png", "o.264", "--range", "pc"], 2, "--range pc: images become BT.709"),
        (["frame_1.png", "frame_2.png", "o.264", "--demuxer", "raw"], 2, "--demuxer raw with several inputs"),
        (["frame_1.png", "frame_2.png", "o.264", "--dump-yuv", "frame_2.png"], 2, "dump-yuv and input 2 are the same"),
        (["frame_1.png", "o.264", "--input-res", "16x16"], 2, "--input-res 16x16 contradicts the input"),
    ):  # fmt: skip
        assert fake(*words) == code, words
        one_error(capfd.readouterr().err, expected)
        assert (tmp_path / "o.264").exists() == ("other.png" in words)
        (tmp_path / "o.264").unlink(missing_ok=True)


def test_the_real_encoder_takes_images_and_an_interrupt_leaves_no_thread(pictures, tmp_path):
    assert main(["encode", "*.png", "o.264", "--dump-yuv", "r.yuv", "--fps", "10", "--quiet", "--threads", "1"]) == 0
    assert (tmp_path / "r.yuv").stat().st_size == 12 * WIDTH * HEIGHT * 3 // 2
    frames = ImageSource([f"frame_{n}.png" for n in range(1, 13)]).frames()
    first = next(frames)
    assert all(np.array_equal(one, other) for one, other in zip(first, planes(pictures[0])))
    frames.close()


@pytest.mark.parametrize("library", ["PIL", "av"])
def test_sixteen_bits_are_refused(tmp_path, monkeypatch, library):
    """Pillow reads such an RGB image as 8 bits without a word."""
    pytest.importorskip(library)
    monkeypatch.setitem(sys.modules, "PIL" if library == "av" else "av", None)

    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(6 * WIDTH) for _ in range(HEIGHT))  # filter 0; 6 bytes a pixel
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 16, 2, 0, 0, 0)  # 16 bits, RGB
    name = tmp_path / "deep.png"
    name.write_bytes(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
    with pytest.raises(InputError, match=r"deep\.png: .* not supported; only"):
        ImageSource([str(name)])
