"""Raw and Y4M input: every header parameter, sizes from names, seeking, cut-off and damaged files."""

import io
import re
from fractions import Fraction

import numpy as np
import pytest
from h264lite.encoder.errors import InputError, OptionError
from h264lite.encoder.files.names import rate_from_name, size_from_name
from h264lite.encoder.files.opening import open_source
from h264lite.encoder.files.video import (
    RawSource,
    VideoFormat,
    frame_bytes,
    parse_y4m_header,
)


def raw_bytes(width, height, frames, seed=3):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, frame_bytes(width, height) * frames, np.uint8).tobytes()


def read_all(source, seek=0, count=0):
    return [b"".join(plane.tobytes() for plane in planes) for planes in source.frames(seek, count)]


def y4m_bytes(width, height, frames, head="", frame_head=b"FRAME\n"):
    data, size = raw_bytes(width, height, frames), frame_bytes(width, height)
    parts = [f"YUV4MPEG2 W{width} H{height} F25:1{head}\n".encode()]
    return b"".join(parts + [frame_head + data[n * size : (n + 1) * size] for n in range(frames)])


@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 2), (16, 16), (17, 33), (175, 143)])
@pytest.mark.parametrize("y4m", [False, True])
def test_frames_come_back_byte_for_byte(tmp_path, width, height, y4m):
    path = tmp_path / f"clip_{width}x{height}.{'y4m' if y4m else 'yuv'}"
    data, size = raw_bytes(width, height, 5), frame_bytes(width, height)
    path.write_bytes(y4m_bytes(width, height, 5) if y4m else data)
    whole = [data[n * size : (n + 1) * size] for n in range(5)]
    for seek, count, expected in ((0, 0, whole), (0, 3, whole[:3]), (2, 2, whole[2:4]), (4, 9, whole[4:]),
                                  (5, 0, []), (9, 1, [])):
        source = open_source(str(path), None)
        assert source.format.frames == 5
        assert (source.format.width, source.format.height) == (width, height)
        assert read_all(source, seek, count) == expected
        assert source.left_over == 0
        source.close()


def test_chroma_planes_round_up():
    assert frame_bytes(17, 33) == 17 * 33 + 2 * 9 * 17
    source = RawSource(io.BytesIO(raw_bytes(17, 33, 1)), "x", VideoFormat(17, 33))
    y, u, v = next(source.frames())
    assert y.shape == (33, 17) and u.shape == v.shape == (17, 9)
    assert y.flags.c_contiguous and u.flags.c_contiguous and v.dtype == np.uint8


@pytest.mark.parametrize(
    ("name", "size"),
    [("foreman_352x288.yuv", (352, 288)), ("foreman_352x288_30.yuv", (352, 288)), ("/a/1x1_b/x_16x32.yuv", (16, 32)),
     ("4x4_to_8x8.yuv", (8, 8)), ("640x480.yuv", (640, 480)), ("clip.yuv", None), ("0x10ab.yuv", None),
     ("size_352x288x3.yuv", None), ("a/352x288/clip.yuv", None), ("x_0x0.yuv", None), ("x_16x0.yuv", None)],
)
def test_sizes_from_names(name, size):
    assert size_from_name(name) == size


@pytest.mark.parametrize(("name", "rate"), [
    ("a/foreman_352x288_30.yuv", 30), ("x_352x288_29.97.yuv", Fraction(30000, 1001)), ("x-1920x1080-60.yuv", 60),
    ("x_352x288_30000_1001.yuv", Fraction(30000, 1001)), ("x_352x288_24000-1001_8bit.yuv", Fraction(24000, 1001)),
    ("Bosphorus_1920x1080_120fps_420_8bit_YUV.yuv", 120), ("50Hz_x_352x288.yuv", 50), ("x_12.5FPS_2x2.yuv", Fraction(25, 2)),
    ("x_352x288_60_8bit.yuv", 60), ("30/x_352x288.yuv", None), ("x_352x288.yuv", None), ("x_352x288_300.yuv", None),
    ("x_352x288_30_60.yuv", None), ("x_352x288_1001.yuv", None), ("x_352x288_15.yuv", None), ("x_30_352x288.yuv", None),
    ("x_352x288_30f.yuv", None), ("x_25fps_30fps_2x2.yuv", None), ("x_352x288_30.5.yuv", None), ("x_0fps_2x2.yuv", None),
    ("x_352x288_030.yuv", None), ("x_fps_352x288.yuv", None), ("-", None), ("x_352x288_30", None),
])
def test_rate_from_name_where_it_is_certain(name, rate):
    assert rate_from_name(name) == rate


def test_raw_video_without_a_size_is_refused(tmp_path):
    path = tmp_path / "clip.yuv"
    path.write_bytes(b"1234")
    with pytest.raises(OptionError, match="input_res WxH"):
        open_source(str(path), None)


@pytest.mark.parametrize(("extra", "read"), [
    (" Ip", {}), (" I?", {}), (" A12:11", {"sar": (12, 11)}), (" A0:0", {}), (" C420", {}), (" C420jpeg", {}),
    (" C420mpeg2", {}), (" C420paldv", {}), (" XYSCSS=420JPEG", {}), (" XCOLORRANGE=FULL", {"full_range": True}),
    (" XCOLORRANGE=LIMITED", {"full_range": False}), (" XCOLORRANGE=?", {}),
    (" Ip A1:1 C420jpeg XA XB", {"sar": (1, 1)}),
])
def test_y4m_parameters(extra, read):
    video = parse_y4m_header(f"YUV4MPEG2 W352 H288 F30000:1001{extra}\n".encode(), "x")
    assert (video.width, video.height, video.fps) == (352, 288, Fraction(30000, 1001))
    assert (video.sar, video.full_range) == (read.get("sar"), read.get("full_range"))


def test_y4m_without_a_rate():
    assert parse_y4m_header(b"YUV4MPEG2 W2 H2 F0:0\n", "x").fps is None
    assert parse_y4m_header(b"YUV4MPEG2 H2 W2\n", "x").fps is None


@pytest.mark.parametrize("header", [
    b"YUV4MPEG W2 H2\n", b"YUV4MPEG2\n", b"YUV4MPEG2 W2 H2", b"YUV4MPEG2 W2\n", b"YUV4MPEG2 W0 H2\n",
    b"YUV4MPEG2 W-2 H2\n", b"YUV4MPEG2 W2x H2\n", b"YUV4MPEG2 W99999999999999999999 H2\n", b"YUV4MPEG2 W2 H2 F25\n",
    b"YUV4MPEG2 W2 H2 Fa:b\n", b"YUV4MPEG2 W2 H2 A1\n", b"YUV4MPEG2 W2 H2 It\n", b"YUV4MPEG2 W2 H2 Ib\n",
    b"YUV4MPEG2 W2 H2 Im\n", b"YUV4MPEG2 W2 H2 C422\n", b"YUV4MPEG2 W2 H2 C444\n", b"YUV4MPEG2 W2 H2 C420p10\n",
    b"YUV4MPEG2 W2 H2 Cmono\n", b"YUV4MPEG2 W2 H2 C444alpha\n", b"YUV4MPEG2 W2 H2 C411\n", b"YUV4MPEG2 W2 H2 Q7\n",
    b"YUV4MPEG2 W2 H2 \xff\xfe\n",
], ids=repr)
def test_bad_y4m_headers_are_refused_in_one_line(header):
    with pytest.raises(InputError) as caught:
        parse_y4m_header(header, "name.y4m")
    assert str(caught.value).startswith("name.y4m: ") and "\n" not in str(caught.value)


def test_a_foreign_chroma_format_is_refused_by_its_name():
    for chroma in ("422", "444", "420p10", "mono", "411"):
        with pytest.raises(InputError, match=f"C{chroma} is not supported"):
            parse_y4m_header(f"YUV4MPEG2 W2 H2 C{chroma}\n".encode(), "x")


def test_refusals_of_y4m_give_the_line_that_converts():
    for header, line in (("C422", "-pix_fmt yuv420p 'a clip_yuv420p.y4m'"),
                         ("It", "-vf bwdif=send_frame 'a clip_progressive.y4m'")):  # fmt: skip
        with pytest.raises(InputError, match=re.escape(f"ffmpeg -i 'a clip.y4m' {line}")):
            parse_y4m_header(f"YUV4MPEG2 W2 H2 {header}\n".encode(), "a clip.y4m")


def test_frame_headers_may_have_parameters_but_not_be_interlaced(tmp_path):
    path = tmp_path / "x.y4m"
    path.write_bytes(y4m_bytes(4, 4, 3, frame_head=b"FRAME Ip XNOTE=1\n"))
    assert len(read_all(open_source(str(path), None))) == 3
    path.write_bytes(y4m_bytes(4, 4, 3, frame_head=b"FRAME It1p\n"))
    with pytest.raises(InputError, match="interlaced"):
        read_all(open_source(str(path), None))
    path.write_bytes(y4m_bytes(4, 4, 3, frame_head=b"FRUME\n"))
    with pytest.raises(InputError, match="frame 0 has no FRAME header"):
        read_all(open_source(str(path), None))


@pytest.mark.parametrize("y4m", [False, True])
def test_a_file_cut_anywhere_gives_its_whole_frames_and_says_what_is_left(tmp_path, y4m):
    width, height = 6, 4
    whole = y4m_bytes(width, height, 3) if y4m else raw_bytes(width, height, 3)
    step = frame_bytes(width, height) + 6 * y4m
    head = len(whole) - 3 * step
    path = tmp_path / ("x.y4m" if y4m else "x_6x4.yuv")
    for length in range(head + 1, len(whole)):
        path.write_bytes(whole[:length])
        source = open_source(str(path), None)
        assert len(read_all(source)) == (length - head) // step
        assert source.left_over == (length - head) % step
        source.close()


def test_what_is_left_over_is_not_looked_at_when_fewer_frames_are_asked_for(tmp_path):
    path = tmp_path / "x_6x4.yuv"
    path.write_bytes(raw_bytes(6, 4, 3)[:-1])
    source = open_source(str(path), None)
    assert len(read_all(source, 0, 2)) == 2 and source.left_over == 0


def test_missing_empty_and_strange_files(tmp_path):
    empty = tmp_path / "empty_2x2.yuv"
    empty.touch()
    for name, words in ((tmp_path / "absent_2x2.yuv", "no such file"), (tmp_path, "is a directory"), (empty, "empty"),
                        ("bad\0name_2x2.yuv", "null")):
        with pytest.raises(InputError, match=words):
            open_source(str(name), None)
    wrong = tmp_path / "wrong.y4m"
    wrong.write_bytes(b"RIFF1234")
    with pytest.raises(InputError, match="not a Y4M file"):
        open_source(str(wrong), None)


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "x_64x64.yuv"
    path.write_bytes(raw_bytes(64, 64, 50))
    source = open_source(str(path), None)
    assert len({planes[0].ctypes.data for planes in source.frames(0, 0)}) == 1


def test_a_container_is_decoded_without_conversion(tmp_path):
    av = pytest.importorskip("av")
    path, pictures = tmp_path / "x.mkv", np.random.default_rng(5).integers(0, 256, (4, 48, 40), np.uint8)
    with av.open(str(path), "w") as out:
        stream = out.add_stream("ffv1", rate=Fraction(24000, 1001))
        stream.width, stream.height, stream.pix_fmt = 40, 32, "yuv420p"
        for picture in pictures:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="yuv420p")))
        out.mux(stream.encode(None))
    source = open_source(str(path), None)
    assert source.format.fps == Fraction(24000, 1001)
    assert read_all(source) == [picture.tobytes() for picture in pictures]
    assert read_all(open_source(str(path), None), 1, 2) == [picture.tobytes() for picture in pictures[1:3]]


def test_a_container_of_another_format_is_refused_by_name(tmp_path):
    av = pytest.importorskip("av")
    path = tmp_path / "x.mkv"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv422p"
        out.mux(stream.encode(av.VideoFrame(32, 32, "yuv422p")))
        out.mux(stream.encode(None))
    with pytest.raises(InputError, match="yuv422p is not supported"):
        open_source(str(path), None)
    noise = tmp_path / "noise.dat"
    noise.write_bytes(bytes(range(256)) * 8)
    with pytest.raises(InputError, match="input-res"):
        open_source(str(noise), None)
