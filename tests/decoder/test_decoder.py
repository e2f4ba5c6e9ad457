"""The decoder's API and commands: pieces of any size, arrays by macroblock, resilience, `decode` and `info`."""


import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.decoder.decoder import decode
from h264lite.decoder.errors import BitstreamError
from h264lite.standard.macroblock import MB_TYPE_NAMES, P_SKIP
from hypothesis import given, settings
from hypothesis import strategies as st

from ..support import round_trip, x264_streams
from ..support.broken import units_of

WIDTH, HEIGHT = 64, 48


@pytest.fixture(scope="module")
def coded() -> tuple[bytes, list[round_trip.Planes]]:
    """A stream of the project's encoder with three IDR pictures, and its frames."""
    options = {"qp": 26, "keyint": 3, "slices": 2, "ref": 2, "weightp": 1}
    return round_trip.encode(round_trip.noise_clip(WIDTH, HEIGHT, 9, 5), WIDTH, HEIGHT, **options)


def raw(frames: list[round_trip.Planes]) -> bytes:
    """I420 of all frames."""
    return b"".join(np.ascontiguousarray(plane).tobytes() for planes in frames for plane in planes)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_pieces_of_any_size(coded, size):
    stream, expected = coded
    decoder = h264lite.Decoder()
    for _ in range(2):  # a decoder may be used again
        frames = [frame for at in range(0, len(stream), size) for frame in decoder.decode(stream[at : at + size])]
        frames += decoder.flush()
        assert b"".join(frame.to_bytes() for frame in frames) == raw(expected)
        assert [frame.is_idr for frame in frames] == [n % 3 == 0 for n in range(9)]
        assert [frame.decode_index for frame in frames][:9] == list(range(frames[0].decode_index, frames[0].decode_index + 9))


def test_size_changes_at_an_idr(coded):
    other, frames = round_trip.encode(round_trip.noise_clip(34, 18, 3, 6), 34, 18, qp=30)
    stream, expected = coded
    assert raw(round_trip.own_frames(stream + other + stream)) == raw(expected) + raw(frames) + raw(expected)


def test_macroblock_arrays(coded):
    decoder = h264lite.Decoder(macroblocks=True)
    frames = [*decoder.decode(coded[0]), *decoder.flush()]
    for frame in frames:
        arrays, n_mb = frame.macroblocks, WIDTH // 16 * HEIGHT // 16
        names = {MB_TYPE_NAMES[kind] for kind in arrays.mb_type}
        inter = arrays.ref_idx[:, 0, :] >= 0
        assert arrays.mv.shape == (n_mb, 2, 16, 2) and arrays.ref_idx.shape == (n_mb, 2, 4)
        assert not arrays.mv[:, 1].any() and (arrays.ref_idx[:, 1] == -1).all()
        assert (arrays.ref_idx < 2).all() and (arrays.qp <= 51).all()
        assert not arrays.mv[:, 0][~inter.any(axis=1)].any(), "intra macroblocks have no vectors"
        skipped = arrays.mb_type == P_SKIP
        assert not arrays.bits[skipped].any() and (arrays.bits[~skipped] > 0).all() and not arrays.cbp[skipped].any()
        assert sorted(set(arrays.slice_id)) == [0, 1] and (np.diff(arrays.slice_id) >= 0).all()
        assert arrays.bits.sum() < 8 * len(coded[0])
        if frame.is_idr:
            assert names <= {"I_4x4", "I_8x8", "I_16x16", "I_PCM"} and (arrays.ref_idx == -1).all()
    assert any((frame.macroblocks.mv != 0).any() for frame in frames)
    assert decode(coded[0])[0].macroblocks is None


def test_arrays_say_which_tools_x264_used():
    """B slices, direct, weights by reference, the 8x8 transform: what tests/decoder/test_x264_streams.py relies on."""
    stream = x264_streams.encode(x264_streams.clip(), bframes=3, b_adapt=0, ref=4, direct="temporal", partitions="all")
    decoder = h264lite.Decoder(macroblocks=True)
    frames = [*decoder.decode(stream), *decoder.flush()]
    arrays = [frame.macroblocks for frame in frames]
    names = {MB_TYPE_NAMES[kind] for a in arrays for kind in a.mb_type}
    assert {"B_Direct_16x16", "B_16x16", "I_8x8"} <= names and any(name.startswith("P_") for name in names)
    assert any(a.transform_8x8.any() for a in arrays) and any((a.ref_idx[:, 1] >= 0).any() for a in arrays)
    assert any((a.ref_idx > 1).any() for a in arrays) and len({frame.slice_types for frame in frames}) == 3
    assert [frame.poc for frame in frames[:5]] == sorted(frame.poc for frame in frames[:5])
    assert [frame.decode_index for frame in frames] != sorted(frame.decode_index for frame in frames)


def broken_middle(stream: bytes) -> bytes:
    """Two bytes of the second picture overwritten."""
    units = units_of(stream)
    slices = [n for n, unit in enumerate(units) if unit.lstrip(b"\0")[1] & 31 == 1]
    units[slices[1]] = units[slices[1]][:12] + b"\xff\x00" + units[slices[1]][14:30]
    return b"".join(units)


def test_resilient_decoding_goes_on_at_the_next_idr(coded):
    stream, expected = coded
    bad = broken_middle(stream)
    with pytest.raises(BitstreamError, match=r"NAL unit \d+ at byte \d+"):
        decode(bad)
    decoder = h264lite.Decoder(resilient=True)
    frames = [*decoder.decode(bad), *decoder.flush()]
    assert frames[0].to_bytes() == raw(expected[:1])
    assert b"".join(frame.to_bytes() for frame in frames[-6:]) == raw(expected[3:])
    assert "NAL unit" in decoder.dropped[0] and any("slices dropped" in line for line in decoder.dropped)


def test_resilient_decoding_drops_what_is_not_supported(coded):
    interlaced = x264_streams.encode(x264_streams.clip(3), tff=1)
    with pytest.raises(h264lite.Unsupported, match=r"interlaced|field"):
        decode(interlaced)
    decoder = h264lite.Decoder(resilient=True)
    frames = [*decoder.decode(interlaced + coded[0]), *decoder.flush()]
    assert b"".join(frame.to_bytes() for frame in frames) == raw(coded[1]) and decoder.dropped


# The commands ------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(coded, tmp_path):
    (tmp_path / "in.264").write_bytes(coded[0])
    return tmp_path / "in.264"


def test_decode_to_yuv_and_y4m(coded, path, tmp_path, capfd):
    assert main(["decode", str(path), str(tmp_path / "o.yuv")]) == 0
    assert (tmp_path / "o.yuv").read_bytes() == raw(coded[1])
    assert f"9 frames of {WIDTH}x{HEIGHT} decoded" in capfd.readouterr().err
    assert main(["decode", str(path), str(tmp_path / "o.y4m"), "--quiet", "--frames", "2"]) == 0
    assert capfd.readouterr().err == ""
    head, *frames = (tmp_path / "o.y4m").read_bytes().split(b"FRAME\n")
    assert head.startswith(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F30:1 Ip C420".encode()) and head.endswith(b"\n")
    assert b"".join(frames) == raw(coded[1][:2])


def test_decode_from_standard_input_to_standard_output(coded, path, monkeypatch, capfdbinary):
    with path.open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert main(["decode", "-", "-", "--quiet"]) == 0
    assert capfdbinary.readouterr().out == raw(coded[1])


def test_decode_errors(coded, path, tmp_path, capfd):
    out = tmp_path / "o.yuv"
    bad = tmp_path / "bad.264"
    bad.write_bytes(broken_middle(coded[0]))
    cases = {
        (str(bad), str(out)): (1, "NAL unit"),
        (str(tmp_path / "none.264"), str(out)): (1, "no such file"),
        (str(path), str(path)): (2, "both input and output"),
        (str(path), str(tmp_path / "no" / "o.yuv")): (1, "there is no folder"),
    }
    for words, (code, text) in cases.items():
        assert main(["decode", *words]) == code
        said = capfd.readouterr().err
        assert text in said and said.count("\n") == 1 and "Traceback" not in said
    assert path.read_bytes() == coded[0]
    assert main(["decode", str(bad), str(out), "--resilient"]) == 0
    said = capfd.readouterr().err
    assert said.count("h264lite: dropped: ") >= 2 and "frames of 64x48 decoded" in said
    for words in (["decode"], ["decode", str(path), str(out), "--frames", "0"], ["decode", str(path), str(out), "--x"]):
        assert main(words) == 2
    empty = tmp_path / "empty.264"
    empty.write_bytes(b"")
    assert main(["decode", str(empty), str(out)]) == 1 and "no frames" in capfd.readouterr().err


def test_info(coded, path, capfd):
    assert main(["info", str(path)]) == 0
    said = capfd.readouterr().out
    for text in ("High profile, level 1", f"{WIDTH}x{HEIGHT}", "entropy coding CABAC", "9 pictures",
                 "IDR      3 pictures", "P        6 pictures", "slice QP 26 to 26", "2.00 slices a picture",
                 "8x8 transform in ", f"{len(coded[0])} bytes"):
        assert text in said, (text, said)
    assert main(["info", str(path), "--nal"]) == 0
    lines = capfd.readouterr().out.splitlines()
    rows = [line.split() for line in lines[: lines.index("")]]
    units = units_of(coded[0])
    assert len(rows) == len(units) and [int(row[0]) for row in rows] == sorted(int(row[0]) for row in rows)
    assert [int(row[2]) for row in rows] == [unit.lstrip(b"\0")[1] & 31 for unit in units]


def test_info_of_high_profile(tmp_path, capfd):
    path = tmp_path / "high.264"
    path.write_bytes(x264_streams.encode(x264_streams.clip(), bframes=2, b_adapt=0))
    assert main(["info", str(path)]) == 0
    said = capfd.readouterr().out
    assert "High profile" in said and "CABAC" in said and "80x64" in said and "\nB " in said and "\nP " in said
    assert "8x8 transform in " in said


def test_info_of_what_is_no_stream(tmp_path, capfd):
    path = tmp_path / "text.264"
    path.write_bytes(b"this is no video\n" * 99)
    assert main(["info", str(path)]) == 1
    assert "Traceback" not in capfd.readouterr().err


# Any bytes ---------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.binary(max_size=80), cabac=st.booleans(), kind=st.sampled_from([0x65, 0x41, 0x01, 0x67, 0x68, 0x06]))
def test_any_payload_ends_in_frames_or_one_error(data, cabac, kind):
    """Arbitrary bytes as the payload of a NAL unit after good parameter sets."""
    decoder = h264lite.Decoder()
    start = heads()[cabac]
    try:
        frames = [*decoder.decode(start + b"\0\0\1" + bytes([kind]) + data)]
    except BitstreamError as error:
        assert "NAL unit" in str(error)
        frames = []
    try:
        frames += decoder.flush()
    except BitstreamError as error:
        assert "byte" in str(error)
    assert all(frame.y.shape for frame in frames)


def heads(kept: dict[bool, bytes] = {}) -> dict[bool, bytes]:  # noqa: B006
    """Parameter sets and first picture of a CAVLC and a CABAC stream."""
    if not kept:
        for cabac in (False, True):
            stream = x264_streams.encode(x264_streams.clip(4), cabac=int(cabac), bframes=1)
            units = units_of(stream)
            first = next(n for n, unit in enumerate(units) if unit.lstrip(b"\0")[1] & 31 == 5)
            kept[cabac] = b"".join(units[: first + 1])
    return kept
