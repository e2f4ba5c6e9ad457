"""`--info-sei` and `--aud`: where they stand in a frame, what they say, and that nothing else changes."""

import re

import h264lite
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.info_sei import ENCODER_UUID, info_text
from h264lite.encoder.settings.config import Config
from h264lite.standard.bits import NAL_AUD, NAL_IDR, NAL_PPS, NAL_SEI, NAL_SLICE, NAL_SPS, nal_unit, split_byte_stream
from h264lite.standard.syntax import parse_access_unit_delimiter, parse_sei, write_sei

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..support import round_trip

SIZE = 48, 32


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(*SIZE, 5, 2)


def encode(clip, **options):
    return round_trip.encode(clip, *SIZE, threads=1, keyint=3, slices=2, **options)[0]


def units(stream):
    return [(unit.nal_unit_type, unit.rbsp()) for unit in split_byte_stream(stream)]


def test_the_order_of_nal_units_is_the_standards(clip):
    """7.4.1.2.3; slices stay the same bytes."""
    plain, both = encode(clip), encode(clip, info_sei=True, aud=True)
    of_both = units(both)
    idr, p = [NAL_IDR, NAL_IDR], [NAL_AUD, NAL_SLICE, NAL_SLICE]
    begin = [NAL_AUD, NAL_SPS, NAL_PPS]
    assert [kind for kind, _ in of_both] == [*begin, NAL_SEI, *idr, *p, *p, *begin, *idr, *p]
    assert [parse_access_unit_delimiter(rbsp) for kind, rbsp in of_both if kind == NAL_AUD] == [0, 1, 1, 0, 1]
    assert [unit for unit in of_both if unit[0] not in (NAL_AUD, NAL_SEI)] == units(plain)
    assert {header for header in re.findall(b"\0\0\0\1(.)", both, re.S)} == {b"\x09", b"\x67", b"\x68"}, "nal_ref_idc 0"
    assert both.startswith(b"\0\0\0\1\x09\x10\0\0\0\1\x67")
    round_trip.check(clip, *SIZE, threads=1, keyint=3, info_sei=True, aud=True)


def test_the_message_says_encoder_version_and_options_that_shape_the_stream(clip):
    stream = encode(clip, info_sei=True, qp=31, sar="12:11", partitions="none")
    (rbsp,) = (rbsp for kind, rbsp in units(stream) if kind == NAL_SEI)
    ((kind, payload),) = parse_sei(rbsp)
    assert kind == 5 and payload[:16] == ENCODER_UUID
    text = payload[16:].decode("ascii")
    assert text.startswith(f"h264lite {h264lite.__version__} - ") and "codec" not in text
    options = dict(part.split("=", 1) for part in text.partition("options: ")[2].split())
    assert options["qp"] == "31" and options["fps"] == "30" and options["sar"] == "12:11" and options["partitions"] == "none"
    assert options["deblock"] == "1:0:0" and options["keyint"] == "3" and options["info_sei"] == "1" and options["aud"] == "0"
    assert not {"threads", "device", "gops", "tuning", "psnr", "level", "no_deblock", "b_pyramid", "weightb"} & set(options)
    text = info_text(Config.from_options(width=64, height=64, device="cpu", bframes=3, qp=26))
    assert " bframes=3 b_pyramid=normal " in text and " pbratio=1.8 " in text and text.endswith(" weightb=1")
    text = info_text(Config.from_options(width=64, height=64, device="cpu", tune="grain,fastdecode", deadzone_intra=11, qp=9))
    for option in ("tune=grain,fastdecode", "deblock=0:-2:-2", "cabac=0", "ipratio=1.1", "deadzone_intra=11"):
        assert f" {option} " in text, option
    assert "intra_refresh" not in text
    text = info_text(Config.from_options(width=64, height=64, device="cpu", intra_refresh=True, keyint=20))
    assert " keyint=20 " in text and text.endswith(" intra_refresh=1")


def test_the_text_is_the_same_wherever_the_stream_is(clip):
    first = encode(clip, info_sei=True, aud=True)
    assert encode(clip, info_sei=True, aud=True, gops=2, device="cpu") == first
    one, other = (info_text(Config.from_options(width=64, height=64, **more)) for more in ({}, {"threads": 7, "ssim": True}))
    assert one == other and one.isascii() and one.isprintable()


def test_info_and_the_decoder_show_them(clip, tmp_path, capsys):
    path = tmp_path / "x.264"
    path.write_bytes(encode(clip, info_sei=True, aud=True))
    assert main(["info", str(path), "--nal"]) == 0
    shown = capsys.readouterr().out
    assert len(re.findall(r" 9 access unit delimiter  I slices\n", shown)) == 2
    assert len(re.findall(r" 9 access unit delimiter  I, P slices\n", shown)) == 3
    assert re.search(r" 6 SEI  payload types 5: h264lite \S+ - H.264/AVC encoder - options: fps=30 preset=medium ", shown)
    assert "\nuser data: h264lite " in shown and "\n5 access unit delimiters\n" in shown
    decoder = h264lite.Decoder()
    assert len([*decoder.decode(path.read_bytes()), *decoder.flush()]) == 5
    assert [text.split()[0] for text in decoder.user_data] == ["h264lite"]


def test_user_data_of_others_is_bounded_printable_and_no_error(clip):
    """A broken message ends no decoding."""
    stream = encode(clip)
    texts = (b"x" * 5000, b"a\x1b[31m", b"\xff", b"made by\0")
    messages = [*((5, bytes(16) + text) for text in texts), (5, b"short"), (4, bytes(20))]
    broken = nal_unit(NAL_SEI, 0, b"\x05\xff\x80")
    decoder = h264lite.Decoder()
    frames = [*decoder.decode(nal_unit(NAL_SEI, 0, write_sei(messages)) + broken + stream), *decoder.flush()]
    assert len(frames) == 5 and decoder.user_data == ["x" * 1000, "made by"]
    many = b"".join(nal_unit(NAL_SEI, 0, write_sei([(5, bytes(16) + b"%d" % n)])) for n in range(300))
    assert len([*decoder.decode(many + stream), *decoder.flush()]) == 5 and len(decoder.user_data) == 101


def test_a_gpu_writes_the_same(clip, gpu):  # noqa: F811
    options = {"info_sei": True, "aud": True}
    assert encode(clip, device="cuda", **options) == encode(clip, device="cpu", **options)
